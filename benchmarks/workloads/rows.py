"""Row-wise functions: layer norm with gelu, softmax cross-entropy, attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.workload import Array, Run, Workload

STEEP, CUBIC = 0.7978845608028654, 0.044715


class LayerNormGelu(Workload):
    """sum(gelu(layer_norm(x) * g + b) * c), by x, g and b; gelu in the tanh form."""

    name, title = "layer_norm_gelu", "layer norm + gelu, 4096×1024"
    wanted, memory_bound = (0, 1, 2), True

    def inputs(self) -> list[Array]:
        n, m = self.size(4096), self.size(1024)
        return [self.normal(n, m), self.normal(m), self.normal(m), self.normal(n, m)]

    def loss(self, xp: Any, x: Any, g: Any, b: Any, c: Any) -> Any:
        d = x - xp.mean(x, axis=-1, keepdims=True)
        variance = xp.mean(d * d, axis=-1, keepdims=True)
        return xp.sum(xp.gelu(d / xp.sqrt(variance + 1e-5) * g + b) * c)

    def torch_loss(self, xp: Any, x: Any, g: Any, b: Any, c: Any) -> Any:
        return xp.sum(xp.gelu(xp.nn.functional.layer_norm(x, g.shape, g, b, 1e-5)) * c)

    def naive(self, x: Array, g: Array, b: Array, c: Array) -> Run:
        def run() -> Sequence[Any]:
            d = x - x.mean(1, keepdims=True)
            inverse = 1 / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5)
            h = d * inverse
            z = h * g + b
            t = np.tanh(STEEP * (z + CUBIC * (z * z * z)))
            loss = (0.5 * z * (1 + t) * c).sum()
            slope = 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * STEEP * (1 + 3 * CUBIC * z * z)
            dz = c * slope
            dh = dz * g
            means = dh.mean(1, keepdims=True), (dh * h).mean(1, keepdims=True)
            dx = inverse * (dh - means[0] - h * means[1])
            return [loss, dx, (dz * h).sum(0), dz.sum(0)]

        return run

    def tuned(self, x: Array, g: Array, b: Array, c: Array) -> Run:
        n, m = 16, x.shape[1]
        buffers = np.empty((4, n, m), self.dtype)
        columns = np.empty((3, n, 1), self.dtype)
        ones, wide = np.ones(n, self.dtype), np.empty((3, n, m), self.dtype)

        def run() -> Sequence[Any]:
            dx, dg, db, loss = np.empty_like(x), np.zeros_like(g), np.zeros_like(b), 0.0
            for i in range(0, len(x), n):
                xs, cs, out = x[i : i + n], c[i : i + n], dx[i : i + n]
                if x.dtype != self.dtype:
                    np.copyto(wide[0, : len(xs)], xs), np.copyto(wide[1, : len(xs)], cs)
                    xs, cs, out = wide[:, : len(xs)]
                h, z, t, q = buffers[:, : len(xs)]
                inverse, one, two = columns[:, : len(xs)]
                np.add.reduce(xs, 1, out=one, keepdims=True)
                np.divide(one, m, one)
                np.subtract(xs, one, h)
                np.vecdot(h, h, out=inverse[:, 0])
                np.divide(inverse, m, inverse)
                np.add(inverse, 1e-5, inverse)
                np.sqrt(inverse, inverse)
                np.reciprocal(inverse, inverse)
                np.multiply(h, inverse, h)
                np.multiply(h, g, z)
                np.add(z, b, z)
                np.multiply(z, z, q)
                np.multiply(q, STEEP * CUBIC, t)
                np.add(t, STEEP, t)
                np.multiply(t, z, t)
                np.tanh(t, t)
                # slope = 0.5 * (1 + t) * (1 + z * (1 - t) * STEEP * (1 + 3 * CUBIC * z * z))
                np.multiply(q, 3 * CUBIC * STEEP, q)
                np.add(q, STEEP, q)
                np.multiply(q, z, q)
                np.subtract(1, t, out)
                np.multiply(q, out, q)
                np.add(q, 1, q)
                np.add(t, 1, t)
                np.multiply(t, 0.5, t)
                np.multiply(t, cs, t)
                loss += float(np.vdot(z, t))
                np.multiply(t, q, t)
                np.matmul(ones[: len(xs)], t, q[0])
                np.add(db, q[0], db)
                np.multiply(t, h, q)
                np.matmul(ones[: len(xs)], q, z[0])
                np.add(dg, z[0], dg)
                np.matmul(q, g, two[:, 0])
                np.multiply(t, g, t)
                np.add.reduce(t, 1, out=one, keepdims=True)
                np.divide(one, m, one)
                np.divide(two, m, two)
                np.multiply(h, two, h)
                np.subtract(t, h, t)
                np.subtract(t, one, t)
                np.multiply(t, inverse, out)
                if x.dtype != self.dtype:
                    np.copyto(dx[i : i + n], out, casting="same_kind")
            return [loss, dx, dg, db]

        return run


class HalfLayerNorm(LayerNormGelu):
    """The same with what is large in float16, and computed in float32: mixed precision."""

    name, title, rtol = "half_layer_norm", "layer norm + gelu, float16, 4096×1024", 2e-3

    def inputs(self) -> list[Array]:
        x, g, b, c = super().inputs()
        return [x.astype("float16"), g, b, c.astype("float16")]

    def loss(self, xp: Any, x: Any, g: Any, b: Any, c: Any) -> Any:
        x = xp.astype(x, xp.float32)
        d = x - xp.mean(x, axis=-1, keepdims=True)
        variance = xp.mean(d * d, axis=-1, keepdims=True)
        y = xp.astype(xp.gelu(d / xp.sqrt(variance + 1e-5) * g + b), xp.float16)
        return xp.sum(xp.astype(y, xp.float32) * xp.astype(c, xp.float32))

    def torch_loss(self, xp: Any, x: Any, g: Any, b: Any, c: Any) -> Any:
        h = xp.nn.functional.layer_norm(x.float(), g.shape, g, b, 1e-5)
        return xp.sum(xp.gelu(h).half().float() * c.float())

    def naive(self, x: Array, g: Array, b: Array, c: Array) -> Run:
        own = super().naive(x.astype("float32"), g, b, c.astype("float32"))

        def run() -> Sequence[Any]:
            loss, dx, dg, db = own()
            return [loss, dx.astype("float16"), dg, db]

        return run


class SoftmaxCrossEntropy(Workload):
    """-mean over rows of sum(y * log_softmax(x)), by x; y is one-hot."""

    name, title = "softmax_cross_entropy", "softmax cross-entropy, 4096×1024"
    wanted, memory_bound = (0,), True

    def inputs(self) -> list[Array]:
        n, m = self.size(4096), self.size(1024)
        return [self.normal(n, m), np.eye(m, dtype=self.dtype)[self.rng.integers(m, size=n)]]

    def loss(self, xp: Any, x: Any, y: Any) -> Any:
        return -xp.sum(y * xp.log_softmax(x, axis=-1)) / x.shape[0]

    def torch_loss(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.nn.functional.cross_entropy(x, y)

    def naive(self, x: Array, y: Array) -> Run:
        def run() -> Sequence[Any]:
            z = x - x.max(1, keepdims=True)
            log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
            loss = -(y * log_p).sum() / len(x)
            return [loss, (np.exp(log_p) * y.sum(1, keepdims=True) - y) / len(x)]

        return run

    def tuned(self, x: Array, y: Array) -> Run:
        n = 32
        z, column = np.empty((n, x.shape[1]), self.dtype), np.empty((2, n, 1), self.dtype)
        ones = np.ones(x.shape[1], self.dtype)

        def run() -> Sequence[Any]:
            dx, loss = np.empty_like(x), 0.0
            for i in range(0, len(x), n):
                xs, ys, out = x[i : i + n], y[i : i + n], dx[i : i + n]
                e, c, weight = z[: len(xs)], column[0, : len(xs)], column[1, : len(xs)]
                np.maximum.reduce(xs, 1, out=c, keepdims=True)
                np.subtract(xs, c, e)
                loss -= float(np.vdot(ys, e))
                np.exp(e, e)
                np.matmul(e, ones, c[:, 0])
                np.divide(1 / len(x), c, weight)
                np.log(c, c)
                loss += float(c.sum())  # each row of y is a distribution
                np.multiply(e, weight, out)
                np.multiply(ys, 1 / len(x), e)
                np.subtract(out, e, out)
            return [loss / len(x), dx]

        return run


class Attention(Workload):
    """sum(softmax(q @ k.T / 8) @ v * c) for 8 heads of 64 at length 512, by q, k and v."""

    name, title = "attention", "attention, 8 heads of 64, length 512"
    wanted = (0, 1, 2)

    def inputs(self) -> list[Array]:
        shape = self.size(8), self.size(512), self.size(64)
        return [self.normal(*shape) for _ in range(4)]

    def loss(self, xp: Any, q: Any, k: Any, v: Any, c: Any) -> Any:
        scores = q @ xp.matrix_transpose(k) / q.shape[-1] ** 0.5
        return xp.sum(xp.softmax(scores, axis=-1) @ v * c)

    def torch_loss(self, xp: Any, q: Any, k: Any, v: Any, c: Any) -> Any:
        return xp.sum(xp.nn.functional.scaled_dot_product_attention(q, k, v) * c)

    def naive(self, q: Array, k: Array, v: Array, c: Array) -> Run:
        root = q.shape[-1] ** 0.5

        def run() -> Sequence[Any]:
            s = q @ k.mT / root
            e = np.exp(s - s.max(-1, keepdims=True))
            p = e / e.sum(-1, keepdims=True)
            dp = c @ v.mT
            ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / root
            return [(p @ v * c).sum(), ds @ k, ds.mT @ q, p.mT @ c]

        return run

    def tuned(self, q: Array, k: Array, v: Array, c: Array) -> Run:
        heads, n, m = q.shape
        p, dp = np.empty((2, n, n), self.dtype)
        o, column = np.empty((n, m), self.dtype), np.empty((n, 1), self.dtype)
        ones = np.ones(n, self.dtype)
        scale = m**-0.5

        def run() -> Sequence[Any]:
            dq, dk, dv, loss = np.empty_like(q), np.empty_like(k), np.empty_like(v), 0.0
            for h in range(heads):
                np.multiply(q[h], scale, o)
                np.matmul(o, k[h].T, p)
                np.maximum.reduce(p, 1, out=column, keepdims=True)
                np.subtract(p, column, p)
                np.exp(p, p)
                np.matmul(p, ones, column[:, 0])
                np.divide(p, column, p)
                np.matmul(p, v[h], o)
                np.matmul(p.T, c[h], dv[h])
                np.matmul(c[h], v[h].T, dp)
                np.vecdot(o, c[h], out=column[:, 0])  # also the row sums of dp * p
                loss += float(column.sum())
                np.subtract(dp, column, dp)
                np.multiply(dp, p, dp)
                np.multiply(dp, scale, dp)
                np.matmul(dp, k[h], dq[h])
                np.matmul(dp.T, q[h], dk[h])
            return [loss, dq, dk, dv]

        return run
