"""Shared masks: a mask that selects from several arrays is widened to bits once for all of them."""

from __future__ import annotations

from collections import Counter

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ops.select import keep_by_bits, select
from symgrad.passes.cse import common_subexpressions
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.rule import Exact, rule_for
from symgrad.rewrite.trace import Trace

SELECT = select(True, 0.0).op


def shared_masks(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """Widen a mask once for all that it selects, instead of in each selection."""
    count: Counter[tuple[Node, int]] = Counter()
    for node in graph.nodes:
        if _is_plain_select(node):
            count[node.inputs[0], node.dtype.itemsize] += 1
    shared = {key for key, number in count.items() if number > 1}
    if not shared:
        return graph

    @rule_for(lambda op: op is SELECT, exact=Exact.BITS)
    def shares_mask(node: Node) -> Node | None:
        """The mask selects from several arrays: it is turned into bits once."""
        wanted = _is_plain_select(node) and (node.inputs[0], node.dtype.itemsize) in shared
        return keep_by_bits(*node.inputs) if wanted else None

    changed = rewrite(graph, [shares_mask], trace, "shared_masks")
    return common_subexpressions(changed, exact, trace)


def _is_plain_select(node: Node) -> bool:
    """Whether a node selects floats by a mask of their shape."""
    if node.op is not SELECT or not node.ndim:
        return False
    mask, x = node.inputs
    return mask.shape == x.shape and x.dtype.kind == "f" and x.dtype.itemsize <= 8
