"""Running sums and products, whose derivatives are right at zeros, in every order.

The product of the elements before each one obeys p[k + 1] = x[k] * p[k]. So its derivatives are
linear recurrences of the form y[k + 1] = a[k] * y[k] + b[k], and the derivatives of those are so
again: nothing is ever divided by an element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import POSITIVE, Cotangent, case
from symgrad.ir.operators import call
from symgrad.ir.types import TensorType, as_dtype, normalize_axis
from symgrad.ops import batch, kernels
from symgrad.ops.declare import NodeLike, common_dtype, composite, in_single, linear, op, require
from symgrad.ops.elementwise import multiply
from symgrad.ops.flows import total
from symgrad.ops.index import kernels as index_kernels
from symgrad.ops.leaves import arange, full
from symgrad.ops.logic import isnan
from symgrad.ops.reduce import wide
from symgrad.ops.select import is_result, select
from symgrad.ops.shape import astype, concat, flattened, reshape
from symgrad.ops.sides import Side, held

CASES = (
    case((5,), axis=0, reverse=False),
    case((3, 4), axis=0, reverse=True),
    case((2, 3, 4), axis=1, reverse=False),
    case((2, 0), axis=1, reverse=True),
)


def _normalize(*types: TensorType, axis: Any, reverse: bool) -> dict[str, Any]:
    return {"axis": normalize_axis(axis, types[0].ndim), "reverse": bool(reverse)}


def _infer(t: TensorType, *, axis: int, reverse: bool) -> TensorType:
    require("iufc", t)
    return t


def _alike(a: TensorType, b: TensorType, *, axis: int, reverse: bool) -> TensorType:
    if a != b:
        raise ShapeError(f"{a!r} and {b!r} differ")
    return _infer(a, axis=axis, reverse=reverse)


def _running_sum_back(g: Node, x: Node, axis: int, reverse: bool) -> Node:
    return in_single(running_sum)(g, axis=axis, reverse=not reverse)


@linear(
    infer=_infer,
    kernel=kernels.running_sum,
    normalize=_normalize,
    transpose=_running_sum_back,
    accumulates=True,
    flops=lambda t, **attrs: t.size,
    batch=batch.over_axes,
    out=True,
    cases=CASES,
    public=False,
)
def running_sum(x: NodeLike, /, axis: int, reverse: bool) -> Node:
    """For each element the sum of those up to it, or from it to the end."""
    ...


def _scan_vjp(
    g: Node, y: Node, a: Node, b: Node, axis: int, reverse: bool
) -> tuple[Cotangent, ...]:
    back = in_single(scan)(a, g, axis=axis, reverse=not reverse)
    return back * y, back


def _scan_jvp(
    t: tuple[Cotangent, ...], y: Node, a: Node, b: Node, axis: int, reverse: bool
) -> Cotangent:
    flow = total(None if t[0] is None else t[0] * y, t[1])
    return None if flow is None else in_single(scan)(a, flow, axis=axis, reverse=reverse)


@op(
    infer=_alike,
    kernel=kernels.scan,
    promote=common_dtype,
    normalize=_normalize,
    vjp=_scan_vjp,
    jvp=_scan_jvp,
    flops=lambda a, b, **attrs: 2 * a.size,
    batch=batch.together,
    out=True,
    preserves_zero=True,
    expensive=True,
    cases=tuple(case(*c.shapes, *c.shapes, **c.attrs) for c in CASES),
    public=False,
)
def scan(a: NodeLike, b: NodeLike, /, axis: int, reverse: bool) -> Node:
    """y[0] = 0 and y[k + 1] = a[k] * y[k] + b[k] along an axis, or the same from its end."""
    ...


@op(
    infer=_infer,
    kernel=kernels.products_before,
    normalize=_normalize,
    pullback=lambda g, y, x, axis, reverse: (
        y * in_single(scan)(x, g, axis=axis, reverse=not reverse)
    ),
    pushforward=lambda t, y, x, **attrs: in_single(scan)(x, t * y, **attrs),
    flops=lambda t, **attrs: t.size,
    batch=batch.over_axes,
    out=True,
    domain=(POSITIVE,),
    cases=CASES,
    public=False,
)
def products_before(x: NodeLike, /, axis: int, reverse: bool) -> Node:
    """For each element the product of those before it along an axis, or of those after it."""
    ...


def product_of_others(x: Node, axis: int) -> Node:
    """For each element the product of all the others along an axis."""
    before = products_before(x, axis=axis, reverse=False)
    return multiply(before, products_before(x, axis=axis, reverse=True))


def _after(first: int, y: Node, axis: int) -> Node:
    """y with one element more in front."""
    shape = (*y.shape[:axis], 1, *y.shape[axis + 1 :])
    return concat([full(shape, first, dtype=y.dtype), y], axis=axis)


def changes(x: Node, axis: int) -> Node:
    """Where an element is not the one before it along an axis; the first of them is not."""
    before = _after(0, x, axis)[(*(slice(None),) * axis, slice(None, -1))]
    size = x.shape[axis]
    first = reshape(arange(size) == 0, (size, *(1,) * (x.ndim - axis - 1)))
    found: Node = (x != before) | first
    return found


# ---- running extrema ------------------------------------------------------------------------


def _extremum_infer(t: TensorType, *, axis: int, largest: bool) -> TensorType:
    require("biuf", t)
    return t


def _ties(y: Node, x: Node, axis: int) -> tuple[Node, Node, Node]:
    """Where the extremum is the one before it, where it is the element itself, and how many up to
    there are it: as a float32 at least, for float16 counts to 2,048."""
    stays, tie = ~changes(y, axis), is_result(x, y)
    if y.tensor.is_inexact:
        stays = stays | (isnan(y) & ~changes(isnan(y), axis))
    wide = np.result_type(x.dtype, np.float32)
    return stays, tie, _along_runs(astype(tie, wide), stays, axis)


def _along_runs(b: Node, stays: Node, axis: int) -> Node:
    """For each element the sum of those up to it, back to where the extremum changed."""
    kept = astype(stays, b.dtype)
    return select(stays, scan(kept, b, axis=axis, reverse=False)) + b


def ranks(side: Side, x: Node, axis: int) -> Node:
    """Numbers in the order of x along an axis, where elements tie in that of their tangents."""
    columns = [held(x), *side.tangents(x)]
    order = call("argsort", columns[-1], axis=axis)
    for column in reversed(columns[:-1]):
        moved = call("take_along_axis", column, order, axis=axis)
        order = call("take_along_axis", order, call("argsort", moved, axis=axis), axis=axis)
    new: Any = None
    for column in columns:
        ordered = call("take_along_axis", column, order, axis=axis)
        after = changes(ordered, axis)
        new = after if new is None else new | after
    counted = cumulative_sum(astype(new, "float64"), axis=axis)
    return call("take_along_axis", counted, call("argsort", order, axis=axis), axis=axis)


def _running_extremum_locked(side: Side, y: Node, x: Node, axis: int, largest: bool) -> Node:
    # It is made of elements, so that it is its own derivative along x itself.
    order = ranks(side, x, axis)
    first = running_extremum(order, axis=axis, largest=largest)
    moved = _running_extremum_pushforward(x, first, order, axis, largest)
    return astype(moved, y.dtype)


def _running_extremum_pullback(g: Node, y: Node, x: Node, axis: int, largest: bool) -> Node:
    stays, tie, count = _ties(y, x, axis)
    share = g / count
    rest = scan(astype(stays, share.dtype), select(stays, share), axis=axis, reverse=True)
    return select(tie, share + rest)


def _running_extremum_pushforward(t: Node, y: Node, x: Node, axis: int, largest: bool) -> Node:
    stays, tie, count = _ties(y, x, axis)
    given = astype(select(tie, t), count.dtype)
    return _along_runs(given, stays, axis) / count


@op(
    infer=_extremum_infer,
    kernel=index_kernels.running_extremum,
    normalize=lambda t, axis, largest: {
        "axis": normalize_axis(axis, t.ndim),
        "largest": bool(largest),
    },
    pullback=_running_extremum_pullback,
    pushforward=_running_extremum_pushforward,
    locked=_running_extremum_locked,
    flops=lambda t, **attrs: t.size,
    batch=batch.over_axes,
    out=True,
    preserves_zero=True,
    kinks="at ties, which share the gradient",
    cases=tuple(
        case(*c.shapes, axis=c.attrs["axis"], largest=largest)
        for c in CASES
        for largest in (True, False)
    ),
    public=False,
)
def running_extremum(x: NodeLike, /, axis: int, largest: bool) -> Node:
    """For each element the largest or the smallest of those up to it."""
    ...


# ---- the public ones ------------------------------------------------------------------------


def _prepared(x: NodeLike, axis: Any, dtype: Any) -> tuple[Node, int]:
    """x in the dtype and shape to accumulate in, and its axis; None flattens, as in NumPy."""
    node = as_node(x)
    kind = wide(node.tensor) if dtype is None else as_dtype(dtype)
    return flattened(astype(node, kind), axis)


@composite(numpy=(np.cumsum, np.cumulative_sum))
def cumulative_sum(
    x: NodeLike, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> Node:
    """For each element the sum of those up to it along an axis; None flattens x first.

    Integers are summed in 64 bits, unless `dtype` says otherwise. `include_initial` puts a 0 in
    front. Raises `ShapeError` for an axis out of range.
    """
    node, found = _prepared(x, axis, dtype)
    y = running_sum(node, axis=found, reverse=False)
    return _after(0, y, found) if include_initial else y


@composite(numpy=(np.cumprod, np.cumulative_prod))
def cumulative_prod(
    x: NodeLike, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> Node:
    """For each element the product of those up to it along an axis; None flattens x first.

    Integers are multiplied in 64 bits, unless `dtype` says otherwise. `include_initial` puts a 1 in
    front. Raises `ShapeError` for an axis out of range.
    """
    node, found = _prepared(x, axis, dtype)
    y = multiply(products_before(node, axis=found, reverse=False), node)
    return _after(1, y, found) if include_initial else y


@composite()
def cummax(x: NodeLike, /, axis: int | None = None) -> Node:
    """For each element the largest of those up to it along an axis; None flattens x first.

    From the first NaN on it is NaN. Elements that tie share the gradient. Raises `ShapeError` for
    an axis out of range, `DtypeError` for complex numbers.

    >>> np.asarray(cummax(np.array([1, 3, 2, 4])))
    array([1, 3, 3, 4])
    """
    node, along = flattened(as_node(x), axis)
    return running_extremum(node, axis=along, largest=True)


@composite()
def cummin(x: NodeLike, /, axis: int | None = None) -> Node:
    """For each element the smallest of those up to it along an axis; see `cummax`."""
    node, along = flattened(as_node(x), axis)
    return running_extremum(node, axis=along, largest=False)
