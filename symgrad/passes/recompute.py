"""Recomputation: what is kept for long is computed again instead, where memory is short.

The forward computes what the backward reads much later. Where the most is alive at once, what is
next read the furthest away (Belady, IBM Systems Journal 5, 1966) is given up, and computed again
before it is read. From what, a minimum cut tells: the fewest bytes to keep, as in AOTAutograd's
partitioner (He and Yu, MLSys 2023). That is done again and again until the rest fits: chains are
halved, and their halves, as in Griewank and Walther's treeverse (ACM TOMS 26, 2000).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from symgrad.analysis import (
    cheapest_cut,
    is_free,
    memory_order,
    memory_roots,
    nbytes,
    shares_memory,
)
from symgrad.ir.graph import Graph, is_leaf
from symgrad.ir.node import Node, constant_value
from symgrad.ir.origin import Maker
from symgrad.ir.types import TensorType
from symgrad.ops.identity import barrier
from symgrad.rewrite.driver import rebuild

MOST_ROUNDS = 200
RECOMPUTATION = Maker("rewrite", "recomputation")


def recomputed(graph: Graph, memory: int) -> Graph:
    """A graph that computes the same with at most so many bytes alive at once, if that can be.

    At first only what is cheap is computed again, then functions such as exp, then everything but
    a user's own code. Named dimensions count as `dims.GUESS`.
    """
    profile, willing = _Profile(graph), 0
    for _ in range(MOST_ROUNDS):
        if profile.most <= memory or willing > 2:
            break
        found = map(_Profile, _with_less(profile, memory, willing))
        better = next((p for p in found if p.area < profile.area), None)
        if better is None:
            willing += 1
        else:
            profile = better
    return profile.graph


def most_alive(graph: Graph) -> int:
    """The bytes that are alive at the fullest moment, also in loops.

    Inputs, variables and constants are left out.
    """
    return _Profile(graph).most


class _Profile:
    """When each value of a graph is computed and read, and how many bytes are alive when."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = nodes = memory_order(graph)
        # The node in whose memory each lies; and for such a one the positions at which it is read.
        self.root = memory_roots(nodes)
        self.reads: dict[Node, list[int]] = {n: [] for n in nodes}
        self.alive: list[int] = []
        position = {n: i for i, n in enumerate(nodes)}
        for i, node in enumerate(nodes):
            for x in () if shares_memory(node) or is_free(node) else node.inputs:
                self.reads[self.root[x]].append(i)
        for y in graph.outputs:
            self.reads[self.root[y]].append(len(nodes))
        change = [0] * (len(nodes) + 2)
        for node, reads in self.reads.items():
            if reads and self.root[node] is node and not is_leaf(node):
                made = position[node.inputs[0] if is_free(node) else node]
                # A result is the caller's, and there from the beginning.
                change[0 if reads[-1] == len(nodes) else made] += nbytes(node)
                change[reads[-1] + 1] -= nbytes(node)
        for node in nodes:
            inner = max((most_alive(Graph(b.outputs, b.inputs)) for b in node.bodies), default=0)
            change[position[node]] += inner
            change[position[node] + 1] -= inner
        total = 0
        for step in change:
            total += step
            self.alive.append(total)

    @property
    def most(self) -> int:
        """The bytes alive at the fullest moment."""
        return max(self.alive)

    @property
    def area(self) -> tuple[int, int]:
        """The peak that has to shrink: its bytes, and at how many steps it is reached."""
        return self.most, self.alive.count(self.most)

    def next_read(self, node: Node, after: int) -> int | None:
        """Where a value is read next."""
        reads = self.reads[node]
        i = bisect_right(reads, after)
        return reads[i] if i < len(reads) else None


def _with_less(profile: _Profile, memory: int, willing: int) -> Iterator[Graph]:
    """Graphs with less alive at the fullest moment, though perhaps with more at another.

    First half of what waits there is given up, or as much as there is too much; then less of it.
    """
    full = profile.alive.index(profile.most)
    waiting = sorted((p, i) for i, p in _waiting(profile, full, willing))
    share = min(profile.most - memory, sum(nbytes(profile.nodes[i]) for _, i in waiting) // 2)
    while waiting and share > 0:
        given_up, taken = set[Node](), 0
        furthest = iter(reversed(waiting))
        while taken < share:
            wanted, i = next(furthest)
            given_up.add(profile.nodes[i])
            taken += nbytes(profile.nodes[i])
        found = _without(profile, full, given_up, wanted, willing)
        if found is not None:
            yield found
        share = 0 if len(given_up) == 1 else share // 2


def _without(
    profile: _Profile, full: int, given_up: set[Node], wanted: int, willing: int
) -> Graph | None:
    """The graph in which nodes alive at a moment are computed again at another; None if not."""

    def cost(node: Node) -> float:
        if profile.root[node] is not node or not _is_one(node):
            return float("inf")
        reads = profile.reads[node]
        there = is_leaf(node) or (bool(reads) and reads[-1] >= wanted and node not in given_up)
        return 0 if there else nbytes(node)

    def operands(node: Node) -> list[Node] | None:
        return _sources(node) if _computable(node, willing) else None

    keep = cheapest_cut(given_up, operands, cost)
    return _written(profile, full, _between(given_up, keep), given_up - keep)


def _waiting(profile: _Profile, full: int, willing: int) -> Iterator[tuple[int, int]]:
    """Which nodes are alive at a moment only to be read later, and where they are read next."""
    end = len(profile.nodes)
    for i, node in enumerate(profile.nodes[:full]):
        reads = profile.reads[node]
        if profile.root[node] is node and _computable(node, willing) and full not in reads:
            then = profile.next_read(node, full)
            if then is not None and reads[-1] < end:
                yield i, then


def _computable(node: Node, willing: int) -> bool:
    op = node.op
    if op.opaque or op.identity or is_leaf(node):
        return False
    return willing > 1 or ((op.elementwise or op.view) and (willing > 0 or not op.expensive))


def _sources(node: Node) -> list[Node]:
    """The operands of a node, whatever they wait for."""
    return [x.inputs[0] if x.op.barrier else x for x in node.inputs]


def _between(targets: Iterable[Node], keep: set[Node]) -> set[Node]:
    """The nodes to be computed again for the targets, from what is kept."""
    found: set[Node] = set()
    pending = list(targets)
    while pending:
        node = pending.pop()
        if node not in keep and node not in found and not is_leaf(node):
            found.add(node)
            pending += _sources(node)
    return found


def _written(profile: _Profile, full: int, again: set[Node], given_up: set[Node]) -> Graph | None:
    """The graph in which what comes after a moment reads copies of the nodes given up.

    The copies wait for what their first reader reads besides, so that they are made no earlier.
    """
    nodes, root = profile.nodes, profile.root
    early, late = nodes[: full + 1], nodes[full + 1 :]
    stale = {n for n in early if n in again or root[n] in given_up}
    replaced = {n for n in stale if root[n] in given_up}
    after = set(late)
    depends: set[Node] = set()
    controls: list[Node] = []
    for node in late:
        if any(x in replaced or x in depends for x in node.inputs):
            controls = [x for x in node.inputs if x in after and x not in depends and _is_one(x)]
            depends.add(node)
            if controls:
                break
    if not controls:
        return None
    becomes: dict[Node, Node] = {}

    def again_of(x: Node) -> Node:
        if x in stale or constant_value(x) is not None or not _is_one(x):
            return becomes.get(x, x)
        return becomes.setdefault(x, barrier(x, *controls))

    for node in early:
        if node in stale:
            inputs = tuple(map(again_of, _sources(node)))
            origin = node.origin.then(RECOMPUTATION)
            becomes[node] = Node(node.op, inputs, node.attrs, node.type, origin)
    copies = {n: becomes[n] for n in replaced}
    for node in late:
        copies[node] = rebuild(node, tuple(copies.get(x, x) for x in node.inputs))
    return Graph((copies.get(y, y) for y in profile.graph.outputs), profile.graph.inputs)


def _is_one(node: Node) -> bool:
    return isinstance(node.type, TensorType)
