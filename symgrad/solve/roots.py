"""Roots, fixed points and minima, with gradients by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.autodiff.jacobians import jacobian
from symgrad.autodiff.transforms import grad
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node, describe
from symgrad.ops.elementwise import abs, multiply
from symgrad.ops.leaves import constant, eye
from symgrad.ops.linalg.products import vecdot
from symgrad.ops.linalg.systems import solve
from symgrad.ops.logic import logical_not
from symgrad.ops.loops.while_loop import looping
from symgrad.ops.reduce import max
from symgrad.ops.select import where
from symgrad.solve.flat import Unknown, like

LEAST_PART = 2.0**-30  # of a Newton step
LEAST_DAMPING = 1e-12
LEAST_GAIN = 1e-4  # of what a step promises


def root(f: Callable[[Any], Any], x0: Any, *, tol: float | None = None, max_steps: int = 50) -> Any:
    """The x near x0 where f(x) is 0, by Newton's method with a line search.

    x is a node, or lists, tuples and dicts of nodes, nested, of one real float dtype, and f gives
    as many numbers in the same form. It has converged when no |f(x)| is larger than `tol`, by
    default eps to the 2/3. A Jacobian of all its n elements is computed and solved in each step,
    in memory of n**2.

    Gradients of every order, in both modes, by what f reads are those of the root itself (the
    implicit function theorem), and cost one solution of a linear system; x0 has none. Raises
    `KernelError` that names the line when the program runs and it did not converge in `max_steps`,
    `DtypeError` or `ShapeError` for an f that gives something else than x has.

    >>> a = placeholder("a", ())
    >>> x = root(lambda x: x**3 - a, 1.0)
    >>> x.type, grad(x, a).type
    (float64[], float64[])
    """
    unknown = Unknown(x0, "root")
    equations = unknown.closed(like(unknown, unknown.called("f(x)", f)))
    small = unknown.tolerance(tol)

    def values(z: Node) -> Node:
        return unknown.vector_of(equations.at(z))

    def step(carry: tuple[Node, Node]) -> tuple[Node, Node]:
        z, r = carry
        move = solve(jacobian(now := values(z), z, disconnected="zero"), now)
        _, *best = looping(
            "root",
            lambda c: logical_not(vecdot(c[2], c[2]) < vecdot(r, r)) & (c[0] > LEAST_PART),
            lambda c: (c[0] / 2, z - c[0] / 2 * move, values(z - c[0] / 2 * move)),
            (constant(1, unknown.dtype), z - move, values(z - move)),
            None,
        )
        return best[0], best[1]

    first = unknown.vector_of(unknown.starts)
    found = looping(
        "root", lambda c: _exceeds(c[1], small), step, (first, values(first)), max_steps
    )
    return equations.solved(found[0], lambda z, made: unknown.vector_of(made))


def fixed_point(
    g: Callable[[Any], Any], x0: Any, *, tol: float | None = None, max_steps: int = 1000
) -> Any:
    """The x with g(x) = x to which x, g(x), g(g(x)), … converge, from x0 on.

    It has converged when no |g(x) - x| is larger than `tol`. The rest is as in `root`: gradients
    are those of the fixed point, not of the steps to it, none of which is kept.

    >>> a = placeholder("a", ())
    >>> fixed_point(lambda x: (x + a / x) / 2, 1.0).type
    float64[]
    """
    unknown = Unknown(x0, "fixed_point")
    equations = unknown.closed(like(unknown, unknown.called("g(x)", g)))
    small = unknown.tolerance(tol)

    def after(z: Node) -> Node:
        return unknown.vector_of(equations.at(z))

    first = unknown.vector_of(unknown.starts)
    found = looping(
        "fixed_point",
        lambda c: _exceeds(c[1] - c[0], small),
        lambda c: (c[1], after(c[1])),
        (first, after(first)),
        max_steps,
    )
    return equations.solved(found[1], lambda z, made: unknown.vector_of(made) - z)


def minimizer(
    f: Callable[[Any], Any], x0: Any, *, tol: float | None = None, max_steps: int = 200
) -> Any:
    """The x near x0 where f(x), a scalar, is least, by Newton's method, damped (Levenberg).

    A step is taken if it lowers f by a part of what slope and curvature promise (Nocedal, Wright,
    Numerical Optimization, 2006, section 4.1). It has converged when no element of the gradient is
    larger than `tol`; a start, or a saddle that it meets, where the gradient is 0 is taken for the
    minimum. The rest is as in `root`, of the gradient of f.

    >>> a = placeholder("a", (2,))
    >>> minimizer(lambda x: sum((x - a) ** 2) + sum(x**4), zeros(2)).type
    float64[2]
    """
    unknown = Unknown(x0, "minimizer")
    value = as_node(unknown.called("f(x)", f))
    if value.ndim or value.dtype != unknown.dtype:
        raise ShapeError(
            f"minimizer: f gives one real number, of {unknown.dtype.name}, not {describe(value)}"
            f"{value.origin.place()}"
        )
    slopes = grad(value, unknown.states, disconnected="zero")
    equations = unknown.closed([value, *slopes])
    small = unknown.tolerance(tol)

    def values(z: Node) -> tuple[Node, Node]:
        least, *made = equations.at(z)
        return least, unknown.vector_of(made)

    def step(carry: Any) -> Any:
        z, least, slope, damping = carry
        made = values(z)[1]
        curved = jacobian(made, z, disconnected="zero")
        scale = max(abs(curved)) + constant(LEAST_DAMPING, unknown.dtype)
        move = solve(curved + multiply(damping * scale, eye(z.size, dtype=unknown.dtype)), slope)
        new = z - move
        there, tilt = values(new)
        gain = vecdot(move, slope - multiply(curved @ move, 0.5))
        near = abs(gain) <= 100 * _rounding(least)
        better = ((gain > 0) & (there < least) & (there <= least - LEAST_GAIN * gain)) | (
            near & (there <= least + _rounding(least)) & (_size(tilt) < _size(slope))
        )
        less = where(damping > LEAST_DAMPING, damping / 10, 0)
        more = where(damping > 0, damping * 10, 1e-3)
        return (
            where(better, new, z),
            where(better, there, least),
            where(better, tilt, slope),
            where(better, less, more),
        )

    first = unknown.vector_of(unknown.starts)
    init = (first, *values(first), constant(0, unknown.dtype))
    found = looping("minimizer", lambda c: _exceeds(c[2], small), step, init, max_steps)
    return equations.solved(found[0], lambda z, made: unknown.vector_of(made[1:]))


def _exceeds(r: Node, tol: float) -> Node:
    """Whether some element is larger than a tolerance, or NaN."""
    return logical_not(_size(r) <= tol)


def _size(r: Node) -> Node:
    return max(abs(r))


def _rounding(x: Node) -> Node:
    """The difference that rounding may make to a number."""
    return abs(x) * float(8 * np.finfo(x.dtype).eps)
