"""Expansion of softmax: those of its family that read one operand are taken apart, to share parts.

Each is a kernel of its own, which is best as long as it is alone. Where a loss takes `log_softmax`
and its gradient `softmax`, both need the distances from the largest element and their exponentials.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.passes.cse import common_subexpressions
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace
from symgrad.rules.whole_graph import softmax_in_parts


def expand_softmax(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """The graph with members of the family that read one operand expanded, their parts merged."""
    if exact < softmax_in_parts.exact:
        return graph
    members: dict[tuple[Node, Any], set[Any]] = defaultdict(set)
    for node in filter(softmax_in_parts.fits, graph.nodes):
        members[_key(node)].add((node.op, node.attrs))
    if all(len(found) == 1 for found in members.values()):
        return graph
    shared = softmax_in_parts.only(lambda node: len(members[_key(node)]) > 1)
    changed = rewrite(graph, [shared], trace, "expand_softmax")
    return common_subexpressions(changed, exact, trace)


def _key(node: Node) -> tuple[Node, Any]:
    return node.inputs[0], node.attr("axis")
