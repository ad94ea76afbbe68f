"""The trace of a compilation: the graph after every pass, and every rewrite. It prints as a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from symgrad.ir.cached import cached_property
from symgrad.ir.errors import counted
from symgrad.ir.graph import Graph
from symgrad.ir.late import Displayed
from symgrad.ir.node import Node
from symgrad.ir.origin import Location, Origin, Resolver
from symgrad.ir.record import Record, fresh
from symgrad.ir.values import Cell
from symgrad.ir.walk import GraphLike, topological
from symgrad.rewrite.rule import Exact, Match, Rule

if TYPE_CHECKING:
    from pathlib import Path

FORMAT, VERSION = "symgrad-trace", 1
MOST_TOLD = 100  # of one rule in one pass; the rest are counted
MOST_TYPES = 3
LONGEST_TEXT = 60


class Stage(NamedTuple):
    """A pass that has run: the graphs before and after it, and how long it took in seconds."""

    name: str
    before: Graph
    after: Graph
    seconds: float


class RewriteEvent(NamedTuple):
    """A rule that acted: in which pass, on which node, and what it put there."""

    stage: str
    rule: Rule
    before: Node
    after: Node

    def match(self) -> Match | None:
        """How the rule fits the node that it replaced."""
        return next(iter(self.rule.matches(self.before, lambda nodes: True, None)), None)

    def change(self) -> str:
        """The expressions before and after; a capital letter is a part."""
        from symgrad.ir.formats.infix import expressions

        found = self.match()
        parts = [] if found is None else [x for x in found.bound.values() if isinstance(x, Node)]
        before, after = expressions([self.before, self.after], parts)
        return f"{before}  ->  {after}"

    def __str__(self) -> str:
        return f"{self.stage}: {self.rule.name}: {self.change()}"


def made_together(node: Node) -> list[Node]:
    """A node and those below it that the same rewrite made: their last maker is one object."""
    maker = node.origin.made_by[-1]
    made = {node: None}
    stack = [node]
    while stack:
        for x in stack.pop().inputs:
            if x not in made and x.origin.made_by and x.origin.made_by[-1] is maker:
                made[x] = None
                stack.append(x)
    return list(made)


class Trace(Displayed, Record):
    """Filled while a program is compiled; it is only ever added to.

    Printed, it is a log: each pass with what it did to the number of nodes and its time; in it each
    rule that acted with its grade and its reason; and for each the user's line, what made the node
    if not the user, and the change. A change that was made several times is told once.
    """

    stages: list[Stage] = fresh(factory=list)
    fired: list[RewriteEvent] = fresh(factory=list)

    def rules(self) -> dict[str, int]:
        """How often each rule acted, by its name."""
        return dict(Counter(entry.rule.name for entry in self.fired))

    def grades(self) -> dict[str, dict[str, int]]:
        """How often each rule acted, by its name, under the name of its grade."""
        by_grade = {g: [f.rule.name for f in self.fired if f.rule.exact == g] for g in Exact}
        return {g.name.lower(): dict(Counter(names)) for g, names in by_grade.items() if names}

    def save(self, path: str | Path) -> Path:
        """Write the trace as JSON, for programs that show it. The file is written whole or not.

        `format` is "symgrad-trace" and `version` 1. The rest are lists:

        - `nodes`, each with its `id`, which is its place in the list; `op`; `inputs`, the ids of
          its operands, all smaller than its own; `attrs`, texts by name; `type`; `lines`, the
          numbers of the user's, the nearest first; `scope`; `made_by`, the gradient rule and the
          rewrites, oldest first; `graph`, the number of the graph inside a fused node, else null.
          A node that several graphs share is there once.
        - `lines`, each with its `file`, its number `line` and the `text` of the expression.
        - `graphs`, each with the ids of its `inputs`, `nodes`, in an order in which they can be
          computed, and `outputs`.
        - `passes` in running order, each with its `name`, its `seconds`, and the numbers of the
          graphs `before` and `after`; where a pass changed nothing they are the same.
        - `rewrites` in the order in which they were made, each with its `pass`, `rule`, `grade` and
          `reason`, and the ids of the nodes `before` and `after`. Such a node need not be in a
          graph of a pass: its operands or itself may have been rewritten since.
        """
        from symgrad.ir.formats.writing import write_json

        return write_json(path, _Table(self).document())

    def _lines(self) -> Iterator[str]:
        width = max((len(s.name) for s in self.stages), default=0)
        by_stage: dict[str, list[RewriteEvent]] = {}
        for entry in self.fired:
            by_stage.setdefault(entry.stage, []).append(entry)
        for stage in self.stages:
            fired = by_stage.get(stage.name, [])
            old, new = len(stage.before), len(stage.after)
            same = stage.after is stage.before
            size = f"{new} nodes, unchanged" if same else f"{old} -> {new} nodes"
            acted = f"  {counted(len(fired), 'rewrite')}" if fired else ""
            yield f"{stage.name:<{width}}  {size:<22} {1e3 * stage.seconds:6.1f} ms{acted}"
            by_rule: dict[Rule, list[RewriteEvent]] = {}
            for entry in fired:
                by_rule.setdefault(entry.rule, []).append(entry)
            for rule, entries in by_rule.items():
                yield from _describe(rule, entries)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return f"<Trace of {len(self.stages)} passes, {counted(len(self.fired), 'rewrite')}>"


def _describe(rule: Rule, entries: Sequence[RewriteEvent]) -> Iterator[str]:
    """The lines about one rule in one pass, place by place."""
    from symgrad.ir.formats.text import type_text

    yield f"  {rule_text(rule)}{_repeated(len(entries))}"
    yield f"    because: {reason_text(rule)}"
    by_place: dict[str, dict[str, list[str]]] = {}
    for entry in entries[:MOST_TOLD]:
        changes = by_place.setdefault(place_text(entry.before.origin), {})
        changes.setdefault(entry.change(), []).append(type_text(entry.before.type))
    for place, changes in by_place.items():
        yield f"    {place}"
        for change, types in changes.items():
            listed = list(dict.fromkeys(types))
            more = ", …" * (len(listed) > MOST_TYPES)
            shown = f"{', '.join(listed[:MOST_TYPES])}{more}"
            yield f"      {change}{_repeated(len(types))}    {shown}"
    if len(entries) > MOST_TOLD:
        yield f"    … and {counted(len(entries) - MOST_TOLD, 'time')} more"


def _repeated(times: int) -> str:
    return f"  ×{times}" if times > 1 else ""


def rule_text(rule: Rule) -> str:
    """A rule's name and its grade."""
    return f"{rule.name} [{rule.exact.name.lower()}]"


def reason_text(rule: Rule) -> str:
    """The first sentence of a rule's reason, on one line."""
    return " ".join(rule.reason.partition("\n\n")[0].split())


def place_text(origin: Origin) -> str:
    """The user's line with its text, and what made a node that the user did not write."""
    found = origin.nearest
    place = "no line is known" if found is None else f"{found}  {shortened(found.text)}".rstrip()
    return f"{place}  by {origin.few_makers()}" if origin.made_by else place


def shortened(text: str) -> str:
    """A text on one line, not too long, with no character that would garble a terminal."""
    plain = "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
    return plain if len(plain) <= LONGEST_TEXT else f"{plain[: LONGEST_TEXT - 1]}…"


class _Table:
    """The nodes and graphs of a trace, numbered."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        stages = chain.from_iterable((s.before, s.after) for s in trace.stages)
        self.graphs: dict[int, GraphLike] = {}
        self.nodes: dict[Node, int] = {}
        self.lines: dict[Location, int] = {}
        self.resolver = Resolver()
        for graph in stages:
            self._enter(graph)
        for entry in trace.fired:
            self._number(topological([entry.before, entry.after], self.nodes))

    def _enter(self, graph: GraphLike) -> None:
        if id(graph) not in self.graphs:
            self.graphs[id(graph)] = graph
            self._number(graph.nodes)

    def _number(self, nodes: Iterable[Node]) -> None:
        found = [n for n in nodes if n not in self.nodes]
        for node in found:
            self.nodes[node] = len(self.nodes)
        for node in found:
            inner = node.inner_graph
            if inner is not None:
                self._enter(inner)

    @cached_property
    def place(self) -> dict[int, int]:
        """The number of each graph."""
        return {key: i for i, key in enumerate(self.graphs)}

    def document(self) -> dict[str, Any]:
        """The whole trace, in what JSON has."""
        nodes = [self._node(node, i) for node, i in self.nodes.items()]
        return {
            "format": FORMAT,
            "version": VERSION,
            "nodes": nodes,
            "lines": [{"file": p.file, "line": p.line, "text": p.text} for p in self.lines],
            "graphs": [
                {
                    "inputs": self._ids(graph.inputs),
                    "nodes": self._ids(graph.nodes),
                    "outputs": self._ids(graph.outputs),
                }
                for graph in self.graphs.values()
            ],
            "passes": [
                {
                    "name": stage.name,
                    "seconds": stage.seconds,
                    "before": self.place[id(stage.before)],
                    "after": self.place[id(stage.after)],
                }
                for stage in self.trace.stages
            ],
            "rewrites": [
                {
                    "pass": entry.stage,
                    "rule": entry.rule.name,
                    "grade": entry.rule.exact.name.lower(),
                    "reason": entry.rule.reason,
                    "before": self.nodes[entry.before],
                    "after": self.nodes[entry.after],
                }
                for entry in self.trace.fired
            ],
        }

    def _ids(self, nodes: Iterable[Node]) -> list[int]:
        return [self.nodes[n] for n in nodes]

    def _lines_of(self, origin: Origin) -> list[int]:
        found = self.resolver.locations(origin)
        return [self.lines.setdefault(line, len(self.lines)) for line in found]

    def _node(self, node: Node, number: int) -> dict[str, Any]:
        from symgrad.ir.formats.infix import attr_text
        from symgrad.ir.formats.text import type_text

        inner = node.inner_graph
        return {
            "id": number,
            "op": node.op.name,
            "inputs": self._ids(node.inputs),
            "attrs": {k: attr_text(v) for k, v in node.attrs if not isinstance(v, (Cell, Graph))},
            "type": type_text(node.type),
            "lines": self._lines_of(node.origin),
            "scope": list(node.origin.scope),
            "made_by": list(map(str, node.origin.made_by)),
            "graph": None if inner is None else self.place[id(inner)],
        }
