"""Differential equations, solved with adaptive steps, and differentiated in two ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from symgrad.ir.dim_text import same_size
from symgrad.ir.errors import GraphError, ShapeError
from symgrad.ir.node import Node, as_node, describe
from symgrad.ops.leaves import placeholder
from symgrad.ops.shape import astype
from symgrad.solve.adjoint import Adjoint
from symgrad.solve.dormand_prince import Field, solution
from symgrad.solve.flat import Unknown, like


def odeint(
    f: Callable[[Any, Any], Any],
    y0: Any,
    ts: Any,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    *,
    gradient: Literal["steps", "adjoint"] = "steps",
    max_steps: int = 10_000,
) -> Any:
    """The solution of dy/dt = f(y, t) at the times `ts`, where y is y0 at the first of them.

    y is a node, or lists, tuples and dicts of nodes, nested, of one real float dtype, and so is
    what f gives; each leaf of the result has an axis for the times in front. The times go up or
    down. Steps are as large as keep the error of each below atol + rtol * abs(y), estimated by the
    embedded method of order 4 (Dormand and Prince 1980); rtol is taken for 100 eps of the dtype
    where it is less.

    There are gradients by what f reads, by y0 and by ts, of every order and in both modes. With
    `gradient="steps"` they are those of the steps that were taken, their sizes held fixed: the
    exact ones of what is computed, for which a value of each step is kept. With "adjoint" they are
    those of the solution: another differential equation, solved back in time to the same tolerances
    in memory that does not grow with the steps (Pontryagin 1962; Chen et al. 2018), and, in forward
    mode, solved along with it.

    Raises `KernelError` that names the line when the program runs and there are more than
    `max_steps` from one time to the next, `ShapeError`, `DtypeError` or `GraphError` for arguments
    that are not as this says.

    >>> k, ts = placeholder("k", ()), placeholder("ts", ("T",))
    >>> odeint(lambda y, t: -k * y, ones(2), ts, gradient="adjoint").type
    float64[T, 2]
    """
    unknown = Unknown(y0, "odeint")
    times = as_node(ts)
    if times.ndim != 1 or times.dtype.kind not in "iuf" or same_size(times.shape[0], 0):
        raise ShapeError(
            f"odeint: ts is a vector of times, one or more, not {describe(times)}"
            f"{times.origin.place()}"
        )
    if gradient not in ("steps", "adjoint"):
        raise GraphError(f"odeint: gradient is 'steps' or 'adjoint', not {gradient!r:.60}")
    times = astype(times, unknown.dtype)
    clock = placeholder("time", (), unknown.dtype)
    made = like(unknown, unknown.called("f(y, t)", f, clock))
    equations = unknown.closed(made, clock)

    def slope(y: Node, t: Node, outer: Sequence[Node]) -> Node:
        return unknown.vector_of(equations.at_values(y, [t, *outer]))

    if not rtol and not atol:
        raise GraphError("odeint: rtol and atol are not both 0: no step is without an error")
    least = 100 * float(np.finfo(unknown.dtype).eps)
    given = {"rtol": tolerance("rtol", rtol), "atol": tolerance("atol", atol)}
    field = Field(slope, max(given["rtol"], least), given["atol"], max_steps)
    first = unknown.vector_of(unknown.starts)
    solve = Adjoint.apply if gradient == "adjoint" else solution
    whole = solve(field, first, times, *equations.outer)
    return unknown.form(unknown.parts(whole, times.shape))


def tolerance(name: str, given: Any) -> float:
    """A tolerance as a number. Raises `GraphError` for what is none."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given < np.inf:
        raise GraphError(f"odeint: {name} is a number, 0 or more, not {given!r:.60}")
    return float(given)
