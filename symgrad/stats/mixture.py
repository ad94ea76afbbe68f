"""The law of a draw from one of several laws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from symgrad import random
from symgrad.ir.dims import Shape
from symgrad.ir.errors import ArgumentError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import broadcast_shapes, require_equal
from symgrad.ops.activations import logsumexp
from symgrad.ops.declare import NodeLike
from symgrad.ops.elementwise import exp, log1p, negative, square
from symgrad.ops.identity import stop_gradient
from symgrad.ops.index.indexing import known
from symgrad.ops.leaves import arange
from symgrad.ops.reduce import max, min, sum
from symgrad.ops.select import minimum, select, where
from symgrad.ops.shape import broadcast_to, expand_dims, stack
from symgrad.stats.bisection import smallest, smallest_float
from symgrad.stats.classes import Categorical
from symgrad.stats.declared import declared
from symgrad.stats.law import Law


@declared
class Mixture(Law):
    """The law of a draw from one of several laws, of which `weights` says how likely each is.

    `weights` is a `Categorical` law, or the probabilities. `laws` is one law, whose last axis of
    the batch is that of the components, or a sequence of laws, of any kinds.

    >>> law = sg.stats.Mixture([0.5, 0.5], sg.stats.Normal([-1.0, 1.0], 0.3))
    >>> law.log_prob(np.zeros(4)).shape
    (4,)

    No gradient flows through draws. Raises `ShapeError` unless there are as many weights as laws.
    """

    reparametrised: ClassVar[bool] = False
    weights: Any
    laws: Any

    def check(self) -> None:
        """Refuse what are no weights, or no laws."""
        if not isinstance(self.weights, Categorical):
            object.__setattr__(self, "weights", Categorical(self.weights))
        if isinstance(self.laws, (list, tuple)):
            object.__setattr__(self, "laws", tuple(self.laws))
        given: tuple[Any, ...] = self._parts
        if not all(isinstance(law, Law) for law in given) or (
            len({(law.discrete, law.event_shape) for law in given}) != 1
        ):
            raise ArgumentError(
                "a mixture is of laws of sg.stats that draw alike: all integers or all floats, of "
                f"one event_shape, not {self.laws!r:.60}"
            )
        if isinstance(self.laws, Law) and not self.laws.batch_shape:
            raise ShapeError("the components lie along the last axis of a law, which has none here")
        object.__setattr__(self, "discrete", given[0].discrete)
        one = isinstance(self.laws, Law)
        count = self.laws.batch_shape[-1] if one else len(self.laws)
        require_equal(self.weights.probabilities.shape[-1], count)
        broadcast_shapes((), self.batch_shape)

    @property
    def _parts(self) -> tuple[Law, ...]:
        return self.laws if isinstance(self.laws, tuple) else (self.laws,)

    @property
    def parameters(self) -> dict[str, Node]:
        """Those of the laws, numbered, and of the weights."""
        found = {f"{n}{i}": v for i, p in enumerate(self._parts) for n, v in p.parameters.items()}
        found.update(self.weights.parameters)
        return found

    @property
    def batch_shape(self) -> Shape:
        """The shape of the laws, without the axis of the components."""
        one = isinstance(self.laws, Law)
        shapes = (law.batch_shape[: -1 if one else None] for law in self._parts)
        return broadcast_shapes(self.weights.batch_shape, *shapes)

    @property
    def event_shape(self) -> Shape:
        """The shape of one draw."""
        return self._parts[0].event_shape

    def _each(self, of: Callable[[Law], NodeLike], event: int = 0) -> Node:
        """The results of `of` for every component, along an axis in front of so many last ones."""
        found = [as_node(of(law)) for law in self._parts]
        if isinstance(self.laws, Law):
            return found[0]
        shape = broadcast_shapes(*(v.shape for v in found))
        return stack([broadcast_to(v, shape) for v in found], axis=-1 - event)

    def _at(self, x: NodeLike) -> Node:
        """A value, beside every component."""
        value, axis = self._value(x), -1 - len(self.event_shape)
        return expand_dims(value, axis=axis) if isinstance(self.laws, Law) else value

    def _mixed(self, each: Node, event: int = 0) -> Node:
        """The mean over the components."""
        w = self.weights.probabilities
        w = w[(..., *(None,) * event)]
        return sum(w * each, axis=-1 - event)

    def _log_mixed(self, each: Node) -> Node:
        """The logarithm of the mean of exp(each) over the components."""
        w, terms = self.weights.p, each + self.weights.log_probabilities
        value = None if w is None else known(w)
        if w is None or (value is not None and (value > 0).all()):
            return _logsumexp(terms)
        # The logarithm of a weight of 0 has no slope; the mean has one, by a term that is 0.
        there = each > -np.inf
        found = _logsumexp(where((w > 0) & there, terms, -np.inf))
        most = math.floor(math.log(np.finfo(self.dtype).max))
        parts = exp(minimum(each - expand_dims(found, axis=-1), most))
        return found + log1p(sum(select((w == 0) & there, w * parts), axis=-1))

    def log_prob(self, x: NodeLike, /) -> Node:
        """The logarithm of the density at x, or of the probability of x."""
        at = self._at(x)
        return self._log_mixed(self._each(lambda law: law.log_prob(at)))

    def cdf(self, x: NodeLike, /) -> Node:
        """The probability of x and less."""
        at = self._at(x)
        return self._mixed(self._each(lambda law: law.cdf(at)))

    def sf(self, x: NodeLike, /) -> Node:
        """The probability of more than x."""
        at = self._at(x)
        return self._mixed(self._each(lambda law: law.sf(at)))

    def log_cdf(self, x: NodeLike, /) -> Node:
        """log(cdf(x)), also where cdf(x) underflows, if the laws have a stable form of it."""
        at = self._at(x)
        found = self._log_mixed(self._each(lambda law: law.log_cdf(at)))
        return where(found < -0.5, found, log1p(negative(self.sf(x))))

    def log_sf(self, x: NodeLike, /) -> Node:
        """log(sf(x)), also where sf(x) underflows, if the laws have a stable form of it."""
        at = self._at(x)
        found = self._log_mixed(self._each(lambda law: law.log_sf(at)))
        return where(found < -0.5, found, log1p(negative(self.cdf(x))))

    def icdf(self, p: NodeLike, /) -> Node:
        """The quantile, the least x with cdf(x) >= p, by bisection between those of the laws.

        Of floats it is differentiated as what solves the equation, up to the fourth order.
        """
        return self._between_those(p, "icdf", lambda x, at: self.cdf(x) - at)

    def isf(self, p: NodeLike, /) -> Node:
        """The least x with sf(x) <= p; see `icdf`."""
        return self._between_those(p, "isf", lambda x, at: at - self.sf(x))

    def _between_those(self, p: NodeLike, name: str, past: Callable[..., Node]) -> Node:
        """The least x at which `past(x, p)` is no less than 0."""
        value = self._value(p)
        at = expand_dims(value, axis=-1) if isinstance(self.laws, Law) else value
        each = self._each(lambda law: getattr(law, name)(at))
        low, high = min(each, axis=-1), max(each, axis=-1)
        if self.discrete:
            return smallest(lambda x: past(x, value) >= 0, low - 1, high)
        x = stop_gradient(smallest_float(lambda x: past(x, value) >= 0, low, high))
        # Steps that leave x where it is, each of which gives it a derivative of one more order.
        density = stop_gradient(self.prob(x))
        for _ in range(4):
            gap = past(x, value)
            x = x - select(density > 0, (gap - stop_gradient(gap)) / density)
        return x

    def _mean(self) -> NodeLike:
        event = len(self.event_shape)
        return self._mixed(self._each(lambda law: law.mean, event), event)

    def _variance(self) -> NodeLike:
        event = len(self.event_shape)
        past = self._each(lambda law: law.mean, event) - expand_dims(self.mean, axis=-1 - event)
        within = self._each(lambda law: law.variance, event)
        return self._mixed(within + square(past), event)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        first, second = random.split(key)
        event, count = len(self.event_shape), self.weights.probabilities.shape[-1]
        if isinstance(self.laws, Law):
            drawn = self.laws._sample(second, (*shape, count))
        else:
            keys = random.split(second, len(self.laws))
            parts = [law._sample(keys[i], shape) for i, law in enumerate(self.laws)]
            drawn = stack(parts, axis=-1 - event)
        chosen = expand_dims(self.weights._sample(first, shape), axis=-1) == arange(count)
        return stop_gradient(sum(select(chosen[(..., *(None,) * event)], drawn), axis=-1 - event))


def _logsumexp(x: Node) -> Node:
    """That along the last axis; of no more than -inf its slope is 0."""
    found = logsumexp(x, axis=-1)
    return where(found > -np.inf, found, -np.inf)


__all__ = ["Mixture"]
