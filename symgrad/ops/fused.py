"""A run of elementwise ops as one node, with the graph of its parts inside."""

# ruff: noqa: PIE790  (the body of a primitive is `...`)

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from symgrad.ir.evaluate import evaluate
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.op import REGISTRY
from symgrad.ir.types import TensorType
from symgrad.ops.declare import op


def _infer(*types: TensorType, graph: Graph) -> TensorType:
    return graph.outputs[0].tensor


def _kernel(*arrays: Any, graph: Graph) -> Any:
    return evaluate(graph.outputs, dict(zip(graph.inputs, arrays, strict=True)))[0]


def inline(graph: Graph, operands: Iterable[Node]) -> Node:
    """The parts of a fused node, written out over its operands."""
    becomes = dict(zip(graph.inputs, operands, strict=True))
    for node in graph.nodes:
        if node not in becomes:
            inputs = tuple(becomes[x] for x in node.inputs)
            becomes[node] = Node(node.op, inputs, node.attrs, node.type, node.origin)
    return becomes[graph.outputs[0]]


@op(infer=_infer, kernel=_kernel)
def _fused(*operands: Node, graph: Graph) -> Node:
    """The output of an inner graph whose inputs are the operands."""
    ...


FUSED = REGISTRY.ops["fused"]
