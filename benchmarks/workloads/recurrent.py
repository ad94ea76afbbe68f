"""A step of training of an LSTM over sequences: loops, and their compilers; one cell of a GRU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.workload import Array, Run, Training, Workload


def sigmoid_of(xp: Any) -> Any:
    """A library's sigmoid, or what it is made of."""
    return getattr(xp, "sigmoid", lambda z: 0.5 * xp.tanh(0.5 * z) + 0.5)


def unrolled(step: Callable[[Any, Any], Any], carry: Any, xs: Any) -> tuple[Any, None]:
    """The steps one by one, for libraries that have no loop, or no better one."""
    for t in range(xs.shape[0]):
        carry, _ = step(carry, xs[t])
    return carry, None


class LSTM50(Training):
    """An LSTM, 32 sequences of 32 features, 64 units: squared error of the last state, SGD.

    Its gradients vanish. XLA always takes subnormal numbers for 0, and symgrad's machine code
    and PyTorch are told to.
    """

    name, title, steps = "lstm_50", "LSTM, SGD, 50 steps of 32×32→64", 50
    data, parameters, rate = 2, 3, 0.1

    def inputs(self) -> list[Array]:
        t, n, d, m = self.size(self.steps), self.size(32), self.size(32), self.size(64)
        w, u = self.normal(d, 4 * m) * 0.1, self.normal(m, 4 * m) * 0.1
        x, y = self.normal(t, n, d), self.normal(n, m)
        return [x, y, w.astype(self.dtype), u.astype(self.dtype), np.zeros(4 * m, self.dtype)]

    def loss(self, xp: Any, x: Any, y: Any, w: Any, u: Any, b: Any) -> Any:
        m, sigmoid = u.shape[0], sigmoid_of(xp)

        def cell(carry: Any, row: Any) -> Any:
            h, c = carry
            z = row @ w + h @ u + b
            i, f, g, o = (z[:, k * m : (k + 1) * m] for k in range(4))
            c = sigmoid(f) * c + sigmoid(i) * xp.tanh(g)
            return (sigmoid(o) * xp.tanh(c), c), None

        zero = y * 0
        (h, _), _ = getattr(xp, "scan", unrolled)(cell, (zero, zero), x)
        return xp.mean((h - y) ** 2)

    def symgrad_native(self, *inputs: Any) -> Run:
        return peers.symgrad_step(self, inputs, "native", flush_subnormals=True)

    def torch(self, *inputs: Any, compiled: bool = False) -> Run:
        import torch

        torch.set_flush_denormal(True)
        return super().torch(*inputs, compiled=compiled)

    def torch_loss(self, xp: Any, x: Any, y: Any, w: Any, u: Any, b: Any) -> Any:
        zero = xp.zeros_like(y)[None]
        weights = [w.T, u.T, b, xp.zeros_like(b)]
        _, h, _ = xp._VF.lstm(x, (zero, zero), weights, True, 1, 0.0, True, False, False)
        return xp.mean((h[0] - y) ** 2)

    def naive(self, x: Array, y: Array, w: Array, u: Array, b: Array) -> Run:
        m = len(u)

        def sigmoid(z: Array) -> Array:
            return 1 / (1 + np.exp(-z))

        def run() -> Sequence[Any]:
            nonlocal w, u, b
            h = c = np.zeros_like(y)
            kept = []
            for row in x:
                z = row @ w + h @ u + b
                i, f, o = (sigmoid(z[:, k * m : (k + 1) * m]) for k in (0, 1, 3))
                g = np.tanh(z[:, 2 * m : 3 * m])
                after = f * c + i * g
                t = np.tanh(after)
                kept.append((row, h, c, i, f, g, o, t))
                h, c = o * t, after
            e = h - y
            dh, dc = 2 * e / e.size, np.zeros_like(c)
            dw, du, db = np.zeros_like(w), np.zeros_like(u), np.zeros_like(b)
            for row, before, c, i, f, g, o, t in reversed(kept):
                dc = dc + dh * o * (1 - t * t)
                parts = dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g * g)
                dz = np.concatenate([*parts, dh * t * o * (1 - o)], axis=1)
                dw, du, db = dw + row.T @ dz, du + before.T @ dz, db + dz.sum(0)
                dh, dc = dz @ u.T, dc * f
            w, u, b = w - self.rate * dw, u - self.rate * du, b - self.rate * db
            return [(e * e).mean()]

        return run

    def tuned(self, x: Array, y: Array, w: Array, u: Array, b: Array) -> Run:
        """All that needs no loop in one product, what is kept in stacks, and buffers."""
        w, u, b = w.copy(), u.copy(), b.copy()
        (steps, n, d), m = x.shape, len(u)
        h, c = (np.zeros((steps + 1, n, m), self.dtype) for _ in range(2))
        z, dz = (np.empty((steps, n, 4 * m), self.dtype) for _ in range(2))
        tanhs, a, half = np.empty((steps, n, m), self.dtype), np.empty_like(z[0]), y.copy()
        dh, dc, p, q = (np.empty_like(y) for _ in range(4))
        flat = x.reshape(steps * n, d)
        low, new, out = slice(0, 2 * m), slice(2 * m, 3 * m), slice(3 * m, 4 * m)

        def sigmoid(v: Array) -> None:
            np.negative(v, v), np.exp(v, v), np.add(v, 1, v), np.reciprocal(v, v)

        def run() -> Sequence[Any]:
            np.matmul(flat, w, z.reshape(steps * n, 4 * m))
            np.add(z, b, z)
            for t in range(steps):
                v, tc = z[t], tanhs[t]
                np.matmul(h[t], u, a)
                np.add(v, a, v)
                sigmoid(v[:, low]), sigmoid(v[:, out])
                np.tanh(v[:, new], v[:, new])
                np.multiply(v[:, m : 2 * m], c[t], c[t + 1])
                np.multiply(v[:, :m], v[:, new], p)
                np.add(c[t + 1], p, c[t + 1])
                np.tanh(c[t + 1], tc)
                np.multiply(v[:, out], tc, h[t + 1])
            np.subtract(h[-1], y, half)
            np.multiply(half, 2 / half.size, dh)
            dc.fill(0)
            back = np.ascontiguousarray(u.T)
            for t in reversed(range(steps)):
                v, e, tc = z[t], dz[t], tanhs[t]
                np.multiply(dh, v[:, out], p)
                np.multiply(tc, tc, q), np.subtract(1, q, q)
                np.multiply(p, q, p), np.add(dc, p, dc)
                np.multiply(dc, v[:, new], e[:, :m])
                np.multiply(dc, c[t], e[:, m : 2 * m])
                np.multiply(dh, tc, e[:, out])
                np.multiply(v[:, new], v[:, new], q), np.subtract(1, q, q)
                np.multiply(dc, v[:, :m], e[:, new]), np.multiply(e[:, new], q, e[:, new])
                for part in (low, out):
                    np.multiply(e[:, part], v[:, part], e[:, part])
                    np.subtract(1, v[:, part], v[:, part])
                    np.multiply(e[:, part], v[:, part], e[:, part])
                np.multiply(dc, c_gate(a, v), dc)
                np.matmul(e, back, dh)
            total = dz.reshape(steps * n, 4 * m)
            np.subtract(w, self.rate * (flat.T @ total), w)
            np.subtract(u, self.rate * (h[:-1].reshape(steps * n, m).T @ total), u)
            np.subtract(b, self.rate * total.sum(0), b)
            return [np.vdot(half, half) / half.size]

        def c_gate(buffer: Array, v: Array) -> Array:
            """The forget gate, of which 1 minus it is left."""
            np.subtract(1, v[:, m : 2 * m], buffer[:, :m])
            return buffer[:, :m]

        return run


class LSTM200(LSTM50):
    name, title, steps = "lstm_200", "LSTM, SGD, 200 steps of 32×32→64", 200


class LSTM1000(LSTM50):
    name, title, steps = "lstm_1000", "LSTM, SGD, 1000 steps of 32×32→64", 1000
    rtol = 1e-3


class GRUCell(Workload):
    """One step of a GRU, 128 rows of 256 to 256 units: sum(h * c), by the state and the weights.

    Cho et al., Learning phrase representations using RNN encoder-decoder (2014), as in cuDNN.
    """

    name, title, wanted = "gru_cell", "GRU cell, 128×256→256", (1, 2, 3, 4, 5)

    def inputs(self) -> list[Array]:
        n, d, m = self.size(128), self.size(256), self.size(256)
        w, u = (
            self.normal(d, 3 * m) / np.float32(d**0.5),
            self.normal(m, 3 * m) / np.float32(m**0.5),
        )
        biases = self.normal(3 * m), self.normal(3 * m)
        return [self.normal(n, d), self.normal(n, m), w, u, *biases, self.normal(n, m)]

    def loss(self, xp: Any, x: Any, h: Any, w: Any, u: Any, b: Any, more: Any, c: Any) -> Any:
        m, sigmoid = u.shape[0], sigmoid_of(xp)
        p, q = x @ w + b, h @ u + more
        r, z = (sigmoid(p[:, s] + q[:, s]) for s in (slice(0, m), slice(m, 2 * m)))
        new = xp.tanh(p[:, 2 * m :] + r * q[:, 2 * m :])
        return xp.sum(((1 - z) * new + z * h) * c)

    def torch_loss(self, xp: Any, x: Any, h: Any, w: Any, u: Any, b: Any, more: Any, c: Any) -> Any:
        return xp.sum(xp._VF.gru_cell(x, h, w.T, u.T, b, more) * c)

    def torch_compile(self, *inputs: Any) -> Run:
        return peers.torch_compiled(self.loss, inputs, self.wanted)

    def naive(self, x: Array, h: Array, w: Array, u: Array, b: Array, more: Array, c: Array) -> Run:
        m = len(u)

        def run() -> Sequence[Any]:
            p, q = x @ w + b, h @ u + more
            r = 1 / (1 + np.exp(-p[:, :m] - q[:, :m]))
            z = 1 / (1 + np.exp(-p[:, m : 2 * m] - q[:, m : 2 * m]))
            new = np.tanh(p[:, 2 * m :] + r * q[:, 2 * m :])
            loss = (((1 - z) * new + z * h) * c).sum()
            dn = c * (1 - z) * (1 - new * new)
            dr = dn * q[:, 2 * m :] * r * (1 - r)
            dz = c * (h - new) * z * (1 - z)
            dp, dq = np.hstack([dr, dz, dn]), np.hstack([dr, dz, dn * r])
            return [loss, dq @ u.T + c * z, x.T @ dp, h.T @ dq, dp.sum(0), dq.sum(0)]

        return run

    def tuned(self, x: Array, h: Array, w: Array, u: Array, b: Array, more: Array, c: Array) -> Run:
        (n, m), two = h.shape, 2 * len(u)
        p, q = (np.empty((n, 3 * m), self.dtype) for _ in range(2))
        s, t = np.empty((n, two), self.dtype), np.empty((n, m), self.dtype)
        ones = np.ones(n, self.dtype)

        def run() -> Sequence[Any]:
            np.add(np.matmul(x, w, p), b, p)
            np.add(np.matmul(h, u, q), more, q)
            gates, new, z = p[:, :two], p[:, two:], p[:, m:two]
            np.add(gates, q[:, :two], gates)
            np.negative(gates, gates), np.exp(gates, gates)
            np.add(gates, 1, gates), np.reciprocal(gates, gates)
            np.multiply(p[:, :m], q[:, two:], t)
            np.add(new, t, new)
            np.tanh(new, new)
            dh = z * c
            np.subtract(c, dh, t)  # c (1 - z)
            loss = np.vdot(dh, h) + np.vdot(t, new)
            # p becomes the gradient by x @ w, q that by h @ u, from right to left.
            np.subtract(h, new, s[:, m:]), np.multiply(s[:, m:], c, s[:, m:])
            np.multiply(new, new, new), np.subtract(1, new, new), np.multiply(new, t, new)
            np.multiply(new, q[:, two:], s[:, :m])
            np.multiply(new, p[:, :m], q[:, two:])
            np.multiply(s, gates, s)
            np.subtract(1, gates, gates), np.multiply(gates, s, gates)
            np.copyto(q[:, :two], gates)
            np.add(dh, q @ u.T, dh)
            return [loss, dh, x.T @ p, h.T @ q, ones @ p, ones @ q]

        return run

    def products(
        self, x: Array, h: Array, w: Array, u: Array, b: Array, more: Array, c: Array
    ) -> Run:
        p, q = x @ w, h @ u

        def run() -> Sequence[Any]:
            np.matmul(x, w, p), np.matmul(h, u, q)
            return [q @ u.T, x.T @ p, h.T @ q]

        return run
