"""Short axes: loops over a few channels, which are not as long as a vector.

What is the same along the axis before it, a gain of each channel, is wanted as wide as both: then
they are one loop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from symgrad.ir.evaluate import resolve
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.op import inferred
from symgrad.ir.walk import GraphLike
from symgrad.native.space import SHORT
from symgrad.ops.leaves import placeholder

SMALL = 4  # so many times smaller is what is made wide than the widest value

Shape: TypeAlias = "tuple[int, ...]"


def widened(graph: GraphLike, sizes: Mapping[str, int]) -> tuple[GraphLike, dict[int, Shape]]:
    """An elementwise graph whose operands are as wide as the last two axes, if the last is short.

    And the shapes in which these are to be given, by their numbers; none if nothing is to be done.
    """
    shapes: dict[Node, Shape] = {n: resolve(n.tensor.shape, sizes) for n in graph.nodes}
    widest = max(graph.outputs, key=lambda y: math.prod(shapes[y]))
    wide = shapes[widest][-2:]
    if len(wide) < 2 or not 1 < wide[1] < SHORT or wide[0] == 1:
        return graph, {}
    if any(shapes[y][-2:] != wide for y in graph.outputs):
        return graph, {}
    if not all(n.op.elementwise for n in graph.nodes if n.inputs):
        return graph, {}
    found: dict[int, Shape] = {}
    for k, x in enumerate(graph.inputs):
        own = (1, 1, *shapes[x])[-2:]
        if shapes[x] and own != wide and own != (1, 1):
            found[k] = (*shapes[x][:-2], *wide)
    made = sum(math.prod(s) * graph.inputs[k].tensor.dtype.itemsize for k, s in found.items())
    most = math.prod(shapes[widest]) * widest.tensor.dtype.itemsize
    if not found or made * SMALL > most:
        return graph, {}
    becomes: dict[Node, Node] = {
        x: placeholder(str(x.name), found.get(k, shapes[x]), x.tensor.dtype)
        for k, x in enumerate(graph.inputs)
    }
    for node in graph.nodes:
        if node not in becomes:
            inputs = tuple([becomes[x] for x in node.inputs])
            becomes[node] = _on(node, inputs) if node.inputs else node
    return Graph([becomes[y] for y in graph.outputs], [becomes[x] for x in graph.inputs]), found


def _on(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same op of other operands."""
    type_ = inferred(node.op, tuple([x.type for x in inputs]), node.attrs)
    return Node(node.op, inputs, node.attrs, type_, node.origin)
