"""Walks of a graph: its nodes in topological order, without recursion."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from symgrad.ir.node import Node


class GraphLike(Protocol):
    """The interface of a `Graph`, for the files that it imports: nodes and formats."""

    @property
    def inputs(self) -> tuple[Node, ...]: ...
    @property
    def outputs(self) -> tuple[Node, ...]: ...
    @property
    def nodes(self) -> tuple[Node, ...]: ...
    def __len__(self) -> int: ...
    def verify(self) -> None: ...


def topological(outputs: Iterable[Node], known: Container[Node] = ()) -> list[Node]:
    """The nodes that the outputs are computed from, each after its inputs, the outputs included.

    The order depends on nothing but the graph: depth first, inputs from left to right. Nodes that
    are `known` are left out, with all that only they need.
    """
    order: list[Node] = []
    done: set[Node] = set()
    for output in outputs:
        fresh = output not in done and output not in known
        stack = [(output, iter(output.inputs))] if fresh else []
        done.add(output)
        while stack:
            node, rest = stack[-1]
            for x in rest:
                if x not in done and x not in known:
                    done.add(x)
                    if x.inputs:
                        stack.append((x, iter(x.inputs)))
                        break
                    order.append(x)
            else:
                stack.pop()
                order.append(node)
    return order


def with_bodies(graph: GraphLike) -> Iterator[Node]:
    """The nodes of a graph, and of all bodies that its loops and choices run, but their inputs."""
    for node in graph.nodes:
        yield node
        for body in node.bodies:
            given = set(body.inputs)
            yield from (n for n in with_bodies(body) if n not in given)
