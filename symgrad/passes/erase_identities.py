"""Erasure of identities: ops that only differentiation sees make way for their operands."""

from __future__ import annotations

from symgrad.ir.graph import Graph
from symgrad.rewrite.driver import Index, rewrite
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace
from symgrad.rules.whole_graph import identity_of_operand

INDEX = Index([identity_of_operand])


def erase_identities(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """The graph without identities, but for barriers, which say when operands are computed."""
    return rewrite(graph, INDEX, trace, "erase_identities")
