"""Taking elements by their numbers along an axis: take, repeat, one_hot."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.dims import Size
from symgrad.ir.errors import ArgumentError, BoundsError, ShapeError
from symgrad.ir.node import Node, as_node, constant_value
from symgrad.ir.op import case
from symgrad.ir.types import TensorType, as_dtype, broadcast_shapes, normalize_axis
from symgrad.ops.batch import in_front
from symgrad.ops.declare import NodeLike, composite, op, require
from symgrad.ops.index import kernels
from symgrad.ops.index.gather import gather
from symgrad.ops.index.indexing import as_integers, in_bounds, known
from symgrad.ops.leaves import arange
from symgrad.ops.remainders import remainder
from symgrad.ops.select import clip
from symgrad.ops.shape import astype, broadcast_to, expand_dims, flattened, moveaxis, reshape


@composite(numpy=(np.take,))
def take(
    x: NodeLike, indices: NodeLike, /, axis: int | None = None, *, mode: str = "raise"
) -> Node:
    """The elements of x at indices along an axis; None flattens x first, as in NumPy.

    The shape of the indices takes the place of the axis. They are integers, counted from the end if
    they are negative; one out of bounds is a `BoundsError`, but with `mode` "clip" the nearest and
    with "wrap" counted on from the beginning. The gradient of what is taken twice is the sum.
    Raises `ShapeError` for an axis out of range, `DtypeError` for indices that are no integers.

    >>> np.asarray(take(np.array([[1, 2], [3, 4], [5, 6]]), [2, 0], axis=0))
    array([[5, 6],
           [1, 2]])
    """
    (node, along), found = flattened(as_node(x), axis), as_integers(indices)
    size = node.shape[along]
    if mode == "raise":
        return gather(node, in_bounds(found, size, along), axis=along)
    return gather(node, brought_in(found, size, mode), axis=along)


def brought_in(numbers: Node, size: Size, mode: str) -> Node:
    """Numbers of so many things, those out of range as NumPy's mode "clip" or "wrap" has them.

    With "raise" they are as they are. Raises `ArgumentError` for another mode.
    """
    if mode == "clip":
        return clip(numbers, 0, size - 1)
    if mode == "wrap":
        return remainder(numbers, size)
    if mode != "raise":
        raise ArgumentError(f"the mode is 'raise', 'clip' or 'wrap', not {mode!r}")
    return numbers


@composite(numpy=(np.take_along_axis,))
def take_along_axis(x: NodeLike, indices: NodeLike, /, axis: int | None = -1) -> Node:
    """The elements of x at indices along an axis, one index for each element of the result.

    The other axes of x and of the indices broadcast together. See `take`; what `argsort` gives
    along an axis are such indices.

    >>> np.asarray(take_along_axis(np.array([[3, 1, 2]]), [[1, 2]], axis=1))
    array([[1, 2]])
    """
    (node, along), found = flattened(as_node(x), axis), as_integers(indices)
    if found.ndim != node.ndim:
        raise ShapeError(f"{found.type!r} and {node.type!r} must have as many dimensions")
    found = in_bounds(found, node.shape[along], along)
    others = [(*t.shape[:along], 1, *t.shape[along + 1 :]) for t in (node, found)]
    shape = list(broadcast_shapes(*others))
    shape[along] = node.shape[along]
    node = broadcast_to(node, shape) if node.shape != tuple(shape) else node
    numbers = [
        found if i == along else reshape(arange(s), (-1, *(1,) * (node.ndim - i - 1)))
        for i, s in enumerate(shape)
    ]
    return gather(node, *numbers, axis=0)


@composite(numpy=(np.repeat,))
def repeat(x: NodeLike, repeats: Any, /, axis: int | None = None) -> Node:
    """Each element along an axis so many times; None flattens x first.

    `repeats` is one number or one for each element, and must be known when the graph is built, else
    `ShapeError`: it says how many elements there are.

    >>> np.asarray(repeat(np.array([5, 6]), [1, 3]))
    array([5, 6, 6, 6])
    """
    (node, along), value = flattened(as_node(x), axis), known(as_integers(repeats))
    if value is None:
        raise ShapeError(
            "how many elements there are is known only when the program runs; give the counts as "
            "numbers, or take elements by indices of a known shape: sg.take"
        )
    if value.ndim > 1 or (value < 0).any():
        raise ShapeError(f"counts are numbers from 0 on, one or one for each element: {value}")
    size = node.shape[along]
    if value.size == 1:
        count = int(value.reshape(())[()])
        wide = expand_dims(node, axis=along + 1)
        shape = (*node.shape[: along + 1], count, *node.shape[along + 1 :])
        joined = (*node.shape[:along], size * count, *node.shape[along + 1 :])
        return reshape(broadcast_to(wide, shape), joined)
    if size != value.size:
        raise ShapeError(f"{value.size} counts do not fit the axis of size {size}")
    return gather(node, as_node(np.repeat(np.arange(value.size), value)), axis=along)


@composite()
def one_hot(x: NodeLike, num_classes: Any, /, axis: int = -1, *, dtype: Any = "float64") -> Node:
    """For each number a vector with a 1 at its place and 0 elsewhere, along a new axis.

    Of a number out of range it is all 0. `num_classes` is an int or a named dimension. Raises
    `DtypeError` for numbers that are no integers.

    >>> np.asarray(one_hot([2, 0], 3))
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    node = as_integers(x)
    found = expand_dims(node, axis=node.ndim) == arange(num_classes)
    return astype(moveaxis(found, -1, normalize_axis(axis, found.ndim)), as_dtype(dtype))


def _in_range_infer(x: TensorType, *, size: Size) -> TensorType:
    require("iu", x)
    return x


@op(
    infer=_in_range_infer,
    kernel=kernels.in_range,
    piecewise_constant=True,
    ill_conditioned=True,
    batch=in_front,
    flops=lambda *types, size: 0,
    out=True,
    in_place=(0,),
    preserves_zero=True,
    domain=((0.0, 4.0),),
    dtypes="int64 uint8",
    cases=(case((3, 4), size=5), case((), size=5), case((0,), size=5)),
    public=False,
)
def in_range(x: NodeLike, /, size: Size) -> Node:
    """Integers as they are, refused when the program runs unless they number so many things."""
    ...


def numbered(x: NodeLike, size: Size) -> Node:
    """The numbers of some of so many things, counted from 0, and from the end never.

    Raises `BoundsError` for one out of range: now if it is known, else when the program runs.
    """
    node = as_integers(x)
    value = constant_value(node)
    if value is not None and isinstance(size, int):
        try:
            kernels.in_range(value, size)  # type: ignore[no-untyped-call]
        except IndexError as error:
            raise BoundsError(str(error)) from None
    return in_range(node, size=size)
