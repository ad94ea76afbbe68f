"""Fusion: what works row by row on the same rows becomes one node with an inner graph.

A run of ops that make each row of their results of the same rows of their operands (`ops.rows`)
can be computed tile by tile, and what stays inside is neither written nor read. A reduction over
the rows themselves ends a group: its result is complete when all rows are done.

Every node gets a stage, which rises along every edge that cannot be inside a group; nodes of one
stage that such edges do not part are a group. So no cycle can arise. All is linear in the graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from symgrad.analysis import nbytes
from symgrad.ir.graph import Graph, is_leaf
from symgrad.ir.leaf_ops import CONSTANT, PLACEHOLDER
from symgrad.ir.node import Node, leaf
from symgrad.ir.origin import Maker
from symgrad.ir.types import TensorType
from symgrad.ir.walk import GraphLike
from symgrad.ops.fused import fused
from symgrad.ops.index.slices import place, put
from symgrad.ops.rows import is_row_source, keeps_rows, rows, works_by_rows
from symgrad.ops.shape import item
from symgrad.rewrite.driver import rebuild
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace

PLACING = (place.op, put.op)
FUSION = Maker("rewrite", "fusion")


class Why(Enum):
    """The reasons why two nodes, of which one reads the other, are not in one group."""

    SUM = "a reduction over the rows is complete only when the last row is done"
    PRODUCT = "a product is one call of a library, which needs all rows"
    KERNEL = "its kernel does not make one row after the other"
    ROWS = "a row of it is not made of the same row"
    NUMBER = "it has no rows"
    VIEW = "a view, which costs nothing outside"
    GRADE = "in tiles it would round otherwise, which the grade forbids"
    LATER = "another operand is made only in between"


class End(NamedTuple):
    """Where a group ends: a node inside, the operand or reader outside, and why that is outside.

    `outside` is None where the node itself ends the group, whoever reads it; the node `reads` an
    operand.
    """

    inside: Node
    outside: Node | None
    why: Why
    reads: bool = False


class GroupLimit(NamedTuple):
    """Where a group begins, if it `reads`, or ends: the node `at` it, those behind that, and why.

    `at` is the operand that it reads, or the node inside with which it ends; `others` are those
    outside that read this.
    """

    reads: bool
    at: Node | None
    others: tuple[Node, ...]
    why: Why


class Group(Graph):
    """The inner graph of a group, which knows where it ends, and why there."""

    __slots__ = ("ends",)
    ends: tuple[End, ...]

    def __init__(
        self, outputs: Iterable[Node], inputs: Iterable[Node], ends: Iterable[End]
    ) -> None:
        super().__init__(outputs, inputs)
        object.__setattr__(self, "ends", tuple(ends))

    def bounds(self) -> tuple[GroupLimit, ...]:
        """Where it begins, then where it ends: those of one node for one reason are one bound."""
        found: dict[tuple[bool, Node | None, Why], dict[Node, None]] = {}
        for end in sorted(self.ends, key=lambda end: not end.reads):
            at = end.outside if end.reads else end.inside
            others = found.setdefault((end.reads, at, end.why), {})
            if not end.reads and end.outside is not None:
                others[end.outside] = None
        return tuple(GroupLimit(reads, at, (*o,), why) for (reads, at, why), o in found.items())


def fusion(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """Compute neighbouring ops in one pass, tile by tile: what lies between stays in the cache.

    A `fused` node stands for each group in which two ops or more compute something.
    """
    return with_groups(graph, exact)


def with_groups(
    graph: Graph,
    exact: Exact,
    admits: Callable[[Node], bool] = lambda node: True,
    placing: bool = False,
) -> Graph:
    """The graph with groups of those nodes fused that are admitted.

    If they are `placing`, what is placed somewhere in an array is made in the group that reads it.
    """
    if not any(rows(n.type) for n in graph.nodes):
        return graph
    groups = _Groups(graph, exact, admits, placing)
    found = list(groups.found())
    if not found:
        return graph
    group_of = {n: members for members in found for n in members}
    becomes: dict[Node, Node] = {}
    doors: dict[Any, Node] = {}
    for node in groups.in_order(group_of):
        if node in becomes:
            continue
        if node in group_of:
            _fuse(group_of[node], groups, becomes, doors)
        else:
            becomes[node] = rebuild(node, tuple(map(becomes.__getitem__, node.inputs)))
    return graph.giving(becomes[y] for y in graph.outputs)


def group_of_one(node: Node) -> Group:
    """The inner graph of a group in which one op computes something."""
    numbers = {x: x for x in node.inputs if x.op is CONSTANT and x.ndim == 0}
    given = [x for x in dict.fromkeys(node.inputs) if x not in numbers]
    inputs = [leaf(PLACEHOLDER, x.tensor, name=f"p{i}") for i, x in enumerate(given)]
    own = numbers | dict(zip(given, inputs, strict=True))
    return Group([rebuild(node, tuple(map(own.__getitem__, node.inputs)))], inputs, ())


def with_groups_of_one(graph: Graph, groups: Mapping[Node, Group]) -> Graph:
    """The graph with groups in the places of nodes, as `group_of_one` makes them."""
    becomes: dict[Node, Node] = {}
    for node in graph.nodes:
        if node in groups:
            given = dict.fromkeys(x for x in node.inputs if not (x.op is CONSTANT and x.ndim == 0))
            operands = tuple(map(becomes.__getitem__, given))
            body = (("graph", groups[node]),)
            becomes[node] = Node(fused.op, operands, body, node.type, node.origin.then(FUSION))
        else:
            becomes[node] = rebuild(node, tuple(map(becomes.__getitem__, node.inputs)))
    return graph.giving(becomes[y] for y in graph.outputs)


def without_sources(graph: GraphLike) -> Graph:
    """A group's inner graph with groups of all but what is drawn, which NumPy draws as a whole."""
    whole = Graph(graph.outputs, graph.inputs)
    return with_groups(whole, Exact.ROUNDING, lambda node: not is_row_source(node))


def taken_apart(graph: Graph, chosen: Callable[[Graph], bool]) -> Graph:
    """The graph with the groups written out whose inner graph is chosen."""
    becomes: dict[Node, Node] = {}
    parts: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        inner = node.inner_graph
        if node.op.of_several and node.inputs[0] in parts:
            becomes[node] = parts[node.inputs[0]][node.attr("index")]
        elif isinstance(inner, Graph) and chosen(inner):
            from symgrad.ops.loops.loop import substituted

            given = (becomes[x] for x in node.inputs)
            parts[node] = substituted(inner.outputs, dict(zip(inner.inputs, given, strict=True)))
            becomes[node] = parts[node][0]
        else:
            becomes[node] = rebuild(node, tuple(becomes[x] for x in node.inputs))
    return graph.giving(becomes[y] for y in graph.outputs) if parts else graph


class _Groups:
    def __init__(
        self, graph: Graph, exact: Exact, admits: Callable[[Node], bool], placing: bool
    ) -> None:
        self.graph, self.admits = graph, admits
        self.placing = PLACING if placing else ()
        # A reduction that is done tile by tile rounds in another order, as a product of matrices
        # may, or a sum within rows that are not contiguous, for other numbers of rows.
        self.ends_join = exact >= Exact.ROUNDING
        self.outputs = frozenset(graph.outputs)
        self.readers: dict[Node, list[Node]] = defaultdict(list)
        # Per node those before it with which it can be in one group.
        self.near: dict[Node, set[Node]] = {}
        self.joining: set[Node] = set()
        self.ends: dict[Node, None] = {}
        self.last: set[Node] = set()
        self.stage: dict[Node, int] = {}
        for node in graph.nodes:
            self._enter(node)
        # The last stage in which a value is read by what is no view of it.
        self.until: dict[Node, int] = defaultdict(int)
        for node in reversed(graph.nodes):
            read = self.until[node] if node.op.view else self.stage[node]
            for x in node.inputs:
                if read > self.until[x]:
                    self.until[x] = read
        for node in reversed(graph.nodes):
            self._defer(node)
        for node in self.ends:
            self._read_along(node)

    def _enter(self, node: Node) -> None:
        """Give a node the earliest stage that there is for it."""
        near: set[Node] = set()
        if not node.inputs:
            pass
        elif node.op.view and all(self.stage[x] < 0 for x in node.inputs):
            self.stage[node] = -1  # there from the start, as what it shows is
        elif (
            (works_by_rows(node) or node.op in self.placing)
            and self.admits(node)
            and (self.ends_join or node.op.elementwise or node.op.view or self._begins(node))
        ):
            self.joining.add(node)
            beside = [x for x in node.inputs if self._keeps(x, node)]
            if not beside and node.op.combiner:
                self.ends[node] = None
                beside = [*node.inputs]
            elif not beside and not self._begins(node):
                self.joining.remove(node)
            near = {x for x in beside if x in self.joining and x not in self.ends}
        stage = 0
        for x in node.inputs:
            self.readers[x].append(node)
            stage = max(stage, self.stage[x] + (x not in near))
        self.near[node] = near
        # Indices and numbers are made of leaves before all else: no part of a group waits for them.
        t = node.type
        is_light = isinstance(t, TensorType) and (t.dtype.kind in "iu" or not t.ndim)
        first = is_leaf(node) or (is_light and stage == 0 and node not in self.joining)
        self.stage.setdefault(node, -1 if first else stage)

    def _begins(self, node: Node) -> bool:
        """Whether rows of a node can be made alone, of no rows."""
        return node.op in self.placing or is_row_source(node)

    def _keeps(self, x: Node, node: Node) -> bool:
        """Whether each row of a node is made of the same row of an operand, and of it alone."""
        if node.op in self.placing:
            return node.op is put.op and x is node.inputs[0] is not node.inputs[1]
        return keeps_rows(x, node)

    def _defer(self, node: Node) -> None:
        """Let a node join readers at a later stage, if what it reads is to be had there anyway.

        It is then neither written nor read. The mask of an activation, of a fourth of the bytes, is
        better made early. A view is made where it is read.
        """
        readers = self.readers[node]
        if node in self.outputs or not readers or node not in self.joining or node in self.ends:
            return
        stage = min(self.stage[r] - (node not in self.near[r]) for r in readers)
        if stage <= self.stage[node]:
            return
        if not node.op.view:
            if any(node not in self.near[r] for r in readers):
                return
            kept = sum([nbytes(x) for x in {*node.inputs} if not self._lasts(x, node)])
            if kept >= nbytes(node):
                return
        self.stage[node] = stage

    def _read_along(self, node: Node) -> None:
        """Let a reduction over the rows join a group that reads what it reads."""
        readers = [self.stage[r] for r in self.readers[node]]
        last = min(readers) - 1 if readers else self.stage[node]
        for x in () if self.near[node] else node.inputs:
            for other in self.readers[x]:
                in_time = self.stage[node] <= self.stage[other] <= last
                if other in self.ends or not in_time or other.op.view:
                    continue
                if other in self.joining and self._keeps(x, other):
                    self.stage[node] = self.stage[other]
                    self.near[node] = {other}
                    return

    def _lasts(self, x: Node, node: Node) -> bool:
        """Whether an operand is kept for others than a node, or can move along with it."""
        if is_leaf(x) or x in self.outputs or self.until[x] > self.stage[node] + 1:
            return True
        return x in self.near[node] and all(r is node for r in self.readers[x])

    def apart(self, x: Node, node: Node) -> Why:
        """The reason why a node is not in one group with an operand that is no leaf."""
        if x in self.ends:
            return Why.SUM
        for alone in (n for n in (x, node) if n not in self.joining):
            return self._alone(alone)
        if x not in self.near[node]:
            return Why.ROWS
        return Why.VIEW if x.op.view or node.op.view else Why.LATER

    def _alone(self, node: Node) -> Why:
        """The reason why a node is in no group at all."""
        if node.op.view or node.op.identity:
            return Why.VIEW
        if node.op.bilinear and not node.op.elementwise:
            return Why.PRODUCT
        if not works_by_rows(node):
            return Why.KERNEL
        if not rows(node.type):
            return Why.NUMBER
        return Why.ROWS if self.ends_join or node.op.elementwise else Why.GRADE

    def ends_of(self, members: Sequence[Node], inner: Mapping[Node, Node]) -> Iterator[End]:
        """Where a group ends, and why, its members as those that stand for them in it."""
        own = set(members)
        for node in members:
            for x in dict.fromkeys(node.inputs):
                if x not in own and not is_leaf(x):
                    yield End(inner[node], x, self.apart(x, node), reads=True)
            if node in self.ends:
                yield End(inner[node], None, Why.SUM)
                continue
            for reader in dict.fromkeys(self.readers[node]):
                if reader not in own:
                    yield End(inner[node], reader, self.apart(node, reader))

    def found(self) -> Iterator[list[Node]]:
        """The groups of two ops or more that compute; members in order."""
        root: dict[Node, Node] = {}

        def find(node: Node) -> Node:
            while (up := root.setdefault(node, node)) is not node:
                root[node] = node = root[up]
            return node

        for node, near in self.near.items():
            for x in near:
                if self.stage[x] == self.stage[node]:
                    root[find(x)] = find(node)
        members: dict[Node, list[Node]] = defaultdict(list)
        for node in self.graph.nodes:
            if node in root:
                members[find(node)].append(node)
        for group in members.values():
            kept = self._without_outer_views(group)
            if sum(not n.op.view for n in kept) > 1:
                yield kept

    def _without_outer_views(self, group: Sequence[Node]) -> list[Node]:
        """A group without the views at its ends: they cost nothing where they are."""
        inside = set(group)
        for node in group:
            if node.op.view and inside.isdisjoint(node.inputs):
                inside.remove(node)
        for node in reversed(group):
            if node in inside and node.op.view and inside.isdisjoint(self.readers[node]):
                inside.remove(node)
                self.last.add(node)
        return [n for n in group if n in inside]

    def in_order(self, group_of: Mapping[Node, list[Node]]) -> list[Node]:
        """All nodes, so that what any member of a group reads comes before its first member.

        At the stage of a group there are besides only the views that were at its ends.
        """
        place = {
            n: (self.stage[n], 2 if n in self.last else n in group_of, i)
            for i, n in enumerate(self.graph.nodes)
        }
        return sorted(self.graph.nodes, key=place.__getitem__)


def _fuse(
    members: list[Node], groups: _Groups, becomes: dict[Node, Node], doors: dict[Any, Node]
) -> None:
    """Put one node for a group; its inner placeholders are called p0, p1, … in order of use.

    Groups share them (`doors`).
    """
    own = set(members)
    inner: dict[Node, Node] = {}
    operands: list[Node] = []
    for node in members:
        for x in node.inputs:
            if x in own or x in inner:
                continue
            if x.op is CONSTANT and x.ndim == 0:
                inner[x] = x
            else:
                key = len(operands), x.tensor
                if key not in doors:
                    doors[key] = leaf(PLACEHOLDER, x.tensor, name=f"p{key[0]}")
                inner[x] = doors[key]
                operands.append(becomes[x])
        inner[node] = rebuild(node, tuple(map(inner.__getitem__, node.inputs)))
    read = [n for n in members if n in groups.outputs or not own.issuperset(groups.readers[n])]
    inputs = [n for n in inner.values() if n.op is PLACEHOLDER]
    graph = Group([inner[n] for n in read], inputs, groups.ends_of(members, inner))
    body = (("graph", graph),)
    origin = read[0].origin.merged(n.origin for n in members).then(FUSION)
    types = tuple(n.tensor for n in read)
    several = len(read) > 1
    whole = Node(fused.op, tuple(operands), body, types if several else types[0], origin)
    becomes.update(dict.fromkeys(members, whole))
    for i, node in enumerate(read if several else ()):
        becomes[node] = Node(item.op, (whole,), (("index", i),), types[i], node.origin)
