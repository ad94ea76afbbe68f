"""Laws that are moved by `loc` and stretched by `scale`: normal, Student's t, Laplace, ….

Each says what it is for loc = 0 and scale = 1, of z = (x - loc) / scale.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from symgrad import random
from symgrad.ir.dims import Shape
from symgrad.ir.node import Node
from symgrad.ops.activations import log_sigmoid, sigmoid, softplus
from symgrad.ops.declare import NodeLike
from symgrad.ops.domains import Domain
from symgrad.ops.elementwise import abs as abs_
from symgrad.ops.elementwise import exp, expm1, hypot, log, log1p, square
from symgrad.ops.leaves import ones_like
from symgrad.ops.select import minimum, where
from symgrad.ops.special.gamma import binet
from symgrad.ops.special.normal import log_ndtr, logit, ndtr, ndtri
from symgrad.ops.special.quantiles import gamma_p, stdtr, stdtrit, student_log_density
from symgrad.ops.trigonometry import atan2, tan
from symgrad.stats.declared import declared
from symgrad.stats.law import Law, log1mexpexp, log_of


class LocationScale(Law):
    """A law of loc + scale * z, where z has the standard law of its kind."""

    domains: ClassVar[tuple[Domain | None, ...]] = (None, "positive")
    loc: NodeLike
    scale: NodeLike

    def _z(self, x: Node) -> NodeLike:
        return (x - self.loc) / self.scale

    def _density(self, z: Node) -> NodeLike:
        """The logarithm of the standard density."""
        self._refuse("density")

    def _below(self, z: Node) -> NodeLike:
        """The standard distribution function."""
        self._refuse("distribution function")

    def _log_below(self, z: Node) -> NodeLike:
        return log_of(self._below, self._above, z)

    def _above(self, z: Node) -> NodeLike:
        """1 minus the standard distribution function; of a symmetric law."""
        return self._below(-z)

    def _log_above(self, z: Node) -> NodeLike:
        return self._log_below(-z)

    def _quantile(self, p: Node) -> NodeLike:
        self._refuse("quantile function")

    def _upper_quantile(self, p: Node) -> NodeLike:
        return -self._quantile(p)

    def _draw(self, key: Node, shape: Shape) -> NodeLike:
        """Draws from the standard law."""
        self._refuse("sampler")

    def _log_prob(self, x: Node) -> NodeLike:
        return self._density(self._z(x)) - log(self.scale)

    def _cdf(self, x: Node) -> NodeLike:
        return self._below(self._z(x))

    def _sf(self, x: Node) -> NodeLike:
        return self._above(self._z(x))

    def _log_cdf(self, x: Node) -> NodeLike:
        return self._log_below(self._z(x))

    def _log_sf(self, x: Node) -> NodeLike:
        return self._log_above(self._z(x))

    def _icdf(self, p: Node) -> NodeLike:
        return self.loc + self.scale * self._quantile(p)

    def _isf(self, p: Node) -> NodeLike:
        return self.loc + self.scale * self._upper_quantile(p)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return self.loc + self.scale * self._draw(key, shape)

    def _mean(self) -> NodeLike:
        return self.loc

    def _mode(self) -> NodeLike:
        return self.loc


@declared
class Normal(LocationScale):
    """The normal law, of the mean `loc` and the standard deviation `scale`.

    >>> law = sg.stats.Normal(0.0, 2.0)
    >>> round(float(law.log_prob(1.0)), 12)
    -1.737085713765

    Its cdf, sf and their logarithms are exact to rounding however far out.
    """

    loc: NodeLike = 0.0
    scale: NodeLike = 1.0

    def _density(self, z: Node) -> NodeLike:
        return square(z) * -0.5 - math.log(2 * math.pi) / 2

    def _below(self, z: Node) -> NodeLike:
        return ndtr(z)

    def _log_below(self, z: Node) -> NodeLike:
        return log_ndtr(z)

    def _quantile(self, p: Node) -> NodeLike:
        return ndtri(p)

    def _draw(self, key: Node, shape: Shape) -> NodeLike:
        return random.normal(key, shape, dtype=self.dtype)

    def _variance(self) -> NodeLike:
        return square(self.scale)

    def _entropy(self) -> NodeLike:
        return log(self.scale) + (1 + math.log(2 * math.pi)) / 2

    def _kl(self, other: Normal) -> NodeLike:
        ratio = self.scale / other.scale
        past = (self.loc - other.loc) / other.scale
        return ((ratio - 1) * (ratio + 1) + square(past)) / 2 - log(ratio)

    def _mean_exp(self, t: Node) -> NodeLike:
        return exp(self.loc * t + square(self.scale * t) / 2)

    def _cross(self, p: Law) -> NodeLike:
        mean = square((p.mean - self.loc) / self.scale) + p.variance / square(self.scale)
        return mean * -0.5 - math.log(2 * math.pi) / 2 - log(self.scale)


@declared
class Laplace(LocationScale):
    """The law of Laplace: the density is exp(-abs(z)) / (2 * scale), z being (x - loc) / scale.

    >>> float(sg.stats.Laplace(0.0, 2.0).prob(0.0))
    0.25
    """

    loc: NodeLike = 0.0
    scale: NodeLike = 1.0

    def _density(self, z: Node) -> NodeLike:
        return -abs_(z) - math.log(2)

    def _below(self, z: Node) -> NodeLike:
        tail = exp(-abs_(z)) / 2
        return where(z < 0, tail, 1 - tail)

    def _log_below(self, z: Node) -> NodeLike:
        return where(z < 0, z - math.log(2), log1p(exp(-abs_(z)) / -2))

    def _quantile(self, p: Node) -> NodeLike:
        return where(p < 0.5, log(2 * p), -log(2 * (1 - p)))

    def _draw(self, key: Node, shape: Shape) -> NodeLike:
        first, second = random.split(key)
        a, b = (random.exponential(k, shape, dtype=self.dtype) for k in (first, second))
        return a - b

    def _variance(self) -> NodeLike:
        return 2 * square(self.scale)

    def _entropy(self) -> NodeLike:
        return log(self.scale) + (1 + math.log(2))

    def _kl(self, other: Laplace) -> NodeLike:
        past = abs_(self.loc - other.loc)
        moved = self.scale * exp(-past / self.scale) + past
        return log(other.scale / self.scale) + moved / other.scale - 1

    def _cross(self, p: Law) -> NodeLike:
        if not isinstance(p, Normal):
            return super()._cross(p)
        past = (p.loc - self.loc) / p.scale
        gap = exp(square(past) * -0.5) * math.sqrt(2 / math.pi) + past * (1 - 2 * ndtr(-past))
        return -p.scale * gap / self.scale - log(2 * self.scale)


@declared
class Logistic(LocationScale):
    """The logistic law, with the distribution function sigmoid(z), where z is (x - loc) / scale.

    >>> float(sg.stats.Logistic(1.0, 2.0).cdf(1.0))
    0.5
    """

    loc: NodeLike = 0.0
    scale: NodeLike = 1.0

    def _density(self, z: Node) -> NodeLike:
        return -(softplus(z) + softplus(-z))

    def _below(self, z: Node) -> NodeLike:
        return sigmoid(z)

    def _log_below(self, z: Node) -> NodeLike:
        return log_sigmoid(z)

    def _quantile(self, p: Node) -> NodeLike:
        return logit(p)

    def _draw(self, key: Node, shape: Shape) -> NodeLike:
        first, second = random.split(key)
        a, b = (random.gumbel(k, shape, dtype=self.dtype) for k in (first, second))
        return a - b

    def _variance(self) -> NodeLike:
        return square(self.scale) * (math.pi**2 / 3)

    def _entropy(self) -> NodeLike:
        return log(self.scale) + 2


@declared
class Cauchy(LocationScale):
    """The law of Cauchy: the density is 1 / (pi * scale * (1 + z**2)), z being (x - loc) / scale.

    It has no mean and no variance: they are NaN.

    >>> round(float(sg.stats.Cauchy().cdf(1.0)), 12)
    0.75
    """

    has_moments: ClassVar[bool] = False
    loc: NodeLike = 0.0
    scale: NodeLike = 1.0

    def _density(self, z: Node) -> NodeLike:
        return -2 * log(hypot(z, 1)) - math.log(math.pi)

    def _below(self, z: Node) -> NodeLike:
        return atan2(1, -z) / math.pi

    def _quantile(self, p: Node) -> NodeLike:
        is_low = p < 0.5
        tail = where(is_low, p, 1 - p)
        far = 1 / tan(math.pi * tail)
        return where(tail < 0.25, where(is_low, -far, far), tan(math.pi * (p - 0.5)))

    def _draw(self, key: Node, shape: Shape) -> NodeLike:
        first, second = random.split(key)
        a, b = (random.normal(k, shape, dtype=self.dtype) for k in (first, second))
        return a / b

    def _mean(self) -> NodeLike:
        return ones_like(self.loc) * math.nan

    def _variance(self) -> NodeLike:
        return ones_like(self.scale) * math.nan

    def _entropy(self) -> NodeLike:
        return log(self.scale) + math.log(4 * math.pi)

    def _kl(self, other: Cauchy) -> NodeLike:
        top = square(self.scale + other.scale) + square(self.loc - other.loc)
        return log(top / (4 * self.scale * other.scale))


@declared
class Gumbel(LocationScale):
    """The law of Gumbel, to which maxima of many draws tend: SciPy's `gumbel_r`.

    The distribution function is exp(-exp(-z)), where z is (x - loc) / scale.

    >>> round(float(sg.stats.Gumbel().cdf(0.0)), 12)
    0.367879441171
    """

    loc: NodeLike = 0.0
    scale: NodeLike = 1.0

    def _density(self, z: Node) -> NodeLike:
        return where(z == -np.inf, z, -(z + exp(-z)))

    def _size(self, z: Node) -> NodeLike:
        """exp(-z), or a number as good where it overflows and gradients would be 0 * inf."""
        return exp(minimum(-z, 80))

    def _below(self, z: Node) -> NodeLike:
        return exp(-self._size(z))

    def _log_below(self, z: Node) -> NodeLike:
        return -exp(-z)

    def _above(self, z: Node) -> NodeLike:
        return -expm1(-self._size(z))

    def _log_above(self, z: Node) -> NodeLike:
        return log1mexpexp(-z)

    def _quantile(self, p: Node) -> NodeLike:
        return -log(-log(p))

    def _upper_quantile(self, p: Node) -> NodeLike:
        return -log(-log1p(-p))

    def _draw(self, key: Node, shape: Shape) -> NodeLike:
        return random.gumbel(key, shape, dtype=self.dtype)

    def _mean(self) -> NodeLike:
        return self.loc + self.scale * np.euler_gamma

    def _variance(self) -> NodeLike:
        return square(self.scale) * (math.pi**2 / 6)

    def _entropy(self) -> NodeLike:
        return log(self.scale) + (np.euler_gamma + 1)

    def _kl(self, other: Gumbel) -> NodeLike:
        ratio, past = self.scale / other.scale, (self.loc - other.loc) / other.scale
        return (
            -log(ratio) + np.euler_gamma * (ratio - 1) + exp(-past) * gamma_p(ratio + 1) - 1 + past
        )

    def _cross(self, p: Law) -> NodeLike:
        raised = exp(self.loc / self.scale) * p._mean_exp(-1 / self.scale)
        return -(p.mean - self.loc) / self.scale - raised - log(self.scale)


@declared
class StudentT(LocationScale):
    """Student's t law of `df` degrees of freedom: that of loc + scale * t.

    >>> float(sg.stats.StudentT(5.0, scale=3.0).variance)
    15.0
    """

    domains = ("positive", None, "positive")
    df: NodeLike
    loc: NodeLike = 0.0
    scale: NodeLike = 1.0

    def _density(self, z: Node) -> NodeLike:
        return student_log_density(self.df, z)

    def _below(self, z: Node) -> NodeLike:
        return stdtr(self.df, z)

    def _quantile(self, p: Node) -> NodeLike:
        return stdtrit(self.df, p)

    def _draw(self, key: Node, shape: Shape) -> NodeLike:
        first, second = random.split(key)
        half = self.df / 2
        spread = random.gamma(second, half, shape, dtype=self.dtype) / half
        return random.normal(first, shape, dtype=self.dtype) * spread**-0.5

    def _mean(self) -> NodeLike:
        return where(self.df > 1, self.loc, np.nan)

    def _variance(self) -> NodeLike:
        finite = square(self.scale) * self.df / (self.df - 2)
        return where(self.df > 2, finite, where(self.df > 1, np.inf, np.nan))

    def _entropy(self) -> NodeLike:
        half, near = self.df / 2, log1p(1 / self.df)
        lacking, slope = (binet(half, order=n) - binet(half + 0.5, order=n) for n in (0, 1))
        past = near + 1 / (self.df * (self.df + 1)) - slope
        rest = lacking + (1 + math.log(2 * math.pi)) / 2 + log(self.scale)
        return (half + 0.5) * past - half * near + rest


__all__ = ["Cauchy", "Gumbel", "Laplace", "LocationScale", "Logistic", "Normal", "StudentT"]
