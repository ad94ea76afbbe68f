"""Dead results: an op with several results of which one is read becomes the op of that one."""

from __future__ import annotations

from collections import defaultdict

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, apply
from symgrad.ir.op import REGISTRY
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.rule import Exact, rule_for
from symgrad.rewrite.trace import Trace


def dead_results(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """Drop the results that nobody reads. Nodes that nobody reads are not in a graph at all."""
    read: dict[Node, set[int]] = defaultdict(set)
    for node in graph.nodes:
        if node.op.of_several:
            read[node.inputs[0]].add(node.attr("index"))
    if not read:
        return graph

    @rule_for(lambda op: op.of_several, exact=Exact.BITS)
    def single_result(node: Node) -> Node | None:
        """Only one result is read: compute that one alone."""
        source = node.inputs[0]
        if not source.op.projections or len(read[source]) != 1:
            return None
        name = source.op.projections[node.attr("index")]
        # What is no work of its own on each element goes another way, and rounds differently.
        if not name or (exact < Exact.ROUNDING and not source.op.elementwise):
            return None
        return apply(REGISTRY.ops[name], source.inputs, dict(source.attrs))

    return rewrite(graph, [single_result], trace, "dead_results")
