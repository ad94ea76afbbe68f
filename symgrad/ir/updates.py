"""Nodes that carry the next value of a variable: which variable, and by which call."""

from __future__ import annotations

from symgrad.ir.errors import GraphError
from symgrad.ir.node import Node, Variable, describe


def update_call(node: Node) -> Node:
    """The call that made a node which carries an update: what reads the variable for this call.

    Copies of the node, such as those that a checkpoint computes again, are of the same call. Other
    identities between the two are seen through.
    """
    found = node.inputs[1]
    while found.op.identity and found.inputs[0].op.identity:
        found = found.inputs[0]
    return found


def updated_variable(node: Node) -> Variable:
    """The variable of which a node carries the next value; identities are seen through.

    Raises `GraphError` if the operand in its place is none.
    """
    return variable_behind(node.inputs[1], node.op.name)


def variable_behind(node: Node, name: str) -> Variable:
    """The variable that a node is, maybe behind identities.

    Raises `GraphError`, which says that what has this `name` updates a variable, if it is none.
    """
    while node.op.identity:
        node = node.inputs[0]
    if not isinstance(node, Variable):
        raise GraphError(f"{name} updates a variable, and {describe(node)} is none")
    return node
