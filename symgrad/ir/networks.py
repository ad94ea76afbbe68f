"""Graphs as networkx has them. This is the one file that imports it, on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symgrad.ir.graph import Graph


def networkx() -> Any:
    """The module `networkx`."""
    import networkx

    return networkx


def to_networkx(graph: Graph) -> Any:
    """The graph as a `networkx.MultiDiGraph`.

    Nodes are the numbers of the text form, with the attributes `op` (its name), `type` and `node`;
    an edge leads from a node to each of its readers, with the operand's `position`. The graph has
    the attribute `outputs`.

    >>> to_networkx(Graph([x + 1])).number_of_nodes()
    3
    """
    number = {node: i for i, node in enumerate(graph.nodes)}
    found = networkx().MultiDiGraph(outputs=tuple(number[y] for y in graph.outputs))
    for node, i in number.items():
        found.add_node(i, op=node.op.name, type=repr(node.type), node=node)
    for node, i in number.items():
        for position, x in enumerate(node.inputs):
            found.add_edge(number[x], i, position=position)
    return found
