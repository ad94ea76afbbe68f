"""The part of a program that is computed once and kept: a call runs it only if it must."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

from symgrad.ir.node import Node
from symgrad.ir.origin import printable
from symgrad.lowering.lower import lower
from symgrad.lowering.plan import Plan
from symgrad.passes.hoist import Split
from symgrad.rewrite.trace import place_text
from symgrad.runtime.executable import Executable
from symgrad.runtime.source import Source


class Prologue:
    """Values that are computed once and kept, until a variable that they depend on is changed.

    `executable` computes them; `places` are those of its variables among the program's.
    """

    def __init__(self, executable: Executable, places: Sequence[int]) -> None:
        self.executable, self.places = executable, tuple(places)
        # The arrays of the variables, and what was made of them: always replaced together.
        self._last: tuple[list[Any], Sequence[Any]] = ([None] * len(self.places), ())

    def values(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """The kept values, computed again if a variable has another array than they were made of.

        That these arrays are held is what keeps other programs from writing into them.
        """
        sources = [arrays[i] for i in self.places]
        made_of, values = self._last
        if not all(map(is_, sources, made_of)):
            seen = [a if a.ndim else a[()] for a in sources]
            values = self.executable.run([], seen, [], self.executable.workspace())
            self._last = sources, values
        return values


def lower_body(
    split: Split, sizes: Mapping[str, int], updates: Sequence[Node], **options: Any
) -> Plan:
    """The plan of the body, with steps that know the nodes of the whole graph."""
    plan = lower(split.body, sizes, updates, **options)
    whole = split.stands_for
    steps = tuple(replace(s, node=whole.get(s.node, s.node)) for s in plan.steps)
    return replace(plan, graph=split.graph, steps=steps)


def annotate_body(split: Split, source: Source, plan: Plan) -> Source:
    """The source of the body, which says first what it is given."""
    head = [f"# Computed once, and again when {split.changing} changes, by program.kept.source:"]
    slots = [plan.slots[i] for i in plan.variables[-len(split.prologue.outputs) :]]
    for slot, node in zip(slots, split.raw.outputs, strict=True):
        head.append(f"#   {slot.name}: {slot.type!r}  {place_text(node.origin)}")
    text = "".join(f"{printable(line)}\n" for line in head)
    lines = {i + len(head): step for i, step in source.lines.items()}
    return replace(source, text=text + source.text, lines=lines)
