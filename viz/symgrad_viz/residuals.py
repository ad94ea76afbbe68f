"""Residuals: values that forward ops compute and gradient ops read later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeAlias

from symgrad.ir.graph import Graph, is_leaf
from symgrad.ir.node import Node
from symgrad.ir.types import types_of
from symgrad.ir.walk import GraphLike
from symgrad_viz.bodies import Body, bodies_of
from symgrad_viz.phases import BACKWARD, FORWARD

# A node after the fused nodes that it lies in; one of its results.
Path: TypeAlias = tuple[Node, ...]
Value: TypeAlias = tuple[Path, int]


class Kept:
    """Which values are kept: the same ones however a graph is drawn.

    A view is no value of its own, but what it shows. What a fused node reads that computes the
    gradient along with what is forward is not kept for it, nor is what is computed inside it.
    Of a loop its results are kept, not what its steps compute.
    """

    def __init__(self, graph: Graph, parts: Mapping[Node, str]) -> None:
        self._parts = parts
        self._values: dict[Path, list[Value]] = {}  # where the results of a node are computed
        self._readers: dict[Value, set[Path]] = defaultdict(set)
        # Of an input of a graph inside a node: what that is given, in the graph around.
        self._stands: dict[Path, Path] = {}
        self._walk(graph, ())

    def between(self, tail: Path, head: Path) -> Value | None:
        """The value that `tail` gives and `head` reads, if it is kept for that."""
        while tail in self._stands:
            tail = self._stands[tail]
        if tail not in self._values:
            return None
        value = self._values[tail][0]
        kept = self._parts[tail[0]] == FORWARD and head in self._readers.get(value, ())
        return value if kept else None

    def _walk(self, graph: GraphLike, around: Path, derived: bool = False) -> None:
        """Enter the nodes of a graph; it is a body of a gradient's loop if it is `derived`."""
        for node in graph.nodes:
            path = (*around, node)
            if path in self._values:  # an input of a fused node is what that takes
                continue
            operands = [self._values[(*around, x)] for x in node.inputs]
            inner = node.inner_graph
            if inner is not None:
                given = zip(inner.inputs, operands, strict=True)
                self._values |= {(*path, p): values for p, values in given}
                pairs = zip(inner.inputs, node.inputs, strict=True)
                self._stands |= {(*path, p): (*around, x) for p, x in pairs}
                self._walk(inner, path, derived)
                self._values[path] = [self._values[(*path, y)][0] for y in inner.outputs]
                continue
            types = types_of(node.type)
            if node.op.of_several:
                self._values[path] = [operands[0][node.attr("index")]]
                continue
            if node.op.view:
                self._values[path] = operands[0]
            else:
                self._values[path] = [(path, i) for i in range(len(types))]
            derives = derived or self._parts[node] == BACKWARD
            for body in bodies_of(node):
                self._enter(body, around, path)
                self._walk(body.graph, path, derives)
            if derives:  # picking a result reads nothing
                for of in operands:
                    self._read(of[0], path)

    def _enter(self, body: Body, around: Path, path: Path) -> None:
        """Enter the inputs of a body: those read whole are what is given, others new in a step."""
        for i, (x, given) in enumerate(zip(body.graph.inputs, body.operands, strict=True)):
            own, values = (*path, x), self._values[(*around, given)]
            if i < body.carries + body.slices:
                values = [(own, 0)]
            else:
                self._stands[own] = (*around, given)
            self._values[own] = values

    def _read(self, value: Value, reader: Path) -> None:
        made = value[0][-1]
        if self._parts[made] == FORWARD != self._parts[reader[0]] and not is_leaf(made):
            self._readers[value].update(reader[:i] for i in range(1, len(reader) + 1))
