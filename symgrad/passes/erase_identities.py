"""Erasure of identities: ops that only differentiation sees make way for their operands."""

from __future__ import annotations

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.rewrite.driver import Index, rewrite
from symgrad.rewrite.rule import Exact, rule_for
from symgrad.rewrite.trace import Trace


# Not among the rules that the tests try one by one: those must keep the gradient, too.
@rule_for(lambda op: op.identity or op.of_several, exact=Exact.BITS)
def identity_of_operand(node: Node) -> Node | None:
    """Only differentiation sees it, and by now that has been done: its operand takes its place."""
    if not node.op.of_several:
        orders = node.op.barrier and len(node.inputs) > 1
        return None if orders or isinstance(node.type, tuple) else node.inputs[0]
    source = node.inputs[0]
    if not source.op.identity:
        return None
    index: int = node.attr("index")
    return source.inputs[index]


INDEX = Index([identity_of_operand])


def erase_identities(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """The graph without identities, but for barriers, which say when operands are computed."""
    return rewrite(graph, INDEX, trace, "erase_identities")
