"""Linear systems by iterative methods: the matrix is a function, and no entry of it is needed.

The solution is differentiated as what it is, by systems of the same kind: the tangent solves
A dx = db - dA x, and the adjoint system has the transpose, which is the vjp of the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from symgrad.autodiff.transforms import jvp
from symgrad.ir.errors import DtypeError, GradientError, GraphError, ShapeError
from symgrad.ir.node import Node, as_node, describe
from symgrad.ir.origin import inner_name, traced
from symgrad.ir.walk import topological
from symgrad.ops.declare import NodeLike, explaining
from symgrad.ops.identity import stop_gradient
from symgrad.ops.leaves import placeholder
from symgrad.ops.loops.calls import calling
from symgrad.ops.loops.implicit import solution_of
from symgrad.ops.loops.krylov import Iteration, iterated, iteration
from symgrad.ops.loops.loop import named_sizes, substituted
from symgrad.ops.loops.scan import closed
from symgrad.ops.reduce import as_float
from symgrad.ops.shape import reshape


@explaining
def cg(a: Any, b: NodeLike, *, tol: float | None = None, maxiter: int | None = None) -> Node:
    """The x with a(x) = b by conjugate gradients, of a symmetric positive definite a.

    a is a linear function of an array like b, of which no matrix is made, or a matrix, dense or
    sparse. b is of real floats, and of any shape that a takes. It has converged when |b - a(x)|,
    over all elements, is no larger than `tol` times |b|, by default eps to the 2/3.

    Gradients of every order, in both modes, by b and by what a reads, are those of the solution,
    and cost one more system each (the adjoint system); no step is kept. Raises `LinAlgError`, with
    the line and the residual, when the program runs and it did not converge in `maxiter` steps, by
    default ten for each element; `GraphError` for an a that is seen not to be linear, `ShapeError`
    for one that does not give what it takes.

    M. R. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear systems, 1952.

    >>> k = placeholder("k", 5)
    >>> cg(lambda v: k * v + 2 * v, ones(5)).type
    float64[5]
    """
    return _system("cg", a, b, tol, maxiter)


@explaining
def bicgstab(a: Any, b: NodeLike, *, tol: float | None = None, maxiter: int | None = None) -> Node:
    """The x with a(x) = b by stabilised biconjugate gradients, of any regular a.

    The rest is as in `cg`; a need not be symmetric, and each step multiplies by it twice. It may
    fail where a solution exists, which raises `LinAlgError`.

    H. A. van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG, 1992.

    >>> k = placeholder("k", (5, 5))
    >>> bicgstab(k, ones(5)).type
    float64[5]
    """
    return _system("bicgstab", a, b, tol, maxiter)


def _system(
    method: Literal["cg", "bicgstab"],
    a: Any,
    b: NodeLike,
    tol: float | None,
    maxiter: int | None,
) -> Node:
    right = as_float(b)
    if right.dtype.kind != "f":
        raise DtypeError(f"{method} takes a b of real floats, not {describe(right)}")
    how = iteration(method, right, tol, maxiter)

    def apply(v: Node) -> Node:
        x = reshape(v, right.shape)
        with calling(method, "a(x)", x=[x]):
            image = as_node(a(x) if callable(a) else a @ x)
        if image.type != x.type:
            raise ShapeError(f"x is {x.type!r}, and a(x) is {image.type!r}")
        return reshape(image, (right.size,))

    return reshape(solved(apply, reshape(right, (right.size,)), how), right.shape)


def solved(apply: Callable[[Node], Node], b: Node, how: Iteration) -> Node:
    """The vector x with apply(x) = b by an iterative method, differentiated as that."""
    z, t = (placeholder(inner_name(name), b.shape, b.dtype) for name in "zt")
    with traced(how.method):
        image = apply(z)
    _refuse_curved(how.method, image, z, t)
    body, around = closed(how.method, [image], [z])

    def frozen(v: Node) -> Node:
        given = (v, *map(stop_gradient, around))
        return substituted(body.outputs, dict(zip(body.inputs, given, strict=True)))[0]

    found = iterated(frozen, stop_gradient(b), how)
    residual, fixed = closed(how.method, [image - b], [z])
    return solution_of(stop_gradient(found), residual, fixed, named_sizes(residual.nodes), how)


def _refuse_curved(method: str, image: Node, z: Node, t: Node) -> None:
    """Refuse a function whose derivative is seen to depend on where it is taken."""
    try:
        (slope,) = jvp([image], [z], [t], disconnected="zero")
    except GradientError:  # a function without a forward mode
        return
    if any(n is z for n in topological([slope])):
        raise GraphError(f"{method} takes a linear function a, and a(x) is not linear in x")
