"""Sides: which branch of a kink or jump is taken by operands that move along a direction.

At a tie an op is decided by the tangents of its operands: by the first that is not 0, of those
along one direction after another. What is decided so is a comparison of values that are held, so
that it has a slope of 0 and is decided once, in derivatives of every order. (K. A. Khan,
Branch-locking AD techniques for nonsmooth composite functions and nonsmooth implicit functions,
Optimization Methods and Software 33, 2018.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ir.node import Node
from symgrad.ir.op import Cotangent
from symgrad.ir.operators import call
from symgrad.ops.flows import total


def held(x: Node) -> Node:
    """A value that a decision is made of: no gradient flows through it."""
    return call("stop_gradient", x)


class Side:
    """How the operands of an op move, as it asks at its kinks.

    `tangents` gives the tangents of a node along each direction, None for 0; `written` the node as
    it was before any was locked; `least` a number below which no element of a node is. Where the
    directions are `complete`, what is still tied has no slope at all; else it is split equally.
    """

    def __init__(
        self,
        tangents: Callable[[Node], Sequence[Cotangent]],
        written: Callable[[Node], Node],
        least: Callable[[Node], float],
        complete: bool,
    ) -> None:
        self._tangents, self.written, self.least = tangents, written, least
        self.complete = complete

    def tangents(self, x: Node) -> list[Node]:
        """The tangents along the directions that move x, held."""
        return [held(t) for t in self._tangents(x) if t is not None]

    def lead(self, a: Node, b: Node | None = None) -> Node:
        """A number that is positive where a is above b or moves there, negative where it is below.

        Without b it is of a and 0. It is 0 where they stay together, and NaN where one is NaN: the
        first of a - b and its tangents that is not 0.
        """
        if b is None:
            return _first([held(a), *self.tangents(a)])
        x, y = held(a), held(b)
        apart = call("where", call("equal", x, y), 0, x - y)  # of two infinities, too
        return _first([apart, *self._apart(a, b)])

    def motion(self, x: Node) -> Node:
        """A number of the sign of the first tangent of x that is not 0."""
        return _first(self.tangents(x) or [call("zeros_like", held(x))])

    def _apart(self, a: Node, b: Node) -> list[Node]:
        found = []
        for s, t in zip(self._tangents(a), self._tangents(b), strict=True):
            away = total(s, None if t is None else call("negative", t))
            if away is not None:
                found.append(held(away))
        return found

    def choose(self, lead: Node, above: Any, below: Any, or_where: Node | None = None) -> Node:
        """`above` where the lead is positive, else `below`; the mean of both where it is 0.

        It is `above` also where something else holds.
        """
        mask = lead > 0
        chosen = call("where", mask if or_where is None else mask | or_where, above, below)
        if self.complete:
            return chosen
        mean = call("multiply", 0.5, above + below)
        return call("where", call("equal", lead, 0), mean, chosen)

    def winners(self, x: Node, found: Node, reduce: str, axis: Any) -> Node:
        """Of the elements that are `found` to be the extremum over axes those that stay it."""
        worst = -np.inf if reduce == "max" else np.inf
        for t in self.tangents(x):
            among = call("where", found, t, worst)
            found = found & call("equal", t, held(call(reduce, among, axis=axis, keepdims=True)))
        return found

    def both(self, a: Node, b: Node) -> list[tuple[Node, Node]]:
        """The tangents of two along the directions that move one of them, held."""
        pairs = zip(self._tangents(a), self._tangents(b), strict=True)
        return [(_given(s, a), _given(t, b)) for s, t in pairs if not (s is None and t is None)]

    def bends(self, x: Node) -> list[tuple[Node, Node]]:
        """Along each direction that moves x its tangent, and the tangent of that."""
        found = []
        for k, t in enumerate(self._tangents(x)):
            if t is not None:
                again = self._tangents(t)[k]
                found.append((t, call("zeros_like", t) if again is None else again))
        return found

    def unit(self, x: Node, norm: Callable[[Node], Node]) -> Node:
        """At a zero vector the unit vector along which it leaves, 0 if it stays."""
        found: Any = 0.0
        for t in reversed(self.tangents(x)):
            length = norm(t)
            at = call("equal", length, 0)
            found = call("where", at, found, t / call("where", at, 1, length))
        return held(found) if isinstance(found, Node) else call("zeros_like", held(x))


def _given(tangent: Cotangent, like: Node) -> Node:
    return held(call("zeros_like", like) if tangent is None else tangent)


def _first(values: Sequence[Node]) -> Node:
    """For each element the first value that is not 0."""
    found = values[-1]
    for value in reversed(values[:-1]):
        found = call("where", call("equal", value, 0), found, value)
    return held(found)
