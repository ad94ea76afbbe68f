"""The numbers of nodes: one for each, in pictures, stories and pages, and its name in the source.

A node has the number that it prints with in the graph as it was written; what a pass makes is
counted on from there. The generated source has arrays, which several nodes use in turn: the name of
that which a node is computed in stands beside its number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.walk import GraphLike
from symgrad.lowering.plan import Plan
from symgrad.rewrite.lineage import Lineage
from symgrad.runtime.program import Program
from symgrad_viz.bodies import bodies_of, own_size
from symgrad_viz.builder import NESTED
from symgrad_viz.level import Numbered
from symgrad_viz.scene import LEAVES, Box
from symgrad_viz.words import name_text


class Elements:
    """The nodes of some graphs of one lineage, each with a number that it keeps when built again.

    Those of a graph are counted before what is in its groups and bodies.
    """

    def __init__(self, lineage: Lineage, graphs: Sequence[Graph]) -> None:
        self.lineage = lineage
        self.nodes: list[Node] = []
        self._numbers: dict[tuple[Any, int], int] = {}
        self._of_graphs: dict[int, set[int]] = {}
        # Graphs that were drawn, each with what is inside its fused nodes or without.
        self.views: dict[tuple[int, bool], Any] = {}
        self.graphs = {id(graph): self._numbered(graph) for graph in graphs}

    @classmethod
    def of(cls, program: Program) -> Elements:
        """Those of all stages of a program."""
        stages = [program.raw, *(s.after for s in program.trace.stages), program.graph]
        lineage = Lineage(program.raw, program.graph, program.trace)
        return cls(lineage, list({id(graph): graph for graph in stages}.values()))

    def numbered(self, graph: Graph) -> Numbered:
        """One of the graphs with the numbers of its nodes."""
        return self.graphs[id(graph)]

    def _numbered(self, graph: Graph) -> Numbered:
        parts = list(_inside(graph))
        nodes = [*graph.nodes, *(node for _, _, node in parts)]
        numbers = self.numbers(nodes)
        names = {n: f"n{number}" for n, number in zip(graph.nodes, numbers, strict=False)}
        rest = numbers[len(graph.nodes) :]
        inside = {
            f"{names[top]}{path}": f"n{number}"
            for (top, path, _), number in zip(parts, rest, strict=True)
        }
        return Numbered(names, inside, dict(zip(numbers, nodes, strict=True)))

    def enter(self, nodes: Iterable[Node]) -> dict[Node, int]:
        """The number of each of these nodes, which are of one graph."""
        given = list(nodes)
        return dict(zip(given, self.numbers(given), strict=True))

    def numbers(self, nodes: Iterable[Node]) -> list[int]:
        """Their numbers, one after the other: a body that runs in two places has two for each."""
        times: Counter[Any] = Counter()
        found = []
        for node in nodes:
            form = self.lineage.form(node)
            key = form, times[form]
            times[form] += 1
            if key not in self._numbers:
                self._numbers[key] = len(self.nodes)
                self.nodes.append(node)
            found.append(self._numbers[key])
        return found

    def of_form(self, form: Any) -> int | None:
        """The number of what has this form."""
        return self._numbers.get((form, 0))

    def of_graph(self, graph: Graph) -> set[int]:
        """The numbers of the nodes of a graph."""
        key = id(graph)
        if key not in self._of_graphs:
            self._of_graphs[key] = set(self.numbers(graph.nodes))
        return self._of_graphs[key]

    def scopes(self, number: int) -> tuple[str, ...]:
        """The scopes that it was built in, as many as are drawn."""
        return tuple(map(name_text, self.nodes[number].origin.scope[:NESTED]))

    def value(self, number: int) -> Node:
        """The key that elements share if they compute the same value."""
        return self.lineage.value(self.nodes[number])

    def buffers(self, plan: Plan) -> dict[int, str]:
        """The names that the source has for the arrays which a plan computes elements in."""
        found: dict[int, str] = {}
        for node, name in _written(plan):
            number = self.of_form(self.lineage.form(node))
            if number is not None:
                found.setdefault(number, name)
        return found


def beside(box: Box, buffers: Mapping[str, str]) -> Box:
    """A box with the name that the source has for its array, if it has one, beside its type."""
    if box.id not in buffers or box.kind in LEAVES or len(box.lines) < 2:
        return box
    first, type, *rest = box.lines
    return replace(box, lines=(first, f"{type} in {buffers[box.id]}", *rest))


def _written(plan: Plan) -> Iterator[tuple[Node, str]]:
    """The nodes that steps compute, and those within, each with the names of its results."""
    for step in plan.steps:
        if step.node.bodies or not step.plans:
            names = ", ".join(plan.named(r)[0] for r in step.results)
            yield from ((node, names) for node in step.computes)
        for inner in step.plans:
            yield from _written(inner)


def _inside(graph: Graph) -> Iterator[tuple[Node, str, Node]]:
    """The boxes in groups and bodies: the outermost node, where in it, and the node itself.

    The condition of a loop and the box of a size that is computed are among that.
    """
    for top in graph.nodes:
        if (more := _more(top)) is not None:
            yield top, *more
        stack = list(_held(top, ""))
        while stack:
            held, path, own = stack.pop()
            for i, node in enumerate(held.nodes):
                at = f"{path}_{i}"
                if own <= i < len(held.inputs):  # what is read whole stands elsewhere
                    continue
                yield top, at, node
                stack += _held(node, at)
                if (more := _more(node)) is not None:
                    yield top, f"{at}{more[0]}", more[1]


def _held(node: Node, path: str) -> Iterator[tuple[GraphLike, str, int]]:
    """The graphs in a node, where they are, and how many inputs of each are its own."""
    if (inner := node.inner_graph) is not None:
        yield inner, path, 0
    bodies = bodies_of(node)
    names = ("_true", "_false") if len(bodies) > 1 else ("",)
    for body, name in zip(bodies, names, strict=False):
        yield body.graph, f"{path}{name}", body.carries + body.slices


def _more(node: Node) -> tuple[str, Node] | None:
    """The box of the condition of a loop, or of a size that is computed: of what it tells."""
    if own_size(node) is not None:
        return "_size", node.inputs[0]
    if bodies_of(node) and "test" in node.op.graphs:
        return "_test", node.attr("test").outputs[0]
    return None
