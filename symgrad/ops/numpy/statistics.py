"""NumPy's statistics and calculus of samples: average, cov, interp, gradient, trapezoid, …."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.ir.errors import ArgumentError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import in_order, normalize_axes, normalize_axis
from symgrad.ops.complexes import conj, part_dtype
from symgrad.ops.cumulative import cumulative_prod, cumulative_sum
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.elementwise import sqrt, subtract
from symgrad.ops.index.indexing import known
from symgrad.ops.index.slices import getitem
from symgrad.ops.index.take import take
from symgrad.ops.linalg.products import matmul
from symgrad.ops.linalg.solve import diagonal
from symgrad.ops.logic import isnan, logical_and, logical_not
from symgrad.ops.manipulate import diff
from symgrad.ops.order import searchsorted
from symgrad.ops.reduce import as_float, mean, sum
from symgrad.ops.reduce import max as max_
from symgrad.ops.reduce import min as min_
from symgrad.ops.select import clip, where
from symgrad.ops.shape import astype, broadcast_to, concat, expand_dims, matrix_transpose, reshape


@composite(numpy=(np.ptp,))
def ptp(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """The largest less the smallest element over axes."""
    return subtract(max_(x, axis=axis, keepdims=keepdims), min_(x, axis=axis, keepdims=keepdims))


@composite(numpy=(np.average,))
def average(
    x: NodeLike, /, axis: Any = None, *, weights: NodeLike = None, keepdims: bool = False
) -> Node:
    """The mean over axes with weights of the shape of x, or a vector of them along one axis.

    Weights that sum to 0 give NaN or inf, where NumPy raises.
    """
    node = as_node(x)
    if weights is None:
        return mean(node, axis=axis, keepdims=keepdims)
    given, values = as_node(weights), as_float(node)
    if given.shape != node.shape:
        if given.ndim != 1 or axis is None or isinstance(axis, (tuple, list)):
            raise ShapeError(
                f"weights of the shape {given.shape} for {node.shape}: give them that shape, or a "
                "vector along the one axis"
            )
        along = normalize_axis(axis, node.ndim)
        shape = (1,) * along + given.shape + (1,) * (node.ndim - along - 1)
        given = broadcast_to(reshape(given, shape), node.shape)
    total = sum(given, axis=axis, keepdims=keepdims)
    found: Node = sum(values * given, axis=axis, keepdims=keepdims) / total
    return found


def _rows(x: NodeLike, rowvar: Any, second: NodeLike) -> Node:
    """A row for each variable, in float64 at least, as NumPy's."""
    node = as_node(x)
    node = astype(node, np.result_type(node.dtype, np.float64))
    if node.ndim > 2:
        raise ShapeError(f"variables and observations are a matrix, not {node.type!r}")
    wide = reshape(node, (1, -1)) if node.ndim < 2 else node
    rows = wide if rowvar or node.ndim < 2 else matrix_transpose(wide)
    if second is None:
        return rows
    return concat([rows, _rows(second, rowvar, None)], axis=0)


@composite(numpy=(np.cov,))
def cov(
    x: NodeLike,
    /,
    y: NodeLike = None,
    *,
    rowvar: bool = True,
    bias: bool = False,
    correction: int | None = None,
) -> Node:
    """The covariances of variables, of which each is a row, or with `rowvar=False` a column.

    `y` holds more of them. Sums are divided by n - 1, with `bias` by n, or by n - correction, which
    NumPy calls ddof.

    >>> np.asarray(cov(np.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    rows = _rows(x, rowvar, y)
    less = (0 if bias else 1) if correction is None else correction
    if isinstance(less, bool) or not isinstance(less, (int, float)):
        raise ArgumentError(f"correction is a number, not {correction!r}")
    past = rows - mean(rows, axis=1, keepdims=True)
    other = conj(past) if past.tensor.is_complex else past
    count = as_node(rows.shape[1]) - less
    found: Node = matmul(past, matrix_transpose(other)) / astype(count, part_dtype(past.dtype))
    return reshape(found, ()) if as_node(x).ndim < 2 and y is None else found


@composite(numpy=(np.corrcoef,))
def corrcoef(x: NodeLike, /, y: NodeLike = None, *, rowvar: bool = True) -> Node:
    """The correlations of variables, see cov: from -1 to 1."""
    found = cov(x, y, rowvar=rowvar)
    if found.ndim == 0:
        return found / found
    spread = sqrt(diagonal(found, axis1=-2, axis2=-1))
    scaled = found / expand_dims(spread, axis=1) / expand_dims(spread, axis=0)
    return scaled if scaled.tensor.is_complex else clip(scaled, -1, 1)


@composite(numpy=(np.nancumsum,))
def nancumsum(x: NodeLike, /, axis: int | None = None) -> Node:
    """The sums up to each element, in which NaN counts as 0; None makes a vector of x first."""
    return _cumulative(cumulative_sum, x, axis, 0)


@composite(numpy=(np.nancumprod,))
def nancumprod(x: NodeLike, /, axis: int | None = None) -> Node:
    """The products up to each element, in which NaN counts as 1; None makes a vector of x first."""
    return _cumulative(cumulative_prod, x, axis, 1)


def _cumulative(function: Any, x: NodeLike, axis: Any, neutral: int) -> Node:
    node = as_node(x)
    node = where(isnan(node), neutral, node) if node.tensor.is_inexact else node
    node, axis = (reshape(node, (-1,)), 0) if axis is None else (node, axis)
    return function(node, axis=axis)  # type: ignore[no-any-return]


# ---- functions given by samples -------------------------------------------------------------


@composite(numpy=(np.interp,))
def interp(
    x: NodeLike, xp: NodeLike, fp: NodeLike, /, *, left: NodeLike = None, right: NodeLike = None
) -> Node:
    """The function through the points (xp, fp), straight between them, at x; constant beyond.

    `xp` rises; `left` and `right` are the values beyond, instead of the first and the last. A
    gradient flows to x, to fp and to xp.

    >>> np.asarray(interp([0.5, 3.0], [0.0, 1.0, 2.0], [0.0, 10.0, 0.0]))
    array([5., 0.])
    """
    # In float64, as NumPy's, whatever the points are.
    at, knots, values = (astype(n, np.result_type(n.dtype, np.float64))
                         for n in (as_node(x), as_node(xp), as_node(fp)))  # fmt: skip
    if knots.ndim != 1 or values.ndim != 1:
        raise ShapeError(f"the points are two vectors, not {knots.type!r} and {values.type!r}")
    if values.shape != knots.shape:
        raise ShapeError(f"there are {knots.shape[0]} places and {values.shape[0]} values")
    last = as_node(knots.shape[0]) - 1
    flat = reshape(at, (-1,))
    upper = clip(searchsorted(knots, flat, side="right"), 1, where(last > 1, last, 1))
    lower = upper - 1
    upper = where(upper > last, last, upper)
    x0, x1, y0, y1 = (take(v, i) for v in (knots, values) for i in (lower, upper))
    step = x1 - x0
    part = (flat - x0) / where(step == 0, 1, step)
    inside = y0 + part * (y1 - y0)
    first, end = (take(values, 0), take(values, last))
    found = where(flat < knots[0], first if left is None else left, inside)
    found = where(flat >= take(knots, last), end, found)
    if right is not None:
        found = where(flat > take(knots, last), right, found)
    return reshape(where(isnan(flat), flat, found), at.shape)


@composite(numpy=(np.digitize,))
def digitize(x: NodeLike, bins: NodeLike, /, *, right: bool = False) -> Node:
    """The number of the bin in which each element lies; the edges rise, or, if known, fall.

    Bin i is bins[i-1] <= x < bins[i], or with `right` bins[i-1] < x <= bins[i]. Raises `ShapeError`
    for edges that are known to be in no order.
    """
    node, edges = as_node(x), as_node(bins)
    if edges.ndim != 1:
        raise ShapeError(f"the edges of bins are a vector, not {edges.type!r}")
    side, value = "left" if right else "right", known(edges)
    if value is None or np.all(value[1:] >= value[:-1]):
        return searchsorted(edges, node, side=side)
    if not np.all(value[1:] <= value[:-1]):
        raise ShapeError("the edges of bins rise or fall; sort them: sg.sort(bins)")
    return subtract(edges.shape[0], searchsorted(value[::-1], node, side=side))


def _part(x: Node, axis: int, part: slice) -> Node:
    return getitem(x, (*(slice(None),) * axis, part))


@composite(numpy=(np.trapezoid,))
def trapezoid(y: NodeLike, /, x: NodeLike = None, *, dx: NodeLike = 1.0, axis: int = -1) -> Node:
    """The integral of samples over an axis by the trapezoidal rule, at places x or dx apart.

    >>> float(trapezoid([1.0, 2.0, 3.0]))
    4.0
    """
    node = as_float(y)
    along = normalize_axis(axis, node.ndim)
    step: Any = dx if isinstance(dx, (int, float)) else as_node(dx)
    if x is not None:
        places = as_node(x)
        if places.ndim == 1 and node.ndim > 1:
            shape = (1,) * along + (-1,) + (1,) * (node.ndim - along - 1)
            places = reshape(places, shape)
        step = diff(places, axis=along if places.ndim == node.ndim else -1)
    pair = _part(node, along, slice(1, None)) + _part(node, along, slice(None, -1))
    return sum(step * pair / 2, axis=along)


@composite(numpy=(np.ediff1d,))
def ediff1d(x: NodeLike, /, *, to_end: NodeLike = None, to_begin: NodeLike = None) -> Node:
    """The differences of neighbours among all elements, with others before and behind them."""
    steps = diff(reshape(as_node(x), (-1,)))
    ends = [None if e is None else reshape(as_node(e), (-1,)) for e in (to_begin, to_end)]
    parts = [p for p in (ends[0], steps, ends[1]) if p is not None]
    return concat(parts) if len(parts) > 1 else steps


@composite(numpy=(np.gradient,))
def gradient(f: NodeLike, /, *varargs: NodeLike, axis: Any = None, edge_order: int = 1) -> Any:
    """The slopes of samples, by central differences and by those of one side at the ends: NumPy's.

    The samples are 1 apart, or so far apart as one number, or a number or a vector of places for
    each axis, says. Of several axes it is a tuple, one array an axis. It is no derivative of the
    graph: that is `grad`. Raises `ShapeError` for an axis of fewer than edge_order + 1 samples.
    """
    node = as_float(f)
    axes = normalize_axes(axis, node.ndim)
    if edge_order not in (1, 2) or isinstance(edge_order, bool):
        raise ArgumentError(f"edge_order is 1 or 2, not {edge_order!r}")
    steps = list(varargs) or [1.0]
    steps = steps * len(axes) if len(steps) == 1 else steps
    if len(steps) != len(axes):
        raise ArgumentError(f"{len(steps)} distances for {len(axes)} axes: give one, or as many")
    found = tuple(
        _slopes(node, as_node(h), a, edge_order)
        for h, a in zip(in_order(steps, "distances", ShapeError), axes, strict=True)
    )
    return found[0] if len(found) == 1 else found


def _slopes(f: Node, h: Node, axis: int, edge_order: int) -> Node:
    size = f.shape[axis]
    if isinstance(size, int) and size <= edge_order:
        raise ShapeError(f"slopes need {edge_order + 1} samples, and axis {axis} has {size}")

    def part(start: int | None, stop: int | None) -> Node:
        return _part(f, axis, slice(start, stop))

    one = (1,) * axis + (-1,) + (1,) * (f.ndim - axis - 1)
    gaps = as_float(reshape(diff(h), one)) if h.ndim else as_float(h)
    if h.ndim:
        before, after = (_part(gaps, axis, s) for s in (slice(None, -1), slice(1, None)))
        both = before + after
        inside = (
            part(None, -2) * (-after / (before * both))
            + part(1, -1) * ((after - before) / (before * after))
            + part(2, None) * (before / (after * both))
        )
    else:
        inside = (part(2, None) - part(None, -2)) / (2 * gaps)
    ends = []
    for side in (1, -1):
        a, b, c = (part(i, (i + 1) or None) for i in ((0, 1, 2) if side > 0 else (-1, -2, -3)))
        near, far = gaps, gaps
        if h.ndim:
            places = (0, 1) if side > 0 else (-1, -2)
            near, far = (_part(gaps, axis, slice(i, (i + 1) or None)) for i in places)
        if edge_order == 1:
            ends.append((b - a) * side / near)
            continue
        whole = near + far
        slope = (
            b * (whole / (near * far)) - a * ((2 * near + far) / (near * whole))
            - c * (near / (far * whole))
        )  # fmt: skip
        ends.append(slope * side)
    return concat([ends[0], inside, ends[1]], axis=axis)


# ---- choosing -------------------------------------------------------------------------------


@composite(numpy=(np.select,))
def select_first(
    condlist: Sequence[NodeLike], choicelist: Sequence[NodeLike], /, *, default: NodeLike = 0
) -> Node:
    """The element of the first choice whose condition holds, else the default: `np.select`."""
    conditions = [as_node(c) for c in in_order(condlist, "conditions", ShapeError)]
    choices = [as_node(c) for c in in_order(choicelist, "choices", ShapeError)]
    if len(conditions) != len(choices) or not conditions:
        raise ArgumentError(f"{len(conditions)} conditions for {len(choices)} choices")
    found = as_node(default)
    kinds = [c.dtype for c in choices] + [found.dtype] * (not isinstance(default, (int, float)))
    found = astype(found, np.result_type(*kinds))
    for condition, choice in zip(conditions[::-1], choices[::-1], strict=True):
        found = where(condition, choice, found)
    return found


@composite(numpy=(np.piecewise,))
def piecewise(x: NodeLike, condlist: Sequence[NodeLike], funclist: Sequence[Any], /) -> Node:
    """A function in pieces: each function (or number) where its condition holds, the last wins.

    One more function than there are conditions is for where none holds, else that is 0. Each is
    computed for all of x, and what is not taken contributes nothing, to the gradient neither.
    """
    node = as_node(x)
    conditions = [as_node(c) for c in in_order(condlist, "conditions", ShapeError)]
    functions = list(in_order(funclist, "functions", ShapeError))
    if not len(conditions) <= len(functions) <= len(conditions) + 1 or not conditions:
        raise ArgumentError(f"{len(conditions)} conditions for {len(functions)} functions")
    pieces = [f(node) if callable(f) else f for f in functions]
    found: Any = pieces[-1] if len(pieces) > len(conditions) else 0
    covered = conditions[0]
    for c in conditions[1:]:
        covered = covered | c
    found = where(logical_not(covered), found, 0)
    for condition, piece in zip(conditions, pieces, strict=False):
        found = where(logical_and(condition, True), piece, found)
    return astype(broadcast_to(found, node.shape), node.dtype)
