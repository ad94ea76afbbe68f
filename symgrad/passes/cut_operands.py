"""Operands cut in place of results: gates, which are slices of a sum that is computed for all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.walk import GraphLike
from symgrad.ops.index.slices import Index, slice_p
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace
from symgrad.rules.whole_graph import slice_of_elementwise

MOST_PARTS = 8


def cut_operands(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """Cut the operands of elementwise nodes of which only slices are read that do not overlap.

    Nothing is computed twice: what reads the slices can be one loop with what they are made of.
    """
    cut = sliced(graph)
    if not cut or slice_of_elementwise.exact > exact:
        return graph
    cutting = slice_of_elementwise.only(lambda node: node.inputs[0] in cut)
    return rewrite(graph, [cutting], trace, "cut_operands")


def sliced(graph: GraphLike) -> set[Node]:
    """The elementwise nodes of which nobody reads more than a few slices that do not overlap."""
    whole = set(graph.outputs)
    parts: dict[Node, set[Index]] = defaultdict(set)
    found: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.op.elementwise and node not in whole and _are_apart(node, parts[node]):
            found.add(node)
        for x in node.inputs:
            if node.op is slice_p.op:
                parts[x].add(node.attr("index"))
            elif node in found and x.shape == node.shape:
                parts[x] |= parts[node]
            elif node not in found or x.ndim:
                whole.add(x)
    return found


def _are_apart(node: Node, parts: Iterable[Index]) -> bool:
    """Whether slices of a node are few, of one axis, and read no element twice."""
    indices = list(parts)
    if not 1 < len(indices) <= MOST_PARTS or not all(isinstance(n, int) for n in node.shape):
        return False
    spans = [[range(n)[slice(*t)] for n, t in zip(node.shape, i, strict=True)] for i in indices]
    axes = [a for a, n in enumerate(node.shape) if any(span[a] != range(n) for span in spans)]
    if len(axes) != 1 or any(span[axes[0]].step != 1 or not span[axes[0]] for span in spans):
        return False
    along = sorted((span[axes[0]] for span in spans), key=lambda r: r.start)
    return all(one.stop <= other.start for one, other in pairwise(along))
