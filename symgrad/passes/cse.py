"""Common subexpressions: what is computed twice is computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from symgrad.ir.graph import Graph
from symgrad.ir.leaf_ops import INPUTS
from symgrad.ir.node import Node
from symgrad.rewrite.driver import rebuild
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace


def common_subexpressions(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """Merge nodes of one op on the same operands; a commutative op's order does not matter.

    The operands of a commutative op are only compared in another order, never swapped, so that
    even the payload of a NaN stays the same for the node that is kept.
    """
    becomes = merge(graph.nodes, exact, digits=exact < Exact.ROUNDING)
    if len(set(becomes.values())) == len(becomes):
        return graph  # nothing was merged, and so nothing made anew
    return graph.giving(becomes[y] for y in graph.outputs)


def merge(
    nodes: Iterable[Node],
    exact: Exact,
    apart: Callable[[Node], Any] | None = None,
    *,
    digits: bool = False,
) -> dict[Node, Node]:
    """For each of some nodes, given after their inputs, the one node that stands for it.

    Nodes of which `apart` says different things are not merged. With `digits`, products are to be
    rounded as they were: an operand that would become the other one's array is computed anew.
    """
    kept: dict[Any, Node] = {}
    becomes: dict[Node, Node] = {}
    there = becomes.__getitem__
    for node in nodes:
        op = node.op
        if op in INPUTS:
            becomes[node] = node
            continue
        inputs = tuple(map(there, node.inputs))
        if digits and op.bilinear and not op.elementwise and _became_one(node.inputs, inputs):
            inputs = (inputs[0], _anew(node.inputs[1], there))
        numbers = tuple(map(id, inputs))
        if op.commutative and _may_swap(node, exact):
            numbers = tuple(sorted(numbers))
        key: Any = (op, numbers, node.attrs)
        if apart is not None:
            key = (key, apart(node))
        found = kept.get(key)
        if found is None:
            found = kept[key] = rebuild(node, inputs)
        becomes[node] = found
    return becomes


def _became_one(before: tuple[Node, ...], after: tuple[Node, ...]) -> bool:
    """Whether the operands of a product read one array, which were two.

    BLAS multiplies a matrix by its own transpose in another way (syrk), which rounds otherwise.
    """
    a, b = map(_source, after)
    return a is b and _source(before[0]) is not _source(before[1])


def _source(node: Node) -> Node:
    """The node in whose memory a value lies."""
    while node.inputs and _reads_memory(node):
        node = node.inputs[0]
    return node


def _reads_memory(node: Node) -> bool:
    return node.op.view or node.op.identity or isinstance(node.inputs[0].type, tuple)


def _anew(node: Node, there: Callable[[Node], Node]) -> Node:
    """A node that is computed once more, of operands that are merged."""
    inputs = [there(x) for x in node.inputs]
    if node.inputs and _reads_memory(node):
        inputs[0] = _anew(node.inputs[0], there)
    return Node(node.op, tuple(inputs), node.attrs, node.type, node.origin)


def _may_swap(node: Node, exact: Exact) -> bool:
    # A product of complex numbers the other way round is rounded otherwise.
    return exact >= (Exact.ROUNDING if node.tensor.is_complex else Exact.VALUES)
