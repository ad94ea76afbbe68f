"""The least number that is enough, between two others, by bisection: quantiles of laws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symgrad.ir.node import Node
from symgrad.ops.elementwise import abs, floor, sign, sqrt
from symgrad.ops.identity import stop_gradient
from symgrad.ops.loops.scan import fori
from symgrad.ops.select import maximum, where


def smallest(enough: Callable[[Node], Node], low: Node, high: Node) -> Node:
    """The least integer above `low` that is enough, `high` if none below it is."""
    return _bisected(enough, low, high, lambda a, b: floor((a + b) / 2), 54)


def smallest_float(enough: Callable[[Node], Node], low: Node, high: Node) -> Node:
    """The least number that is enough, to the last digit, from `low` on; `high` if none below is.

    Numbers of one sign that are not near to each other are halved by their exponents.
    """
    least = float(np.finfo(low.dtype).smallest_normal)

    def middle(a: Node, b: Node) -> Node:
        small, large = maximum(abs(a), least), maximum(abs(b), least)
        far = (small > 2 * large) | (large > 2 * small)
        root = where(sign(a) * sign(b) < 0, 0, sign(a + b) * sqrt(small) * sqrt(large))
        return where(far, root, a / 2 + b / 2)

    return where(enough(low), low, _bisected(enough, low, high, middle, 66))


def _bisected(
    enough: Callable[[Node], Node],
    low: Node,
    high: Node,
    middle: Callable[[Node, Node], Node],
    steps: int,
) -> Node:
    def halved(_: Node, ends: tuple[Node, Node]) -> tuple[Node, Node]:
        between = middle(*ends)
        found = enough(between)
        return where(found, ends[0], between), where(found, between, ends[1])

    found: Node = fori(steps, halved, (stop_gradient(low), stop_gradient(high)))[1]
    return found
