"""Made of views and joins: roll, tile, unstack, broadcast_arrays, differences, counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.dims import Dim, Shape, Size
from symgrad.ir.errors import ArgumentError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import case
from symgrad.ir.types import TensorType, as_shape, normalize_axis
from symgrad.ir.types import broadcast_shapes as _broadcast_shapes
from symgrad.ops import batch
from symgrad.ops.declare import NodeLike, composite, linear
from symgrad.ops.elementwise import subtract
from symgrad.ops.index import kernels as index_kernels
from symgrad.ops.index.slices import getitem
from symgrad.ops.logic import not_equal
from symgrad.ops.reduce import sum
from symgrad.ops.shape import astype, broadcast_to, concat, reshape, reshaped


@composite()
def broadcast_shapes(*shapes: Any) -> Shape:
    """The shape that several broadcast to. Raises `ShapeError` if they do not.

    >>> broadcast_shapes((3, 1), ("N",))
    (3, N)
    """
    return _broadcast_shapes(*map(as_shape, shapes)) if shapes else ()


@composite(numpy=(np.broadcast_arrays,))
def broadcast_arrays(*arrays: NodeLike) -> list[Node]:
    """A list of the arrays repeated to the shape that they broadcast to, without a copy.

    >>> [y.shape for y in broadcast_arrays(placeholder("x", ("N", 1)), np.ones(3))]
    [(N, 3), (N, 3)]
    """
    nodes = [as_node(a) for a in arrays]
    shape = broadcast_shapes(*(x.shape for x in nodes))
    return [x if x.shape == shape else broadcast_to(x, shape) for x in nodes]


def _along(axis: int, part: slice) -> tuple[slice, ...]:
    return *(slice(None),) * axis, part


def _roll_infer(t: TensorType, *, shift: Size, axis: int) -> TensorType:
    if not 0 <= axis < t.ndim:
        raise ShapeError(f"{t!r} has no axis {axis} to roll by {shift}")
    return t


def _roll_transpose(g: Node, x: Node, shift: Size, axis: int) -> Node:
    return roll_p(g, shift=-shift, axis=axis)


@linear(
    infer=_roll_infer,
    kernel=index_kernels.roll,
    index_map=True,
    transpose=_roll_transpose,
    out=True,
    data_movement=True,
    batch=batch.over_axes,
    flops=lambda t, **attrs: 0,
    cases=(
        case((5,), shift=2, axis=0),
        case((2, 3), shift=-4, axis=1),
        case((0, 2), shift=1, axis=0),
    ),
)
def roll_p(x: NodeLike, /, shift: Size, axis: int) -> Node:
    """The elements moved on along an axis, those at its end to its beginning."""
    ...


@composite(numpy=(np.roll,))
def roll(x: NodeLike, /, shift: Any, *, axis: Any = None) -> Node:
    """The elements moved on by `shift` along an axis, those at its end to its beginning.

    Several axes have as many shifts, or one; None rolls x flattened. A shift is an int or an
    expression of named dimensions, and may be more than the axis is long. Raises `ShapeError` for
    an axis out of range.

    >>> np.asarray(roll(np.arange(4), 1))
    array([3, 0, 1, 2])
    """
    node = as_node(x)
    if axis is None:
        return reshape(roll(reshape(node, -1), shift, axis=0), node.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(axes) == 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ShapeError(f"{len(shifts)} shifts do not fit {len(axes)} axes")
    for by, a in zip(shifts, axes, strict=True):
        along = normalize_axis(a, node.ndim)
        size, by = node.shape[along], by if isinstance(by, Dim) else int(by.__index__())
        if isinstance(size, int) and isinstance(by, int):
            by = by % size if size else 0
        if by != 0:
            node = roll_p(node, shift=by, axis=along)
    return node


@composite(numpy=(np.tile,))
def tile(x: NodeLike, repetitions: Any, /) -> Node:
    """x repeated as a whole, along each of the last axes as often as `repetitions` says.

    Raises `ShapeError` for what is no number of repetitions.

    >>> tile(placeholder("x", ("N", 2)), (3, 1, 2)).type
    float64[3, N, 4]
    """
    node, times = as_node(x), as_shape(repetitions)
    ndim = max(node.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - node.ndim) + node.shape
    if all(n == 1 for n in times):
        return reshaped(node, shape)
    pairs = list(zip(times, shape, strict=True))
    apart = reshape(node, tuple(s for _, size in pairs for s in (1, size)))
    many = broadcast_to(apart, tuple(s for pair in pairs for s in pair))
    return reshape(many, tuple(n * size for n, size in pairs))


@composite(numpy=(np.unstack,))
def unstack(x: NodeLike, /, axis: int = 0) -> tuple[Node, ...]:
    """The parts of x along an axis, without that axis.

    Raises `ShapeError` for a named dimension: how many parts there are must be known.

    >>> [y.shape for y in unstack(placeholder("x", (2, "N")))]
    [(N,), (N,)]
    """
    node = as_node(x)
    found = normalize_axis(axis, node.ndim)
    size = node.shape[found]
    if not isinstance(size, int):
        raise ShapeError(f"{size} parts are not known in number; unstack takes an axis of ints")
    return tuple(getitem(node, (*(slice(None),) * found, i)) for i in range(size))


@composite(numpy=(np.diff,))
def diff(
    x: NodeLike, /, n: int = 1, axis: int = -1, *, prepend: NodeLike = None, append: NodeLike = None
) -> Node:
    """The differences of neighbours along an axis, taken n times; of booleans, whether they differ.

    `prepend` and `append` are joined to x first; a scalar counts as one element. Raises
    `ShapeError` for a negative n.

    >>> np.asarray(diff([1, 4, 9]))
    array([3, 5])
    """
    node = as_node(x)
    if not isinstance(n, (int, np.integer)):
        raise ArgumentError("n says how often differences are taken; a derivative is sg.grad(y, x)")
    if n < 0:
        raise ShapeError(f"differences are taken n times, and {n} is negative")
    if n == 0:
        return node
    found = normalize_axis(axis, node.ndim)
    ends = [None if e is None else as_node(e) for e in (prepend, append)]
    one = (*node.shape[:found], 1, *node.shape[found + 1 :])
    before, after = (e if e is None or e.ndim else broadcast_to(e, one) for e in ends)
    parts = [p for p in (before, node, after) if p is not None]
    node = concat(parts, axis=found) if len(parts) > 1 else node
    less = not_equal if node.dtype.kind == "b" else subtract
    size = node.shape[found]
    for _ in range(min(n, size) if isinstance(size, int) else n):
        upper, lower = (_along(found, part) for part in (slice(1, None), slice(None, -1)))
        node = less(getitem(node, upper), getitem(node, lower))
    return node


@composite(numpy=(np.count_nonzero,))
def count_nonzero(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """How many elements over axes are not 0; None is all of them. NaN is not 0.

    >>> count_nonzero(placeholder("x", ("N", 3)), axis=0).type
    int64[3]
    """
    node = as_node(x)
    held = node if node.dtype.kind == "b" else not_equal(node, 0)
    return sum(astype(held, "int64"), axis=axis, keepdims=keepdims)
