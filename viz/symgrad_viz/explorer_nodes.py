"""The nodes of the explorer: what each is, where it comes from, what became of it, its cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias

from symgrad.ir.formats.text import type_text
from symgrad.ir.node import Node
from symgrad.ir.op import REGISTRY
from symgrad.ir.origin import Location, Maker
from symgrad.lowering.cost import Cost, cost
from symgrad.lowering.native import NativeCall, NativeLoop
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Step
from symgrad.lowering.tiling import LEAST_BYTES, TileLoop
from symgrad.ops.identity import custom_p
from symgrad.passes.fuse import Group
from symgrad.rewrite.lineage import Form
from symgrad.rewrite.trace import RewriteEvent
from symgrad.runtime.inspect.why import Explainer, steps_text
from symgrad.runtime.program import Program
from symgrad.runtime.source import Source
from symgrad_viz.bodies import times_text
from symgrad_viz.elements import Elements
from symgrad_viz.explorer_tables import Table, named
from symgrad_viz.places import Places
from symgrad_viz.sentences import sentence_of
from symgrad_viz.slopes import slope_of
from symgrad_viz.words import bytes_text, nbytes, shortened

MOST_REWRITES = 60  # told of one node
FIRST = "where the gradient begins: of itself the loss has the slope 1."
COSTS = "flops", "read", "written"
Json: TypeAlias = dict[str, Any]


class Section:
    """A function of the program: what runs in every call, or what is computed once and kept."""

    def __init__(self, title: str, plan: Plan, source: Source, explainer: Explainer) -> None:
        self.title, self.plan, self.source, self.explainer = title, plan, source, explainer
        self.places = Places(plan)

    def node_of(self, step: Step) -> Node:
        """The node that a step computes."""
        return self.explainer.within.get(step, (0, step.node))[1]


class Nodes:
    """Tells of every element what the page shows; `places` are the user's lines that it names."""

    def __init__(
        self,
        program: Program,
        sections: list[Section],
        elements: Elements,
        passes: list[str],
        whole: Cost,
    ) -> None:
        self.program, self.sections, self.elements = program, sections, elements
        self.explainer = sections[0].explainer
        self.lineage = self.explainer.lineage
        self.inside = dict(self._insides())
        self.bodies: dict[int, set[int]] = {}
        for graph in elements.graphs.values():
            for at, name in graph.inside.items():
                top = int(at[1:].partition("_")[0])
                self.bodies.setdefault(top, set()).add(int(name[1:]))
        self.fired = {id(f): i for i, f in enumerate(program.trace.fired)}
        self.rule_names = {f.rule.name for f in program.trace.fired}
        self.pass_names = set(passes)
        self.costs = self._costs(whole)
        plans = [section.plan for section in reversed(sections)]
        self.arrays = {n: a for plan in plans for n, a in elements.buffers(plan).items()}
        self.places, self.slopes, self.values, self.texts = Table(), Table(), Table(), Table()
        self._behind_of: dict[Any, tuple[Sequence[RewriteEvent], list[int], list[int]]] = {}
        self._slots_of: dict[Any, tuple[list[tuple[int, int]], str]] = {}

    def _insides(self) -> Iterator[tuple[int, list[int]]]:
        """The nodes inside fused nodes, each with a number of its own."""
        for number, node in enumerate(list(self.elements.nodes)):
            inner = node.inner_graph
            if inner is not None:
                parts = [n for n in inner.nodes if n.inputs]
                yield number, list(self.elements.enter(parts).values())

    def describe(self, number: int) -> Json:
        """All about one of them."""
        node = self.elements.nodes[number]
        form = self.lineage.form(node)
        story = self.explainer.of_node(node)
        section = 0
        for i, other in enumerate(self.sections[1:], 1):
            if not story.steps and (again := other.explainer.of_node(node)).steps:
                story, section = again, i
        rewrites, places, slopes = self._behind(form, node)
        events = [
            at for f in rewrites[-MOST_REWRITES:] if (at := self.fired.get(id(f))) is not None
        ]
        buffers, array = self._memory(number)
        ends = (self.elements.of_form(e) for e in self.lineage.onward(form).ends)
        found: Json = {
            "op": node.op.name,
            "type": shortened(type_text(node.type)),
            "name": None if node.name is None else shortened(node.name),
            "places": places,
            "slopes": slopes if any(at >= 0 for at in slopes) else None,
            "scope": [shortened(s, 60) for s in node.origin.scope],
            "makers": self._makers(node),
            "rewrites": events,
            "value": self.values[self.lineage.value(node)],
            "ends": [e for e in ends if e is not None and e != number],
            "inside": self.inside.get(number) or sorted(self.bodies.get(number, ())),
            "times": times_text(node),
            "verdict": self.texts.pieces(self._verdict(number, story.verdict)),
            "section": section if story.code and section else None,  # else the first
            "lines": [n for n, _ in story.code],
            **self.costs.get(number, {}),
            **self._group(number, node),
            "buffers": buffers,
            "array": array,
        }
        return {k: v for k, v in found.items() if v or v == 0}

    def _behind(
        self, form: Form, node: Node
    ) -> tuple[Sequence[RewriteEvent], list[int], list[int]]:
        """The rewrites that led to a node, and the lines that it comes from, the nearest first.

        Of each line, too, which gradient rules made it of what that line built; -1 for none. After
        its own line come those of the same op, as of a factor that was combined with it.
        """
        key = form, node.origin.frames
        # Very many that were merged share their lines.
        if key not in self._behind_of:
            rewrites, sources = self.lineage.backward(form)
            own = node.origin.frames[:1]
            built = [n for n in sources if n.inputs]
            built.sort(key=lambda n: (n.origin.frames[:1] != own, n.op is not node.op))
            if not built or built[0].origin.frames[:1] != own:
                built.insert(0, node)
            lines: dict[tuple[str, int], tuple[Location, int]] = {}
            for n in built:
                rules = tuple(m for m in n.origin.made_by if m.is_gradient)
                # Of a group each member has its own.
                rule = self.slopes[rules] if rules and n.inner_graph is None else -1
                for place in islice(n.origin.locations, 1):
                    lines.setdefault((place.file, place.line), (place, rule))
            origins = {n.origin.frames: n.origin for n in (node, *built)}
            for place in chain.from_iterable(o.locations for o in origins.values()):
                lines.setdefault((place.file, place.line), (place, -1))
            told = [(self.places[place], rule) for place, rule in lines.values()]
            self._behind_of[key] = rewrites, [p for p, _ in told], [rule for _, rule in told]
        return self._behind_of[key]

    def derivatives(self) -> list[list[Json]]:
        """The gradient rules that `slopes` names, each with the derivative that it follows from."""
        rules = (n.attr("rule") for n in self.explainer.nodes if n.op is custom_p.op)
        own = {
            repr(rule) for rule in rules
        }  # functions of the user's, which may be called like ops
        told = {m: _slope(m, repr(m.name) in own) for rules in self.slopes for m in rules}
        return [named("name reason", map(told.__getitem__, rules)) for rules in self.slopes]

    def _verdict(self, number: int, verdict: str) -> str:
        if number in self.inside:
            steps = [at for i, at in self._own_steps(number) if i == 0]
            count, passes = len(self.inside[number]), self.elements.nodes[number].origin.made_by
            why = next(
                (f". {sentence_of(m.name)}" for m in passes[::-1] if m.name in self.pass_names), ""
            )
            return f"one group of {count} ops, computed by {steps_text(steps)}{why}"
        if number >= len(self.program.raw):
            return verdict.replace("computed as written, by", "computed by")
        return verdict

    def _group(self, number: int, node: Node) -> Json:
        """Of a group its `bounds` as numbers; which nodes are `written`; how it `runs`.

        Of a bound these are the place of the reason among the texts, whether the group reads there,
        the node at it, how many are behind that, and which; -1 is one that is not in the page. Of
        what is not written, the bytes.
        """
        graph = node.inner_graph
        if not isinstance(graph, Group):
            return {}
        parts = [n for n in graph.nodes if n.inputs]
        inside = dict(zip(parts, self.inside[number], strict=True))
        found: list[int] = []
        for bound in graph.bounds():
            both = (bound.at, *bound.others)
            told = (inside[n] if n in inside else self._number(n) for n in both)
            at, *others = dict.fromkeys(told)
            found += self.texts[bound.why.value], bound.reads, at, len(others), *others
        written = dict.fromkeys(y for y in graph.outputs if y in inside)
        sizes = self.sections[0].plan.sizes
        own = {n: nbytes(n.type, sizes) for n in parts if not n.op.view}
        return {
            "bounds": found,
            "written": [inside[y] for y in written],
            "between": sum(size for n, size in own.items() if n not in written),
            "runs": self.texts.pieces(self._running(number, sum(own.values()))),
        }

    def _number(self, node: Node | None) -> int:
        """The number of a node that was once in a graph; -1 of another."""
        number = None if node is None else self.elements.of_form(self.lineage.form(node))
        return -1 if number is None else number

    def _running(self, number: int, size: int) -> str:
        """How the plan runs a group of so many bytes."""
        for i, at in self._own_steps(number):
            step = self.sections[i].plan.steps[at]
            if isinstance(step, TileLoop):
                return f"{step.tiling}, each of which stays in the cache"
            if isinstance(step, NativeLoop):
                pieces = -(-step.code.rows // max(step.piece, 1))
                parts = f", in {pieces} pieces on {step.threads} threads" if pieces > 1 else ""
                return f"machine code{parts}: what lies between stays in registers"
            if isinstance(step, NativeCall):
                return "machine code, with the rest of the program"
        if size < LEAST_BYTES:
            return f"op after op, as it is no larger than {bytes_text(size)}: the cache holds that"
        return "op after op, over all rows: it cannot be cut into tiles"

    def _makers(self, node: Node) -> list[Json]:
        """Who made a node, oldest first, and what sort of maker each is; of a group, its pass."""
        found, made_by = [], node.origin.made_by[0 if node.inner_graph is None else -1 :]
        last = max((i for i, m in enumerate(made_by) if m.is_gradient), default=-1)
        for i, maker in enumerate(made_by):
            if maker.is_gradient:
                sort = "gradient"
            elif i < last or maker.name not in self.rule_names | self.pass_names:
                sort = "before"
            else:
                sort = "rule" if maker.name in self.rule_names else "pass"
            found.append({"name": shortened(str(maker), 80), "sort": sort})
        return found

    def _own_steps(self, number: int) -> Iterator[tuple[int, int]]:
        """The steps that compute a node, or what is inside it: of which section, which one."""
        for part in (number, *self.inside.get(number, ())):
            form = self.lineage.form(self.elements.nodes[part])
            for i, section in enumerate(self.sections):
                yield from ((i, step) for step in section.explainer.steps.get(form, ()))

    def _memory(self, number: int) -> tuple[list[tuple[int, int]], str | int | None]:
        """The memory that it is computed in: of which section, which slot; and its array.

        That is the name of the array in the source if it is not that of the slots; 0 for none.
        """
        steps = tuple(dict.fromkeys(self._own_steps(number)))
        if steps not in self._slots_of:
            places = [section.places for section in self.sections]
            results = ((i, at, r) for i, at in steps for r in places[i].plan.steps[at].results)
            slots = list(dict.fromkeys((i, places[i].number(at, r)) for i, at, r in results))
            names = ", ".join(places[i].all[slot].slot.name for i, slot in slots)
            self._slots_of[steps] = slots, names
        slots, names = self._slots_of[steps]
        array = self.arrays.get(number, 0)
        return slots, None if array == (names or 0) else array

    def _costs(self, whole: Cost) -> dict[int, Json]:
        """Operations, bytes read and bytes written of each node, as written and as it runs."""
        plans = [whole.before, whole.after, *(cost(s.plan) for s in self.sections[1:])]
        found: dict[int, Json] = {}
        for plan in plans:
            for step in plan.steps:
                number = self.elements.of_form(self.lineage.form(step.step.node))
                if number is not None:
                    figures = step.flops, step.bytes_read, step.bytes_written
                    found[number] = dict(zip(COSTS, figures, strict=True))
        for number, parts in self.inside.items():
            known = [found[p] for p in parts if p in found]
            if known:
                found[number] = {c: sum(figures[c] or 0 for figures in known) for c in COSTS}
        return found


def _slope(maker: Maker, own: bool) -> tuple[str, str]:
    op = REGISTRY.ops.get(maker.name)
    told = FIRST if maker.name == "loss" else "" if op is None else slope_of(op)
    return shortened(str(maker), 80), "the backward that you wrote." if own else told
