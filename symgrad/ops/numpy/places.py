"""Elements by their places: insert, compress, choose, partition, indices of triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.ir.arraylike import is_function
from symgrad.ir.dims import Shape, product
from symgrad.ir.errors import ArgumentError, DtypeError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import as_shape, in_order, normalize_axis
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.dtypes import result_type
from symgrad.ops.elementwise import multiply
from symgrad.ops.index.indexing import as_integers, known
from symgrad.ops.index.take import brought_in, numbered, take, take_along_axis
from symgrad.ops.leaves import constant, zeros
from symgrad.ops.linalg.solve import diag
from symgrad.ops.logic import logical_not
from symgrad.ops.manipulate import broadcast_arrays
from symgrad.ops.numpy.joins import known_places
from symgrad.ops.padding import zeros_around
from symgrad.ops.reduce import sum
from symgrad.ops.select import where
from symgrad.ops.shape import (
    astype,
    broadcast_to,
    concat,
    expand_dims,
    flattened,
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


@composite(numpy=(np.insert,))
def insert(x: NodeLike, obj: Any, values: NodeLike, /, axis: int | None = None) -> Node:
    """x with values put before the elements at indices along an axis; None flattens x.

    Raises `ShapeError` where the indices or the size of the axis are not known.

    >>> np.asarray(insert([1, 2, 3], 1, 9))
    array([1, 9, 2, 3])
    """
    node, along = flattened(as_node(x), axis)
    places, size = known_places(obj, node.shape[along], "insert")
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


def _bits(bitorder: str) -> Any:
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"the order of bits is 'big' or 'little', not {bitorder!r}")
    places = np.arange(8, dtype=np.uint8)
    return places[::-1] if bitorder == "big" else places


@composite(numpy=(np.packbits,))
def packbits(x: NodeLike, /, axis: int | None = None, bitorder: str = "big") -> Node:
    """Bytes of eight booleans each along an axis, the last filled up with zeros; None flattens x.

    Raises `ShapeError` where the size of the axis is not known.

    >>> np.asarray(packbits([True, False, True]))
    array([160], dtype=uint8)
    """
    node, along = flattened(as_node(x), axis)
    size = node.shape[along]
    if not isinstance(size, int):
        raise ShapeError(f"how many bytes {size} bits fill is not known; declare an int for it")
    bits = moveaxis(astype(astype(node, "bool"), "uint8"), along, -1)
    bits = zeros_around(bits, [(0, 0)] * (bits.ndim - 1) + [(0, -size % 8)])
    bits = reshape(bits, (*bits.shape[:-1], -(-size // 8), 8))
    return moveaxis(sum(bits << _bits(bitorder), axis=-1, dtype="uint8"), -1, along)


@composite(numpy=(np.unpackbits,))
def unpackbits(
    x: NodeLike, /, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Node:
    """The bits of bytes along an axis, as 0 and 1; `count` of them, or so many less; None flattens.

    >>> np.asarray(unpackbits(np.array([5], "uint8")))
    array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    node, along = flattened(as_node(x), axis)
    if node.dtype != np.uint8:
        raise DtypeError(f"bytes are of uint8, not {node.dtype.name}")
    node = moveaxis(node, along, -1)
    bits = (expand_dims(node, axis=-1) >> _bits(bitorder)) & np.uint8(1)
    bits = reshape(bits, (*node.shape[:-1], node.shape[-1] * 8))
    if count is not None and count > 0 and isinstance(bits.shape[-1], int):
        more = count - bits.shape[-1]
        bits = zeros_around(bits, [(0, 0)] * (bits.ndim - 1) + [(0, more if more > 0 else 0)])
    return moveaxis(bits if count is None else bits[..., :count], -1, along)


def _strides(sizes: Shape, order: str) -> tuple[list[Any], int | None]:
    """How far apart neighbours along each axis are, and the axis along which it is farthest."""
    if order not in ("C", "F"):
        raise ArgumentError(f"the order of elements is 'C' or 'F', not {order!r}")
    last = len(sizes) - 1
    if order == "C":
        return [product(sizes[i + 1 :]) for i in range(len(sizes))], 0
    return [product(sizes[:i]) for i in range(len(sizes))], last


@composite(numpy=(np.ravel_multi_index,))
def ravel_multi_index(
    multi_index: Any, dims: Any, /, mode: str | Sequence[str] = "raise", order: str = "C"
) -> Node:
    """The places in a flattened array of elements that are given by an index for each axis.

    An index that is known to be out of range is a `BoundsError`, but with `mode`, one or one for
    each axis, "clip" the nearest and with "wrap" counted on from the beginning.
    """
    sizes = as_shape(dims)
    if len(multi_index) != len(sizes):
        raise ShapeError(f"{len(multi_index)} indices do not fit {len(sizes)} axes")
    modes = (mode,) * len(sizes) if isinstance(mode, str) else mode
    found: Node = as_node(0)
    steps, _ = _strides(sizes, order)
    for index, size, how, step in zip(multi_index, sizes, modes, steps, strict=True):
        node = as_integers(index)
        node = numbered(node, size) if how == "raise" else brought_in(node, size, how)
        found = found + multiply(node, step)
    return found


@composite(numpy=(np.unravel_index,))
def unravel_index(indices: NodeLike, shape: Any, /, order: str = "C") -> tuple[Node, ...]:
    """For each axis the index of the elements at these places of a flattened array.

    >>> [y.item() for y in unravel_index(5, (2, 3))]
    [1, 2]
    """
    sizes = as_shape(shape)
    node = astype(numbered(as_integers(indices), product(sizes)), np.int64)
    steps, farthest = _strides(sizes, order)
    return tuple(
        node // step if i == farthest else node // step % size
        for i, (step, size) in enumerate(zip(steps, sizes, strict=True))
    )


def _dtype_of(*choices: NodeLike) -> Any:
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
    numbers = brought_in(numbers, len(nodes), mode)
    dtype = _dtype_of(*choices)
    numbers, *alike = broadcast_arrays(numbers, *(astype(n, dtype) for n in nodes))
    found = take_along_axis(stack(alike), reshape(numbers, (1, *numbers.shape)), axis=0)
    return reshape(found, numbers.shape)


@composite(numpy=(np.select,))
def select_first(
    condlist: Sequence[NodeLike], choicelist: Sequence[NodeLike], /, *, default: NodeLike = 0
) -> Node:
    """The element of the first choice whose condition holds, else the default: `np.select`."""
    conditions = [as_node(c) for c in in_order(condlist, "conditions", ShapeError)]
    choices = [as_node(c) for c in in_order(choicelist, "choices", ShapeError)]
    if len(conditions) != len(choices) or not conditions:
        raise ArgumentError(f"{len(conditions)} conditions for {len(choices)} choices")
    dtype = _dtype_of(*choicelist, default)
    found = astype(as_node(default), dtype)
    for condition, choice in zip(conditions[::-1], choices[::-1], strict=True):
        found = where(condition, astype(choice, dtype), found)
    return found


@composite(numpy=(np.piecewise,))
def piecewise(
    x: NodeLike,
    condlist: Sequence[NodeLike],
    funclist: Sequence[Any],
    /,
    *args: Any,
    **options: Any,
) -> Node:
    """A function in pieces: each function (or number) where its condition holds, the last wins.

    One more function than there are conditions is for where none holds, else that is 0. Each is
    computed for all of x, with the arguments that are given, and what is not taken contributes
    nothing, to the gradient neither.
    """
    node = as_node(x)
    if isinstance(condlist, (Node, np.ndarray)):
        single = condlist.ndim <= 1
    else:
        single = all(np.ndim(c) == 0 for c in in_order(condlist, "conditions", ShapeError))
    given: Any = [condlist] if node.ndim and single else condlist
    conditions = [astype(as_node(c), "bool") for c in given]
    functions = list(in_order(funclist, "functions", ShapeError))
    if not len(conditions) <= len(functions) <= len(conditions) + 1 or not conditions:
        raise ArgumentError(f"{len(conditions)} conditions for {len(functions)} functions")
    pieces = [f(node, *args, **options) if is_function(f) else f for f in functions]
    found: Any = pieces[-1] if len(pieces) > len(conditions) else 0
    covered = conditions[0]
    for c in conditions[1:]:
        covered = covered | c
    found = where(logical_not(covered), found, 0)
    for condition, piece in zip(conditions, pieces, strict=False):
        found = where(condition, piece, found)
    return astype(broadcast_to(found, node.shape), node.dtype)


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
