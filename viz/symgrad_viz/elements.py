"""The nodes of all stages of a program, each with a number of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.rewrite.lineage import Lineage
from symgrad_viz.builder import NESTED
from symgrad_viz.words import name_text


class Elements:
    """The nodes of all stages, each with a number that it keeps however often it is built again.

    Numbers count from the graph as it was written, so there they are those that it prints with.
    """

    def __init__(self, lineage: Lineage) -> None:
        self.lineage = lineage
        self.nodes: list[Node] = []
        self._numbers: dict[tuple[Any, int], int] = {}
        self._of_graphs: dict[int, set[int]] = {}
        # Graphs that were drawn, each with what is inside its fused nodes or without.
        self.views: dict[tuple[int, bool], Any] = {}

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
