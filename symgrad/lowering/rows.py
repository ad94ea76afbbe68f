"""Rows over rows: a loop writes stacks into the memory of sequences that nobody reads afterwards.

A step reads row t of what it is given and then writes row t of what it makes. Where it has read the
one when it writes the other, both may lie in the same memory: several results side by side in the
rows of a large sequence, or a large result over several sequences. So an LSTM computes its gates
over what it is given, and their cotangents over the gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from symgrad.lowering.loops import Loop
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Ref, SlotBuilder, Step, View, nbytes
from symgrad.ops.index.slices import slice_p
from symgrad.ops.shape import reshape_p

if TYPE_CHECKING:
    from symgrad.lowering.in_place import InPlace

LEAST = 2**20  # bytes, of a sequence that is worth it


def over_sequences(loop: Step, index: int, in_place: InPlace) -> None:
    """Let the stacks of a loop, the step of that number, lie in sequences that end there."""
    assert isinstance(loop, Loop)
    length, builders = loop.turns.length, in_place.builders
    if not isinstance(length, int) or not length:
        return
    first, sequences, fixed = loop.parts()
    elsewhere = {in_place.root(r.slot) for r in (*first, *fixed)}
    read: dict[int, list[int]] = {}
    for j, ref in enumerate(sequences):
        read.setdefault(in_place.root(ref.slot), []).append(j)
    for root, own in read.items():
        old = builders[root]
        size = nbytes(old.type)
        ends = old.kind == "arena" and old.last == index and root not in elsewhere
        if not ends or size < LEAST or size % length:
            continue
        room, taken, starts = size // length, 0, dict[int, int]()
        if not all(_is_by_row(in_place.rooted(sequences[j]), old, room) for j in own):
            continue
        inputs = [loop.turns.carries + j for j in own]
        for k, ref in enumerate(loop.results[loop.turns.carries :], loop.turns.carries):
            new = builders[ref.slot]
            row = nbytes(new.type) // length
            fits = new.type.dtype == old.type.dtype and taken + row <= room
            if fits and _may_move(ref.slot, new, index, in_place.steps, row == room):
                if _is_written_after(loop.turns.plan, k, inputs):
                    starts[ref.slot], taken = taken, taken + row
                else:
                    in_place.waits_for_parts = True
        if taken * 4 < room * 3:  # too much would be kept for nothing
            continue
        for slot, start in starts.items():
            in_place.within[slot] = _views(builders[slot], start, room, length)
            builders[slot].root = root
            old.last = max(old.last, builders[slot].last)


def _is_by_row(ref: Ref, old: SlotBuilder, room: int) -> bool:
    """Whether the rows of a value, as it lies in a slot, are each in the row of that number."""
    return bool(ref.layout(old.type).strides[0] == room)


def _may_move(slot: int, new: SlotBuilder, index: int, steps: Sequence[Step], whole: bool) -> bool:
    """Whether a stack may lie in the rows of another array: with gaps, if it is no `whole` one."""
    if new.kind != "arena" or new.root != slot or new.last >= len(steps):
        return False
    if whole:
        return True
    for step in steps[index + 1 : new.last + 1]:
        by_row = step.parts()[1] if isinstance(step, Loop) else ()
        uses = [r for r in (*step.operands, *step.results) if r.slot == slot]
        if len(uses) > sum(r == Ref(slot) for r in by_row):
            return False
    return True


def _is_written_after(plan: Plan, made: int, inputs: Sequence[int]) -> bool:
    """Whether a body has read some inputs when it writes a result."""
    if plan.nexts[made] < 0:
        return False
    places, target = {plan.inputs[j] for j in inputs}, plan.nexts[made]
    reads = [i for i, s in enumerate(plan.steps) if any(r.slot in places for r in s.operands)]
    writes = [
        i for i, s in enumerate(plan.steps)
        if any(r.slot == target for r in (*s.results, *s.scratch))
    ]  # fmt: skip
    return max(reads, default=-1) < min(writes, default=-1)


def _views(new: SlotBuilder, start: int, room: int, length: int) -> tuple[View, ...]:
    """A stack as it is seen in an array of so many rows, at so many bytes of each."""
    whole = View(reshape_p.op, (("shape", new.type.shape),))
    if nbytes(new.type) == room * length:
        return (whole,)
    item = new.type.dtype.itemsize
    end = start + nbytes(new.type) // length
    part = ((0, length, 1), (start // item, end // item, 1))
    rows = View(reshape_p.op, (("shape", (length, room // item)),))
    return rows, View(slice_p.op, (("index", part),)), whole
