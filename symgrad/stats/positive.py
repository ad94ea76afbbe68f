"""Laws of positive numbers: exponential, Weibull's, Pareto's, half normal."""

from __future__ import annotations

import math

import numpy as np

from symgrad import random
from symgrad.ir.dims import Shape
from symgrad.ir.node import Node
from symgrad.ops.activations import log1mexp, xlogy
from symgrad.ops.declare import NodeLike
from symgrad.ops.elementwise import exp, expm1, log, log1p, negative, square
from symgrad.ops.identity import stop_gradient
from symgrad.ops.select import minimum, where
from symgrad.ops.special.gamma import gammaln
from symgrad.ops.special.normal import erf, erfc, erfcinv, erfinv, log_ndtr
from symgrad.ops.special.quantiles import gamma_p
from symgrad.stats.declared import declared
from symgrad.stats.law import Law, log1mexpexp

EULER = np.euler_gamma
# (-1)**n * zeta(n) / n * (2**n - 2) for n from 2 on.
_RATIO = (
    1.6449340668482264,
    -2.4041138063191885,
    3.7881313179889835,
    -6.2215665308602199,
    10.51254497383931,
    -18.150286992874612,
    31.879456059284735,
    -56.780475593477988,
)


def ratio(x: Node, scale: Node) -> Node:
    """x / scale, with no slope by the scale where x is 0: beside one that is infinite it is 0."""
    return x / where(x == 0, stop_gradient(scale), scale)


class Positive(Law):
    """A law of positive numbers."""

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """From 0 on."""
        return 0, None


@declared
class Exponential(Positive):
    """The exponential law, as of waiting times, with the mean `scale`, which is 1 / rate.

    >>> round(float(sg.stats.Exponential(2.0).sf(2.0)), 12)
    0.367879441171
    """

    domains = ("positive",)
    scale: NodeLike = 1.0

    def _log_prob(self, x: Node) -> NodeLike:
        return -x / self.scale - log(self.scale)

    def _cdf(self, x: Node) -> NodeLike:
        return -expm1(-x / self.scale)

    def _sf(self, x: Node) -> NodeLike:
        return exp(-x / self.scale)

    def _log_cdf(self, x: Node) -> NodeLike:
        return where(x == 0, log(x) - log(self.scale), log1mexp(-x / self.scale))

    def _log_sf(self, x: Node) -> NodeLike:
        return negative(x / self.scale)

    def _icdf(self, p: Node) -> NodeLike:
        return -log1p(-p) * self.scale

    def _isf(self, p: Node) -> NodeLike:
        return -log(p) * self.scale

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return random.exponential(key, shape, scale=self.scale, dtype=self.dtype)

    def _mean(self) -> NodeLike:
        return self.scale

    def _variance(self) -> NodeLike:
        return square(self.scale)

    def _entropy(self) -> NodeLike:
        return 1 + log(self.scale)

    def _kl(self, other: Exponential) -> NodeLike:
        ratio = self.scale / other.scale
        return ratio - 1 - log(ratio)

    def _mode(self) -> NodeLike:
        return 0.0

    def _mean_log(self) -> NodeLike:
        return log(self.scale) - EULER

    def _mean_exp(self, t: Node) -> NodeLike:
        return 1 / (1 - self.scale * t)

    def _cross(self, p: Law) -> NodeLike:
        return negative(p.mean / self.scale + log(self.scale))


@declared
class Weibull(Positive):
    """The law of scale * e**(1 / concentration), e exponential: SciPy's `weibull_min`.

    >>> round(float(sg.stats.Weibull(2.0).sf(1.0)), 12)
    0.367879441171
    """

    domains = ("positive", "positive")
    concentration: NodeLike
    scale: NodeLike = 1.0

    def _power(self, x: Node) -> NodeLike:
        return ratio(x, self.scale) ** self.concentration

    def _log_prob(self, x: Node) -> NodeLike:
        k = self.concentration
        leading = log(k) - k * log(self.scale) + xlogy(k - 1, x)
        return leading - self._power(x)

    def _cdf(self, x: Node) -> NodeLike:
        return -expm1(-minimum(self._power(x), 1e4))

    def _sf(self, x: Node) -> NodeLike:
        return exp(-minimum(self._power(x), 1e4))

    def _log_cdf(self, x: Node) -> NodeLike:
        logs = where(x == 0, log(x) - log(self.scale), log(x / self.scale))
        return log1mexpexp(self.concentration * logs)

    def _log_sf(self, x: Node) -> NodeLike:
        return -self._power(x)

    def _stretched(self, e: Node) -> NodeLike:
        return self.scale * e ** (1 / self.concentration)

    def _icdf(self, p: Node) -> NodeLike:
        return self._stretched(-log1p(-p))

    def _isf(self, p: Node) -> NodeLike:
        return self._stretched(-log(p))

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return self._stretched(random.exponential(key, shape, dtype=self.dtype))

    def _mean(self) -> NodeLike:
        return self.scale * gamma_p(1 + 1 / self.concentration)

    def _variance(self) -> NodeLike:
        """The difference of two moments, by the logarithm of their ratio.

        As k grows that is a series in 1 / k: of the one of log(gamma(1 + x)), with zeta(n) / n.
        """
        e = 1 / self.concentration
        series: NodeLike = 0.0
        for term in reversed(_RATIO):
            series = (series + term) * e
        ratio = where(e < 0.01, series * e, gammaln(1 + 2 * e) - 2 * gammaln(1 + e))
        return square(self.scale * gamma_p(1 + e)) * expm1(ratio)

    def _entropy(self) -> NodeLike:
        k = self.concentration
        return EULER * (1 - 1 / k) + log(self.scale / k) + 1

    def _kl(self, other: Weibull) -> NodeLike:
        k, m, ratio = self.concentration, other.concentration, self.scale / other.scale
        return log(k / m) - m * log(ratio) - EULER * (k - m) / k + ratio**m * gamma_p(m / k + 1) - 1

    def _mode(self) -> NodeLike:
        k = self.concentration
        return where(k > 1, self._stretched(1 - 1 / k), 0)

    def _mean_log(self) -> NodeLike:
        return log(self.scale) - EULER / self.concentration


@declared
class Pareto(Law):
    """The law of Pareto: numbers above `scale`; P(x > t) is (scale / t)**concentration.

    >>> round(float(sg.stats.Pareto(2.0).sf(10.0)), 12)
    0.01
    """

    domains = ("positive", "positive")
    concentration: NodeLike
    scale: NodeLike = 1.0

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """From `scale` on."""
        return self.scale, None

    def _past(self, x: Node) -> Node:
        """log(x / scale), with all digits where x is near the scale."""
        return log1p((x - self.scale) / self.scale)

    def _log_sf(self, x: Node) -> NodeLike:
        return -self.concentration * self._past(x)

    def _log_prob(self, x: Node) -> NodeLike:
        return self._log_sf(x) + log(self.concentration / x)

    def _cdf(self, x: Node) -> NodeLike:
        return -expm1(self._log_sf(x))

    def _sf(self, x: Node) -> NodeLike:
        return exp(self._log_sf(x))

    def _log_cdf(self, x: Node) -> NodeLike:
        past, b = self._past(x), self.concentration
        return where(past == 0, log(past) + log(b), log1mexp(-b * past))

    def _icdf(self, p: Node) -> NodeLike:
        return self.scale * exp(-log1p(-p) / self.concentration)

    def _isf(self, p: Node) -> NodeLike:
        return self.scale * exp(-log(p) / self.concentration)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        drawn = random.exponential(key, shape, dtype=self.dtype)
        return self.scale * exp(drawn / self.concentration)

    def _mean(self) -> NodeLike:
        b = self.concentration
        return where(b > 1, b * self.scale / (b - 1), np.inf)

    def _variance(self) -> NodeLike:
        b = self.concentration
        return where(b > 2, square(self.scale / (b - 1)) * b / (b - 2), np.inf)

    def _entropy(self) -> NodeLike:
        b = self.concentration
        return log(self.scale / b) + 1 + 1 / b

    def _kl(self, other: Pareto) -> NodeLike:
        ratio, past = other.concentration / self.concentration, log(self.scale / other.scale)
        found = other.concentration * past - log(ratio) + ratio - 1
        return where(self.scale >= other.scale, found, np.inf)

    def _mode(self) -> NodeLike:
        return self.scale

    def _mean_log(self) -> NodeLike:
        return log(self.scale) + 1 / self.concentration

    def _cross(self, p: Law) -> NodeLike:
        b = self.concentration
        return log(b / self.scale) - (b + 1) * (p._mean_log() - log(self.scale))


@declared
class HalfNormal(Positive):
    """The law of abs(x), where x is normal with the mean 0 and the standard deviation `scale`.

    >>> round(float(sg.stats.HalfNormal(1.0).mean), 12)
    0.797884560803
    """

    domains = ("positive",)
    scale: NodeLike = 1.0

    def _log_prob(self, x: Node) -> NodeLike:
        return square(x / self.scale) * -0.5 - log(self.scale) + math.log(2 / math.pi) / 2

    def _cdf(self, x: Node) -> NodeLike:
        return erf(x / self.scale * math.sqrt(0.5))

    def _sf(self, x: Node) -> NodeLike:
        return erfc(x / self.scale * math.sqrt(0.5))

    def _log_sf(self, x: Node) -> NodeLike:
        z = x / self.scale
        return where(z < 1, log1p(-erf(z * math.sqrt(0.5))), log_ndtr(-z) + math.log(2))

    def _icdf(self, p: Node) -> NodeLike:
        return self.scale * math.sqrt(2) * erfinv(p)

    def _isf(self, p: Node) -> NodeLike:
        return self.scale * math.sqrt(2) * erfcinv(p)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return self.scale * abs(random.normal(key, shape, dtype=self.dtype))

    def _mean(self) -> NodeLike:
        return self.scale * math.sqrt(2 / math.pi)

    def _variance(self) -> NodeLike:
        return square(self.scale) * (1 - 2 / math.pi)

    def _entropy(self) -> NodeLike:
        return log(self.scale) + (0.5 + math.log(math.pi / 2) / 2)

    def _kl(self, other: HalfNormal) -> NodeLike:
        ratio = self.scale / other.scale
        return (ratio - 1) * (ratio + 1) / 2 - log(ratio)

    def _mode(self) -> NodeLike:
        return 0.0

    def _mean_log(self) -> NodeLike:
        return log(self.scale) - (EULER + math.log(2)) / 2

    def _cross(self, p: Law) -> NodeLike:
        squares = (square(p.mean) + p.variance) / square(self.scale)
        return math.log(2 / math.pi) / 2 - squares / 2 - log(self.scale)


__all__ = [
    "Exponential",
    "HalfNormal",
    "Pareto",
    "Weibull",
]
