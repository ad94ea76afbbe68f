"""Elementwise functions of three arrays of 4M elements: the sum and the gradients by all three."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.workload import Array, Run, Workload


class Kinked(Workload):
    """sum(relu(a * b + c) * (a > 0) - 0.5 * b): selections, and little arithmetic."""

    name, title = "kinked_f32", "relu(a*b+c)*(a>0) - 0.5*b, 4M float32"
    wanted, memory_bound = (0, 1, 2), True

    def inputs(self) -> list[Array]:
        return [self.normal(self.size(4_000_000)) for _ in range(3)]

    def loss(self, xp: Any, a: Any, b: Any, c: Any) -> Any:
        return xp.sum(xp.relu(a * b + c) * (a > 0) - 0.5 * b)

    def naive(self, a: Array, b: Array, c: Array) -> Run:
        def run() -> Sequence[Any]:
            r = a * b + c
            value = (np.maximum(r, 0) * (a > 0) - 0.5 * b).sum()
            g = ((r > 0) * (a > 0)).astype(self.dtype)
            return [value, g * b, g * a - 0.5, g]

        return run

    def tuned(self, a: Array, b: Array, c: Array) -> Run:
        # In blocks that stay in the cache; what is returned is new, as it is for everybody.
        n = 16384
        r, m, k = np.empty(n, self.dtype), np.empty(n, bool), np.empty(n, bool)

        def run() -> Sequence[Any]:
            da, db, dc, total = np.empty_like(a), np.empty_like(a), np.empty_like(a), 0.0
            for i in range(0, len(a), n):
                s = slice(i, i + n)
                x, y, g = a[s], b[s], dc[s]
                rs, ms, ks = r[: len(x)], m[: len(x)], k[: len(x)]
                np.multiply(x, y, rs)
                np.add(rs, c[s], rs)
                np.greater(rs, 0, ms)
                np.greater(x, 0, ks)
                np.logical_and(ms, ks, ms)
                np.copyto(g, ms)
                np.multiply(rs, g, rs)
                total += float(rs.sum()) - 0.5 * float(y.sum())
                np.multiply(g, y, da[s])
                np.multiply(g, x, db[s])
                np.subtract(db[s], 0.5, db[s])
            return [total, da, db, dc]

        return run

    def numexpr(self, a: Array, b: Array, c: Array) -> Run:
        import numexpr as ne

        names = {"a": a, "b": b, "c": c, "half": np.array(0.5, self.dtype)}

        def run() -> Sequence[Any]:
            g = ne.evaluate("(a * b + c > 0) & (a > 0)", names).astype(self.dtype)
            all_ = {**names, "g": g}
            value = ne.evaluate("sum(g * (a * b + c) - half * b)", all_)
            return [value, ne.evaluate("g * b", all_), ne.evaluate("g * a - half", all_), g]

        return run

    def numba(self, a: Array, b: Array, c: Array) -> Run:
        from numba import njit, prange

        def kernel(a: Any, b: Any, c: Any, da: Any, db: Any, dc: Any) -> Any:
            total, zero, one, half = 0.0, da.dtype.type(0), da.dtype.type(1), da.dtype.type(0.5)
            for i in prange(len(a)):
                r = a[i] * b[i] + c[i]
                g = one if r > 0 and a[i] > 0 else zero
                total += g * r - half * b[i]
                da[i], db[i], dc[i] = g * b[i], g * a[i] - half, g
            return total

        compiled = njit(parallel=True, fastmath=True)(kernel)

        def run() -> Sequence[Any]:
            out = [np.empty_like(a) for _ in range(3)]
            return [compiled(a, b, c, *out), *out]

        return run


class Kinked64(Kinked):
    name, title, dtype = "kinked_f64", "relu(a*b+c)*(a>0) - 0.5*b, 4M float64", "float64"


class Smooth(Kinked):
    """sum(tanh(a * b + c) * exp(-a * a)): two expensive functions."""

    name, title = "smooth_f32", "tanh(a*b+c)*exp(-a*a), 4M float32"

    def loss(self, xp: Any, a: Any, b: Any, c: Any) -> Any:
        return xp.sum(xp.tanh(a * b + c) * xp.exp(-a * a))

    def naive(self, a: Array, b: Array, c: Array) -> Run:
        def run() -> Sequence[Any]:
            t, e = np.tanh(a * b + c), np.exp(-a * a)
            y = t * e
            g = e * (1 - t * t)
            return [y.sum(), g * b - 2 * a * y, g * a, g]

        return run

    def tuned(self, a: Array, b: Array, c: Array) -> Run:
        n = 16384
        buffers = np.empty((2, n), self.dtype)

        def run() -> Sequence[Any]:
            da, db, dc, total = np.empty_like(a), np.empty_like(a), np.empty_like(a), 0.0
            for i in range(0, len(a), n):
                s = slice(i, i + n)
                x, y, g = a[s], b[s], dc[s]
                t, e = buffers[:, : len(x)]
                np.multiply(x, y, t)
                np.add(t, c[s], t)
                np.tanh(t, t)
                np.multiply(x, x, e)
                np.negative(e, e)
                np.exp(e, e)
                np.multiply(t, t, g)
                np.subtract(1, g, g)
                np.multiply(g, e, g)
                np.multiply(t, e, t)
                total += float(t.sum())
                np.multiply(t, x, t)
                np.multiply(t, 2, t)
                np.multiply(g, y, da[s])
                np.subtract(da[s], t, da[s])
                np.multiply(g, x, db[s])
            return [total, da, db, dc]

        return run

    def numexpr(self, a: Array, b: Array, c: Array) -> Run:
        import numexpr as ne

        one, two = np.array(1, self.dtype), np.array(2, self.dtype)
        names = {"a": a, "b": b, "c": c, "one": one, "two": two}

        def run() -> Sequence[Any]:
            t, e = ne.evaluate("tanh(a * b + c)", names), ne.evaluate("exp(-a * a)", names)
            all_ = {**names, "t": t, "e": e}
            g = all_["g"] = ne.evaluate("e * (one - t * t)", all_)
            da = ne.evaluate("g * b - two * a * t * e", all_)
            return [ne.evaluate("sum(t * e)", all_), da, ne.evaluate("g * a", all_), g]

        return run

    def numba(self, a: Array, b: Array, c: Array) -> Run:
        from numba import njit, prange

        def kernel(a: Any, b: Any, c: Any, da: Any, db: Any, dc: Any) -> Any:
            total, one, two = 0.0, da.dtype.type(1), da.dtype.type(2)
            for i in prange(len(a)):
                t, e = np.tanh(a[i] * b[i] + c[i]), np.exp(-a[i] * a[i])
                g = e * (one - t * t)
                total += t * e
                da[i], db[i], dc[i] = g * b[i] - two * a[i] * t * e, g * a[i], g
            return total

        compiled = njit(parallel=True, fastmath=True)(kernel)

        def run() -> Sequence[Any]:
            out = [np.empty_like(a) for _ in range(3)]
            return [compiled(a, b, c, *out), *out]

        return run


class Smooth64(Smooth):
    name, title, dtype = "smooth_f64", "tanh(a*b+c)*exp(-a*a), 4M float64", "float64"
