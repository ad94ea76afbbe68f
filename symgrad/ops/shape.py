"""Conversions, views and joins: astype, reshape, permute, broadcast, concat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ir.along import Along, Cuts, Piecewise
from symgrad.ir.dims import Dim, Shape, Size, divide_exactly, product
from symgrad.ir.errors import ShapeError, UnsupportedError
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import Cotangent, case
from symgrad.ir.operators import call
from symgrad.ir.types import (
    DType,
    TensorType,
    as_dtype,
    as_shape,
    broadcast_shapes,
    in_order,
    normalize_axes,
    normalize_axis,
    require_equal,
)
from symgrad.ops import along, batch, kernels
from symgrad.ops.complexes import keep_imaginary, real
from symgrad.ops.declare import NodeLike, again, common_dtype, composite, elementwise, linear, op
from symgrad.ops.index.slices import getitem
from symgrad.ops.leaves import require_cpu

# ---- dtype ----------------------------------------------------------------------------------


def _astype_normalize(t: TensorType, dtype: Any) -> dict[str, Any]:
    found = as_dtype(dtype)
    if found.kind != "b":
        keep_imaginary(t, found)
    return {"dtype": found}


def _astype_pullback(g: Node, y: Node, x: Node, dtype: DType) -> Cotangent:
    if not (y.tensor.is_inexact and x.tensor.is_inexact):
        return None
    return astype(g if x.tensor.is_complex else real(g), x.dtype)


def _astype_infer(t: TensorType, *, dtype: DType) -> TensorType:
    return t.with_dtype(dtype)


def _astype_along(types: tuple[TensorType, ...], cuts: Cuts, dtype: DType) -> Along:
    """Of a number it is one if the dtype holds as many as there can be rows."""
    return Piecewise.NUMBER if dtype in (np.int64, np.uint64) else Piecewise.KEPT


@elementwise(
    kernels.astype,
    infer=_astype_infer,
    normalize=_astype_normalize,
    pullback=_astype_pullback,
    pushforward=lambda t, y, *xs, **to: again(t, y, *xs, **to) if y.tensor.is_inexact else None,
    in_place=(),
    along=_astype_along,
    cast=True,
    flops=lambda t, dtype: 0,
    preserves_zero=True,
    cases=(
        case((3, 4), dtype="float32"),
        case((), dtype="float64"),
        case((2,), dtype="int64"),
        case((3,), dtype="complex128"),
    ),
)
def astype_p(x: NodeLike, /, dtype: Any) -> Node:
    """x converted to a dtype."""
    ...


@composite(numpy=(np.astype,))
def astype(x: NodeLike, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Node:
    """x converted to a dtype. A gradient flows between floats and complex numbers."""
    require_cpu(device)
    node = as_node(x)
    return node if as_dtype(dtype) == node.dtype else astype_p(node, dtype=dtype)


# ---- reshape, permute, broadcast ------------------------------------------------------------


def _reshape_normalize(t: TensorType, shape: Any) -> dict[str, Any]:
    wanted: list[Any] = [shape] if isinstance(shape, (int, str, Dim, np.integer)) else list(shape)
    unknown = [i for i, s in enumerate(wanted) if isinstance(s, (int, np.integer)) and s == -1]
    if len(unknown) > 1:
        raise ShapeError("only one size of a reshape may be -1")
    if unknown:
        known = product(as_shape([s for i, s in enumerate(wanted) if i != unknown[0]]))
        size = None if known == 0 else divide_exactly(t.size, known)
        if size is None:
            raise ShapeError(f"{t.size} elements cannot be reshaped to {tuple(wanted)}")
        wanted[unknown[0]] = size
    found = as_shape(wanted)
    if product(found) != t.size:
        raise ShapeError(f"{t.size} elements cannot be reshaped to {found}")
    return {"shape": found}


def _reshape_along(types: tuple[TensorType, ...], cuts: Cuts, shape: Shape) -> Along:
    """The axis that is cut stays where it is if as many elements as before are in front of it."""
    (t,), (cut,) = types, cuts
    if cut is None:
        return None
    found = [i for i, s in enumerate(shape) if isinstance(s, Dim) and cut.over in s.names]
    in_place = len(found) == 1 and product(shape[: found[0]]) == product(t.shape[: cut.axis])
    return Piecewise.NUMBER if in_place else None


def shape_infer(t: TensorType, *, shape: Shape) -> TensorType:
    """The type with another shape, which has been found to fit."""
    return t.with_shape(shape)


@linear(
    infer=shape_infer,
    kernel=lambda x, shape: np.reshape(x, shape),
    normalize=_reshape_normalize,
    index_map=True,
    transpose=lambda g, x, shape: call("reshape", g, x.shape),
    view=True,
    cases=(case((3, 4), shape=(2, 6)), case((6,), shape=(3, -1)), case((), shape=(1, 1))),
    batch=batch.reshaped,
    along=_reshape_along,
    data_movement=True,
)
def reshape_p(x: NodeLike, /, shape: Any) -> Node:
    """The same elements in another shape."""
    ...


@composite(numpy=(np.reshape,))
def reshape(x: NodeLike, /, shape: Any, *, order: str = "C", copy: bool | None = None) -> Node:
    """The same elements in another shape; one size may be -1 and is worked out.

    With `order="F"` the first axis changes fastest. Nobody can tell a copy from what it is a copy
    of, so that `copy` changes nothing. Raises `UnsupportedError` for another order.
    """
    if order == "F":
        wanted = shape if isinstance(shape, (tuple, list)) else (shape,)
        return permute_dims(reshape_p(permute_dims(x), shape=tuple(wanted)[::-1]))
    if order not in ("C", "A"):
        raise UnsupportedError(f"the order of elements is 'C' or 'F', not {order!r}")
    return reshape_p(x, shape=shape)


def reshaped(x: Node, shape: Sequence[Size]) -> Node:
    """x in a shape; itself if it has that shape."""
    return x if x.shape == tuple(shape) else reshape(x, tuple(shape))


def _permute_normalize(t: TensorType, axes: Any) -> dict[str, Any]:
    order = range(t.ndim)[::-1] if axes is None else in_order(axes, "axes", ShapeError)
    found = tuple(normalize_axis(a, t.ndim) for a in order)
    if sorted(found) != list(range(t.ndim)):
        raise ShapeError(f"axes {tuple(order)} do not name each of {t.ndim} dimensions once")
    return {"axes": found}


def _inverse(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


def _permute_infer(t: TensorType, *, axes: tuple[int, ...]) -> TensorType:
    return t.with_shape(tuple(t.shape[a] for a in axes))


@linear(
    infer=_permute_infer,
    kernel=lambda x, axes: np.transpose(x, axes),
    normalize=_permute_normalize,
    index_map=True,
    transpose=lambda g, x, axes: call("permute_dims", g, _inverse(axes)),
    view=True,
    numpy=(np.transpose,),
    cases=(
        case((3, 4), axes=(1, 0)),
        case((2, 3, 4), axes=(2, 0, 1)),
        case((1, 3), axes=(1, 0)),
        case((3,), axes=(0,)),
    ),
    batch=batch.permuted,
    along=along.kept,
    data_movement=True,
)
def permute_dims(x: NodeLike, /, axes: Any = None) -> Node:
    """The axes in another order: axis i of the result is axis axes[i] of x."""
    ...


def _broadcast_normalize(t: TensorType, shape: Any) -> dict[str, Any]:
    found = as_shape(shape)
    if len(found) < t.ndim or broadcast_shapes(t.shape, found) != found:
        raise ShapeError(f"{t!r} does not broadcast to {found}")
    return {"shape": found}


@linear(
    infer=shape_infer,
    kernel=lambda x, shape: np.broadcast_to(x, shape),
    normalize=_broadcast_normalize,
    index_map=True,
    transpose=lambda g, x, shape: sum_to(g, x.shape),
    view=True,
    numpy=(np.broadcast_to,),
    cases=(case((4,), shape=(3, 4)), case((3, 1), shape=(2, 3, 4)), case((), shape=(2,))),
    batch=batch.broadcast,
    along=along.kept,
)
def broadcast_to(x: NodeLike, /, shape: Any) -> Node:
    """x repeated along new axes and along axes of size 1, without a copy."""
    ...


def sum_to(x: Node, shape: Shape) -> Node:
    """x summed over what broadcasting from `shape` had repeated: broadcast_to, transposed.

    Terms of float16 are added up in float32, however many there are.
    """
    if x.shape == shape:
        return x
    extra = x.ndim - len(shape)
    axes = tuple(
        i for i, s in enumerate(x.shape) if i < extra or (shape[i - extra] == 1 and s != 1)
    )
    wide = np.float32 if x.dtype == np.float16 else x.dtype
    total = call("sum", x, axis=axes, keepdims=False, dtype=wide)
    return astype(reshaped(total, shape), x.dtype)


@composite(numpy=(np.expand_dims,))
def expand_dims(x: NodeLike, /, axis: Any = 0) -> Node:
    """A new axis of size 1 at `axis` (an int or several) of the result."""
    node = as_node(x)
    many = axis if isinstance(axis, (tuple, list)) else (axis,)
    new = normalize_axes(axis, node.ndim + len(many))
    sizes = iter(node.shape)
    return reshape(node, tuple(1 if i in new else next(sizes) for i in range(node.ndim + len(new))))


@composite(numpy=(np.squeeze,))
def squeeze(x: NodeLike, /, axis: Any = None) -> Node:
    """Without the axes of size 1 named (all of them by default)."""
    node = as_node(x)
    ones = tuple(i for i, s in enumerate(node.shape) if s == 1)
    drop = ones if axis is None else normalize_axes(axis, node.ndim)
    for a in drop:
        if node.shape[a] != 1:
            raise ShapeError(f"axis {a} of {node.type!r} has size {node.shape[a]}, not 1")
    return reshape(node, tuple(s for i, s in enumerate(node.shape) if i not in drop))


@composite(numpy=(np.moveaxis,))
def moveaxis(x: NodeLike, source: Any, destination: Any, /) -> Node:
    """The axes of `source` put at the places of `destination`, the others in order."""
    node = as_node(x)
    sources = [normalize_axis(a, node.ndim) for a in np.atleast_1d(source)]
    targets = [normalize_axis(a, node.ndim) for a in np.atleast_1d(destination)]
    if not len(sources) == len(targets) == len({*sources}) == len({*targets}):
        raise ShapeError(f"moveaxis from {source} to {destination}: name as many axes, each once")
    order = [a for a in range(node.ndim) if a not in sources]
    for target, a in sorted(zip(targets, sources, strict=True)):
        order.insert(target, a)
    return node if order == sorted(order) else permute_dims(node, tuple(order))


@composite(numpy=(np.matrix_transpose, np.linalg.matrix_transpose))
def matrix_transpose(x: NodeLike, /) -> Node:
    """The last two axes swapped."""
    node = as_node(x)
    if node.ndim < 2:
        raise ShapeError(f"a matrix has two axes or more; {node.type!r} has {node.ndim}")
    order = list(range(node.ndim))
    return permute_dims(node, (*order[:-2], order[-1], order[-2]))


@composite(numpy=(np.flip,))
def flip(x: NodeLike, /, axis: Any = None) -> Node:
    """The elements in reverse order along the axes named (all by default)."""
    node = as_node(x)
    axes = normalize_axes(axis, node.ndim)
    return getitem(node, tuple(slice(None, None, -1 if i in axes else 1) for i in range(node.ndim)))


# ---- joins ----------------------------------------------------------------------------------


def _concat_infer(first: TensorType, *rest: TensorType, axis: int) -> TensorType:
    types = (first, *rest)
    total: Size = 0
    for t in types:
        if t.ndim != first.ndim:
            raise ShapeError(f"arrays of {first.ndim} and of {t.ndim} dimensions do not join")
        for i in range(t.ndim):
            if i != axis:
                require_equal(first.shape[i], t.shape[i])
        total = total + t.shape[axis]
    return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :]))


def _concat_vjp(g: Node, y: Node, *inputs: Node, axis: int) -> tuple[Cotangent, ...]:
    parts: list[Cotangent] = []
    start: Size = 0
    for x in inputs:
        stop = start + x.shape[axis]
        here = slice(start, stop)
        parts.append(getitem(g, (*(slice(None),) * axis, here)))
        start = stop
    return tuple(parts)


def _concat_jvp(t: tuple[Cotangent, ...], y: Node, *inputs: Node, axis: int) -> Cotangent:
    filled = (call("zeros_like", x) if d is None else d for d, x in zip(t, inputs, strict=True))
    return concat_p(*filled, axis=axis)


def _concat_along(types: tuple[TensorType, ...], cuts: Cuts, axis: int) -> Along:
    apart = all(c is not None and c.axis != axis for c in cuts)
    return Piecewise.KEPT if apart else None


@op(
    infer=_concat_infer,
    kernel=kernels.concat,
    normalize=lambda *types, axis: {"axis": normalize_axis(axis, types[0].ndim)},
    promote=common_dtype,
    index_map=True,
    vjp=_concat_vjp,
    jvp=_concat_jvp,
    out=True,
    cases=(case((2, 3), (4, 3), axis=0), case((2, 3), (2, 1), (2, 2), axis=1)),
    batch=batch.joined,
    along=_concat_along,
    data_movement=True,
)
def concat_p(first: NodeLike, /, *rest: NodeLike, axis: int) -> Node:
    """The arrays one after the other along an axis."""
    ...


def on_columns(function: Callable[[Node], Node], b: Node) -> Node:
    """A function of a matrix on a vector, as of its only column."""
    if b.ndim == 0:
        raise ShapeError("a vector or a matrix is wanted here, not a scalar")
    if b.ndim > 1:
        return function(b)
    y = function(reshape(b, (*b.shape, 1)))
    return reshape(y, y.shape[:-1])


def joined_last(x: Node, axes: tuple[int, ...]) -> Node:
    """x with some of its axes joined to one, the last."""
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    shape = (*(x.shape[i] for i in rest), product(x.shape[a] for a in axes))
    return reshape(permute_dims(x, (*rest, *axes)), shape)


def flattened(x: Node, axis: int | None) -> tuple[Node, int]:
    """An array and an axis of it; None flattens it first, as in NumPy."""
    if axis is not None:
        return x, normalize_axis(axis, x.ndim)
    return (x if x.ndim == 1 else reshape(x, (-1,))), 0


def _several(arrays: Sequence[NodeLike]) -> list[Node]:
    nodes = [as_node(a) for a in in_order(arrays, "arrays", ShapeError)]
    if not nodes:
        raise ShapeError("there is no array to join; give at least one")
    return nodes


@composite(numpy=(np.concatenate,))
def concat(arrays: Sequence[NodeLike], /, axis: int | None = 0) -> Node:
    """The arrays one after the other along an axis; None flattens them first."""
    nodes = _several(arrays)
    if axis is None:
        return concat_p(*(reshape(n, -1) for n in nodes), axis=0)
    return concat_p(*nodes, axis=axis)


@composite(numpy=(np.stack,))
def stack(arrays: Sequence[NodeLike], /, axis: int = 0) -> Node:
    """The arrays side by side along a new axis."""
    return concat([expand_dims(a, axis=axis) for a in _several(arrays)], axis=axis)


def item_infer(t: tuple[TensorType, ...], *, index: int) -> TensorType:
    """The type of one of several results."""
    if not isinstance(t, tuple):
        raise ShapeError(f"{t!r} is one result; only an op with several has items")
    if not -len(t) <= index < len(t):
        raise ShapeError(f"result {index} of an op with {len(t)}")
    return t[index]


def _item_normalize(t: Any, index: Any) -> dict[str, Any]:
    return {"index": normalize_axis(index, len(t)) if isinstance(t, tuple) else index}


@op(
    infer=item_infer,
    kernel=lambda values, index: values[index],
    normalize=_item_normalize,
    of_several=True,
)
def item(x: Node, /, index: int) -> Node:
    """One of the results of an op that has several."""
    ...
