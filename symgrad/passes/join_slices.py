"""Slices side by side: what is placed in parts of zeros, and added up, is joined instead."""

from __future__ import annotations

from collections import Counter

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ops.elementwise import add
from symgrad.ops.index.slices import place
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace
from symgrad.rules.whole_graph import slices_side_by_side


def join_slices(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """Join what sums place side by side, if nobody reads a part of such a sum."""
    if slices_side_by_side.exact > exact or sum(n.op is place.op for n in graph.nodes) < 2:
        return graph
    readers = Counter(x for n in graph.nodes for x in n.inputs)
    readers.update(graph.outputs)
    whole: set[Node] = set()  # sums of which all parts that are sums have one reader
    within: set[Node] = set()
    for node in graph.nodes:
        if node.op is add.op:
            parts = [x for x in node.inputs if x.op is add.op and x.type == node.type]
            if all(readers[x] == 1 and x in whole for x in parts):
                whole.add(node)
            within.update(parts)
    outermost = slices_side_by_side.only(lambda node: node in whole and node not in within)
    return rewrite(graph, [outermost], trace, "join_slices")
