"""Differential equations, by the method of Dormand and Prince (1980) with adaptive steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node, describe
from symgrad.ops.elementwise import abs
from symgrad.ops.identity import stop_gradient
from symgrad.ops.leaves import constant, placeholder
from symgrad.ops.loops.scan import scan
from symgrad.ops.loops.while_loop import looping
from symgrad.ops.reduce import max
from symgrad.ops.select import maximum, minimum, where
from symgrad.ops.shape import astype, concat
from symgrad.solve.flat import Unknown, like

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


def odeint(
    f: Callable[[Any, Any], Any],
    y0: Any,
    ts: Any,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    *,
    max_steps: int = 10_000,
) -> Any:
    """The solution of dy/dt = f(y, t) at the times `ts`, where y is y0 at the first of them.

    y is a node, or lists, tuples and dicts of nodes, nested, of one real float dtype, and so is
    what f gives; each leaf of the result has an axis for the times in front. The times go up or
    down. Steps are as large as keep the error of each below atol + rtol * abs(y), estimated by the
    embedded method of order 4 (Dormand and Prince 1980).

    Gradients by what f reads, by y0 and by ts are those of the steps that were taken, their sizes
    held fixed; of every order, in both modes. Raises `KernelError` that names the line when the
    program runs and there are more than `max_steps` from one time to the next.

    >>> k, ts = placeholder("k", ()), placeholder("ts", ("T",))
    >>> odeint(lambda y, t: -k * y, ones(2), ts).type
    float64[T, 2]
    """
    unknown = Unknown(y0, "odeint")
    times = as_node(ts)
    if times.ndim != 1 or times.dtype.kind not in "iuf":
        raise ShapeError(f"odeint: ts is a vector of times, not {describe(times)}")
    times = astype(times, unknown.dtype)
    clock = placeholder("time", (), unknown.dtype)
    made = like(unknown, unknown.called(lambda y: f(y, clock)))
    equations = unknown.closed(made, clock)

    def slope(y: Node, t: Node) -> Node:
        return unknown.vector_of(equations.live(y, t))

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
        scale = atol + rtol * maximum(abs(y), abs(new))
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
        found = looping("odeint", lambda c: c[0] != end, lambda c: step(c, end), carry, max_steps)
        return found, found[1]

    first = unknown.vector_of(unknown.starts)
    begin = (times[0], first, constant(1e-3, unknown.dtype), slope(first, times[0]))
    _, rows = scan(interval, begin, times[1:])
    whole = concat([first[None], rows])
    return unknown.form(unknown.parts(whole, times.shape))


def _sum(factors: tuple[float, ...], stages: list[Node]) -> Node:
    """The sum of products, but for factors that are 0."""
    total = None
    for factor, k in zip(factors, stages, strict=True):
        if factor:
            total = factor * k if total is None else total + factor * k
    assert total is not None
    return total
