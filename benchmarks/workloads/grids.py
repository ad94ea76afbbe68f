"""Grids of numbers: a stencil in two dimensions, and images that are changed in integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.workload import Array, Run, Workload

BLOCK = 64  # rows
CENTRE = np.s_[1:-1, 1:-1]
AROUND = np.s_[:-2, 1:-1], np.s_[2:, 1:-1], np.s_[1:-1, :-2], np.s_[1:-1, 2:]


class Stencil(Workload):
    """Heat that spreads for four steps through a material of uneven conductivity.

    The squared error of what is then in the inner part, by the heat at first and the conductivity.
    """

    name, title = "stencil", "2-D stencil, 4 steps, 1024×1024"
    wanted, steps, memory_bound = (0, 1), 4, True

    def inputs(self) -> list[Array]:
        n, m = self.size(1024, 16), self.size(1024, 16)
        k = self.rng.uniform(0.05, 0.2, (n, m)).astype(self.dtype)
        return [self.normal(n, m), k, self.normal(n - 2 * self.steps, m - 2 * self.steps)]

    def loss(self, xp: Any, u: Any, k: Any, y: Any) -> Any:
        for _ in range(self.steps):
            k = k[CENTRE]
            near = sum(u[s] for s in AROUND[1:]) + u[AROUND[0]]
            u = u[CENTRE] + k * (near - 4 * u[CENTRE])
        return xp.sum((u - y) ** 2)

    def naive(self, u: Array, k: Array, y: Array) -> Run:
        def run() -> Sequence[Any]:
            v, kept = u, []
            for t in range(1, self.steps + 1):
                c = k[t:-t, t:-t]
                flow = sum(v[s] for s in AROUND) - 4 * v[CENTRE]
                kept.append((c, flow))
                v = v[CENTRE] + c * flow
            e = v - y
            dk, g = np.zeros_like(k), 2 * e
            for t, (c, flow) in zip(range(self.steps, 0, -1), reversed(kept), strict=True):
                dk[t:-t, t:-t] += g * flow
                q = c * g
                g = np.pad(g - 4 * q, 1)
                for s in AROUND:
                    g[s] += q
            return [(e * e).sum(), g, dk]

        return run

    def tuned(self, u: Array, k: Array, y: Array) -> Run:
        """In blocks of rows, with buffers."""
        shapes = [(u.shape[0] - 2 * t, u.shape[1] - 2 * t) for t in range(self.steps + 1)]
        values = [u, *(np.empty(s, self.dtype) for s in shapes[1:])]
        flows = [np.empty(s, self.dtype) for s in shapes[1:]]
        flat, e = np.empty(u.size, self.dtype), np.empty(shapes[-1], self.dtype)
        spare = [np.empty(s, self.dtype) for s in shapes[1:]]

        def block(a: Array, i: int) -> Array:
            return a[i : i + BLOCK]

        def run() -> Sequence[Any]:
            for t in range(1, self.steps + 1):
                v, new, flow, c = values[t - 1], values[t], flows[t - 1], k[t:-t, t:-t]
                for i in range(0, len(new), BLOCK):
                    f, o = block(flow, i), block(new, i)
                    up, down, left, right = (block(v[s], i) for s in AROUND)
                    np.add(up, down, f), np.add(f, left, f), np.add(f, right, f)
                    np.multiply(block(v[CENTRE], i), 4, o)
                    np.subtract(f, o, f)
                    np.multiply(block(c, i), f, o)
                    np.add(o, block(v[CENTRE], i), o)
            np.subtract(values[-1], y, e)
            loss = np.vdot(e, e)
            dk, du = np.zeros_like(k), np.empty_like(u)
            g = np.multiply(e, 2, e)
            for t in range(self.steps, 0, -1):
                out = du if t == 1 else spare[t - 2]
                out.fill(0)
                c, d = k[t:-t, t:-t], dk[t:-t, t:-t]
                for i in range(0, len(g), BLOCK):
                    gi = block(g, i)
                    q = flat[: gi.size].reshape(gi.shape)
                    np.multiply(gi, block(flows[t - 1], i), q)
                    np.add(block(d, i), q, block(d, i))
                    np.multiply(block(c, i), gi, q)
                    for s in AROUND:
                        part = out[s][i : i + len(gi)]
                        np.add(part, q, part)
                    np.multiply(q, 4, q)
                    np.subtract(gi, q, q)
                    part = out[CENTRE][i : i + len(gi)]
                    np.add(part, q, part)
                g = out
            return [loss, du, dk]

        return run

    def numba(self, u: Array, k: Array, y: Array) -> Run:
        from numba import njit, prange

        def forward(v: Any, k: Any, t: Any, flow: Any, new: Any) -> None:
            for i in prange(new.shape[0]):
                for j in range(new.shape[1]):
                    f = v[i, j + 1] + v[i + 2, j + 1] + v[i + 1, j] + v[i + 1, j + 2]
                    f -= 4 * v[i + 1, j + 1]
                    flow[i, j] = f
                    new[i, j] = v[i + 1, j + 1] + k[i + t, j + t] * f

        def back(g: Any, flow: Any, k: Any, t: Any, q: Any, dk: Any, out: Any) -> None:
            # `q` has two more rows and columns of zeros on each side, so that all can be read.
            n, m = g.shape
            for i in prange(n):
                for j in range(m):
                    dk[i + t, j + t] += g[i, j] * flow[i, j]
                    q[i + 2, j + 2] = k[i + t, j + t] * g[i, j]
            for i in prange(n + 2):
                for j in range(m + 2):
                    near = q[i, j + 1] + q[i + 2, j + 1] + q[i + 1, j] + q[i + 1, j + 2]
                    inner = 0 < i <= n and 0 < j <= m
                    own = g[i - 1, j - 1] if inner else g[0, 0] * 0
                    out[i, j] = near - 4 * q[i + 1, j + 1] + own

        f, b = (njit(parallel=True, fastmath=True)(x) for x in (forward, back))
        shapes = [(u.shape[0] - 2 * t, u.shape[1] - 2 * t) for t in range(self.steps + 1)]
        values = [u, *(np.empty(s, self.dtype) for s in shapes[1:])]
        flows = [np.empty(s, self.dtype) for s in shapes[1:]]
        flow_of = [np.zeros((s[0] + 4, s[1] + 4), self.dtype) for s in shapes[1:]]

        def run() -> Sequence[Any]:
            for t in range(self.steps):
                f(values[t], k, t + 1, flows[t], values[t + 1])
            e = values[-1] - y
            loss, g, dk = np.vdot(e, e), 2 * e, np.zeros_like(k)
            for t in range(self.steps, 0, -1):
                out = np.empty(shapes[t - 1], self.dtype)
                b(g, flows[t - 1], k, t, flow_of[t - 1], dk, out)
                g = out
            return [loss, g, dk]

        return run


class Augmentation(Workload):
    """Photographs made brighter or darker, some of them mirrored, then mixed with others.

    In whole numbers, as a loader of images does it, and without a gradient.
    """

    name, title = "augmentation", "augmentation, 64×224×224×3 uint8"
    dtype, wanted, memory_bound, rtol = "uint8", (), True, 1e-12

    def inputs(self) -> list[Array]:
        n, h = self.size(64), self.size(224)
        x, other = self.rng.integers(0, 256, (2, n, h, h, 3), "uint8")
        gain = self.rng.integers(96, 160, (n, 1, 1, 3), "int32")
        bias = self.rng.integers(-32, 32, (n, 1, 1, 3), "int32")
        share = self.rng.integers(0, 128, (n, 1, 1, 1), "int32")
        return [x, other, self.rng.integers(0, 2, (n, 1, 1, 1)) > 0, gain, bias, share]

    def loss(
        self, xp: Any, x: Any, other: Any, mirrored: Any, gain: Any, bias: Any, share: Any
    ) -> Any:
        z = xp.where(mirrored, xp.flip(x, axis=2), x)
        z = xp.clip(xp.astype(z, xp.int32) * gain // 128 + bias, 0, 255)
        mixed = (z * (128 - share) + xp.astype(other, xp.int32) * share) // 128
        return xp.astype(mixed, xp.uint8)

    def naive(self, *inputs: Array) -> Run:
        return lambda: [self.loss(np, *inputs)]

    def tuned(
        self, x: Array, other: Array, mirrored: Array, gain: Array, bias: Array, share: Array
    ) -> Run:
        """Image by image in 16 bits, with shifts in place of divisions."""
        shape = x.shape[1:]
        z, more = np.empty((2, *shape), "int16")
        factor, rest = gain.astype("uint16"), (128 - share).astype("int16")
        part, plus = share.astype("int16"), bias.astype("int16")

        def run() -> Sequence[Any]:
            made = np.empty_like(x)
            for i in range(len(x)):
                wide = z.view("uint16")
                np.multiply(x[i][:, ::-1] if mirrored[i] else x[i], factor[i], wide)
                np.right_shift(wide, 7, wide)
                np.add(z, plus[i], z)
                np.clip(z, 0, 255, z)
                np.multiply(z, rest[i], z)
                np.multiply(other[i], part[i], more)
                np.add(z, more, z)
                np.right_shift(z, 7, z)
                np.copyto(made[i], z, casting="unsafe")
            return [made]

        return run

    def numba(
        self, x: Array, other: Array, mirrored: Array, gain: Array, bias: Array, share: Array
    ) -> Run:
        from numba import njit, prange

        def kernel(
            x: Any, other: Any, mirrored: Any, gain: Any, bias: Any, share: Any, made: Any
        ) -> None:
            n, h, w, c = x.shape
            for r in prange(n * h):
                i, j = r // h, r % h
                part = share[i, 0, 0, 0]
                for k in range(w):
                    of = w - 1 - k if mirrored[i, 0, 0, 0] else k
                    for m in range(c):
                        z = (np.int32(x[i, j, of, m]) * gain[i, 0, 0, m] >> 7) + bias[i, 0, 0, m]
                        z = min(max(z, 0), 255)
                        z = z * (128 - part) + np.int32(other[i, j, k, m]) * part >> 7
                        made[i, j, k, m] = z

        compiled = njit(parallel=True, fastmath=True)(kernel)

        def run() -> Sequence[Any]:
            made = np.empty_like(x)
            compiled(x, other, mirrored, gain, bias, share, made)
            return [made]

        return run
