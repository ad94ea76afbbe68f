"""Orders and bins: partition, lexsort, nanargmax, edges of bins; phases without jumps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.ir.errors import BoundsError, DtypeError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import in_order, normalize_axis
from symgrad.ops.cumulative import cumulative_sum
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.elementwise import abs
from symgrad.ops.index.slices import part_along
from symgrad.ops.index.take import take_along_axis
from symgrad.ops.leaves import zeros
from symgrad.ops.logic import isnan
from symgrad.ops.manipulate import diff, unstack
from symgrad.ops.order import argmax, argmin, argsort, sort
from symgrad.ops.reduce import sum
from symgrad.ops.remainders import remainder
from symgrad.ops.select import where
from symgrad.ops.shape import astype, concat, reshape
from symgrad.ops.statistics import binned, histogram


def _filled(x: NodeLike, value: float) -> Node:
    node = as_node(x)
    return where(isnan(node), value, node) if node.tensor.is_inexact else node


@composite(numpy=(np.nanargmax,))
def nanargmax(x: NodeLike, /, axis: int | None = None, *, keepdims: bool = False) -> Node:
    """Where the largest element is that is no NaN; 0 where all are NaN."""
    return argmax(_filled(x, -np.inf), axis=axis, keepdims=keepdims)


@composite(numpy=(np.nanargmin,))
def nanargmin(x: NodeLike, /, axis: int | None = None, *, keepdims: bool = False) -> Node:
    """Where the smallest element is that is no NaN; 0 where all are NaN."""
    return argmin(_filled(x, np.inf), axis=axis, keepdims=keepdims)


def _check_places(kth: Any, x: NodeLike, axis: int | None) -> None:
    node, places = as_node(x), np.asarray(kth)
    if places.dtype.kind not in "iu":
        raise DtypeError(f"kth is an int, or several, not {kth!r}")
    size = node.size if axis is None else node.shape[normalize_axis(axis, node.ndim)]
    if isinstance(size, int) and ((places >= size) | (places < -size)).any():
        raise BoundsError(f"kth={kth} is no place among {size} elements")


@composite(numpy=(np.partition,))
def partition(x: NodeLike, kth: Any, /, axis: int | None = -1) -> Node:
    """x with the elements at `kth` where they are in order, smaller ones before them: it is sorted.

    NumPy leaves open in which order the others are.
    """
    _check_places(kth, x, axis)
    return sort(x, axis=axis)


@composite(numpy=(np.argpartition,))
def argpartition(x: NodeLike, kth: Any, /, axis: int | None = -1) -> Node:
    """The indices that give a `partition`: those that sort x."""
    _check_places(kth, x, axis)
    return argsort(x, axis=axis)


@composite(numpy=(np.sort_complex,))
def sort_complex(x: NodeLike, /) -> Node:
    """x sorted along the last axis, as complex numbers."""
    node = sort(x)
    if node.tensor.is_complex:
        return node
    narrow = node.dtype.kind in "iu" and node.dtype.itemsize < 4
    return astype(node, "complex64" if narrow else "complex128")


@composite(numpy=(np.lexsort,))
def lexsort(keys: Any, /, axis: int = -1) -> Node:
    """The indices that sort by the last key, where it ties by the one before it, and so on.

    >>> np.asarray(lexsort(([2, 1, 3], [1, 1, 0])))
    array([2, 1, 0])
    """
    nodes = [as_node(k) for k in in_order(keys, "keys", ShapeError)]
    if not nodes:
        raise ShapeError("there is no key to sort by")
    order = argsort(nodes[0], axis=axis)
    for key in nodes[1:]:
        again = argsort(take_along_axis(key, order, axis=axis), axis=axis)
        order = take_along_axis(order, again, axis=axis)
    return order


@composite(numpy=(np.histogram_bin_edges,))
def histogram_bin_edges(
    x: NodeLike, /, bins: Any = 10, range: Any = None, weights: NodeLike = None
) -> Node:
    """The edges of the bins of `histogram`."""
    return histogram(x, bins, range)[1]


@composite(numpy=(np.histogramdd,))
def histogramdd(
    sample: Any,
    /,
    bins: Any = 10,
    range: Any = None,
    density: bool = False,
    *,
    weights: NodeLike = None,
) -> tuple[Node, list[Node]]:
    """How many points lie in each cell of a grid, and the edges of the cells along each axis.

    `sample` has a point in each row, or is a list of a vector for each coordinate; `bins` and
    `range` are as in `histogram`, one for all axes or one for each. With `weights` it is their sum,
    with `density` the sum over the volumes of the cells is 1. The counts are float64.

    >>> np.asarray(histogramdd([[0.0, 0.1, 1.0], [0.0, 0.1, 1.0]], 2)[0])
    array([[2., 0.],
           [0., 1.]])
    """
    if isinstance(sample, (list, tuple)):
        columns = [as_node(c) for c in sample]
    else:
        points = as_node(sample)
        points = reshape(points, (-1, 1)) if points.ndim < 2 else points
        columns = list(unstack(points, axis=1))
    many = [bins] * len(columns) if isinstance(bins, int) else list(bins)
    ranges = [None] * len(columns) if range is None else list(range)
    ranges = [r if r is None else tuple(map(as_node, r)) for r in ranges]
    if len(many) != len(columns) or len(ranges) != len(columns):
        raise ShapeError(f"{len(columns)} axes have as many bins and ranges: {bins!r}, {range!r}")
    placed = [binned(c, b, r) for c, b, r in zip(columns, many, ranges, strict=True)]
    sizes = [edges.shape[0] + 1 for _, edges in placed]
    amounts = 1.0 if weights is None else astype(as_node(weights), "float64")
    at = tuple(place for place, _ in placed)
    found = zeros(tuple(sizes)).at[at].add(amounts)[(slice(1, -1),) * len(sizes)]
    if density:
        total = sum(found)
        for axis, (_, edges) in enumerate(placed):
            rest = len(sizes) - axis - 1
            found = found / reshape(diff(edges), (-1, *(1,) * rest))
        found = found / total
    return found, [edges for _, edges in placed]


@composite(numpy=(np.histogram2d,))
def histogram2d(
    x: NodeLike,
    y: NodeLike,
    /,
    bins: Any = 10,
    range: Any = None,
    density: bool = False,
    *,
    weights: NodeLike = None,
) -> tuple[Node, Node, Node]:
    """How many points (x, y) lie in each cell of a grid, and the edges of both axes.

    See `histogramdd`. A vector of edges is for both axes.
    """
    several = isinstance(bins, (list, tuple)) and len(bins) == 2
    both = bins if isinstance(bins, int) or several else [bins, bins]
    found, edges = histogramdd([x, y], both, range, density, weights=weights)
    return found, edges[0], edges[1]


@composite(numpy=(np.unwrap,))
def unwrap(
    p: NodeLike,
    /,
    discont: float | None = None,
    axis: int = -1,
    *,
    period: float = 2 * math.pi,
) -> Node:
    """Phases without jumps: where neighbours differ by more than half a period, whole ones less.

    >>> np.asarray(unwrap([0.0, 3.0, 6.5], period=4))
    array([ 0. , -1. , -1.5])
    """
    node = as_node(p)
    along = normalize_axis(axis, node.ndim)
    steps = diff(node, axis=along)
    whole = node.dtype.kind in "iu" and isinstance(period, int)
    half: Any = period // 2 if whole else period / 2
    low = -half
    rest = remainder(steps - low, period) + low
    if not whole or period % 2 == 0:
        rest = where((rest == low) & (steps > 0), half, rest)
    jump = where(abs(steps) < (period / 2 if discont is None else discont), 0, rest - steps)
    tail = part_along(node, along, 1, None) + cumulative_sum(jump, axis=along)
    parts = [astype(part, jump.dtype) for part in (part_along(node, along, 0, 1), tail)]
    return concat(parts, axis=along)
