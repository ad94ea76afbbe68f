"""Solutions of linear systems whose matrix is only multiplied by vectors: Krylov's methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np

from symgrad.ir.errors import GraphError, ShapeError
from symgrad.ir.node import Node
from symgrad.ir.op import case
from symgrad.ir.types import TensorType
from symgrad.ops.batch import in_front
from symgrad.ops.declare import op, require
from symgrad.ops.elementwise import sqrt
from symgrad.ops.leaves import constant, zeros_like
from symgrad.ops.linalg import kernels
from symgrad.ops.linalg.products import vecdot
from symgrad.ops.loops.while_loop import looping
from symgrad.ops.select import where
from symgrad.ops.shape import reshape

SLACK = 10  # by which the true residual may exceed the one that a method keeps up to date


class Iteration(NamedTuple):
    """A method by name, the part of |b| that the residual may have, and the most steps."""

    method: Literal["cg", "bicgstab"]
    tol: float
    most: int


def _converged_infer(
    x: TensorType, residual: TensorType, wanted: TensorType, *, method: str, most: int
) -> TensorType:
    require("f", x, residual, wanted)
    if residual.shape[-1:] != (1,) or wanted.shape[-1:] != (1,):
        raise ShapeError("a residual, and what is wanted of it, are one number in a row")
    return x


@op(
    infer=_converged_infer,
    kernel=kernels.converged,
    vjp=lambda g, y, x, residual, wanted, **attrs: (g, None, None),
    jvp=lambda t, y, x, residual, wanted, **attrs: t[0],
    batch=in_front,
    out=True,
    in_place=(0,),
    domain=((-1.0, 1.0), (0.0, 1.0), (2.0, 3.0)),
    cases=(case((3,), (1,), (1,), method="cg", most=3),),
    public=False,
)
def converged(x: Node, residual: Node, wanted: Node, /, method: str, most: int) -> Node:
    """x; where the norm of a residual is above the wanted one, the program raises."""
    ...


Function = Callable[[Node], Node]


def iterated(apply: Function, b: Node, how: Iteration, close: Function = lambda r: r) -> Node:
    """The x with apply(x) = b, of vectors; no derivative goes through the steps.

    `close` is the preconditioner, which is about the inverse of `apply`.
    """
    steps = METHODS[how.method]
    square = vecdot(b, b)
    limit = square * how.tol**2

    def goes_on(carry: tuple[Node, ...]) -> Node:
        made: Node = (carry[0] < how.most) & (carry[-1] > limit)
        return made

    start, step = steps(apply, close, b)
    found = looping(
        "while_loop",
        goes_on,
        lambda c: (c[0] + 1, *step(*c[1:])),
        (constant(0), zeros_like(b), *start, square),
        None,
    )
    x: Node = found[1]
    left = b - apply(x)
    size, wanted = sqrt(vecdot(left, left)), sqrt(square) * (SLACK * how.tol)
    one = (1,)
    return converged(x, reshape(size, one), reshape(wanted, one), method=how.method, most=how.most)


Steps = tuple[tuple[Node, ...], Callable[..., tuple[Node, ...]]]


def _conjugate_gradients(apply: Function, close: Function, b: Node) -> Steps:
    """M. R. Hestenes and E. Stiefel, Methods of conjugate gradients, 1952."""

    def step(x: Node, r: Node, p: Node, rho: Node, square: Node) -> tuple[Node, ...]:
        image = apply(p)
        curved = vecdot(p, image)
        # Along a direction of no positive curvature there is no step: NaN ends the loop.
        length = where(curved > 0, rho / curved, float("nan"))
        left = r - length * image
        near = close(left)
        now = vecdot(left, near)
        return x + length * p, left, near + now / rho * p, now, vecdot(left, left)

    first = close(b)
    return (b, first, vecdot(b, first)), step


def _stabilised(apply: Function, close: Function, b: Node) -> Steps:
    """H. A. van der Vorst, Bi-CGSTAB, 1992, with b as the shadow of the first residual."""

    def step(x: Node, r: Node, p: Node, rho: Node, square: Node) -> tuple[Node, ...]:
        along = close(p)
        image = apply(along)
        length = rho / vecdot(b, image)
        half = r - length * image
        near = close(half)
        turned = apply(near)
        size = vecdot(turned, turned)
        damped = where(size > 0, vecdot(turned, half) / size, 0)
        left = half - damped * turned
        met = vecdot(b, left)
        onward = left + met / rho * (length / damped) * (p - damped * image)
        return x + length * along + damped * near, left, onward, met, vecdot(left, left)

    return (b, b, vecdot(b, b)), step


METHODS: Mapping[str, Callable[[Function, Function, Node], Steps]] = MappingProxyType(
    {"cg": _conjugate_gradients, "bicgstab": _stabilised}
)


def iteration(
    method: Literal["cg", "bicgstab"], b: Node, tol: float | None, maxiter: int | None
) -> Iteration:
    """A method with its limits: by default eps to the 2/3 of |b|, and ten steps an element."""
    if maxiter is None:
        most = 10 * b.size if isinstance(b.size, int) else 10_000
    elif type(maxiter) is not int or maxiter < 0:
        raise GraphError(f"maxiter is an int, 0 or more, not {maxiter!r:.60}")
    else:
        most = maxiter
    least = float(np.finfo(b.dtype).eps)
    part = least ** (2 / 3) if tol is None else tol
    if isinstance(part, bool) or not isinstance(part, (int, float)) or not part >= 0:
        raise GraphError(f"tol is a number, 0 or more, not {tol!r:.60}")
    return Iteration(method, float(part), most)
