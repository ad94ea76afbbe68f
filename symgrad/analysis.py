"""Floor 2: questions about graphs. networkx answers them; it is imported when one is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node


def to_networkx(graph: Graph) -> Any:
    """The graph as a `networkx.MultiDiGraph`.

    Nodes are the numbers of the text form, with the attributes `op` (its name), `type` and `node`;
    an edge leads from a node to each of its readers, with the operand's `position`. The graph has
    the attribute `outputs`.

    >>> to_networkx(Graph([x + 1])).number_of_nodes()
    3
    """
    import networkx as nx

    number = {node: i for i, node in enumerate(graph.nodes)}
    found = nx.MultiDiGraph(outputs=tuple(number[y] for y in graph.outputs))
    for node, i in number.items():
        found.add_node(i, op=node.op.name, type=repr(node.type), node=node)
    for node, i in number.items():
        for position, x in enumerate(node.inputs):
            found.add_edge(number[x], i, position=position)
    return found


def ancestors(graph: Graph, node: Node) -> set[Node]:
    """The nodes that a node is computed from."""
    return _related(graph, node, "ancestors")


def descendants(graph: Graph, node: Node) -> set[Node]:
    """The nodes that are computed from a node."""
    return _related(graph, node, "descendants")


def is_convex(graph: Graph, nodes: Iterable[Node]) -> bool:
    """Whether no path leaves a set of nodes and comes back: whether it can run as one."""
    import networkx as nx

    inside = set(nodes)
    whole = to_networkx(graph)
    merged = nx.DiGraph()
    label = {i: -1 if n in inside else i for i, n in enumerate(graph.nodes)}
    merged.add_edges_from((label[a], label[b]) for a, b in whole.edges() if label[a] != label[b])
    return bool(nx.is_directed_acyclic_graph(merged))


def dominators(graph: Graph, output: Node) -> dict[Node, Node]:
    """For each node that leads to an output, the nearest one that every path to it passes."""
    import networkx as nx

    number = {node: i for i, node in enumerate(graph.nodes)}
    backwards = nx.DiGraph(to_networkx(graph)).reverse()
    found = nx.immediate_dominators(backwards, number[output])
    return {graph.nodes[i]: graph.nodes[j] for i, j in found.items() if j is not None and i != j}


def critical_path(graph: Graph, cost: Callable[[Node], float]) -> list[Node]:
    """The most expensive path through the graph, from an input to an output."""
    import networkx as nx

    weighted = nx.DiGraph()
    number = {node: i for i, node in enumerate(graph.nodes)}
    weighted.add_nodes_from(number.values())
    weighted.add_weighted_edges_from(
        (number[x], i, cost(node)) for node, i in number.items() for x in node.inputs
    )
    return [graph.nodes[i] for i in nx.dag_longest_path(weighted)]


def _related(graph: Graph, node: Node, direction: str) -> set[Node]:
    import networkx as nx

    number = {n: i for i, n in enumerate(graph.nodes)}
    return {graph.nodes[i] for i in getattr(nx, direction)(to_networkx(graph), number[node])}
