"""A search for a way from one node to another among the rules: breadth first, from both ends.

Each step applies one rule at one place, so that no order of rules hides a way, as a fixed order may
(the phase-ordering problem that e-graphs solve; Willsey et al., egg, 2021, arXiv:2004.03082).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from symgrad.ir.errors import SymgradError
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.walk import topological
from symgrad.rewrite.driver import Index, fitted, rebuild
from symgrad.rewrite.rule import Rule

MOST_LARGER = 20  # nodes by which a graph on the way may be larger than those at the ends


def meeting(
    f: Node, g: Node, inputs: Sequence[Node], index: Index, most: int
) -> tuple[Rule, ...] | None:
    """The rules of a way from one node to another, in order; None if `most` graphs show none."""
    largest = max(len(topological([y])) for y in (f, g)) + MOST_LARGER
    sides = [_Side(y, inputs, index, largest) for y in (f, g)]
    if sides[0].start == sides[1].start:
        return ()
    for step in zip_longest(*(side.grow(most) for side in sides)):
        for found in step:
            if found is not None and all(found in side.known for side in sides):
                there, back = (side.way(found) for side in sides)
                return (*there, *reversed(back))
    return None


class _Side:
    """All that one step after the other makes of a node, each with how it was come to."""

    def __init__(self, y: Node, inputs: Sequence[Node], index: Index, largest: int) -> None:
        self.start = Graph([y], inputs)
        self.inputs, self.index, self.largest = inputs, index, largest
        self.known: dict[Graph, tuple[Graph, Rule] | None] = {self.start: None}

    def grow(self, most: int) -> Iterator[Graph]:
        """The graphs that are found, one after the other."""
        todo = [self.start]
        for graph in todo:
            for rule, y in _steps(graph.outputs[0], self.index):
                found = Graph([y], self.inputs)
                if found in self.known or len(found) > self.largest:
                    continue
                self.known[found] = (graph, rule)
                todo.append(found)
                yield found
                if len(self.known) >= most:
                    return

    def way(self, graph: Graph) -> list[Rule]:
        """The rules from the start to a graph."""
        found: list[Rule] = []
        while (step := self.known[graph]) is not None:
            graph, rule = step
            found.append(rule)
        return found[::-1]


def _steps(y: Node, index: Index) -> Iterator[tuple[Rule, Node]]:
    """The nodes that one rule at one place makes of a node, each with the rule."""
    order = topological([y])
    for node in order:
        for rule, forms in index.at(node):
            for match in rule.matches(node, lambda inner: True, forms):
                try:
                    made = match.build()
                    if made is None or made is node:
                        continue
                    made = fitted(made, node, rule)
                except SymgradError:  # a guard that asks what only the driver knows
                    continue
                becomes = {node: made}
                for n in order:
                    if n not in becomes:
                        becomes[n] = rebuild(n, tuple([becomes[x] for x in n.inputs]))
                yield rule, becomes[y]
