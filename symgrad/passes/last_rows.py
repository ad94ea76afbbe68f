"""Stacks of which only the last row is read: that row is computed once, or carried.

It is computed after the loop if it is made of the last carries, of the last slices and of what is
read whole; if it needs the carries before the step, it is carried itself. Either way no stack is
kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.origin import built_as
from symgrad.ir.walk import topological
from symgrad.ops.index.slices import slice_p
from symgrad.ops.leaves import zeros
from symgrad.ops.loops.loop import looped, substituted
from symgrad.ops.shape import expand_dims
from symgrad.passes.loop_parts import new_inputs
from symgrad.passes.loops import LoopView
from symgrad.rewrite.driver import rebuild


def last_rows(graph: Graph) -> tuple[Graph, dict[Node, Node]]:
    """The graph without stacks of which the last row alone is read.

    And what has become of each node, loops not.
    """
    readers: dict[Node, list[Node | None]] = {y: [None] for y in graph.outputs}
    items: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for x in node.inputs:
            readers.setdefault(x, []).append(node)
        if node.op.of_several and node.inputs[0].op.body:
            items.setdefault(node.inputs[0], []).append(node)
    done: dict[Node, Node] = {}
    lasts: dict[Node, Node] = {}
    for node in graph.nodes:
        if node in lasts:
            done[node] = expand_dims(lasts[node], axis=0)
        elif node.inputs and node.inputs[0] in lasts:
            index = ((0, 1, 1), *node.attr("index")[1:])
            done[node] = slice_p(done[node.inputs[0]], index=index)
        elif node not in done:
            done[node] = rebuild(node, tuple(done[x] for x in node.inputs))
        if node in items:
            loop = LoopView(done[node])
            found = [x for x in items[node] if _is_last(loop, x, readers[x])]
            with built_as(node.origin):
                results = _without(loop, [x.attr("index") for x in found])
            lasts |= {x: results[x.attr("index")] for x in found}
            done |= {x: results[x.attr("index")] for x in items[node] if x not in lasts}
    return graph.giving(done[y] for y in graph.outputs), done


def _is_last(loop: LoopView, item: Node, readers: Sequence[Node | None]) -> bool:
    """Whether of a result nothing but the row of the last step is read."""
    if not isinstance(loop.length, int) or item.attr("index") < len(loop.states):
        return False
    at = 0 if loop.reverse else loop.length - 1
    return at >= 0 and all(
        y is not None and y.op is slice_p.op and y.attr("index")[0] == (at, at + 1, 1)
        for y in readers
    )


def _without(loop: LoopView, found: Sequence[int]) -> list[Node]:
    """The results of a loop, for these only the last row."""
    results, outputs, first = list(loop.node), loop.body.outputs, len(loop.states)
    if not found:
        return results
    states, nexts = {*loop.states}, {*loop.nexts}
    carried = [i for i in found if not states.isdisjoint(topological([outputs[i]], nexts))]
    if carried:
        more = [outputs[i] for i in carried]
        extra = new_inputs("l", more, beside=loop.body.inputs)
        body = Graph(
            [*loop.nexts, *more, *loop.rows], [*loop.states, *extra, *loop.slices, *loop.fixed]
        )
        init = [*loop.init, *(zeros(y.shape, dtype=y.dtype) for y in more)]
        results = looped(body, init, loop.sequences, loop.whole, loop.length, loop.reverse)
        ends = results[first : first + len(more)]
        del results[first : first + len(more)]
        for i, end in zip(carried, ends, strict=True):
            results[i] = end
    at = 0 if loop.reverse else -1
    known = dict(zip(loop.fixed, loop.whole, strict=True))
    known |= {x: s[at] for x, s in zip(loop.slices, loop.sequences, strict=True)}
    known |= dict(zip(loop.nexts, results, strict=False))
    for i in found:
        if i not in carried:
            (results[i],) = substituted([outputs[i]], known)
    return results
