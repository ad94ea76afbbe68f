"""The gamma law, and those of its draws: chi-squared, inverse gamma."""

from __future__ import annotations

import numpy as np

from symgrad import random
from symgrad.ir.dims import Shape
from symgrad.ir.node import Node
from symgrad.ops.activations import xlogy
from symgrad.ops.declare import NodeLike
from symgrad.ops.elementwise import log, square
from symgrad.ops.select import maximum, where
from symgrad.ops.special.gamma import digamma, gamma_log_density, gammainc, gammaincc, gammaln
from symgrad.ops.special.quantiles import gammainccinv, gammaincinv
from symgrad.stats.declared import declared
from symgrad.stats.law import Law, parameter
from symgrad.stats.positive import Positive, ratio
from symgrad.stats.stirling import gamma_entropy


class OfGamma(Positive):
    """A gamma law, of a concentration and a scale."""

    concentration: NodeLike
    scale: NodeLike

    def _log_prob(self, x: Node) -> NodeLike:
        z, a = x / self.scale, self.concentration
        logs = log(self.scale)
        return gamma_log_density(a, z, xlogy(a - 1, x) - (a - 1) * logs) - logs

    def _cdf(self, x: Node) -> NodeLike:
        return gammainc(self.concentration, ratio(x, self.scale))

    def _sf(self, x: Node) -> NodeLike:
        return gammaincc(self.concentration, ratio(x, self.scale))

    def _icdf(self, p: Node) -> NodeLike:
        return gammaincinv(self.concentration, p) * self.scale

    def _isf(self, p: Node) -> NodeLike:
        return gammainccinv(self.concentration, p) * self.scale

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return random.gamma(key, self.concentration, shape, scale=self.scale, dtype=self.dtype)

    def _mean(self) -> NodeLike:
        return self.concentration * self.scale

    def _variance(self) -> NodeLike:
        return self.concentration * square(self.scale)

    def _entropy(self) -> NodeLike:
        return gamma_entropy(self.concentration) + log(self.scale)

    def _kl(self, other: OfGamma) -> NodeLike:
        a, b = self.concentration, other.concentration
        ratio = self.scale / other.scale
        return (a - b) * digamma(a) - gammaln(a) + gammaln(b) - b * log(ratio) + a * (ratio - 1)

    def _mode(self) -> NodeLike:
        return maximum(self.concentration - 1, 0) * self.scale

    def _mean_log(self) -> NodeLike:
        return digamma(self.concentration) + log(self.scale)

    def _mean_exp(self, t: Node) -> NodeLike:
        return (1 - self.scale * t) ** -self.concentration

    def _cross(self, p: Law) -> NodeLike:
        a = self.concentration
        logs = (a - 1) * p._mean_log() - a * log(self.scale)
        return logs - p.mean / self.scale - gammaln(a)


@declared
class Gamma(OfGamma):
    """The gamma law of a concentration (also called shape, or alpha) and a scale (1 / rate).

    >>> float(sg.stats.Gamma(3.0, 2.0).mean)
    6.0
    """

    domains = ("positive", "positive")
    concentration: NodeLike
    scale: NodeLike = 1.0


@declared
class Chi2(OfGamma):
    """The chi-squared law of `df` degrees of freedom: the gamma law of df / 2, of the scale 2.

    >>> float(sg.stats.Chi2(5.0).variance)
    10.0
    """

    domains = ("positive",)
    df: NodeLike

    def check(self) -> None:
        """Refuse parameters that make no law."""
        super().check()
        object.__setattr__(self, "concentration", self.df / 2)
        object.__setattr__(self, "scale", parameter(2.0, self.dtype))


@declared
class InverseGamma(Positive):
    """The law of scale / y, where y has the gamma law of a concentration and the scale 1.

    >>> float(sg.stats.InverseGamma(3.0, 4.0).mean)
    2.0
    """

    domains = ("positive", "positive")
    concentration: NodeLike
    scale: NodeLike = 1.0

    def _log_prob(self, x: Node) -> NodeLike:
        w, a = self.scale / x, self.concentration
        found = gamma_log_density(a, w, (a - 1) * log(w)) + 2 * log(w) - log(self.scale)
        return where(w == np.inf, -np.inf, found)

    def _cdf(self, x: Node) -> NodeLike:
        return where(x == 0, 0, gammaincc(self.concentration, self.scale / where(x == 0, 1, x)))

    def _sf(self, x: Node) -> NodeLike:
        return where(x == 0, 1, gammainc(self.concentration, self.scale / where(x == 0, 1, x)))

    def _icdf(self, p: Node) -> NodeLike:
        return self.scale / gammainccinv(self.concentration, p)

    def _isf(self, p: Node) -> NodeLike:
        return self.scale / gammaincinv(self.concentration, p)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        drawn = random.gamma(key, self.concentration, shape, dtype=self.dtype)
        return self.scale / drawn

    def _mean(self) -> NodeLike:
        a = self.concentration
        return where(a > 1, self.scale / (a - 1), np.inf)

    def _variance(self) -> NodeLike:
        a = self.concentration
        return where(a > 2, square(self.scale) / (square(a - 1) * (a - 2)), np.inf)

    def _entropy(self) -> NodeLike:
        a = self.concentration
        return gamma_entropy(a) - 2 * digamma(a) + log(self.scale)

    def _kl(self, other: InverseGamma) -> NodeLike:
        # It is that of the reciprocals.
        return Gamma(self.concentration, 1 / self.scale)._kl(
            Gamma(other.concentration, 1 / other.scale)
        )

    def _mode(self) -> NodeLike:
        return self.scale / (self.concentration + 1)

    def _mean_log(self) -> NodeLike:
        return log(self.scale) - digamma(self.concentration)


__all__ = ["Chi2", "Gamma", "InverseGamma"]
