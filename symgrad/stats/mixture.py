"""The law of a draw from one of several laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from symgrad import random
from symgrad.ir.dims import Shape
from symgrad.ir.errors import ArgumentError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import broadcast_shapes, require_equal
from symgrad.ops.activations import logsumexp
from symgrad.ops.declare import NodeLike
from symgrad.ops.elementwise import log1p, negative, square
from symgrad.ops.identity import stop_gradient
from symgrad.ops.leaves import arange
from symgrad.ops.reduce import max, min, sum
from symgrad.ops.select import select, where
from symgrad.ops.shape import broadcast_to, expand_dims, stack
from symgrad.stats.classes import Categorical
from symgrad.stats.declared import declared
from symgrad.stats.discrete import smallest
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

    def log_prob(self, x: NodeLike, /) -> Node:
        """The logarithm of the density at x, or of the probability of x."""
        at = self._at(x)
        each = self._each(lambda law: law.log_prob(at))
        return logsumexp(each + self.weights.log_probabilities, axis=-1)

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
        at, logs = self._at(x), self.weights.log_probabilities
        found = logsumexp(self._each(lambda law: law.log_cdf(at)) + logs, axis=-1)
        return where(found < -0.5, found, log1p(negative(self.sf(x))))

    def log_sf(self, x: NodeLike, /) -> Node:
        """log(sf(x)), also where sf(x) underflows, if the laws have a stable form of it."""
        at, logs = self._at(x), self.weights.log_probabilities
        found = logsumexp(self._each(lambda law: law.log_sf(at)) + logs, axis=-1)
        return where(found < -0.5, found, log1p(negative(self.cdf(x))))

    def icdf(self, p: NodeLike, /) -> Node:
        """The quantile, of integers: the least x with cdf(x) >= p."""
        return self._between_those(p, "icdf", lambda x, at: self.cdf(x) >= at)

    def isf(self, p: NodeLike, /) -> Node:
        """The least integer x with sf(x) <= p."""
        return self._between_those(p, "isf", lambda x, at: self.sf(x) <= at)

    def _between_those(self, p: NodeLike, name: str, enough: Callable[..., Node]) -> Node:
        """The quantile, which lies between those of the components."""
        if not self.discrete:
            self._refuse("quantile function")
        value = self._value(p)
        at = expand_dims(value, axis=-1) if isinstance(self.laws, Law) else value
        each = self._each(lambda law: getattr(law, name)(at))
        return smallest(lambda x: enough(x, value), min(each, axis=-1) - 1, max(each, axis=-1))

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


__all__ = ["Mixture"]
