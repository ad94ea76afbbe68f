"""Temporaries in spare arrays: a next value is written late, and until then its memory is free."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from symgrad.ir.types import DType
from symgrad.lowering.in_place import InPlace
from symgrad.lowering.memory import MOST, assign_offsets, assign_within, fullest
from symgrad.lowering.native import NativeLoop
from symgrad.lowering.steps import Call, Copy, SlotBuilder, View, nbytes
from symgrad.lowering.tiling import TileLoop
from symgrad.ops.index.slices import slice_p
from symgrad.ops.shape import reshape_p

PART = 32  # of the memory of results: less is not worth a line for each temporary


def in_spares(in_place: InPlace, own: Sequence[int]) -> Mapping[int, tuple[int, int]]:
    """Let slots of the arena, its `own`, lie in spare arrays: for each the spare and the offset.

    A slot may lie in the array of a next value that is first written after the slot was read last.
    None does where little memory would be saved.
    """
    builders = in_place.builders
    spares = [i for i, d in enumerate(builders) if d.kind == "next" and d.root == i]
    if not spares or len(own) > MOST:
        return {}
    apart = {r.slot for s in in_place.steps for r in s.scratch}
    for step in in_place.steps:
        if not isinstance(step, Call | Copy | NativeLoop | TileLoop):
            apart |= {r.slot for r in (*step.operands, *step.results)}
    apart |= set(map(in_place.root, apart))
    spans = {i: (builders[i].first, builders[i].last, nbytes(builders[i].type)) for i in own}
    _, full = fullest(list(spans.values()))

    def weight(i: int) -> tuple[bool, int]:
        first, last, nbytes = spans[i]
        return first <= full <= last, nbytes

    def dtype(i: int) -> DType:
        return builders[i].type.dtype

    left = sorted({i for i in own if spans[i][2]} - apart, key=weight, reverse=True)
    found: dict[int, tuple[int, int]] = {}
    for spare in sorted(spares, key=lambda i: -nbytes(builders[i].type)):
        host = builders[spare]
        fits = [i for i in left if builders[i].last < host.first and dtype(i) == dtype(spare)]
        offsets = assign_within([spans[i] for i in fits], nbytes(host.type))
        for i, offset in zip(fits, offsets, strict=True):
            if offset >= 0:
                found[i] = spare, offset
                left.remove(i)
    least = sum(nbytes(d.type) for d in builders if d.kind in ("next", "output")) // PART
    if sum(spans[i][2] for i in found) <= least:
        return {}
    rest = [span for i, span in spans.items() if i not in found]
    if assign_offsets(list(spans.values()))[1] - assign_offsets(rest)[1] <= least:
        return {}
    for i, (spare, offset) in found.items():
        builders[i].root, host = spare, builders[spare]
        host.first = min(host.first, builders[i].first)
        in_place.within[i] = _views(builders[i], host, offset)
    return found


def _views(of: SlotBuilder, host: SlotBuilder, offset: int) -> tuple[View, ...]:
    """Where a slot lies in its host: a run of its elements, in the shape of the slot."""
    first = offset // host.type.dtype.itemsize
    run = ((first, first + math.prod(of.type.shape), 1),)
    flat = View(reshape_p.op, (("shape", (host.type.size,)),))
    shaped = View(reshape_p.op, (("shape", of.type.shape),))
    return (flat, View(slice_p.op, (("index", run),)), shaped)
