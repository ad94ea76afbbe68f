"""Linear systems by iterative methods: the matrix is a function, and no entry of it is needed.

The solution is differentiated as what it is, by systems of the same kind: the tangent solves
A dx = db - dA x, and the adjoint system has the transpose, which is the vjp of the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from symgrad.autodiff.transforms import jvp
from symgrad.ir.arraylike import is_function
from symgrad.ir.errors import DtypeError, GradientError, GraphError, ShapeError
from symgrad.ir.node import Node, as_node, describe
from symgrad.ir.origin import inner_name, traced
from symgrad.ops.declare import NodeLike, explaining
from symgrad.ops.identity import stop_gradient
from symgrad.ops.leaves import placeholder
from symgrad.ops.logic import isfinite
from symgrad.ops.loops.calls import calling
from symgrad.ops.loops.implicit import solution_of
from symgrad.ops.loops.krylov import Iteration, iterated, iteration
from symgrad.ops.loops.loop import named_sizes, substituted
from symgrad.ops.loops.scan import closed
from symgrad.ops.reduce import as_float
from symgrad.ops.shape import reshape


@explaining
def cg(
    a: Any, b: NodeLike, *, tol: float | None = None, maxiter: int | None = None, M: Any = None
) -> Node:
    """The x with a(x) = b by conjugate gradients, of a symmetric positive definite a.

    a is a linear function of an array like b, of which no matrix is made, or a matrix, dense or
    sparse. b is of real floats, and of any shape that a takes. It has converged when |b - a(x)|,
    over all elements, is no larger than `tol` times |b|, by default eps to the 2/3. M is a
    preconditioner, a function or a matrix like a that is about its inverse, here symmetric and
    positive definite as well: the closer, the fewer steps. No gradient flows to what it reads.

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
    return _system("cg", a, b, tol, maxiter, M)


@explaining
def bicgstab(
    a: Any, b: NodeLike, *, tol: float | None = None, maxiter: int | None = None, M: Any = None
) -> Node:
    """The x with a(x) = b by stabilised biconjugate gradients, of any regular a.

    The rest is as in `cg`; a and M need not be symmetric, and each step multiplies twice by each.
    It may fail where a solution exists, which raises `LinAlgError`.

    H. A. van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG, 1992.

    >>> k = placeholder("k", (5, 5))
    >>> bicgstab(k, ones(5)).type
    float64[5]
    """
    return _system("bicgstab", a, b, tol, maxiter, M)


def _system(
    method: Literal["cg", "bicgstab"],
    a: Any,
    b: NodeLike,
    tol: float | None,
    maxiter: int | None,
    close: Any,
) -> Node:
    right = as_float(b)
    if right.dtype.kind != "f":
        raise DtypeError(f"{method} takes a b of real floats, not {describe(right)}")
    how = iteration(method, right, tol, maxiter)
    given = {"a": a} if close is None else {"a": a, "M": close}
    functions = [_of_vectors(method, name, f, right) for name, f in given.items()]
    return reshape(solved(functions[0], _flat(right), how, *functions[1:]), right.shape)


def _flat(x: Node) -> Node:
    return reshape(x, (x.size,))


def _of_vectors(method: str, name: str, f: Any, like: Node) -> Callable[[Node], Node]:
    """A function of arrays, or a matrix, as a function of vectors."""

    def apply(v: Node) -> Node:
        x = reshape(v, like.shape)
        with calling(method, f"{name}(x)", x=[x]):
            image = as_node(f(x) if is_function(f) else f @ x)
        if image.type != x.type:
            raise ShapeError(f"x is {x.type!r}, and {name}(x) is {image.type!r}")
        return _flat(image)

    return apply


def solved(
    apply: Callable[[Node], Node], b: Node, how: Iteration, *close: Callable[[Node], Node]
) -> Node:
    """The vector x with apply(x) = b by an iterative method, differentiated as that.

    `close` is the preconditioner, if there is one.
    """
    z, t = (placeholder(inner_name(name), b.shape, b.dtype) for name in "zt")
    with traced(how.method):
        images = [f(z) for f in (apply, *close)]
    for name, image in zip(("a", "M"), images, strict=False):
        _refuse_curved(how.method, name, image, z, t)
    body, around = closed(how.method, images, [z])

    def frozen(place: int) -> Callable[[Node], Node]:
        def of(v: Node) -> Node:
            given = (v, *map(stop_gradient, around))
            actual = dict(zip(body.inputs, given, strict=True))
            return substituted([body.outputs[place]], actual)[0]

        return of

    found = iterated(frozen(0), stop_gradient(b), how, *map(frozen, range(1, len(images))))
    residual, fixed = closed(how.method, [images[0] - b, *images[1:]], [z])
    return solution_of(stop_gradient(found), residual, fixed, named_sizes(residual.nodes), how)


def _refuse_curved(method: str, name: str, image: Node, z: Node, t: Node) -> None:
    """Refuse a function whose derivative is seen to depend on where it is taken."""
    try:
        (slope,) = jvp([image], [z], [t], disconnected="zero")
    except GradientError:  # a function without a forward mode
        return
    stack, seen = [slope], set()
    while stack:
        node = stack.pop()
        if node is z:
            raise GraphError(
                f"{method} takes a linear function {name}, and {name}(x) is not linear in x"
            )
        # A derivative asks whether what flows is 0, or finite, to keep it from infinite slopes.
        if node not in seen and node.op is not isfinite.op and not _is_bool_of_float(node):
            seen.add(node)
            stack += node.inputs


def _is_bool_of_float(node: Node) -> bool:
    return node.op.cast and node.dtype.kind == "b" and node.inputs[0].tensor.is_inexact
