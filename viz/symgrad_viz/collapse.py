"""Structures that repeat, drawn once: of like layers the first, `×6`; of an update one box."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any

from symgrad_viz.phases import PARTS, UPDATE
from symgrad_viz.scene import (
    CARRY,
    LEAVES,
    Box,
    Edge,
    Region,
    Scene,
    all_sizes,
    part_of,
    stub_title,
)
from symgrad_viz.words import counted, shortened

FEW = 3  # parameters of which each update is drawn
LONGEST_ROUND, LEAST_ROUNDS = 64, 24  # boxes in a round of a loop; in all rounds, or half of all
SCALAR = "[()]"  # the end of the type of a number


@dataclass(frozen=True)
class _Unit:
    """Boxes that belong together: those of a scope, or those that update one parameter."""

    title: str
    around: tuple[Region, ...]
    members: tuple[Box, ...]


def collapsed(
    scene: Scene, enough: int = 0, place_of: Callable[[Box], Hashable] = lambda box: None
) -> Scene:
    """The scene with like structures drawn once, the outermost first, until `enough` are left.

    Like scopes do the same ops on the same types, wired the same way: the first is drawn, and what
    each hands to the next goes back to its beginning. Updates of parameters are alike whatever the
    types: they become one box. Outside of scopes the rounds of a loop of Python's are alike, which
    `place_of` tells: the line that a box is of. The scene is one without stubs.
    """
    stands_for = {b.id: b.id for b in scene.boxes}
    boxes = {b.id: b for b in scene.boxes}
    told = []
    for units in _sets(_updates(scene), scene.edges, typed=False):
        if len(units) > FEW:
            box = _one_box(units)
            told.append(box.lines[0])
            ids = {m.id for u in units for m in u.members}
            boxes = {k: b for k, b in boxes.items() if k not in ids} | {box.id: box}
            stands_for.update(dict.fromkeys(ids, box.id))
    carries: dict[tuple[str, str], Edge] = {}
    scopes = _sets(_scopes(scene.boxes), scene.edges, typed=True)
    for units in (*scopes, *_sets(_rounds(scene.boxes, place_of), scene.edges, typed=True)):
        units = [u for u in units if all(m.id in boxes for m in u.members)]
        ids = {m.id for u in units for m in u.members}
        if len(units) < 2 or len(boxes) <= enough or _reaches_itself(ids, scene):
            continue
        told.append(_called(units))
        carries |= _handed_on(units, scene.edges)
        alike = list(zip(*(u.members for u in units), strict=True))
        for like in alike:
            boxes[like[0].id] = _first_of(boxes[like[0].id], like, units)
            for other in like[1:]:
                del boxes[other.id]
                stands_for[other.id] = like[0].id
    if not told:
        return scene
    stands_for = {id: _final(id, stands_for) for id in stands_for}
    edges = [*_rewired(scene, stands_for, carries), *_backward(carries, stands_for)]
    note = (
        f"{len(scene.boxes):,} boxes are drawn as {len(boxes):,}; drawn once: "
        f"{', '.join(told[:6])}{', …' * (len(told) > 6)}."
    )
    place = {b.id: i for i, b in enumerate(scene.boxes)}
    ordered = tuple(boxes[i] for i in in_order(boxes, edges, place))
    return replace(scene, boxes=ordered, edges=tuple(edges), note=f"{note} {scene.note}".strip())


def _sets(units: Iterable[_Unit], edges: Sequence[Edge], typed: bool) -> Iterator[list[_Unit]]:
    """Units that are alike, the outermost scopes first."""
    into: dict[str, list[Edge]] = defaultdict(list)
    for edge in edges:
        into[edge.head].append(edge)
    like: dict[Any, list[_Unit]] = defaultdict(list)
    for unit in units:
        like[len(unit.around), unit.around, _signature(unit, into, typed)].append(unit)
    yield from sorted(like.values(), key=lambda units: len(units[0].around))


def _scopes(boxes: Sequence[Box]) -> Iterator[_Unit]:
    inside: dict[tuple[Region, ...], list[Box]] = defaultdict(list)
    for box in boxes:
        for depth, region in enumerate(box.regions, 1):
            if region.kind == "scope":
                inside[box.regions[:depth]].append(box)
    for regions, members in inside.items():
        yield _Unit(regions[-1].title, regions[:-1], tuple(members))


def _rounds(boxes: Sequence[Box], place_of: Callable[[Box], Hashable]) -> Iterator[_Unit]:
    """The rounds of loops of Python's: what the same lines made again and again."""
    inside: dict[tuple[Region, ...], list[Box]] = defaultdict(list)
    for box in boxes:
        if box.kind not in LEAVES and place_of(box) is not None:
            inside[box.regions].append(box)
    for regions, members in inside.items():
        keys = [(place_of(b), b.what, *_nameless(b)) for b in members]
        start, period, times = _longest_repeat(keys)
        for i in range(start, start + period * times, period):
            yield _Unit(f"{place_of(members[i])}: rounds", regions, tuple(members[i : i + period]))


def _longest_repeat(keys: Sequence[Hashable]) -> tuple[int, int, int]:
    """Where the longest stretch begins that repeats itself, how long a round is, how many."""
    best, covered, least = (0, 1, 0), 0, min(LEAST_ROUNDS, len(keys) // 2)
    for period in range(1, min(LONGEST_ROUND, len(keys) // 2) + 1):
        alike = 0
        for i in range(len(keys) - period, -1, -1):
            alike = alike + 1 if i + period < len(keys) and keys[i] == keys[i + period] else 0
            times = alike // period + 1
            if times > 2 and times * period > max(covered, least):
                best, covered = (i, period, times), times * period
    return best


def _updates(scene: Scene) -> Iterator[_Unit]:
    """The boxes that update one parameter each: the arrays that hang together, without numbers."""
    own = {
        b.id: b
        for b in scene.boxes
        if part_of(b) == UPDATE and not any(line.endswith(SCALAR) for line in b.lines[1:2])
    }
    group: dict[str, set[str]] = {i: {i} for i in own}
    for edge in scene.edges:
        if edge.tail in own and edge.head in own:
            small, large = sorted((group[edge.tail], group[edge.head]), key=len)
            if small is not large:
                large |= small
                group.update(dict.fromkeys(small, large))
    members: dict[int, list[Box]] = defaultdict(list)
    for name, box in own.items():
        members[id(group[name])].append(box)
    for boxes in members.values():
        scopes = [r.title for r in boxes[0].regions if r.kind == "scope"]
        if any(b.is_output for b in boxes):
            around = tuple(r for r in boxes[0].regions if r.kind in (*PARTS, "scope"))
            yield _Unit(scopes[0] if scopes else "update", around[:2], tuple(boxes))


def _signature(unit: _Unit, into: Mapping[str, Sequence[Edge]], typed: bool) -> Any:
    place = {b.id: i for i, b in enumerate(unit.members)}
    arriving = (e for i in place for e in into.get(i, ()))
    wires = tuple(sorted((place.get(e.tail, -1), place[e.head], e.operand) for e in arriving))
    return tuple((b.kind, b.what, *(_nameless(b) if typed else ())) for b in unit.members), wires


def _nameless(box: Box) -> Iterator[str]:
    """The label without what differs from one layer to the next: names and numbers of nodes."""
    yield from (line for line in box.lines[1:] if not line.startswith("⟶"))


def _reaches_itself(ids: set[str], scene: Scene) -> bool:
    """Whether something else of their part lies between two of these boxes: they stay apart."""
    part = {b.id: part_of(b) for b in scene.boxes}
    heads: dict[str, list[str]] = defaultdict(list)
    for edge in scene.edges:
        if part[edge.tail] == part[edge.head]:
            heads[edge.tail].append(edge.head)
    stack = [h for i in ids for h in heads[i] if h not in ids]
    seen = set(stack)
    while stack:
        for head in heads[stack.pop()]:
            if head in ids:
                return True
            if head not in seen:
                seen.add(head)
                stack.append(head)
    return False


def _final(id: str, stands_for: Mapping[str, str]) -> str:
    while stands_for.get(id, id) != id:
        id = stands_for[id]
    return id


def _called(units: Sequence[_Unit]) -> str:
    """The name of like scopes: `layer ×6`."""
    titles = list(dict.fromkeys(u.title for u in units))
    if len(titles) == 1:
        return f"{shortened(titles[0], 60)} ×{len(units)}"
    stems = {t.rstrip("0123456789").rstrip("_-. ") for t in titles}
    stem = stems.pop() if len(stems) == 1 else ""
    return f"{shortened(stem or f'{titles[0]} … {titles[-1]}', 40)} ×{len(units)}"


def _first_of(box: Box, like: Sequence[Box], units: Sequence[_Unit]) -> Box:
    """A box of the first of like scopes, in a frame that says of how many."""
    depth = len(units[0].around)
    id = f"{units[0].members[0].id}_and_like"
    title = _called(units)
    title += f": {units[0].title} is drawn" if box.regions[depth:] else ""
    said = shortened(", ".join(u.title for u in units))
    layer = box.regions[depth].layer if box.regions[depth:] else ""
    frame = Region(id, "scope", title, said, layer and f"each {layer}")
    figures = [b.figure for b in like if b.figure is not None]
    within = box.regions[depth + 1 :] if box.regions[depth:] else ()
    marks = list(dict.fromkeys(m for b in like for m in b.lines[1:] if m.startswith("⟶")))
    more = [f"⟶ {len(marks) - 2} more"] if len(marks) > 2 else []
    return replace(
        box,
        lines=(box.lines[0], *_nameless(box), *marks[:2], *more),
        regions=(*box.regions[:depth], frame, *within),
        figure=sum(figures) if figures else None,
        is_output=any(b.is_output for b in like),
    )


def _handed_on(units: Sequence[_Unit], edges: Sequence[Edge]) -> dict[tuple[str, str], Edge]:
    """The edges from one of like scopes to another, by their ends."""
    at = {m.id: i for i, u in enumerate(units) for m in u.members}
    both = (e for e in edges if e.tail in at and e.head in at)
    return {(e.tail, e.head): e for e in both if at[e.tail] != at[e.head]}


def _backward(
    carries: Mapping[tuple[str, str], Edge], stands_for: Mapping[str, str]
) -> Iterator[Edge]:
    """Edges from the end of the first of like scopes back to its beginning."""
    found: dict[tuple[str, str], Edge] = {}
    for (tail, head), edge in carries.items():
        found.setdefault((stands_for[tail], stands_for[head]), edge)
    for (tail, head), edge in found.items():
        yield Edge(tail, head, edge.carries, way=CARRY)


def _one_box(units: Sequence[_Unit]) -> Box:
    """The box of an optimiser: `Adam × 10 parameters`, and what it does for each."""
    first = units[0].members
    names = [line[2:] for u in units for b in u.members for line in b.lines if line[:1] == "⟶"]
    shown = [n.removesuffix(" (next)") for n in names]
    own = [n for n in shown if not any(n.startswith(f"{other}.") for other in shown)]
    computed = [b for b in first if b.kind not in LEAVES]
    state = sum(b.kind == "variable" for b in first)
    ops = dict.fromkeys(
        op for b in computed for op in (b.lines[2] if b.kind == "fused" else b.what).split(" + ")
    )
    each = " and ".join(filter(None, (counted(len(computed), "op"), counted(state, "array"))))
    lines = (
        f"{units[0].title} × {len(units)} parameters",
        f"each: {each}{' of state' * (state > 0)}",
        shortened(" + ".join(op.split(" ")[0].split("(")[0] for op in ops), 44),
        *_listed(own),
    )
    figures = [b.figure for u in units for b in u.members if b.figure is not None]
    return Box(
        f"{computed[-1].id}_and_like",
        "many",
        lines,
        shortened(", ".join(shown), 2000),
        units[0].around,
        is_output=True,
        figure=sum(figures) if figures else None,
    )


def _listed(names: Sequence[str], most: int = 4) -> Iterator[str]:
    yield from (f"⟶ {shortened(name, 40)} (next)" for name in names[:most])
    if len(names) > most:
        yield f"⟶ {len(names) - most} more"


def _rewired(
    scene: Scene, stands_for: Mapping[str, str], carries: Mapping[tuple[str, str], Edge]
) -> Iterator[Edge]:
    """The edges between what is drawn: of those between the same two one, with all it keeps."""
    boxes = {b.id: b for b in scene.boxes}
    merged: dict[tuple[str, str], list[Edge]] = defaultdict(list)
    for edge in scene.edges:
        ends = stands_for[edge.tail], stands_for[edge.head]
        if (edge.tail, edge.head) not in carries and (edge.way == CARRY or ends[0] != ends[1]):
            merged[ends].append(edge)
    for (tail, head), found in merged.items():
        saved = tuple(dict(value for e in found for value in e.saved).items())
        own = [e for e in found if (e.tail, e.head) == (tail, head)]
        own = own or [e for e in found if e.head == head][:1] or found[:1]
        for i, edge in enumerate(own):
            kept = (saved, all_sizes(found)) if i == 0 else (edge.saved, edge.sizes)
            named = "" if edge.tail == tail or head != edge.head else stub_title(boxes[edge.tail])
            yield replace(edge, tail=tail, head=head, saved=kept[0], sizes=kept[1], named=named)


def in_order(
    boxes: Mapping[str, Box], edges: Sequence[Edge], place: Mapping[str, int]
) -> Iterator[str]:
    """The boxes in an order in which they can be computed, near the one that they had."""
    heads: dict[str, list[str]] = defaultdict(list)
    waiting = dict.fromkeys(boxes, 0)
    for edge in edges:
        if edge.way != CARRY:
            heads[edge.tail].append(edge.head)
            waiting[edge.head] += 1
    own = {i: place.get(i.removesuffix("_and_like"), 0) for i in boxes}
    ready = [(own[i], i) for i, n in waiting.items() if not n]
    heapify(ready)
    left = sorted(boxes, key=own.__getitem__, reverse=True)
    while left:
        if not ready:  # a cycle, which is cut before its first box
            heappush(ready, (own[left[-1]], left[-1]))
        _, now = heappop(ready)
        if waiting.pop(now, None) is not None:
            yield now
            for head in heads[now]:
                if head in waiting:
                    waiting[head] -= 1
                    if not waiting[head]:
                        heappush(ready, (own[head], head))
        while left and left[-1] not in waiting:
            left.pop()
