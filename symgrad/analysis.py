"""Floor 2: questions about graphs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from symgrad.ir.dims import guess
from symgrad.ir.flow import Network
from symgrad.ir.graph import is_leaf
from symgrad.ir.networks import networkx
from symgrad.ir.node import Node
from symgrad.ir.types import TensorType
from symgrad.ir.walk import GraphLike

# A result that takes so small a part of an operand of so many bytes is made at once.
SMALL, LARGE = 8, 2**16
FEW = 8  # readers, of which all but one may be masks


def nbytes(node: Node) -> int:
    """The bytes of all that a node computes; a named dimension counts as `dims.GUESS`."""
    if isinstance(node.type, tuple):
        return sum([guess(t.size) * t.dtype.itemsize for t in node.type])
    return guess(node.type.size) * node.type.dtype.itemsize


def _nbytes_of_all(nodes: Iterable[Node]) -> dict[Node, int]:
    """The bytes of each; many are of one type, which is asked once."""
    by_type: dict[int, int] = {}
    found: dict[Node, int] = {}
    for node in nodes:
        key = id(node.type)
        if key not in by_type:
            by_type[key] = nbytes(node)
        found[node] = by_type[key]
    return found


def shares_memory(node: Node) -> bool:
    """Whether what a node gives lies in the memory of its first operand."""
    return bool(node.inputs) and (node.op.view or node.op.identity)


def is_free(node: Node) -> bool:
    """Whether a node only shows, or picks, what its operand has computed."""
    return node.op.view or node.op.of_several


def memory_roots(nodes: Iterable[Node]) -> dict[Node, Node]:
    """For each of some nodes, given after their operands, the one in whose memory it lies."""
    root: dict[Node, Node] = {}
    for node in nodes:
        root[node] = root[node.inputs[0]] if shares_memory(node) else node
    return root


def memory_order(graph: GraphLike) -> list[Node]:
    """The nodes in an order in which little is alive at once: operands first, depth first.

    But whatever frees at least as much as it takes comes as soon as it can: the gradient of a
    layer's weights is computed before the gradient goes on to the layer below. So does what is
    small beside a large operand, which then waits for it no longer. A mask is made when its reader
    is, or when no other reader of its operand is left. Views come right before their
    first reader. Linear in the graph.
    """
    return _Orderer(graph).order


class _Orderer:
    def __init__(self, graph: GraphLike) -> None:
        self.root = root = memory_roots(graph.nodes)
        self.position = {n: i for i, n in enumerate(graph.nodes)}
        self.nbytes = _nbytes_of_all(graph.nodes)
        # In whose memory lies what a node reads.
        self.reads: dict[Node, set[Node]] = {}
        # Readers of memory, of which the last one frees it; and readers of results, that wait.
        self.holds: dict[Node, set[Node]] = {n: set() for n in graph.nodes}
        self.waiting: dict[Node, list[Node]] = {n: [] for n in graph.nodes}
        # What a node waits for, but for those that are free, which nobody waits for.
        self.missing: dict[Node, int] = {}
        behind: dict[Node, Node] = {}
        for node in graph.nodes:
            inputs = node.inputs
            self.reads[node] = reads = {root[x] for x in inputs}
            if is_free(node):
                behind[node] = behind[inputs[0]]
                continue
            behind[node] = node
            sources = {behind[x] for x in inputs if not is_leaf(x)}
            self.missing[node] = len(sources)
            for x in sources:
                self.waiting[x].append(node)
            if not shares_memory(node):
                for x in reads:
                    self.holds[x].add(node)
        self.kept = {self.root[y] for y in graph.outputs}
        self._keep_what_becomes_kept(graph)
        self.order: list[Node] = []
        self.done: set[Node] = set()
        self.late = {n for n in self.missing if self._is_mask(n)}
        for node in tuple(self.missing):
            if node not in self.late:
                self._run(node)
        for node in graph.nodes:
            self._emit(node)

    def _keep_what_becomes_kept(self, graph: GraphLike) -> None:
        """Count as kept what a result is written over: it lies where that comes to lie."""
        for node in reversed(graph.nodes):
            for k in node.op.storage.in_place if node in self.kept else ():
                x = node.inputs[k] if k < len(node.inputs) else node
                if x.inputs and x.type == node.type and self.holds[x] == {node}:
                    self.kept.add(x)
                    break

    def _emit(self, node: Node) -> None:
        """Append a node, after the views and items that it reads."""
        if node in self.done:
            return
        pending = [node]
        while pending:
            node = pending[-1]
            if node not in self.done:
                views = [x for x in node.inputs if x not in self.done]
                if views:
                    pending += reversed(views)
                    continue
                self.done.add(node)
                self.order.append(node)
            pending.pop()

    def _is_mask(self, node: Node) -> bool:
        """Whether a node says yes or no of what others may still read, element by element."""
        is_bool = isinstance(node.type, TensorType) and node.type.dtype == bool
        return is_bool and node.op.elementwise and node not in self.kept

    def _run(self, node: Node) -> None:
        pending = [node]
        while pending:
            node = pending.pop()
            if node in self.done:
                continue
            if self.late and (masks := self._masks_behind(node)):
                pending += [node, *masks]
                continue
            self._emit(node)
            candidates = set(self.waiting[node])
            for reader in self.waiting[node]:
                self.missing[reader] -= 1
            for x in self.reads[node]:
                holds = self.holds[x]
                holds.discard(node)
                if len(holds) == 1:
                    candidates |= holds
            ready = [r for r in candidates if not self.missing[r] and self._frees(r)]
            if len(ready) > 1:
                ready.sort(key=self._turn, reverse=True)
            for r in ready:
                pending += [r, *sorted(self._masks_beside(r), key=self.position.__getitem__)]

    def _turn(self, node: Node) -> tuple[bool, int]:
        """The order of nodes that make room: those first that take none."""
        return node not in self.kept, self.position[node]

    def _masks_behind(self, node: Node) -> list[Node]:
        """The masks to be made that a node reads, behind views and items."""
        found = []
        for x in node.inputs:
            while is_free(x):
                x = x.inputs[0]
            if x in self.late and x not in self.done:
                found.append(x)
        return found

    def _masks_beside(self, node: Node) -> set[Node]:
        """The masks without which this node would be the last reader of what it reads."""
        found = set[Node]()
        for x in self.reads[node] if self.late else ():
            if len(self.holds[x]) <= FEW:
                others = self.holds[x] - {node}
                if others <= self.late and not any(self.missing[m] for m in others):
                    found |= others
        return found

    def _frees(self, node: Node) -> bool:
        """Whether a node makes room by being computed, or takes next to none.

        Masks beside it are made, too, and room for them is taken.
        """
        roots, kept, nbytes = self.reads[node], self.kept, self.nbytes
        if node in kept and any(x.inputs and x in kept for x in roots):
            return True
        masks = self._masks_beside(node) if node not in self.late else set()
        freed, largest = -sum([nbytes[m] for m in masks]), 0
        for x in roots:
            holds = self.holds[x]
            if x.inputs and node in holds and x not in kept:
                alone = len(holds) <= 1 + len(masks) and holds - masks == {node}
                freed += nbytes[x] if alone else 0
                largest = max(largest, nbytes[x])
        if largest >= LARGE and nbytes[node] * SMALL <= largest:
            return True
        if freed <= 0 or shares_memory(node) or node in kept:
            return freed > 0
        return freed >= nbytes[node]


def loops(edges: Iterable[tuple[Hashable, Hashable]]) -> list[set[Any]]:
    """The strongly connected components of two or more of the ends of edges, as sets."""
    nx = networkx()

    found = nx.strongly_connected_components(nx.DiGraph(edges))
    return [loop for loop in found if len(loop) > 1]


def cheapest_cut(
    targets: Iterable[Node],
    operands: Callable[[Node], Iterable[Node] | None],
    cost: Callable[[Node], float],
) -> set[Node]:
    """The nodes to keep so that the targets can be computed again, for the least cost in all.

    `operands` tells from what a node can be computed again, None if it cannot be; `cost` is what it
    costs to keep it. An infinite cost means that it cannot be kept; there must be another way then.
    """
    # Each node is an edge, which costs as much to cut as to keep the node.
    source, sink = 0, 1
    network = Network()
    begun = False
    start: dict[Node, int] = {}
    pending = list(targets)

    def vertex(node: Node) -> int:
        return start.setdefault(node, 2 * len(start) + 2)

    for node in pending:
        network.add(vertex(node) + 1, sink)
    entered: set[Node] = set()
    while pending:
        node = pending.pop()
        if node in entered:
            continue
        entered.add(node)
        i = vertex(node)
        network.add(i, i + 1, cost(node))
        sources = operands(node)
        if sources is None:
            network.add(source, i)
            begun = True
        for x in sources or ():
            network.add(vertex(x) + 1, i)
            pending.append(x)
    if not begun:
        return set()
    behind = network.behind(source, sink)
    return {n for n, i in start.items() if i not in behind and i + 1 in behind}
