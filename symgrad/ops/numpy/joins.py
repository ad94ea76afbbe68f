"""NumPy's ways to join arrays, to take them apart and to turn them: hstack, split, rot90, …."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.ir.errors import ArgumentError, AxisError, BoundsError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import in_order, normalize_axis, whole
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.index.indexing import known
from symgrad.ops.index.slices import getitem
from symgrad.ops.index.take import take
from symgrad.ops.shape import concat, expand_dims, flattened, flip, moveaxis, permute_dims, reshape


@composite(numpy=(np.ravel,))
def ravel(x: NodeLike, /, order: str = "C") -> Node:
    """The elements as a vector, the last axis running fastest; with `order="F"` the first."""
    return reshape(as_node(x), (-1,), order="C" if order == "K" else order)


@composite(numpy=(np.swapaxes,))
def swapaxes(x: NodeLike, axis1: int, axis2: int, /) -> Node:
    """x with two axes in each other's place. Raises `AxisError` for an axis out of range."""
    node = as_node(x)
    first, second = (normalize_axis(a, node.ndim) for a in (axis1, axis2))
    order = list(range(node.ndim))
    order[first], order[second] = second, first
    return permute_dims(node, tuple(order))


@composite(numpy=(np.fliplr,))
def fliplr(x: NodeLike, /) -> Node:
    """x with its columns, the second axis, in reverse order."""
    return flip(x, axis=1)


@composite(numpy=(np.flipud,))
def flipud(x: NodeLike, /) -> Node:
    """x with its rows, the first axis, in reverse order."""
    return flip(x, axis=0)


@composite(numpy=(np.rot90,))
def rot90(x: NodeLike, /, *, k: int = 1, axes: Any = (0, 1)) -> Node:
    """x turned by k quarters in the plane of two axes, from the first towards the second.

    >>> np.asarray(rot90(np.array([[1, 2], [3, 4]])))
    array([[2, 4],
           [1, 3]])
    """
    node = as_node(x)
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise ArgumentError(f"a plane has two axes, and axes is {axes!r}")
    turns = whole(k, "k", -(2**62), ArgumentError) % 4
    first, second = (normalize_axis(a, node.ndim) for a in axes)
    if first == second:
        raise AxisError(f"a plane has two axes, not axis {first} twice")
    if turns == 2:
        return flip(node, axis=(first, second))
    if turns == 1:
        return swapaxes(flip(node, axis=second), first, second)
    return flip(swapaxes(node, first, second), axis=second) if turns else node


# ---- at least so many axes ------------------------------------------------------------------


def _several(found: Sequence[Node]) -> Any:
    return found[0] if len(found) == 1 else tuple(found)


def _with_axes(x: NodeLike, count: int) -> Node:
    node = as_node(x)
    if node.ndim == 0:
        return reshape(node, (1,) * count)
    if node.ndim < count:  # rows and columns first, then a third axis behind
        node = expand_dims(node, axis=0) if node.ndim == 1 and count > 1 else node
        node = expand_dims(node, axis=-1) if node.ndim == 2 and count > 2 else node
    return node


@composite(numpy=(np.atleast_1d,))
def atleast_1d(*arrays: NodeLike) -> Any:
    """Each array, a scalar as a vector of one element; of several arrays a tuple."""
    return _several([_with_axes(a, 1) for a in arrays])


@composite(numpy=(np.atleast_2d,))
def atleast_2d(*arrays: NodeLike) -> Any:
    """Each array, a vector as a matrix of one row; of several arrays a tuple."""
    return _several([_with_axes(a, 2) for a in arrays])


@composite(numpy=(np.atleast_3d,))
def atleast_3d(*arrays: NodeLike) -> Any:
    """Each array with three axes or more: a vector of N becomes (1, N, 1), a matrix (M, N, 1)."""
    return _several([_with_axes(a, 3) for a in arrays])


# ---- joining --------------------------------------------------------------------------------


def _parts(arrays: Any, count: int) -> list[Node]:
    return [_with_axes(a, count) for a in in_order(arrays, "arrays", ShapeError)]


@composite(numpy=(np.hstack,))
def hstack(arrays: Sequence[NodeLike], /) -> Node:
    """The arrays one after the other along the second axis, vectors along their only one."""
    parts = _parts(arrays, 1)
    return concat(parts, axis=0 if parts and parts[0].ndim == 1 else 1)


@composite(numpy=(np.vstack,))
def vstack(arrays: Sequence[NodeLike], /) -> Node:
    """The arrays one below the other, along the first axis; a vector is a row.

    >>> vstack([placeholder("x", 3), np.zeros((2, 3))]).type
    float64[3, 3]
    """
    return concat(_parts(arrays, 2), axis=0)


@composite(numpy=(np.dstack,))
def dstack(arrays: Sequence[NodeLike], /) -> Node:
    """The arrays one behind the other, along the third axis."""
    return concat(_parts(arrays, 3), axis=2)


@composite(numpy=(np.column_stack,))
def column_stack(arrays: Sequence[NodeLike], /) -> Node:
    """The arrays beside each other; a vector is a column."""
    nodes = [as_node(a) for a in in_order(arrays, "arrays", ShapeError)]
    columns = [n if n.ndim > 1 else reshape(n, (-1, 1)) for n in nodes]
    return concat(columns, axis=1)


@composite(numpy=(np.append,))
def append(x: NodeLike, values: NodeLike, /, axis: int | None = None) -> Node:
    """x and behind it the values, along an axis; None makes vectors of both first."""
    return concat([as_node(x), as_node(values)], axis=axis)


# ---- taking apart ---------------------------------------------------------------------------


def _split(x: NodeLike, where: Any, axis: int, *, even: bool) -> tuple[Node, ...]:
    node = as_node(x)
    along = normalize_axis(axis, node.ndim)
    size = node.shape[along]
    if not isinstance(where, (list, tuple, np.ndarray)):
        count = whole(where, "the number of parts", 1, ArgumentError)
        if not isinstance(size, int):
            raise ShapeError(
                f"into how large parts {size} is split is not known while the graph is built; "
                "declare an int for the size, or give the places"
            )
        if even and size % count:
            raise ShapeError(f"{size} cannot be split into {count} equal parts; see array_split")
        if count > max(size, 1) * 1000:
            raise ShapeError(f"{count} parts are too many for {size}")
        each, more = divmod(size, count)
        sizes = [each + 1] * more + [each] * (count - more)
        where = np.cumsum(sizes)[:-1].tolist()
    given = in_order(where, "places", ShapeError)
    places = [whole(p, "a place", -(2**62), ArgumentError) for p in given]
    bounds = [slice(a, b) for a, b in zip([None, *places], [*places, None], strict=True)]
    before = (slice(None),) * along
    return tuple(getitem(node, (*before, b)) for b in bounds)


@composite(numpy=(np.split,))
def split(x: NodeLike, indices_or_sections: Any, /, axis: int = 0) -> tuple[Node, ...]:
    """Parts of x along an axis: so many of one size, or those between places.

    >>> [y.shape for y in split(placeholder("x", (6, 2)), 3)]
    [(2, 2), (2, 2), (2, 2)]
    """
    return _split(x, indices_or_sections, axis, even=True)


@composite(numpy=(np.array_split,))
def array_split(x: NodeLike, indices_or_sections: Any, /, axis: int = 0) -> tuple[Node, ...]:
    """`split` into parts of which the first may be larger by one."""
    return _split(x, indices_or_sections, axis, even=False)


@composite(numpy=(np.hsplit,))
def hsplit(x: NodeLike, indices_or_sections: Any, /) -> tuple[Node, ...]:
    """`split` along the second axis; of a vector along its only one."""
    return _split(x, indices_or_sections, 1 if as_node(x).ndim > 1 else 0, even=True)


@composite(numpy=(np.vsplit,))
def vsplit(x: NodeLike, indices_or_sections: Any, /) -> tuple[Node, ...]:
    """`split` along the first axis, of two or more."""
    node = as_node(x)
    if node.ndim < 2:
        raise ShapeError(f"vsplit takes two axes or more, not {node.type!r}")
    return _split(node, indices_or_sections, 0, even=True)


@composite(numpy=(np.dsplit,))
def dsplit(x: NodeLike, indices_or_sections: Any, /) -> tuple[Node, ...]:
    """`split` along the third axis."""
    node = as_node(x)
    if node.ndim < 3:
        raise ShapeError(f"dsplit takes three axes or more, not {node.type!r}")
    return _split(node, indices_or_sections, 2, even=True)


@composite(numpy=(np.delete,))
def delete(x: NodeLike, obj: Any, /, axis: int | None = None) -> Node:
    """x without the parts of these numbers along an axis; None makes a vector of x first.

    `obj` is an int, a slice, several ints or a mask, known when the graph is built, as the size is.
    Raises `ShapeError` where it is not, `BoundsError` for a number out of bounds.
    """
    node, along = flattened(as_node(x), axis)
    places, size = known_places(obj, node.shape[along], "delete")
    try:
        left = np.delete(np.arange(size), places)
    except IndexError as error:
        raise BoundsError(str(error)) from None
    except ValueError as error:
        raise ShapeError(str(error)) from None
    return take(node, left, axis=along)


def known_places(obj: Any, size: Any, what: str) -> tuple[Any, int]:
    """Indices as NumPy has them, and the size of the axis, both of which must be known."""
    value = obj if isinstance(obj, slice) else known(as_node(obj))
    if value is None or not isinstance(size, int):
        raise ShapeError(
            f"{what} takes indices that are known when the graph is built, of an axis of known "
            f"size, not of {size}; write sg.concat([x[:i], …, x[i:]])"
        )
    if not isinstance(value, slice) and value.size == 0:
        value = value.astype(np.int64)
    return value, size


@composite(numpy=(np.rollaxis,))
def rollaxis(x: NodeLike, axis: int, /, *, start: int = 0) -> Node:
    """x with an axis put before the one that is at `start`; see moveaxis."""
    node = as_node(x)
    source = normalize_axis(axis, node.ndim)
    place = node.ndim if start == node.ndim else normalize_axis(start, node.ndim)
    return moveaxis(node, source, place - (place > source))
