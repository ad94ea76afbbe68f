"""Whose the nodes of an update are: the parameter that they compute the next value of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import TypeAlias

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad_viz.elements import Elements
from symgrad_viz.phases import UPDATE, nexts_of, parts_of
from symgrad_viz.words import name_text

# Of nodes, by their numbers, the levels that the name of their owner says: blocks.0, norm1, scale.
Owners: TypeAlias = Mapping[int, tuple[str, ...]]
FEW = 8  # parameters that need no levels
_LEVEL = re.compile(r"[^.]+(?:\.\d+)*")


def owners_of(
    graphs: Sequence[Graph],
    output_names: Sequence[str],
    elements: Elements,
    inside: Mapping[int, Sequence[int]],
) -> dict[int, tuple[str, ...]]:
    """The owners of all nodes of updates; of what several need, the levels that they share."""
    found: dict[int, tuple[str, ...]] = {}
    for graph in {id(g): g for g in graphs}.values():
        nexts = nexts_of(graph, output_names)
        if len(nexts) < FEW:
            continue
        parts = parts_of(graph, nexts)
        names = zip(graph.outputs, output_names, strict=False)
        own = {y: _levels(name.removesuffix(" (next)")) for y, name in names if y in nexts}
        levels: dict[Node, tuple[str, ...]] = {}
        for node in reversed(graph.nodes):
            ways = [
                *([own[node]] if node in own else []),
                *([levels[node]] if node in levels else []),
            ]
            if parts[node] != UPDATE or not ways:
                continue
            levels[node] = _shared(ways)
            for x in node.inputs:
                levels[x] = _shared([levels[node], *([levels[x]] if x in levels else [])])
        for node, number in elements.enter(graph.nodes).items():
            if parts[node] == UPDATE and levels.get(node):
                found[number] = levels[node]
                found |= dict.fromkeys(inside.get(number, ()), levels[node])
    return found


def _levels(name: str) -> tuple[str, ...]:
    return tuple(map(name_text, _LEVEL.findall(name)))


def _shared(paths: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The longest common beginning."""
    levels = takewhile(lambda level: len(set(level)) == 1, zip(*paths, strict=False))
    return tuple(level[0] for level in levels)
