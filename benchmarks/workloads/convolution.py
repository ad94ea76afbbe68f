"""A step of LeNet: two convolutions with pooling, three layers, softmax cross-entropy and SGD."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.workload import Array, Run, Training


class LeNet(Training):
    """LeCun et al., Gradient-based learning applied to document recognition (1998), with relu."""

    name, title = "lenet", "LeNet, SGD, 64×1×28×28"
    data, parameters, rate, rtol = 2, 10, 1e-2, 1e-3

    def inputs(self) -> list[Array]:
        n = self.size(64)
        y = np.eye(10, dtype=self.dtype)[self.rng.integers(10, size=n)]
        parameters: list[Array] = []
        for shape in ((6, 1, 5, 5), (16, 6, 5, 5)):
            parameters += [self.normal(*shape) / np.float32(np.prod(shape[1:]) ** 0.5)]
            parameters += [np.zeros(shape[0], self.dtype)]
        for i, o in ((400, 120), (120, 84), (84, 10)):
            parameters += [self.normal(i, o) / np.float32(i**0.5), np.zeros(o, self.dtype)]
        return [self.normal(n, 1, 28, 28), y, *parameters]

    def _features(self, xp: Any, x: Any, *p: Any) -> Any:
        h = xp.max_pool(xp.relu(xp.conv2d(x, p[0], p[1], padding=2)), 2)
        h = xp.max_pool(xp.relu(xp.conv2d(h, p[2], p[3], padding=0)), 2)
        return xp.reshape(h, (x.shape[0], 400))

    def loss(self, xp: Any, x: Any, y: Any, *p: Any) -> Any:
        h = xp.relu(self._features(xp, x, *p) @ p[4] + p[5])
        h = xp.relu(h @ p[6] + p[7])
        return -xp.sum(y * xp.log_softmax(h @ p[8] + p[9])) / x.shape[0]

    def torch_loss(self, xp: Any, x: Any, y: Any, *p: Any) -> Any:
        h = xp.relu(xp.addmm(p[5], self._features(xp, x, *p), p[4]))
        h = xp.relu(xp.addmm(p[7], h, p[6]))
        return xp.nn.functional.cross_entropy(xp.addmm(p[9], h, p[8]), y)

    def torch_update(self, parameters: Sequence[Any]) -> Callable[[], None]:
        import torch

        sgd = torch.optim.SGD(parameters, self.rate, foreach=True)
        return lambda: sgd.step()

    def pytensor(self, *inputs: Any, linker: str = "auto") -> Run:
        raise NotImplementedError

    def autograd(self, *inputs: Any) -> Run:
        raise NotImplementedError

    def naive(self, x: Array, y: Array, *start: Array) -> Run:
        state = list(start)

        def windows(x: Array) -> Array:
            return np.lib.stride_tricks.sliding_window_view(x, (5, 5), (2, 3))

        def conv(x: Array, w: Array, b: Array) -> Array:
            y = np.tensordot(windows(x), w, ((1, 4, 5), (1, 2, 3)))
            return np.moveaxis(y, 3, 1) + b[:, None, None]

        def pool(x: Array) -> Array:
            n, c, h, w = x.shape
            return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))

        def unpool(g: Array, x: Array, y: Array) -> Array:
            wide = [np.repeat(np.repeat(a, 2, 2), 2, 3) for a in (g, y)]
            return wide[0] * ((x == wide[1]) & (x > 0))

        def run() -> Sequence[Any]:
            nonlocal state
            v1, c1, v2, c2, w1, b1, w2, b2, w3, b3 = state
            wide = np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)))
            a1 = np.maximum(conv(wide, v1, c1), 0)
            p1 = pool(a1)
            a2 = np.maximum(conv(p1, v2, c2), 0)
            p2 = pool(a2)
            h0 = p2.reshape(len(x), 400)
            h1 = np.maximum(h0 @ w1 + b1, 0)
            h2 = np.maximum(h1 @ w2 + b2, 0)
            z = h2 @ w3 + b3
            z = z - z.max(1, keepdims=True)
            log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
            loss = -(y * log_p).sum() / len(x)
            g = (np.exp(log_p) * y.sum(1, keepdims=True) - y) / len(x)
            g2 = g @ w3.T * (h2 > 0)
            g1 = g2 @ w2.T * (h1 > 0)
            d2 = unpool((g1 @ w1.T).reshape(p2.shape), a2, p2)
            back = np.zeros_like(p1)
            for i, j in np.ndindex(5, 5):
                back[:, :, i : i + 10, j : j + 10] += np.einsum("nohw,oc->nchw", d2, v2[:, :, i, j])
            d1 = unpool(back, a1, p1)
            gradients = [
                np.tensordot(d1, windows(wide), ((0, 2, 3), (0, 2, 3))), d1.sum((0, 2, 3)),
                np.tensordot(d2, windows(p1), ((0, 2, 3), (0, 2, 3))), d2.sum((0, 2, 3)),
                h0.T @ g1, g1.sum(0), h1.T @ g2, g2.sum(0), h2.T @ g, g.sum(0),
            ]  # fmt: skip
            state = self.next(np, state, gradients)
            return [loss]

        return run

    def tuned(self, x: Array, y: Array, *start: Array) -> Run:
        """With the batch innermost, so that windows are copied in long runs."""
        n = len(x)
        state = [a.copy() for a in start]
        v1, c1, v2, c2, w1, b1, w2, b2, w3, b3 = state
        gradients = [np.empty_like(a) for a in state]

        def empty(*shape: int) -> Array:
            return np.empty(shape, self.dtype)

        wide, cols1, a1 = empty(1, 32, 32, n), empty(25, 28, 28, n), empty(6, 28, 28, n)
        cols2, a2, flat = empty(6, 25, 10, 10, n), empty(16, 10, 10, n), empty(16, 5, 5, n)
        p1, half1, half2 = empty(6, 14, 14, n), empty(6, 28, 14, n), empty(16, 10, 5, n)
        h1, h2, z = (empty(n, len(b)) for b in (b1, b2, b3))
        g1, g2, e, column = h1.copy(), h2.copy(), z.copy(), z[:, :1].copy()
        mask1, mask2 = h1.astype(bool), h2.astype(bool)
        back, d1, d2, dcols = empty(6, 14, 14, n), a1.copy(), a2.copy(), cols2.copy()
        flow = empty(n, 400)
        bits1, bits2 = np.empty(p1.shape, bool), np.empty(flat.shape, bool)
        wide.fill(0)

        def pool(a: Array, half: Array, out: Array) -> None:
            np.maximum(a[:, :, ::2], a[:, :, 1::2], out=half)
            np.maximum(half[:, ::2], half[:, 1::2], out=out)

        def unpool(g: Array, a: Array, y: Array, out: Array, bits: Array) -> None:
            np.multiply(g, np.greater(y, 0, bits), g)
            for i, j in np.ndindex(2, 2):
                np.equal(a[:, i::2, j::2], y, bits)
                np.multiply(g, bits, out[:, i::2, j::2])

        def run() -> Sequence[Any]:
            wide[0, 2:30, 2:30] = x[:, 0].transpose(1, 2, 0)
            for t, (i, j) in enumerate(np.ndindex(5, 5)):
                cols1[t] = wide[0, i : i + 28, j : j + 28]
            np.matmul(v1.reshape(6, 25), cols1.reshape(25, -1), a1.reshape(6, -1))
            np.maximum(np.add(a1, c1[:, None, None, None], a1), 0, out=a1)
            pool(a1, half1, p1)
            for t, (i, j) in enumerate(np.ndindex(5, 5)):
                cols2[:, t] = p1[:, i : i + 10, j : j + 10]
            np.matmul(v2.reshape(16, 150), cols2.reshape(150, -1), a2.reshape(16, -1))
            np.maximum(np.add(a2, c2[:, None, None, None], a2), 0, out=a2)
            pool(a2, half2, flat)
            h0 = flat.reshape(400, n).T
            for a, w, b, h in ((h0, w1, b1, h1), (h1, w2, b2, h2)):
                np.matmul(a, w, h)
                np.maximum(np.add(h, b, h), 0, out=h)
            np.add(np.matmul(h2, w3, z), b3, z)
            np.maximum.reduce(z, 1, out=column, keepdims=True)
            np.subtract(z, column, z)
            np.add.reduce(np.exp(z, e), 1, out=column, keepdims=True)
            np.divide(e, column, e)
            loss = (np.log(column, column).sum() - np.vdot(y, z)) / n
            np.multiply(np.subtract(e, y, e), 1 / n, e)
            np.multiply(np.matmul(e, w3.T, g2), np.greater(h2, 0, mask2), g2)
            np.multiply(np.matmul(g2, w2.T, g1), np.greater(h1, 0, mask1), g1)
            np.matmul(g1, w1.T, flow)
            unpool(flow.T.reshape(flat.shape), a2, flat, d2, bits2)
            flows = d2.reshape(16, -1)
            np.matmul(flows, cols2.reshape(150, -1).T, gradients[2].reshape(16, 150))
            np.add.reduce(flows, 1, out=gradients[3])
            np.matmul(v2.reshape(16, 150).T, flows, dcols.reshape(150, -1))
            back.fill(0)
            for t, (i, j) in enumerate(np.ndindex(5, 5)):
                back[:, i : i + 10, j : j + 10] += dcols[:, t]
            unpool(back, a1, p1, d1, bits1)
            flows = d1.reshape(6, -1)
            np.matmul(flows, cols1.reshape(25, -1).T, gradients[0].reshape(6, 25))
            np.add.reduce(flows, 1, out=gradients[1])
            for i, (a, g) in enumerate(((h0, g1), (h1, g2), (h2, e))):
                np.matmul(a.T, g, gradients[4 + 2 * i])
                np.add.reduce(g, 0, out=gradients[5 + 2 * i])
            for w, g in zip(state, gradients, strict=True):
                np.subtract(w, np.multiply(g, self.rate, g), w)
            return [loss]

        return run
