"""Laws on an interval, and on a circle: uniform, beta, von Mises."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from symgrad import random
from symgrad.ir.dims import Shape
from symgrad.ir.node import Node
from symgrad.ops.declare import NodeLike
from symgrad.ops.domains import required
from symgrad.ops.elementwise import exp, expm1, log, log1p, square
from symgrad.ops.random.draws import draw_vonmises
from symgrad.ops.select import maximum, select, where
from symgrad.ops.shape import broadcast_to
from symgrad.ops.special.bessel import bessel_gap, i0e
from symgrad.ops.special.gamma import (
    beta_log_density,
    betainc,
    betaincc,
    betaln,
    digamma,
)
from symgrad.ops.special.quantiles import betainccinv, betaincinv
from symgrad.ops.trigonometry import sin
from symgrad.stats.declared import declared
from symgrad.stats.law import Law
from symgrad.stats.stirling import gamma_entropy


@declared
class Uniform(Law):
    """The uniform law: all numbers from `low` to `high` are equally likely.

    >>> float(sg.stats.Uniform(1.0, 5.0).prob(2.0))
    0.25
    """

    domains = (None, None)
    low: NodeLike = 0.0
    high: NodeLike = 1.0

    def check(self) -> None:
        """Refuse parameters that make no law."""
        super().check()
        self.width  # noqa: B018  refused now, if it is known not to be positive

    @property
    def width(self) -> Node:
        """high - low, which is positive."""
        return required(self.high - self.low, "positive", "high - low of Uniform")

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """From `low` to `high`."""
        return self.low, self.high

    def _log_prob(self, x: Node) -> NodeLike:
        return -log(self.width) + x * 0

    def _cdf(self, x: Node) -> NodeLike:
        return (x - self.low) / self.width

    def _sf(self, x: Node) -> NodeLike:
        return (self.high - x) / self.width

    def _icdf(self, p: Node) -> NodeLike:
        return self.low + p * self.width

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return self.low + self.width * random.uniform(key, shape, dtype=self.dtype)

    def _mean(self) -> NodeLike:
        return (self.low + self.high) / 2

    def _variance(self) -> NodeLike:
        return square(self.width) / 12

    def _entropy(self) -> NodeLike:
        return log(self.width)

    def _kl(self, other: Uniform) -> NodeLike:
        is_inside = (other.low <= self.low) & (self.high <= other.high)
        return where(is_inside, log(other.width / self.width), np.inf)

    def _mode(self) -> NodeLike:
        return self.low

    def _mean_log(self) -> NodeLike:
        is_above = self.low > 0
        low = where(is_above, self.low, 1)
        rest = select(is_above, low / self.width * log1p(self.width / low))
        return log(self.high) + rest - 1

    def _mean_exp(self, t: Node) -> NodeLike:
        return exp(t * self.low) * expm1(t * self.width) / (t * self.width)

    def _cross(self, p: Law) -> NodeLike:
        return -log(self.width)


@declared
class Beta(Law):
    """The beta law, of numbers from 0 to 1, with a density like x**(a - 1) * (1 - x)**(b - 1).

    >>> float(sg.stats.Beta(1.0, 3.0).mean)
    0.25
    """

    domains = ("positive", "positive")
    a: NodeLike
    b: NodeLike

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """From 0 to 1."""
        return 0, 1

    def _log_prob(self, x: Node) -> NodeLike:
        return beta_log_density(self.a, self.b, x)

    def _cdf(self, x: Node) -> NodeLike:
        return betainc(self.a, self.b, x)

    def _sf(self, x: Node) -> NodeLike:
        return betaincc(self.a, self.b, x)

    def _icdf(self, p: Node) -> NodeLike:
        return betaincinv(self.a, self.b, p)

    def _isf(self, p: Node) -> NodeLike:
        return betainccinv(self.a, self.b, p)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return random.beta(key, self.a, self.b, shape, dtype=self.dtype)

    def _mean(self) -> NodeLike:
        return self.a / (self.a + self.b)

    def _variance(self) -> NodeLike:
        total = self.a + self.b
        return self.a * self.b / (square(total) * (total + 1))

    def _entropy(self) -> NodeLike:
        total = self.a + self.b
        parts = gamma_entropy(self.a) + gamma_entropy(self.b)
        return parts - gamma_entropy(total) - digamma(total)

    def _kl(self, other: Beta) -> NodeLike:
        a, b = self.a - other.a, self.b - other.b
        parts = a * digamma(self.a) + b * digamma(self.b) - (a + b) * digamma(self.a + self.b)
        return betaln(other.a, other.b) - betaln(self.a, self.b) + parts

    def _mode(self) -> NodeLike:
        a, b = maximum(self.a - 1, 0), maximum(self.b - 1, 0)
        is_flat = (a == 0) & (b == 0)
        return where(is_flat, self.a > self.b, a / where(is_flat, 1, a + b))

    def _mean_log(self) -> NodeLike:
        return digamma(self.a) - digamma(self.a + self.b)

    def _cross(self, p: Law) -> NodeLike:
        if not isinstance(p, Uniform):
            return super()._cross(p)
        rest = Uniform(1 - p.high, 1 - p.low)._mean_log()
        return (self.a - 1) * p._mean_log() + (self.b - 1) * rest - betaln(self.a, self.b)


@declared
class VonMises(Law):
    """The law of von Mises, of angles around `loc`, in radians: the normal law of a circle.

    Its density is that of an angle, the same for x and x + 2 * pi; draws lie within pi of `loc`.
    The mean is the direction and the variance that of the circle, 1 - i1 / i0 of the concentration.
    No gradient flows through draws to the concentration.

    >>> float(sg.stats.VonMises(0.5, 2.0).mean)
    0.5
    """

    has_moments: ClassVar[bool] = False
    reparametrised: ClassVar[bool] = False
    domains = (None, "positive")
    loc: NodeLike
    concentration: NodeLike

    @property
    def _shortness(self) -> NodeLike:
        """1 less the length of the mean of the directions."""
        return bessel_gap(self.concentration)

    @property
    def _log_total(self) -> NodeLike:
        """The logarithm of the integral of exp(concentration * (cos(x) - 1))."""
        return log(i0e(self.concentration)) + math.log(2 * math.pi)

    def _log_prob(self, x: Node) -> NodeLike:
        # cos(d) - 1 without cancellation.
        bend = square(sin((x - self.loc) / 2)) * -2
        return self.concentration * bend - self._log_total

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        spread = broadcast_to(self.concentration, shape)
        return self.loc + draw_vonmises(spread, key)

    def _mean(self) -> NodeLike:
        return self.loc

    def _variance(self) -> NodeLike:
        return self._shortness

    def _entropy(self) -> NodeLike:
        return self._log_total + self.concentration * self._shortness

    def _kl(self, other: VonMises) -> NodeLike:
        k, m, short = self.concentration, other.concentration, self._shortness
        bend = square(sin((self.loc - other.loc) / 2)) * 2
        part = m * bend * (1 - short) + (m - k) * short
        return other._log_total - self._log_total + part

    def _mode(self) -> NodeLike:
        return self.loc


__all__ = ["Beta", "Uniform", "VonMises"]
