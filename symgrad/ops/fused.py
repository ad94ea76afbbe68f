"""A run of ops that work row by row as one node, with the graph of its parts inside."""

from __future__ import annotations

from typing import Any

from symgrad.ir.errors import GraphError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.graph import Graph
from symgrad.ir.leaf_ops import PLACEHOLDER
from symgrad.ir.node import Node
from symgrad.ir.types import TensorType, Type
from symgrad.ops.declare import op


def _infer(*types: TensorType, graph: Graph) -> Type:
    if not graph.outputs or any(x.op is not PLACEHOLDER for x in graph.inputs):
        raise GraphError("the graph inside has placeholders for inputs, and an output or more")
    if any(n.op.inner_graph or n.bodies or n.op.opaque for n in graph.nodes):
        raise GraphError("the graph inside holds no graphs of its own, and no code in Python")
    wanted = tuple(x.tensor for x in graph.inputs)
    if types != wanted:
        raise GraphError(f"the graph inside takes {wanted}, not {types}")
    found = tuple(y.tensor for y in graph.outputs)
    return found if len(found) > 1 else found[0]


def _kernel(*arrays: Any, graph: Graph) -> Any:
    found = tuple(evaluate(graph.outputs, dict(zip(graph.inputs, arrays, strict=True))))
    return found if len(found) > 1 else found[0]


@op(infer=_infer, kernel=_kernel, inner_graph="graph", public=False)
def fused(*operands: Node, graph: Graph) -> Node:
    """The outputs of an inner graph whose inputs are the operands."""
    ...
