"""Black-Scholes: the price of 1M calls and five greeks, gamma being a second derivative."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.workload import Array, Run, Workload

Cdf = Callable[[Any], Any]
ROOT = 0.3989422804014327  # 1 / sqrt(2 pi)
ROOT_HALF = 0.7071067811865476


class BlackScholes(Workload):
    """Everybody takes the normal cdf that comes with it, or makes it of erf; NumPy takes SciPy's.

    NumPy and Numba have the closed forms of the greeks; the others differentiate.
    """

    name, title = "black_scholes_f32", "Black–Scholes and 5 greeks, 1M float32"
    memory_bound = True

    def inputs(self) -> list[Array]:
        ranges = (80.0, 120.0), (80.0, 120.0), (0.25, 2.0), (0.01, 0.05), (0.1, 0.4)
        n = self.size(1_000_000)
        return [self.rng.uniform(a, b, n).astype(self.dtype) for a, b in ranges]

    def price(self, xp: Any, cdf: Cdf, s: Any, k: Any, t: Any, r: Any, v: Any) -> Any:
        deviation = v * xp.sqrt(t)
        d1 = (xp.log(s / k) + (r + 0.5 * v * v) * t) / deviation
        d2 = d1 - deviation
        return s * cdf(d1) - k * xp.exp(-r * t) * cdf(d2)

    def graph(self, xp: Any, cdf: Cdf, grad: Callable[..., Any], inputs: Any) -> list[Any]:
        """Price, delta, gamma, theta, rho, vega where gradients are made of a result."""
        s, _, t, r, v = inputs
        price = self.price(xp, cdf, *inputs)
        ds, dt, dr, dv = grad(xp.sum(price), [s, t, r, v])
        (gamma,) = grad(xp.sum(ds), [s])
        return [price, ds, gamma, -dt, dr, dv]

    def function(self, xp: Any, cdf: Cdf, grad: Callable[..., Any], inputs: Any) -> list[Any]:
        """The same where gradients are made of a function."""

        def total(*xs: Any) -> Any:
            return xp.sum(self.price(xp, cdf, *xs))

        def delta(*xs: Any) -> Any:
            return xp.sum(grad(total, 0)(*xs))

        ds, dt, dr, dv = grad(total, (0, 2, 3, 4))(*inputs)
        return [self.price(xp, cdf, *inputs), ds, grad(delta, 0)(*inputs), -dt, dr, dv]

    def symgrad(self, *arrays: Any, backend: Any = "numpy") -> Run:
        import symgrad as sg

        inputs = [sg.placeholder(n, a.shape, a.dtype) for n, a in zip("sktrv", arrays, strict=True)]
        outputs = self.graph(sg, sg.special.ndtr, sg.grad, inputs)
        return peers.calls(sg.compile(inputs, outputs, backend=backend), arrays)

    def pytensor(self, *arrays: Any, linker: str = "auto") -> Run:
        import pytensor
        import pytensor.tensor as pt

        from benchmarks.peers import pytensor_mode

        mode = pytensor_mode(linker, self.dtype)
        inputs = [pt.tensor(dtype=a.dtype, shape=a.shape) for a in arrays]

        def cdf(x: Any) -> Any:
            return 0.5 * pt.erfc(-ROOT_HALF * x)

        outputs = self.graph(pt, cdf, pytensor.grad, inputs)
        program = pytensor.function(inputs, outputs, mode=mode, trust_input=True)
        return lambda: program(*arrays)

    def jax(self, *arrays: Any) -> Run:
        import jax

        jax.config.update("jax_enable_x64", True)
        cdf = jax.scipy.special.ndtr
        program = jax.jit(lambda xs: self.function(jax.numpy, cdf, jax.grad, xs))
        inputs = [jax.numpy.asarray(a) for a in arrays]
        return lambda: jax.block_until_ready(program(inputs))

    def torch(self, *arrays: Any, compiled: bool = False) -> Run:
        import torch

        cdf = torch.special.ndtr
        if compiled:
            program = torch.compile(lambda xs: self.function(torch, cdf, torch.func.grad, xs))
            inputs = [torch.tensor(a) for a in arrays]
            return lambda: program(inputs)
        inputs = [torch.tensor(a, requires_grad=True) for a in arrays]

        def grad(y: Any, xs: list[Any]) -> Any:
            return torch.autograd.grad(y, xs, create_graph=True)

        return lambda: [y.detach() for y in self.graph(torch, cdf, grad, inputs)]

    def autograd(self, *arrays: Any) -> Run:
        import autograd.numpy as anp
        from autograd import grad
        from autograd.scipy.stats import norm

        return lambda: self.function(anp, norm.cdf, grad, arrays)

    def numba(self, *arrays: Array) -> Run:
        from numba import njit, prange

        one, half, c, d = map(np.dtype(self.dtype).type, (1, 0.5, ROOT_HALF, ROOT))

        def kernel(s: Any, k: Any, t: Any, r: Any, v: Any, out: Any) -> None:
            for i in prange(len(s)):
                root = math.sqrt(t[i])
                deviation = v[i] * root
                d1 = (math.log(s[i] / k[i]) + (r[i] + half * v[i] * v[i]) * t[i]) / deviation
                n1 = half * (one + math.erf(c * d1))
                n2 = half * (one + math.erf(c * (d1 - deviation)))
                discounted = k[i] * math.exp(-r[i] * t[i]) * n2
                density = s[i] * d * math.exp(-half * d1 * d1)
                out[0, i], out[1, i] = s[i] * n1 - discounted, n1
                out[2, i] = density / (s[i] * s[i] * deviation)
                out[3, i] = -half * density * v[i] / root - r[i] * discounted
                out[4, i], out[5, i] = discounted * t[i], density * root

        compiled = njit(parallel=True, fastmath=True)(kernel)

        def run() -> Sequence[Any]:
            out = np.empty((6, len(arrays[0])), self.dtype)
            compiled(*arrays, out)
            return list(out)

        return run

    def naive(self, s: Array, k: Array, t: Array, r: Array, v: Array) -> Run:
        from scipy.special import ndtr

        def run() -> Sequence[Any]:
            deviation = v * np.sqrt(t)
            d1 = (np.log(s / k) + (r + 0.5 * v * v) * t) / deviation
            d2 = d1 - deviation
            discounted = k * np.exp(-r * t)
            n1, n2 = ndtr(d1), ndtr(d2)
            density = ROOT * np.exp(-0.5 * d1 * d1)
            gamma = density / (s * deviation)
            theta = -s * density * v / (2 * np.sqrt(t)) - r * discounted * n2
            price = s * n1 - discounted * n2
            return [price, n1, gamma, theta, discounted * t * n2, s * density * np.sqrt(t)]

        return run

    def tuned(self, *arrays: Array) -> Run:
        from scipy.special import ndtr

        n = 8192
        buffers = np.empty((7, n), self.dtype)

        def density(x: Array, out: Array) -> None:
            np.multiply(x, x, out)
            np.multiply(out, -0.5, out)
            np.exp(out, out)
            np.multiply(out, ROOT, out)

        def run() -> Sequence[Any]:
            out = [np.empty_like(arrays[0]) for _ in range(6)]
            for i in range(0, len(arrays[0]), n):
                s, k, t, r, v = (a[i : i + n] for a in arrays)
                price, delta, gamma, theta, rho, vega = (a[i : i + n] for a in out)
                root, deviation, d, f, n2, x, y = buffers[:, : len(s)]
                np.sqrt(t, root)
                np.multiply(v, root, deviation)
                np.divide(s, k, d)
                np.log(d, d)
                np.multiply(v, v, x)
                np.multiply(x, 0.5, x)
                np.add(x, r, x)
                np.multiply(x, t, x)
                np.add(d, x, d)
                np.divide(d, deviation, d)
                density(d, f)
                ndtr(d, out=delta)
                np.subtract(d, deviation, d)
                ndtr(d, out=n2)
                np.multiply(r, t, x)
                np.negative(x, x)
                np.exp(x, x)
                np.multiply(x, k, x)
                np.multiply(x, n2, x)
                np.multiply(s, delta, price)
                np.subtract(price, x, price)
                np.multiply(x, t, rho)
                np.multiply(s, deviation, y)
                np.divide(f, y, gamma)
                np.multiply(f, s, y)
                np.multiply(y, root, vega)
                np.multiply(y, v, y)
                np.divide(y, root, y)
                np.multiply(y, -0.5, y)
                np.multiply(x, r, x)
                np.subtract(y, x, theta)
            return out

        return run


class BlackScholes64(BlackScholes):
    name, title = "black_scholes_f64", "Black–Scholes and 5 greeks, 1M float64"
    dtype = "float64"
