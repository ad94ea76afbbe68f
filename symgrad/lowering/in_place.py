"""In place: which results may be written over an operand, or into a part of a later result."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from symgrad.lowering.native import NativeLoop
from symgrad.lowering.steps import Call, Copy, Ref, SlotBuilder, Step, View, nbytes
from symgrad.ops.index.slices import slice_p
from symgrad.ops.linalg.products import matmul_p
from symgrad.ops.shape import concat_p, reshape_p

LEAST_SHARED = 2**16  # bytes, of an array that is worth a view of another shape


class InPlace:
    """Which slots lie in the memory of another, their `root`, and through which views of it."""

    def __init__(self, builders: list[SlotBuilder], steps: list[Step]) -> None:
        self.builders, self.steps = builders, steps
        self.within: dict[int, tuple[View, ...]] = {}
        # Whether a loop could write over what it reads, did it join parts after all else.
        self.waits_for_parts = False

    def root(self, slot: int) -> int:
        """The slot in whose memory a slot lies."""
        while self.builders[slot].root != slot:
            slot = self.builders[slot].root
        return slot

    def rooted(self, ref: Ref) -> Ref:
        """A value as it is seen in the memory in which it lies."""
        slot, views = ref
        while self.builders[slot].root != slot:
            views = (*self.within.get(slot, ()), *views)
            slot = self.builders[slot].root
        return Ref(slot, views)

    # ---- over an operand --------------------------------------------------------------------

    def over_operands(self) -> None:
        """Let steps write over an operand that nobody reads afterwards."""
        for i, step in enumerate(self.steps):
            for result, allowed in zip(step.results, step.in_place, strict=False):
                builder = self.builders[result.slot]
                if builder.kind == "arena" and not result.views:
                    self._over_operand(i, step, allowed, builder, result.slot)
            if step.is_loop:
                from symgrad.lowering.rows import over_sequences

                over_sequences(step, i, self)

    def _over_operand(
        self, index: int, step: Step, allowed: Sequence[int], builder: SlotBuilder, slot: int
    ) -> None:
        for k in allowed:
            if k < len(step.operands) and self._may_take(step, k, allowed, index, builder):
                root = self.root(step.operands[k].slot)
                builder.root = root
                if self.builders[root].type != builder.type:
                    shape = builder.type.shape
                    self.within[slot] = (View(reshape_p.op, (("shape", shape),)),)
                self.builders[root].last = builder.last
                return

    def _may_take(
        self, step: Step, k: int, allowed: Sequence[int], index: int, builder: SlotBuilder
    ) -> bool:
        ref = step.operands[k]
        root = self.root(ref.slot)
        old = self.builders[root]
        if old.kind != "arena" or old.last != index or root in self.within:
            return False
        if builder.type.is_complex:  # where its operands overlap, np.multiply rounds otherwise
            return False
        if ref.views or old.type != builder.type:
            if old.type.names or builder.type.names:
                return False
            # As a result or a next value it would have to be copied.
            reshaped = all(v.op is reshape_p.op for v in ref.views)
            alike = nbytes(old.type) == nbytes(builder.type)
            alike &= old.type.dtype == builder.type.dtype
            whole = alike and self._shape(ref) == builder.type.shape
            small = nbytes(old.type) < LEAST_SHARED
            if small or not (reshaped and whole and builder.last < len(self.steps)):
                return False
        others = [j for j, r in enumerate(step.operands) if j != k and self.root(r.slot) == root]
        return all(step.is_elementwise and j in allowed and step.operands[j] == ref for j in others)

    def _shape(self, ref: Ref) -> Any:
        return ref.shape(self.builders[ref.slot].type)

    # ---- into a part of what they are joined to ---------------------------------------------

    def into_joined(self) -> None:
        """Let what is only joined to others be written where it comes to lie; copy the rest."""
        if not any(isinstance(s, Call) and s.op is concat_p.op for s in self.steps):
            return
        uses: dict[int, list[tuple[Step, Ref]]] = defaultdict(list)
        for step in self.steps:
            for ref in (*step.operands, *step.results):
                uses[self.root(ref.slot)].append((step, ref))
        made: list[list[Step]] = []
        for i, step in enumerate(self.steps):
            if isinstance(step, Call) and step.op is concat_p.op:
                made.append(self._joined(i, step, uses))
            else:
                made.append([step])
        # The steps are numbered anew.
        start = [0, *accumulate(map(len, made))]
        more = start[-1] - len(made)
        for d in self.builders:
            if d.first >= 0:
                d.first = d.first + more if d.first >= len(made) else start[d.first]
            d.last = d.last + more if d.last >= len(made) else start[d.last + 1] - 1
        self.steps[:] = [step for steps in made for step in steps]

    def _joined(
        self, index: int, step: Call, uses: dict[int, list[tuple[Step, Ref]]]
    ) -> list[Step]:
        result, axis = step.results[0], dict(step.attrs)["axis"]
        whole = self.builders[result.slot]
        shape, copies, start = whole.type.shape, list[Step](), 0
        if result.views or whole.kind != "arena":
            return [step]
        parts = []
        for ref in step.operands:
            part = self._shape(ref)
            triples = [(0, s, 1) for s in shape]
            triples[axis] = (start, start + part[axis], 1)
            start += part[axis]
            parts.append((ref, View(slice_p.op, (("index", tuple(triples)),))))
        for ref, place in parts:
            root = self.root(ref.slot)
            views = self._lies(ref, root, index, place, math.prod(shape[:axis]) == 1, uses)
            if views is None or root == self.root(result.slot):
                copies.append(Copy(step.node, (ref,), (Ref(result.slot, (place,)),), step.group))
                continue
            self.within[root] = views
            self.builders[root].root = result.slot
            whole.first = min(whole.first, self.builders[root].first)
        return [step] if len(copies) == len(parts) else copies

    def _lies(
        self,
        ref: Ref,
        root: int,
        index: int,
        place: View,
        is_block: bool,
        uses: dict[int, list[tuple[Step, Ref]]],
    ) -> tuple[View, ...] | None:
        """The views through which a value is seen in its place; None if it cannot lie there."""
        old, t = self.builders[root], self.builders[ref.slot].type
        reshaped = all(v.op is reshape_p.op for v in ref.views)
        if old.kind != "arena" or old.last != index or old.type != t or not reshaped:
            return None
        if any(s.is_loop and used in s.results for s, used in uses[root]):
            return None  # it changes places with another array
        views = (place, View(reshape_p.op, (("shape", t.shape),))) if ref.views else (place,)
        if is_block:
            return views
        for step, used in uses[root]:
            if isinstance(step, NativeLoop) or any(v.op is reshape_p.op for v in used.views):
                return None
            if any(self.root(r.slot) == root for r in (*step.results, *step.scratch)):
                rows = isinstance(step, Call) and (step.op.elementwise or step.op is matmul_p.op)
                if not (rows and isinstance(step, Call) and step.op.storage.out):
                    return None
        return None if ref.views else views
