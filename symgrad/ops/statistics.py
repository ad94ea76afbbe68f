"""Reductions that leave NaNs out, and counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.schema import plain
from symgrad.ir.types import as_shape, whole
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.dtypes import result_type
from symgrad.ops.elementwise import divide, sqrt
from symgrad.ops.index.indexing import as_integers, known
from symgrad.ops.index.scatter import add_at, from_zero
from symgrad.ops.leaves import arange, full
from symgrad.ops.linalg.norms import vector_norm
from symgrad.ops.logic import isnan
from symgrad.ops.order import searchsorted
from symgrad.ops.reduce import all, as_float, max, min, prod, sum
from symgrad.ops.select import select, where
from symgrad.ops.shape import astype, reshape

# ---- without NaNs ---------------------------------------------------------------------------


def _numbers(x: NodeLike) -> tuple[Node, Node]:
    """x, and where it is no NaN."""
    node = as_node(x)
    return node, ~isnan(node) if node.dtype.kind in "fc" else full(node.shape, True, dtype="bool")


@composite(numpy=(np.nansum,))
def nansum(x: NodeLike, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Node:
    """The sum of what is no NaN; of nothing it is 0.

    >>> float(nansum(np.array([1, np.nan, 2])))
    3.0
    """
    node, there = _numbers(x)
    return sum(select(there, node), axis=axis, dtype=dtype, keepdims=keepdims)


@composite(numpy=(np.nanprod,))
def nanprod(x: NodeLike, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Node:
    """The product of what is no NaN; of nothing it is 1."""
    node, there = _numbers(x)
    return prod(where(there, node, 1), axis=axis, dtype=dtype, keepdims=keepdims)


def _counted(there: Node, like: Node, axis: Any, keepdims: bool) -> Node:
    return sum(astype(there, like.dtype), axis=axis, keepdims=keepdims)


@composite(numpy=(np.nanmean,), widens=True)
def nanmean(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """The mean of what is no NaN; of nothing it is NaN."""
    node, there = _numbers(as_float(x))
    total = sum(select(there, node), axis=axis, keepdims=keepdims)
    return divide(total, _counted(there, node, axis, keepdims))


def _deviation(x: NodeLike, axis: Any, correction: float, keepdims: bool) -> tuple[Node, Node]:
    """The numbers less their mean, 0 for NaN; how many numbers there are, less the correction."""
    node, there = _numbers(as_float(x))
    away = select(there, node - nanmean(node, axis=axis, keepdims=True))
    if node.tensor.is_complex:
        away = abs(away)
    count = _counted(there, away, axis, keepdims) - plain(correction)
    return away, where(count > 0, count, np.nan)


@composite(numpy=(np.nanvar,), widens=True)
def nanvar(
    x: NodeLike, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False
) -> Node:
    """The variance of what is no NaN; NaN where there are no more elements than the correction."""
    away, count = _deviation(x, axis, correction, keepdims)
    return divide(sum(away * away, axis=axis, keepdims=keepdims), count)


@composite(numpy=(np.nanstd,), widens=True)
def nanstd(
    x: NodeLike, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False
) -> Node:
    """The square root of `nanvar`. Where all elements are equal its derivative is 0."""
    away, count = _deviation(x, axis, correction, keepdims)
    return divide(vector_norm(away, axis=axis, keepdims=keepdims), sqrt(count))


@composite(numpy=(np.nanmax,))
def nanmax(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """The largest element that is no NaN; NaN where none is. Those that tie share the gradient."""
    return _extreme(max, x, axis, keepdims, -np.inf)


@composite(numpy=(np.nanmin,))
def nanmin(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """The smallest element that is no NaN; see `nanmax`."""
    return _extreme(min, x, axis, keepdims, np.inf)


def _extreme(
    reduce: Callable[..., Node], x: NodeLike, axis: Any, keepdims: bool, beyond: float
) -> Node:
    node, there = _numbers(x)
    if node.dtype.kind not in "fc":
        return reduce(node, axis=axis, keepdims=keepdims)
    last = complex(beyond, beyond) if node.tensor.is_complex else beyond
    found = reduce(where(there, node, last), axis=axis, keepdims=keepdims)
    return where(all(~there, axis=axis, keepdims=keepdims), np.nan, found)


# ---- counts ---------------------------------------------------------------------------------


@composite(numpy=(np.bincount,))
def bincount(
    x: NodeLike, /, weights: NodeLike = None, *, minlength: int = 0, length: Any = None
) -> Node:
    """How often each number from 0 on is in a vector of integers, or the sums of their weights.

    There are `length` results, which is an int or a named dimension; if x is known when the graph
    is built, as many as it needs. A number out of bounds is a `BoundsError`. The gradient flows to
    the weights. Raises `ShapeError` if `length` is missing.

    >>> np.asarray(bincount(np.array([1, 3, 1])))
    array([0, 2, 0, 1])
    """
    node = as_integers(x)
    if node.ndim != 1:
        raise ShapeError(f"bincount takes a vector, not {node.type!r}")
    value = known(node)
    if length is None and value is None:
        raise ShapeError(
            "how many numbers there are is known only when the program runs; "
            "say it: bincount(x, length=...)"
        )
    if length is None:
        assert value is not None
        length = np.maximum(minlength, value.max(initial=-1) + 1).item()
    (size,) = as_shape(length)
    amounts = 1 if weights is None else as_node(weights)
    dtype = "int64" if weights is None else np.result_type(as_node(amounts).dtype, np.float64)
    return add_at(full(size, 0, dtype=dtype), from_zero(node, size), amounts)


@composite(numpy=(np.histogram,))
def histogram(
    x: NodeLike,
    /,
    bins: Any = 10,
    range: Any = None,
    *,
    weights: NodeLike = None,
    density: bool = False,
) -> tuple[Node, Node]:
    """How many elements lie in each bin, or the sums of their weights, and the edges of the bins.

    `bins` is a number of equal bins over a `range`, which is that of x if it is not given, or the
    edges in order. The last bin has both its edges. With `density` the areas of the bins sum to 1.

    >>> np.asarray(histogram(np.array([1.0, 2, 2, 4]), 3)[0])
    array([1, 2, 1])
    """
    node = reshape(as_node(x), (-1,))
    at, edges = binned(node, bins, range)
    if weights is None:
        amounts: Node = full(node.shape, 1, dtype="int64")
    else:
        amounts = reshape(as_node(weights), (-1,))
    # One bin more at each end is for what lies beyond.
    found = add_at(full(edges.shape[0] + 1, 0, dtype=amounts.dtype), at, amounts)[1:-1]
    if density:
        found = found / (edges[1:] - edges[:-1]) / sum(found)
    return found, edges


def binned(x: Node, bins: Any, range: Any) -> tuple[Node, Node]:
    """The bins in which the elements of a vector lie, counted from 1, and the edges of the bins."""
    edges = as_node(bins)
    if edges.ndim > 1:
        raise ShapeError(f"bins are a number or a vector of edges, not {edges.type!r}")
    if not edges.ndim:
        edges = _edges(x, whole(bins, "the number of bins", 1, ShapeError), range)
    at = searchsorted(edges, x, side="right")
    return where(x == edges[-1], edges.shape[0] - 1, at), edges


def _edges(x: Node, bins: int, range: Any) -> Node:
    ends = (min(x), max(x)) if range is None else range
    dtype = result_type(x, *(e if isinstance(e, (int, float)) else as_node(e) for e in ends))
    dtype = dtype if dtype.kind == "f" else np.dtype(np.float64)
    low, high = (astype(as_node(e), dtype) for e in ends)
    wider = 0.5 * astype(low == high, dtype)
    low, high = low - wider, high + wider
    steps = arange(bins + 1, dtype=dtype)
    return where(steps == bins, high, low + (high - low) / bins * steps)
