"""The method of Dormand and Prince (1980), with adaptive steps, as a loop within a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from symgrad.ir.node import Node
from symgrad.ops.elementwise import abs
from symgrad.ops.identity import stop_gradient
from symgrad.ops.leaves import constant, placeholder
from symgrad.ops.loops.loop import substituted
from symgrad.ops.loops.scan import scan
from symgrad.ops.loops.while_loop import looping
from symgrad.ops.reduce import max
from symgrad.ops.select import maximum, minimum, where
from symgrad.ops.shape import concat

# The tableau of the pair of order 5 and 4; the last stage is the first one of the next step.
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
ERROR = (
    71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40,
)  # fmt: skip


Slope: TypeAlias = Callable[[Node, Node, Sequence[Node]], Node]


@dataclass(frozen=True, eq=False)
class Field:
    """An equation dy/dt = slope(y, t, outer) of a vector y, and how exactly it is to be solved.

    `outer` are the nodes that the slope is made of besides.
    """

    slope: Slope
    rtol: float
    atol: float
    max_steps: int

    def derived(self, slope: Slope, first: Node, *outer: Node) -> Field:
        """Another equation, solved as exactly: of a vector like `first`, with others outside.

        It is made of stand-ins, so that what a slope differentiates by is nothing but its inputs.
        """
        inputs = [placeholder("z", first.shape, first.dtype), placeholder("t", (), first.dtype)]
        inputs += [placeholder(f"k{i}", k.shape, k.dtype) for i, k in enumerate(outer)]
        made = slope(inputs[0], inputs[1], inputs[2:])

        def at(y: Node, t: Node, outer: Sequence[Node]) -> Node:
            return substituted([made], dict(zip(inputs, (y, t, *outer), strict=True)))[0]

        return replace(self, slope=at)


def solution(field: Field, first: Node, times: Node, *outer: Node) -> Node:
    """The values of y at all times, a row each; the first one is given."""

    def slope(y: Node, t: Node) -> Node:
        return field.slope(y, t, outer)

    def step(carry: Any, end: Node) -> Any:
        t, y, h, k = carry
        left = end - t
        last = h >= abs(left)
        size = stop_gradient(minimum(h, abs(left)))
        dt = where(last, left, where(left > 0, size, -size))
        stages = [k]
        for row, part in zip(STAGES, TIMES, strict=True):
            new = y + dt * _sum(row, stages)
            stages.append(slope(new, t + dt * part))
        scale = field.atol + field.rtol * maximum(abs(y), abs(new))
        wrong = stop_gradient(max(abs(dt * _sum(ERROR, stages)) / scale))
        fits = wrong <= 1
        # A NaN is an error that is too large; steps change by a factor from 1/5 to 5.
        factor = where(wrong >= 0, 0.9 * maximum(wrong, 1e-10) ** -0.2, 0.2)
        after = size * minimum(maximum(factor, 0.2), 5.0)
        return (
            where(fits, where(last, end, t + dt), t),
            where(fits, new, y),
            where(fits, where(last, maximum(h, after), after), after),
            where(fits, stages[-1], k),
        )

    def interval(carry: Any, end: Node) -> Any:
        most = field.max_steps
        found = looping("odeint", lambda c: c[0] != end, lambda c: step(c, end), carry, most)
        return found, found[1]

    begin = (times[0], first, constant(1e-3, first.dtype), slope(first, times[0]))
    _, rows = scan(interval, begin, times[1:])
    return concat([first[None], rows])


def _sum(factors: tuple[float, ...], stages: list[Node]) -> Node:
    """The sum of products, but for factors that are 0."""
    total = None
    for factor, k in zip(factors, stages, strict=True):
        if factor:
            total = factor * k if total is None else total + factor * k
    assert total is not None
    return total
