"""Loops: what two compute alike is computed once, what nobody reads is not, bodies are compiled.

A loop that computes the gradient stacks what it reads of the forward in a copy of the loop; the two
become one here. Which carries are equal is found as the states of an automaton are that cannot be
told apart (Moore 1956): those that begin alike are, unless a step makes a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from symgrad.analysis import nbytes
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.origin import built_as
from symgrad.ir.walk import topological
from symgrad.ops.loops.loop import looped, never_fails, substituted
from symgrad.passes.loop_parts import SMALL, LoopBuilder, hoist, new_inputs
from symgrad.rewrite.driver import rebuild

T = TypeVar("T")
SHORT = 2  # steps that are written one after the other


class LoopView:
    """A loop with its parts by name. A slot of the body is an input, known by what it is given."""

    def __init__(self, node: Node) -> None:
        body = node.attr("body")
        assert isinstance(body, Graph)
        self.node, self.body = node, body
        self.length, self.reverse = node.attr("length"), node.attr("reverse")
        first, end = node.attr("carries"), node.attr("carries") + node.attr("sequences")
        self.states, self.init = body.inputs[:first], node.inputs[:first]
        self.slices, self.sequences = body.inputs[first:end], node.inputs[first:end]
        self.fixed, self.whole = body.inputs[end:], node.inputs[end:]
        self.nexts, self.rows = body.outputs[:first], body.outputs[first:]

    @property
    def is_small(self) -> bool:
        """Whether a call costs more than what it computes in a step."""
        return sum(map(nbytes, self.body.nodes)) <= SMALL

    def stacks(self, x: Node) -> bool:
        """Whether a node is a stack of this loop."""
        return x.op.of_several and x.inputs[0] is self.node and x.attr("index") >= len(self.states)

    def by_kind(self, given: Sequence[T]) -> list[Sequence[T]]:
        """Operands of the loop by their kind: for carries, sequences, and those read whole."""
        first, end = len(self.states), len(self.states) + len(self.slices)
        return [given[:first], given[first:end], given[end:]]

    def given(self) -> Iterator[tuple[Node, tuple[str, Node]]]:
        """The operand of each input but the carries."""
        for kind, inputs, operands in (
            ("slice", self.slices, self.sequences),
            ("fixed", self.fixed, self.whole),
        ):
            yield from ((x, (kind, given)) for x, given in zip(inputs, operands, strict=True))


class Compiler(NamedTuple):
    """Passes over bodies: `simplify`, at first, and `finish`; and whether a loop `hoists` parts."""

    simplify: Callable[[Graph], Graph]
    finish: Callable[[Graph], Graph]
    hoists: bool


def merged(graph: Graph) -> tuple[Graph, dict[Node, Node]]:
    """The graph with loops merged that compute alike; and what has become of each node."""
    becomes = {n: n for n in graph.nodes}
    while (found := _mergeable(graph)) is not None:
        graph, done = _merged(graph, *found)
        becomes = {n: done[m] for n, m in becomes.items() if m in done}
    return graph, becomes


def improved(graph: Graph, compiler: Compiler) -> tuple[Graph, dict[Node, Node]]:
    """The graph with what is dead in loops left out, and bodies compiled.

    And what has become of each node, loops not.
    """
    becomes: dict[Node, Any] = {}
    reads: dict[Node, set[int]] = {}
    for node in graph.nodes:
        if node.op.of_several:
            reads.setdefault(node.inputs[0], set()).add(node.attr("index"))
    known: dict[Any, Graph] = {}
    for node in graph.nodes:
        inputs = node.inputs
        if node.op.of_several and inputs[0] in reads and isinstance(becomes[inputs[0]], dict):
            becomes[node] = becomes[inputs[0]][node.attr("index")]
        elif node.op.body:
            again = rebuild(node, tuple(becomes[x] for x in inputs))
            with built_as(node.origin):
                becomes[node] = _smaller(LoopView(again), reads.get(node, set()), compiler, known)
        else:
            becomes[node] = rebuild(node, tuple(becomes[x] for x in inputs))
    made = graph.giving(becomes[y] for y in graph.outputs)
    return made, becomes


# ---- merging --------------------------------------------------------------------------------


def _mergeable(graph: Graph) -> tuple[LoopView, LoopView, dict[Node, Node]] | None:
    """A loop, another to compute its results, and which of their carries are equal.

    All of them are; or steps are so small that calls cost more than work, and the one reads nothing
    that is made of the other but its stacks. None if there are no such loops.
    """
    before: dict[Node, frozenset[Node]] = {}
    loops: list[LoopView] = []
    for node in graph.nodes:
        above = frozenset[Node]().union(*(before[x] for x in node.inputs))
        before[node] = above | {node} if node.op.body else above
        if node.op.body:
            loops.append(LoopView(node))
    found = None
    for small in loops:
        for large in loops:
            alike = small.length == large.length and small.reverse == large.reverse
            if small is large or not alike or small.node in before[large.node]:
                continue
            carries = _carries(small, large)
            if carries is not None and large.node not in before[small.node]:
                return small, large, carries
            if found is None and small.is_small and large.is_small:
                others = [x for x in small.node.inputs if not large.stacks(x)]
                others += [x for x in (*small.init, *small.whole) if large.stacks(x)]
                if all(large.node not in before[x] for x in others):
                    found = small, large, dict[Node, Node]()
    return found


def _carries(small: LoopView, large: LoopView) -> dict[Node, Node] | None:
    """For each carry of a loop the equal one of another; None if one has no equal."""
    if {*map(id, small.init)} - {*map(id, large.init)}:
        return None
    if not small.states and {*map(id, small.sequences)}.isdisjoint(map(id, large.sequences)):
        return None
    kinds: list[Any] = [(id(x), x.type) for x in (*small.init, *large.init)]
    while True:
        numbers = {kind: i for i, kind in enumerate(dict.fromkeys(kinds))}
        ranks = [numbers[kind] for kind in kinds]
        # One by one: the two may have the same body, and begin with others.
        of_small, of_large = ranks[: len(small.states)], ranks[len(small.states) :]
        table: dict[Any, int] = {}
        finer = _finer(small, of_small, table) + _finer(large, of_large, table)
        if len(set(finer)) == len(numbers):
            break
        kinds = finer
    equal = dict(reversed([*zip(of_large, large.states, strict=True)]))
    pairs = zip(small.states, of_small, strict=True)
    found = {x: equal[rank] for x, rank in pairs if rank in equal}
    return found if len(found) == len(small.states) else None


def _finer(loop: LoopView, ranks: Sequence[int], table: dict[Any, int]) -> list[Any]:
    """For each carry its rank, and the number of what a step makes of it."""
    value = _numbered(loop, dict(zip(loop.states, ranks, strict=True)), table)
    return [(rank, value[y]) for rank, y in zip(ranks, loop.nexts, strict=True)]


def _numbered(loop: LoopView, of: Mapping[Node, int], table: dict[Any, int]) -> dict[Node, int]:
    """Numbers for the nodes of a body, equal for those that compute the same."""
    found: dict[Node, int] = {}
    given = {x: (kind, id(operand)) for x, (kind, operand) in loop.given()}
    for node in loop.body.nodes:
        key: Any = ("carry", of[node]) if node in of else given.get(node)
        key = key or (node.op, tuple(found[x] for x in node.inputs), node.attrs, node.type)
        found[node] = table.setdefault(key, len(table))
    return found


def _merged(
    graph: Graph, small: LoopView, large: LoopView, carries: Mapping[Node, Node]
) -> tuple[Graph, dict[Node, Node]]:
    """The graph with the results of one loop computed by another, and what became of each node."""
    there = {given: x for x, given in large.given()}
    more: dict[str, list[tuple[Node, Node]]] = {"carry": [], "slice": [], "fixed": []}
    becomes: dict[Node, Node] = dict(carries)
    needed = [(x, ("carry", i)) for x, i in zip(small.states, small.init, strict=True)]
    needed = [(x, key) for x, key in needed if x not in carries] + [*small.given()]
    stands = new_inputs("p", [x for x, _ in needed], beside=large.body.inputs)
    for (x, key), stand in zip(needed, stands, strict=True):
        kind, given = key
        if kind == "slice" and large.stacks(given):
            becomes[x] = large.body.outputs[given.attr("index")]
        elif kind == "carry" or key not in there:
            becomes[x] = there[key] = stand
            more[kind].append((stand, given))
        else:
            becomes[x] = there[key]
    same: dict[Any, Node] = {}
    for node in large.body.nodes:
        same.setdefault((node.op, tuple(map(id, node.inputs)), node.attrs, node.type), node)
    for node in small.body.nodes:
        if node not in becomes:
            inputs = tuple(becomes[x] for x in node.inputs)
            what = (node.op, tuple(map(id, inputs)), node.attrs, node.type)
            becomes[node] = same.setdefault(what, rebuild(node, inputs))
    rows = list(dict.fromkeys((*large.rows, *(becomes[y] for y in small.rows))))
    own = [y for x, y in zip(small.states, small.nexts, strict=True) if x not in carries]
    states = [*large.states, *(x for x, _ in more["carry"])]
    body = Graph(
        (*large.nexts, *(becomes[y] for y in own), *rows),
        (
            *states,
            *large.slices, *(x for x, _ in more["slice"]),
            *large.fixed, *(x for x, _ in more["fixed"]),
        ),
    )  # fmt: skip
    operands = [
        (*large.init, *(given for _, given in more["carry"])),
        (*large.sequences, *(given for _, given in more["slice"])),
        (*large.whole, *(given for _, given in more["fixed"])),
    ]
    # What is computed for its own sake is no part of a gradient that reads it.
    origin = min(large.node.origin, small.node.origin, key=lambda o: o.is_backward)
    results: list[Node] = []
    place = {x: i for i, x in enumerate(states)}
    row = {y: i for i, y in enumerate(rows, len(states))}

    def result(node: Node, index: int) -> Node:
        loop, mine = (small, becomes) if node is small.node else (large, {})
        y = loop.body.outputs[index]
        if index >= len(loop.states):
            return results[row[mine.get(y, y)]]
        x = loop.states[index]
        return results[place[mine.get(x, x)]]

    done: dict[Node, Node] = {}
    both = {small.node, large.node}
    waiting = [n for n in graph.nodes if n not in both]
    while waiting:
        left: list[Node] = []
        for node in waiting:
            if node.inputs and node.inputs[0] in both and results:
                done[node] = result(node.inputs[0], node.attr("index"))
            elif all(x in done for x in node.inputs):
                done[node] = rebuild(node, tuple(done[x] for x in node.inputs))
            else:
                left.append(node)
        if not results:
            with built_as(origin):
                init, sequences, whole = ([done[x] for x in xs] for xs in operands)
                results = looped(body, init, sequences, whole, large.length, large.reverse)
        waiting = left
    return graph.giving(done[y] for y in graph.outputs), done


# ---- one loop -------------------------------------------------------------------------------


def alive(loop: LoopView, rows: Sequence[Node], live: Iterable[int] = ()) -> set[int]:
    """The carries of which some rows are made, and those that are alive anyway."""
    place, live = {x: i for i, x in enumerate(loop.states)}, set(live)
    while True:
        nodes = topological([*(loop.nexts[i] for i in sorted(live)), *rows])
        more = {place[x] for x in nodes if x in place} - live
        if not more:
            return live
        live |= more


def _smaller(
    loop: LoopView,
    read: set[int],
    compiler: Compiler,
    known: dict[Any, Graph],
) -> dict[int, Node]:
    """The results of a loop that are read, without what is not needed for them."""
    first, outputs = len(loop.states), loop.body.outputs
    rows = list(dict.fromkeys(outputs[i] for i in sorted(read) if i >= first))
    live = alive(loop, rows, {i for i in read if i < first})
    # What a step hands on as it is, is read whole.
    still = [i for i in sorted(live) if outputs[i] is loop.states[i]]
    moving = [i for i in sorted(live) if outputs[i] is not loop.states[i]]
    results = {i: loop.init[i] for i in still}
    used = set(topological([*(outputs[i] for i in sorted(live)), *rows]))
    whole = {loop.states[i]: loop.init[i] for i in still}
    whole |= {x: given for x, given in zip(loop.fixed, loop.whole, strict=True) if x in used}
    slices = [(x, s) for x, s in zip(loop.slices, loop.sequences, strict=True) if x in used]
    states = [loop.states[i] for i in moving]
    wanted = [*(outputs[i] for i in moving), *rows]
    if not wanted:
        return results
    wanted, whole = _hoisted(wanted, {*states, *(x for x, _ in slices)}, whole)
    builder = LoopBuilder(
        states,
        [loop.init[i] for i in moving],
        wanted[: len(moving)],
        dict(slices),
        whole,
        wanted[len(moving) :],
        loop.length,
        loop.reverse,
        bool(moving),
    )
    lasts, stacks = _made(builder, compiler, known)
    results |= dict(zip(moving, lasts, strict=True))
    given = dict(zip(rows, stacks, strict=True))
    return results | {i: given[outputs[i]] for i in read if i >= first}


def _made(
    builder: LoopBuilder, compiler: Compiler, known: dict[Any, Graph]
) -> Sequence[list[Node]]:
    """The last carries and stacks of a loop, its body compiled; a short one is written out."""
    short = isinstance(builder.length, int) and builder.length <= SHORT
    if short and not any(n.bodies for n in builder.body.nodes):
        return builder.unrolled()

    def compiled(function: Callable[[Graph], Graph]) -> None:
        body = builder.body
        if (function, body) not in known:
            known[function, body] = function(body)
        builder.becomes(known[function, body])

    if not compiler.hoists:
        compiled(compiler.finish)
        return builder.looped()
    compiled(compiler.simplify)
    hoisted = hoist(builder)
    if not builder.nexts and not builder.rows:
        return hoisted.results((), ())
    compiled(compiler.finish)
    return hoisted.results(*builder.looped())


def _hoisted(
    outputs: Sequence[Node], moving: set[Node], whole: Mapping[Node, Node]
) -> tuple[list[Node], dict[Node, Node]]:
    """The outputs of a body, and what it reads whole, with what no step changes computed before.

    `moving` are the inputs that change. What may fail stays, for there may be no step at all.
    """
    moving, steady = set(moving), set(whole)
    ends = list(outputs)
    for node in topological(outputs):
        if any(x in moving for x in node.inputs):
            moving.add(node)
        elif any(x in steady for x in node.inputs):
            (steady if never_fails(node) else moving).add(node)
        if node in moving:
            ends += node.inputs
    found: dict[Node, None] = {}
    for end in ends:
        while end in steady and end.op.view:
            end = end.inputs[0]
        if end in steady and end.inputs:
            found[end] = None
    before = substituted(list(found), whole)
    stands = new_inputs("p", list(found), beside=(*moving, *whole))
    becomes = dict(zip(found, stands, strict=True))
    made = substituted(outputs, becomes)
    used = set(topological(made))
    given = {**whole, **{becomes[n]: b for n, b in zip(found, before, strict=True)}}
    return made, {x: g for x, g in given.items() if x in used}
