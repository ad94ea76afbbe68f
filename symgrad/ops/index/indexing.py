"""Indexing: NumPy's rules, with nodes among the indices.

An index is taken apart into slices, which are views, and arrays of indices, which gather from what
the slices leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir.dim_text import same_size
from symgrad.ir.dims import Shape
from symgrad.ir.errors import AxisError, BoundsError, IndexingError, ShapeError, SymbolicError
from symgrad.ir.evaluate import value_of
from symgrad.ir.graph import is_input
from symgrad.ir.node import Node, as_node, constant_node, constant_value
from symgrad.ir.operators import call
from symgrad.ir.types import DType, broadcast_shapes
from symgrad.ir.values import ArrayData
from symgrad.ir.walk import topological
from symgrad.ops.declare import NodeLike, require

WHOLE = slice(None)
INDEX = np.dtype(np.int64)


def is_empty_list(value: Any) -> bool:
    """Whether a list or tuple, nested or not, holds no number; NumPy makes floats of it."""
    return isinstance(value, (list, tuple)) and all(map(is_empty_list, value))


def as_integers(x: NodeLike) -> Node:
    """Integers as a node; an empty list is one of integers. Raises `DtypeError` for others."""
    node = as_node(np.empty(np.shape(x), INDEX) if is_empty_list(x) else x)
    require("iu", node.tensor)
    return node


class Place(NamedTuple):
    """Where in an array: what slices leave of it, its axes in this order, then arrays of indices.

    The indices stand for neighbouring axes, of which `axis` is the first; there may be none.
    """

    slices: tuple[Any, ...]
    order: tuple[int, ...] = ()
    axis: int = 0
    indices: tuple[Node, ...] = ()

    def window(self, x: Node) -> Node:
        """The view that the slices leave, with its axes in order."""
        part = call("getitem", x, self.slices)
        return _permuted(part, self.order)

    def get(self, x: Node) -> Node:
        """The elements at the index."""
        part = self.window(x)
        if not self.indices:
            return part
        from symgrad.ops.index.gather import gather

        return gather(part, *self.indices, axis=self.axis)


def _permuted(x: Node, order: Sequence[int]) -> Node:
    return x if tuple(order) == tuple(range(len(order))) else call("permute_dims", x, order)


def known(x: Node) -> np.ndarray[Any, DType] | None:
    """The value of a node, if it is the same whenever a program runs; else None."""
    if (array := constant_value(x)) is not None:
        return array
    if 0 in x.shape and not x.tensor.names:
        return np.zeros(x.shape, x.dtype)
    if any(is_input(n) for n in topological([x])):
        return None
    try:
        return np.asarray(value_of(x))
    except SymbolicError:  # the size of a named dimension has a part in it
        return None


def _places(mask: Node) -> tuple[Any, ...] | None:
    """Where a mask is true, if that is known: nowhere if it is empty; a 0-d one as if 1-d."""
    if 0 in mask.shape:
        return (np.empty(0, INDEX),) * mask.ndim
    value = known(mask)
    return None if value is None else np.nonzero(np.atleast_1d(value))


def read(x: Node, index: Any) -> Place:
    """The place in x that an index means. Raises `ShapeError` if it means none, or one whose size
    is not known, `BoundsError` if it is known to be out of bounds."""
    items = list(index) if isinstance(index, tuple) else [index]
    items = _without_ellipsis(x, [_item(i) for i in items])
    if not any(isinstance(i, Node) for i in items):
        return Place(tuple(items))
    return _Reader(x).read(items)


def _item(item: Any) -> Any:
    """An item of an index as None, an ellipsis, a slice, an int, or a node of ints or booleans."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if is_empty_list(item):
        return as_integers(item)
    if isinstance(item, (Node, list, tuple, np.ndarray, np.generic, bool)):
        node = as_node(item)
        if node.dtype.kind in "iu" and not node.ndim:
            value = constant_value(node)
            return node if value is None else int(value)
        if node.dtype.kind in "biu":
            return node
    elif hasattr(item, "__index__"):
        return int(item.__index__())
    found = f"{node.dtype.name}s" if isinstance(item, (Node, np.ndarray)) else type(item).__name__
    raise IndexingError(
        f"an index is made of ints, slices, None and ..., of arrays of ints or booleans, "
        f"not of {found}"
    )


def _without_ellipsis(x: Node, items: list[Any]) -> list[Any]:
    """The items with as many slices of everything as there are axes left."""
    if sum(i is Ellipsis for i in items) > 1:
        raise IndexingError("an index has at most one ellipsis (...)")
    used = sum(
        i.ndim if isinstance(i, Node) and i.dtype.kind == "b" else 1
        for i in items
        if i is not None and i is not Ellipsis
    )
    if used > x.ndim:
        raise AxisError(f"{used} indices for the {x.ndim} dimensions of {x.type!r}")
    at = next((k for k, i in enumerate(items) if i is Ellipsis), len(items))
    return [*items[:at], *(WHOLE,) * (x.ndim - used), *items[at + 1 :]]


class _Reader:
    """Takes an index apart; `positions` are the axes of the window that have been indexed."""

    def __init__(self, x: Node) -> None:
        self.shape: Shape = x.shape
        self.axis = 0
        self.kept = 0
        self.slices: list[Any] = []
        self.positions: list[int] = []
        self.indices: list[Node] = []

    def read(self, items: Sequence[Any]) -> Place:
        for item in items:
            self._take(item)
        try:
            broadcast_shapes(*(i.shape for i in self.indices))
        except ShapeError as error:
            raise IndexingError(f"the arrays of an index broadcast together: {error}") from None
        advanced = [k for k, i in enumerate(items) if isinstance(i, (int, Node))]
        first, rest = self.positions[0], [i for i in range(self.kept) if i not in self.positions]
        # Indices that are not neighbours put their shape in front, says NumPy.
        if advanced == list(range(advanced[0], advanced[-1] + 1)):
            order = [*rest[:first], *self.positions, *rest[first:]]
        else:
            order, first = [*self.positions, *rest], 0
        return Place(tuple(self.slices), tuple(order), first, tuple(self.indices))

    def _take(self, item: Any) -> None:
        if isinstance(item, Node) and item.dtype.kind == "b":
            self._mask(item)
        elif isinstance(item, Node):
            self._index(in_bounds(item, self.shape[self.axis], self.axis))
            self.axis += 1
        else:
            self.slices.append(item)
            self.axis += item is not None
            self.kept += not isinstance(item, int)

    def _index(self, index: Node, slice_: Any = WHOLE) -> None:
        self.slices.append(slice_)
        self.positions.append(self.kept)
        self.indices.append(index)
        self.kept += 1

    def _mask(self, mask: Node) -> None:
        places = _places(mask)
        if places is None:
            raise ShapeError(
                "how many elements a boolean mask takes is known only when the program runs; "
                "write sg.where(mask, x, other), or take so many at most: "
                "x[sg.nonzero(mask, size=...)]"
            )
        indexed = self.shape[self.axis : self.axis + mask.ndim]
        if not all(map(same_size, indexed, mask.shape)):
            raise IndexingError(
                f"a mask of shape {mask.shape} for axes of shape {indexed}, which must be the same"
            )
        for found in places:
            self._index(constant_node(ArrayData(found)), WHOLE if mask.ndim else None)
        self.axis += mask.ndim


def in_bounds(index: Node, size: Any, axis: int) -> Node:
    """Indices as they are. Raises `BoundsError` if they are known not to lie within a size."""
    value = constant_value(index)
    if value is not None and value.size and isinstance(size, int):
        low, high = int(value.min()), int(value.max())
        if not -size <= low <= high < size:
            bad = low if low < -size else high
            raise BoundsError(f"index {bad} is out of range for axis {axis} of size {size}")
    return index


def mask_of(index: Any) -> Node | None:
    """The mask that an index is, if it is one whose value only a run will tell."""
    mask = as_node(index) if isinstance(index, Node) else None
    return mask if mask is not None and mask.dtype.kind == "b" and _places(mask) is None else None
