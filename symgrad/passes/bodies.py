"""Choices and while loops: what nobody reads is not computed, and their graphs are compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.op import Op
from symgrad.ir.origin import built_as
from symgrad.ir.walk import topological
from symgrad.ops.loops.cond import branch, chosen_of
from symgrad.ops.loops.loop import substituted
from symgrad.ops.loops.while_loop import sized, sized_of, while_loop_p, whiled
from symgrad.rewrite.driver import rebuild


def improved(graph: Graph, compiled: Callable[[Graph], Graph]) -> tuple[Graph, Mapping[Node, Node]]:
    """The graph with the graphs that its nodes run `compiled`, without results nobody reads.

    And what has become of each result.
    """
    if not any(n.op.graphs for n in graph.nodes):
        return graph, {}
    read: dict[Node, set[int]] = {}
    for node in graph.nodes:
        if node.op.of_several:
            read.setdefault(node.inputs[0], set()).add(node.attr("index"))
    becomes: dict[Node, Node] = {}
    results: dict[Node, dict[int, Node]] = {}
    known: dict[Graph, Graph] = {}

    def compiled_once(body: Graph) -> Graph:
        if body not in known:
            known[body] = compiled(body)
        return known[body]

    for node in graph.nodes:
        if node.op.of_several and node.inputs[0] in results:
            becomes[node] = results[node.inputs[0]][node.attr("index")]
            continue
        becomes[node] = rebuild(node, tuple(becomes[x] for x in node.inputs))
        if node.op in _SMALLER:
            with built_as(node.origin):
                results[node] = _SMALLER[node.op](becomes[node], sorted(read[node]), compiled_once)
    made = graph.giving(becomes[y] for y in graph.outputs)
    ends = (n for n in graph.nodes if n.op.of_several and n.inputs[0] in results)
    return made, {n: becomes[n] for n in ends}


def _choice(node: Node, read: list[int], compiled: Callable[[Graph], Graph]) -> dict[int, Node]:
    """The results of a choice that are read."""
    p, *operands = node.inputs
    true, false = node.attr("true"), node.attr("false")
    sides = (compiled(Graph([g.outputs[i] for i in read], g.inputs)) for g in (true, false))
    first, second = sides
    others = substituted(second.outputs, dict(zip(second.inputs, first.inputs, strict=True)))
    return dict(zip(read, chosen_of(p, first.outputs, others, first, operands), strict=True))


def _while(node: Node, read: list[int], compiled: Callable[[Graph], Graph]) -> dict[int, Node]:
    """The results of a while loop that are read; its carries are those that these are made of.

    A carry that a step hands on as it is, is read whole.
    """
    test, step = node.attr("test"), node.attr("step")
    becomes = dict(zip(test.inputs, step.inputs, strict=True))
    (holds,) = substituted(test.outputs, becomes)
    states, limit = step.inputs[: len(step.outputs)], (node.attr("most"), node.attr("what"))
    nexts = dict(zip(states, step.outputs, strict=True))
    live: set[Node] = set()
    ends = [holds, *(states[i - 1] for i in read if i)]
    while fresh := [x for x in topological(ends) if x in nexts and x not in live]:
        live.update(fresh)
        ends = [nexts[x] for x in fresh]
    moving = [x for x in states if x in live and nexts[x] is not x]
    if not moving:  # it does nothing, or never ends
        return {i: node[i] for i in read}
    used = set(topological([holds, *(nexts[x] for x in moving)]))
    given = dict(zip(step.inputs, node.inputs, strict=True))
    inputs = [*moving, *(x for x in step.inputs if x in used and x not in {*moving})]
    sides = []
    for outputs in ([holds], [nexts[x] for x in moving]):
        body = compiled(Graph(outputs, inputs))
        own = dict(zip(body.inputs, inputs, strict=True))
        sides.append(substituted(body.outputs, own))
    count, *made = whiled(sides[0][0], sides[1], inputs, [given[x] for x in inputs], limit)
    last = given | dict(zip(moving, made, strict=True))
    return {i: last[states[i - 1]] if i else count for i in read}


def _sized(node: Node, read: list[int], compiled: Callable[[Graph], Graph]) -> dict[int, Node]:
    """The results of a graph with a dimension of its own that are read."""
    count, *operands = node.inputs
    graph = node.attr("graph")
    graph = compiled(Graph([graph.outputs[i] for i in read], graph.inputs))
    made = sized_of(count, node.attr("name"), graph.outputs, graph.inputs, operands)
    return dict(zip(read, made, strict=True))


_SMALLER: Mapping[Op, Callable[..., dict[int, Node]]] = {
    branch.op: _choice,
    while_loop_p.op: _while,
    sized.op: _sized,
}
