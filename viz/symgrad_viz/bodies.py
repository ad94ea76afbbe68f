"""Bodies of loops and choices: how they are fed, and what to call them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import NamedTuple

from symgrad.ir.formats.infix import Text, to_text
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, constant_value
from symgrad.ir.walk import GraphLike
from symgrad.ops.loops.cond import branch
from symgrad.ops.loops.loop import loop
from symgrad.ops.loops.while_loop import sized, while_loop_p
from symgrad_viz.words import name_text, shortened

DEEPEST_TEXT = 5


class Body(NamedTuple):
    """A graph that a node runs.

    `operands` are what its inputs are given: the first are what its `carries` begin with, then come
    arrays of which each step has one of the `slices`, then what is read whole.
    """

    graph: Graph
    operands: tuple[Node, ...]
    carries: int = 0
    slices: int = 0


def bodies_of(node: Node) -> list[Body]:
    """The bodies of a loop, or the two of a choice; nothing of other nodes."""
    if node.op is loop.op:
        counts = node.attr("carries"), node.attr("sequences")
        return [Body(node.attr("body"), node.inputs, *counts)]
    if node.op is while_loop_p.op:
        step = node.attr("step")
        return [Body(step, node.inputs, len(step.outputs))]
    if node.op is branch.op:
        return [Body(node.attr(name), node.inputs[1:]) for name in ("true", "false")]
    return [Body(node.attr("graph"), node.inputs[1:])] if node.op is sized.op else []


def own_size(node: Node) -> str | None:
    """The name of the dimension whose size is computed for what a node runs, if there is one."""
    return str(node.attr("name")) if node.op is sized.op else None


def times_text(node: Node) -> str:
    """How often a loop runs its body: `×T`; `×?` where only the data tell."""
    if node.op is while_loop_p.op:
        return "×?"
    return f"×{shortened(str(node.attr('length')), 24)}" if node.op.body else ""


def mirrored(node: Node, nodes: Iterable[Node]) -> Node | None:
    """The loop, among nodes before it, whose steps a gradient's loop goes back over."""
    if not (node.op.body and node.origin.is_backward):
        return None
    found, place = None, node.origin.nearest
    for other in takewhile(lambda n: n is not node, nodes):
        if other.op.body and other.origin.nearest == place:
            alike = other.attr("length") == node.attr("length")
            if alike and other.attr("reverse") != node.attr("reverse"):
                found = other
    return found


def title_of(node: Node, names: Mapping[Node, str], mirror: Node | None) -> str:
    """The title of the frame around the bodies of a node."""
    own = names[node]
    if node.op is branch.op:
        return f"{own} = cond: one of the two runs"
    if node.op is sized.op:
        return f"{own}: what {own_size(node)} steps need"
    if node.op is while_loop_p.op:
        limit = node.attr("most")
        return f"{own} = while_loop ×?{'' if limit is None else f', at most {limit} steps'}"
    way = ", the last step first" if node.attr("reverse") else ""
    if mirror is not None:
        return f"{own} = loop {times_text(node)}{way}: the gradient of {names[mirror]}"
    return f"{own} = loop {times_text(node)}{way}"


def test_text(node: Node, names: Mapping[Node, str]) -> str:
    """The condition of a while loop: `while abs(carry0 - carry1) > 1e-12`."""
    test = node.attr("test")
    carries = len(node.attr("step").outputs)
    called = {x: f"carry{i}" for i, x in enumerate(test.inputs[:carries])}
    rest = zip(test.inputs[carries:], node.inputs[carries:], strict=True)
    called |= {x: shown_name(given, names) for x, given in rest}

    def leaf(term: Node, depth: int) -> str | Text | None:
        value = constant_value(term)
        if value is not None and value.ndim == 0:
            return str(value[()])
        if depth > DEEPEST_TEXT or not term.inputs:
            return called.get(term, "…")
        return called.get(term)

    return shortened(f"while {to_text(test.outputs[0], leaf)[0]}", 60)


def tested(node: Node) -> list[int]:
    """The carries that the condition of a while loop reads, by their numbers."""
    test = node.attr("test")
    read = {x for n in test.nodes for x in n.inputs} | set(test.outputs)
    return [i for i, x in enumerate(test.inputs[: len(node.attr("step").outputs)]) if x in read]


def shown_name(node: Node, names: Mapping[Node, str]) -> str:
    """The user's name of a node, if it has one, else the one in the picture."""
    return names[node] if node.name is None else name_text(node.name, 24)


def count(graph: GraphLike) -> int:
    """How many nodes there are, those in fused nodes and bodies too."""
    parts = [p for n in graph.nodes for p in (n.inner_graph, *(b.graph for b in bodies_of(n)))]
    return len(graph.nodes) + sum(count(p) for p in parts if p is not None)
