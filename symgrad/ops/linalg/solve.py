"""Systems of linear equations, and the diagonals of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from symgrad.ir.dims import Shape, Size, evaluate, least
from symgrad.ir.errors import DtypeError, ShapeError, SymgradError
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import Cotangent, case
from symgrad.ir.operators import call
from symgrad.ir.types import TensorType, as_shape, broadcast_shapes, normalize_axes, require_equal
from symgrad.ops import kernels
from symgrad.ops.batch import in_front
from symgrad.ops.declare import NodeLike, common_dtype, composite, linear, require
from symgrad.ops.linalg.products import matmul_p, matrix_op, require_matrix
from symgrad.ops.reduce import sum
from symgrad.ops.series import Series, quotient_series
from symgrad.ops.shape import matrix_transpose, moveaxis

# ---- systems of equations -------------------------------------------------------------------


def require_lapack(t: TensorType) -> None:
    """Refuse a dtype that LAPACK does not take."""
    require("fc", t)
    if t.dtype.itemsize < 4:
        raise DtypeError(f"LAPACK has no {t.dtype.name}; convert it with astype")


def require_square(t: TensorType) -> None:
    """Refuse what LAPACK does not take, and matrices that are not square."""
    require_lapack(t)
    require_matrix(t)
    require_equal(t.shape[-2], t.shape[-1])


def square_infer(t: TensorType) -> TensorType:
    """The type of a square matrix that is made of another."""
    require_square(t)
    return t


def _inv_pullback(g: Node, y: Node, x: Node) -> Node:
    back = matrix_transpose(y)
    return -matmul_p(matmul_p(back, g), back)


@matrix_op(
    infer=square_infer,
    kernel=np.linalg.inv,
    source="np.linalg.inv",
    pullback=_inv_pullback,
    pushforward=lambda t, y, x: -matmul_p(matmul_p(y, t), y),
    flops=lambda t: 2 * t.size * t.shape[-1],
    unbounded_slope=True,
    cases=(case((3, 3)), case((2, 2, 2)), case((0, 0))),
)
def inv_p(x: NodeLike, /) -> Node:
    """The inverse of a square matrix, over the last two axes."""
    ...


def solve_infer(a: TensorType, b: TensorType) -> TensorType:
    """The type of the solutions of a @ y = b. Raises `ShapeError` if there are none."""
    require_square(a)
    require_matrix(b)
    require_equal(a.shape[-1], b.shape[-2])
    return b.with_shape((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]))


def _solve_vjp(g: Node, y: Node, a: Node, b: Node) -> tuple[Cotangent, ...]:
    back = solve_p(matrix_transpose(a), g)
    return -matmul_p(back, matrix_transpose(y)), back


def _solve_jvp(t: tuple[Cotangent, ...], y: Node, a: Node, b: Node) -> Cotangent:
    left = None if t[0] is None else matmul_p(t[0], y)
    if left is None:
        return None if t[1] is None else solve_p(a, t[1])
    return -solve_p(a, left) if t[1] is None else solve_p(a, t[1] - left)


def _solve_series(k: int, y: Series, a: Series, b: Series) -> Cotangent:
    return quotient_series(matmul_p, lambda left, first: solve_p(first, left))(k, y, a, b)


@matrix_op(
    infer=solve_infer,
    kernel=np.linalg.solve,
    source="np.linalg.solve",
    promote=common_dtype,
    vjp=_solve_vjp,
    jvp=_solve_jvp,
    series=_solve_series,
    flops=lambda a, b: 2 * a.size * a.shape[-1] // 3 + 2 * solve_infer(a, b).size * a.shape[-1],
    unbounded_slope=True,
    cases=(case((3, 3), (3, 2)), case((2, 1, 2, 2), (3, 2, 1)), case((0, 0), (0, 2))),
)
def solve_p(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The matrix y with x1 @ y = x2."""
    ...


# ---- diagonals ------------------------------------------------------------------------------


def _diagonal_length(shape: Shape, offset: int) -> Size:
    rows, columns = shape
    found = least(rows + min(offset, 0), columns - max(offset, 0))
    return max(0, found) if isinstance(found, int) else found


def _diagonal_too_short(shape: Shape, offset: int, sizes: Mapping[str, int]) -> SymgradError | None:
    """The error to raise if a matrix of these sizes has no such diagonal; None if it has."""
    here = tuple(evaluate(s, sizes) for s in shape[-2:])
    if evaluate(_diagonal_length(shape[-2:], offset), sizes) == _diagonal_length(here, offset):
        return None
    size, rest = (shape[-1], "") if offset > 0 else (shape[-2], ", :")
    return ShapeError(
        f"matrices of shape {here} have no diagonal {offset}; feed larger ones, or, where "
        f"it may be empty, write the main diagonal of "
        f'x[..., sg.dim("min({size}, {abs(offset)})"):{rest}]'
    )


def _diagonal_margins(shape: Shape, offset: int) -> tuple[Size, Size]:
    """Sizes that are both 0 or more only where matrices have such a diagonal."""
    return shape[-2] + min(offset, 0), shape[-1] - max(offset, 0)


def _diagonal_infer(t: TensorType, *, offset: int) -> TensorType:
    require_matrix(t)
    return t.with_shape((*t.shape[:-2], _diagonal_length(t.shape[-2:], offset)))


def _on_diagonal_infer(t: TensorType, *, shape: tuple[Size, Size], offset: int) -> TensorType:
    if t.ndim == 0:
        raise ShapeError("a scalar is no diagonal of a matrix")
    require_equal(t.shape[-1], _diagonal_length(shape, offset))
    return t.with_shape((*t.shape[:-1], *shape))


@linear(
    infer=_diagonal_infer,
    kernel=kernels.diagonal,
    index_map=True,
    transpose=lambda g, x, offset: call("on_diagonal", g, shape=x.shape[-2:], offset=offset),
    too_small=lambda t, sizes, offset: _diagonal_too_short(t.shape, offset, sizes),
    margins=lambda t, offset: _diagonal_margins(t.shape, offset),
    view=True,
    cases=(case((3, 4), offset=0), case((2, 3, 3), offset=-1), case((2, 3), offset=1)),
    batch=in_front,
    data_movement=True,
)
def diagonal_p(x: NodeLike, /, offset: int) -> Node:
    """The elements x[..., i, i + offset]."""
    ...


@linear(
    infer=_on_diagonal_infer,
    kernel=kernels.on_diagonal,
    index_map=True,
    transpose=lambda g, x, shape, offset: diagonal_p(g, offset=offset),
    too_small=lambda t, sizes, shape, offset: _diagonal_too_short(shape, offset, sizes),
    margins=lambda t, shape, offset: _diagonal_margins(shape, offset),
    normalize=lambda t, shape, offset: {"shape": as_shape(shape), "offset": offset},
    out=True,
    cases=(case((3,), shape=(3, 4), offset=0), case((2, 2), shape=(3, 3), offset=-1)),
    batch=in_front,
    data_movement=True,
    zero_filled=True,
    public=False,
)
def on_diagonal(x: NodeLike, /, shape: Shape, offset: int) -> Node:
    """Matrices of zeros, with x on a diagonal: diagonal, transposed."""
    ...


@composite(numpy=(np.diagonal,))
def diagonal(x: NodeLike, /, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
    """A diagonal over two axes, which becomes the last axis; `offset` counts upwards from it.

    `linalg.diagonal` is that of the last two axes.
    """
    node = as_node(x)
    first, second = (normalize_axes((a,), node.ndim)[0] for a in (axis1, axis2))
    normalize_axes((first, second), node.ndim)
    return diagonal_p(moveaxis(node, (first, second), (-2, -1)), offset=int(offset))


@composite(numpy=(np.trace,))
def trace(
    x: NodeLike, /, *, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None
) -> Node:
    """The sum of a diagonal over two axes. `linalg.trace` is that of the last two axes."""
    return sum(diagonal(x, offset=offset, axis1=axis1, axis2=axis2), axis=-1, dtype=dtype)


@composite(numpy=(np.diag,))
def diag(x: NodeLike, /, *, k: int = 0) -> Node:
    """The square matrix with a vector on its k-th diagonal, or the diagonal of a matrix."""
    node = as_node(x)
    if node.ndim not in (1, 2):
        raise ShapeError(f"diag takes a vector or a matrix; {node.type!r} has {node.ndim} axes")
    if node.ndim == 2:
        return diagonal_p(node, offset=int(k))
    size = node.shape[0] + abs(int(k))
    return on_diagonal(node, shape=(size, size), offset=int(k))
