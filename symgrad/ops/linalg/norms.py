"""Norms, and the standard deviation, which is one."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from symgrad.ir.dims import Dim
from symgrad.ir.errors import ShapeError, UnsupportedError
from symgrad.ir.node import Node, as_node
from symgrad.ir.operators import call
from symgrad.ir.types import TensorType, normalize_axes, normalize_axis
from symgrad.ops import along, batch, kernels
from symgrad.ops.declare import NodeLike, composite, op, require
from symgrad.ops.elementwise import abs, divide, pow, sqrt
from symgrad.ops.leaves import constant
from symgrad.ops.linalg.products import require_matrix
from symgrad.ops.logic import isnan
from symgrad.ops.reduce import (
    CASES,
    all,
    as_float,
    deviations,
    kept,
    max,
    min,
    normalize_over,
    reduced_shape,
    sum,
    sum_along,
)
from symgrad.ops.select import select, where
from symgrad.ops.shape import astype, moveaxis, reshape
from symgrad.ops.sides import Side, held


def _infer(t: TensorType, *, axis: tuple[int, ...], keepdims: bool) -> TensorType:
    require("f", t)
    return t.with_shape(reduced_shape(t, axis, keepdims))


def _direction(y: Node, x: Node, axis: tuple[int, ...]) -> Node:
    """x / norm2(x); at the zero vector 0, the middle of the unit ball of subgradients."""
    length = kept(y, x, axis)
    return divide(x, where(length == 0, 1, length))


def _norm2_locked(side: Side, y: Node, x: Node, axis: tuple[int, ...], keepdims: bool) -> Node:
    way = side.unit(x, partial(norm2, axis=axis, keepdims=True))
    return where(held(y) == 0, sum(x * way, axis=axis, keepdims=keepdims), y)


@op(
    infer=_infer,
    kernel=kernels.norm2,
    normalize=normalize_over,
    pullback=lambda g, y, x, axis, keepdims: kept(g, x, axis) * _direction(y, x, axis),
    pushforward=lambda t, y, x, axis, keepdims: sum_along(
        t, _direction(y, x, axis), axis, keepdims
    ),
    flops=lambda t, **attrs: 2 * t.size,
    batch=batch.over_axes,
    along=along.reducing("hypot"),
    out=True,
    preserves_zero=True,
    locked=_norm2_locked,
    kinks="at the zero vector, where it is 0",
    cases=CASES,
    public=False,
)
def norm2(x: NodeLike, /, axis: Any = None, keepdims: bool = False) -> Node:
    """sqrt(sum(x * x)) over axes, without overflow on the way. d = sum(x / y dx)."""
    ...


@composite(numpy=(np.linalg.vector_norm,), widens=True)
def vector_norm(
    x: NodeLike, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2
) -> Node:
    """sum(abs(x)**ord)**(1/ord) over axes; None is all of them.

    `ord` may be inf (the largest magnitude), -inf (the smallest) and 0 (how many are not 0).
    Elements that tie for the largest share the gradient; at the zero vector it is 0. Integers
    become float64. Raises `ShapeError` for an axis out of range, and for `ord=inf` of no elements.
    """
    if isinstance(ord, (bool, Node)) or not isinstance(ord, (int, float, np.number)):
        raise UnsupportedError(f"the order of a norm is a number, not {ord!r}")
    node = as_float(x)
    if node.dtype.kind == "c":
        node = abs(node)
    over: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    if ord == 2:
        return norm2(node, **over)
    if ord == 0:
        return sum(astype(node != 0, node.dtype), **over)
    size = abs(node)
    if ord == 1:
        return sum(size, **over)
    if math.isinf(ord):
        return max(size, **over) if ord > 0 else min(size, **over)
    return _norm_of_order(float(ord), size, over)


def _norm_of_order(p: float, size: Node, over: dict[str, Any]) -> Node:
    # Powers below 1 are steep at 0: there, and at the zero vector, nothing is to flow.
    is_zero = size == 0
    if p < 0:
        total = sum(pow(where(is_zero, 1, size), p), **over)
        return select(all(size != 0, **over) | isnan(total), pow(total, 1 / p))
    total = sum(select(size != 0, pow(where(is_zero, 1, size), p)), **over)
    return select(total != 0, pow(where(total == 0, 1, total), 1 / p))


@composite(numpy=(np.linalg.matrix_norm,), widens=True)
def matrix_norm(x: NodeLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Node:
    """A norm of matrices, over the last two axes.

    'fro' is the root of the sum of squares, 'nuc' the sum of singular values, 2 the largest one and
    -2 the smallest; 1 the largest sum of magnitudes of a column and -1 the smallest, inf and -inf
    those of a row. What ties for the largest shares the gradient. Integers become float64. Raises
    `ShapeError` for what is no matrix, `UnsupportedError` for another `ord`.

    >>> matrix_norm(placeholder("x", (2, 3, 4))).type
    float64[2]
    """
    node = as_float(x)
    require_matrix(node.tensor)
    if ord == "fro":
        return vector_norm(node, axis=(-2, -1), keepdims=keepdims)
    if ord not in ("nuc", 1, -1, 2, -2, math.inf, -math.inf) or isinstance(ord, bool):
        raise UnsupportedError(f"ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, not {ord!r}")
    if ord in ("nuc", 2, -2):
        from symgrad.ops.linalg.decompositions import svdvals

        values = svdvals(node)
        reduce = sum if ord == "nuc" else max if ord == 2 else min
        y = reduce(values, axis=-1)
    else:
        sums = sum(abs(node), axis=-2 if ord in (1, -1) else -1)
        y = max(sums, axis=-1) if ord > 0 else min(sums, axis=-1)
    return reshape(y, (*y.shape, 1, 1)) if keepdims else y


@composite(numpy=(np.linalg.norm,))
def norm(x: NodeLike, /, *, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Node:
    """NumPy's norm: over one axis that of vectors, by `vector_norm`; over two that of matrices.

    Without `ord` it is the root of the sum of all squares. Raises `ShapeError` for an `ord` over
    more axes, and as `vector_norm` and `matrix_norm` do.
    """
    node = as_node(x)
    axes = normalize_axes(axis, node.ndim)
    if ord is None:
        return vector_norm(node, axis=axes, keepdims=keepdims)
    if len(axes) == 1:
        return vector_norm(node, axis=axes, keepdims=keepdims, ord=ord)
    if len(axes) != 2:
        raise ShapeError(f"a norm of order {ord!r} is over one axis, or two; write vector_norm")
    ordered = axes if axis is None else tuple(normalize_axis(a, node.ndim) for a in axis)
    y = matrix_norm(moveaxis(node, ordered, (-2, -1)), keepdims=keepdims, ord=ord)
    return moveaxis(y, (-2, -1), ordered) if keepdims else y


@composite(numpy=(np.std,), widens=True)
def std(
    x: NodeLike, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False
) -> Node:
    """The square root of `var`. Where all elements are equal its derivative is 0."""
    away, count = deviations(as_float(x), axis, correction)
    if isinstance(count, Dim):
        count = call("size_of", dim=count, dtype=away.dtype)
    elif not isinstance(count, Node):
        # Not its root, which is rounded: what is computed is known to the last digit.
        count = constant(np.asarray(count if count > 0 else math.nan, away.dtype))
    return divide(norm2(away, axis=axis, keepdims=keepdims), sqrt(count))
