"""NumPy's statistics and calculus of samples: average, cov, interp, gradient, trapezoid, …."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.errors import ArgumentError, DtypeError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.schema import plain
from symgrad.ir.types import in_order, normalize_axes, normalize_axis
from symgrad.ops.complexes import conj, part_dtype
from symgrad.ops.cumulative import cumulative_prod, cumulative_sum
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.elementwise import abs, divide, sqrt, subtract
from symgrad.ops.index.indexing import known
from symgrad.ops.index.slices import part_along
from symgrad.ops.index.take import take
from symgrad.ops.leaves import ones_like
from symgrad.ops.linalg.products import matmul
from symgrad.ops.linalg.solve import diagonal
from symgrad.ops.logic import isnan
from symgrad.ops.manipulate import diff
from symgrad.ops.order import argsort, searchsorted
from symgrad.ops.quantiles import as_large
from symgrad.ops.reduce import as_float, mean, sum
from symgrad.ops.reduce import max as max_
from symgrad.ops.reduce import min as min_
from symgrad.ops.select import clip, maximum, where
from symgrad.ops.shape import (
    astype,
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    reshape,
)


@composite(numpy=(np.ptp,))
def ptp(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """The largest less the smallest element over axes."""
    return subtract(max_(x, axis=axis, keepdims=keepdims), min_(x, axis=axis, keepdims=keepdims))


@composite(numpy=(np.average,))
def average(
    x: NodeLike,
    /,
    axis: Any = None,
    *,
    weights: NodeLike = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The mean over axes with weights of the shape of x, or of that of the axes.

    With `returned` it is a pair: the mean, and the sums of the weights. Weights that sum to 0 give
    NaN or inf, where NumPy raises.
    """
    node = as_node(x)
    if weights is None:
        found = mean(node, axis=axis, keepdims=keepdims)
        total = sum(astype(ones_like(node), found.dtype), axis=axis, keepdims=keepdims)
    else:
        given = as_large(weights, node, axis)
        given = astype(given, np.result_type(given.dtype, as_float(node).dtype))
        total = sum(given, axis=axis, keepdims=keepdims)
        found = divide(sum(given * node, axis=axis, keepdims=keepdims), total)
    return (found, total) if returned else found


def _rows(x: NodeLike, rowvar: Any, second: NodeLike, dtype: Any) -> Node:
    """A row for each variable, in float64 at least unless a dtype is given, as NumPy's."""
    node = as_node(x)
    if node.ndim > 2:
        raise ShapeError(f"variables and observations are a matrix, not {node.type!r}")
    wide = reshape(node, (1, -1)) if node.ndim < 2 else node
    rows = wide if rowvar or node.ndim < 2 else matrix_transpose(wide)
    rows = astype(rows, np.result_type(rows.dtype, np.float64) if dtype is None else dtype)
    return rows if second is None else concat([rows, _rows(second, rowvar, None, dtype)], axis=0)


def _counts(weights: NodeLike, name: str, count: Any) -> Node | None:
    if weights is None:
        return None
    given = as_node(weights)
    if given.shape != (count,):
        raise ShapeError(f"{name} is a vector of {count} weights, not {given.type!r}")
    if name == "fweights" and given.dtype.kind not in "iu":
        raise DtypeError(f"fweights are counts, not {given.type!r}; weights are aweights")
    return given


@composite(numpy=(np.cov,))
def cov(
    x: NodeLike,
    /,
    y: NodeLike = None,
    *,
    rowvar: bool = True,
    bias: bool = False,
    correction: float | None = None,
    fweights: NodeLike = None,
    aweights: NodeLike = None,
    dtype: Any = None,
) -> Node:
    """The covariances of variables, of which each is a row, or with `rowvar=False` a column.

    `y` holds more of them. Sums are divided by n - 1, with `bias` by n, or by n - correction, which
    NumPy calls ddof. `fweights` says how often each observation is there, `aweights` how much it
    weighs. The dtype is float64 at least unless one is given.

    >>> np.asarray(cov(np.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    rows = _rows(x, rowvar, y, dtype)
    less = (0 if bias else 1) if correction is None else plain(correction)
    if isinstance(less, bool) or not isinstance(less, (int, float)):
        raise ArgumentError(f"correction is a number, not {correction!r}")
    real = part_dtype(rows.dtype)
    often, much = (
        _counts(w, name, rows.shape[1])
        for w, name in ((fweights, "fweights"), (aweights, "aweights"))
    )
    if often is None and much is None:
        total: Node = astype(as_node(rows.shape[1]), real)
        past = rows - mean(rows, axis=1, keepdims=True)
        weighed, left = past, total - less
    else:
        weights: Any = astype(as_node(1 if often is None else often), real)
        weights = weights if much is None else weights * much
        total = sum(weights)
        past = rows - sum(rows * weights, axis=1, keepdims=True) / total
        share: Any = 1 if much is None else sum(weights * much) / total
        weighed, left = past * weights, total - less * share
    other = conj(weighed) if past.tensor.is_complex else weighed
    # As in NumPy, nothing left is division by 0.
    found: Node = matmul(past, matrix_transpose(other)) * astype(1 / maximum(left, 0), real)
    return reshape(found, ()) if as_node(x).ndim < 2 and y is None else found


@composite(numpy=(np.corrcoef,))
def corrcoef(x: NodeLike, /, y: NodeLike = None, *, rowvar: bool = True, dtype: Any = None) -> Node:
    """The correlations of variables, see cov: from -1 to 1."""
    found = cov(x, y, rowvar=rowvar, dtype=dtype)
    if found.ndim == 0:
        return found / found
    spread = sqrt(diagonal(found, axis1=-2, axis2=-1))
    scaled = found / expand_dims(spread, axis=1) / expand_dims(spread, axis=0)
    return scaled if scaled.tensor.is_complex else clip(scaled, -1, 1)


@composite(numpy=(np.nancumsum,))
def nancumsum(x: NodeLike, /, axis: int | None = None, *, dtype: Any = None) -> Node:
    """The sums up to each element, in which NaN counts as 0; None makes a vector of x first."""
    return _cumulative(cumulative_sum, x, axis, dtype, 0)


@composite(numpy=(np.nancumprod,))
def nancumprod(x: NodeLike, /, axis: int | None = None, *, dtype: Any = None) -> Node:
    """The products up to each element, in which NaN counts as 1; None makes a vector of x first."""
    return _cumulative(cumulative_prod, x, axis, dtype, 1)


def _cumulative(
    function: Callable[..., Node], x: NodeLike, axis: Any, dtype: Any, neutral: int
) -> Node:
    node = as_node(x)
    node = where(isnan(node), neutral, node) if node.tensor.is_inexact else node
    return function(node, axis=axis, dtype=dtype)


# ---- functions given by samples -------------------------------------------------------------


@composite(numpy=(np.interp,))
def interp(
    x: NodeLike,
    xp: NodeLike,
    fp: NodeLike,
    /,
    left: NodeLike = None,
    right: NodeLike = None,
    period: NodeLike = None,
) -> Node:
    """The function through the points (xp, fp), straight between them, at x; constant beyond.

    `xp` rises; `left` and `right` are the values beyond, instead of the first and the last. With a
    `period` the function goes on from its beginning, and xp may be in any order. A gradient flows
    to x, to fp and to xp.

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
    if period is not None:
        at, knots = at % abs(as_node(period)), knots % abs(as_node(period))
        order = argsort(knots)
        knots, values = take(knots, order), take(values, order)
        knots = concat([knots[-1:] - abs(as_node(period)), knots, knots[:1] + abs(as_node(period))])
        values, left, right = concat([values[-1:], values, values[:1]]), None, None
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
    """The number of the bin in which each element lies; the edges rise or fall.

    Bin i is bins[i-1] <= x < bins[i], or with `right` bins[i-1] < x <= bins[i]. Raises `ShapeError`
    for edges that are known to be in no order.
    """
    edges, value = as_node(bins), known(as_node(bins))
    if edges.ndim != 1:
        raise ShapeError(f"the edges of bins are a vector, not {edges.type!r}")
    rises = edges.shape[0] == 0
    if value is not None:
        rises = bool(np.all(value[1:] >= value[:-1]))
        if not rises and not np.all(value[1:] <= value[:-1]):
            raise ShapeError("the edges of bins rise or fall; sort them: sg.sort(bins)")
    side = "left" if right else "right"
    if rises:
        return searchsorted(edges, x, side=side)
    falls = edges[0] > edges[-1]
    found = searchsorted(where(falls, flip(edges), edges), x, side=side)
    return where(falls, subtract(edges.shape[0], found), found)


@composite(numpy=(np.trapezoid,))
def trapezoid(y: NodeLike, /, x: NodeLike = None, *, dx: NodeLike = 1.0, axis: int = -1) -> Node:
    """The integral of samples over an axis by the trapezoidal rule, at places x or dx apart.

    >>> float(trapezoid([1.0, 2.0, 3.0]))
    4.0
    """
    node = as_node(y)
    along = normalize_axis(axis, node.ndim)
    step: Any = dx if isinstance(dx, (int, float)) else as_node(dx)
    if x is not None:
        places = as_node(x)
        if places.ndim == 1 and node.ndim > 1:
            shape = (1,) * along + (-1,) + (1,) * (node.ndim - along - 1)
            places = reshape(places, shape)
        step = diff(places, axis=axis)
    pair = part_along(node, along, 1, None) + part_along(node, along, None, -1)
    return sum(step * pair / 2, axis=axis)


@composite(numpy=(np.ediff1d,))
def ediff1d(x: NodeLike, /, *, to_end: NodeLike = None, to_begin: NodeLike = None) -> Node:
    """The differences of neighbours among all elements, with others before and behind them.

    The result has the dtype of x. Raises `DtypeError` for others that are of another kind.
    """
    steps = diff(reshape(as_node(x), (-1,)))
    others = [None if e is None else as_node(e) for e in (to_begin, to_end)]
    if not all(e is None or np.can_cast(e.dtype, steps.dtype, "same_kind") for e in others):
        raise DtypeError(f"what is put before and behind is of the kind of {steps.type!r}")
    ends = [[] if e is None else [astype(reshape(e, (-1,)), steps.dtype)] for e in others]
    return concat([*ends[0], steps, *ends[1]])


@composite(numpy=(np.gradient,))
def gradient(f: NodeLike, /, *varargs: NodeLike, axis: Any = None, edge_order: int = 1) -> Any:
    """The slopes of samples, by central differences and by those of one side at the ends: NumPy's.

    The samples are 1 apart, or so far apart as one number, or a number or a vector of places for
    each axis, says. Of several axes it is a tuple, one array an axis. It is no derivative of the
    graph: that is `grad`. Raises `ShapeError` for an axis of fewer than edge_order + 1 samples.
    """
    node = as_float(f)
    if not node.ndim:
        raise ShapeError("a scalar has no samples; the derivative of a loss is sg.grad(loss, wrt)")
    axes = normalize_axes(axis, node.ndim)
    if edge_order not in (1, 2) or isinstance(edge_order, bool):
        raise ArgumentError(f"edge_order is 1 or 2, not {edge_order!r}")
    steps = list(varargs) or [1.0]
    steps = steps * len(axes) if len(steps) == 1 else steps
    if len(steps) != len(axes):
        raise ArgumentError(f"{len(steps)} distances for {len(axes)} axes: give one, or as many")
    found = tuple(
        astype(_slopes(node, h, a, edge_order), node.dtype)
        for h, a in zip(in_order(steps, "distances", ShapeError), axes, strict=True)
    )
    return found[0] if len(found) == 1 else found


def _slopes(f: Node, distance: NodeLike, axis: int, edge_order: int) -> Node:
    size = f.shape[axis]
    if isinstance(size, int) and size <= edge_order:
        raise ShapeError(f"slopes need {edge_order + 1} samples, and axis {axis} has {size}")
    h: Any = distance if isinstance(distance, (int, float)) else as_node(distance)
    even = np.ndim(h) == 0
    h = h if even else as_float(h)  # for unsigned numbers have no differences
    one = (1,) * axis + (-1,) + (1,) * (f.ndim - axis - 1)
    gaps = h if even else reshape(diff(h), one)

    def part(start: int | None, stop: int | None) -> Node:
        return part_along(f, axis, start, stop)

    def gap(start: int | None, stop: int | None) -> Any:
        return gaps if even else part_along(gaps, axis, start, stop)

    if even:
        inside = (part(2, None) - part(None, -2)) / (2 * gaps)
    else:
        before, after = gap(None, -1), gap(1, None)
        both = before + after
        inside = (
            part(None, -2) * (-after / (before * both))
            + part(1, -1) * ((after - before) / (before * after))
            + part(2, None) * (before / (after * both))
        )
    ends = []
    for side, places in ((1, (0, 1, 2)), (-1, (-1, -2, -3))):
        a, b, c = (part(i, (i + 1) or None) for i in places)
        near, far = (gap(i, (i + 1) or None) for i in places[:2])
        if edge_order == 1:
            ends.append((b - a) * side / near)
            continue
        whole = near + far
        terms = [
            a * (-side * (2 * near + far) / (near * whole)),
            b * (side * whole / (near * far)),
            c * (-side * near / (far * whole)),
        ]
        ends.append(terms[1 - side] + terms[1] + terms[1 + side])
    return concat([ends[0], inside, ends[1]], axis=axis)
