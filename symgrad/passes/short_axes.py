"""Short axes: what is computed along a last axis of a few elements is computed for each apart.

The differences of all pairs of points in space are an array of which the last axis has three
elements. Loops along it are so short that they cost more than what they do, and the sums of its
squares, and what flows back, go over the whole of it. Three arrays without that axis do not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from symgrad.ir.dims import guess
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, apply
from symgrad.ir.origin import Maker, built_as
from symgrad.ir.types import TensorType
from symgrad.passes.cse import common_subexpressions
from symgrad.rewrite.driver import rebuild
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import RewriteEvent, Trace
from symgrad.rules.whole_graph import SHORT, in_parts, is_sum, short_axis_apart

LARGE = 2**14  # elements of an array
SMALL = 8  # what comes in and goes out is at most so small a part, since it is cut and joined
MADE = Maker("rewrite", short_axis_apart.name)


def short_axes(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """The graph with elementwise ops along short axes, and the sums of their results, in parts."""
    if exact < short_axis_apart.exact:
        return graph
    apart = _regions(graph)
    if not apart:
        return graph
    becomes: dict[Node, Node] = {}
    parts: dict[Node, list[Node]] = {}

    def part(x: Node, i: int) -> Node:
        if x in parts:
            return parts[x][i]
        y = becomes[x]
        return y[..., 0 if y.shape[-1] == 1 else i] if y.ndim else y

    for node in graph.nodes:
        with built_as(node.origin.then(MADE)):
            if node in apart:
                attrs, count = dict(node.attrs), guess(node.shape[-1])
                rows = ([part(x, i) for x in node.inputs] for i in range(count))
                parts[node] = [apply(node.op, row, attrs) for row in rows]
                continue
            if any(x in apart for x in node.inputs):
                becomes[node] = in_parts(node, [parts[x] for x in node.inputs])
                trace.fired.append(
                    RewriteEvent("short_axes", short_axis_apart, node, becomes[node])
                )
                continue
        becomes[node] = rebuild(node, tuple(becomes[x] for x in node.inputs))
    made = graph.giving(becomes[y] for y in graph.outputs)
    return common_subexpressions(made, exact, trace)


def _regions(graph: Graph) -> set[Node]:
    """The nodes to be taken apart: all that belong together, or none of them."""
    wide = {n for n in graph.nodes if _is_wide(n)}
    if not wide:
        return wide
    readers: dict[Node, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for x in node.inputs:
            readers[x].append(node)
    outputs, found = set(graph.outputs), set[Node]()
    while wide:
        region, pending = set[Node](), [wide.pop()]
        while pending:
            node = pending.pop()
            region.add(node)
            beside = [n for n in (*node.inputs, *readers[node]) if n in wide]
            wide.difference_update(beside)
            pending += beside
        ends = (n for node in region for n in readers[node] if n not in region)
        starts = (x for node in region for x in node.inputs if x not in region)
        size = max(guess(n.tensor.size) for n in region)
        cut = (x for x in starts if x.ndim and x.shape[-1] != 1)
        if (
            region.isdisjoint(outputs)
            and all(is_sum(n) and region.issuperset(n.inputs) for n in ends)
            and all(guess(x.tensor.size) * SMALL <= size for x in (*cut, *_sums(region, readers)))
        ):
            found |= region
    return found


def _sums(region: set[Node], readers: dict[Node, list[Node]]) -> Iterator[Node]:
    """The sums that keep the short axis, of which the parts are joined."""
    for node in region:
        for y in readers[node]:
            if y not in region and y.ndim and y.shape[-1] == node.shape[-1]:
                yield y


def _is_wide(node: Node) -> bool:
    t = node.type
    if not isinstance(t, TensorType) or not node.inputs or not node.op.elementwise or t.ndim < 2:
        return False
    last = t.shape[-1]
    short = isinstance(last, int) and 1 < last <= SHORT
    return short and guess(t.size) >= LARGE and not node.op.opaque
