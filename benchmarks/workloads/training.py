"""Steps of training: a two-layer net with SGD, and an MLP with softmax cross-entropy and Adam."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.workload import Array, Run, Training


class TwoLayer(Training):
    """loss = sum((relu(x @ w1) @ w2 - y) ** 2), plain gradient descent."""

    name, title = "two_layer_64", "two-layer net, SGD, 64×1000×100×10"
    data, parameters, batch, rate = 2, 2, 64, 1e-6

    def inputs(self) -> list[Array]:
        n, i, h, o = self.size(self.batch), self.size(1000), self.size(100), self.size(10)
        return [self.normal(*s) for s in ((n, i), (n, o), (i, h), (h, o))]

    def loss(self, xp: Any, x: Any, y: Any, w1: Any, w2: Any) -> Any:
        return xp.sum((xp.relu(x @ w1) @ w2 - y) ** 2)

    def naive(self, x: Array, y: Array, w1: Array, w2: Array) -> Run:
        def run() -> Sequence[Any]:
            nonlocal w1, w2
            h = np.maximum(x @ w1, 0)
            e = h @ w2 - y
            loss = (e**2).sum()
            g = 2 * e
            gh = g @ w2.T * (h > 0)
            w1 = w1 - self.rate * (x.T @ gh)
            w2 = w2 - self.rate * (h.T @ g)
            return [loss]

        return run

    def tuned(self, x: Array, y: Array, w1: Array, w2: Array) -> Run:
        w1, w2 = w1.copy(), w2.copy()
        h, e, d1, d2 = x @ w1, np.empty_like(y), np.empty_like(w1), np.empty_like(w2)
        gh, mask = np.empty_like(h), np.empty_like(h)

        def run() -> Sequence[Any]:
            np.matmul(x, w1, h)
            np.maximum(h, 0, out=h)
            np.matmul(h, w2, e)
            np.subtract(e, y, e)
            loss = np.vdot(e, e)
            np.multiply(e, 2 * self.rate, e)
            np.matmul(h.T, e, d2)
            np.matmul(e, w2.T, gh)
            np.greater(h, 0, mask)
            np.multiply(gh, mask, gh)
            np.matmul(x.T, gh, d1)
            np.subtract(w1, d1, w1)
            np.subtract(w2, d2, w2)
            return [loss]

        return run

    def products(self, x: Array, y: Array, w1: Array, w2: Array) -> Run:
        h, e, d1, d2 = x @ w1, np.empty_like(y), np.empty_like(w1), np.empty_like(w2)

        def run() -> Sequence[Any]:
            np.matmul(x, w1, h)
            np.matmul(h, w2, e)
            np.matmul(h.T, e, d2)
            np.matmul(e, w2.T, h)
            np.matmul(x.T, h, d1)
            return []

        return run


class TwoLayer100(TwoLayer):
    name, title, batch = "two_layer_100", "two-layer net, SGD, 100×1000×100×10", 100


class Adam(Training):
    """A step of Adam. The state is the parameters, their moments, the squares', and the count.

    Kingma and Ba, Adam: a method for stochastic optimization (2015).
    """

    rate, b1, b2, eps = 1e-3, 0.9, 0.999, 1e-8

    def next(self, xp: Any, state: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
        n, t = self.parameters, state[-1] + 1
        first = [self.b1 * m + (1 - self.b1) * g
                 for m, g in zip(state[n : 2 * n], gradients, strict=True)]  # fmt: skip
        second = [self.b2 * v + (1 - self.b2) * g * g
                  for v, g in zip(state[2 * n : 3 * n], gradients, strict=True)]  # fmt: skip
        c1, c2 = 1 - self.b1**t, 1 - self.b2**t
        moved = [p - self.rate * (m / c1) / (xp.sqrt(v / c2) + self.eps)
                 for p, m, v in zip(state[:n], first, second, strict=True)]  # fmt: skip
        return [*moved, *first, *second, t]

    def torch_update(self, parameters: Sequence[Any]) -> Callable[[], None]:
        import torch

        betas = self.b1, self.b2
        adam = torch.optim.Adam(parameters, self.rate, betas=betas, eps=self.eps, fused=True)
        return lambda: adam.step()

    def corrected(self, t: int) -> tuple[float, float]:
        """The rate and the epsilon, by which the moments need no correction."""
        root = (1 - self.b2**t) ** 0.5
        return self.rate * root / (1 - self.b1**t), float(self.eps * root)

    def move(self, p: Array, m: Array, v: Array, g: Array, s: Array, t: int) -> None:
        """A step in place, with a buffer; of the gradient nothing is left."""
        rate, eps = self.corrected(t)
        np.multiply(g, 1 - self.b1, s)
        np.multiply(m, self.b1, m)
        np.add(m, s, m)
        np.multiply(g, g, g)
        np.multiply(g, 1 - self.b2, g)
        np.multiply(v, self.b2, v)
        np.add(v, g, v)
        np.sqrt(v, s)
        np.add(s, eps, s)
        np.divide(m, s, s)
        np.multiply(s, rate, s)
        np.subtract(p, s, p)


class Adam10M(Adam):
    """A step for 10M weights, whose gradients are given: that of sum(w * g)."""

    name, title, memory_bound = "adam_10m", "Adam, 10M weights", True
    data, parameters = 1, 1

    def inputs(self) -> list[Array]:
        n = self.size(10_000_000)
        moments = [np.zeros(n, self.dtype) for _ in range(2)]
        return [self.normal(n), self.normal(n), *moments, np.zeros((), self.dtype)]

    def loss(self, xp: Any, g: Any, w: Any) -> Any:
        return xp.sum(w * g)

    def naive(self, g: Array, *start: Array) -> Run:
        state: list[Any] = list(start)

        def run() -> Sequence[Any]:
            nonlocal state
            loss = (state[0] * g).sum()
            state = self.next(np, state, [g])
            return [loss]

        return run

    def tuned(self, g: Array, *start: Array) -> Run:
        arrays, t, n = [a.copy() for a in start[:3]], 0, 2**14
        buffers = np.empty((2, n), self.dtype)

        def run() -> Sequence[Any]:
            nonlocal t
            t, loss = t + 1, 0.0
            for i in range(0, len(g), n):
                p, m, v = (a[i : i + n] for a in arrays)
                own, s = buffers[:, : len(p)]
                np.copyto(own, g[i : i + n])
                loss += float(np.vdot(p, own))
                self.move(p, m, v, own, s, t)
            return [loss]

        return run

    def numba(self, g: Array, *start: Array) -> Run:
        from numba import njit, prange

        def kernel(g: Any, p: Any, m: Any, v: Any, by: Any) -> Any:
            b1, c1, b2, c2, eps, rate = by
            total = 0.0
            for i in prange(len(g)):
                total += p[i] * g[i]
                m[i] = b1 * m[i] + c1 * g[i]
                v[i] = b2 * v[i] + c2 * g[i] * g[i]
                p[i] -= rate * m[i] / (np.sqrt(v[i]) + eps)
            return total

        compiled = njit(parallel=True, fastmath=True)(kernel)
        arrays, t = [a.copy() for a in start[:3]], 0

        def run() -> Sequence[Any]:
            nonlocal t
            t += 1
            rate, eps = self.corrected(t)
            by = np.array([self.b1, 1 - self.b1, self.b2, 1 - self.b2, eps, rate], self.dtype)
            return [compiled(g, *arrays, by)]

        return run


class MLP(Adam):
    """784-512-512-10 with biases, softmax cross-entropy, Adam, a batch of 128."""

    name, title = "mlp_adam", "MLP 784-512-512-10, Adam, batch 128"
    data, parameters, rtol = 2, 6, 1e-3

    def inputs(self) -> list[Array]:
        n, sizes = self.size(128), [self.size(s) for s in (784, 512, 512, 10)]
        y = np.eye(sizes[-1], dtype=self.dtype)[self.rng.integers(sizes[-1], size=n)]
        parameters: list[Array] = []
        for i, o in pairwise(sizes):
            parameters += [self.normal(i, o) / np.float32(i**0.5), np.zeros(o, self.dtype)]
        moments = [np.zeros_like(p) for _ in range(2) for p in parameters]
        return [self.normal(n, sizes[0]), y, *parameters, *moments, np.zeros((), self.dtype)]

    def loss(self, xp: Any, x: Any, y: Any, *p: Any) -> Any:
        h = xp.relu(xp.relu(x @ p[0] + p[1]) @ p[2] + p[3])
        return -xp.sum(y * xp.log_softmax(h @ p[4] + p[5])) / x.shape[0]

    def torch_loss(self, xp: Any, x: Any, y: Any, *p: Any) -> Any:
        h = xp.relu(xp.addmm(p[3], xp.relu(xp.addmm(p[1], x, p[0])), p[2]))
        return xp.nn.functional.cross_entropy(xp.addmm(p[5], h, p[4]), y)

    def naive(self, x: Array, y: Array, *start: Array) -> Run:
        state: list[Any] = list(start)

        def run() -> Sequence[Any]:
            nonlocal state
            w1, b1, w2, b2, w3, b3 = state[:6]
            h1 = np.maximum(x @ w1 + b1, 0)
            h2 = np.maximum(h1 @ w2 + b2, 0)
            z = h2 @ w3 + b3
            z = z - z.max(1, keepdims=True)
            log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
            loss = -(y * log_p).sum() / len(x)
            g = (np.exp(log_p) * y.sum(1, keepdims=True) - y) / len(x)
            g2 = g @ w3.T * (h2 > 0)
            g1 = g2 @ w2.T * (h1 > 0)
            gradients = [x.T @ g1, g1.sum(0), h1.T @ g2, g2.sum(0), h2.T @ g, g.sum(0)]
            state = self.next(np, state, gradients)
            return [loss]

        return run

    def tuned(self, x: Array, y: Array, *start: Array) -> Run:
        *state, _ = [a.copy() for a in start]
        w1, b1, w2, b2, w3, b3 = parameters = state[:6]
        moments = list(zip(parameters, state[6:12], state[12:18], strict=True))
        gradients = [np.empty_like(p) for p in parameters]
        scratch = [np.empty_like(p) for p in parameters]
        n = len(x)
        h1, h2, z = (np.empty((n, len(b)), self.dtype) for b in (b1, b2, b3))
        g1, g2, e, column = h1.copy(), h2.copy(), z.copy(), z[:, :1].copy()
        mask1, mask2, t = h1.astype(bool), h2.astype(bool), 0

        def run() -> Sequence[Any]:
            nonlocal t
            for a, w, b, h in ((x, w1, b1, h1), (h1, w2, b2, h2)):
                np.matmul(a, w, h)
                np.add(h, b, h)
                np.maximum(h, 0, out=h)
            np.matmul(h2, w3, z)
            np.add(z, b3, z)
            np.maximum.reduce(z, 1, out=column, keepdims=True)
            np.subtract(z, column, z)
            np.exp(z, e)
            np.add.reduce(e, 1, out=column, keepdims=True)
            np.divide(e, column, e)
            np.log(column, column)
            loss = (column.sum() - np.vdot(y, z)) / n  # each row of y is a distribution
            np.subtract(e, y, e)
            np.multiply(e, 1 / n, e)
            np.matmul(e, w3.T, g2)
            np.greater(h2, 0, mask2)
            np.multiply(g2, mask2, g2)
            np.matmul(g2, w2.T, g1)
            np.greater(h1, 0, mask1)
            np.multiply(g1, mask1, g1)
            for i, (a, g) in enumerate(((x, g1), (h1, g2), (h2, e))):
                np.matmul(a.T, g, gradients[2 * i])
                np.add.reduce(g, 0, out=gradients[2 * i + 1])
            t += 1
            for (p, m, v), g, s in zip(moments, gradients, scratch, strict=True):
                self.move(p, m, v, g, s, t)
            return [loss]

        return run

    def products(self, x: Array, y: Array, *state: Array) -> Run:
        w1, _, w2, _, w3, _ = state[:6]
        h1, h2, z = x @ w1, x @ w1 @ w2, x @ w1 @ w2 @ w3
        d1, d2, d3 = np.empty_like(w1), np.empty_like(w2), np.empty_like(w3)

        def run() -> Sequence[Any]:
            np.matmul(x, w1, h1)
            np.matmul(h1, w2, h2)
            np.matmul(h2, w3, z)
            np.matmul(h2.T, z, d3)
            np.matmul(z, w3.T, h2)
            np.matmul(h1.T, h2, d2)
            np.matmul(h2, w2.T, h1)
            np.matmul(x.T, h1, d1)
            return []

        return run
