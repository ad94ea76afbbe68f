"""A step of training of an LSTM over sequences: loops, and their compilers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.workload import Array, Run, Training


def unrolled(step: Callable[[Any, Any], Any], carry: Any, xs: Any) -> tuple[Any, None]:
    """The steps one by one, for libraries that have no loop, or no better one."""
    for t in range(xs.shape[0]):
        carry, _ = step(carry, xs[t])
    return carry, None


class LSTM50(Training):
    """An LSTM, 32 sequences of 32 features, 64 units: squared error of the last state, SGD."""

    name, title, steps = "lstm_50", "LSTM, SGD, 50 steps of 32×32→64", 50
    data, parameters, rate = 2, 3, 0.1

    def inputs(self) -> list[Array]:
        t, n, d, m = self.size(self.steps), self.size(32), self.size(32), self.size(64)
        w, u = self.normal(d, 4 * m) * 0.1, self.normal(m, 4 * m) * 0.1
        x, y = self.normal(t, n, d), self.normal(n, m)
        return [x, y, w.astype(self.dtype), u.astype(self.dtype), np.zeros(4 * m, self.dtype)]

    def loss(self, xp: Any, x: Any, y: Any, w: Any, u: Any, b: Any) -> Any:
        m, sigmoid = u.shape[0], getattr(xp, "sigmoid", lambda z: 0.5 * xp.tanh(0.5 * z) + 0.5)

        def cell(carry: Any, row: Any) -> Any:
            h, c = carry
            z = row @ w + h @ u + b
            i, f, g, o = (z[:, k * m : (k + 1) * m] for k in range(4))
            c = sigmoid(f) * c + sigmoid(i) * xp.tanh(g)
            return (sigmoid(o) * xp.tanh(c), c), None

        zero = y * 0
        (h, _), _ = getattr(xp, "scan", unrolled)(cell, (zero, zero), x)
        return xp.mean((h - y) ** 2)

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
