"""Pooling: windows reduced to their mean or largest element.

Windows over several axes are reduced along one axis after the other, so that each op knows one
axis only, and works in whichever order the axes lie in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from symgrad.ir.dims import Size
from symgrad.ir.errors import DtypeError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import case
from symgrad.ir.operators import call
from symgrad.ir.types import TensorType
from symgrad.ops import batch
from symgrad.ops.conv import window_kernels
from symgrad.ops.conv.images import each, paddings, spatial_axes
from symgrad.ops.conv.windows import (
    BACK,
    CASES,
    margin,
    margin_of_length,
    normalize,
    positive,
    with_windows,
    without_windows,
)
from symgrad.ops.declare import NodeLike, again, composite, linear, op, require
from symgrad.ops.flows import widened
from symgrad.ops.leaves import ones
from symgrad.ops.padding import pad, zeros_around
from symgrad.ops.reduce import as_float
from symgrad.ops.select import extremum_on
from symgrad.ops.shape import reshape
from symgrad.ops.sides import Side

# ---- along one axis -------------------------------------------------------------------------


def _sum_infer(t: TensorType, *, axis: int, size: int, stride: int, dilation: int) -> TensorType:
    require("fc", t)
    return with_windows(t, axis, size, stride, dilation)


@linear(
    infer=_sum_infer,
    kernel=window_kernels.window_sum,
    normalize=normalize,
    transpose=lambda g, x, axis, **attrs: call(
        "window_spread", g, axis=axis, **attrs, length=x.shape[axis]
    ),
    flops=lambda t, size, **attrs: (size - 1) * with_windows(t, size=size, **attrs).size,
    margins=margin,
    batch=batch.over_axes,
    out=True,
    cases=CASES,
    public=False,
)
def window_sum(x: NodeLike, /, axis: int, size: int, stride: int, dilation: int) -> Node:
    """The sum of each window along an axis."""
    ...


@linear(
    infer=without_windows,
    kernel=window_kernels.window_spread,
    normalize=normalize,
    transpose=lambda g, x, length, **attrs: window_sum(g, **attrs),
    flops=lambda t, size, **attrs: size * t.size,
    margins=margin_of_length,
    batch=batch.over_axes,
    out=True,
    cases=BACK,
    public=False,
)
def window_spread(
    x: NodeLike, /, axis: int, size: int, stride: int, dilation: int, length: Size
) -> Node:
    """For each element the sum of what the windows have that it is in: window_sum, transposed."""
    ...


def _at_max_infer(
    t: TensorType,
    x: TensorType,
    y: TensorType,
    *,
    axis: int,
    size: int,
    stride: int,
    dilation: int,
    back: bool,
) -> TensorType:
    require("f", t, x, y)
    if x.dtype.itemsize not in (2, 4, 8):
        raise DtypeError(f"{x.dtype.name} has no integers of its size; convert it with astype")
    if with_windows(x, axis, size, stride, dilation) != y or t != (y if back else x):
        raise ShapeError(f"{t!r}, {x!r} and {y!r} do not belong together")
    return x if back else y


def _bits(
    t: TensorType, x: TensorType, y: TensorType, *, size: int, stride: int, dilation: int,
    back: bool, **attrs: Any,
) -> tuple[TensorType, ...]:  # fmt: skip
    """Masks; and the selected values, where windows overlap, or come from several places."""
    width = 1 if back and stride > dilation * (size - 1) else y.dtype.itemsize
    return (TensorType((2, *y.shape), np.dtype(f"i{width}")),)


@op(
    infer=_at_max_infer,
    kernel=window_kernels.at_window_max,
    normalize=normalize,
    pullback=lambda g, z, t, x, y, back, **attrs: call(
        "at_window_max", g, x, y, **attrs, back=not back
    ),
    pushforward=again,
    flops=lambda t, x, y, size, **attrs: size * y.size,
    margins=lambda t, x, y, **attrs: margin(x, **attrs),
    batch=batch.together,
    scratch=_bits,
    out=True,
    cases=tuple(
        case((b if back else a).shapes[0], a.shapes[0], b.shapes[0], **a.attrs, back=back)
        for a, b in zip(CASES, BACK, strict=True)
        for back in (False, True)
    ),
    public=False,
)
def at_window_max(
    t: NodeLike, x: NodeLike, y: NodeLike, /,
    axis: int, size: int, stride: int, dilation: int, back: bool,
) -> Node:  # fmt: skip
    """t at the first largest elements y of the windows of x, or put back to there and added."""
    ...


def _max_infer(t: TensorType, *, axis: int, size: int, stride: int, dilation: int) -> TensorType:
    require("biuf", t)
    return with_windows(t, axis, size, stride, dilation)


def _max_pullback(g: Node, y: Node, x: Node, size: int, stride: int, **attrs: Any) -> Node:
    if stride < size:  # an element may be the largest of many windows
        g, x, y = (widened(t) for t in (g, x, y))
    return at_window_max(g, x, y, size=size, stride=stride, **attrs, back=True)


def _max_locked(
    side: Side, y: Node, x: Node, axis: int, size: int, stride: int, dilation: int
) -> Node:
    count = y.shape[axis]
    along = (slice(None),) * axis

    def at(i: int) -> Node:
        """The elements that are the i-th of their windows."""
        start = i * dilation
        found: Node = x[(*along, slice(start, start + (count - 1) * stride + 1, stride))]
        return found

    found = at(0)
    for i in range(1, size):
        found = extremum_on(side, found, at(i), largest=True)
    return found


@op(
    infer=_max_infer,
    kernel=window_kernels.window_max,
    normalize=normalize,
    pullback=_max_pullback,
    pushforward=lambda t, y, x, **attrs: at_window_max(t, x, y, **attrs, back=False),
    flops=lambda t, size, **attrs: (size - 1) * with_windows(t, size=size, **attrs).size,
    margins=margin,
    batch=batch.over_axes,
    out=True,
    locked=_max_locked,
    kinks="at ties, where the first has the whole gradient",
    cases=CASES,
    public=False,
)
def window_max(x: NodeLike, /, axis: int, size: int, stride: int, dilation: int) -> Node:
    """The largest element of each window along an axis; NaN if one is NaN."""
    ...


# ---- along the axes of images ---------------------------------------------------------------


def _windows_of(
    x: Node, size: Any, stride: Any, padding: Any, dilation: Any, channels: str
) -> Iterator[tuple[dict[str, int], tuple[Size, Size]]]:
    """For each axis, the last one first, the windows along it and the padding."""
    axes = spatial_axes(x.ndim, channels)
    sizes = tuple(positive(k, "size") for k in each(size, len(axes), "size"))
    strides = sizes if stride is None else each(stride, len(axes), "stride")
    dilations = each(dilation, len(axes), "dilation")
    pads = paddings(padding, [x.shape[a] for a in axes], sizes, strides, dilations)
    for k, d, p in zip(sizes, dilations, pads, strict=True):
        most = max(n if isinstance(n, int) else 0 for n in p)
        if most > d * (k - 1):
            raise ShapeError(f"a padding of {most} makes windows of {k} that hold nothing else")
    found = zip(axes, sizes, strides, dilations, pads, strict=True)
    for a, k, s, d, p in reversed(list(found)):
        yield {"axis": a, "size": k, "stride": s, "dilation": d}, p


def _along(axis: int, ndim: int, widths: tuple[Size, Size]) -> list[tuple[Size, Size]]:
    return [widths if i == axis else (0, 0) for i in range(ndim)]


@composite()
def max_pool(
    x: NodeLike,
    /,
    size: Any,
    *,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    channels: str = "first",
) -> Node:
    """The largest element of each window over the spatial axes; NaN if one is NaN.

    x is (N, C, …) or, with channels="last", (N, …, C), with any number of spatial axes. `size`,
    `stride` (by default the size), `dilation` and `padding` are numbers, or one for each axis;
    `padding` may have pairs (before, after), or be "same" or "valid", and pads with what is less
    than anything. Where elements of a window tie, the first in the order of the axes has the whole
    gradient, which is in the Clarke subdifferential, unless `kinks=` names a side. Raises
    `ShapeError` for a window larger than what it slides over.

    >>> np.asarray(max_pool([[[1, 5, 2, 3]]], 2))
    array([[[5, 3]]])
    """
    node = as_node(x)
    for attrs, widths in _windows_of(node, size, stride, padding, dilation, channels):
        if any(widths):
            least = _least(node.dtype)
            node = pad(node, _along(attrs["axis"], node.ndim, widths), constant_values=least)
        node = window_max(node, **attrs)
    return node


def _least(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        return -np.inf
    return False if dtype.kind == "b" else int(np.iinfo(dtype).min)


@composite(widens=True)
def avg_pool(
    x: NodeLike,
    /,
    size: Any,
    *,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    count_include_pad: bool = True,
    channels: str = "first",
) -> Node:
    """The mean of each window over the spatial axes; integers become float64.

    See `max_pool` for the arguments. The zeros of the padding count as elements, unless
    `count_include_pad` says that they do not.

    >>> np.asarray(avg_pool([[[1.0, 5.0, 2.0, 4.0]]], 2))
    array([[[3., 3.]]])
    """
    node = as_float(x)
    count: Any = 1
    for attrs, widths in _windows_of(node, size, stride, padding, dilation, channels):
        axis = attrs["axis"]
        if any(widths) and not count_include_pad:
            inside = zeros_around(ones(node.shape[axis], dtype=node.dtype), [widths])
            own = window_sum(inside, **{**attrs, "axis": 0})
            count = count * reshape(own, (own.shape[0], *(1,) * (node.ndim - 1 - axis)))
        else:
            count = count * attrs["size"]
        node = window_sum(zeros_around(node, _along(axis, node.ndim, widths)), **attrs)
    mean: Node = node / count
    return mean
