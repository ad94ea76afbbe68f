"""A graph as rounds of pieces: a graph that every piece runs, and one between the rounds.

What depends on no piece is computed once, between the rounds, and handed to the pieces; only its
views are taken where they are used. Every graph is like any other, for the passes to improve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symgrad.ir.along import Cut
from symgrad.ir.dims import Dim, Size, divide_exactly
from symgrad.ir.graph import Graph, is_input
from symgrad.ir.node import Node
from symgrad.ir.origin import built_as
from symgrad.ir.types import names_in, types_of
from symgrad.ir.walk import topological
from symgrad.lowering.map_reduce.places import Analysis, mentions, placed
from symgrad.ops.leaves import arange_p, placeholder, size_of
from symgrad.ops.shape import astype
from symgrad.rewrite.driver import rebuild
from symgrad.rewrite.rule import Exact


@dataclass(frozen=True, eq=False)
class Part:
    """A graph that is computed at one place: by every piece of a round, or between two rounds.

    Its inputs are `given`, each a node of the whole program; its outputs are computed for `gives`.
    `sizes` are the names that arrays without elements tell, the last inputs; before them, if
    `is_numbered`, is the number of the first row of the piece.
    """

    graph: Graph
    given: tuple[Node, ...]
    gives: tuple[Node, ...]
    sizes: tuple[str, ...] = ()
    is_numbered: bool = False


@dataclass(frozen=True)
class Meeting:
    """How the pieces of a result meet: joined by an op, or in a row along an axis."""

    by: str
    axis: int | None = None


@dataclass(frozen=True, eq=False)
class Split:
    """A program piece by piece: `rounds`, with `stages` before, between and after them.

    `meetings` tells of each result of a round how it becomes one, `feeds` which inputs are cut, and
    along which axis; `outputs` are nodes of rounds and stages, and `where` says of which.
    """

    over: str
    rounds: tuple[Part, ...]
    stages: tuple[Part, ...]
    meetings: tuple[tuple[Meeting, ...], ...]
    feeds: Mapping[Node, int]
    outputs: tuple[Node, ...]
    where: Mapping[Node, str]

    @property
    def graph(self) -> Graph:
        """All of it as one graph, in whose scopes are the rounds and what is between them."""
        becomes: dict[Node, Node] = {}
        for node in topological(self.outputs):
            made = rebuild(node, tuple([becomes[x] for x in node.inputs]))
            if node in self.where:
                scope = (self.where[node], *node.origin.scope)
                origin = node.origin._replace(scope=scope)
                made = Node(made.op, made.inputs, made.attrs, made.type, origin)
            becomes[node] = made
        return Graph([becomes[y] for y in self.outputs])


def split(outputs: Sequence[Node], inputs: Sequence[Node], over: str, exact: Exact) -> Split:
    """The rounds of a program. Raises `UnsupportedError` for what needs all of `over` at once."""
    wanted, found = placed(outputs, over, exact)
    return _Splitter(wanted, inputs, over, found).split()


class _Splitter:
    def __init__(
        self, outputs: Sequence[Node], inputs: Sequence[Node], over: str, found: Analysis
    ) -> None:
        self.outputs, self.over, self.found = outputs, over, found
        self.nodes = topological(outputs)
        self.names = {str(x.name) for x in inputs}
        # What is computed by pieces and whole afterwards, by its round: joins, and rows in a row.
        self.ends: dict[Node, int] = {}
        for node in self.nodes:
            if node in found.joined:
                self.ends[node] = found.place(node).level - 1
        for y in outputs:
            if self._cut(y) is not None:
                self.ends[y] = found.place(y).level
        # What needs nothing that is fed or kept is computed wherever it is used.
        self.static: set[Node] = set()
        for node in self.nodes:
            free = not (is_input(node) or node.op.expensive or mentions(node, over))
            if free and node not in self.ends and self.static.issuperset(node.inputs):
                self.static.add(node)
        self.feeds = {}
        for x in inputs:
            cut = found.place(found.enter(x)).cut
            if cut is not None:
                self.feeds[x] = cut.axis

    def split(self) -> Split:
        count = max(self.ends.values(), default=-1) + 1
        rounds = tuple([self._round(r) for r in range(count)])
        meetings = tuple([tuple(map(self._meeting, part.gives)) for part in rounds])
        stages = self._stages(count, rounds)
        where = {n: self._where(n, count) for n in self.nodes if n.inputs}
        return Split(self.over, rounds, stages, meetings, self.feeds, tuple(self.outputs), where)

    def _where(self, node: Node, rounds: int) -> str:
        """The round that computes a node first, or what it comes before or after."""
        found = self.found.places[node]
        level = max(p.level for p in (found if isinstance(found, tuple) else (found,)) if p)
        if node in self.ends:
            return f"round {self.ends[node] + 1}"
        if self._cut(node) is not None:
            return f"round {min(level, rounds - 1) + 1}"
        return f"before round {level + 1}" if level < rounds else "after the last round"

    def _cut(self, node: Node) -> Cut | None:
        place = self.found.places[node]
        places = place if isinstance(place, tuple) else (place,)
        return next((p.cut for p in places if p is not None and p.cut is not None), None)

    def _meeting(self, node: Node) -> Meeting:
        joined = self.found.joined.get(node)
        if joined is not None:
            return Meeting(joined.by)
        cut = self._cut(node)
        assert cut is not None
        return Meeting("concat", cut.axis)

    # ---- pieces -----------------------------------------------------------------------------

    def _round(self, number: int) -> Part:
        """The graph of a piece: what is cut, on the way to what this round computes."""
        gives = tuple([n for n, r in self.ends.items() if r == number])
        pieces = set(gives) | {n for n in self.nodes if self._cut(n) is not None}
        order = topological(gives, known={n for n in self.nodes if n not in pieces})
        given: dict[Node, Node] = {}
        first = placeholder(self._name("first row"), (), "int64")
        numbered = False
        becomes: dict[Node, Node] = {}

        def found(x: Node) -> Node:
            return becomes[x] if x in becomes else self._needed(x, given, becomes)

        for node in order:
            if node in self.feeds:
                given[node] = becomes[node] = node
                continue
            made = rebuild(node, tuple([found(x) for x in node.inputs]))
            with built_as(node.origin):
                if node.op is arange_p.op:
                    made, numbered = self._numbers(node, first), True
                elif node in self.found.local:
                    made, numbered = self._local(node, made, first), True
            becomes[node] = made
        inputs = {x: becomes[x] for x in sorted(given, key=lambda x: x not in self.feeds)}
        own = [first] if numbered else []
        return self._part([becomes[y] for y in gives], inputs, gives, own)

    def _numbers(self, node: Node, first: Node) -> Node:
        """The numbers of a piece, which go on from those of the piece before."""
        (count,) = node.shape
        numbers = arange_p(start=0, step=1, count=count, dtype=first.dtype)
        return astype(numbers + first * self._times(count), node.dtype)

    def _times(self, size: Size) -> Size:
        """How many elements of an axis a row has."""
        times = divide_exactly(size, Dim.of(self.over))
        assert times is not None
        return times

    def _local(self, node: Node, made: Node, first: Node) -> Node:
        """The node, with one operand counted from the first row of the piece."""
        operand = self.found.local[node]
        x, numbers = node.inputs[operand], made.inputs[operand]
        cut = self._cut(x)
        assert cut is not None
        own = numbers - astype(first * self._times(x.shape[cut.axis]), numbers.dtype)
        return rebuild(made, (*made.inputs[:operand], own, *made.inputs[operand + 1 :]))

    def _needed(self, node: Node, given: dict[Node, Node], becomes: dict[Node, Node]) -> Node:
        """The node that a piece reads for a whole one: views and constants it makes itself.

        A view that is smaller than its operand is handed over as it is.
        """
        chain = [node]
        while self._is_wider(chain[-1]):
            chain.append(chain[-1].inputs[0])
        source = chain.pop()
        if source not in becomes:
            if source in self.static:
                becomes[source] = source
            else:
                name = self._name(f"whole {len(given)}")
                given[source] = becomes[source] = placeholder(name, source.shape, source.dtype)
        for view in reversed(chain):
            becomes[view] = rebuild(view, (becomes[view.inputs[0]],))
        return becomes[node]

    def _is_wider(self, node: Node) -> bool:
        if not node.op.view or len(node.inputs) != 1 or node in self.ends:
            return False
        less = node.inputs[0].size
        return node.size == less or (isinstance(less, int) and less <= 1)

    def _name(self, name: str) -> str:
        while name in self.names:
            name += " "
        return name

    # ---- between the rounds -----------------------------------------------------------------

    def _stages(self, rounds: int, parts: Sequence[Part]) -> tuple[Part, ...]:
        whole = [n for n in self.nodes if self._is_computed(n)]
        level = {n: self.found.place(n).level for n in whole if not isinstance(n.type, tuple)}
        for n in whole:
            if isinstance(n.type, tuple):
                places = self.found.places[n]
                assert isinstance(places, tuple)
                level[n] = max(p.level for p in places if p is not None)
        read = {x for part in parts for x in part.given} | set(self.outputs)
        read |= {x for n in whole for x in n.inputs if level.get(x, level[n]) < level[n]}
        return tuple([self._stage(s, level, read) for s in range(rounds + 1)])

    def _is_computed(self, node: Node) -> bool:
        """Whether a node is computed between rounds: whole, but no input and no size."""
        if node in self.ends or self._cut(node) is not None or self._is_static(node):
            return False
        return not (node.op is size_of.op and mentions(node, self.over)) and not is_input(node)

    def _is_static(self, node: Node) -> bool:
        """Whether it is computed where it is used, and no output."""
        return node in self.static and node not in {*self.outputs}

    def _stage(self, number: int, level: Mapping[Node, int], read: set[Node]) -> Part:
        own = {n for n, s in level.items() if s == number}
        gives = tuple([n for n in self.nodes if n in own and n in read])
        order = topological(gives, known={n for n in self.nodes if n not in own})
        given: dict[Node, Node] = {}
        becomes: dict[Node, Node] = {}
        for node in order:
            inputs = []
            for x in node.inputs:
                if x in self.static:
                    becomes[x] = x
                elif x not in becomes:
                    name = self._name(f"value {len(given)}")
                    given[x] = becomes[x] = placeholder(name, x.shape, x.dtype)
                inputs.append(becomes[x])
            becomes[node] = rebuild(node, tuple(inputs))
        return self._part([becomes[y] for y in gives], given, gives, [])

    def _part(
        self,
        outputs: Sequence[Node],
        given: Mapping[Node, Node],
        gives: tuple[Node, ...],
        own: Sequence[Node],
    ) -> Part:
        known = {n for x in given.values() for s in x.shape for n in _names_of(s)}
        graph = Graph(outputs, [*given.values(), *own])
        used = sorted({n for node in graph.nodes for n in _names(node)} - known)
        tell = [placeholder(self._name(f"size of {n}"), (n, 0), "bool") for n in used]
        graph = Graph(outputs, [*given.values(), *own, *tell])
        return Part(graph, tuple(given), gives, tuple(used), bool(own))


def _names_of(size: Size) -> frozenset[str]:
    """The name that an axis of this size tells."""
    return size.names if isinstance(size, Dim) and size == Dim.of(min(size.names)) else frozenset()


def _names(node: Node) -> frozenset[str]:
    attrs: tuple[Any, ...] = tuple(v for _, v in node.attrs)
    inner = (n for body in node.bodies for n in body.nodes)
    return names_in((*types_of(node.type), *attrs)).union(*map(_names, inner))
