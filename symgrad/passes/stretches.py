"""Stretches: a loop of which another reads all steps keeps some of them, and runs again.

The backward of a loop goes back over stacks of what its steps computed. In stretches the forward
keeps only the carries with which each stretch begins, and the backward runs a stretch again, with
its stacks, before it goes back over it: a second forward for less memory (Griewank and Walther, ACM
TOMS 26, 2000). Both become loops of loops; the last steps, which fill no stretch, come apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.origin import built_as
from symgrad.ops.loops.loop import DEEPEST, depth, looped
from symgrad.ops.shape import concat, reshape
from symgrad.passes.loop_parts import new_inputs
from symgrad.passes.loops import LoopView, alive
from symgrad.rewrite.driver import rebuild


def worth_trying(graph: Graph) -> list[tuple[int, bool]]:
    """Numbers of stretches worth trying, and whether stretches go deep, the least memory last.

    They are for the longest loop of a graph.
    """
    lengths = [n.attr("length") for n in graph.nodes if n.op.body]
    longest = max((n for n in lengths if isinstance(n, int)), default=0)
    numbers = [2**i for i in range(1, longest.bit_length())]
    # Beyond the square root if a carry is smaller than what a step keeps.
    found = [(n, False) for n in numbers if n * n <= 16 * longest]
    room = DEEPEST // max(depth(graph) - 1, 1) - 2  # of loops within loops each goes as deep
    return found + [(n, True) for n in reversed(numbers) if n**room >= longest >= 4 * n * n]


def stretched(graph: Graph, number: int) -> tuple[Graph, dict[Node, Node]]:
    """The graph whose loops keep their steps in about so many stretches.

    And what has become of each node.
    """
    pairs = [pair for pair in _pairs(graph) if pair.length >= 2 * number]
    early, late = {p.early.node: p for p in pairs}, {p.late.node: p for p in pairs}
    done: dict[Node, Node] = {}
    made: dict[Node, Mapping[int, Node]] = {}
    for node in graph.nodes:
        source = node.inputs[0] if node.op.of_several else None
        if source in made:
            index = node.attr("index")
            if index in made[source]:  # else the loop that reads it makes it again
                done[node] = made[source][index]
        elif node in early or node in late:
            with built_as(node.origin):
                if node in early:
                    given = [done[x] for x in node.inputs]
                    made[node] = early[node].forward(given, number)
                else:
                    made[node] = late[node].backward([done.get(x, x) for x in node.inputs])
        else:
            done[node] = rebuild(node, tuple(done[x] for x in node.inputs))
    return graph.giving(done[y] for y in graph.outputs), done


def _pairs(graph: Graph) -> list[_Pair]:
    """Loops that stack what only one other loop reads, which runs the other way; and that one."""
    readers: dict[Node, list[Node]] = {y: [y] for y in graph.outputs}
    for node in graph.nodes:
        for x in node.inputs:
            readers.setdefault(x, []).append(node)
    found: list[_Pair] = []
    taken: set[Node] = set()
    for node in graph.nodes:
        if not node.op.body or not isinstance(node.attr("length"), int):
            continue
        late = LoopView(node)
        for x in late.sequences:
            source = x.inputs[0] if x.op.of_several else None
            if source is None or not source.op.body or taken & {node, source}:
                continue
            early = LoopView(source)
            if (early.length, early.reverse) == (late.length, not late.reverse):
                stacks = [
                    i for i, y in enumerate(late.sequences)
                    if y.op.of_several and y.inputs[0] is source and readers[y] == [node]
                ]  # fmt: skip
                if stacks and early.states:  # else there is nothing to keep in their place
                    found.append(_Pair(early, late, stacks))
                    taken |= {node, source}
    return found


class _Pair:
    """A loop `early`, and a `late` one that goes back over it and alone reads these `stacks`.

    `rows` gives for each of those sequences the row of the early body. First the early loop is
    written, then the late one, which reads what the first has noted.
    """

    def __init__(self, early: LoopView, late: LoopView, stacks: Sequence[int]) -> None:
        self.early, self.late = early, late
        assert isinstance(early.length, int)
        self.length, first = early.length, len(early.states)
        self.rows = {i: early.rows[late.sequences[i].attr("index") - first] for i in stacks}
        self.live = sorted(alive(early, list(self.rows.values())))
        self.others = [i for i in range(len(late.sequences)) if i not in self.rows]

    def forward(self, given: Sequence[Node], number: int) -> dict[int, Node]:
        """The results of the early loop, by their numbers, but for those stacks."""
        loop, carries = self.early, len(self.early.states)
        self.size = -(-self.length // number)
        self.number, self.rest = divmod(self.length, self.size)
        end = self.rest if loop.reverse else self.length - self.rest
        self.last, self.main = (slice(None, end), slice(end, None))[:: 1 if loop.reverse else -1]
        init, self.read, self.whole = loop.by_kind(given)
        stacks = {*self.rows.values()}
        asked = {k: y for k, y in enumerate(loop.rows, carries) if y not in stacks}
        states, fixed = new_inputs("c", loop.states), new_inputs("k", loop.fixed)
        slices = new_inputs("s", loop.slices, (self.size,))
        body = Graph([*loop.nexts, *asked.values()], loop.body.inputs)
        inner = looped(body, states, slices, fixed, self.size, loop.reverse)
        begins = [states[i] for i in self.live]
        outer = looped(
            Graph([*inner, *begins], [*states, *slices, *fixed]),
            init, [self._blocks(x) for x in self.read], self.whole, self.number, loop.reverse,
        )  # fmt: skip
        self.begins = outer[len(inner) :]
        found = dict(enumerate(outer[:carries]))
        found |= {k: self._flat(y) for k, y in zip(asked, outer[carries:], strict=False)}
        if self.rest:
            parts = [x[self.last] for x in self.read]
            tail = looped(
                loop.body, outer[:carries], parts, self.whole, self.rest, loop.reverse
            )  # fmt: skip
            self.tail = dict(zip(loop.body.outputs[carries:], tail[carries:], strict=True))
            found |= dict(enumerate(tail[:carries]))
            found |= {k: self._joined(found[k], tail[k]) for k in asked}
        return found

    def backward(self, given: Sequence[Node]) -> dict[int, Node]:
        """The results of the late loop, by their numbers."""
        early, late, carries = self.early, self.late, len(self.late.states)
        init, sequences, whole = late.by_kind(given)
        tail: list[Node] = []
        if self.rest:
            parts = [
                self.tail[self.rows[i]] if i in self.rows else x[self.last]
                for i, x in enumerate(sequences)
            ]
            tail = looped(late.body, init, parts, whole, self.rest, late.reverse)
            init = tail[:carries]
        states, fixed = new_inputs("c", late.states), new_inputs("k", late.fixed)
        slices = new_inputs("s", [late.slices[i] for i in self.others], (self.size,))
        begins = new_inputs("b", [early.states[i] for i in self.live])
        again, more = new_inputs("t", early.slices, (self.size,)), new_inputs("l", early.fixed)
        stacks = self._again(begins, again, more)
        here = {**dict(zip(self.others, slices, strict=True)), **stacks}
        inner = looped(
            late.body, states, [here[i] for i in range(len(here))], fixed, self.size, late.reverse
        )
        blocks = [self._blocks(x) for x in (*(sequences[i] for i in self.others), *self.read)]
        outer = looped(
            Graph(inner, [*states, *begins, *slices, *again, *fixed, *more]),
            init, [*self.begins, *blocks], [*whole, *self.whole], self.number, late.reverse,
        )  # fmt: skip
        found = [*outer[:carries], *map(self._flat, outer[carries:])]
        if self.rest:
            found[carries:] = map(self._joined, found[carries:], tail[carries:])
        return dict(enumerate(found))

    def _again(
        self, begins: Sequence[Node], slices: Sequence[Node], fixed: Sequence[Node]
    ) -> dict[int, Node]:
        """The stacks of one stretch, by the numbers of the sequences that they are."""
        loop, rows = self.early, list(dict.fromkeys(self.rows.values()))
        nexts, states = ([xs[i] for i in self.live] for xs in (loop.nexts, loop.states))
        body = Graph([*nexts, *rows], [*states, *loop.slices, *loop.fixed])
        made = looped(body, begins, slices, fixed, self.size, loop.reverse)
        stacks = dict(zip(rows, made[len(begins) :], strict=True))
        return {i: stacks[y] for i, y in self.rows.items()}

    def _blocks(self, x: Node) -> Node:
        """A sequence as that of its stretches."""
        return reshape(x[self.main], (self.number, self.size, *x.shape[1:]))

    def _flat(self, y: Node) -> Node:
        return reshape(y, (self.number * self.size, *y.shape[2:]))

    def _joined(self, rows: Node, tail: Node) -> Node:
        return concat([tail, rows] if self.early.reverse else [rows, tail], axis=0)
