"""Fusion: elementwise runs become one node with an inner graph.

A node joins the group of its readers if they are all in one group and of its shape. So a group has
one output, what lies inside it is read by nobody else, and no cycle can arise.
"""

from __future__ import annotations

from collections import defaultdict

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.types import TensorType
from symgrad.ops.fused import FUSED
from symgrad.ops.leaves import placeholder
from symgrad.rewrite.driver import rebuild
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace


def fusion(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """Group elementwise nodes, and put a `fused` node in the place of each group of two or more."""
    groups = _groups(graph)
    if not groups:
        return graph
    becomes: dict[Node, Node] = {}
    inside = {n for members in groups.values() for n in members}
    for node in graph.nodes:
        if node in groups:
            becomes[node] = _fuse(groups[node], node, becomes)
        elif node not in inside:
            becomes[node] = rebuild(node, tuple(becomes[x] for x in node.inputs))
    return Graph((becomes[y] for y in graph.outputs), graph.inputs)


def _groups(graph: Graph) -> dict[Node, list[Node]]:
    """The groups of two or more, by the node whose value leaves the group; members in order."""
    readers: dict[Node, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for x in node.inputs:
            readers[x].append(node)
    wanted = set(graph.outputs)
    group: dict[Node, Node] = {}
    members: dict[Node, list[Node]] = defaultdict(list)
    for node in reversed(graph.nodes):
        if not _fusible(node):
            continue
        roots = {group.get(r, r) for r in readers[node]}
        root = roots.pop() if len(roots) == 1 and node not in wanted else node
        joins = root in group and root.shape == node.shape
        group[node] = root if joins else node
        members[group[node]].append(node)
    return {root: nodes[::-1] for root, nodes in members.items() if len(nodes) > 1}


def _fusible(node: Node) -> bool:
    return node.op.elementwise and isinstance(node.type, TensorType) and node.ndim > 0


def _fuse(members: list[Node], root: Node, becomes: dict[Node, Node]) -> Node:
    """One node for a group; its inner placeholders are called p0, p1, … in order of use."""
    own = set(members)
    inner: dict[Node, Node] = {}
    operands: list[Node] = []
    for node in members:
        for x in node.inputs:
            if x in own or x in inner:
                continue
            if x.op.name == "constant" and x.ndim == 0:
                inner[x] = x
            else:
                inner[x] = placeholder(f"p{len(operands)}", x.shape, x.dtype)
                operands.append(becomes[x])
        inner[node] = rebuild(node, tuple(inner[x] for x in node.inputs))
    inputs = [inner[x] for x in inner if inner[x].op.name == "placeholder"]
    origin = root.origin.merged(n.origin for n in members).then("fusion")
    body = Graph([inner[root]], inputs)
    return Node(FUSED, tuple(operands), (("graph", body),), root.type, origin)
