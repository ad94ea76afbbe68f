"""How images lie, (N, C, …) or (N, …, C) with one spatial axis or more, and how they are padded."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.dims import Size, most, quotient
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node
from symgrad.ops.shape import permute_dims, reshape


def spatial_axes(ndim: int, channels: str) -> tuple[int, ...]:
    """The axes that are neither the batch's nor the channels'."""
    if channels not in ("first", "last"):
        raise ShapeError(f"channels are 'first' (N, C, …) or 'last' (N, …, C), not {channels!r}")
    if ndim < 3:
        raise ShapeError("images have a batch axis, channels, and one axis or more to slide along")
    return tuple(range(2, ndim) if channels == "first" else range(1, ndim - 1))


def each(value: Any, count: int, name: str) -> tuple[Any, ...]:
    """One value for each of so many axes, from one or from as many."""
    if not isinstance(value, (tuple, list)):
        return (value,) * count
    if len(value) != count:
        raise ShapeError(f"{name} has {len(value)} entries for {count} axes: {tuple(value)}")
    return tuple(value)


def paddings(
    padding: Any, sizes: Any, kernel: Any, stride: Any, dilation: Any
) -> tuple[tuple[Size, Size], ...]:
    """How much lies before and after each axis.

    `same` makes as many windows as the stride has steps in the axis, rounded up; of an odd padding
    the larger part comes after.
    """
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding != "same":
        if isinstance(padding, str):
            raise ShapeError(f"a padding is a number, 'same' or 'valid', not {padding!r}")
        found = (p if isinstance(p, (tuple, list)) else (p, p)
                 for p in each(padding, len(kernel), "padding"))  # fmt: skip
        return tuple(map(_pair, found))
    totals = []
    for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
        last = n - s * quotient(n - 1, s)  # what the last step has of the axis
        totals.append(most(d * (k - 1) + 1 - last, 0))
    return tuple((quotient(t, 2), t - quotient(t, 2)) for t in totals)


def _pair(found: Any) -> tuple[int, int]:
    if len(found) != 2 or any(not isinstance(n, (int, np.integer)) or n < 0 for n in found):
        raise ShapeError(f"a padding is a number or a pair, and not negative: not {found!r}")
    return int(found[0]), int(found[1])


def inward(x: Node, groups: int, channels: str) -> Node:
    """Images as (groups, rows, channels, *other axes, batch): the batch innermost."""
    first, *rest = spatial_axes(x.ndim, channels)
    at = 1 if channels == "first" else x.ndim - 1
    if groups == 1:
        y = permute_dims(x, (first, at, *rest, 0))
        return reshape(y, (1, *y.shape))
    split = reshape(x, (*x.shape[:at], groups, x.shape[at] // groups, *x.shape[at + 1 :]))
    order = [a + (a > at) for a in (first, *rest)]
    return permute_dims(split, (at, order[0], at + 1, *order[1:], 0))


def outward(y: Node, channels: str) -> Node:
    """inward, undone."""
    groups, rows, filters, *rest = y.shape
    places = range(2, y.ndim - 2)
    if groups == 1:
        y = reshape(y, (rows, filters, *rest))
        inner, last = (0, *places), y.ndim - 1
        return permute_dims(y, (last, 1, *inner) if channels == "first" else (last, *inner, 1))
    inner, last = (1, *(a + 1 for a in places)), y.ndim - 1
    if channels == "first":
        y = permute_dims(y, (last, 0, 2, *inner))
        return reshape(y, (y.shape[0], groups * filters, *y.shape[3:]))
    y = permute_dims(y, (last, *inner, 0, 2))
    return reshape(y, (*y.shape[:-2], groups * filters))
