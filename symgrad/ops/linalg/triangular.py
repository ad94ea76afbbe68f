"""Triangular matrices, and positive definite ones, which are products of two: systems, factors.

Derivatives after Giles, Collected matrix derivative results for forward and reverse mode
algorithmic differentiation, 2008, and Murray, Differentiation of the Cholesky decomposition, 2016.
"""

from __future__ import annotations

import numpy as np

from symgrad.ir.errors import UnsupportedError
from symgrad.ir.node import Node
from symgrad.ir.op import Cotangent, case
from symgrad.ir.types import TensorType
from symgrad.ops.complexes import conj, part_dtype, real
from symgrad.ops.creation import tril, triu
from symgrad.ops.declare import NodeLike, common_dtype, composite, require
from symgrad.ops.elementwise import log
from symgrad.ops.flows import total
from symgrad.ops.leaves import eye
from symgrad.ops.linalg import kernels
from symgrad.ops.linalg.products import matmul_p, matrix_op
from symgrad.ops.linalg.solve import (
    diagonal_p,
    require_square,
    solve_infer,
    square_infer,
)
from symgrad.ops.reduce import as_float, sum
from symgrad.ops.select import where
from symgrad.ops.shape import matrix_transpose, on_columns, reshape

NAMESPACE = "linalg"


# ---- triangles ------------------------------------------------------------------------------


def adjoint(x: Node) -> Node:
    """The conjugate transpose; that of a real transpose is what was transposed."""
    turned: Node = matrix_transpose(conj(x) if x.tensor.is_complex else x)
    source = x.inputs[0] if x.op is turned.op else None
    if source is None or x.tensor.is_complex or matrix_transpose(source).attrs != x.attrs:
        return turned
    return source


def triangle(x: Node, lower: bool) -> Node:
    """One half of a square matrix with the diagonal, and zeros."""
    return tril(x) if lower else triu(x)


def hermitian(x: Node) -> Node:
    """The Hermitian part."""
    return (x + adjoint(x)) / 2


def _half_lower(x: Node) -> Node:
    """The lower triangle with half of the diagonal: a Hermitian x is its sum with its adjoint."""
    return (tril(x) + tril(x, k=-1)) / 2


def from_lower(x: Node) -> Node:
    """The Hermitian matrix with the lower triangle of x."""
    half = _half_lower(x)
    return half + adjoint(half)


# ---- systems --------------------------------------------------------------------------------


def _pivots_infer(x: TensorType) -> TensorType:
    require("fc", x)
    return x


@matrix_op(
    infer=_pivots_infer,
    kernel=kernels.pivots,
    pullback=lambda g, y, x: g,
    pushforward=lambda t, y, x: t,
    flops=lambda t: 0,
    out=True,
    in_place=(0,),
    domain=((1.0, 2.0),),
    cases=(case((3,)), case((2, 0))),
    public=False,
)
def pivots(x: NodeLike, /) -> Node:
    """x, the diagonal of a matrix that is to be regular: a 0 on it raises when the program runs."""
    ...


def _solve_triangular_infer(a: TensorType, b: TensorType, *, lower: bool) -> TensorType:
    return solve_infer(a, b)


def _solve_triangular_vjp(g: Node, y: Node, a: Node, b: Node, lower: bool) -> tuple[Cotangent, ...]:
    back = solve_triangular_p(matrix_transpose(a), g, lower=not lower)
    return triangle(-matmul_p(back, matrix_transpose(y)), lower), back


def _solve_triangular_jvp(
    t: tuple[Cotangent, ...], y: Node, a: Node, b: Node, lower: bool
) -> Cotangent:
    moved = total(t[1], None if t[0] is None else -matmul_p(triangle(t[0], lower), y))
    return None if moved is None else solve_triangular_p(a, moved, lower=lower)


@matrix_op(
    infer=_solve_triangular_infer,
    kernel=kernels.solve_triangular,
    promote=common_dtype,
    vjp=_solve_triangular_vjp,
    jvp=_solve_triangular_jvp,
    flops=lambda a, b, lower: solve_infer(a, b).size * a.shape[-1],
    cases=(
        case((3, 3), (3, 2), lower=True),
        case((2, 1, 2, 2), (3, 2, 1), lower=False),
        case((0, 0), (0, 2), lower=True),
    ),
)
def solve_triangular_p(a: NodeLike, b: NodeLike, /, lower: bool) -> Node:
    """The y with a @ y = b, of matrices, where of a only one triangle is read."""
    ...


@composite()
def solve_triangular(
    a: NodeLike,
    b: NodeLike,
    /,
    *,
    lower: bool = False,
    trans: int | str = 0,
    unit_diagonal: bool = False,
) -> Node:
    """The y with a @ y = b, of a square triangular a, and a vector or matrix b; SciPy's.

    Only the upper triangle of a is read, or the `lower`; with `unit_diagonal` its diagonal counts
    as ones. `trans=1` ("T") solves with the transpose of a, `trans=2` ("C") with its conjugate.
    The other axes broadcast, and integers become float64. Raises `ShapeError` for what does not
    fit, `UnsupportedError` for another `trans`; a 0 on the diagonal raises when the program runs.

    >>> solve_triangular(placeholder("a", (3, 3)), placeholder("b", 3)).type
    float64[3]
    """
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise UnsupportedError(f"trans is 0, 1, 2, 'N', 'T' or 'C', not {trans!r}")
    matrix, right = as_float(a), as_float(b)
    require_square(matrix.tensor)
    if unit_diagonal:
        matrix = where(eye(matrix.shape[-1], dtype="bool"), 1, matrix)
    if trans not in (0, "N"):
        matrix = matrix_transpose(matrix) if trans in (1, "T") else adjoint(matrix)
        lower = not lower
    return on_columns(lambda b: solve_triangular_p(matrix, b, lower=bool(lower)), right)


def _inv_triangular_infer(t: TensorType, *, lower: bool) -> TensorType:
    return square_infer(t)


def _inv_triangular_pullback(g: Node, y: Node, x: Node, lower: bool) -> Node:
    back = matrix_transpose(y)
    return triangle(-matmul_p(matmul_p(back, g), back), lower)


@matrix_op(
    infer=_inv_triangular_infer,
    kernel=kernels.inv_triangular,
    pullback=_inv_triangular_pullback,
    pushforward=lambda t, y, x, lower: -matmul_p(matmul_p(y, triangle(t, lower)), y),
    flops=lambda t, lower: t.size * t.shape[-1] // 3,
    cases=(case((3, 3), lower=True), case((2, 2, 2), lower=False), case((0, 0), lower=True)),
    public=False,
)
def inv_triangular(x: NodeLike, /, lower: bool) -> Node:
    """The inverse of a triangular matrix, of which the other half is not read."""
    ...


# ---- positive definite matrices -------------------------------------------------------------


def _cholesky_pullback(g: Node, y: Node, x: Node) -> Node:
    inner = from_lower(matmul_p(adjoint(y), g))
    half = solve_triangular_p(adjoint(y), inner, lower=False)
    return adjoint(solve_triangular_p(adjoint(y), adjoint(half), lower=False)) / 2


def _cholesky_pushforward(t: Node, y: Node, x: Node) -> Node:
    half = solve_triangular_p(y, hermitian(t), lower=True)
    return matmul_p(y, _half_lower(solve_triangular_p(y, adjoint(half), lower=True)))


@matrix_op(
    infer=square_infer,
    kernel=kernels.cholesky,
    out=True,
    in_place=(0,),
    pullback=_cholesky_pullback,
    pushforward=_cholesky_pushforward,
    flops=lambda t: t.size * t.shape[-1] // 3,
    holomorphic=False,
    symmetric=True,
    cases=(case((3, 3)), case((2, 2, 2)), case((0, 0))),
)
def cholesky_p(x: NodeLike, /) -> Node:
    """The lower triangular y with y @ y.mH = x, of a positive definite x."""
    ...


@composite(numpy=(np.linalg.cholesky,))
def cholesky(x: NodeLike, /, *, upper: bool = False) -> Node:
    """The lower triangular y with y @ y.mH = x, or the upper one with y.mH @ y = x.

    x is taken for a symmetric (Hermitian) positive definite matrix, over the last two axes: its
    lower triangle is read, and its gradient is symmetric too. Integers become float64. Raises
    `ShapeError` for a matrix that is not square; one that is not positive definite raises when
    the program runs.

    >>> cholesky(placeholder("x", (3, 3))).type
    float64[3, 3]
    """
    y = cholesky_p(as_float(x))
    return adjoint(y) if upper else y


@composite()
def cho_solve(x: NodeLike, b: NodeLike, /, *, upper: bool = False) -> Node:
    """The y with a @ y = b, given x = cholesky(a, upper=upper), and a vector or matrix b.

    The other axes broadcast, and integers become float64. Raises as `solve_triangular` does.

    >>> cho_solve(cholesky(placeholder("a", (3, 3))), placeholder("b", 3)).type
    float64[3]
    """
    factor = as_float(x)
    lower = adjoint(factor) if upper else factor

    def solved(b: Node) -> Node:
        half = solve_triangular_p(lower, b, lower=True)
        return solve_triangular_p(adjoint(lower), half, lower=False)

    return on_columns(solved, as_float(b))


# What a loss of a Cholesky factor is a function of, if it is one of the matrix: see passes.systems.


def _solve_definite_vjp(g: Node, y: Node, a: Node, b: Node) -> tuple[Cotangent, ...]:
    back = solve_definite(a, g)
    return -hermitian(matmul_p(back, adjoint(y))), back


def _solve_definite_jvp(t: tuple[Cotangent, ...], y: Node, a: Node, b: Node) -> Cotangent:
    moved = total(t[1], None if t[0] is None else -matmul_p(hermitian(t[0]), y))
    return None if moved is None else solve_definite(a, moved)


@matrix_op(
    infer=solve_infer,
    kernel=kernels.solve_definite,
    promote=common_dtype,
    vjp=_solve_definite_vjp,
    jvp=_solve_definite_jvp,
    flops=lambda a, b: a.size * a.shape[-1] // 3 + 2 * solve_infer(a, b).size * a.shape[-1],
    holomorphic=False,
    symmetric=True,
    cases=(case((3, 3), (3, 2)), case((2, 1, 2, 2), (3, 2, 1)), case((0, 0), (0, 2))),
    public=False,
)
def solve_definite(a: NodeLike, b: NodeLike, /) -> Node:
    """The y with a @ y = b, of a positive definite a."""
    ...


def _inv_definite_flow(t: Node, y: Node, x: Node) -> Node:
    return -matmul_p(matmul_p(y, hermitian(t)), y)


@matrix_op(
    infer=square_infer,
    kernel=kernels.inv_definite,
    pullback=_inv_definite_flow,
    pushforward=_inv_definite_flow,
    flops=lambda t: 8 * t.size * t.shape[-1] // 3,
    holomorphic=False,
    symmetric=True,
    cases=(case((3, 3)), case((2, 2, 2)), case((0, 0))),
    public=False,
)
def inv_definite(x: NodeLike, /) -> Node:
    """The inverse of a positive definite matrix."""
    ...


def _logdet_definite_infer(t: TensorType) -> TensorType:
    require_square(t)
    return TensorType(t.shape[:-2], part_dtype(t.dtype))


@matrix_op(
    infer=_logdet_definite_infer,
    kernel=kernels.logdet_definite,
    pullback=lambda g, y, x: reshape(g, (*g.shape, 1, 1)) * inv_definite(x),
    pushforward=lambda t, y, x: real(
        sum(diagonal_p(solve_definite(x, hermitian(t)), offset=0), axis=-1)
    ),
    flops=lambda t: t.size * t.shape[-1] // 3,
    holomorphic=False,
    symmetric=True,
    cases=(case((3, 3)), case((2, 2, 2)), case((0, 0))),
    public=False,
)
def logdet_definite(x: NodeLike, /) -> Node:
    """The logarithm of the determinant of a positive definite matrix."""
    ...


def log_diagonal(x: Node) -> Node:
    """The sum of the logarithms of the diagonal."""
    return sum(log(real(diagonal_p(x, offset=0))), axis=-1)
