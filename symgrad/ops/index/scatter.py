"""Functional writes: arrays with values written to a place, as `x.at[index]` spells them.

Where an index names a place more than once, the last value is set, and all are added, multiplied or
compared. Each write has a gradient by x and by what is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.dims import Size, product
from symgrad.ir.errors import DtypeError, ShapeError
from symgrad.ir.node import Node, as_node, constant_node
from symgrad.ir.types import as_shape, broadcast_shapes
from symgrad.ir.values import ArrayData
from symgrad.ops.cumulative import changes, scan
from symgrad.ops.declare import NodeLike, composite, require
from symgrad.ops.elementwise import divide, multiply
from symgrad.ops.index.gather import gather, is_unique, scatter
from symgrad.ops.index.indexing import Place, as_integers, mask_of, read
from symgrad.ops.index.slices import put_slice
from symgrad.ops.leaves import full
from symgrad.ops.order import argsort
from symgrad.ops.select import maximum, minimum, select, where
from symgrad.ops.shape import astype, broadcast_to, permute_dims, reshape


def _fitted(x: Node, value: NodeLike) -> Node:
    """A value in the dtype of x, which keeps its own: that is what writing means."""
    node = as_node(value)
    weak = isinstance(value, (bool, int, float, complex))
    found = np.result_type(x.dtype, value if weak else node.dtype)
    if not np.can_cast(found, x.dtype, "same_kind"):
        raise DtypeError(
            f"{node.dtype.name} cannot be written into {x.dtype.name}; "
            f"convert one of them first: x.astype({found.name!r})"
        )
    return constant_node(ArrayData(value, x.dtype)) if weak else astype(node, x.dtype)


def _broadcast(value: Node, like: Node) -> Node:
    if value.shape == like.shape:
        return value
    if broadcast_shapes(value.shape, like.shape) != like.shape:
        raise ShapeError(f"{value.type!r} does not broadcast to the place, which is {like.type!r}")
    return broadcast_to(value, like.shape)


def _over_mask(mask: Node, x: Node, value: Node) -> Node:
    """A mask whose value only a run will tell, with axes that broadcast against x.

    Raises `ShapeError` if there is one value for each element that it takes.
    """
    for axis, (size, own) in enumerate(zip(x.shape, mask.shape, strict=False)):
        if size != own:
            raise ShapeError(f"axis {axis} of the mask is {own}, and of the array {size}")
    if value.ndim > x.ndim - mask.ndim:
        raise ShapeError(
            "how many elements a boolean mask takes is known only when the program runs: write one "
            "value to all of them, or sg.where(mask, values, x)"
        )
    return reshape(mask, (*mask.shape, *(1,) * (x.ndim - mask.ndim)))


def _changed(
    x: NodeLike,
    index: Any,
    value: NodeLike,
    change: Callable[[Node, Node], Node],
    gathered: Callable[[Place, Node, Node], Node],
) -> Node:
    """x with what is at a place changed by values.

    `gathered` makes one of all the values for each place that an index names more than once.
    """
    node = as_node(x)
    fitted = _fitted(node, value)
    mask = mask_of(index)
    if mask is not None:
        return where(_over_mask(mask, node, fitted), change(node, fitted), node)
    place = read(node, index)
    there = place.get(node)
    fitted = _broadcast(fitted, there)
    if place.indices and not _is_unique(place, node):
        fitted = gathered(place, place.window(node), fitted)
    return _written(node, place, change(there, fitted), "set")


def _is_unique(place: Place, x: Node) -> bool:
    sizes = place.window(x).shape[place.axis :]
    return is_unique(place.indices, sizes[: len(place.indices)])


def _written(x: Node, place: Place, value: Node, mode: str) -> Node:
    """x with values, of the shape of the place, set there or added to it."""
    if not place.indices:
        return put_slice(x, place.slices, value, mode)
    part = scatter(place.window(x), value, *place.indices, axis=place.axis, mode=mode)
    if place.order != tuple(range(part.ndim)):
        part = permute_dims(part, np.argsort(place.order).tolist())
    return put_slice(x, place.slices, part, "set")


def _extreme(mode: str, start: Callable[[Node], Any]) -> Callable[[Place, Node, Node], Node]:
    def gathered(place: Place, window: Node, value: Node) -> Node:
        lowest = full(window.shape, start(window), dtype=window.dtype)
        found = scatter(lowest, value, *place.indices, axis=place.axis, mode=mode)
        return gather(found, *place.indices, axis=place.axis)

    return gathered


def _limit(x: Node, sign: int) -> Any:
    """The largest or the smallest number of the dtype of x."""
    if x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        return limits.max if sign > 0 else limits.min
    return sign > 0 if x.dtype.kind == "b" else sign * np.inf


def _products(place: Place, window: Node, value: Node) -> Node:
    """For each value the product of all that go to the same place.

    Those of one place are put side by side, and multiplied one by one, so that the derivatives are
    right at zeros.
    """
    axis, count = place.axis, len(place.indices)
    shape = broadcast_shapes(*(i.shape for i in place.indices))
    at: Any = 0
    for index, size in zip(place.indices, window.shape[axis:], strict=False):
        at = at * size + where(index < 0, index + size, index)
    at = reshape(broadcast_to(at, shape), (-1,))
    order = argsort(at)
    at = gather(at, order, axis=0)
    flat = (*window.shape[:axis], product(shape), *window.shape[axis + count :])
    factors = gather(reshape(value, flat), order, axis=axis)
    again = reshape(~changes(at, 0), (*at.shape, *(1,) * (len(flat) - axis - 1)))
    # p[k] = f[k] * p[k - 1] where place k is that of k - 1, else f[k].
    first = where(again, 0, factors)
    follow = select(again, factors)
    running = follow * scan(follow, first, axis=axis, reverse=False) + first
    cells = (*window.shape[:axis], product(window.shape[axis : axis + count]))
    whole = full((*cells, *window.shape[axis + count :]), 0, dtype=value.dtype)
    last = scatter(whole, running, at, axis=axis, mode="set")
    return gather(reshape(last, window.shape), *place.indices, axis=axis)


@composite()
def set_at(x: NodeLike, index: Any, value: NodeLike, /) -> Node:
    """x with values at an index: `x.at[index].set(value)`.

    The index is one that `x[index]` takes, and the values broadcast to what is there. Where the
    index names a place more than once the last value stays, and the others get no gradient. One
    value may be set by a mask that is not known yet.

    x keeps its dtype. Raises `DtypeError` for values that do not fit in, and what indexing raises.

    >>> x = placeholder("x", 4)
    >>> np.asarray(set_at(np.zeros(4), [1, 3], [5, 6]))
    array([0., 5., 0., 6.])
    """
    return _set_or_add(x, index, value, "set")


@composite()
def add_at(x: NodeLike, index: Any, value: NodeLike, /) -> Node:
    """x with values added at an index: `x.at[index].add(value)`, NumPy's `np.add.at`.

    Where the index names a place more than once, all values are added, in their order. See `set_at`
    for what the index and the values may be.
    """
    return _set_or_add(x, index, value, "add")


def _set_or_add(x: NodeLike, index: Any, value: NodeLike, mode: str) -> Node:
    node = as_node(x)
    if mode == "add":
        require("iufc", node.tensor)
    fitted, mask = _fitted(node, value), mask_of(index)
    if mask is not None:
        new = node + fitted if mode == "add" else fitted
        return where(_over_mask(mask, node, fitted), new, node)
    place = read(node, index)
    return _written(node, place, _broadcast(fitted, place.get(node)), mode)


@composite()
def multiply_at(x: NodeLike, index: Any, value: NodeLike, /) -> Node:
    """x multiplied by values at an index: `x.at[index].multiply(value)`; see `set_at`.

    Where the index names a place more than once, or may do so, the values are first sorted by
    place, so that the gradient is right at zeros.
    """
    return _changed(x, index, value, multiply, _products)


@composite()
def divide_at(x: NodeLike, index: Any, value: NodeLike, /) -> Node:
    """x, of floats, divided by values at an index: `x.at[index].divide(value)`.

    See `multiply_at`.
    """
    require("fc", as_node(x).tensor)
    return _changed(x, index, value, divide, _products)


@composite()
def max_at(x: NodeLike, index: Any, value: NodeLike, /) -> Node:
    """x with at least these values at an index: `x.at[index].max(value)`; see `set_at`.

    Where the index names a place more than once, the largest value counts, and those that tie share
    its gradient. x and that value share as those of `maximum` do.
    """
    require("biuf", as_node(x).tensor)
    return _changed(x, index, value, maximum, _extreme("max", lambda x: _limit(x, -1)))


@composite()
def min_at(x: NodeLike, index: Any, value: NodeLike, /) -> Node:
    """x with at most these values at an index: `x.at[index].min(value)`; see `max_at`."""
    require("biuf", as_node(x).tensor)
    return _changed(x, index, value, minimum, _extreme("min", lambda x: _limit(x, 1)))


def from_zero(index: Node, size: Size) -> Node:
    """Indices of which those below 0, else counted from the end, are out of bounds."""
    wide = astype(index, "int64")
    return where(wide < 0, size, wide)


@composite()
def segment_sum(x: NodeLike, segment_ids: NodeLike, /, num_segments: Any) -> Node:
    """The sums of the rows of x that have the same number: row i is added to row segment_ids[i].

    The numbers are integers from 0 to num_segments - 1, in any order; one out of bounds is a
    `BoundsError`. `num_segments` is an int or a named dimension.

    >>> np.asarray(segment_sum(np.arange(4.0), [0, 2, 0, 2], num_segments=3))
    array([2., 0., 4.])
    """
    node, ids = as_node(x), as_integers(segment_ids)
    if ids.ndim > node.ndim or ids.shape != node.shape[: ids.ndim]:
        raise ShapeError(f"the numbers, {ids.type!r}, are not one for each row of {node.type!r}")
    (size,) = as_shape(num_segments)
    zeros = full((size, *node.shape[ids.ndim :]), 0, dtype=node.dtype)
    return add_at(zeros, from_zero(ids, size), node)
