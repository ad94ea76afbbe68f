"""Laws of integers: Bernoulli, binomial, Poisson and their kin.

A probability is given as `p`, or as `logits`, the log(p / (1 - p)), with which nothing underflows.
Draws are int64, and no gradient flows through them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from symgrad import random
from symgrad.ir.dims import Shape
from symgrad.ir.errors import ArgumentError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import broadcast_shapes
from symgrad.ops.activations import log_sigmoid, sigmoid, softplus, xlog1py, xlogy
from symgrad.ops.declare import NodeLike
from symgrad.ops.domains import required
from symgrad.ops.elementwise import abs as abs_
from symgrad.ops.elementwise import add, ceil, exp, expm1, log, log1p, negative
from symgrad.ops.identity import stop_gradient
from symgrad.ops.index.indexing import known
from symgrad.ops.leaves import constant
from symgrad.ops.random.draws import draw_multinomial
from symgrad.ops.reduce import sum
from symgrad.ops.select import clip, maximum, select, where
from symgrad.ops.shape import astype, broadcast_to, stack
from symgrad.ops.special.elementary import kl_div_p
from symgrad.ops.special.gamma import betainc, betaincc, gamma_log_density, gammainc, gammaincc
from symgrad.stats.bisection import smallest
from symgrad.stats.declared import declared
from symgrad.stats.law import Law, log1mexpexp

# From it on, float64 has not every integer.
MOST = 2.0**53


class Counted(Law):
    """A law of integers, or of vectors of them."""

    discrete: ClassVar[bool] = True
    reparametrised: ClassVar[bool] = False

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """From 0 on."""
        return 0, None


class Ordered(Counted):
    """A law of integers. Its quantile is the least integer whose cdf is p or more, up to 2**53."""

    def _icdf(self, p: Node) -> NodeLike:
        return self._quantile(p, lambda x: self.cdf(x) >= p, 1)

    def _isf(self, p: Node) -> NodeLike:
        return self._quantile(p, lambda x: self.sf(x) <= p, 0)

    def _quantile(self, p: Node, enough: Callable[[Node], Node], sure: int) -> NodeLike:
        """The least integer that is enough; for the last p of all, the last of the support."""
        low, high = as_node(self.bounds()[0]), self.bounds()[1]
        shape = broadcast_shapes(p.shape, self.batch_shape)
        first, last = (
            broadcast_to(astype(as_node(v), self.dtype), shape)
            for v in (low - 1, MOST if high is None else high)
        )
        found = smallest(enough, first, last)
        return where(p == sure, np.inf if high is None else last, found)


class WithOdds(Ordered):
    """A law with a probability `p` of success, or the `logits` of it."""

    p: NodeLike
    logits: NodeLike

    def check(self) -> None:
        """Refuse parameters that make no law."""
        require_one(self, p=self.p, logits=self.logits)
        super().check()

    @property
    def success(self) -> Node:
        """The probability of success."""
        return sigmoid(self.logits) if self.p is None else self.p

    @property
    def failure(self) -> Node:
        """1 - success."""
        return sigmoid(-self.logits) if self.p is None else 1 - self.p

    def _log_success(self, times: Any = 1) -> NodeLike:
        """log(success), so many times: none of it is 0."""
        if self.p is None:
            return _times(times, log_sigmoid(self.logits))
        return xlogy(times, self.p)

    def _log_failure(self, times: Any = 1) -> NodeLike:
        if self.p is None:
            return _times(times, log_sigmoid(-self.logits))
        return xlog1py(times, -self.p)

    @property
    def _odds_against(self) -> NodeLike:
        """failure / success."""
        return exp(-self.logits) if self.p is None else self.failure / self.success

    def _kl_of_one(self, other: WithOdds) -> NodeLike:
        """The divergence of one trial: a sum of two that are not negative.

        For logits of which a probability would underflow, logarithms are not taken of these.
        """
        by_odds = kl_div_p(self.success, other.success) + kl_div_p(self.failure, other.failure)
        win, loss = self.success, self.failure
        far = self._log_success(win) - other._log_success(win)
        far = far + (self._log_failure(loss) - other._log_failure(loss))
        for law in (self, other):
            if law.p is None:
                by_odds = where(abs_(law.logits) < 50, by_odds, far)
        return by_odds

    def _entropy_of_one(self) -> NodeLike:
        """The entropy of one trial."""
        return negative(self._log_success(self.success) + self._log_failure(self.failure))

    def _ways(self, wins: Node, losses: Node) -> NodeLike:
        """The logarithm of the probability of so many successes and failures."""
        n = wins + losses
        many = where(n > 0, n, 1)
        parts = (
            gamma_log_density(k + 1, n * p, xlogy(k, many) + logs)
            for k, p, logs in (
                (wins, self.success, self._log_success(wins)),
                (losses, self.failure, self._log_failure(losses)),
            )
        )
        return add(*parts) - gamma_log_density(n + 1, n, xlogy(n, many))


def _times(times: Any, x: Node) -> Node:
    """times * x, of which none is 0 even if x is infinite."""
    return x if isinstance(times, int) else select(times != 0, times * x)


def require_one(law: Law, **given: Any) -> None:
    """Raise `ArgumentError` unless one of several parameters is given."""
    if [v is None for v in given.values()].count(False) != 1:
        listed = " or ".join(f"{name}=" for name in given)
        raise ArgumentError(f"{type(law).__name__} takes one of them: {listed}")


@declared
class Bernoulli(WithOdds):
    """The law of Bernoulli: 1 with the probability `p`, else 0.

    >>> float(sg.stats.Bernoulli(0.25).prob(1))
    0.25
    """

    domains = ("probability", None)
    p: NodeLike = None
    logits: NodeLike = None

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """0 and 1."""
        return 0, 1

    def _log_prob(self, x: Node) -> NodeLike:
        return self._log_success(x) + self._log_failure(1 - x)

    def _cdf(self, x: Node) -> NodeLike:
        return where(x < 1, self.failure, 1)

    def _sf(self, x: Node) -> NodeLike:
        return where(x < 1, self.success, 0)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return astype(random.bernoulli(key, self.success, shape), np.int64)

    def _mean(self) -> NodeLike:
        return self.success

    def _variance(self) -> NodeLike:
        return self.success * self.failure

    def _entropy(self) -> NodeLike:
        return self._entropy_of_one()

    def _kl(self, other: Bernoulli) -> NodeLike:
        return self._kl_of_one(other)

    def _mode(self) -> NodeLike:
        return self.success > 0.5


@declared
class Binomial(WithOdds):
    """The number of successes in `n` trials, each of which succeeds with the probability `p`.

    >>> round(float(sg.stats.Binomial(10, 0.5).prob(5)), 12)
    0.24609375
    """

    domains = ("count", "probability", None)
    n: NodeLike
    p: NodeLike = None
    logits: NodeLike = None

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """From 0 to n."""
        return 0, self.n

    def _log_prob(self, x: Node) -> NodeLike:
        return where(x == 0, self._log_failure(self.n), self._ways(x, self.n - x))

    def _cdf(self, x: Node) -> NodeLike:
        return where(x < self.n, betaincc(x + 1, self._rest(x), self.success), 1)

    def _sf(self, x: Node) -> NodeLike:
        return where(x < self.n, betainc(x + 1, self._rest(x), self.success), 0)

    def _rest(self, x: Node) -> NodeLike:
        return where(x < self.n, self.n - x, 1)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        both = stack([broadcast_to(v, shape) for v in (self.success, self.failure)], axis=-1)
        counts = broadcast_to(astype(self.n, np.int64), shape)
        return draw_multinomial(both, counts, key)[..., 0]

    def _mean(self) -> NodeLike:
        return self.n * self.success

    def _variance(self) -> NodeLike:
        return self.n * self.success * self.failure

    def _entropy(self) -> NodeLike:
        n = known(self.n)
        if n is None or np.max(n, initial=0) > 10**6:
            self._refuse("entropy, unless n is known and at most a million,")
        counts = np.arange(int(np.max(n, initial=0)) + 1).reshape(
            -1, *(1 for _ in self.batch_shape)
        )
        logs = self.log_prob(constant(counts))
        return negative(sum(select(logs > -np.inf, exp(logs) * logs), axis=0))

    def _kl(self, other: Binomial) -> NodeLike:
        same = astype(self.n == other.n, self.dtype)
        trials = self.n * required(same, "true", "that n is the same for both laws")
        return trials * self._kl_of_one(other)

    def _mode(self) -> NodeLike:
        return maximum(ceil((self.n + 1) * self.success) - 1, 0)


@declared
class NegativeBinomial(WithOdds):
    """The number of failures before `n` successes, of the probability `p`: SciPy's `nbinom`.

    `n` need not be an integer: the law is that of Poisson for a rate of the gamma law of n.

    >>> float(sg.stats.NegativeBinomial(2.0, 0.5).mean)
    2.0
    """

    domains = ("positive", "probability", None)
    n: NodeLike
    p: NodeLike = None
    logits: NodeLike = None

    def _log_prob(self, x: Node) -> NodeLike:
        ways = self._ways(self.n, x) - log1p(x / self.n)
        return where(x == 0, self._log_success(self.n), ways)

    def _cdf(self, x: Node) -> NodeLike:
        return betainc(self.n, x + 1, self.success)

    def _sf(self, x: Node) -> NodeLike:
        return betaincc(self.n, x + 1, self.success)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        first, second = random.split(key)
        rates = self._odds_against * random.gamma(first, self.n, shape, dtype=self.dtype)
        return random.poisson(second, rates)

    def _mean(self) -> NodeLike:
        return self.n * self._odds_against

    def _variance(self) -> NodeLike:
        return self.n * self._odds_against * (1 + self._odds_against)

    def _mode(self) -> NodeLike:
        return maximum(ceil((self.n - 1) * self._odds_against) - 1, 0)


@declared
class Geometric(WithOdds):
    """The number of the first trial that succeeds, counted from 1, as in NumPy and SciPy.

    >>> float(sg.stats.Geometric(0.25).mean)
    4.0
    """

    domains = ("probability", None)
    p: NodeLike = None
    logits: NodeLike = None

    @property
    def _log_rate(self) -> Node:
        """log(-log(failure)), which is the logits where success comes to nothing."""
        if self.p is None:
            return where(self.logits < -37, self.logits, log(softplus(self.logits)))
        return log(-log1p(-self.p))

    def _if_rare(self, rare: NodeLike, other: NodeLike) -> NodeLike:
        """`rare` where success is so unlikely that it may underflow."""
        return where(self.logits < -37, rare, other) if self.p is None else other

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """From 1 on."""
        return 1, None

    def _log_prob(self, x: Node) -> NodeLike:
        return self._log_failure(x - 1) + self._log_success()

    def _cdf(self, x: Node) -> NodeLike:
        return where(self.success < 0.5, -expm1(self._log_failure(x)), 1 - self.failure**x)

    def _sf(self, x: Node) -> NodeLike:
        return where(self.success < 0.5, exp(self._log_failure(x)), self.failure**x)

    def _log_cdf(self, x: Node) -> NodeLike:
        return self._if_rare(log1mexpexp(log(x) + self._log_rate), super()._log_cdf(x))

    def _log_sf(self, x: Node) -> NodeLike:
        return self._log_failure(x)

    def _icdf(self, p: Node) -> NodeLike:
        return self._unless_far(super()._icdf(p), -log1p(-p))

    def _isf(self, p: Node) -> NodeLike:
        return self._unless_far(super()._isf(p), -log(p))

    def _unless_far(self, found: NodeLike, rates: Node) -> NodeLike:
        """A quantile; where not every integer is a float, so many times the mean."""
        trials = stop_gradient(exp(log(rates) - self._log_rate))
        return where(trials < MOST, found, trials)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        waiting = random.exponential(key, shape, dtype=self.dtype)
        trials = ceil(waiting / -self._log_failure())
        # The largest int64 that is a float stands for all that are larger, as in NumPy.
        return astype(clip(trials, 1, np.nextafter(self.dtype.type(2**63), 0)), np.int64)

    def _mean(self) -> NodeLike:
        return 1 + self._odds_against

    def _variance(self) -> NodeLike:
        return self._odds_against * (1 + self._odds_against)

    def _entropy(self) -> NodeLike:
        return self._if_rare(1 - self._log_rate, self._entropy_of_one() / self.success)

    def _kl(self, other: Geometric) -> NodeLike:
        past = expm1(other._log_rate - self._log_rate)
        rare = past + self._log_rate - other._log_success()
        return self._if_rare(rare, self._kl_of_one(other) / self.success)

    def _mode(self) -> NodeLike:
        return 1.0


@declared
class Poisson(Ordered):
    """The number of independent events in a time in which `rate` of them are expected.

    >>> round(float(sg.stats.Poisson(2.0).prob(0)), 12)
    0.135335283237
    """

    domains = ("nonnegative",)
    rate: NodeLike

    def _log_prob(self, x: Node) -> NodeLike:
        return gamma_log_density(x + 1, self.rate, xlogy(x, self.rate))

    def _cdf(self, x: Node) -> NodeLike:
        return gammaincc(x + 1, self.rate)

    def _sf(self, x: Node) -> NodeLike:
        return gammainc(x + 1, self.rate)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return random.poisson(key, self.rate, shape)

    def _mean(self) -> NodeLike:
        return self.rate

    def _variance(self) -> NodeLike:
        return self.rate

    def _kl(self, other: Poisson) -> NodeLike:
        return kl_div_p(self.rate, other.rate)

    def _mode(self) -> NodeLike:
        return maximum(ceil(self.rate) - 1, 0)

    def _cross(self, p: Law) -> NodeLike:
        if not isinstance(p, Bernoulli):
            return super()._cross(p)
        return xlogy(p.mean, self.rate) - self.rate


__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"]
