"""Common subexpressions: what is computed twice is computed once."""

from __future__ import annotations

from typing import Any

from symgrad.ir.graph import Graph, is_input
from symgrad.ir.node import Node
from symgrad.rewrite.driver import rebuild
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace


def common_subexpressions(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """Merge nodes of one op on the same operands; a commutative op's order does not matter.

    The operands of a commutative op are only compared in another order, never swapped, so that
    even the payload of a NaN stays the same for the node that is kept.
    """
    kept: dict[Any, Node] = {}
    becomes: dict[Node, Node] = {}
    for node in graph.nodes:
        inputs = tuple(becomes[x] for x in node.inputs)
        key = node if is_input(node) else (node.op, _operands(node, inputs, exact), node.attrs)
        if key not in kept:
            same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
            kept[key] = node if same else rebuild(node, inputs)
        becomes[node] = kept[key]
    if len(kept) == len(graph.nodes):
        return graph
    return Graph((becomes[y] for y in graph.outputs), graph.inputs)


def _operands(node: Node, inputs: tuple[Node, ...], exact: Exact) -> tuple[int, ...]:
    numbers = tuple(map(id, inputs))
    swaps = node.op.commutative and exact > Exact.BITS
    return tuple(sorted(numbers)) if swaps else numbers
