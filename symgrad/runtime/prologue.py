"""The parts of a program that are computed and kept: a call runs those that it must."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any

from symgrad.ir.node import Node
from symgrad.ir.origin import printable
from symgrad.ir.record import replace
from symgrad.lowering.lower import lower
from symgrad.lowering.plan import Plan
from symgrad.passes.hoist import Split, is_leaf
from symgrad.rewrite.trace import place_text
from symgrad.runtime.executable import Executables
from symgrad.runtime.source import Source


class Kept:
    """Values that a part computes and keeps, until something that they depend on is changed.

    `executables` compute them, for every combination of sizes; `inputs` and `variables` are the
    places of what these take: among the inputs of the program, and among its variables, behind
    which stand the values that parts before it keep.
    """

    def __init__(
        self, executables: Executables, inputs: Sequence[int], variables: Sequence[int]
    ) -> None:
        self.executables = executables
        self.inputs, self.variables = tuple(inputs), tuple(variables)
        # What they were made by and of, and they themselves: always replaced together.
        self._last: tuple[Sequence[Any], Sequence[Any]] = ((), ())

    def values(
        self, inputs: Sequence[Any], current: Sequence[Any], sizes: Mapping[str, int]
    ) -> Sequence[Any]:
        """The kept values, computed again if an array is another than they were made of.

        That these arrays are held is what keeps other programs from writing into them.
        """
        given = [inputs[i] for i in self.inputs]
        arrays = [current[i] for i in self.variables]
        executable = self.executables.fixed or self.executables.of(sizes)
        sources = [executable, *given, *arrays]
        made_of, values = self._last
        if len(made_of) != len(sources) or not all(map(is_, sources, made_of)):
            seen = [a if a.ndim else a[()] for a in arrays]
            workspace = executable.lent()
            values = executable.run(given, seen, [], workspace)
            executable.give_back(workspace)
            self._last = sources, values
        return values


class Prologue:
    """The parts that a program keeps, in the order in which a call runs them before its body.

    `places` are those of the values that the body reads, among all that are kept.
    """

    def __init__(
        self,
        split: Split,
        executables: Iterable[Executables],
        inputs: Sequence[Node],
        variables: Sequence[Node],
    ) -> None:
        fed = {n: i for i, n in enumerate(inputs)}
        state: dict[Any, int] = {n: i for i, n in enumerate(variables)}
        self.parts = []
        for part, own in zip(split.kept, executables, strict=True):
            taken = part.body.inputs
            held = [state[n.name if is_leaf(n) else n] for n in taken if n not in fed]
            self.parts.append(Kept(own, [fed[n] for n in taken if n in fed], held))
            state |= {name: i for i, name in enumerate(part.names, len(state))}
        self.places = [state[n.name] for n in split.body.inputs if is_leaf(n)]

    def values(
        self, inputs: Sequence[Any], current: Sequence[Any], sizes: Mapping[str, int]
    ) -> list[Any]:
        """The kept values that the body reads, those that must be computed again."""
        found = list(current)
        for part in self.parts:
            found += part.values(inputs, found, sizes)
        return [found[i] for i in self.places]


def lower_body(
    split: Split, sizes: Mapping[str, int], updates: Sequence[Node], **options: Any
) -> Plan:
    """The plan of the body, with steps that know the nodes of the whole graph."""
    plan = lower(split.body, sizes, updates, **options)
    whole = split.stands_for
    steps = tuple(replace(s, node=whole.get(s.node, s.node)) for s in plan.steps)
    given = tuple(_given(split, plan))
    return replace(plan, graph=split.graph, steps=steps, given=given)


def _given(split: Split, plan: Plan) -> Iterator[str]:
    """Lines about the values that are kept: when they are computed, and by which program."""
    leaves = list(filter(is_leaf, split.body.inputs))
    slots = [plan.slots[i] for i in plan.variables[len(plan.variables) - len(leaves) :]]
    read = {str(leaf.name): slot for leaf, slot in zip(leaves, slots, strict=True)}
    for part in split.kept:
        yield f"Computed once, and {part.again}, by {split.path(part)}.source:"
        for name, y in zip(part.names, part.raw.outputs, strict=True):
            said = (
                f"{read[name].name}: {read[name].type!r}" if name in read else f"{name}: {y.type!r}"
            )
            yield f"  {said}  {place_text(y.origin)}"


def annotate_body(source: Source, plan: Plan) -> Source:
    """The source of the body, which says first what it is given."""
    text = "".join(f"# {printable(line)}\n" for line in plan.given)
    lines = {i + len(plan.given): step for i, step in source.lines.items()}
    return replace(source, text=text + source.text, lines=lines)
