"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from symgrad.ir.along import Along, Cuts, Joined, Piecewise
from symgrad.ir.dims import Size, guess, product
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import Cotangent, case
from symgrad.ir.operators import call
from symgrad.ir.types import TensorType, broadcast_shapes, in_order, normalize_axis, require_equal
from symgrad.ops import batch, kernels
from symgrad.ops.declare import (
    NodeLike,
    apply_again,
    common_dtype,
    composite,
    op,
    require,
    vjp_of,
)
from symgrad.ops.reduce import sum
from symgrad.ops.rows import rows
from symgrad.ops.shape import (
    astype,
    broadcast_to,
    matrix_transpose,
    moveaxis,
    permute_dims,
    reshape,
    reshaped,
)

# An op that LAPACK computes, over the last two axes; it broadcasts over the others.
matrix_op = partial(op, expensive=True, batch=batch.in_front)


def require_matrix(*types: TensorType) -> None:
    """Refuse what has fewer than two axes."""
    for t in types:
        if t.ndim < 2:
            raise ShapeError(f"a matrix has two axes or more; {t!r} has {t.ndim}")


def _matmul_infer(a: TensorType, b: TensorType) -> TensorType:
    require("iufc", a, b)
    require_matrix(a, b)
    require_equal(a.shape[-1], b.shape[-2])
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.with_shape((*batch, a.shape[-2], b.shape[-1]))


def _matmul_vjp(g: Node, y: Node, a: Node, b: Node) -> tuple[Cotangent, ...]:
    return matmul_p(g, matrix_transpose(b)), matmul_p(matrix_transpose(a), g)


# To multiply so many rows by so few columns takes as long as to read the rows.
MANY_ROWS, FEW_COLUMNS = 256, 8
# Multiplications that are worth a second thread: five microseconds. From there on BLAS takes one,
# too, and leaves it spinning where machine code is to run next.
LEAST_SHARED = 2**18
# From a million multiplications on OpenBLAS packs operands, as machine code does. Below that, from
# 500 millions on, and of fewer rows or columns, machine code takes as long or longer.
LEAST_PACKED, MOST_PACKED = 2**20, 2**29
LEAST_ROWS, LEAST_COLUMNS = 32, 48


def is_thin(rows: Size, columns: Size) -> bool:
    """Whether a product of so many rows, with so few columns, is bound by memory."""
    many = not isinstance(rows, int) or rows >= MANY_ROWS
    return many and isinstance(columns, int) and columns <= FEW_COLUMNS


def _matmul_by_rows(a: TensorType, b: TensorType) -> tuple[bool, bool]:
    y = rows(_matmul_infer(a, b))
    if y is None or y[0] == 1:
        return False, False
    if y[0] > 2:
        return rows(a) == y, rows(b) == y
    return rows(a) == y and is_thin(y[1], b.shape[-1]), False


def _from_end(types: tuple[TensorType, ...], cuts: Cuts) -> list[int]:
    """Where operands are cut, the last axis being 1; 0 for those that are whole."""
    return [0 if c is None else t.ndim - c.axis for t, c in zip(types, cuts, strict=True)]


def _matmul_along(types: tuple[TensorType, ...], cuts: Cuts) -> Along:
    return Joined("add") if _from_end(types, cuts) == [1, 2] else Piecewise.KEPT


@op(
    infer=_matmul_infer,
    kernel=np.matmul,
    by_rows=_matmul_by_rows,
    promote=common_dtype,
    vjp=_matmul_vjp,
    bilinear=True,
    out=True,
    expensive=True,
    flops=lambda a, b: 2 * _matmul_infer(a, b).size * a.shape[-1],
    cases=(
        case((3, 4), (4, 2)),
        case((2, 3, 4), (4, 2)),
        case((2, 1, 3, 4), (5, 4, 2)),
        case((3, 0), (0, 2)),
    ),
    batch=batch.multiplied,
    along=_matmul_along,
)
def matmul_p(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The matrix product over the last two axes, broadcast over the others."""
    ...


@composite(numpy=(np.matmul, np.linalg.matmul))
def matmul(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The matrix product over the last two axes; a vector counts as a row left, a column right.

    Of booleans it is whether any of the pairs that a sum takes in is true in both.
    """
    sparse, other = (hasattr(type(x), "nnz") for x in (x1, x2))  # of ours or of SciPy's
    if sparse or other:
        from symgrad.ops.sparse.matrix import matrix

        y: Node = matrix(x1) @ x2 if sparse else matrix(x2).__rmatmul__(x1)
        return y
    a, b = as_node(x1), as_node(x2)
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(f"matmul({a.type!r}, {b.type!r}): a scalar has no matrix product; use *")
    # Refused before they become rows and columns, which nobody wrote.
    require_equal(a.shape[-1], b.shape[max(b.ndim - 2, 0)])
    if a.dtype == b.dtype == np.bool_:
        # Ones are counted, and rounding makes no count 0; of floats they are counted fastest.
        return astype(matmul(astype(a, "float32"), astype(b, "float32")), "bool")
    left = reshape(a, (1, *a.shape)) if a.ndim == 1 else a
    right = reshape(b, (*b.shape, 1)) if b.ndim == 1 else b
    y = matmul_p(left, right)
    shape = y.shape[:-1] if b.ndim == 1 else y.shape
    if a.ndim == 1:
        shape = (*shape[:-1],) if b.ndim == 1 else (*shape[:-2], shape[-1])
    return reshaped(y, shape)


@composite(numpy=(np.linalg.multi_dot,))
def multi_dot(arrays: Sequence[NodeLike], /) -> Node:
    """The product of several matrices, in the order that takes the fewest multiplications.

    The first and the last may be vectors. A named dimension counts as `dims.GUESS`. The order is
    found as in Cormen et al., Introduction to Algorithms, 3rd edition, section 15.2.

    >>> multi_dot([placeholder("a", (9, 2)), placeholder("b", (2, 9)), placeholder("c", 9)]).type
    float64[9]
    """
    nodes = [as_node(x) for x in in_order(arrays, "matrices", ShapeError)]
    if len(nodes) < 2 or any(x.ndim != 2 for x in nodes[1:-1]):
        listed = ", ".join(repr(x.type) for x in nodes)
        raise ShapeError(f"multi_dot multiplies two matrices or more, not [{listed}]")
    for a, b in pairwise(nodes):
        matmul(a, b)  # refuses what does not fit, and says so
    sizes = [1 if nodes[0].ndim == 1 else guess(nodes[0].shape[0])]
    sizes += [guess(x.shape[0]) for x in nodes[1:]]
    sizes += [1 if nodes[-1].ndim == 1 else guess(nodes[-1].shape[1])]
    best = {(i, i): (0, i) for i in range(len(nodes))}
    made: dict[tuple[int, int], Node] = {(i, i): x for i, x in enumerate(nodes)}
    for length in range(1, len(nodes)):
        for i in range(len(nodes) - length):
            j = i + length
            best[i, j] = min(
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
            k = best[i, j][1]
            made[i, j] = matmul(made[i, k], made[k + 1, j])
    return made[0, len(nodes) - 1]


@composite(numpy=(np.tensordot, np.linalg.tensordot))
def tensordot(x1: NodeLike, x2: NodeLike, /, *, axes: Any = 2) -> Node:
    """The sum of products over pairs of axes: a count of axes, or the axes of each.

    A count takes the last axes of x1 with the first of x2.
    """
    a, b = as_node(x1), as_node(x2)
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise ShapeError(f"tensordot({a.type!r}, {b.type!r}): there are no {axes} axes in both")
        pairs: Any = (range(a.ndim - axes, a.ndim), range(axes))
    else:
        pairs = [x if isinstance(x, (tuple, list)) else (x,) for x in axes]
    left = [normalize_axis(i, a.ndim) for i in pairs[0]]
    right = [normalize_axis(i, b.ndim) for i in pairs[1]]
    if len(left) != len(right):
        raise ShapeError(
            f"tensordot sums over pairs of axes; {axes} names more in one than in the other"
        )
    for i, j in zip(left, right, strict=True):
        require_equal(a.shape[i], b.shape[j])
    rows = [i for i in range(a.ndim) if i not in left]
    columns = [j for j in range(b.ndim) if j not in right]
    inner = product(a.shape[i] for i in left)
    row_shape = tuple(a.shape[i] for i in rows)
    column_shape = tuple(b.shape[j] for j in columns)
    flat_a = reshape(permute_dims(a, (*rows, *left)), (product(row_shape), inner))
    flat_b = reshape(permute_dims(b, (*right, *columns)), (inner, product(column_shape)))
    return reshape(matmul(flat_a, flat_b), (*row_shape, *column_shape))


@composite(numpy=(np.vecdot, np.linalg.vecdot), widens=True)
def vecdot(x1: NodeLike, x2: NodeLike, /, *, axis: int = -1, keepdims: bool = False) -> Node:
    """The sum of products along one axis; the other axes broadcast."""
    a, b = as_node(x1), as_node(x2)
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(f"vecdot({a.type!r}, {b.type!r}): a scalar has no axis to sum over")
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    require_equal(a.shape[-1], b.shape[-1])
    first = call("conj", a) if a.dtype.kind == "c" else a
    products = first * b
    found = sum(products, axis=-1, dtype=products.dtype, keepdims=keepdims)
    return moveaxis(found, -1, axis) if keepdims else found


def _matmul_tn_infer(a: TensorType, b: TensorType) -> TensorType:
    if a.ndim != 2 or b.ndim != 2:
        raise ShapeError(f"{a!r} and {b!r} are not both matrices")
    return _matmul_infer(a.with_shape(a.shape[::-1]), b)


@op(
    infer=_matmul_tn_infer,
    kernel=kernels.matmul_tn,
    promote=common_dtype,
    combiner="add",
    by_rows=lambda a, b: (False, False),
    out=True,
    source="np.matmul({0}.T, {1}, {out})",
    flops=lambda a, b: 2 * a.size * b.shape[1],
    vjp=lambda g, y, a, b: (matmul_p(b, matrix_transpose(g)), matmul_p(a, g)),
    bilinear=True,
    cases=(case((4, 3), (4, 2)), case((5, 1), (5, 1)), case((0, 2), (0, 3))),
    batch=lambda inputs, flags, node: matmul_p(matrix_transpose(inputs[0]), inputs[1]),
    along=lambda types, cuts: Joined("add") if _from_end(types, cuts) == [2, 2] else Piecewise.KEPT,
    public=False,
)
def matmul_tn(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1.T @ x2 of two matrices: a sum over their rows, so that it can be done block by block."""
    ...


def _vdot_infer(a: TensorType, b: TensorType) -> TensorType:
    require("f", a, b)
    if a.shape != b.shape:
        raise ShapeError(f"{a.shape} and {b.shape} differ")
    return a.with_shape(())


@op(
    infer=_vdot_infer,
    kernel=kernels.vdot,
    promote=common_dtype,
    combiner="add",
    flops=lambda a, b: max(2 * a.size - 1, 0),
    vjp=vjp_of(lambda y, a, b: (b, a)),
    bilinear=True,
    cases=(case((3, 4), (3, 4)), case((5,), (5,)), case((0,), (0,))),
    batch=batch.dotted,
    along=lambda types, cuts: Joined("add"),
    public=False,
)
def vdot_p(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The sum of the products of all elements: what a sum of products over all axes becomes."""
    ...


def _along_last(types: tuple[TensorType, ...], cuts: Cuts, keepdims: bool) -> Along:
    """Of the products along the last axis, or of sums."""
    return Joined("add") if 1 in _from_end(types, cuts) else Piecewise.KEPT


def _row_sums_infer(x: TensorType, *, keepdims: bool) -> TensorType:
    require("f", x)
    require_matrix(x)
    return x.with_shape((*x.shape[:-1], 1) if keepdims else x.shape[:-1])


@op(
    infer=_row_sums_infer,
    kernel=kernels.row_sums,
    by_rows=lambda x: (rows(x) == rows(_row_sums_infer(x, keepdims=True)),),
    out=True,
    flops=lambda x, keepdims: x.size,
    pullback=lambda g, y, x, keepdims: broadcast_to(_along_rows(g, keepdims), x.shape),
    pushforward=lambda t, y, x, keepdims: apply_again(y, t),
    cases=(
        case((3, 4), keepdims=False),
        case((2, 3, 4), keepdims=True),
        case((2, 0), keepdims=True),
    ),
    batch=batch.in_front,
    along=_along_last,
    public=False,
)
def row_sums(x: NodeLike, /, *, keepdims: bool) -> Node:
    """The sums along the last axis, as a product with ones: many times as fast as a sum."""
    ...


def _vecdot_infer(a: TensorType, b: TensorType, *, keepdims: bool) -> TensorType:
    require("f", a, b)
    if not (a.ndim and b.ndim):
        raise ShapeError(f"{a!r} or {b!r} has no axis to sum over")
    require_equal(a.shape[-1], b.shape[-1])
    kept = broadcast_shapes(a.shape[:-1], b.shape[:-1])
    return a.with_shape((*kept, 1) if keepdims else kept)


def _vecdot_by_rows(a: TensorType, b: TensorType) -> tuple[bool, bool]:
    y = rows(_vecdot_infer(a, b, keepdims=True))
    return rows(a) == y, rows(b) == y


def _along_rows(g: Node, keepdims: bool) -> Node:
    return g if keepdims else reshape(g, (*g.shape, 1))


@op(
    infer=_vecdot_infer,
    kernel=np.vecdot,
    promote=common_dtype,
    by_rows=_vecdot_by_rows,
    out=True,
    flops=lambda a, b, keepdims: max(2 * a.size - 1, 0),
    vjp=lambda g, y, a, b, keepdims: tuple(_along_rows(g, keepdims) * x for x in (b, a)),
    bilinear=True,
    cases=(
        case((3, 4), (3, 4), keepdims=False),
        case((2, 3, 4), (2, 3, 4), keepdims=True),
        case((3, 4), (4,), keepdims=False),
        case((2, 0), (2, 0), keepdims=True),
    ),
    batch=batch.in_front,
    along=_along_last,
)
def vecdot_p(x1: NodeLike, x2: NodeLike, /, *, keepdims: bool) -> Node:
    """The sum of the products along the last axis: one pass for each row."""
    ...
