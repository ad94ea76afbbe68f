"""Laws of integers: Bernoulli, binomial, Poisson and their kin.

A probability is given as `p`, or as `logits`, the log(p / (1 - p)) or, for several classes, what
softmax makes probabilities of; with logits nothing underflows. Draws are int64, and no gradient
flows through them.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from symgrad import random
from symgrad.ir.dims import Shape
from symgrad.ir.errors import ArgumentError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import broadcast_shapes
from symgrad.ops.activations import log_sigmoid, log_softmax, sigmoid, softmax, xlog1py, xlogy
from symgrad.ops.declare import NodeLike
from symgrad.ops.domains import required
from symgrad.ops.elementwise import ceil, exp, expm1, floor, log, log1p, square
from symgrad.ops.index.take import take_along_axis
from symgrad.ops.random.draws import draw_multinomial
from symgrad.ops.reduce import sum
from symgrad.ops.select import clip, maximum, select, where
from symgrad.ops.shape import astype, broadcast_to, expand_dims, squeeze, stack
from symgrad.ops.special.elementary import entr, kl_div_p, rel_entr
from symgrad.ops.special.gamma import betainc, betaln, gammainc, gammaincc, gammaln
from symgrad.ops.special.quantiles import betaincc
from symgrad.stats.declared import declared
from symgrad.stats.law import Law


class Counted(Law):
    """A law of integers."""

    discrete: ClassVar[bool] = True
    reparametrised: ClassVar[bool] = False

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """From 0 on."""
        return 0, None


class WithOdds(Counted):
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
            return times * log_sigmoid(self.logits)
        return xlogy(times, self.p)

    def _log_failure(self, times: Any = 1) -> NodeLike:
        if self.p is None:
            return times * log_sigmoid(-self.logits)
        return xlog1py(times, -self.p)

    def _kl_of_one(self, other: WithOdds) -> NodeLike:
        """The divergence of one trial."""
        return rel_entr(self.success, other.success) + rel_entr(self.failure, other.failure)


def require_one(law: Law, **given: Any) -> None:
    """Raise `ArgumentError` unless one of several parameters is given."""
    if [v is None for v in given.values()].count(False) != 1:
        listed = " or ".join(f"{name}=" for name in given)
        raise ArgumentError(f"{type(law).__name__} takes one of them: {listed}")


@declared
class Bernoulli(WithOdds):
    """1 with the probability `p`, else 0."""

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
        return entr(self.success) + entr(self.failure)

    def _kl(self, other: Bernoulli) -> NodeLike:
        return self._kl_of_one(other)


@declared
class Binomial(WithOdds):
    """How many of `n` trials succeed, each with the probability `p`."""

    domains = ("count", "probability", None)
    n: NodeLike
    p: NodeLike = None
    logits: NodeLike = None

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """From 0 to n."""
        return 0, self.n

    def _log_prob(self, x: Node) -> NodeLike:
        rest = self.n - x
        ways = -log1p(self.n) - betaln(rest + 1, x + 1)
        return ways + self._log_success(x) + self._log_failure(rest)

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

    def _kl(self, other: Binomial) -> NodeLike:
        same = astype(self.n == other.n, self.dtype)
        trials = self.n * required(same, "true", "that n is the same for both laws")
        return trials * self._kl_of_one(other)


@declared
class NegativeBinomial(WithOdds):
    """How many trials fail before `n` succeed, each with the probability `p`: SciPy's `nbinom`.

    `n` need not be an integer: the law is that of Poisson for a rate of the gamma law of n.
    """

    domains = ("positive", "probability", None)
    n: NodeLike
    p: NodeLike = None
    logits: NodeLike = None

    def _log_prob(self, x: Node) -> NodeLike:
        ways = -betaln(self.n, x + 1) - log(self.n + x)
        return ways + self._log_success(self.n) + self._log_failure(x)

    def _cdf(self, x: Node) -> NodeLike:
        return betainc(self.n, x + 1, self.success)

    def _sf(self, x: Node) -> NodeLike:
        return betaincc(self.n, x + 1, self.success)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        first, second = random.split(key)
        odds = self.failure / self.success
        return random.poisson(second, odds * random.gamma(first, self.n, shape, dtype=self.dtype))

    def _mean(self) -> NodeLike:
        return self.n * self.failure / self.success

    def _variance(self) -> NodeLike:
        return self.n * self.failure / square(self.success)


@declared
class Geometric(WithOdds):
    """Which trial is the first that succeeds, counted from 1, as in NumPy and SciPy."""

    domains = ("probability", None)
    p: NodeLike = None
    logits: NodeLike = None

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """From 1 on."""
        return 1, None

    def _log_prob(self, x: Node) -> NodeLike:
        return self._log_failure(x - 1) + self._log_success()

    def _cdf(self, x: Node) -> NodeLike:
        return -expm1(self._log_failure(x))

    def _sf(self, x: Node) -> NodeLike:
        return exp(self._log_failure(x))

    def _log_sf(self, x: Node) -> NodeLike:
        return self._log_failure(x)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        waiting = random.exponential(key, shape, dtype=self.dtype)
        trials = maximum(ceil(waiting / -self._log_failure()), 1)
        return astype(trials, np.int64)

    def _mean(self) -> NodeLike:
        return 1 / self.success

    def _variance(self) -> NodeLike:
        return self.failure / square(self.success)

    def _entropy(self) -> NodeLike:
        return (entr(self.success) + entr(self.failure)) / self.success

    def _kl(self, other: Geometric) -> NodeLike:
        return self._kl_of_one(other) / self.success


@declared
class Poisson(Counted):
    """How often what is rare happens, with the mean `rate`."""

    domains = ("nonnegative",)
    rate: NodeLike

    def _log_prob(self, x: Node) -> NodeLike:
        return xlogy(x, self.rate) - self.rate - gammaln(x + 1)

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


class WithClasses(Counted):
    """A law with probabilities of classes along the last axis."""

    p: NodeLike
    logits: NodeLike

    def check(self) -> None:
        """Refuse parameters that make no law."""
        require_one(self, p=self.p, logits=self.logits)
        given = as_node(self.logits if self.p is None else self.p)
        if given.ndim == 0:
            raise ShapeError(
                f"{type(self).__name__} takes what belongs to each class, a vector, not "
                f"{given.type!r}"
            )
        super().check()

    @property
    def probabilities(self) -> Node:
        """The probability of each class, along the last axis."""
        return softmax(self.logits) if self.p is None else self.p

    @property
    def log_probabilities(self) -> Node:
        """The logarithm of the probability of each class, along the last axis."""
        return log_softmax(self.logits) if self.p is None else log(self.p)

    @property
    def batch_shape(self) -> Shape:
        """The shape of the laws: that of the parameters without the axis of the classes."""
        given = self.logits if self.p is None else self.p
        shape: Shape = given.shape[:-1]
        return shape

    def _kl_of_one(self, other: WithClasses) -> NodeLike:
        """The divergence of one draw."""
        p = self.probabilities
        past = self.log_probabilities - other.log_probabilities
        return sum(select(p > 0, p * past), axis=-1)


@declared
class Categorical(WithClasses):
    """The number of a class, counted from 0, with probabilities along the last axis."""

    domains = ("law", None)
    p: NodeLike = None
    logits: NodeLike = None

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """The numbers of the classes."""
        return 0, as_node(self.probabilities.shape[-1]) - 1

    def _log_prob(self, x: Node) -> NodeLike:
        logs = self.log_probabilities
        shape = broadcast_shapes(x.shape, logs.shape[:-1])
        last = as_node(logs.shape[-1]) - 1
        places = astype(clip(broadcast_to(x, shape), 0, last), np.int64)
        found = take_along_axis(
            broadcast_to(logs, (*shape, logs.shape[-1])), expand_dims(places, axis=-1), axis=-1
        )
        return squeeze(found, axis=-1)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return random.categorical(key, self.log_probabilities, shape)

    def _entropy(self) -> NodeLike:
        return sum(entr(self.probabilities), axis=-1)

    def _kl(self, other: Categorical) -> NodeLike:
        return self._kl_of_one(other)


@declared
class Multinomial(WithClasses):
    """How often each class is drawn in `n` draws; one draw of the law is a vector of counts."""

    domains = ("count", "law", None)
    n: NodeLike
    p: NodeLike = None
    logits: NodeLike = None

    @property
    def batch_shape(self) -> Shape:
        """The shape of the laws."""
        return broadcast_shapes(self.n.shape, super().batch_shape)

    @property
    def event_shape(self) -> Shape:
        """One count for each class."""
        shape: Shape = (self.logits if self.p is None else self.p).shape[-1:]
        return shape

    def _inside(self, x: Node, y: NodeLike) -> Node:
        bad = sum(astype((x < 0) | (x != floor(x)), self.dtype), axis=-1) > 0
        return where(bad | (sum(x, axis=-1) != self.n), -np.inf, y)

    def _log_prob(self, x: Node) -> NodeLike:
        p = self.probabilities
        each = xlogy(x, p) if self.p is not None else x * self.log_probabilities
        return gammaln(self.n + 1) + sum(each - gammaln(x + 1), axis=-1)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        counts = broadcast_to(astype(self.n, np.int64), shape)
        laws = broadcast_to(self.probabilities, (*shape, *self.event_shape))
        return draw_multinomial(laws, counts, key)

    def _mean(self) -> NodeLike:
        return expand_dims(self.n, axis=-1) * self.probabilities

    def _variance(self) -> NodeLike:
        return self._mean() * (1 - self.probabilities)

    def _kl(self, other: Multinomial) -> NodeLike:
        same = astype(self.n == other.n, self.dtype)
        trials = self.n * required(same, "true", "that n is the same for both laws")
        return trials * self._kl_of_one(other)


__all__ = [
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Geometric",
    "Multinomial",
    "NegativeBinomial",
    "Poisson",
]
