"""Basic indexing: slices, ints, None and an ellipsis."""

# ruff: noqa: PIE790  (the body of a primitive is `...`)

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.dims import Dim, Shape, Size, divide_exactly
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import REGISTRY, case
from symgrad.ir.operators import call
from symgrad.ir.types import TensorType
from symgrad.ops import batch, kernels
from symgrad.ops.declare import NodeLike, composite, linear

Index = tuple[tuple[Any, Any, int], ...]


def slice_length(size: Size, start: Any, stop: Any, step: int) -> Size:
    """How many elements a slice takes of an axis. Raises `ShapeError` if that is not known."""
    if isinstance(size, int):
        if not all(v is None or isinstance(v, int) for v in (start, stop)):
            raise ShapeError(f"a slice bound of {start}:{stop} is not known to lie within {size}")
        return len(range(*slice(start, stop, step).indices(size)))
    low, high = (start, stop) if step > 0 else (stop, start)
    if step < 0 and (low, high) != (None, None):
        raise ShapeError(f"a slice of {size} backwards takes the whole axis: x[::-1]")
    first = _bound(0 if low is None else low, size)
    last = _bound(size if high is None else high, size)
    length = last - first
    if abs(step) == 1:
        return length
    steps = divide_exactly(length, abs(step))
    if steps is None:
        raise ShapeError(
            f"how many of {length} elements a step of {step} takes is not known; "
            "use a fixed size here"
        )
    return steps


def _bound(value: Any, size: Size) -> Size:
    if not isinstance(value, (int, Dim)):
        raise ShapeError(f"a slice bound is an int, not {value!r}")
    return size + value if isinstance(value, int) and value < 0 else value


def _slice_infer(t: TensorType, index: Index) -> TensorType:
    shape = tuple(slice_length(s, *i) for s, i in zip(t.shape, index, strict=True))
    if any(isinstance(s, int) and s < 0 for s in shape):
        raise ShapeError(f"a slice of {t!r} ends before it begins")
    return t.with_shape(shape)


def _slice_transpose(g: Node, x: Node, index: Index) -> Node:
    return _place(g, shape=x.shape, index=index)


def _slice_kernel(x: Any, index: Index) -> Any:
    return x[tuple(slice(*i) for i in index)]


@linear(
    infer=_slice_infer,
    kernel=_slice_kernel,
    view=True,
    preserves_zero=True,
    transpose=_slice_transpose,
    cases=(case((5, 4), index=((1, 4, 2), (None, None, -1))), case((6,), index=((0, 0, 1),))),
    batch=batch.sliced,
    moves=True,
)
def _slice(x: NodeLike, /, index: Index) -> Node:
    """x[start:stop:step, …], one triple an axis."""
    ...


@linear(
    infer=lambda t, shape, index: t.with_shape(shape),
    kernel=kernels.place,
    out=True,
    preserves_zero=True,
    transpose=lambda g, x, shape, index: _slice(g, index=index),
    cases=(case((2, 4), shape=(5, 4), index=((1, 4, 2), (None, None, -1))),),
    batch=batch.placed,
    moves=True,
    pads=True,
)
def _place(x: NodeLike, /, shape: Shape, index: Index) -> Node:
    """Zeros of a shape, with x where the index points: a slice, transposed."""
    ...


def _canonical(size: Size, index: Any) -> tuple[Any, Any, int]:
    """A slice as a triple that says the same with the fewest words."""
    try:
        step = 1 if index.step is None else int(index.step.__index__())
        start, stop = (
            v if v is None or isinstance(v, Dim) else v.__index__()
            for v in (index.start, index.stop)
        )
    except AttributeError:
        raise ShapeError(f"a slice is made of ints: {index}") from None
    if step == 0:
        raise ShapeError("the step of a slice cannot be 0")
    if isinstance(size, int) and not isinstance(start, Dim) and not isinstance(stop, Dim):
        first, last, step = slice(start, stop, step).indices(size)
        if len(range(first, last, step)) == 0:
            return (0, 0, 1)
        return (first, None if last < 0 else last, step)
    return (None if start == 0 else start, None if stop == size else stop, step)


@composite()
def getitem(x: NodeLike, index: Any, /) -> Node:
    """x[index], for ints, slices, None and an ellipsis: `x[1:, ::-1, None, ..., 3]`.

    Along a named dimension N a bound is an int or an expression of dimensions, and must lie within
    it when arrays are fed; a step divides what it walks over (`x[::2]` of 2*N elements), and
    backwards goes the whole axis only.
    """
    node = as_node(x)
    items = list(index) if isinstance(index, tuple) else [index]
    for item in items:
        if not (
            item is None or item is Ellipsis or isinstance(item, (int, slice, np.integer))
        ) or isinstance(item, (bool, np.bool_)):
            raise ShapeError(
                f"an index is made of ints, slices, None and ..., not of {type(item).__name__}"
            )
    if sum(i is Ellipsis for i in items) > 1:
        raise ShapeError("an index has at most one ellipsis (...)")
    used = sum(i is not None and i is not Ellipsis for i in items)
    if used > node.ndim:
        raise ShapeError(f"{used} indices for the {node.ndim} dimensions of {node.type!r}")
    at = next((i for i, item in enumerate(items) if item is Ellipsis), len(items))
    items[at : at + 1] = [slice(None)] * (node.ndim - used)
    return _index(node, items)


def _index(node: Node, items: list[Any]) -> Node:
    triples: list[tuple[Any, Any, int]] = []
    shape: list[Size] = []
    for item in items:
        if item is None:
            shape.append(1)
            continue
        size = node.shape[len(triples)]
        if isinstance(item, slice):
            triple = _canonical(size, item)
            shape.append(slice_length(size, *triple))
        else:
            triple = _single(int(item), size)
        triples.append(triple)
    whole = ((0, s, 1) if isinstance(s, int) else (None, None, 1) for s in node.shape)
    picked = node if tuple(triples) == tuple(whole) else _slice(node, index=tuple(triples))
    return picked if picked.shape == tuple(shape) else call("reshape", picked, tuple(shape))


def _single(i: int, size: Size) -> tuple[Any, Any, int]:
    if isinstance(size, int):
        if not -size <= i < size:
            raise ShapeError(f"index {i} is out of range for an axis of size {size}")
        i %= size
    return (i, None if i == -1 else i + 1, 1)


__all__ = REGISTRY.public(__name__)
