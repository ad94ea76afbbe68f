"""Laws of classes: which one is drawn, or how often each. Probabilities stand along the last axis.

They are given as `p`, or as `logits`, of which softmax makes them; then nothing underflows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symgrad import random
from symgrad.ir.dims import Shape
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import broadcast_shapes
from symgrad.ops.activations import log_softmax, softmax, xlogy
from symgrad.ops.declare import NodeLike
from symgrad.ops.domains import required
from symgrad.ops.elementwise import floor, log, negative
from symgrad.ops.index.take import take_along_axis
from symgrad.ops.leaves import arange
from symgrad.ops.logic import isnan
from symgrad.ops.order import argmax
from symgrad.ops.random.draws import draw_multinomial
from symgrad.ops.reduce import sum
from symgrad.ops.select import clip, select, where
from symgrad.ops.shape import astype, broadcast_to, expand_dims, squeeze
from symgrad.ops.special.elementary import entr
from symgrad.ops.special.gamma import gamma_log_density
from symgrad.stats.declared import declared
from symgrad.stats.discrete import Counted, Ordered, require_one


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
class Categorical(WithClasses, Ordered):
    """The number of a class, from 0 on; the last axis of `p` has their probabilities.

    >>> float(sg.stats.Categorical([0.2, 0.3, 0.5]).prob(2))
    0.5
    """

    domains = ("law", None)
    p: NodeLike = None
    logits: NodeLike = None

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """The numbers of the classes."""
        return 0, as_node(self.probabilities.shape[-1]) - 1

    def _log_prob(self, x: Node) -> NodeLike:
        each = log_softmax(self.logits) if self.p is None else self.p
        shape = broadcast_shapes(x.shape, each.shape[:-1])
        last = as_node(each.shape[-1]) - 1
        places = astype(clip(broadcast_to(where(isnan(x), 0, x), shape), 0, last), np.int64)
        found = take_along_axis(
            broadcast_to(each, (*shape, each.shape[-1])), expand_dims(places, axis=-1), axis=-1
        )
        found = squeeze(found, axis=-1)
        # The logarithm comes last: of classes that are not asked for it may have no slope.
        return found if self.p is None else log(found)

    def _cdf(self, x: Node) -> NodeLike:
        return self._among(lambda k: k <= expand_dims(x, axis=-1))

    def _sf(self, x: Node) -> NodeLike:
        return self._among(lambda k: k > expand_dims(x, axis=-1))

    def _among(self, chosen: Callable[[Node], Node]) -> Node:
        """The probability of some of the classes."""
        p = self.probabilities
        return sum(select(chosen(astype(arange(p.shape[-1]), p.dtype)), p), axis=-1)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return random.categorical(key, self.log_probabilities, shape)

    def _entropy(self) -> NodeLike:
        p = self.probabilities
        if self.p is not None:
            return sum(entr(p), axis=-1)
        return negative(sum(select(p > 0, p * self.log_probabilities), axis=-1))

    def _mode(self) -> NodeLike:
        return argmax(self.probabilities, axis=-1)

    def _kl(self, other: Categorical) -> NodeLike:
        return self._kl_of_one(other)


@declared
class Multinomial(WithClasses):
    """How many of `n` draws give each class: vectors of the length of `p`, which sum to n.

    >>> sg.stats.Multinomial(4, [0.2, 0.3, 0.5]).sample(sg.random.key(0), (10,)).type
    int64[10, 3]
    """

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
        total = sum(x, axis=-1)
        return self._unless_nan(total, where(bad | (total != self.n), -np.inf, y))

    def _log_prob(self, x: Node) -> NodeLike:
        p, n = self.probabilities, expand_dims(self.n, axis=-1)
        many = where(n > 0, n, 1)
        logs = self.log_probabilities
        each = xlogy(x, p) if self.p is not None else select(x != 0, x * logs)
        parts = gamma_log_density(x + 1, n * p, xlogy(x, many) + each)
        whole = gamma_log_density(n + 1, n, xlogy(n, many))
        return sum(parts, axis=-1) - squeeze(whole, axis=-1)

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


__all__ = ["Categorical", "Multinomial"]
