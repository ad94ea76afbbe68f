"""How the ops of a family work piece by piece along a named dimension; see `ir.along`.

A family declares it once: elementwise ops by broadcasting, ops over axes by leaving these alone or
joining along them, ops over the last axes by what is in front. An op that knows better has a fact
of its own, `along`. What no family knows is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symgrad.ir.along import Along, AlongRule, Cut, Cuts, Joined, Piecewise
from symgrad.ir.dims import Size
from symgrad.ir.errors import SymgradError
from symgrad.ir.op import Op
from symgrad.ir.types import TensorType, Type, names_in, types_of
from symgrad.ops import batch


def along(op: Op, types: Sequence[Type], cuts: Cuts, attrs: dict[str, Any]) -> Along:
    """How an op works piece by piece on operands that are cut so; None if nobody knows."""
    found = [c.over for c in cuts if c is not None]
    tensors = tuple(t for t in types if isinstance(t, TensorType))
    if len(tensors) != len(types):
        return None
    if op.along is not None:
        return op.along(tensors, cuts, **attrs)
    if not found or not names_in(tuple(attrs.values())).isdisjoint(found):
        return None
    if op.elementwise:
        return Piecewise.KEPT
    if op.batch is batch.over_axes or op.batch is batch.together:
        return reducing(op.combiner)(tensors, cuts, **attrs)
    if op.batch is batch.in_front or (op.batch is batch.repeated and None not in cuts):
        return _in_front(op, tensors, cuts, attrs, aligned=op.batch is batch.in_front)
    return None


def reducing(by: str) -> AlongRule:
    """For ops with an attribute `axis`, whose results are joined along it by an op, if any can."""

    def rule(types: tuple[TensorType, ...], cuts: Cuts, *, axis: Any, **attrs: Any) -> Along:
        axes = axis if isinstance(axis, tuple) else (axis,)
        if not any(c.axis in axes for c in cuts if c is not None):
            return Piecewise.KEPT
        return Joined(by) if by else None

    return rule


def kept(types: tuple[TensorType, ...], cuts: Cuts, **attrs: Any) -> Along:
    """For ops that keep every axis of their operand apart, wherever that goes."""
    return Piecewise.NUMBER


def of_only(operand: int) -> AlongRule:
    """For ops that work element by element on one of their operands, given the others whole."""

    def rule(types: tuple[TensorType, ...], cuts: Cuts, **attrs: Any) -> Along:
        cut, others = cuts[operand], cuts[:operand] + cuts[operand + 1 :]
        if cut is None or any(others) or cut.over in names_in(tuple(attrs.values())):
            return None
        return Piecewise.KEPT

    return rule


def is_whole_slice(triple: tuple[Any, Any, int], size: Size) -> bool:
    """Whether a slice takes all of an axis, in order."""
    start, stop, step = triple
    return step == 1 and (start is None or start == 0) and (stop is None or stop == size)


def _in_front(
    op: Op, types: tuple[TensorType, ...], cuts: Cuts, attrs: dict[str, Any], *, aligned: bool
) -> Along:
    """For ops that work on the last axes, whose first ones broadcast, `aligned` by the last one.

    The axis is in front if the op takes the operands without it, and gives its result without it.
    """
    rank = max(t.ndim for t in types)
    pairs = [(t, c) for t, c in zip(types, cuts, strict=True) if c is not None]
    (place, *others) = {c.axis + (rank - t.ndim) * aligned for t, c in pairs}
    if others:
        return None
    try:
        full = types_of(op.infer(*types, **attrs))
        less = types_of(op.infer(*map(_without, types, cuts), **attrs))
    except SymgradError:
        return None
    over = pairs[0][1].over
    same = all(_without(t, Cut(place, over)) == u for t, u in zip(full, less, strict=True))
    return Piecewise.KEPT if same else None


def _without(t: TensorType, cut: Cut | None) -> TensorType:
    if cut is None:
        return t
    return t.with_shape((*t.shape[: cut.axis], *t.shape[cut.axis + 1 :]))
