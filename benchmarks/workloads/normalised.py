"""A step of a net with batch norm, whose products are thin: pointwise convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.workload import Array, Run, Training

EPS = 1e-5


class BatchNormNet(Training):
    """Two pointwise convolutions, each with batch norm and relu, channels' means, a classifier.

    Ioffe and Szegedy, Batch normalization (2015), with the statistics of the batch.
    """

    name, title = "batch_norm", "BatchNorm net, SGD, 64×16×32×32"
    data, parameters, rate, rtol, memory_bound = 2, 8, 1e-1, 1e-3, True

    def inputs(self) -> list[Array]:
        n, size = self.size(64), self.size(1024)
        y = np.eye(10, dtype=self.dtype)[self.rng.integers(10, size=n)]
        parameters: list[Array] = []
        for i, o in ((16, 32), (32, 32)):
            parameters += [self.normal(o, i) / np.float32(i**0.5)]
            parameters += [np.ones(o, self.dtype), np.zeros(o, self.dtype)]
        parameters += [self.normal(32, 10) / np.float32(32**0.5), np.zeros(10, self.dtype)]
        return [self.normal(n, 16, size), y, *parameters]

    def loss(self, xp: Any, x: Any, y: Any, *p: Any) -> Any:
        for w, g, b in (p[:3], p[3:6]):
            x = xp.relu(self.norm(xp, w @ x, g, b))
        return self._head(xp, x, y, *p[6:])

    def norm(self, xp: Any, z: Any, g: Any, b: Any) -> Any:
        """Batch norm over all but the channels."""
        d = z - xp.mean(z, axis=(0, 2), keepdims=True)
        variance = xp.mean(d * d, axis=(0, 2), keepdims=True)
        return d / xp.sqrt(variance + EPS) * g[:, None] + b[:, None]

    def _head(self, xp: Any, x: Any, y: Any, w: Any, b: Any) -> Any:
        return -xp.sum(y * xp.log_softmax(xp.mean(x, axis=2) @ w + b)) / x.shape[0]

    def torch_loss(self, xp: Any, x: Any, y: Any, *p: Any) -> Any:
        for w, g, b in (p[:3], p[3:6]):
            z = xp.nn.functional.conv1d(x, w[:, :, None])
            z = xp.nn.functional.batch_norm(z, None, None, g, b, training=True, eps=EPS)
            x = xp.relu(z)
        return self._head(xp, x, y, *p[6:])

    def naive(self, x: Array, y: Array, *start: Array) -> Run:
        state: list[Any] = list(start)

        def norm(z: Array, g: Array, b: Array) -> tuple[Array, Array, Array]:
            d = z - z.mean((0, 2), keepdims=True)
            inverse = 1 / np.sqrt((d * d).mean((0, 2), keepdims=True) + EPS)
            h = d * inverse
            return np.maximum(h * g[:, None] + b[:, None], 0), h, inverse

        def back(dy: Array, y: Array, h: Array, inverse: Array, g: Array) -> list[Array]:
            dy = dy * (y > 0)
            dh = dy * g[:, None]
            means = (a.mean((0, 2), keepdims=True) for a in (dh, dh * h))
            dz = inverse * (dh - next(means) - h * next(means))
            return [dz, (dy * h).sum((0, 2)), dy.sum((0, 2))]

        def run() -> Sequence[Any]:
            nonlocal state
            w1, g1, b1, w2, g2, b2, w3, b3 = state
            y1, *kept1 = norm(w1 @ x, g1, b1)
            y2, *kept2 = norm(w2 @ y1, g2, b2)
            pooled = y2.mean(2)
            z = pooled @ w3 + b3
            z = z - z.max(1, keepdims=True)
            log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
            loss = -(y * log_p).sum() / len(x)
            g = (np.exp(log_p) * y.sum(1, keepdims=True) - y) / len(x)
            flow = np.broadcast_to((g @ w3.T)[:, :, None] / x.shape[2], y2.shape)
            d2, dg2, db2 = back(flow, y2, *kept2, g2)
            dw2 = (d2 @ y1.mT).sum(0)
            d1, dg1, db1 = back(w2.T @ d2, y1, *kept1, g1)
            dw1 = (d1 @ x.mT).sum(0)
            gradients = [dw1, dg1, db1, dw2, dg2, db2, pooled.T @ g, g.sum(0)]
            state = self.next(np, state, gradients)
            return [loss]

        return run

    def tuned(self, x: Array, y: Array, *start: Array) -> Run:
        """Image by image, each of which stays in the cache; of the norms only sums are kept."""
        state = [a.copy() for a in start]
        w1, g1, b1, w2, g2, b2, w3, b3 = state
        n, _, size = x.shape
        m, count = len(g1), n * size
        z1, z2, y1 = (np.empty((n, m, size), self.dtype) for _ in range(3))
        f, h, flow = (np.empty((m, size), self.dtype) for _ in range(3))
        mask, ones = np.empty((m, size), bool), np.ones(size, self.dtype)
        pooled = np.empty((n, m), self.dtype)
        d1, d2, part1, part2 = (np.empty_like(w) for w in (w1, w2, w1, w2))

        def statistics(sums: Array, squares: Array, g: Array, b: Array) -> list[Array]:
            """The mean, one by the deviation, and the scale and shift that the norm comes to."""
            mean = sums / count
            inverse = 1 / np.sqrt(squares / count - mean * mean + EPS)
            scale = g * inverse
            found = [a[:, None].astype(self.dtype) for a in (scale, b - mean * scale)]
            return [mean, inverse, *found]

        def slopes(sums: Array, by_z: Array, kept: list[Array]) -> list[Array]:
            """The gradient by g; the factor of z in that by z, and what is added."""
            mean, inverse, scale, _ = kept
            dg = inverse * (by_z - mean * sums)
            by = scale[:, 0] * inverse * dg / count
            found = by, mean * by - scale[:, 0] * sums / count
            return [dg, *(a[:, None].astype(self.dtype) for a in found)]

        def run() -> Sequence[Any]:
            s, q = np.zeros((2, m))
            for i in range(n):
                np.matmul(w1, x[i], z1[i])
                s += z1[i] @ ones
                q += np.vecdot(z1[i], z1[i])
            kept1 = statistics(s, q, g1, b1)
            s, q = np.zeros((2, m))
            for i in range(n):
                np.multiply(z1[i], kept1[2], y1[i])
                np.maximum(np.add(y1[i], kept1[3], y1[i]), 0, out=y1[i])
                np.matmul(w2, y1[i], z2[i])
                s += z2[i] @ ones
                q += np.vecdot(z2[i], z2[i])
            kept2 = statistics(s, q, g2, b2)
            positive, by_z = np.empty((2, n, m), self.dtype)
            for i in range(n):
                np.add(np.multiply(z2[i], kept2[2], h), kept2[3], h)
                np.copyto(f, np.greater(h, 0, mask))
                np.matmul(f, ones, positive[i])
                np.vecdot(f, z2[i], out=by_z[i])
                np.matmul(np.maximum(h, 0, out=h), ones, pooled[i])
            np.divide(pooled, size, pooled)
            z = pooled @ w3 + b3
            z -= z.max(1, keepdims=True)
            e = np.exp(z)
            column = e.sum(1, keepdims=True)
            loss = (np.log(column).sum() - np.vdot(y, z)) / n
            g = (e / column - y) / n
            top = g @ w3.T / size
            db2 = (top * positive).sum(0)
            dg2, by2, more2 = slopes(db2, (top * by_z).sum(0), kept2)
            s, q = np.zeros((2, m))
            d1.fill(0), d2.fill(0)
            for i in range(n):
                np.add(np.multiply(z2[i], kept2[2], h), kept2[3], h)
                np.multiply(np.greater(h, 0, mask), top[i][:, None] * kept2[2], f)
                np.subtract(f, np.multiply(z2[i], by2, h), f)
                np.add(f, more2, f)
                np.add(d2, np.matmul(f, y1[i].T, part2), d2)
                np.matmul(w2.T, f, flow)
                dy = np.multiply(flow, np.greater(y1[i], 0, mask), z2[i])
                s += dy @ ones
                q += np.vecdot(dy, z1[i])
            dg1, by1, more1 = slopes(s, q, kept1)
            for i in range(n):
                np.multiply(z2[i], kept1[2], f)
                np.subtract(f, np.multiply(z1[i], by1, h), f)
                np.add(f, more1, f)
                np.add(d1, np.matmul(f, x[i].T, part1), d1)
            gradients = [d1, dg1, s, d2, dg2, db2, pooled.T @ g, g.sum(0)]
            for w, d in zip(state, gradients, strict=True):
                np.subtract(w, self.rate * d, w, casting="same_kind")
            return [loss]

        return run
