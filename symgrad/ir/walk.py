"""The order of a graph: every node after its inputs, without recursion."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symgrad.ir.node import Node


def topological(outputs: Iterable[Node]) -> list[Node]:
    """The nodes that the outputs are computed from, each after its inputs, the outputs included.

    The order depends on nothing but the graph: depth first, inputs from left to right.
    """
    order: list[Node] = []
    done: set[Node] = set()
    for output in outputs:
        stack = [(output, iter(output.inputs))] if output not in done else []
        done.add(output)
        while stack:
            node, rest = stack[-1]
            for x in rest:
                if x not in done:
                    done.add(x)
                    if x.inputs:
                        stack.append((x, iter(x.inputs)))
                        break
                    order.append(x)
            else:
                stack.pop()
                order.append(node)
    return order
