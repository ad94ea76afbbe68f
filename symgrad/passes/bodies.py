"""Choices: what nobody reads of them is not computed, and their graphs are compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.origin import built_as
from symgrad.ops.loops.cond import branch, chosen_of
from symgrad.ops.loops.loop import substituted
from symgrad.rewrite.driver import rebuild


def improved(graph: Graph, compiled: Callable[[Graph], Graph]) -> tuple[Graph, Mapping[Node, Node]]:
    """The graph with the graphs that its nodes run `compiled`, without results nobody reads.

    And what has become of each result.
    """
    if not any(n.op.graphs for n in graph.nodes):
        return graph, {}
    read: dict[Node, set[int]] = {}
    for node in graph.nodes:
        if node.op.of_several:
            read.setdefault(node.inputs[0], set()).add(node.attr("index"))
    becomes: dict[Node, Node] = {}
    results: dict[Node, dict[int, Node]] = {}
    known: dict[Graph, Graph] = {}

    def once(body: Graph) -> Graph:
        if body not in known:
            known[body] = compiled(body)
        return known[body]

    for node in graph.nodes:
        if node.op.of_several and node.inputs[0] in results:
            becomes[node] = results[node.inputs[0]][node.attr("index")]
            continue
        becomes[node] = rebuild(node, tuple(becomes[x] for x in node.inputs))
        if node.op is branch.op:
            with built_as(node.origin):
                results[node] = _choice(becomes[node], sorted(read[node]), once)
    made = Graph((becomes[y] for y in graph.outputs), graph.inputs)
    ends = (n for n in graph.nodes if n.op.of_several and n.inputs[0] in results)
    return made, {n: becomes[n] for n in ends}


def _choice(node: Node, read: list[int], compiled: Callable[[Graph], Graph]) -> dict[int, Node]:
    """The results of a choice that are read."""
    p, *operands = node.inputs
    true, false = node.attr("true"), node.attr("false")
    sides = (compiled(Graph([g.outputs[i] for i in read], g.inputs)) for g in (true, false))
    first, second = sides
    others = substituted(second.outputs, dict(zip(second.inputs, first.inputs, strict=True)))
    return dict(zip(read, chosen_of(p, first.outputs, others, first, operands), strict=True))
