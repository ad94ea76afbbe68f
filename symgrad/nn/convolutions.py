"""Layers over images: convolutions and pooling. x is (N, C, …), or (N, …, C) by `channels`."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

import numpy as np

from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.nn.initializers import Initializer, weights
from symgrad.nn.layers import alike
from symgrad.nn.module import Module, parameter
from symgrad.ops.conv.convolution import conv, conv_transpose
from symgrad.ops.conv.images import each
from symgrad.ops.conv.pooling import avg_pool, max_pool
from symgrad.ops.conv.windows import positive
from symgrad.ops.declare import NodeLike


class _Conv(Module):
    """A convolution over so many axes, with weights and a bias of zeros."""

    axes: ClassVar[int]
    is_transposed: ClassVar[bool] = False

    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        size: Any,
        *,
        key: NodeLike = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        channels: str = "first",
        bias: bool = True,
        init: Initializer = "kaiming_uniform",
        dtype: Any = "float64",
    ) -> None:
        sizes = tuple(positive(k, "size") for k in each(size, self.axes, "size"))
        positive(channels_in, "channels_in"), positive(channels_out, "channels_out")
        positive(groups, "groups")
        if channels_in % groups or channels_out % groups:
            raise ShapeError(f"{groups} groups do not divide {channels_in} and {channels_out}")
        sides = channels_in, channels_out
        first, second = sides if self.is_transposed else sides[::-1]
        shape = (first, second // groups, *sizes)
        fans = (channels_in // groups * prod(sizes), channels_out // groups * prod(sizes))
        self.weight = weights(init, key, shape, fans, dtype)
        self.bias = parameter(np.zeros(channels_out, dtype)) if bias else None
        self.options: dict[str, Any] = {
            "stride": stride, "padding": padding, "dilation": dilation, "groups": groups,
            "channels": channels,
        }  # fmt: skip

    def forward(self, x: NodeLike) -> Node:
        """The layer of images x."""
        function = conv_transpose if self.is_transposed else conv
        return function(alike(x, self.weight), self.weight, self.bias, **self.options)


class Conv1d(_Conv):
    """`conv1d`: from `channels_in` to `channels_out`, with kernels of this size.

    `stride`, `padding`, `dilation`, `groups` and `channels` are those of `conv`; `weight` is of the
    shape (channels_out, channels_in / groups, size).

    >>> Conv1d(2, 4, 3, key=sg.random.key(0), padding=1)(placeholder("x", ("N", 2, 9))).type
    float64[N, 4, 9]
    """

    axes = 1


class Conv2d(_Conv):
    """`conv2d`: from `channels_in` to `channels_out`, with kernels of this size, or of two.

    `stride`, `padding`, `dilation`, `groups` and `channels` are those of `conv`; `weight` is of the
    shape (channels_out, channels_in / groups, size, size).

    >>> Conv2d(1, 6, 5, key=sg.random.key(0))(placeholder("x", ("N", 1, 28, 28))).type
    float64[N, 6, 24, 24]
    """

    axes = 2


class ConvTranspose2d(_Conv):
    """`conv_transpose` over two axes: from `channels_in` to `channels_out`.

    `stride`, `padding`, `output_padding`, `dilation`, `groups` and `channels` are those of
    `conv_transpose`; `weight` is of the shape (channels_in, channels_out / groups, size, size).

    >>> layer = ConvTranspose2d(8, 4, 2, key=sg.random.key(0), stride=2)
    >>> layer(placeholder("x", ("N", 8, 7, 7))).type
    float64[N, 4, 14, 14]
    """

    axes = 2
    is_transposed = True

    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        size: Any,
        *,
        output_padding: Any = 0,
        **options: Any,
    ) -> None:
        super().__init__(channels_in, channels_out, size, **options)
        self.options["output_padding"] = output_padding


class MaxPool(Module):
    """`max_pool` with windows of this size; `stride`, `padding`, … are its options.

    >>> MaxPool(2)(placeholder("x", ("N", 3, 8, 8))).type
    float64[N, 3, 4, 4]
    """

    def __init__(
        self,
        size: Any,
        *,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        channels: str = "first",
    ) -> None:
        self.size = size
        self.options = {
            "stride": stride, "padding": padding, "dilation": dilation, "channels": channels
        }  # fmt: skip

    def forward(self, x: NodeLike) -> Node:
        """The largest element of each window."""
        return max_pool(as_node(x), self.size, **self.options)


class AvgPool(Module):
    """`avg_pool` with windows of this size; `stride`, `padding`, … are its options.

    >>> AvgPool(2)(placeholder("x", ("N", 3, 8, 8))).type
    float64[N, 3, 4, 4]
    """

    def __init__(
        self,
        size: Any,
        *,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        count_include_pad: bool = True,
        channels: str = "first",
    ) -> None:
        self.size = size
        self.options = {
            "stride": stride, "padding": padding, "dilation": dilation, "channels": channels,
            "count_include_pad": count_include_pad,
        }  # fmt: skip

    def forward(self, x: NodeLike) -> Node:
        """The mean of each window."""
        return avg_pool(as_node(x), self.size, **self.options)
