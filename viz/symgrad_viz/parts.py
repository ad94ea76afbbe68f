"""Which part of the graph each node belongs to: forward, backward or update."""

from __future__ import annotations

from symgrad.ir.graph import Graph, is_input, is_leaf
from symgrad.ir.node import Node

FORWARD, BACKWARD, UPDATE = "forward", "backward", "update"


def parts_of(graph: Graph) -> dict[Node, str]:
    """The part of each node.

    Backward is what differentiation made; update is what the user computes from gradients; the
    rest is forward. Constants, what follows from constants alone, and inputs go with the part that
    alone uses them: so the seed of a gradient lies in the backward part.
    """
    parts: dict[Node, str] = {}
    depends_on_inputs: set[Node] = set()
    for node in graph.nodes:
        if node.origin.is_backward:
            parts[node] = BACKWARD
        elif any(parts[x] != FORWARD for x in node.inputs):
            parts[node] = UPDATE
        else:
            parts[node] = FORWARD
        if is_input(node) or any(x in depends_on_inputs for x in node.inputs):
            depends_on_inputs.add(node)
    outputs = set(graph.outputs)
    users: dict[Node, set[str]] = {}
    for node in reversed(graph.nodes):
        movable = is_leaf(node) or node not in depends_on_inputs
        if movable and len(users.get(node, ())) == 1 and node not in outputs:
            parts[node] = next(iter(users[node]))
        for x in node.inputs:
            users.setdefault(x, set()).add(parts[node])
    return parts


def part_titles(graph: Graph, parts: dict[Node, str]) -> dict[str, str]:
    """The parts that there are, in the order of computing, with what to call them."""
    present = set(parts.values())
    made = [n.origin.made_by[0] for n in graph.nodes if n.origin.is_backward]
    forward_mode = bool(made) and all(m.startswith("jvp(") for m in made)
    titles = {
        FORWARD: "forward",
        BACKWARD: "tangents" if forward_mode else "backward",
        UPDATE: "from gradients" if forward_mode else "update",
    }
    return {part: title for part, title in titles.items() if part in present}
