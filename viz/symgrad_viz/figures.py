"""The cost of each node: counted from the plan, or measured by a profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from symgrad.ir.errors import RenderError, SymgradError
from symgrad.ir.graph import Graph, is_leaf
from symgrad.ir.node import Node
from symgrad.ir.walk import GraphLike
from symgrad.lowering.cost import PlanCost, cost
from symgrad.lowering.lower import lower
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Ref, Step, nbytes
from symgrad.runtime.inspect.profile import Profile
from symgrad.runtime.program import Program
from symgrad_viz.words import bytes_text, count_text, sizes_text, time_text

STEPS = 5
HELD = ("arena", "output", "next")  # the kinds of slots that a plan has memory for
HEATS: Mapping[str, str] = {
    "cost": "floating-point operations, counted",
    "memory": "bytes allocated for results (none for views and in place), counted",
    "time": "time, measured",
}


@dataclass(frozen=True)
class Figures:
    """Numbers for the nodes of a graph, those within fused nodes too, as far as they are known.

    `sizes` are those of the named dimensions; `alive` the bytes that the plan holds at the step
    that computes a node; `memory` are those that it allocates; `in_place` the operands that it
    overwrites, of nodes that do; `plan` is what runs.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    flops: Mapping[Node, float] = field(default_factory=dict)
    moved: Mapping[Node, tuple[int, int]] = field(default_factory=dict)
    seconds: Mapping[Node, float] = field(default_factory=dict)
    alive: Mapping[Node, int] = field(default_factory=dict)
    memory: Mapping[Node, float] = field(default_factory=dict)
    in_place: Mapping[Node, frozenset[Node]] = field(default_factory=dict)
    plan: Plan | None = None

    @property
    def at(self) -> str:
        """For which sizes they hold."""
        return sizes_text(self.sizes.items())

    def of(self, kind: str) -> Mapping[Node, float]:
        """The numbers by which to colour."""
        return {"cost": self.flops, "time": self.seconds, "memory": self.memory}[kind]

    def lines(self, node: Node) -> list[str]:
        """The tooltip of a node."""
        found = []
        if node.op.view:
            found.append("a view: nothing is copied")
        if node in self.in_place:
            found.append("in place: it overwrites an operand that nobody reads any more")
        if node in self.moved:
            read, written = (bytes_text(n) for n in self.moved[node])
            flops = count_text(self.flops[node], "FLOP") if node in self.flops else "? FLOP"
            found.append(f"{flops}, reads {read}, writes {written}{self.at}")
        if node in self.alive:
            used = bytes_text(self.alive[node])
            found.append(f"memory in use at this step: {used}, with outputs and next values")
        if node in self.seconds:
            share = self.seconds[node] / sum(self.seconds.values())
            found.append(f"{time_text(self.seconds[node])}, {share:.0%} of the steps' time")
        return found


def figures_of(thing: Any, graph: Graph, profile: Profile | None, wanted: str | None) -> Figures:
    """The figures of a program; of a graph those that need no sizes, if they are `wanted`.

    Raises `RenderError` if the profile is of another program, or figures are wanted that nobody
    knows.
    """
    if wanted == "time" and profile is None:
        raise RenderError(
            "color_by='time' shows measured times: render(…, profile=program.profile(…))"
        )
    if isinstance(thing, Program):
        try:
            plan = thing.executables.shown(None if profile is None else profile.sizes).plan
            counted = thing.untiled(plan.sizes)
        except SymgradError:
            # Before the first call sizes are guessed, and need not fit.
            if wanted is None and profile is None:
                return Figures()
            raise
        return _figures(graph, cost(counted), plan, profile)
    if wanted is None and profile is None:
        return Figures()
    if profile is not None:
        raise RenderError("a profile belongs to a Program; draw that")
    names = sorted({name for n in graph.nodes if is_leaf(n) for name in n.tensor.names})
    if names:
        raise RenderError(
            f"color_by={wanted!r} needs the sizes of {', '.join(names)}; draw the compiled Program"
        )
    plan = lower(graph, {}, tiled=False)
    return _figures(graph, cost(plan), plan, None)


def _figures(graph: Graph, costs: PlanCost, plan: Plan, profile: Profile | None) -> Figures:
    flops: Counter[Node] = Counter()
    read: Counter[Node] = Counter()
    written: Counter[Node] = Counter()
    stack = [(of, 1.0) for of in costs.steps]
    while stack:
        of, times = stack.pop()
        flops[of.step.node] += round((of.flops or 0) * times)
        read[of.step.node] += round(of.bytes_read * times)
        written[of.step.node] += round(of.bytes_written * times)
        if of.step.node.bodies:
            within = (cost(plan).steps for plan in of.step.counted)
            stack += [(inner, times * of.step.times) for inner in chain.from_iterable(within)]
    alive: dict[Node, int] = {}
    for step, used in zip(plan.steps, _in_use(plan), strict=True):
        alive |= dict.fromkeys((step.node, *(own for _, own in step.within())), used)
    inside = [g for n in graph.nodes for g in (n.inner_graph, *n.bodies) if g is not None]
    sharing = Counter(map(id, inside))
    for inner in inside:
        if (shared := sharing.pop(id(inner), 1)) > 1:
            # Nodes that do the same share one graph, which was counted for each of them.
            for n in inner.nodes:
                for counts in (flops, read, written):
                    counts[n] //= shared
    seconds = {} if profile is None else _seconds(plan, profile)
    nodes = list(_all_nodes(graph))
    memory = dict.fromkeys((n for n in nodes if not is_leaf(n)), 0.0)
    return Figures(
        plan.sizes,
        _whole(nodes, flops),
        {n: (read[n], written[n]) for n in read},
        _whole(nodes, seconds),
        alive,
        memory | _whole(nodes, _allocated(plan)),
        {s.node: found for s in plan.steps if (found := _operands_overwritten(plan, s))},
        plan,
    )


def _place(plan: Plan, ref: Ref) -> tuple[int, int | str]:
    """The key of a place in memory: slots of the arena can share theirs."""
    slot = plan.slots[ref.slot]
    return (-1, slot.offset) if slot.kind == "arena" else (ref.slot, plan.named(ref)[0])


def _in_use(plan: Plan) -> list[int]:
    """The bytes that the plan holds at each step: in the arena, in outputs, in next values."""
    places: list[dict[tuple[int, int | str], int]] = [{} for _ in plan.steps]
    for i, slot in enumerate(plan.slots):
        if slot.kind in HELD:
            for at in places[slot.first : slot.last + 1]:
                at[_place(plan, Ref(i))] = max(slot.nbytes, at.get(_place(plan, Ref(i)), 0))
    return [sum(at.values()) for at in places]


def _overwritten(plan: Plan, step: Step) -> set[tuple[int, int | str]]:
    """The places of operands that a step writes its results to."""
    refs = step.operands, step.results
    read, written = (
        {
            _place(plan, r)
            for r in of
            if plan.slots[r.slot].nbytes and plan.slots[r.slot].kind in HELD
        }
        for of in refs
    )
    return read & written


def _operands_overwritten(plan: Plan, step: Step) -> frozenset[Node]:
    places = _overwritten(plan, step)
    pairs = zip(step.node.inputs, step.operands, strict=False)
    return frozenset(x for x, ref in pairs if _place(plan, ref) in places)


def _allocated(plan: Plan) -> dict[Node, int]:
    """The bytes that each node allocates; of those inside a fused node, what leaves it."""
    found: dict[Node, int] = {}
    for step in plan.steps:
        overwritten = _overwritten(plan, step)
        slots = [plan.slots[r.slot] for r in step.results]
        sizes = [
            nbytes(slot.type.with_shape(r.shape(slot.type)))
            if slot.kind in HELD and _place(plan, r) not in overwritten
            else 0
            for r, slot in zip(step.results, slots, strict=True)
        ]
        found[step.node] = sum(sizes)
        inner = step.node.inner_graph
        if inner is not None:
            found |= dict(zip(inner.outputs, sizes, strict=True))
    return found


def _whole(nodes: Iterable[Node], parts: Mapping[Node, float]) -> dict[Node, float]:
    """The figures, those of fused nodes added up from what is inside."""
    found = dict(parts)
    for node in nodes:
        inner = node.inner_graph
        if inner is not None and node not in found:
            known = [found[n] for n in inner.nodes if n in found]
            if known:
                found[node] = sum(known)
    return found


def _all_nodes(graph: GraphLike) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        if node.inner_graph is not None:
            yield from (n for n in node.inner_graph.nodes if n.inputs)
        for body in node.bodies:
            yield from (n for n in _all_nodes(body) if n.inputs)


def _seconds(plan: Plan, profile: Profile) -> dict[Node, float]:
    if [s.name for s in plan.steps] != [s.step.name for s in profile.steps]:
        raise RenderError("this profile is of another program; make one: program.profile(…)")
    found: dict[Node, float] = {}
    for step, time in zip(plan.steps, profile.steps, strict=True):
        inside = dict(step.within())
        for of in time.inner or (time,):
            own = inside.get(of.step, of.step.node)
            found[own] = found.get(own, 0.0) + of.seconds
    return found


def figure_text(kind: str, number: float) -> str:
    """A number of the kind by which a picture is coloured."""
    if kind == "time":
        return time_text(number)
    return bytes_text(number) if kind == "memory" else count_text(number, "FLOP")


def heat(number: float, most: float) -> int:
    """The step of the ramp, from 0 to 4, for a number of which the largest is `most`."""
    return min(int(STEPS * number / most), STEPS - 1) if most > 0 else 0
