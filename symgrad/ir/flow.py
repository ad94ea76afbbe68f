"""The minimum cut of a network, by the push-relabel method.

networkx has it, too, and takes longer to import than most programs take to compile.

A. V. Goldberg, R. E. Tarjan, A new approach to the maximum-flow problem, Journal of the ACM 35
(1988), with the vertex of the highest label first, exact labels from time to time, and gaps, after
B. V. Cherkassky, A. V. Goldberg, On implementing the push-relabel method for the maximum flow
problem, Algorithmica 19 (1997). Only its first half, which finds the cut.
"""

from __future__ import annotations

from collections import Counter, deque
from heapq import heapify, heappop, heappush
from math import inf


class Network:
    """Vertices, which are numbers from 0 on, and edges with capacities."""

    def __init__(self) -> None:
        self.edges: list[list[int]] = []  # by vertex, those that leave it
        self.end: list[int] = []  # by edge
        self.capacity: list[float] = []  # by edge; edge e ^ 1 is edge e backwards

    def add(self, start: int, end: int, capacity: float = inf) -> None:
        while len(self.edges) <= max(start, end):
            self.edges.append([])
        for a, b, c in ((start, end, capacity), (end, start, 0)):
            self.edges[a].append(len(self.end))
            self.end.append(b)
            self.capacity.append(c)

    def behind(self, source: int, sink: int) -> set[int]:
        """The vertices on the sink's side of a minimum cut, as few as there can be.

        Raises `ValueError` where only infinite capacities join the two.
        """
        return _Preflow(self, source, sink).behind()


class _Preflow:
    """A flow on its way: of a vertex, more may come in than goes out, which is its excess.

    An upper bound of what can flow stands for infinity. The label of a vertex is at most the number
    of edges on its way to the sink along which more may flow, or the number of all vertices.
    """

    def __init__(self, network: Network, source: int, sink: int) -> None:
        self.edges, self.end, self.source, self.sink = network.edges, network.end, source, sink
        self.most = 1 + sum(c for c in network.capacity if c != inf)
        self.left = [min(c, self.most) for c in network.capacity]
        self.excess: list[float] = [0] * len(self.edges)
        for e in self.edges[source]:
            self.push(e, self.left[e])
        self.relabel_all()

    def behind(self) -> set[int]:
        while self.active:
            vertex = heappop(self.active)[1]
            self.discharge(vertex)
            if self.relabelled > len(self.edges):
                self.relabel_all()
        if self.excess[self.sink] >= self.most:
            raise ValueError("only infinite capacities join the source and the sink")
        return set(self.distances())

    def distances(self) -> dict[int, int]:
        """The number of edges on the way to the sink, of all vertices from which more may flow."""
        found, pending = {self.sink: 0}, deque([self.sink])
        while pending:
            v = pending.popleft()
            for e in self.edges[v]:
                u = self.end[e]
                if self.left[e ^ 1] > 0 and u not in found and u != self.source:
                    found[u] = found[v] + 1
                    pending.append(u)
        return found

    def relabel_all(self) -> None:
        """Make all labels exact. Those that cannot reach the sink are done with."""
        count, found = len(self.edges), self.distances()
        self.label = [found.get(v, count) for v in range(count)]
        self.with_label = Counter(self.label)
        self.tried = [0] * count  # by vertex, how many of its edges lead nowhere
        self.active = [(-d, v) for v, d in found.items() if self.excess[v] > 0 and v != self.sink]
        heapify(self.active)
        self.relabelled = 0

    def push(self, e: int, amount: float) -> None:
        self.left[e] -= amount
        self.left[e ^ 1] += amount
        self.excess[self.end[e]] += amount

    def discharge(self, v: int) -> None:
        """Push the excess of a vertex to those below it, and lift it where there are none."""
        label, left = self.label, self.left
        while self.excess[v] > 0 and label[v] < len(label):
            if self.tried[v] == len(self.edges[v]):
                self.lift(v)
                continue
            e = self.edges[v][self.tried[v]]
            u = self.end[e]
            if left[e] > 0 and label[u] == label[v] - 1:
                amount = min(self.excess[v], left[e])
                if not self.excess[u] and u != self.sink:
                    heappush(self.active, (-label[u], u))
                self.push(e, amount)
                self.excess[v] -= amount
            else:
                self.tried[v] += 1

    def lift(self, v: int) -> None:
        """Raise a label to one more than the lowest one to which more may flow."""
        label, old, top = self.label, self.label[v], len(self.label)
        self.with_label[old] -= 1
        if self.with_label[old]:
            below = [label[self.end[e]] for e in self.edges[v] if self.left[e] > 0]
            label[v] = min(min(below, default=top) + 1, top)
        else:  # nothing above a gap can reach the sink
            label[v] = top
            if self.with_label[old + 1]:
                label[:] = [top if d > old else d for d in label]
                self.with_label = Counter(label)
        self.with_label[label[v]] += 1
        self.tried[v] = 0
        self.relabelled += 1
