"""Which boxes of a large program are drawn as one: those of a scope, of a line, of a part."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from symgrad.analysis import loops
from symgrad.ir.node import Node
from symgrad_viz.scene import LEAVES, Box, Scene, part_of
from symgrad_viz.words import shortened

# The part of the graph, and what is written on the box.
Title: TypeAlias = tuple[str, str]
# That, and the id of what has no title and stands for itself.
Place: TypeAlias = tuple[str, str, str]
Drawn: TypeAlias = tuple[Scene, Mapping[str, Node]]
_NUMBER = re.compile(r"[_\-. ]*\d+")
QUOTE = "  "  # in the title of what a line wrote, between its place and its text


@dataclass(frozen=True)
class Closing:
    """Which boxes of one part are one: those whose title is the same.

    `depth` is how deep scopes within scopes stay apart; `lines` lets what a line wrote outside of
    scopes be one; `apart` makes two boxes of what is left and entered again; `alike` lets scopes
    be one that only differ by a number; `together` gives several titles a new one; `runs` is how
    many neighbours that lets be one; `whole` makes one of everything.
    """

    depth: int
    lines: bool = False
    apart: bool = True
    alike: bool = False
    whole: bool = False
    runs: int = 1
    together: Mapping[Place, str] = field(default_factory=dict)

    def titles(self, scene: Scene, nodes: Mapping[str, Node]) -> dict[str, str]:
        """Of each box by its id: in what it is, or an empty text if it stands for itself.

        A parameter that one closed box alone reads, of its part, belongs into that. What a scope
        does between the scopes inside it stands for itself.
        """
        places = self._places(scene, nodes)
        found = {id: self.together.get(place, place[1]) for id, place in places.items()}
        readers: dict[str, set[str]] = defaultdict(set)
        for head, tails in _above(scene).items():
            for tail in tails:
                readers[tail].add(found[head])
        for box in scene.boxes:
            if box.kind in LEAVES and box.kind != "placeholder" and len(readers[box.id]) == 1:
                found[box.id] = next(iter(readers[box.id])) or found[box.id]
        return found

    def count(self, scene: Scene, nodes: Mapping[str, Node]) -> int:
        """How many boxes there are then."""
        titles = self.titles(scene, nodes)
        return len({(part_of(b), titles[b.id] or b.id) for b in scene.boxes})

    def label(self, title: str, inside: Sequence[Box]) -> str:
        """The title as it is shown: of scopes that are one, with how many they are."""
        times = len({self._scopes(b) for b in inside} - {()}) if self.alike else 1
        return f"{title} ×{times}" if times > 1 else title

    def fits(self, stages: Sequence[Drawn], most: int) -> bool:
        """Whether no stage has more boxes than `most`."""
        return all(self.count(*stage) <= most for stage in stages)

    def in_runs(self, stages: Sequence[Drawn], size: int) -> Closing:
        """So many neighbours in one: `encoder … head`."""
        found = self._found(stages)
        order = {title: i // size for i, title in enumerate(dict.fromkeys(p[1] for p in found))}
        runs: dict[tuple[str, int], list[Place]] = defaultdict(list)
        for place in found:
            runs[place[0], order[place[1]]].append(place)
        together = {
            place: " … ".join(dict.fromkeys(_place(end[1]) for end in (run[0], run[-1])))
            for run in runs.values()
            for place in run
            if len(run) > 1
        }
        return replace(self, together=together, runs=size).without_loops(stages)

    def without_loops(self, stages: Sequence[Drawn]) -> Closing:
        """Merge boxes that feed each other both ways in a stage, so that edges go downwards."""
        mapped = [(self._places(*stage), _above(stage[0])) for stage in stages]
        together, joined = dict(self.together), True
        while joined:
            joined = False
            for places, above in mapped:
                new = _loops(places, above, together)
                # Boxes of other stages that were one with these stay so: they take the new title.
                titles = {(p[0], together[p]): title for p, title in new.items() if p in together}
                new |= {p: titles[p[0], t] for p, t in together.items() if (p[0], t) in titles}
                together |= new
                joined = joined or bool(new)
        return replace(self, together=together)

    def _found(self, stages: Sequence[Drawn]) -> list[Place]:
        """The places with a title, in the order of the source."""
        found: dict[Place, None] = {}
        for scene, nodes in stages:
            found |= dict.fromkeys(self._places(scene, nodes).values())
        return [place for place in found if place[1]]

    def _places(self, scene: Scene, nodes: Mapping[str, Node]) -> dict[str, Place]:
        """Where each box is before anything is put together."""
        boxes = {b.id: b for b in scene.boxes}
        paths = {b.id: self._scopes(b) for b in scene.boxes}
        around = {path[:i] for path in paths.values() for i in range(1, len(path))}
        found = {
            id: "" if paths[id] in around else self._title(b, nodes[id]) for id, b in boxes.items()
        }
        if self.apart:
            found = _apart({id: (part_of(boxes[id]), t) for id, t in found.items()}, _above(scene))
        return {id: (part_of(boxes[id]), t, "" if t else id) for id, t in found.items()}

    def _scopes(self, box: Box) -> tuple[str, ...]:
        return tuple(r.title for r in box.regions if r.kind == "scope")[: self.depth]

    def _title(self, box: Box, node: Node) -> str:
        scopes = self._scopes(box)
        if self.whole:
            return "everything"
        if scopes:
            title = " / ".join(scopes)
            return _NUMBER.sub("", title) or title if self.alike else title
        apart = box.kind in ("placeholder", "many")
        places = node.origin.locations if self.lines and not apart else ()
        return f"{places[0]}{QUOTE}{shortened(places[0].text, 36)}" if places else ""

    def __str__(self) -> str:
        if self.whole:
            return "each part is one box"
        if not self.depth:
            return "what a line wrote is one box"
        lines = ", and so is what a line outside of scopes wrote" if self.lines else ""
        alike = ", scopes that differ by a number are one" if self.alike else ""
        runs = ", neighbours are put together" if self.runs > 1 else ""
        return f"what is in a scope is one box{alike}{lines}{runs}"


def _above(scene: Scene) -> dict[str, list[str]]:
    """The operands of each box that are in its part."""
    part = {b.id: part_of(b) for b in scene.boxes}
    above: dict[str, list[str]] = {id: [] for id in part}
    for edge in scene.edges:
        if part[edge.tail] == part[edge.head]:
            above[edge.head].append(edge.tail)
    return above


def _place(title: str) -> str:
    """A title without the text of its line."""
    return title.partition(QUOTE)[0]


def _listed(titles: Sequence[str]) -> str:
    """Several titles in one, texts of lines after all their places."""
    texts = [text for title in titles if (text := title.partition(QUOTE)[2])]
    places = ", ".join(dict.fromkeys(map(_place, titles)))
    return f"{places}{QUOTE}{' · '.join(texts)}" if texts else places


def _loops(
    places: Mapping[str, Place], above: Mapping[str, Sequence[str]], together: Mapping[Place, str]
) -> dict[Place, str]:
    """A title for all that feeds each other both ways, once it is put `together` so far."""
    new = {
        id: (place[0], together[place], "") if place in together else place
        for id, place in places.items()
    }
    inside: dict[Place, dict[Place, None]] = defaultdict(dict)
    edges: list[tuple[Place, Place]] = []
    for id, own in new.items():
        inside[own][places[id]] = None
        edges += [(new[tail], own) for tail in above[id]]
    found: dict[Place, str] = {}
    for loop in loops(edges):
        listed = [place for place in inside if place in loop]
        title = _listed([title for _, title, _ in listed if title])
        found |= {place: title for own in listed for place in inside[own]}
    return found


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


def closing_of(stages: Sequence[Drawn], most: int) -> Closing | None:
    """The way to close that leaves most to be seen, and `most` boxes a stage if any way does."""
    if all(len(scene.boxes) <= most for scene, _ in stages):
        return None
    boxes = (b for scene, _ in stages for b in scene.boxes)
    depth = max(sum(r.kind == "scope" for r in b.regions) for b in boxes)
    for way in _ways(depth):
        if way.alike:
            way = way.without_loops(stages)
            if any(QUOTE not in title for _, title, _ in way.together):
                continue  # scopes would swallow each other
        if way.fits(stages, most):
            return way
    coarsest = Closing(min(depth, 1), lines=True, apart=False)
    if not depth and (looped := coarsest.without_loops(stages)).fits(stages, most):
        return looped
    titles = len({title for _, title, _ in coarsest._found(stages)})
    sizes = range(2, titles + 1)
    at = bisect_left(sizes, True, key=lambda n: coarsest.in_runs(stages, n).fits(stages, most))
    return coarsest.in_runs(stages, sizes[at]) if at < len(sizes) else Closing(0, whole=True)


def _ways(depth: int) -> Iterator[Closing]:
    """Those that put nothing together but what is alike, from the finest to the coarsest."""
    depths = range(depth, 0, -1) or (0,)
    yield from (Closing(d, lines) for d in depths for lines in (False, True))
    yield from (Closing(d, lines=True, apart=False, alike=True) for d in range(depth, 0, -1))
