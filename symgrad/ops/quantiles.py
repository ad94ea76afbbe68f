"""Quantiles of samples, also of samples with weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from symgrad.ir.dims import product
from symgrad.ir.errors import ShapeError, UnsupportedError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import normalize_axes, normalize_axis
from symgrad.ops.cumulative import cumulative_sum
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.domains import required
from symgrad.ops.elementwise import ceil, floor, round
from symgrad.ops.index.indexing import known
from symgrad.ops.index.take import take, take_along_axis
from symgrad.ops.logic import isfinite, isnan
from symgrad.ops.order import argsort, median_of, sort
from symgrad.ops.reduce import as_float, reduced_shape, sum
from symgrad.ops.select import clip, minimum, select, where
from symgrad.ops.shape import (
    astype,
    broadcast_to,
    expand_dims,
    joined_last,
    moveaxis,
    permute_dims,
    reshape,
)
from symgrad.ops.statistics import nanmean


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


def as_large(weights: NodeLike, x: Node, axis: Any) -> Node:
    """Weights of the shape of x, or of that of the axes, with which they broadcast."""
    given = as_node(weights)
    if given.shape == x.shape:
        return given
    many: Any = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = () if axis is None else tuple(normalize_axis(a, x.ndim) for a in many)
    if not axes or given.shape != tuple(x.shape[a] for a in axes):
        raise ShapeError(
            f"weights of the shape {given.shape} for {x.shape}: give them that shape, or that of "
            "the axes"
        )
    turned = permute_dims(given, tuple(np.argsort(axes).tolist()))
    spread = reshape(turned, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))
    return broadcast_to(spread, x.shape)


def _quantile(
    x: NodeLike,
    q: NodeLike,
    axis: Any,
    keepdims: bool,
    method: str,
    weights: NodeLike,
    without_nan: bool,
) -> Node:
    given, asked = as_node(x), astype(as_float(q), "float64")
    # As in NumPy, a number takes the dtype of x; an array of them is of float64.
    node = as_float(given)
    wide = node.dtype if type(q) in (int, float) else np.result_type(node.dtype, as_float(q).dtype)
    if method not in METHODS:
        raise UnsupportedError(f"there is no method {method!r}; there are {', '.join(METHODS)}")
    if weights is not None and method != "inverted_cdf":
        raise UnsupportedError('quantiles with weights take method="inverted_cdf", as NumPy\'s')
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
    if weights is None:
        at = clip(METHODS[method](flat_q, count), 0, top)
    else:
        heavy = joined_last(astype(as_large(weights, node, axis), "float64"), axes)
        own = node.dtype if type(q) in (int, float) else as_float(q).dtype
        at = minimum(_reached(flat, heavy, astype(flat_q, own), without_nan), top)
    if without_nan:
        at = clip(at, 0, None)
    below = floor(at)
    low, high = (astype(i, "int64") for i in (below, ceil(at)))
    weight = astype(at - below, wide)
    pick: Any = take if weights is None and not without_nan else take_along_axis
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


def _reached(x: Node, weights: Node, q: Node, without_nan: bool) -> Node:
    """How many elements in order are before a part q of all weight is reached, in each row."""
    checked = required(weights, "nonnegative", "every weight of a quantile")
    there = select(~isnan(x), checked) if without_nan else checked
    heavy = cumulative_sum(take_along_axis(there, argsort(x, axis=-1), axis=-1), axis=-1)
    part = expand_dims(heavy / heavy[..., -1:], axis=-2)
    before = (astype(part, q.dtype) < expand_dims(q, axis=-1)) | (part == 0)
    return astype(sum(before, axis=-1, dtype="int64"), "float64")


@composite(numpy=(np.quantile,))
def quantile(
    x: NodeLike,
    q: NodeLike,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
    weights: NodeLike = None,
) -> Node:
    """The quantiles q of x over axes: below so large a part of the elements lies.

    q is a number or an array, whose shape comes first in that of the result. Between two elements
    the result is interpolated, or as NumPy's `method` says. Where an element is NaN it is NaN. The
    gradient flows to the elements beside it, of which those that tie share, and to q.

    With `weights`, of the shape of x or of that of the axes, an element counts as so many; then the
    method is "inverted_cdf". A negative weight is a `KernelError`.

    Raises `ShapeError` for a q that is known not to lie between 0 and 1 (another is taken to be 0
    or 1) and for no elements, `UnsupportedError` for an unknown method.

    >>> np.asarray(quantile(np.array([1.0, 2, 3, 4]), [0.5, 1]))
    array([2.5, 4. ])
    """
    return _quantile(x, q, axis, keepdims, method, weights, False)


def _hundredths(q: NodeLike) -> NodeLike:
    return q / 100 if type(q) in (int, float) else as_float(q) / 100


@composite(numpy=(np.percentile,))
def percentile(
    x: NodeLike,
    q: NodeLike,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
    weights: NodeLike = None,
) -> Node:
    """The quantile q / 100; see `quantile`."""
    return _quantile(x, _hundredths(q), axis, keepdims, method, weights, False)


@composite(numpy=(np.nanquantile,))
def nanquantile(
    x: NodeLike,
    q: NodeLike,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
    weights: NodeLike = None,
) -> Node:
    """The quantile of what is no NaN; NaN where nothing is. See `quantile`."""
    return _quantile(x, q, axis, keepdims, method, weights, True)


@composite(numpy=(np.nanpercentile,))
def nanpercentile(
    x: NodeLike,
    q: NodeLike,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
    weights: NodeLike = None,
) -> Node:
    """The percentile of what is no NaN; see `nanquantile`."""
    return _quantile(x, _hundredths(q), axis, keepdims, method, weights, True)


@composite(numpy=(np.nanmedian,), widens=True)
def nanmedian(x: NodeLike, /, axis: Any = None, *, keepdims: bool = False) -> Node:
    """The median of what is no NaN; NaN where nothing is."""
    return median_of(as_float(x), axis, keepdims, without_nan=True)
