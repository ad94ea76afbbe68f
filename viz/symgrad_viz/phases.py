"""Which part of the graph each node belongs to: forward, backward or update."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from symgrad.ir.graph import Graph, is_input, is_leaf
from symgrad.ir.node import Node

FORWARD, BACKWARD, UPDATE = "forward", "backward", "update"
PARTS = (FORWARD, BACKWARD, UPDATE)


def nexts_of(graph: Graph, output_names: Sequence[str]) -> frozenset[Node]:
    """The outputs that are the next values of variables, by the names that a program gives them."""
    named = zip(graph.outputs, output_names, strict=False)
    return frozenset(y for y, name in named if name.endswith(" (next)"))


def parts_of(graph: Graph, nexts: Collection[Node] = frozenset()) -> dict[Node, str]:
    """The part of each node, and of each inside a fused node, a loop or a choice.

    Backward is what differentiation made; update is what the user computes from gradients, and what
    is only there for the next values of variables, `nexts`; the rest is forward. A fused node lies
    where the earliest of its results belongs. Constants, what follows from constants alone, and
    inputs go with the part that alone uses them: so the seed of a gradient lies in the backward
    part.
    """
    parts: dict[Node, str] = {}
    depends_on_inputs: set[Node] = set()
    for node in graph.nodes:
        parts[node] = _part(node, parts)
        if is_input(node) or any(x in depends_on_inputs for x in node.inputs):
            depends_on_inputs.add(node)
    outputs = set(graph.outputs).difference(nexts)
    users: dict[Node, set[str]] = {node: {UPDATE} for node in nexts}
    for node in reversed(graph.nodes):
        own = users.get(node, set())
        movable = is_leaf(node) or node not in depends_on_inputs
        if node not in outputs and len(own) == 1 and (movable or own == {UPDATE}):
            if movable or parts[node] == FORWARD:
                _move(node, next(iter(own)), parts)
        for i, x in enumerate(node.inputs):
            users.setdefault(x, set()).add(UPDATE if i and node.op.update else parts[node])
    return parts


def _move(node: Node, part: str, parts: dict[Node, str]) -> None:
    """Let a node belong to another part, and with it what is forward inside it."""
    parts[node] = part
    for inner in filter(None, (node.inner_graph, *node.bodies)):
        for own in inner.nodes:
            if parts.get(own) == FORWARD:
                _move(own, part, parts)


def _part(node: Node, parts: dict[Node, str], in_body: bool = False) -> str:
    inside = node.inputs[0].inner_graph if node.op.of_several else None
    if inside is not None:
        return parts[inside.outputs[node.attr("index")]]
    inner = node.inner_graph
    if inner is not None:
        parts.update(zip(inner.inputs, (parts[x] for x in node.inputs), strict=True))
        for part in inner.nodes[len(inner.inputs) :]:
            parts[part] = _part(part, parts, in_body)
        return min((parts[y] for y in inner.outputs), key=PARTS.index)
    for body in node.bodies:
        parts.update(dict.fromkeys(body.inputs, FORWARD))
        for part in body.nodes[len(body.inputs) :]:
            parts[part] = _part(part, parts, True)
    if node.origin.is_backward:
        return BACKWARD
    # What a body reads of a gradient's loop is as often a value that was computed again.
    derived = not in_body and any(parts[x] != FORWARD for x in node.inputs)
    return UPDATE if derived else FORWARD


def part_titles(graph: Graph, parts: Mapping[Node, str]) -> dict[str, str]:
    """The parts that there are, in the order of computing, with what to call them."""
    present = {parts[n] for n in graph.nodes}
    made = [n.origin.made_by[0] for n in graph.nodes if n.origin.is_backward]
    forward_mode = bool(made) and all(m.kind == "jvp" for m in made)
    titles = {
        FORWARD: "forward",
        BACKWARD: "tangents" if forward_mode else "backward",
        UPDATE: "from gradients" if forward_mode else "update",
    }
    return {part: title for part, title in titles.items() if part in present}
