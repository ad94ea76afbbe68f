"""Points in space: all their distances, and how those pull at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.workload import Array, Run, Workload


class Distances(Workload):
    """The stress, sum((|x[i] - y[j]| - d[i, j]) ** 2), by points x and y in space.

    Kruskal, Multidimensional scaling by optimizing goodness of fit (1964).
    """

    name, title = "distances", "pairwise distances, 2000×2000 in 3-D"
    wanted, memory_bound, rtol = (0, 1), True, 1e-3

    def inputs(self) -> list[Array]:
        n = self.size(2000)
        x, y = self.normal(n, 3), self.normal(n, 3)
        return [x, y, np.abs(self.normal(n, n)) + np.float32(0.5)]

    def loss(self, xp: Any, x: Any, y: Any, d: Any) -> Any:
        apart = x[:, None, :] - y[None, :, :]
        r = xp.sqrt(xp.sum(apart * apart, axis=-1) + 1e-6)
        return xp.sum((r - d) ** 2)

    def torch_loss(self, xp: Any, x: Any, y: Any, d: Any) -> Any:
        mode = "donot_use_mm_for_euclid_dist"
        return xp.sum((xp.cdist(x, y, compute_mode=mode) - d) ** 2)

    def torch_compile(self, *inputs: Any) -> Run:
        return peers.torch_compiled(self.loss, inputs, self.wanted)

    def naive(self, x: Array, y: Array, d: Array) -> Run:
        def run() -> Sequence[Any]:
            apart = x[:, None] - y
            r = np.sqrt((apart * apart).sum(-1) + 1e-6)
            e = r - d
            pull = (2 * e / r)[:, :, None] * apart
            return [(e * e).sum(), pull.sum(1), -pull.sum(0)]

        return run

    def tuned(self, x: Array, y: Array, d: Array) -> Run:
        """In blocks of rows; the gradients are products of what pulls and the points."""
        n, m = 16, len(y)
        r, t = np.empty((2, n, m), self.dtype)
        columns = [np.ascontiguousarray(c) for c in y.T]
        ones = np.ones(m, self.dtype)
        points = np.column_stack([y, ones])

        def run() -> Sequence[Any]:
            dx, back, loss = np.empty_like(x), np.zeros((m, 4), self.dtype), 0.0
            for i in range(0, len(x), n):
                xs = x[i : i + n]
                own = np.column_stack([xs, ones[: len(xs)]])
                rs, ts = r[: len(xs)], t[: len(xs)]
                for k, column in enumerate(columns):
                    to = rs if k == 0 else ts
                    np.subtract(xs[:, k : k + 1], column, to)
                    np.multiply(to, to, to)
                    if k:
                        np.add(rs, ts, rs)
                np.add(rs, 1e-6, rs)
                np.sqrt(rs, rs)
                np.subtract(rs, d[i : i + n], ts)
                loss += float(np.vdot(ts, ts))
                np.divide(ts, rs, ts)
                np.multiply(ts, 2, ts)
                found = ts @ points
                np.subtract(found[:, 3:] * xs, found[:, :3], dx[i : i + n])
                back += ts.T @ own
            return [loss, dx, back[:, 3:] * y - back[:, :3]]

        return run

    def numba(self, x: Array, y: Array, d: Array) -> Run:
        from numba import get_num_threads, njit, prange

        def kernel(x: Any, y: Any, d: Any, dx: Any, parts: Any) -> Any:
            total, workers = 0.0, len(parts)
            for w in prange(workers):
                part = parts[w]
                for i in range(w * len(x) // workers, (w + 1) * len(x) // workers):
                    a, b, c = x[i]
                    s = p = q = a * 0
                    for j in range(len(y)):
                        u, v, z = a - y[j, 0], b - y[j, 1], c - y[j, 2]
                        r = np.sqrt(u * u + v * v + z * z + np.float32(1e-6))
                        e = r - d[i, j]
                        total += e * e
                        g = 2 * e / r
                        u, v, z = g * u, g * v, g * z
                        s, p, q = s + u, p + v, q + z
                        part[j, 0] -= u
                        part[j, 1] -= v
                        part[j, 2] -= z
                    dx[i, 0], dx[i, 1], dx[i, 2] = s, p, q
            return total

        compiled = njit(parallel=True, fastmath=True)(kernel)

        def run() -> Sequence[Any]:
            dx, parts = np.empty_like(x), np.zeros((get_num_threads(), *y.shape), self.dtype)
            loss = compiled(x, y, d, dx, parts)
            return [loss, dx, parts.sum(0)]

        return run
