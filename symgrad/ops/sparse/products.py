"""Products of sparse matrices with dense ones, and systems: ops that know the pattern.

A pattern is that of compressed rows: the columns of the entries of row i are
`indices[indptr[i] : indptr[i + 1]]`, in order. It is an attribute, since what depends on it, such
as which entries of a Jacobian there are, is known when a graph is built. The values are a node.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.dims import Shape, product
from symgrad.ir.errors import DtypeError, ShapeError
from symgrad.ir.node import Node, constant_node
from symgrad.ir.op import Cotangent, case
from symgrad.ir.types import TensorType, broadcast_shapes, require_equal
from symgrad.ir.values import ArrayData
from symgrad.ops import batch
from symgrad.ops.declare import NodeLike, common_dtype, op, require
from symgrad.ops.flows import total
from symgrad.ops.index.gather import gather
from symgrad.ops.reduce import sum
from symgrad.ops.shape import reshape
from symgrad.ops.sparse import kernels

# Patterns with which the ops are tried: of 3 rows and 4 columns, one row empty; of 3 and 3; none.
_WIDE, _SQUARE, _EMPTY = (
    {"indices": ArrayData(np.array(at, np.int32)), "indptr": ArrayData(np.array(ends, np.int32))}
    for at, ends in (([0, 3, 1, 2], [0, 2, 2, 4]), ([0, 1, 1, 2], [0, 2, 3, 4]), ([], [0]))
)


def require_pattern(indices: ArrayData, indptr: ArrayData, columns: int) -> None:
    """Refuse what are no compressed rows, each with its columns in order. Raises `ShapeError`."""
    if indices.memo is not None and indices.memo[0] is indptr and indices.memo[1] == columns:
        return  # it has been seen to be one
    at, ends = indices.array, indptr.array
    plain = all(a.ndim == 1 and a.dtype in (np.int32, np.int64) for a in (at, ends)) and ends.size
    if not plain or ends[0] != 0 or ends[-1] != at.size or (np.diff(ends) < 0).any():
        raise ShapeError("indptr is to count, from 0, the int32 or int64 indices of row after row")
    if at.size and not 0 <= at.min() <= at.max() < columns:
        raise ShapeError(f"the indices of a sparse matrix of {columns} columns lie within them")
    within = np.ones(max(at.size - 1, 0), bool)
    inner = ends[1:-1]
    within[inner[(inner > 0) & (inner < at.size)] - 1] = False
    if (np.diff(at)[within] <= 0).any():
        raise ShapeError("the indices of each row of a sparse matrix are to be in order, each once")
    indices.memo = (indptr, columns)


def rows_of(indptr: ArrayData) -> np.ndarray[Any, np.dtype[Any]]:
    """The row of each entry."""
    return np.repeat(np.arange(indptr.array.size - 1), np.diff(indptr.array))


def _operand_infer(values: TensorType, x: TensorType, indices: ArrayData) -> Shape:
    """The axes in front of the values and the matrices, of which there may be many."""
    require("iufc", values, x)
    for t in (values, x):
        if t.dtype.kind == "f" and t.dtype.itemsize < 4:
            raise DtypeError(f"SciPy has no sparse {t.dtype.name}; convert it with astype")
        if t.ndim < 2:
            raise ShapeError(f"values and matrices have two axes or more; {t!r} has {t.ndim}")
    require_equal(values.shape[-2], 1)
    require_equal(values.shape[-1], indices.array.size)
    return broadcast_shapes(values.shape[:-2], x.shape[:-2])


def _matmul_infer(
    values: TensorType,
    x: TensorType,
    *,
    indices: ArrayData,
    indptr: ArrayData,
    columns: int,
    transposed: bool,
) -> TensorType:
    require_pattern(indices, indptr, columns)
    front = _operand_infer(values, x, indices)
    sizes = (indptr.array.size - 1, columns)
    rows, inner = sizes[::-1] if transposed else sizes
    require_equal(inner, x.shape[-2])
    return x.with_shape((*front, rows, x.shape[-1]))


def _at_entries(left: Node, right: Node, indices: ArrayData, indptr: ArrayData) -> Node:
    """Of left @ right.mT what is at the entries of a pattern, as a row."""
    rows = gather(left, constant_node(ArrayData(rows_of(indptr))), axis=left.ndim - 2)
    columns = gather(right, constant_node(indices), axis=right.ndim - 2)
    row = sum(rows * columns, axis=-1)
    return reshape(row, (*row.shape[:-1], 1, row.shape[-1]))


def _matmul_vjp(
    g: Node, y: Node, values: Node, x: Node, *, transposed: bool, columns: int, **pattern: Any
) -> tuple[Cotangent, ...]:
    by_values = _at_entries(*((x, g) if transposed else (g, x)), **pattern)
    back = sparse_matmul_p(values, g, transposed=not transposed, columns=columns, **pattern)
    return by_values, back


def _flops(values: TensorType, x: TensorType, **attrs: Any) -> int:
    front = product(broadcast_shapes(values.shape[:-2], x.shape[:-2]))
    return int(2 * front * values.shape[-1] * x.shape[-1])


@op(
    infer=_matmul_infer,
    kernel=kernels.sparse_matmul,
    promote=common_dtype,
    vjp=_matmul_vjp,
    bilinear=True,
    batch=batch.in_front,
    expensive=True,
    annihilators=(0, 1),
    flops=_flops,
    cases=(
        case((1, 4), (4, 2), **_WIDE, columns=4, transposed=False),
        case((1, 4), (3, 2), **_WIDE, columns=4, transposed=True),
        case((1, 4), (2, 4, 1), **_WIDE, columns=4, transposed=False),
        case((2, 1, 1, 4), (3, 3, 2), **_WIDE, columns=4, transposed=True),
        case((1, 0), (2, 2), **_EMPTY, columns=2, transposed=False),
    ),
    public=False,
)
def sparse_matmul_p(
    values: NodeLike,
    x: NodeLike,
    /,
    indices: ArrayData,
    indptr: ArrayData,
    columns: int,
    transposed: bool,
) -> Node:
    """A sparse matrix of a row of values, or its transpose, times matrices."""
    ...


def _solve_infer(
    values: TensorType, b: TensorType, *, indices: ArrayData, indptr: ArrayData, transposed: bool
) -> TensorType:
    require("fc", values, b)
    size = indptr.array.size - 1
    return _matmul_infer(
        values, b, indices=indices, indptr=indptr, columns=size, transposed=transposed
    )


def _solve_vjp(
    g: Node, y: Node, values: Node, b: Node, *, transposed: bool, **pattern: Any
) -> tuple[Cotangent, ...]:
    back = sparse_solve_p(values, g, transposed=not transposed, **pattern)
    return -_at_entries(*((y, back) if transposed else (back, y)), **pattern), back


def _solve_jvp(t: tuple[Cotangent, ...], y: Node, values: Node, b: Node, **attrs: Any) -> Cotangent:
    size = attrs["indptr"].array.size - 1
    left = None if t[0] is None else -sparse_matmul_p(t[0], y, columns=size, **attrs)
    moved = total(t[1], left)
    return None if moved is None else sparse_solve_p(values, moved, **attrs)


@op(
    infer=_solve_infer,
    kernel=kernels.sparse_solve,
    promote=common_dtype,
    vjp=_solve_vjp,
    jvp=_solve_jvp,
    batch=batch.in_front,
    expensive=True,
    flops=_flops,
    domain=((0.5, 3.0), (-3.0, 3.0)),
    cases=(
        case((1, 4), (3, 2), **_SQUARE, transposed=False),
        case((1, 4), (2, 3, 1), **_SQUARE, transposed=True),
        case((2, 1, 1, 4), (3, 3, 2), **_SQUARE, transposed=False),
        case((1, 0), (0, 2), **_EMPTY, transposed=False),
    ),
    public=False,
)
def sparse_solve_p(
    values: NodeLike, b: NodeLike, /, indices: ArrayData, indptr: ArrayData, transposed: bool
) -> Node:
    """The y with A @ y = b, of a sparse matrix A of a row of values, or of its transpose."""
    ...
