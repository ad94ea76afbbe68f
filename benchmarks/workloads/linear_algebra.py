"""Reductions and linear algebra: logistic regression, a Gaussian process, a chain of products."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.workload import Array, Run, Workload


class LogisticRegression(Workload):
    """mean(softplus(z) - y * z) with z = x @ w + b, by w and b."""

    name, title = "logistic_regression", "logistic regression, 1M×50"
    wanted, memory_bound, rtol = (2, 3), True, 1e-3

    def inputs(self) -> list[Array]:
        n, m = self.size(1_000_000), self.size(50)
        x, w = self.rng.standard_normal((n, m), np.float32), self.normal(m) / 4
        y = (x @ w + self.normal(n) > 0).astype(self.dtype)
        return [x, y, w / 2, np.array(0.1, self.dtype)]

    def loss(self, xp: Any, x: Any, y: Any, w: Any, b: Any) -> Any:
        z = x @ w + b
        return xp.sum(xp.softplus(z) - y * z) / x.shape[0]

    def torch_loss(self, xp: Any, x: Any, y: Any, w: Any, b: Any) -> Any:
        return xp.nn.functional.binary_cross_entropy_with_logits(x @ w + b, y)

    def naive(self, x: Array, y: Array, w: Array, b: Array) -> Run:
        def run() -> Sequence[Any]:
            z = x @ w + b
            loss = (np.logaddexp(z, 0) - y * z).mean()
            g = (1 / (1 + np.exp(-z)) - y) / len(x)
            return [loss, x.T @ g, g.sum()]

        return run

    def tuned(self, x: Array, y: Array, w: Array, b: Array) -> Run:
        n = 4096
        buffers, dw_part = np.empty((3, n), self.dtype), np.empty_like(w)

        def run() -> Sequence[Any]:
            dw, db, loss = np.zeros_like(w), 0.0, 0.0
            for i in range(0, len(x), n):
                xs, ys = x[i : i + n], y[i : i + n]
                z, e, g = buffers[:, : len(xs)]
                np.matmul(xs, w, z)
                np.add(z, b, z)
                loss -= float(np.vdot(ys, z))
                # log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|)), and its slope from the same exp
                np.abs(z, e)
                np.negative(e, e)
                np.exp(e, e)
                np.maximum(z, 0, out=g)
                loss += float(g.sum())
                np.greater(z, 0, g)
                np.log1p(e, z)
                loss += float(z.sum())
                np.add(e, 1, z)
                np.maximum(g, e, out=g)
                np.divide(g, z, g)
                np.subtract(g, ys, g)
                db += float(g.sum())
                np.matmul(g, xs, dw_part)
                np.add(dw, dw_part, dw)
            np.divide(dw, len(x), dw)
            return [loss / len(x), dw, db / len(x)]

        return run


class GaussianProcess(Workload):
    """The log likelihood, y @ inv(K) @ y / 2 + log(det(K)) / 2, by length, scale and noise.

    K = scale² exp(-d / (2 length²)) + noise² 1, for squared distances d. It is written as in
    Rasmussen and Williams, Gaussian Processes for Machine Learning, algorithm 2.1; by hand, with
    their gradient (5.9).
    """

    name, title = "gaussian_process", "Gaussian process, n = 500"
    wanted, dtype = (3, 4, 5), "float64"

    def inputs(self) -> list[Array]:
        n = self.size(500)
        at = self.rng.uniform(0, 10, (n, 3))
        d = ((at[:, None] - at) ** 2).sum(-1)
        y = np.sin(at.sum(1)) + 0.1 * self.normal(n)
        return [d, np.eye(n), y, *map(np.array, (1.5, 1.2, 0.3))]

    def loss(self, xp: Any, d: Any, one: Any, y: Any, length: Any, scale: Any, noise: Any) -> Any:
        k = scale**2 * xp.exp(-0.5 * d / length**2) + noise**2 * one
        factor = xp.linalg.cholesky(k)
        return 0.5 * xp.sum(y * xp.cho_solve(factor, y)) + xp.sum(xp.log(xp.diagonal(factor)))

    def naive(
        self, d: Array, one: Array, y: Array, length: Array, scale: Array, noise: Array
    ) -> Run:
        def run() -> Sequence[Any]:
            e = scale**2 * np.exp(-0.5 * d / length**2)
            k = e + noise**2 * one
            w = np.linalg.inv(k)
            a = w @ y
            g = 0.5 * (w - np.outer(a, a))
            loss = 0.5 * y @ a + 0.5 * np.linalg.slogdet(k)[1]
            by_length = (g * e * d).sum() / length**3
            return [loss, by_length, (g * e).sum() * 2 / scale, 2 * noise * np.trace(g)]

        return run

    def tuned(
        self, d: Array, one: Array, y: Array, length: Array, scale: Array, noise: Array
    ) -> Run:
        e, k = np.empty_like(d), np.empty_like(d)
        n = len(d)

        def run() -> Sequence[Any]:
            np.multiply(d, -0.5 / length**2, e)
            np.exp(e, e)
            np.multiply(e, scale**2, e)
            np.copyto(k, e)
            k.reshape(-1)[:: n + 1] += noise**2
            half = np.log(np.linalg.cholesky(k).diagonal()).sum()
            w = np.linalg.inv(k)
            a = w @ y
            by_scale = (np.vdot(w, e) - a @ (e @ a)) / scale
            np.multiply(e, d, e)
            by_length = 0.5 * (np.vdot(w, e) - a @ (e @ a)) / length**3
            by_noise = noise * (np.trace(w) - a @ a)
            return [0.5 * (y @ a) + half, by_length, by_scale, by_noise]

        return run


class Chain(Workload):
    """sum(p ** 2) / 2 of the product of ten matrices of very different shapes, by all ten."""

    name, title = "matrix_chain", "chain of 10 matrices"
    wanted = tuple(range(10))
    sizes = 500, 30, 400, 20, 600, 50, 300, 10, 500, 40, 200

    def inputs(self) -> list[Array]:
        sizes = [self.size(s) for s in self.sizes]
        return [self.normal(i, j) / np.float32(i**0.5) for i, j in pairwise(sizes)]

    def loss(self, xp: Any, *matrices: Any) -> Any:
        return 0.5 * xp.sum(xp.multi_dot(matrices) ** 2)

    def naive(self, *matrices: Array) -> Run:
        def run() -> Sequence[Any]:
            left = [matrices[0]]
            for m in matrices[1:]:
                left.append(left[-1] @ m)
            g, gradients = left[-1], []
            for i in range(9, 0, -1):
                gradients.append(left[i - 1].T @ g)
                g = g @ matrices[i].T
            return [0.5 * (left[-1] ** 2).sum(), g, *reversed(gradients)]

        return run

    def tuned(self, *matrices: Array) -> Run:
        # The cheapest order, forward and back along the same tree, into buffers.
        s = [matrices[0].shape[0], *(m.shape[1] for m in matrices)]
        best: dict[tuple[int, int], tuple[float, int]] = {(i, i): (0, i) for i in range(10)}
        for width in range(1, 10):
            for i in range(10 - width):
                j = i + width
                best[i, j] = min(
                    (best[i, k][0] + best[k + 1, j][0] + s[i] * s[k + 1] * s[j + 1], k)
                    for k in range(i, j)
                )
        steps: list[tuple[tuple[int, int], ...]] = []

        def visit(i: int, j: int) -> None:
            if i < j:
                k = best[i, j][1]
                visit(i, k)
                visit(k + 1, j)
                steps.append(((i, j), (i, k), (k + 1, j)))

        visit(0, 9)
        value = {(i, i): m for i, m in enumerate(matrices)}
        value |= {p: np.empty((s[p[0]], s[p[1] + 1]), self.dtype) for p, _, _ in steps}
        slope = {p: np.empty_like(v) for p, v in value.items()}
        slope[0, 9] = value[0, 9]

        def run() -> Sequence[Any]:
            for p, a, b in steps:
                np.matmul(value[a], value[b], value[p])
            for i in range(10):
                slope[i, i] = np.empty_like(matrices[i])
            for p, a, b in reversed(steps):
                np.matmul(slope[p], value[b].T, slope[a])
                np.matmul(value[a].T, slope[p], slope[b])
            loss = 0.5 * np.vdot(value[0, 9], value[0, 9])
            return [loss, *(slope[i, i] for i in range(10))]

        return run
