"""The minimum cut of a network, by Dinic's algorithm.

networkx has it, too, and takes longer to import than most programs take to compile.
"""

from __future__ import annotations

from collections import deque
from math import inf


class Network:
    """Vertices, which are numbers from 0 on, and edges with capacities."""

    def __init__(self) -> None:
        self._edges: list[list[int]] = []  # by vertex, those that leave it
        self._end: list[int] = []  # by edge
        self._left: list[float] = []  # what may still flow; edge e ^ 1 is edge e backwards

    def add(self, start: int, end: int, capacity: float = inf) -> None:
        while len(self._edges) <= max(start, end):
            self._edges.append([])
        for a, b, c in ((start, end, capacity), (end, start, 0)):
            self._edges[a].append(len(self._end))
            self._end.append(b)
            self._left.append(c)

    def behind(self, source: int, sink: int) -> set[int]:
        """The vertices on the sink's side of a minimum cut, as few as there can be.

        Raises `ValueError` where only infinite capacities join the two.
        """
        while source in (distance := self._distances(sink)):
            self._fill_paths(source, sink, distance)
        return set(distance)

    def _distances(self, sink: int) -> dict[int, int]:
        """The number of edges on the way to the sink, of all vertices from which more may flow."""
        found, pending = {sink: 0}, deque([sink])
        while pending:
            v = pending.popleft()
            for e in self._edges[v]:
                u = self._end[e]
                if u not in found and self._left[e ^ 1] > 0:
                    found[u] = found[v] + 1
                    pending.append(u)
        return found

    def _fill_paths(self, source: int, sink: int, distance: dict[int, int]) -> None:
        """Let flow as much as may along shortest paths, until none is left (a blocking flow)."""
        tried = [0] * len(self._edges)  # by vertex, how many of its edges lead nowhere
        path, v = list[int](), source
        while True:
            if v == sink:
                amount = min(self._left[e] for e in path)
                if amount == inf:
                    raise ValueError("only infinite capacities join the source and the sink")
                for e in path:
                    self._left[e] -= amount
                    self._left[e ^ 1] += amount
                path, v = [], source
            while tried[v] < len(self._edges[v]):
                e = self._edges[v][tried[v]]
                u = self._end[e]
                if self._left[e] > 0 and distance.get(u) == distance[v] - 1:
                    path.append(e)
                    v = u
                    break
                tried[v] += 1
            else:
                if not path:
                    return
                v = self._end[path.pop() ^ 1]
                tried[v] += 1
