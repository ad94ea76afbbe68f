"""Quantiles, reductions that leave NaNs out, and counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from symgrad.ir.dims import product
from symgrad.ir.errors import ShapeError, UnsupportedError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import as_shape, normalize_axes, whole
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.dtypes import result_type
from symgrad.ops.elementwise import ceil, divide, floor, round, sqrt
from symgrad.ops.index.gather import as_integers
from symgrad.ops.index.indexing import known
from symgrad.ops.index.scatter import add_at, from_zero
from symgrad.ops.index.take import take, take_along_axis
from symgrad.ops.leaves import arange, full
from symgrad.ops.linalg.norms import vector_norm
from symgrad.ops.logic import isfinite, isnan
from symgrad.ops.order import median_of, searchsorted, sort
from symgrad.ops.reduce import all, as_float, max, min, prod, reduced_shape, sum
from symgrad.ops.select import clip, select, where
from symgrad.ops.shape import astype, broadcast_to, joined_last, moveaxis, reshape

# ---- quantiles ------------------------------------------------------------------------------


def _between(alpha: float, beta: float) -> Callable[[Node, Any], Node]:
    """The family of Hyndman and Fan, Sample quantiles in statistical packages (1996)."""
    return lambda q, n: q * (n + (1 - alpha - beta)) + (alpha - 1)


def _averaged(q: Node, n: Any) -> Node:
    """Halfway between two elements where q * n is whole, else at the element above."""
    at = q * n - 1
    return where(at == floor(at), at + 0.5, floor(at) + 1)


def _closest(q: Node, n: Any) -> Node:
    """The nearest element; of two as near the one of an even number, counted from 1."""
    at = q * n - 1.5
    lower = floor(at)
    return where((at == lower) & (lower % 2 == 1), lower, lower + 1)


# Where the quantile q lies among n elements in order, counted from 0, by NumPy's names.
METHODS: Mapping[str, Callable[[Node, Any], Node]] = MappingProxyType(
    {
        "linear": _between(1, 1),
        "lower": lambda q, n: floor(q * (n - 1)),
        "higher": lambda q, n: ceil(q * (n - 1)),
        "nearest": lambda q, n: round(q * (n - 1)),
        "midpoint": lambda q, n: (floor(q * (n - 1)) + ceil(q * (n - 1))) / 2,
        "inverted_cdf": lambda q, n: ceil(q * n) - 1,
        "averaged_inverted_cdf": _averaged,
        "closest_observation": _closest,
        "interpolated_inverted_cdf": _between(0, 1),
        "hazen": _between(0.5, 0.5),
        "weibull": _between(0, 0),
        "median_unbiased": _between(1 / 3, 1 / 3),
        "normal_unbiased": _between(3 / 8, 3 / 8),
    }
)

PICKING = frozenset({"lower", "higher", "nearest", "inverted_cdf", "closest_observation"})


def _quantile(
    x: NodeLike, q: NodeLike, axis: Any, keepdims: bool, method: str, without_nan: bool
) -> Node:
    given, asked = as_node(x), astype(as_float(q), "float64")
    # As in NumPy, a number takes the dtype of x; an array of them is of float64.
    node = as_float(given)
    wide = node.dtype if type(q) in (int, float) else np.result_type(node.dtype, as_float(q).dtype)
    if method not in METHODS:
        raise UnsupportedError(f"there is no method {method!r}; there are {', '.join(METHODS)}")
    value = known(asked)
    if value is not None and not ((value >= 0) & (value <= 1)).all():
        raise ShapeError(f"a quantile is a number from 0 to 1: {value}")
    axes = normalize_axes(axis, node.ndim)
    size = product(node.shape[a] for a in axes)
    shape = (*asked.shape, *reduced_shape(node.tensor, axes, keepdims))
    if size == 0 and without_nan:
        return broadcast_to(nanmean(node, axis=axes, keepdims=keepdims), shape)
    if size == 0:
        raise ShapeError(f"of no elements, as along axes {axes} of {node.type!r}, is no quantile")
    flat = joined_last(node, axes)
    ordered, flat_q = sort(flat), reshape(asked, (-1,))
    if without_nan:
        # NaNs are last in order, so that each row is as long as it has numbers.
        count = sum(astype(~isnan(flat), "float64"), axis=-1, keepdims=True)
        top: Any = count - 1
    else:
        count, top = as_node(size), size - 1
    at = clip(METHODS[method](flat_q, count), 0, top)
    if without_nan:
        at = clip(at, 0, None)
    below = floor(at)
    low, high = (astype(i, "int64") for i in (below, ceil(at)))
    weight = astype(at - below, wide)
    pick: Any = take_along_axis if without_nan else take
    a, b = pick(ordered, low, axis=-1), pick(ordered, high, axis=-1)
    gap = b - a
    # From the nearer one, as in NumPy. The last does not overflow, and has a value where one is
    # infinite, or both are one infinity.
    inside = where(weight < 0.5, a + gap * weight, b - gap * (1 - weight))
    between = where(isfinite(gap), inside, (1 - weight) * a + weight * b)
    found = where(weight > 0, between, a)
    if not without_nan:
        last = take(ordered, reshape(astype(as_node(top), "int64"), (1,)), axis=-1)
        found = where(isnan(last), last, found)
    found = reshape(moveaxis(found, -1, 0), shape)
    # What is an element is of the dtype of the elements.
    exact = as_node(q).dtype.kind in "biu" and given.dtype.kind in "biu" and method == "linear"
    return astype(found, given.dtype) if method in PICKING or exact else found


@composite(numpy=(np.quantile,))
def quantile(
    x: NodeLike, q: NodeLike, /, axis: Any = None, *, keepdims: bool = False, method: str = "linear"
) -> Node:
    """The quantiles q of x over axes: below so large a part of the elements lies.

    q is a number or an array, whose shape comes first in that of the result. Between two elements
    the result is interpolated, or as NumPy's `method` says. Where an element is NaN it is NaN. The
    gradient flows to the elements beside it, of which those that tie share, and to q.

    Raises `ShapeError` for a q that is known not to lie between 0 and 1 (another is taken to be 0
    or 1) and for no elements, `UnsupportedError` for an unknown method.

    >>> np.asarray(quantile(np.array([1.0, 2, 3, 4]), [0.5, 1]))
    array([2.5, 4. ])
    """
    return _quantile(x, q, axis, keepdims, method, False)


def _hundredths(q: NodeLike) -> NodeLike:
    return q / 100 if type(q) in (int, float) else as_float(q) / 100


@composite(numpy=(np.percentile,))
def percentile(
    x: NodeLike, q: NodeLike, /, axis: Any = None, *, keepdims: bool = False, method: str = "linear"
) -> Node:
    """The quantile q / 100; see `quantile`."""
    return _quantile(x, _hundredths(q), axis, keepdims, method, False)


@composite(numpy=(np.nanquantile,))
def nanquantile(
    x: NodeLike, q: NodeLike, /, axis: Any = None, *, keepdims: bool = False, method: str = "linear"
) -> Node:
    """The quantile of what is no NaN; NaN where nothing is. See `quantile`."""
    return _quantile(x, q, axis, keepdims, method, True)


@composite(numpy=(np.nanpercentile,))
def nanpercentile(
    x: NodeLike, q: NodeLike, /, axis: Any = None, *, keepdims: bool = False, method: str = "linear"
) -> Node:
    """The percentile of what is no NaN; see `nanquantile`."""
    return _quantile(x, _hundredths(q), axis, keepdims, method, True)


@composite(numpy=(np.nanmedian,), widens=True)
def nanmedian(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """The median of what is no NaN; NaN where nothing is."""
    return median_of(as_float(x), axis, keepdims, without_nan=True)


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
    count = _counted(there, away, axis, keepdims) - correction
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
