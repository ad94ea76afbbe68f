"""Elements by their places: insert, compress, choose, partition, indices of triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.dims import product
from symgrad.ir.errors import ShapeError, UnsupportedError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import as_shape, in_order, normalize_axis
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.dtypes import result_type
from symgrad.ops.elementwise import multiply, remainder
from symgrad.ops.index.gather import as_integers
from symgrad.ops.index.indexing import known
from symgrad.ops.index.take import take, take_along_axis
from symgrad.ops.leaves import constant, zeros
from symgrad.ops.linalg.solve import diag
from symgrad.ops.manipulate import broadcast_arrays
from symgrad.ops.reduce import sum
from symgrad.ops.select import clip
from symgrad.ops.shape import (
    astype,
    broadcast_to,
    concat,
    moveaxis,
    reshape,
    stack,
)


def _deep(x: NodeLike, ndim: int) -> Node:
    """x with axes of size 1 in front, until it has `ndim`."""
    node = as_node(x)
    return node if node.ndim >= ndim else reshape(node, (1,) * (ndim - node.ndim) + node.shape)


def _depth(arrays: Any) -> int:
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) and arrays else 0


@composite(numpy=(np.block,))
def block(arrays: Any, /) -> Node:
    """The array that nested lists of blocks make: the innermost are joined along the last axis.

    >>> block([[np.eye(2), placeholder("x", (2, 3))]]).type
    float64[2, 5]
    """
    depth = _depth(arrays)
    if depth == 0:
        return as_node(arrays)

    def leaves(part: Any) -> list[Node]:
        return [n for p in part for n in leaves(p)] if isinstance(part, list) else [as_node(part)]

    ndim = max(depth, *(n.ndim for n in leaves(arrays)))

    def joined(part: Any, level: int) -> Node:
        if not isinstance(part, list):
            return _deep(part, ndim)
        return concat([joined(p, level + 1) for p in part], axis=ndim - depth + level)

    return joined(arrays, 0)


def _flattened(x: NodeLike, axis: int | None) -> tuple[Node, int]:
    node = as_node(x)
    if axis is None:
        return reshape(node, (-1,)), 0
    return node, normalize_axis(axis, node.ndim)


def _known_places(obj: Any, size: Any, what: str) -> tuple[Any, int]:
    """Indices as NumPy has them, and the size of the axis, both of which must be known."""
    value = obj if isinstance(obj, slice) else known(as_node(obj))
    if value is None or not isinstance(size, int):
        raise ShapeError(
            f"{what} takes indices that are known when the graph is built, of an axis of known "
            f"size, not of {size}; write sg.concat([x[:i], …, x[i:]])"
        )
    return value, size


@composite(numpy=(np.insert,))
def insert(x: NodeLike, obj: Any, values: NodeLike, /, axis: int | None = None) -> Node:
    """x with values put before the elements at indices along an axis; None flattens x.

    Raises `ShapeError` where the indices or the size of the axis are not known.

    >>> np.asarray(insert([1, 2, 3], 1, 9))
    array([1, 9, 2, 3])
    """
    node, along = _flattened(x, axis)
    places, size = _known_places(obj, node.shape[along], "insert")
    new = _deep(astype(as_node(values), node.dtype), node.ndim)
    if not isinstance(places, slice) and np.ndim(places) == 0:
        new = moveaxis(new, 0, along)
    probe = np.insert(np.arange(size), places, -1)
    count = len(probe) - size if isinstance(places, slice) or np.size(places) != 1 else None
    wanted: Any = new.shape[along] if count is None else count
    new = broadcast_to(new, (*node.shape[:along], wanted, *node.shape[along + 1 :]))
    order = np.insert(np.arange(size), places, size + np.arange(int(wanted)))
    return take(concat([node, new], axis=along), order, axis=along)


@composite(numpy=(np.resize,))
def resize(x: NodeLike, new_shape: Any, /) -> Node:
    """The elements over and over again, until an array of this shape is full.

    >>> np.asarray(resize([1, 2], 3))
    array([1, 2, 1])
    """
    node, shape = as_node(x), as_shape(new_shape)
    total, size = product(shape), node.size
    if not isinstance(total, int) or not isinstance(size, int):
        raise ShapeError(f"resize from {node.shape} to {shape}: the sizes are to be known")
    if not size:
        return zeros(shape, dtype=node.dtype)
    return reshape(take(node, np.arange(total) % size), shape)


@composite(numpy=(np.diagflat,))
def diagflat(x: NodeLike, /, k: int = 0) -> Node:
    """The matrix with the elements of x along its diagonal k, and zeros."""
    return diag(reshape(as_node(x), (-1,)), k=k)


@composite(numpy=(np.apply_over_axes,))
def apply_over_axes(function: Any, x: NodeLike, axes: Any, /) -> Node:
    """x reduced by function(x, axis) over one axis after another, which stay with size 1."""
    node = as_node(x)
    for axis in np.atleast_1d(axes).tolist():
        along = normalize_axis(axis, node.ndim)
        found = as_node(function(node, along))
        if found.ndim == node.ndim - 1:
            found = reshape(found, (*node.shape[:along], 1, *node.shape[along + 1 :]))
        node = found
    return node


def _sizes(x: NodeLike) -> tuple[int, int]:
    rows, columns = as_node(x).shape if as_node(x).ndim == 2 else (None, None)
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise ShapeError(f"the indices of {as_node(x).type!r}: it is to be a matrix of known size")
    return rows, columns


@composite(numpy=(np.tril_indices_from,))
def tril_indices_from(x: NodeLike, /, k: int = 0) -> tuple[Node, ...]:
    """The rows and the columns of the elements on the diagonal k of a matrix and below it."""
    rows, columns = _sizes(x)
    return tuple(constant(i) for i in np.tril_indices(rows, k, columns))


@composite(numpy=(np.triu_indices_from,))
def triu_indices_from(x: NodeLike, /, k: int = 0) -> tuple[Node, ...]:
    """The rows and the columns of the elements on the diagonal k of a matrix and above it."""
    rows, columns = _sizes(x)
    return tuple(constant(i) for i in np.triu_indices(rows, k, columns))


@composite(numpy=(np.diag_indices_from,))
def diag_indices_from(x: NodeLike, /) -> tuple[Node, ...]:
    """The rows and the columns of the main diagonal of a square matrix."""
    rows, columns = _sizes(x)
    if rows != columns:
        raise ShapeError(f"a matrix of {rows} rows and {columns} columns is not square")
    return tuple(constant(i) for i in np.diag_indices(rows))


@composite(numpy=(np.ravel_multi_index,))
def ravel_multi_index(multi_index: Any, dims: Any, /) -> Node:
    """The places in a flattened array of elements that are given by an index for each axis."""
    sizes = as_shape(dims)
    if len(multi_index) != len(sizes):
        raise ShapeError(f"{len(multi_index)} indices do not fit {len(sizes)} axes")
    terms = [
        multiply(as_node(index), product(sizes[i + 1 :])) for i, index in enumerate(multi_index)
    ]
    return sum(stack(terms), axis=0) if len(terms) > 1 else terms[0]


@composite(numpy=(np.unravel_index,))
def unravel_index(indices: NodeLike, shape: Any, /) -> tuple[Node, ...]:
    """For each axis the index of the elements at these places of a flattened array.

    >>> [y.item() for y in unravel_index(5, (2, 3))]
    [1, 2]
    """
    node, sizes = as_node(indices), as_shape(shape)
    return tuple(
        node // product(sizes[i + 1 :]) % size if i else node // product(sizes[1:])
        for i, size in enumerate(sizes)
    )


def _dtype(*choices: NodeLike) -> Any:
    """The dtype of them all; a number takes that of the others."""
    plain = (bool, int, float, complex)
    return result_type(*(c if isinstance(c, plain) else as_node(c) for c in choices))


@composite(numpy=(np.choose,))
def choose(a: NodeLike, choices: Any, /, *, mode: str = "raise") -> Node:
    """For each element the one at its place of the choice with the number that `a` has there.

    A number out of range is a `BoundsError`, but with `mode` "clip" the nearest and with "wrap"
    counted on from the beginning.

    >>> np.asarray(choose([0, 1, 0], [[1, 2, 3], [10, 20, 30]]))
    array([ 1, 20,  3])
    """
    numbers = as_integers(a)
    nodes = [as_node(c) for c in in_order(choices, "choices", ShapeError)]
    if not nodes:
        raise ShapeError("there is nothing to choose from")
    if mode == "clip":
        numbers = clip(numbers, 0, len(nodes) - 1)
    elif mode == "wrap":
        numbers = remainder(numbers, len(nodes))
    elif mode != "raise":
        raise UnsupportedError(f"the mode is 'raise', 'clip' or 'wrap', not {mode!r}")
    dtype = _dtype(*choices)
    numbers, *alike = broadcast_arrays(numbers, *(astype(n, dtype) for n in nodes))
    found = take_along_axis(stack(alike), reshape(numbers, (1, *numbers.shape)), axis=0)
    return reshape(found, numbers.shape)


def _places(condition: NodeLike) -> Any:
    value = known(as_node(condition))
    if value is None:
        raise ShapeError(
            "how many elements a condition takes is known only when the program runs; write "
            "sg.where(condition, x, other), or sg.nonzero(condition, size=...)"
        )
    return np.flatnonzero(value)


@composite(numpy=(np.compress,))
def compress(condition: NodeLike, x: NodeLike, /, axis: int | None = None) -> Node:
    """The elements along an axis where a condition holds, which must be known; None flattens x.

    Raises `ShapeError` for a condition that is known only when the program runs.

    >>> np.asarray(compress([True, False, True], [1, 2, 3]))
    array([1, 3])
    """
    if as_node(condition).ndim != 1:
        raise ShapeError(f"the condition is a vector, not {as_node(condition).type!r}")
    return take(x, _places(condition), axis=axis)


@composite(numpy=(np.extract,))
def extract(condition: NodeLike, x: NodeLike, /) -> Node:
    """The elements where a condition holds, which must be known; both are flattened."""
    return take(x, _places(condition))
