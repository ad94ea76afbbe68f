"""Reductions over axes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from symgrad.ir.dims import product
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import POSITIVE, case
from symgrad.ir.operators import call
from symgrad.ir.schema import plain
from symgrad.ir.types import DType, TensorType, as_dtype, normalize_axes
from symgrad.ops import batch
from symgrad.ops.complexes import keep_imaginary
from symgrad.ops.declare import NodeLike, composite, in_single, linear, op
from symgrad.ops.elementwise import abs, divide, square
from symgrad.ops.leaves import ones_like
from symgrad.ops.select import is_result, select, where
from symgrad.ops.shape import astype, broadcast_to, joined_last, permute_dims, reshape, reshaped
from symgrad.ops.sides import Side, held

CASES = (
    case((3, 4), axis=None),
    case((3, 4), axis=0),
    case((2, 3, 4), axis=(0, -1)),
    case((3, 4), axis=1, keepdims=True),
    case((), axis=None),
)


def wide(t: TensorType) -> DType:
    """The dtype in which NumPy sums and multiplies: 64 bits for integers."""
    found = {"b": "int64", "i": "int64", "u": "uint64"}.get(t.dtype.kind)
    return t.dtype if found is None else np.dtype(found)


def normalize_over(t: TensorType, axis: Any, keepdims: bool = False) -> dict[str, Any]:
    """The attributes of a reduction in canonical form."""
    return {"axis": normalize_axes(axis, t.ndim), "keepdims": bool(keepdims)}


def _sum_normalize(
    t: TensorType, axis: Any, keepdims: bool = False, dtype: Any = None
) -> dict[str, Any]:
    found = wide(t) if dtype is None else as_dtype(dtype)
    keep_imaginary(t, found)
    return {**normalize_over(t, axis, keepdims), "dtype": None if found == wide(t) else found}


def reduced_shape(t: TensorType, axis: tuple[int, ...], keepdims: bool) -> tuple[Any, ...]:
    """The shape after a reduction."""
    return tuple(1 if i in axis else s for i, s in enumerate(t.shape) if keepdims or i not in axis)


def reduced(t: TensorType, *, axis: tuple[int, ...], keepdims: bool) -> TensorType:
    """The type after a reduction."""
    return t.with_shape(reduced_shape(t, axis, keepdims))


def _sum_infer(
    t: TensorType, *, axis: tuple[int, ...], keepdims: bool, dtype: DType | None
) -> TensorType:
    return TensorType(reduced_shape(t, axis, keepdims), wide(t) if dtype is None else dtype)


def _extremum_infer(t: TensorType, *, axis: tuple[int, ...], keepdims: bool) -> TensorType:
    if 0 in [t.shape[a] for a in axis]:
        raise ShapeError(f"an axis of size 0 in {t!r} has no largest or smallest element")
    return reduced(t, axis=axis, keepdims=keepdims)


def _flag_infer(t: TensorType, *, axis: tuple[int, ...], keepdims: bool) -> TensorType:
    return TensorType(reduced_shape(t, axis, keepdims), np.dtype(np.bool_))


def _by(ufunc: np.ufunc) -> dict[str, Any]:
    """The facts of a reduction by a ufunc of two elements, which joins two results as well."""
    reduce = ufunc.reduce

    def kernel(
        x: Any, axis: tuple[int, ...], keepdims: bool, dtype: Any = None, out: Any = None
    ) -> Any:
        return reduce(x, axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    return {
        "kernel": kernel,
        "source": f"np.{ufunc.__name__}.reduce",
        "combiner": ufunc.__name__,
        "out": True,
        "batch": batch.over_axes,
        "cases": CASES,
    }


def kept(y: Node, x: Node, axis: tuple[int, ...]) -> Node:
    """A reduction's result with its axes back as size 1, so that it broadcasts against x."""
    return reshaped(y, reduced_shape(x.tensor, axis, True))


def _spread(g: Node, x: Node, axis: tuple[int, ...]) -> Node:
    leading = axis == tuple(range(x.ndim - g.ndim))
    return broadcast_to(g if leading else kept(g, x, axis), x.shape)


@linear(
    **_by(np.add),
    infer=_sum_infer,
    normalize=_sum_normalize,
    transpose=lambda g, x, axis, keepdims, dtype: _spread(g, x, axis),
    accumulates=True,
    numpy=(np.sum,),
    data_movement=True,
)
def sum(x: NodeLike, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Node:
    """The sum over axes; None is all of them. Of no elements it is 0."""
    ...


@in_single
def sum_along(t: Node, weights: Node, axis: tuple[int, ...], keepdims: bool) -> Node:
    """The sum of tangents, as much of each as it weighs."""
    return sum(t * weights, axis=axis, keepdims=keepdims)


def _product_of_others(x: Node, axis: tuple[int, ...]) -> Node:
    from symgrad.ops.cumulative import product_of_others

    """For each element the product of all the others along the axes.

    Made of products and nothing else, it is right at zeros in derivatives of every order.
    """
    if not axis:
        return ones_like(x)
    if len(axis) == 1:
        return product_of_others(x, axis[0])
    order = (*(i for i in range(x.ndim) if i not in axis), *axis)
    flat = joined_last(x, axis)
    others = reshape(product_of_others(flat, flat.ndim - 1), tuple(x.shape[i] for i in order))
    return permute_dims(others, tuple(order.index(i) for i in range(x.ndim)))


@op(
    **_by(np.multiply),
    infer=_sum_infer,
    normalize=_sum_normalize,
    pullback=lambda g, y, x, axis, **attrs: kept(g, x, axis) * _product_of_others(x, axis),
    pushforward=lambda t, y, x, axis, **attrs: sum(
        t * _product_of_others(x, axis), axis=axis, **attrs
    ),
    domain=(POSITIVE,),
    numpy=(np.prod,),
)
def prod(x: NodeLike, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Node:
    """The product over axes; None is all of them. Of no elements it is 1."""
    ...


def _extremum_pullback(g: Node, y: Node, x: Node, axis: tuple[int, ...], keepdims: bool) -> Node:
    found, count = _where_extreme(y, x, axis)
    return select(found, kept(g, x, axis) / count)


def _extremum_pushforward(t: Node, y: Node, x: Node, axis: tuple[int, ...], keepdims: bool) -> Node:
    found, count = _where_extreme(y, x, axis)
    return sum(select(found, t) / count, axis=axis, keepdims=keepdims)


def _where_extreme(y: Node, x: Node, axis: tuple[int, ...]) -> tuple[Node, Node]:
    """Where the largest is, and how often: as a float32 at least, for float16 counts to 2,048."""
    found = is_result(x, kept(y, x, axis))
    count = sum(astype(found, np.result_type(x.dtype, np.float32)), axis=axis, keepdims=True)
    return found, count


def _extremum_locked(side: Side, y: Node, x: Node, axis: tuple[int, ...], keepdims: bool) -> Node:
    if x.tensor.is_complex:
        return y
    found = is_result(held(x), held(kept(y, x, axis)))
    found = side.winners(x, found, y.op.name, axis)
    count = sum(astype(found, np.result_type(x.dtype, np.float32)), axis=axis, keepdims=True)
    return astype(sum(select(found, x) / count, axis=axis, keepdims=keepdims), y.dtype)


_extremum = partial(
    op,
    infer=_extremum_infer,
    normalize=normalize_over,
    pullback=_extremum_pullback,
    pushforward=_extremum_pushforward,
    locked=_extremum_locked,
    kinks="at ties, which share the gradient",
)
_quantifier = partial(op, infer=_flag_infer, normalize=normalize_over, piecewise_constant=True)


@_extremum(**_by(np.maximum), dual="min", numpy=(np.max, np.amax))
def max(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """The largest element; NaN if one is NaN. Elements that tie share the gradient.

    Complex numbers are in NumPy's order: by their real parts, then by their imaginary parts.
    """
    ...


@_extremum(**_by(np.minimum), dual="max", numpy=(np.min, np.amin))
def min(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """The smallest element; NaN if one is NaN. Elements that tie share the gradient.

    Complex numbers are in NumPy's order: by their real parts, then by their imaginary parts.
    """
    ...


@_quantifier(**_by(np.logical_or), de_morgan="all", numpy=(np.any,))
def any(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """Whether any element is true. Of no elements it is False."""
    ...


@_quantifier(**_by(np.logical_and), de_morgan="any", numpy=(np.all,))
def all(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """Whether all elements are true. Of no elements it is True."""
    ...


# ---- made of these --------------------------------------------------------------------------


def as_float(x: NodeLike) -> Node:
    """x, as float64 if it is of integers or booleans."""
    node = as_node(x)
    return astype(node, "float64") if node.dtype.kind in "biu" else node


def _count(x: Node, axis: Any) -> Any:
    return product(x.shape[a] for a in normalize_axes(axis, x.ndim))


def deviations(x: Node, axis: Any, correction: float) -> tuple[Node, Any]:
    """The distances from the mean, and by how many they are averaged."""
    away: Node = x - mean(x, axis=axis, keepdims=True)
    real = abs(away) if x.tensor.is_complex else away
    return real, _corrected_count(real, axis, plain(correction))


def _corrected_count(x: Node, axis: Any, correction: float) -> Any:
    """How many elements are averaged, less the correction: a number, a dim or a node.

    It is NaN if nothing is left, so that what is divided by it is.
    """
    count = _count(x, axis)
    if not correction:
        return count
    if isinstance(count, int):
        return count - correction if count > correction else np.nan
    left = call("size_of", dim=count, dtype=x.dtype) - correction
    return where(left > 0, left, np.nan)


@composite(numpy=(np.mean,), widens=True)
def mean(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """The mean over axes; integers are averaged as float64."""
    node = as_float(x)
    return divide(sum(node, axis=axis, keepdims=keepdims), _count(node, axis))


@composite(numpy=(np.var,), widens=True)
def var(
    x: NodeLike, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False
) -> Node:
    """The mean squared distance from the mean; `correction=1` divides by one element less."""
    away, count = deviations(as_float(x), axis, correction)
    return divide(sum(square(away), axis=axis, keepdims=keepdims), count)
