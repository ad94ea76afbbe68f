"""Dead results: an op with several results of which one is read becomes the op of that one."""

from __future__ import annotations

from collections import defaultdict

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace
from symgrad.rules.whole_graph import result_alone, result_found_alone


def dead_results(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """Drop the results that nobody reads. Nodes that nobody reads are not in a graph at all."""
    read: dict[Node, set[int]] = defaultdict(set)
    for node in graph.nodes:
        if node.op.of_several:
            read[node.inputs[0]].add(node.attr("index"))
    sole = {source for source, found in read.items() if len(found) == 1}
    if not sole:
        return graph
    rules = [
        rule.only(lambda node: node.inputs[0] in sole)
        for rule in (result_alone, result_found_alone)
        if rule.exact <= exact
    ]
    return rewrite(graph, rules, trace, "dead_results")
