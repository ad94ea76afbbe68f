"""Padding: what lies beyond the edges of an array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from symgrad.ir.dims import Dim, Size, most
from symgrad.ir.errors import DtypeError, ShapeError, UnsupportedError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import normalize_axis
from symgrad.ops.declare import NodeLike, composite, require
from symgrad.ops.elementwise import floor, rint
from symgrad.ops.index.slices import part_along, place
from symgrad.ops.index.take import take
from symgrad.ops.leaves import arange
from symgrad.ops.order import median
from symgrad.ops.reduce import as_float, max, mean, min
from symgrad.ops.select import where
from symgrad.ops.shape import astype, broadcast_to, concat, flip, reshape

Pair: TypeAlias = tuple[Any, Any]
STATISTICS: Mapping[str, Any] = {"maximum": max, "minimum": min, "mean": mean, "median": median}
# Modes that mirror: how many elements at the edge are left out of the image.
MIRRORS: Mapping[str, int] = {"reflect": 1, "symmetric": 0}
MODES = ("constant", "empty", "edge", "linear_ramp", *STATISTICS, *MIRRORS, "wrap")


def _like(x: Node, axis: int, size: Any) -> tuple[Any, ...]:
    return (*x.shape[:axis], size, *x.shape[axis + 1 :])


def _between(before: Node, x: Node, after: Node, axis: int) -> Node:
    return concat([n for n in (before, x, after) if n is x or n.shape[axis] != 0], axis=axis)


def zeros_around(x: Node, widths: Sequence[tuple[Size, Size]]) -> Node:
    """x with so many zeros before and after it along each axis."""
    if not any(map(any, widths)):
        return x
    shape = tuple(b + n + a for n, (b, a) in zip(x.shape, widths, strict=True))
    index = tuple(
        (b, b + n, 1) if b or a or isinstance(n, int) else (None, None, 1)
        for n, (b, a) in zip(x.shape, widths, strict=True)
    )
    return place(x, shape=shape, index=index)


def _filled(x: Node, axis: int, widths: tuple[int, int], values: Pair) -> Node:
    before, after = (
        broadcast_to(astype(as_node(v), x.dtype), _like(x, axis, n))
        for n, v in zip(widths, values, strict=True)
    )
    return _between(before, x, after, axis)


def _ramp(edge: Node, axis: int, count: int, end: Any) -> Node:
    """From `end` towards the edge, which is not reached."""
    if not count:
        return broadcast_to(edge, _like(edge, axis, 0))
    steps = astype(arange(count), edge.dtype) / count
    shape = (count, *(1,) * (edge.ndim - 1 - axis))
    ramp: Node = end + (edge - end) * reshape(steps, shape)
    return ramp


def _ramps(x: Node, axis: int, widths: tuple[int, int], ends: Pair) -> Node:
    last = x.shape[axis] - 1
    edges = as_float(part_along(x, axis, 0, 1)), as_float(part_along(x, axis, last, None))
    before, after = (_ramp(edges[i], axis, widths[i], ends[i]) for i in (0, 1))
    if x.dtype.kind in "iu":  # as in NumPy integers are rounded down
        before, after = (astype(floor(ramp), x.dtype) for ramp in (before, after))
    return _between(before, x, flip(after, axis=axis), axis)


def _statistics(x: Node, axis: int, widths: tuple[int, int], lengths: Pair, found: Any) -> Node:
    size = x.shape[axis]
    first, last = (n if n is None or not isinstance(size, int) or n < size else None
                   for n in lengths)  # fmt: skip
    before = part_along(x, axis, None, first)
    after = part_along(x, axis, None if last is None else size - last, None)
    values = [found(s, axis=axis, keepdims=True) for s in (before, after)]
    if x.dtype.kind in "iu":
        values = [astype(rint(v) if v.dtype.kind == "f" else v, x.dtype) for v in values]
    sides = [broadcast_to(v, _like(x, axis, n)) for v, n in zip(values, widths, strict=True)]
    return _between(sides[0], x, sides[1], axis)


def _beyond(x: Node, axis: int, widths: tuple[int, int]) -> Iterator[Node]:
    """The places before the axis and after it: -2, -1 and N, N + 1, N + 2."""
    before, after = widths
    yield arange(before) - before
    yield arange(after) + x.shape[axis]


def _wrapped(x: Node, axis: int, widths: tuple[int, int]) -> Node:
    """Extended periodically."""
    places = [i % x.shape[axis] for i in _beyond(x, axis, widths)]
    before, after = (take(x, i, axis=axis) for i in places)
    return _between(before, x, after, axis)


def _mirrored(x: Node, axis: int, widths: tuple[int, int], skip: int, odd: bool) -> Node:
    """Extended by its mirror image about the edges; again and again if it is short."""
    before, after = (_mirror(x, axis, i, skip, odd) for i in _beyond(x, axis, widths))
    return _between(before, x, after, axis)


def _mirror(x: Node, axis: int, places: Node, skip: int, odd: bool) -> Node:
    """The elements at places beyond the edges: in every other image x is turned round.

    An odd image is turned upside down too, and each begins where the one before it ends.
    """
    size = x.shape[axis]
    period = most(size - skip, 1)
    image = places // period
    is_turned, inside = image % 2 != 0, places - image * period
    seen = take(x, where(is_turned, size - 1 - inside, inside), axis=axis)
    if not odd:
        return seen
    column = (*places.shape, *(1,) * (x.ndim - 1 - axis))
    first, last = part_along(x, axis, 0, 1), part_along(x, axis, size - 1, None)
    level = reshape(astype(image, x.dtype), column) * (last - first)
    return level + where(reshape(is_turned, column), first + last - seen, seen)


def _edges(x: Node, axis: int, widths: tuple[int, int]) -> Node:
    first, last = part_along(x, axis, 0, 1), part_along(x, axis, x.shape[axis] - 1, None)
    before, after = (
        broadcast_to(s, _like(x, axis, n)) for s, n in zip((first, last), widths, strict=True)
    )
    return _between(before, x, after, axis)


def _pairs(value: Any, ndim: int, name: str) -> list[Pair]:
    """A pair for each axis, from one value for all, one pair for all, or all of them."""
    if isinstance(value, Node) or value is None:
        return [(value, value)] * ndim
    try:
        found = np.broadcast_to(np.asarray(value), (ndim, 2))
    except ValueError:
        raise ShapeError(
            f"{name} is a number, a pair (before, after), or such a pair for each of {ndim} axes, "
            f"not {value!r}"
        ) from None
    return [(before, after) for before, after in found.tolist()]


def _widths(value: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(value, Mapping):
        given = {normalize_axis(a, ndim): _pairs(w, 1, "pad_width")[0] for a, w in value.items()}
        value = [given.get(a, (0, 0)) for a in range(ndim)] or 0
    found = _pairs(value, ndim, "pad_width")
    for n in (n for pair in found for n in pair):
        if not isinstance(n, (int, Dim)) or isinstance(n, bool) or (isinstance(n, int) and n < 0):
            raise ShapeError(f"a width of a padding is an int and not negative, not {n!r}")
    return found


@composite(numpy=(np.pad,))
def pad(
    x: NodeLike,
    pad_width: Any,
    /,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: str = "even",
) -> Node:
    """x with elements put around it, as by NumPy's pad in each of its modes that has a gradient.

    `pad_width` is a number, a pair (before, after), a pair for each axis, or a dict from axes to
    these. The modes are constant, edge, linear_ramp, maximum, mean, median, minimum, reflect,
    symmetric and wrap; the values of linear_ramp, mean and median are floats. Raises `ShapeError`
    for a negative width, `UnsupportedError` for another mode.

    >>> np.asarray(pad([1.0, 2.0, 3.0], (2, 1), mode="reflect"))
    array([3., 2., 1., 2., 3., 2.])
    """
    node = as_node(x)
    widths = _widths(pad_width, node.ndim)
    if mode not in MODES:
        raise UnsupportedError(f"pad has no mode {mode!r}; it has {', '.join(MODES)}")
    if reflect_type not in ("even", "odd"):
        raise UnsupportedError(f"reflect_type is 'even' or 'odd', not {reflect_type!r}")
    if mode in ("linear_ramp", "mean", "median") and node.dtype.kind == "b":
        raise DtypeError(
            f"mode {mode!r} pads with numbers, not with booleans; write astype(x, int)"
        )
    mode, constant_values = ("constant", 0) if mode == "empty" else (mode, constant_values)
    fills = _pairs(constant_values, node.ndim, "constant_values")
    if mode == "constant" and all(v.__class__ in (int, float) and v == 0 for p in fills for v in p):
        return zeros_around(node, widths)
    ends = _pairs(end_values, node.ndim, "end_values")
    lengths = _pairs(stat_length, node.ndim, "stat_length")
    for axis, width in enumerate(widths):
        if width == (0, 0):
            continue
        if mode != "constant" and any(isinstance(n, Dim) for n in width):
            raise ShapeError(f"mode {mode!r} pads by numbers, not by {width}")
        if node.shape[axis] == 0 and mode != "constant":
            raise ShapeError(f"axis {axis} of {node.type!r} is empty: mode {mode!r} cannot pad it")
        if mode == "constant":
            node = _filled(node, axis, width, fills[axis])
        elif mode == "edge":
            node = _edges(node, axis, width)
        elif mode == "linear_ramp":
            node = _ramps(node, axis, width, ends[axis])
        elif mode == "wrap":
            node = _wrapped(node, axis, width)
        elif mode in MIRRORS:
            node = _mirrored(node, axis, width, MIRRORS[mode], reflect_type == "odd")
        else:
            require("biuf", node.tensor)
            if any(n is not None and n < 1 for n in lengths[axis]):
                raise ShapeError(f"stat_length is 1 or more, not {stat_length!r}")
            node = _statistics(node, axis, width, lengths[axis], STATISTICS[mode])
    return node
