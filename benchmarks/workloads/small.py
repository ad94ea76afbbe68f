"""Where the overhead of a call shows, and where that of a compiler does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.workload import Array, Run, Workload


class First(Workload):
    """A program that each contestant makes before it is measured, so that its imports are done."""

    name, title = "first", "a first small program"
    wanted = (0,)

    def inputs(self) -> list[Array]:
        return [self.normal(4, 4)]

    def loss(self, xp: Any, x: Any) -> Any:
        return xp.sum(xp.tanh(x @ x))


class Rosenbrock(Workload):
    """Rosenbrock's function of 10 variables and its gradient."""

    name, title = "rosenbrock", "Rosenbrock, 10 variables"
    wanted, dtype = (0,), "float64"

    def inputs(self) -> list[Array]:
        return [self.normal(10)]

    def loss(self, xp: Any, x: Any) -> Any:
        return xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def naive(self, x: Array) -> Run:
        def run() -> Sequence[Any]:
            d, e = x[1:] - x[:-1] ** 2, 1 - x[:-1]
            g = np.zeros_like(x)
            g[1:] += 200 * d
            g[:-1] += -400 * d * x[:-1] - 2 * e
            return [(100 * d**2 + e**2).sum(), g]

        return run

    def tuned(self, x: Array) -> Run:
        d, e, low, high = np.empty(9), np.empty(9), x[:-1], x[1:]

        def run() -> Sequence[Any]:
            g = np.empty(10)
            np.multiply(low, low, d)
            np.subtract(high, d, d)
            np.subtract(low, 1, e)
            value = 100 * np.vdot(d, d) + np.vdot(e, e)
            np.multiply(d, 200, d)
            np.multiply(e, 2, g[:-1])
            np.multiply(d, low, e)
            np.multiply(e, 2, e)
            np.subtract(g[:-1], e, g[:-1])
            g[-1] = 0
            np.add(g[1:], d, g[1:])
            return [value, g]

        return run


class Lorenz96(Workload):
    """The adjoint of an ODE's right-hand side: sum(a * f(x)) by x, which a solver calls each step.

    f(x)[i] = (x[i + 1] - x[i - 2]) x[i - 1] - x[i] + 8, round a circle of 40. Lorenz,
    Predictability: a problem partly solved (1996).
    """

    name, title = "lorenz_96", "ODE right-hand side, Lorenz 96"
    wanted, dtype = (0,), "float64"

    def inputs(self) -> list[Array]:
        return [8 + self.normal(40), self.normal(40)]

    def loss(self, xp: Any, x: Any, a: Any) -> Any:
        return xp.sum(a * ((xp.roll(x, -1) - xp.roll(x, 2)) * xp.roll(x, 1) - x + 8.0))

    def naive(self, x: Array, a: Array) -> Run:
        def run() -> Sequence[Any]:
            after, before, second = np.roll(x, -1), np.roll(x, 1), np.roll(x, 2)
            d = after - second
            t = a * before
            g = np.roll(t, 1) - np.roll(t, -2) + np.roll(a * d, -1) - a
            return [(a * (d * before - x + 8)).sum(), g]

        return run

    def tuned(self, x: Array, a: Array) -> Run:
        n = len(x)
        wide, t, d, s = np.empty(n + 3), np.empty(n + 3), np.empty(n + 1), np.empty(n)

        def run() -> Sequence[Any]:
            g = np.empty(n)
            wide[2:-1], wide[:2], wide[-1] = x, x[-2:], x[0]
            np.subtract(wide[3:], wide[:-3], d[:n])
            np.multiply(a, wide[1:-2], t[1 : n + 1])
            np.multiply(d[:n], wide[1:-2], s)
            np.subtract(s, x, s)
            np.add(s, 8, s)
            value = np.dot(a, s)
            t[0], t[n + 1 :] = t[n], t[1:3]
            np.multiply(a, d[:n], d[:n])
            d[n] = d[0]
            np.subtract(t[:n], t[3:], g)
            np.add(g, d[1:], g)
            np.subtract(g, a, g)
            return [value, g]

        return run

    def numba(self, x: Array, a: Array) -> Run:
        from numba import njit

        def kernel(x: Any, a: Any) -> Any:
            n, total, g = len(x), 0.0, np.empty_like(x)
            for i in range(n):
                total += a[i] * ((x[(i + 1) % n] - x[i - 2]) * x[i - 1] - x[i] + 8)
                before = a[i - 1] * x[i - 2]
                later = a[(i + 2) % n] * x[(i + 1) % n]
                g[i] = before - later + a[(i + 1) % n] * (x[(i + 2) % n] - x[i - 1]) - a[i]
            return total, g

        compiled = njit(kernel)
        return lambda: compiled(x, a)  # type: ignore[no-any-return]


class ScalarNet(Workload):
    """A net of 2, 4, 4 and 1 neurons, each number a 0-d array of its own: 100 operations and more.

    `tuned` is plain Python on floats; `naive` has the weights in matrices.
    """

    name, title = "scalar_net", "scalar net 2-4-4-1"
    dtype, sizes = "float64", (2, 4, 4, 1)
    wanted = tuple(range(3, 40))

    def inputs(self) -> list[Array]:
        return [np.array(v) for v in self.normal(40)]

    def loss(self, xp: Any, *inputs: Any) -> Any:
        h, left = list(inputs[:2]), iter(inputs[3:])
        for width in self.sizes[1:]:
            rows = [[next(left) for _ in range(len(h) + 1)] for _ in range(width)]
            h = [self.neuron(xp, row, h) for row in rows]
        return (h[0] - inputs[2]) ** 2

    def neuron(self, xp: Any, row: Sequence[Any], h: Sequence[Any]) -> Any:
        total = row[-1]
        for w, x in zip(row[:-1], h, strict=True):
            total = total + w * x
        return xp.tanh(total)

    def naive(self, *inputs: Array) -> Run:
        w = np.array(inputs[3:])
        pairs = list(pairwise(self.sizes))
        cuts = np.cumsum([(i + 1) * o for i, o in pairs])[:-1]
        layers = [p.reshape(o, i + 1) for p, (i, o) in zip(np.split(w, cuts), pairs, strict=True)]
        x, target = np.array(inputs[:2]), inputs[2]

        def run() -> Sequence[Any]:
            values = [x]
            for p in layers:
                values.append(np.tanh(p[:, :-1] @ values[-1] + p[:, -1]))
            e = values[-1] - target
            g, gradients = 2 * e, []
            for p, h, y in zip(layers[::-1], values[-2::-1], values[:0:-1], strict=True):
                g = g * (1 - y * y)
                gradients.append(np.outer(g, np.append(h, 1)).ravel())
                g = p[:, :-1].T @ g
            return [e[0] ** 2, *np.concatenate(gradients[::-1])]

        return run

    def tuned(self, *inputs: Array) -> Run:
        numbers = [float(a) for a in inputs]

        def run() -> Sequence[Any]:
            tanh, w = math.tanh, numbers[3:]
            layers, h, at = [], numbers[:2], 0
            for width in self.sizes[1:]:
                n, y = len(h), []
                for _ in range(width):
                    total = w[at + n]
                    for j in range(n):
                        total += w[at + j] * h[j]
                    y.append(tanh(total))
                    at += n + 1
                layers.append((h, y))
                h = y
            e = h[0] - numbers[2]
            out, g = [0.0] * len(w), [2 * e]
            for h, y in reversed(layers):
                n, at = len(h), at - len(y) * (len(h) + 1)
                back = [0.0] * n
                for i, v in enumerate(y):
                    gi, row = g[i] * (1 - v * v), at + i * (n + 1)
                    for j in range(n):
                        out[row + j] = gi * h[j]
                        back[j] += gi * w[row + j]
                    out[row + n] = gi
                g = back
            return [e * e, *out]

        return run


class DeepChain(Workload):
    """1,000 layers of tanh(h @ h * 0.1 + i) on 8×8: 13,000 nodes with the gradient."""

    name, title = "deep_chain", "13,000-node chain"
    wanted = (0,)

    def inputs(self) -> list[Array]:
        return [np.full((8, 8), 0.01, self.dtype) + self.normal(8, 8) / 100]

    def loss(self, xp: Any, h: Any) -> Any:
        for i in range(self.size(1000)):
            h = xp.tanh(h @ h * 0.1 + i * 1e-3)
        return xp.sum(h)

    def naive(self, x: Array) -> Run:
        layers = self.size(1000)

        def run() -> Sequence[Any]:
            values = [x]
            for i in range(layers):
                h = values[-1]
                values.append(np.tanh(h @ h * 0.1 + i * 1e-3))
            g = np.ones_like(x)
            for h, y in zip(values[-2::-1], values[:0:-1], strict=True):
                g = g * (1 - y * y) * 0.1
                g = g @ h.T + h.T @ g
            return [values[-1].sum(), g]

        return run

    def tuned(self, x: Array) -> Run:
        layers = self.size(1000)
        values = np.empty((layers + 1, 8, 8), self.dtype)
        values[0] = x
        rows, (s, t) = list(values), np.empty((2, 8, 8), self.dtype)
        tenth = np.float32(0.1)
        biases = [np.float32(i * 1e-3) for i in range(layers)]

        def run() -> Sequence[Any]:
            matmul, multiply, add = np.matmul, np.multiply, np.add
            for h, y, bias in zip(rows[:-1], rows[1:], biases, strict=True):
                matmul(h, h, y)
                multiply(y, tenth, y)
                add(y, bias, y)
                np.tanh(y, y)
            g = np.ones_like(x)
            for h, y in zip(rows[-2::-1], rows[:0:-1], strict=True):
                multiply(y, y, s)
                np.subtract(1, s, s)
                multiply(g, s, s)
                multiply(s, tenth, s)
                matmul(s, h.T, g)
                matmul(h.T, s, t)
                add(g, t, g)
            return [rows[-1].sum(), g]

        return run
