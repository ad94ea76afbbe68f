"""Which boxes of a large program are drawn as one: those of a scope, of a line, of a part."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from symgrad.ir.node import Node
from symgrad_viz.scene import LEAVES, Box, Scene, part_of
from symgrad_viz.words import shortened

# The part of the graph, and what is written on the box.
Title: TypeAlias = tuple[str, str]
_NUMBER = re.compile(r"[_\-. ]*\d+")


@dataclass(frozen=True)
class Closing:
    """Which boxes of one part are one: those whose title is the same.

    `depth` is how deep scopes within scopes stay apart; `alike` lets scopes be one that only
    differ by a number; `lines` does so with what a line wrote outside of scopes; `whole` with
    everything.
    """

    depth: int
    alike: bool = False
    lines: bool = False
    whole: bool = False

    def titles(self, scene: Scene, nodes: Mapping[str, Node]) -> dict[str, str]:
        """Of each box by its id: in what it is, or an empty text if it stands for itself.

        A parameter that one closed box alone reads, of its part, belongs into that. What a scope
        does between the scopes inside it stands for itself, and what is left and entered again is
        two boxes, so that edges go downwards.
        """
        boxes = {b.id: b for b in scene.boxes}
        paths = {b.id: self._scopes(b) for b in scene.boxes}
        around = {path[:i] for path in paths.values() for i in range(1, len(path))}
        found = {
            id: "" if paths[id] in around else self._title(b, nodes[id]) for id, b in boxes.items()
        }
        above: dict[str, list[str]] = {id: [] for id in boxes}
        readers: dict[str, set[str]] = defaultdict(set)
        for edge in scene.edges:
            if part_of(boxes[edge.tail]) == part_of(boxes[edge.head]):
                above[edge.head].append(edge.tail)
        if not self.alike:
            found = _apart({id: (part_of(boxes[id]), t) for id, t in found.items()}, above)
        for head, tails in above.items():
            for tail in tails:
                readers[tail].add(found[head])
        for id, box in boxes.items():
            if box.kind in LEAVES and box.kind != "placeholder" and len(readers[id]) == 1:
                found[id] = next(iter(readers[id])) or found[id]
        return found

    def count(self, scene: Scene, nodes: Mapping[str, Node]) -> int:
        """How many boxes there are then."""
        titles = self.titles(scene, nodes)
        return len({(part_of(b), titles[b.id] or b.id) for b in scene.boxes})

    def label(self, title: str, inside: Sequence[Box]) -> str:
        """The title as it is shown: of scopes that are one, with how many they are."""
        times = len({self._scopes(b) for b in inside} - {()}) if self.alike else 1
        return f"{title} ×{times}" if times > 1 else title

    def _scopes(self, box: Box) -> tuple[str, ...]:
        return tuple(r.title for r in box.regions if r.kind == "scope")[: self.depth]

    def _title(self, box: Box, node: Node) -> str:
        scopes = self._scopes(box)
        if self.whole:
            return "everything"
        if scopes:
            title = " / ".join(scopes)
            return _NUMBER.sub("", title) or title if self.alike else title
        places = node.origin.locations if self.lines and box.kind != "placeholder" else ()
        return f"{places[0]}  {shortened(places[0].text, 36)}" if places else ""

    def __str__(self) -> str:
        if self.whole:
            return "each part is one box"
        if not self.depth:
            return "what a line wrote is one box"
        alike = ", scopes that differ by a number are one" if self.alike else ""
        lines = ", and so is what a line outside of scopes wrote" if self.lines else ""
        return f"what is in a scope is one box{alike}{lines}"


def _apart(titles: Mapping[str, Title], above: Mapping[str, list[str]]) -> dict[str, str]:
    """The titles, numbered where a way leads out of what has a title and into it again.

    The boxes come in an order in which they can be computed.
    """
    found = {id: title for id, (_, title) in titles.items()}
    order = list(above)
    places: dict[Title, list[int]] = defaultdict(list)
    for i, id in enumerate(order):
        places[titles[id]].append(i)
    for own, at in places.items():
        left: dict[str, int] = {}  # how often a way to a box has left what has this title
        for id in order[at[0] : at[-1] + 1] if own[1] else ():
            out = titles[id] != own
            ways = (left.get(t, 0) + (out and titles[t] == own) for t in above[id])
            left[id] = max(ways, default=0)
            if not out and left[id]:
                found[id] = f"{own[1]} ({left[id] + 1})"
    return found


def closing_of(stages: Sequence[tuple[Scene, Mapping[str, Node]]], most: int) -> Closing | None:
    """The way to close that leaves most to be seen, and `most` boxes a stage if any way does."""
    if all(len(scene.boxes) <= most for scene, _ in stages):
        return None
    boxes = (b for scene, _ in stages for b in scene.boxes)
    ways = list(_ways(max(sum(r.kind == "scope" for r in b.regions) for b in boxes)))
    return next((w for w in ways if all(w.count(*stage) <= most for stage in stages)), ways[-1])


def _ways(depth: int) -> Iterator[Closing]:
    """From the finest to the coarsest."""
    depths = range(depth, 0, -1) or (0,)
    yield from (Closing(d, False, lines) for d in depths for lines in (False, True))
    yield from (Closing(d, True, True) for d in depths)
    yield Closing(0, whole=True)
