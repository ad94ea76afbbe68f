"""Convolutions of images, as cross-correlations: the kernel is not turned.

Permutations bring the batch innermost, where the primitives work, and back; between layers they
cancel.
"""

from __future__ import annotations

from typing import Any

from symgrad.ir.dims import divide_exactly
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ops.conv.convolve import convolve_inputs, convolve_p, kernel_of, sizes_of
from symgrad.ops.conv.images import each, inward, outward, paddings, spatial_axes
from symgrad.ops.conv.windows import positive
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.index.slices import getitem
from symgrad.ops.padding import zeros_around
from symgrad.ops.shape import permute_dims, reshape


def _weights(w: Node, groups: int) -> Node:
    split = reshape(w, (groups, w.shape[0] // groups, *w.shape[1:]))
    return permute_dims(split, (0, 1, *range(3, split.ndim), 2))


def _with_bias(y: Node, bias: NodeLike) -> Node:
    """The bias is added while the batch lies innermost."""
    if bias is None:
        return y
    b = as_node(bias)
    groups, filters = y.shape[0], y.shape[2]
    if b.shape != (groups * filters,):
        raise ShapeError(f"the bias has one number for each of {groups * filters}, not {b.type!r}")
    return y + reshape(b, (groups, 1, filters, *(1,) * (y.ndim - 3)))


def _checked(
    x: NodeLike, w: NodeLike, axes: int | None, groups: Any, channels: str, at: int
) -> tuple[Node, Node, int]:
    """The operands and the groups, if they fit; the images' channels are those of w's axis `at`."""
    images, kernel, groups = as_node(x), as_node(w), positive(groups, "groups")
    spatial = spatial_axes(images.ndim, channels)
    if axes is not None and len(spatial) != axes:
        raise ShapeError(f"images with {axes} spatial axes have {axes + 2}, not {images.ndim}")
    if kernel.ndim != images.ndim:
        raise ShapeError(f"weights for {images.type!r} have {images.ndim} axes, not {kernel.ndim}")
    own = images.shape[1 if channels == "first" else -1]
    wanted = kernel.shape[1] * groups if at == 1 else kernel.shape[0]
    if own != wanted:
        raise ShapeError(
            f"images of {own} channels in {groups} groups do not fit weights {kernel.type!r}, "
            f"which take {wanted}"
        )
    if divide_exactly(kernel.shape[0], groups) is None:
        raise ShapeError(f"{groups} groups do not divide the {kernel.shape[0]} of the weights")
    return images, kernel, groups


def _conv(
    x: NodeLike,
    w: NodeLike,
    bias: NodeLike,
    axes: int | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    channels: str,
) -> Node:
    images, weights, groups = _checked(x, w, axes, groups, channels, 1)
    inner = inward(images, groups, channels)
    kernel = _weights(weights, groups)
    sizes, count = sizes_of(inner), inner.ndim - 3
    taps = kernel_of(kernel.tensor)
    strides = tuple(positive(s, "stride") for s in each(stride, count, "stride"))
    dilations = tuple(positive(d, "dilation") for d in each(dilation, count, "dilation"))
    rows, *rest = paddings(padding, sizes, taps, strides, dilations)
    inner = zeros_around(inner, [(0, 0), rows, (0, 0), *rest, (0, 0)])
    y = convolve_p(inner, kernel, stride=strides, dilation=dilations)
    return outward(_with_bias(y, bias), channels)


@composite()
def conv(
    x: NodeLike,
    w: NodeLike,
    bias: NodeLike = None,
    /,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    channels: str = "first",
) -> Node:
    """Images x convolved with weights w, over any number of spatial axes; the kernel is not turned.

    x is (N, C, …) or, with channels="last", (N, …, C); w is (filters, C / groups, …) for both, and
    `bias` has one number for each filter. `stride`, `dilation` and `padding` are numbers, or one
    for each spatial axis; `padding` may have pairs (before, after), or be "same", which makes as
    many places as the stride has steps in the axis, or "valid", which is 0. An axis of n makes
    (n + padding - dilation * (k - 1) - 1) // stride + 1 places. The dtypes promote. Raises
    `ShapeError` if the kernel is larger than a padded image, or channels and groups do not fit.

    >>> images, w = placeholder("x", ("N", 3, 32, 32)), placeholder("w", (8, 3, 5, 5))
    >>> conv(images, w, padding="same").type
    float64[N, 8, 32, 32]
    """
    return _conv(x, w, bias, None, stride, padding, dilation, groups, channels)


@composite()
def conv1d(
    x: NodeLike,
    w: NodeLike,
    bias: NodeLike = None,
    /,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    channels: str = "first",
) -> Node:
    """`conv` along one axis: x is (N, C, L), or (N, L, C) with channels="last"; w is (O, C, k).

    >>> np.asarray(conv1d([[[1.0, 2.0, 4.0, 8.0]]], [[[-1.0, 1.0]]]))
    array([[[1., 2., 4.]]])
    """
    return _conv(x, w, bias, 1, stride, padding, dilation, groups, channels)


@composite()
def conv2d(
    x: NodeLike,
    w: NodeLike,
    bias: NodeLike = None,
    /,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    channels: str = "first",
) -> Node:
    """`conv` along two axes: x is (N, C, H, W), or (N, H, W, C) with channels="last".

    >>> conv2d(placeholder("x", ("N", 1, 28, 28)), placeholder("w", (6, 1, 5, 5))).type
    float64[N, 6, 24, 24]
    """
    return _conv(x, w, bias, 2, stride, padding, dilation, groups, channels)


@composite()
def conv3d(
    x: NodeLike,
    w: NodeLike,
    bias: NodeLike = None,
    /,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    channels: str = "first",
) -> Node:
    """`conv` along three axes: x is (N, C, D, H, W), or (N, D, H, W, C) with channels="last".

    >>> conv3d(placeholder("x", ("N", 1, 8, 8, 8)), placeholder("w", (2, 1, 3, 3, 3))).type
    float64[N, 2, 6, 6, 6]
    """
    return _conv(x, w, bias, 3, stride, padding, dilation, groups, channels)


@composite()
def conv_transpose(
    x: NodeLike,
    w: NodeLike,
    bias: NodeLike = None,
    /,
    *,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    channels: str = "first",
) -> Node:
    """conv, transposed with respect to its images: each element of x spreads a kernel.

    x is as in `conv`, w is (C, filters / groups, …), as if it were of the convolution that goes the
    other way, and `padding` is what is taken off there. A spatial axis of n becomes
    (n - 1) * stride - padding + dilation * (k - 1) + 1 + output_padding, or with "same" n * stride.
    See Dumoulin and Visin, A guide to convolution arithmetic for deep learning (2016).

    >>> images, w = placeholder("x", ("N", 8, 7, 7)), placeholder("w", (8, 4, 3, 3))
    >>> conv_transpose(images, w, stride=2).type
    float64[N, 4, 15, 15]
    """
    images, weights, groups = _checked(x, w, None, groups, channels, 0)
    inner = inward(images, groups, channels)
    kernel = _weights(weights, groups)
    count, taps = inner.ndim - 3, kernel_of(kernel.tensor)
    strides = tuple(positive(s, "stride") for s in each(stride, count, "stride"))
    dilations = tuple(positive(d, "dilation") for d in each(dilation, count, "dilation"))
    spans = [d * (k - 1) + 1 for k, d in zip(taps, dilations, strict=True)]
    if padding == "same":
        over = [m - s for m, s in zip(spans, strides, strict=True)]
        more: Any = tuple(max(-t, 0) for t in over)
        cut: Any = tuple((max(t, 0) // 2, -(-max(t, 0) // 2)) for t in over)
    else:
        more = each(output_padding, count, "output_padding")
        cut = paddings(padding, sizes_of(inner), taps, strides, dilations)
    for extra, s in zip(more, strides, strict=True):
        if not 0 <= extra < s:
            raise ShapeError(f"output_padding is from 0 up to the stride {s}, not {extra}")
    whole = [
        (n - 1) * s + m + extra
        for n, s, m, extra in zip(sizes_of(inner), strides, spans, more, strict=True)
    ]
    y = convolve_inputs(inner, kernel, tuple(whole), strides, dilations)
    for size, (before, after) in zip(whole, cut, strict=True):
        if isinstance(size, int) and before + after >= size:
            raise ShapeError(f"a padding of {before + after} leaves nothing of an axis of {size}")
    rows, *rest = (slice(b, n - a) for n, (b, a) in zip(whole, cut, strict=True))
    y = getitem(y, (slice(None), rows, slice(None), *rest))
    return outward(_with_bias(y, bias), channels)
