"""Sorting and what goes by it.

Complex numbers are in NumPy's order: by their real parts, then by their imaginary parts.

Where elements tie, any of them may stand first; the derivative is the mean over all the ways, so
that they share alike. It lies in the Clarke subdifferential and does not depend on the order in
which equal elements are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from symgrad.ir.along import Along, Cuts, Piecewise
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, apply, as_node
from symgrad.ir.op import Builder, case
from symgrad.ir.operators import call
from symgrad.ir.types import TensorType, normalize_axes, normalize_axis
from symgrad.ops import along, batch, kernels
from symgrad.ops.cumulative import ranks
from symgrad.ops.declare import NodeLike, P, again, common_dtype, composite, op, require
from symgrad.ops.elementwise import abs
from symgrad.ops.index.take import take
from symgrad.ops.leaves import arange, full
from symgrad.ops.logic import isnan
from symgrad.ops.reduce import any, as_float, max, min, reduced_shape, sum
from symgrad.ops.select import is_result, select, where
from symgrad.ops.shape import astype, expand_dims, flattened, joined_last, reshape
from symgrad.ops.sides import Side, held

CASES = (
    case((5,), axis=0, descending=False),
    case((3, 4), axis=0, descending=True),
    case((2, 3, 4), axis=-2, descending=False),
    case((2, 0), axis=1, descending=False),
)


def _normalize(*types: TensorType, axis: Any, descending: bool, **attrs: Any) -> dict[str, Any]:
    found = normalize_axis(axis, types[0].ndim)
    return {"axis": found, "descending": bool(descending), **attrs}


def _infer(t: TensorType, *, axis: int, descending: bool) -> TensorType:
    return t


def _in_order_infer(
    t: TensorType, x: TensorType, *, axis: int, descending: bool, back: bool
) -> TensorType:
    require("fc", t)  # of elements that tie it takes the mean
    if t.shape != x.shape:
        raise ShapeError(f"{t.shape} and {x.shape} differ")
    return t


@op(
    infer=_in_order_infer,
    kernel=kernels.in_order,
    normalize=_normalize,
    pullback=lambda g, y, t, x, back, **attrs: call("in_order", g, x, **attrs, back=not back),
    pushforward=again,
    flops=lambda t, x, **attrs: t.size,
    batch=batch.together,
    out=True,
    expensive=True,
    cases=tuple(
        case(*c.shapes, *c.shapes, **c.attrs, back=back) for c in CASES for back in (False, True)
    ),
    public=False,
)
def in_order(t: NodeLike, x: NodeLike, /, axis: int, descending: bool, back: bool) -> Node:
    """t in the order that sorts x, or back from it; what belongs to equal elements is averaged."""
    ...


@op(
    infer=_infer,
    kernel=kernels.sort,
    normalize=_normalize,
    pullback=lambda g, y, x, **attrs: in_order(g, x, **attrs, back=True),
    pushforward=lambda t, y, x, **attrs: in_order(t, x, **attrs, back=False),
    locked=lambda side, y, x, axis, descending: in_order(
        x, ranks(side, x, axis), axis=axis, descending=descending, back=False
    ),
    flops=lambda t, **attrs: 0,
    batch=batch.over_axes,
    out=True,
    expensive=True,
    kinks="at ties, which share the gradient",
    cases=CASES,
)
def sort_p(x: NodeLike, /, axis: int, descending: bool) -> Node:
    """x in order along an axis, NaNs last."""
    ...


@composite(numpy=(np.sort,))
def sort(
    x: NodeLike, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True
) -> Node:
    """x in order along an axis, NaNs last; None flattens x first, as in NumPy.

    It is always stable. Elements that tie share the gradient alike. Raises `ShapeError` for an axis
    out of range.
    """
    node, along = flattened(as_node(x), axis)
    return sort_p(node, axis=along, descending=descending)


def _argsort_infer(t: TensorType, *, axis: int, descending: bool) -> TensorType:
    return _infer(t, axis=axis, descending=descending).with_dtype(np.dtype(np.int64))


@op(
    infer=_argsort_infer,
    kernel=kernels.argsort,
    normalize=_normalize,
    batch=batch.over_axes,
    piecewise_constant=True,
    locked=lambda side, y, x, **attrs: apply(y.op, (ranks(side, x, attrs["axis"]),), attrs),
    jumps=True,
    expensive=True,
    cases=CASES,
)
def argsort_p(x: NodeLike, /, axis: int, descending: bool) -> Node:
    """The indices that sort x along an axis."""
    ...


@composite(numpy=(np.argsort,))
def argsort(
    x: NodeLike, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True
) -> Node:
    """The indices that sort x along an axis, NaNs last; None flattens x first, as in NumPy.

    It is always stable: equal elements stay in order. No gradient flows through it. Raises as
    `sort` does.
    """
    node, along = flattened(as_node(x), axis)
    return argsort_p(node, axis=along, descending=descending)


def _position_infer(t: TensorType, *, axis: int) -> TensorType:
    if t.shape[axis] == 0:
        raise ShapeError(f"an axis of size 0 in {t!r} has no largest or smallest element")
    return TensorType((*t.shape[:axis], *t.shape[axis + 1 :]), np.dtype(np.int64))


POSITIONS = (case((5,), axis=0), case((3, 4), axis=-1), case((2, 3, 4), axis=1))


def _first_of(found: Node, axis: int) -> Node:
    """The least of the numbers of those that are found along an axis."""
    size = found.shape[axis]
    numbers = reshape(arange(size), (-1, *(1,) * (found.ndim - axis - 1)))
    return min(where(found, numbers, size), axis=axis)


def _position(
    kernel: Callable[..., Any], dual: str, extremum: Builder[...]
) -> Callable[[Callable[P, Node]], Builder[P]]:
    def found(x: Node, axis: int) -> Node:
        return is_result(x, extremum(x, axis=axis, keepdims=True))

    def first(x: Node, axis: int) -> Node:
        """The least of the numbers of those elements that are the extremum."""
        return _first_of(found(x, axis), axis)

    def locked(side: Side, y: Node, x: Node, axis: int) -> Node:
        if x.tensor.is_complex:
            return y
        return _first_of(side.winners(x, found(held(x), axis), extremum.op.name, axis), axis)

    def rule(types: tuple[TensorType, ...], cuts: Cuts, axis: int) -> Along:
        return first if cuts[0] is not None and cuts[0].axis == axis else Piecewise.KEPT

    return op(
        infer=_position_infer,
        kernel=kernel,
        normalize=lambda t, axis: {"axis": normalize_axis(axis, t.ndim)},
        batch=batch.over_axes,
        along=rule,
        piecewise_constant=True,
        locked=locked,
        jumps=True,
        out=True,
        cases=POSITIONS,
        dual=dual,
    )


@_position(np.argmax, "argmin", max)
def argmax_p(x: NodeLike, /, axis: int) -> Node:
    """The index of the largest element along an axis."""
    ...


@_position(np.argmin, "argmax", min)
def argmin_p(x: NodeLike, /, axis: int) -> Node:
    """The index of the smallest element along an axis."""
    ...


@composite(numpy=(np.argmax,))
def argmax(x: NodeLike, /, axis: int | None = None, *, keepdims: bool = False) -> Node:
    """The index of the first largest element along an axis, a NaN counting as the largest.

    Without an axis it is the index into x flattened. No gradient flows through it.
    """
    return _positions(argmax_p, as_node(x), axis, keepdims)


@composite(numpy=(np.argmin,))
def argmin(x: NodeLike, /, axis: int | None = None, *, keepdims: bool = False) -> Node:
    """The index of the first smallest element along an axis; see `argmax`."""
    return _positions(argmin_p, as_node(x), axis, keepdims)


def _positions(find: Any, x: Node, axis: int | None, keepdims: bool) -> Node:
    found: Node = find(*flattened(x, axis))
    if not keepdims:
        return found
    over = normalize_axes(axis, x.ndim)
    return reshape(found, reduced_shape(x.tensor, over, True))


@composite(numpy=(np.median,), widens=True)
def median(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """The middle element in order over axes, or the mean of the middle two; NaN if one is NaN.

    Of no elements it is NaN. Integers become float64. Elements that tie share the gradient.
    """
    return median_of(as_float(x), axis, keepdims, without_nan=False)


def median_of(node: Node, axis: Any, keepdims: bool, *, without_nan: bool) -> Node:
    """The median of floats, or of those among them that are no NaN."""
    axes = normalize_axes(axis, node.ndim)
    flat = joined_last(node, axes)
    size = flat.shape[-1]
    # NaNs are last in order.
    count = sum(~isnan(flat), axis=-1, keepdims=True) if without_nan else size
    # Selected, not indexed: the size of a named dimension is not known here.
    middle = abs(2 * arange(size) - (count - 1)) <= 1
    ordered = sort_p(flat, axis=-1, descending=False)
    if not without_nan:  # if there are NaNs, they are taken: it is NaN, and they have the gradient
        middle = where(any(isnan(flat), axis=-1, keepdims=True), isnan(ordered), middle)
    y = sum(select(middle, ordered), axis=-1) / sum(astype(middle, node.dtype), axis=-1)
    return reshape(y, reduced_shape(node.tensor, axes, keepdims))


# ---- what goes by order ---------------------------------------------------------------------


@composite()
def top_k(x: NodeLike, k: int, /, axis: int = -1, *, largest: bool = True) -> tuple[Node, Node]:
    """The k largest (or smallest) elements along an axis, the largest first, and their indices.

    NaNs come last. Elements that tie share the gradient, those beyond the k-th too. Raises
    `ShapeError` if there are fewer than k elements.

    >>> [np.asarray(y) for y in top_k(np.array([3, 1, 4, 1, 5]), 2)]
    [array([5, 4]), array([4, 2])]
    """
    node = as_node(x)
    along, size = normalize_axis(axis, node.ndim), node.shape[axis]
    if k < 0 or (isinstance(size, int) and k > size):
        raise ShapeError(f"the {k} first of {size} elements: k is an int from 0 to {size}")
    first = (*(slice(None),) * along, slice(0, k))
    values = sort_p(node, axis=along, descending=bool(largest))
    indices = argsort_p(node, axis=along, descending=bool(largest))
    return values[first], indices[first]


def _search_infer(a: TensorType, v: TensorType, *, side: Literal["left", "right"]) -> TensorType:
    require("biuf", a, v)
    if a.ndim != 1:
        raise ShapeError(f"what is searched is a vector in order, not {a!r}")
    return v.with_dtype(np.dtype(np.int64))


def _search_batch(inputs: Sequence[Node], flags: Sequence[bool], node: Node, side: str) -> Node:
    if not flags[0]:
        return apply(node.op, inputs, {"side": side})
    a, v = inputs[0], expand_dims(inputs[1], axis=inputs[1].ndim)
    a = reshape(a, (a.shape[0], *(1,) * (node.ndim), a.shape[1]))
    nan_a, nan_v = (
        isnan(t) if t.tensor.is_float else full(t.shape, False, dtype="bool") for t in (a, v)
    )
    less, more = (a < v) | (nan_v & ~nan_a), (v < a) | (nan_a & ~nan_v)
    before = less if side == "left" else ~more
    return sum(before, axis=-1, dtype="int64")


def _search_locked(moves: Side, y: Node, a: Node, v: Node, side: str) -> Node:
    size = a.shape[0]
    if size == 0:
        return y
    first, behind = (apply(y.op, (held(a), held(v)), {"side": s}) for s in ("left", "right"))
    lead = moves.lead(v, take(a, where(first == size, 0, first)))
    moved = where(lead > 0, behind, where(lead < 0, first, y))
    return where(first == behind, y, moved)


@op(
    infer=_search_infer,
    kernel=np.searchsorted,
    promote=common_dtype,
    batch=_search_batch,
    along=along.of_only(1),
    compares=True,
    piecewise_constant=True,
    locked=_search_locked,
    jumps=True,
    expensive=True,
    cases=(
        case((5,), (3, 2), side="left"),
        case((0,), (3,), side="right"),
        case((4,), (), side="right"),
    ),
)
def searchsorted_p(x1: NodeLike, x2: NodeLike, /, side: str) -> Node:
    """Where the elements of x2 go into the vector x1, which is in order."""
    ...


@composite(numpy=(np.searchsorted,))
def searchsorted(
    x1: NodeLike, x2: NodeLike, /, *, side: str = "left", sorter: NodeLike = None
) -> Node:
    """Where the elements of x2 go into the vector x1, so that it stays in order; NaNs go last.

    To the left of those of x1 that are equal, or to the right. `sorter` are the indices that sort
    x1, if it is in no order. No gradient flows through it. Raises `ShapeError` if x1 is no vector.

    >>> np.asarray(searchsorted(np.array([1.0, 2, 3]), [2.0, 2.5]))
    array([1, 2])
    """
    a = as_node(x1)
    return searchsorted_p(a if sorter is None else take(a, sorter, axis=0), x2, side=side)
