"""Erasure of identities: ops that only differentiation sees make way for their operands."""

from __future__ import annotations

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.rewrite.driver import Index, rebuild, rewrite
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import RewriteEvent, Trace
from symgrad.rules.whole_graph import identity_of_operand

INDEX = Index([identity_of_operand])


def erase_identities(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """The graph without identities, but for barriers, which say when operands are computed."""
    return rewrite(graph, INDEX, trace, "erase_identities")


def erase_updates(graph: Graph, trace: Trace) -> list[Node]:
    """The outputs of a graph without nodes that carry updates: a program has its own as outputs."""
    becomes: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.op.update:
            becomes[node] = becomes[node.inputs[0]]
            event = RewriteEvent("erase_updates", identity_of_operand, node, becomes[node])
            trace.fired.append(event)
        else:
            becomes[node] = rebuild(node, tuple([becomes[x] for x in node.inputs]))
    return [becomes[y] for y in graph.outputs]
