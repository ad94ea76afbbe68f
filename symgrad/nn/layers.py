"""Layers: linear, embedding, normalisation, dropout, flat rows, and modules made of others.

Their weights are drawn with a key, by the law that `init` names (see `symgrad.nn.initializers`),
in float64 unless `dtype` says otherwise: that of what they are called with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, SupportsIndex, overload

import numpy as np

from symgrad import random
from symgrad.ir.dims import Size, product
from symgrad.ir.errors import DtypeError, ShapeError
from symgrad.ir.node import Node, as_node, describe
from symgrad.ir.types import normalize_axis
from symgrad.nn.checks import called, floats, given, number
from symgrad.nn.initializers import Initializer, weights
from symgrad.nn.module import Module, parameter
from symgrad.nn.normalization import batch_norm, layer_norm
from symgrad.nn.regularization import dropout
from symgrad.ops.conv.windows import positive
from symgrad.ops.declare import NodeLike
from symgrad.ops.index.take import numbered, take
from symgrad.ops.leaves import ones_like
from symgrad.ops.reduce import mean, var
from symgrad.ops.select import maximum, where
from symgrad.ops.shape import astype, reshape


def alike(x: NodeLike, weight: Node) -> Node:
    """x as a node. Raises `DtypeError` for floats of another dtype than the weights are."""
    node = as_node(x)
    if node.tensor.is_inexact and node.dtype != weight.dtype:
        raise DtypeError(
            f"{describe(node)} meets weights of {weight.dtype.name}, {describe(weight)}: make the "
            f"layer with dtype={node.dtype.name!r}, or what it is given with {weight.dtype.name!r}"
        )
    return node


class Linear(Module):
    """x @ weight + bias: from `size_in` features, along the last axis, to `size_out`.

    `weight` is of the shape (size_in, size_out), `bias` of zeros. Raises `DtypeError` for floats of
    another dtype than the weights.

    >>> Linear(3, 2, key=sg.random.key(0))(placeholder("x", ("N", 3))).type
    float64[N, 2]
    """

    def __init__(
        self,
        size_in: int,
        size_out: int,
        *,
        key: NodeLike = None,
        bias: bool = True,
        init: Initializer = "kaiming_uniform",
        dtype: Any = "float64",
    ) -> None:
        shape = positive(size_in, "size_in"), positive(size_out, "size_out")
        self.weight = weights(init, key, shape, shape, dtype)
        self.bias = parameter(np.zeros(size_out, dtype)) if bias else None

    def forward(self, x: NodeLike) -> Node:
        """The layer of x, of the shape (…, size_in)."""
        y: Node = alike(x, self.weight) @ self.weight
        return y if self.bias is None else y + self.bias


class Embedding(Module):
    """A row of `weight`, of the shape (count, size), for each of some integers from 0 on.

    Another integer is a `BoundsError` when the program runs.

    >>> Embedding(10, 4, key=sg.random.key(0))(placeholder("words", ("N", 7), "int64")).type
    float64[N, 7, 4]
    """

    def __init__(
        self,
        count: int,
        size: int,
        *,
        key: NodeLike = None,
        init: Initializer = "normal",
        dtype: Any = "float64",
    ) -> None:
        shape = positive(count, "count"), positive(size, "size")
        self.count = count
        self.weight = weights(init, key, shape, shape, dtype)

    def forward(self, numbers: NodeLike) -> Node:
        """The rows of these numbers, along a new last axis."""
        return take(self.weight, numbered(numbers, self.count), axis=0)


class LayerNorm(Module):
    """`layer_norm` over the last axes, which are of this size or shape, with a scale and an offset.

    >>> LayerNorm(3)(placeholder("x", ("N", 3))).type
    float64[N, 3]
    """

    def __init__(
        self, shape: int | tuple[int, ...], *, eps: float = 1e-5, dtype: Any = "float64"
    ) -> None:
        axes = shape if isinstance(shape, (tuple, list)) else (shape,)
        sizes = tuple(positive(s, "a shape") for s in axes)
        if not sizes:
            raise ShapeError("a shape has one axis or more; for a feature it is its number")
        self.scale = parameter(np.ones(sizes, floats(dtype)))
        self.offset = parameter(np.zeros(sizes, dtype))
        self.eps = number(eps, "eps")

    def forward(self, x: NodeLike) -> Node:
        """x, normalised."""
        axes = tuple(range(-self.scale.ndim, 0))
        return layer_norm(alike(x, self.scale), self.scale, self.offset, axis=axes, eps=self.eps)


class BatchNorm(Module):
    """`batch_norm` over all axes but that of the channels, with a scale and an offset.

    While it trains it takes the mean and the variance of the batch, and offers running averages of
    them, the last batch with the weight `momentum`: give the module to an optimiser, or put
    `module.updates(loss)` among the updates that are compiled. In use (`eval`) these averages are
    taken. As in the paper, the variance that is kept is the unbiased one.

    >>> BatchNorm(3)(placeholder("x", ("N", 3, 8, 8))).type
    float64[N, 3, 8, 8]
    """

    buffers = ("mean", "variance")

    def __init__(
        self,
        channels: int,
        *,
        axis: int = 1,
        momentum: float = 0.1,
        eps: float = 1e-5,
        dtype: Any = "float64",
    ) -> None:
        ones = np.ones(positive(channels, "channels"), floats(dtype))
        zeros = np.zeros_like(ones)
        self.scale, self.offset = parameter(ones), parameter(zeros)
        self.mean, self.variance = parameter(zeros), parameter(ones)
        self.axis, self.eps = axis, number(eps, "eps")
        self.momentum = number(momentum, "momentum", 1)

    def forward(self, x: NodeLike) -> Node:
        """x, normalised."""
        given = alike(x, self.scale)
        # A variance may be too large for float16, where what is divided by its root is not.
        node = astype(given, np.result_type(given.dtype, np.float32))
        channel = normalize_axis(self.axis, node.ndim)
        axes = tuple(a for a in range(node.ndim) if a != channel)
        center: Node = self.mean
        spread: Node = self.variance
        if self.training:
            size = product(tuple(node.shape[a] for a in axes))
            moved_unbiased = partial(_moved_unbiased, self.momentum, size)
            center = self.offer("mean", partial(_moved, self.momentum), mean(node, axis=axes))
            spread = self.offer("variance", moved_unbiased, var(node, axis=axes))
        y = batch_norm(
            node,
            self.scale,
            self.offset,
            mean=center,
            variance=spread,
            axis=self.axis,
            eps=self.eps,
        )
        return astype(y, given.dtype)


def _moved(momentum: float, present: Node, found: Node) -> Node:
    """A running average, after one more batch."""
    return astype(present + momentum * (found - present), present.dtype)


def _moved_unbiased(momentum: float, size: Size, present: Node, spread: Node) -> Node:
    count = size * ones_like(spread)
    unbiased = spread * (count / maximum(count - 1, 1))
    # Of one element there is no variance.
    return _moved(momentum, present, where(count > 1, unbiased, present))


class Dropout(Module):
    """`dropout` while it trains, x itself in use (`eval`).

    Its key is a buffer: every call of a program draws with another, if its next value is among the
    updates that are compiled. Those of an optimiser have it; to others add `module.updates(loss)`.
    Two calls in one graph drop other parts; what is built again, once the graph that was built
    before is gone, drops the same. Within `vmap` all elements of the batch lose the same parts, and
    in a loop all steps: for others draw in each step, `sg.nn.dropout(x, fold_in(key, i), rate=…)`.

    >>> Dropout(0.5, key=sg.random.key(0)).eval()(placeholder("x", 3)).type
    float64[3]
    """

    buffers = ("key",)

    def __init__(self, rate: float = 0.5, *, key: NodeLike = None) -> None:
        self.rate = number(rate, "the rate of dropout", 1)
        random.split(given(key))  # refuses what is no key
        self.key = parameter(np.asarray(key))

    def forward(self, x: NodeLike) -> Node:
        """x, with a part of it dropped."""
        if not self.training:
            return as_node(x)
        if self.rate in (0, 1):  # which draws nothing
            return dropout(x, self.key, rate=self.rate)
        # Two uses in one program drop other parts.
        own = self.offer("key", _next_key, random.fold_in(self.key, self.key.cell.next_call))
        return dropout(x, own, rate=self.rate)


def _next_key(present: Node, own: Node) -> Node:
    return random.split(present, 1)[0]


class Sequential(Module):
    """Modules and functions, one after the other: each is given what the one before it gave.

    `net[0]` is the first of its `len(net)` layers, and `net[1:]` a `Sequential` of the others, with
    the same weights.

    >>> net = Sequential(Linear(3, 4, key=sg.random.key(0)), relu, Dropout(key=sg.random.key(1)))
    >>> net(placeholder("x", ("N", 3))).type, len(net[:2])
    (float64[N, 4], 2)
    """

    def __init__(self, *layers: Callable[[Any], Any]) -> None:
        for layer in layers:
            called(layer, "a layer")
        self.layers = layers

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Callable[[Any], Any]]:
        return iter(self.layers)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Callable[[Any], Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return Sequential(*self.layers[index])
        return self.layers[index]

    def forward(self, x: Any) -> Any:
        """The output of the last one."""
        for layer in self.layers:
            x = layer(x)
        return x


class Flatten(Module):
    """All axes after the first as one, of which the sizes must be known: the features of each row.

    Raises `ShapeError` for x without axes, or with a named dimension after the first.

    >>> Flatten()(placeholder("x", ("N", 32, 2, 2))).type
    float64[N, 128]
    """

    def forward(self, x: NodeLike) -> Node:
        """x, of the shape (N, features)."""
        node = as_node(x)
        if not node.ndim or not all(isinstance(size, int) for size in node.shape[1:]):
            raise ShapeError(
                f"what is made flat is of the shape (N, …), with sizes that are known after the "
                f"first, and not {node.type!r}"
            )
        return reshape(node, (node.shape[0], product(node.shape[1:])))


class Residual(Module):
    """x + body(x): He et al., arXiv:1512.03385. Raises `ShapeError` if the shapes differ.

    >>> Residual(Linear(3, 3, key=sg.random.key(0)))(placeholder("x", ("N", 3))).type
    float64[N, 3]
    """

    def __init__(self, body: Callable[[Any], Any]) -> None:
        self.body = called(body, "the body")

    def forward(self, x: NodeLike) -> Node:
        """x, and what the body makes of it."""
        node = as_node(x)
        y = as_node(self.body(node))
        if y.shape != node.shape:
            raise ShapeError(f"the body makes {y.type!r} of {node.type!r}, and they are added")
        return node + y
