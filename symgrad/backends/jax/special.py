"""The table of ops, special functions. See `elementwise.py`."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from symgrad.backends.jax.elementwise import Reductions


class Special(Reductions):
    """Special functions, of which JAX's are used where they have the digits that NumPy's have."""

    def __init__(self, jax: Any) -> None:
        super().__init__(jax)
        self.scipy = jax.scipy.special

    def erf(self, x):
        return self.scipy.erf(x)

    def erfc(self, x):
        return self.scipy.erfc(x)

    def erfinv(self, x):
        return self.scipy.erfinv(x)

    def ndtr(self, x):
        return self.scipy.ndtr(x)

    def ndtri(self, x):
        return self.scipy.ndtri(x)

    def log_ndtr(self, x):
        """Far below 0 by ten terms of a series, of which JAX takes three."""
        above = self.jnp.log1p(-self.scipy.ndtr(-x))
        return self.jnp.where(x > 0, above, self.scipy.log_ndtr(x, series_order=10))

    def logit(self, x):
        return self.scipy.logit(x)

    def gammaln(self, x):
        """XLA's has few digits near its zeros; of float32 it is computed in float64."""
        return self.jnp.where(x == -np.inf, x, self.scipy.gammaln(x.astype(np.float64)))

    def gamma(self, x):
        return self.scipy.gamma(x)

    def beta(self, a, b):
        jnp, sign = self.jnp, self.scipy.gammasgn
        y, low, high = self.betaln(a, b), jnp.minimum(a, b), jnp.maximum(a, b)
        known = sign(low) * jnp.where(high == np.inf, 1, sign(high) * sign(low + high))
        poles = self._at_pole(low), self._at_pole(high)
        odd = jnp.where(poles[1], b, jnp.where(y < np.inf, high, 0)) % 2 == 1
        signs = jnp.where(poles[0] | poles[1], jnp.where(odd & poles[0], -1, 1), known)
        return jnp.where(y == -np.inf, 0, signs * jnp.exp(y))

    def _at_pole(self, x):
        """Whether the gamma function has a pole there."""
        return (x <= 0) & (x == self.jnp.floor(x))

    def betaln(self, a, b):
        """JAX's has six digits where one is above 8: there, it is by Stirling's formula.

        What cancels in the logarithms of the gamma functions of b and a + b is taken out of them.
        Two of their poles cancel, too: B(a, b) is then B(1 - a - b, b) but for its sign.
        """
        jnp, a, b = self.jnp, a.astype(np.float64), b.astype(np.float64)
        a, b = jnp.minimum(a, b), jnp.maximum(a, b)
        turned = self._at_pole(a) & (b == jnp.floor(b)) & (b > 0) & (a + b <= 0) & (a > -np.inf)
        endless = (self._at_pole(a) | self._at_pole(b)) & ~turned
        first = jnp.where(turned, 1 - a - b, a)
        a, b = jnp.minimum(first, b), jnp.maximum(first, b)
        total = a + b
        large = jnp.minimum(b, total) >= 10
        gap = self.scipy.gammaln(b) - self.scipy.gammaln(total)
        past = a - a * jnp.log(b) - (total - 0.5) * jnp.log1p(a / b)
        past = past + self._past_stirling(b) - self._past_stirling(total)
        y = self.scipy.gammaln(a) + jnp.where(large, past, gap)
        y = jnp.where(b == np.inf, jnp.where(a == b, np.nan, jnp.copysign(np.inf, -a)), y)
        return jnp.where(endless, np.inf, y)

    def _past_stirling(self, x):
        """The logarithm of gamma less Stirling's formula, for x from 10 on; DLMF 5.11.1."""
        y = 0.0
        for c in (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
            y = y / (x * x) + c
        return y / x

    def betainc(self, a, b, x):
        """Of float32 it has few digits in JAX."""
        return self.scipy.betainc(*(y.astype(np.float64) for y in (a, b, x)))

    def polygamma(self, x, order):
        """JAX's is wrong below 0, where it is reflected, DLMF 5.15.6, and NaN at its ends."""
        jnp, x, odd = self.jnp, x.astype(np.float64), order % 2
        below = (x < 0) & (order > 0)
        y = self.scipy.polygamma(order, jnp.where(below, 1 - x, x))
        if order:
            part = jnp.where(below, x - jnp.rint(x), 0.25)
            y = jnp.where(below, (-y if odd else y) - self._cotangent_slope(part, order), y)
            y = jnp.where(part == 0, np.inf if odd else np.nan, y)
            y = jnp.where(jnp.isinf(x), jnp.where(x > 0, 0.0 if odd else -0.0, np.nan), y)
        return jnp.where(x == 0, np.inf if odd else -jnp.copysign(np.inf, x), y)

    def _cotangent_slope(self, x, order):
        """The derivative of pi * cot(pi * x) of an order, a polynomial in the cotangent."""
        slope = Polynomial([0, 1])
        for _ in range(order):
            slope = -slope.deriv() * Polynomial([1, 0, 1])
        tan, rest = self.jnp.tan, 0.5 - abs(x)
        near = self.jnp.copysign(tan(pi * rest), x)
        cotangent = self.jnp.where(rest < 0.25, near, 1 / tan(pi * x))
        return pi ** (order + 1) * self.jnp.polyval(slope.coef[::-1], cotangent)

    def i0(self, x):
        return self._grown(self.scipy.i0(x), self.scipy.i0e(x), x)

    def i0e(self, x):
        return self.scipy.i0e(x)

    def i1(self, x):
        return self._grown(self.scipy.i1(x), self.scipy.i1e(x), x)

    def _grown(self, y, scaled, x):
        """y, and scaled * exp(abs(x)) where y is inf because exp(abs(x)) is."""
        half = self.jnp.exp(abs(x) / 2)
        beyond = self.jnp.isinf(y) & self.jnp.isfinite(x)
        return self.jnp.where(beyond, half * scaled * half, y)

    def i1e(self, x):
        return self.scipy.i1e(x)

    def expi(self, x):
        """At its ends, where JAX has NaN, it is -0, -inf at 0, and inf."""
        jnp = self.jnp
        ends = jnp.where(x == 0, -np.inf, jnp.where(x > 0, np.inf, -0.0))
        return jnp.where((x == 0) | jnp.isinf(x), ends, self.scipy.expi(x))
