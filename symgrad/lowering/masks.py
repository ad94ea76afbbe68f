"""Masks apart: the backward of relu in two steps, so that what a mask is of need not be kept."""

from __future__ import annotations

from collections.abc import Mapping

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ops.logic import greater
from symgrad.ops.select import keep_where_positive, select
from symgrad.rewrite.driver import rebuild


def masks_apart(graph: Graph) -> tuple[Graph, Mapping[Node, Node]]:
    """The graph with each `keep_where_positive` as a mask, and what selects by it.

    The mapping gives for each node of that graph the one that it stands for; it is empty if there
    is nothing to take apart.
    """
    if not any(n.op is keep_where_positive.op for n in graph.nodes):
        return graph, {}
    becomes: dict[Node, Node] = {}
    stands_for: dict[Node, Node] = {}
    for node in graph.nodes:
        inputs = tuple([becomes[x] for x in node.inputs])
        made = rebuild(node, inputs)
        if node.op is keep_where_positive.op:
            mask = greater(inputs[0], 0)
            made = Node(select.op, (mask, inputs[1]), (), node.type, node.origin)
            stands_for[mask] = node
        becomes[node], stands_for[made] = made, node
    return graph.giving(becomes[y] for y in graph.outputs), stands_for
