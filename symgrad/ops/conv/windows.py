"""Windows that slide along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.dims import Size, quotient
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import case
from symgrad.ir.types import TensorType, normalize_axis
from symgrad.ops import batch
from symgrad.ops.conv import window_kernels
from symgrad.ops.declare import NodeLike, composite, in_single, linear

CASES = (
    case((5,), axis=0, size=2, stride=1, dilation=1),
    case((2, 7, 2), axis=1, size=3, stride=2, dilation=1),
    case((3, 6), axis=1, size=2, stride=3, dilation=2),
    case((4, 0), axis=0, size=1, stride=3, dilation=1),
)
# Of the results, and the length that they are of.
BACK = tuple(
    case(shape, **c.attrs, length=c.shapes[0][c.attrs["axis"]])
    for c, shape in zip(CASES, ((4,), (2, 3, 2), (3, 2), (2, 0)), strict=True)
)


def positive(value: Any, name: str) -> int:
    """A size, stride or dilation, which is an int and 1 or more."""
    try:
        found = int(value.__index__())
    except AttributeError:
        raise ShapeError(f"{name} is made of ints, not of {value!r}") from None
    if found < 1:
        raise ShapeError(f"{name} is 1 or more, not {found}")
    return found


def span_of(size: int, dilation: int) -> int:
    """How many elements of an axis a window reaches over."""
    return dilation * (size - 1) + 1


def margin(
    x: TensorType, *others: TensorType, axis: int, size: int, dilation: int, **attrs: Any
) -> list[Size]:
    """A size that is 0 or more where a window fits into an axis of x: see `Op.margins`."""
    return [x.shape[axis] - span_of(size, dilation)]


def margin_of_length(
    t: TensorType, *, length: Size, size: int, dilation: int, **attrs: Any
) -> list[Size]:
    """The same of an axis to which windows are put back."""
    return [length - span_of(size, dilation)]


def window_count(length: Size, size: int, stride: int, dilation: int) -> Size:
    """How many windows fit into an axis. Raises `ShapeError` if it is known that none does."""
    if min(size, stride, dilation) < 1:
        found = f"{size}, a stride of {stride}, a dilation of {dilation}"
        raise ShapeError(f"a window of {found}: each is 1 or more")
    span = span_of(size, dilation)
    if isinstance(length, int) and length < span:
        wide = f"{size}, dilated to {span}," if dilation > 1 else str(span)
        raise ShapeError(f"a window of {wide} is larger than an axis of {length}; pad it")
    return quotient(length - span, stride) + 1


def normalize(*types: TensorType, axis: Any, **attrs: Any) -> dict[str, Any]:
    """The attributes of windows along an axis in canonical form."""
    checked = {k: positive(v, k) if k in ("size", "stride", "dilation") else v
               for k, v in attrs.items()}  # fmt: skip
    return {"axis": normalize_axis(axis, types[0].ndim), **checked}


def with_windows(t: TensorType, axis: int, size: int, stride: int, dilation: int) -> TensorType:
    """The type with an axis replaced by the windows along it."""
    count = window_count(t.shape[normalize_axis(axis, t.ndim)], size, stride, dilation)
    return t.with_shape((*t.shape[:axis], count, *t.shape[axis + 1 :]))


def without_windows(
    t: TensorType, *, axis: int, size: int, stride: int, dilation: int, length: Size
) -> TensorType:
    """The type with the windows along an axis replaced by the axis, which has that length."""
    if window_count(length, size, stride, dilation) != t.shape[normalize_axis(axis, t.ndim)]:
        raise ShapeError(f"an axis of {length} has not {t.shape[axis]} windows of {size}")
    return t.with_shape((*t.shape[:axis], length, *t.shape[axis + 1 :]))


def _windows_infer(
    t: TensorType, *, axis: int, size: int, stride: int, dilation: int
) -> TensorType:
    found = with_windows(t, axis, size, stride, dilation)
    return found.with_shape((*found.shape, size))


def _overlapped_infer(
    t: TensorType, *, axis: int, size: int, stride: int, dilation: int, length: Size
) -> TensorType:
    if t.ndim < 2 or t.shape[-1] != size:
        raise ShapeError(f"the last axis of {t!r} is no window of {size}")
    windows = {"axis": axis, "size": size, "stride": stride, "dilation": dilation}
    return without_windows(t.with_shape(t.shape[:-1]), **windows, length=length)


def _windows_transpose(g: Node, x: Node, axis: int, **attrs: Any) -> Node:
    return in_single(overlapped)(g, axis=axis, **attrs, length=x.shape[axis])


@linear(
    infer=_windows_infer,
    kernel=window_kernels.windows,
    normalize=normalize,
    index_map=True,
    transpose=_windows_transpose,
    margins=margin,
    view=True,
    cases=CASES,
    batch=batch.over_axes,
    public=False,
)
def windows(x: NodeLike, /, axis: int, size: int, stride: int, dilation: int) -> Node:
    """The windows along an axis, the places in a window as the last axis."""
    ...


@linear(
    infer=_overlapped_infer,
    kernel=window_kernels.overlapped,
    normalize=normalize,
    transpose=lambda g, x, length, **attrs: windows(g, **attrs),
    accumulates=True,
    margins=margin_of_length,
    out=True,
    cases=tuple(case((*c.shapes[0], c.attrs["size"]), **c.attrs) for c in BACK),
    batch=batch.over_axes,
    public=False,
)
def overlapped(
    x: NodeLike, /, axis: int, size: int, stride: int, dilation: int, length: Size
) -> Node:
    """Windows put back where they were and added: windows, transposed."""
    ...


@composite(numpy=(np.lib.stride_tricks.sliding_window_view,))
def sliding_window_view(x: NodeLike, /, window_shape: Any, axis: Any = None) -> Node:
    """The windows of a shape, as a view: places of the window in front, places in it behind.

    `axis` says along which axes they slide: as many as `window_shape` has numbers, all by default.
    Along a named dimension N there are N - size + 1. Raises `ShapeError` for a window larger than
    its axis.

    >>> np.asarray(sliding_window_view([1, 2, 3, 4], 3))
    array([[1, 2, 3],
           [2, 3, 4]])
    """
    node = as_node(x)
    sizes = window_shape if isinstance(window_shape, (tuple, list)) else (window_shape,)
    axes = (
        range(node.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    )
    if len(axes) != len(sizes):
        raise ShapeError(f"windows of {len(sizes)} axes do not slide along {len(axes)}: {axis}")
    along = [normalize_axis(a, node.ndim) for a in axes]
    for a, size in zip(along, sizes, strict=True):
        node = windows(node, axis=a, size=size, stride=1, dilation=1)
    return node
