"""Ops in place: a step writes over an operand that nobody reads afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.lowering.steps import SlotBuilder, Step


def root_of(builders: Sequence[SlotBuilder], slot: int) -> int:
    """The slot in whose memory a slot lies."""
    while builders[slot].root != slot:
        slot = builders[slot].root
    return slot


def work_in_place(builders: Sequence[SlotBuilder], index: int, step: Step) -> None:
    """Let a step write over operands that nobody reads afterwards."""
    for result, allowed in zip(step.results, step.in_place, strict=False):
        builder = builders[result.slot]
        if builder.kind != "arena" or result.views:
            continue
        for k in allowed:
            if k < len(step.operands) and _may_take(builders, step, k, allowed, index, builder):
                root = root_of(builders, step.operands[k].slot)
                builder.root = root
                builders[root].last = builder.last
                break


def _may_take(
    builders: Sequence[SlotBuilder],
    step: Step,
    k: int,
    allowed: Sequence[int],
    index: int,
    builder: SlotBuilder,
) -> bool:
    ref = step.operands[k]
    root = root_of(builders, ref.slot)
    old = builders[root]
    if ref.views or old.kind != "arena" or old.last != index:
        return False
    if builder.type.is_complex:  # where its operands overlap, np.multiply rounds otherwise
        return False
    if old.type != builder.type or builders[ref.slot].type != builder.type:
        return False
    others = [
        j for j, r in enumerate(step.operands) if j != k and root_of(builders, r.slot) == root
    ]
    return all(step.is_elementwise and j in allowed and step.operands[j] == ref for j in others)
