"""Shared masks: a mask that selects from several arrays is widened to bits once for all of them."""

from __future__ import annotations

from collections import Counter

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.passes.cse import common_subexpressions
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace
from symgrad.rules.whole_graph import shared_mask_as_bits


def shared_masks(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """Widen a mask once for all that it selects, instead of in each selection."""
    count = Counter(_key(node) for node in graph.nodes if shared_mask_as_bits.fits(node))
    if all(number == 1 for number in count.values()):
        return graph
    shared = shared_mask_as_bits.only(lambda node: count[_key(node)] > 1)
    changed = rewrite(graph, [shared], trace, "shared_masks")
    return common_subexpressions(changed, exact, trace)


def _key(node: Node) -> tuple[Node, int]:
    return node.inputs[0], node.dtype.itemsize
