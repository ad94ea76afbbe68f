"""Constant folding in derivatives: what follows from constant vectors is computed once."""

from __future__ import annotations

import numpy as np

from symgrad.ir.dims import guess
from symgrad.ir.errors import KernelError, SymbolicError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node, constant_node
from symgrad.ir.origin import built_as
from symgrad.ir.types import TensorType
from symgrad.ir.values import ArrayData
from symgrad.ir.walk import topological
from symgrad.rewrite.driver import rebuild

MOST_TIMES = 2


def with_known(node: Node) -> Node:
    """A node in which each value that is computed from constant arrays alone is a constant.

    The derivative of a linear function becomes one constant. Three things stay as they are: single
    numbers that are repeated, which rules join with others; views of constants, which take no
    memory; and values with many more elements than the constants they are computed from.
    """
    order = topological([node])
    seen: set[Node] = set()  # constants, and views of them
    known: dict[Node, int] = {}  # how many elements the largest array has that it is made of
    for n in order:
        if n.op is CONSTANT:
            known[n] = guess(n.size) if n.ndim else 0
        elif n.inputs and not n.op.opaque and all(x in known for x in n.inputs):
            known[n] = max(known[x] for x in n.inputs)
        if n.op is CONSTANT or (n.op.view and seen.issuperset(n.inputs)):
            seen.add(n)
    read = {x for n in order if n not in known for x in n.inputs} | {node}
    ends = [n for n in order if n in read and n not in seen and _fits(n, known.get(n, 0))]
    try:
        arrays = evaluate(ends)
    except (KernelError, SymbolicError):  # the program raises it, and says where
        return node
    becomes: dict[Node, Node] = {}
    for n, array in zip(ends, arrays, strict=True):
        with built_as(n.origin):
            becomes[n] = constant_node(ArrayData(np.ascontiguousarray(array)))
    for n in topological([node], becomes):
        becomes[n] = rebuild(n, tuple(becomes[x] for x in n.inputs))
    return becomes[node]


def _fits(node: Node, most: int) -> bool:
    return isinstance(node.type, TensorType) and 0 < guess(node.size) <= MOST_TIMES * most
