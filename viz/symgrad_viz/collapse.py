"""Scopes that repeat, drawn once: the layers of a network become one box, `layer ×6`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any

from symgrad_viz.phases import PARTS
from symgrad_viz.scene import (
    CARRY,
    LEAVES,
    Box,
    Edge,
    Region,
    Scene,
    all_sizes,
    contents_text,
    part_of,
)
from symgrad_viz.words import shortened

MOST_READ = 5  # edges into a box that stands for many


@dataclass(frozen=True)
class _Unit:
    """Boxes that belong together: those of a scope, or such as hang together outside of them."""

    title: str
    around: tuple[Region, ...]
    members: tuple[Box, ...]


def collapsed(scene: Scene) -> Scene:
    """The scene with each set of like scopes, and of what is alike outside them, as one box.

    Like is: the same ops on the same types, wired the same way. The scene is one without stubs.
    """
    boxes = {b.id: b for b in scene.boxes}
    stands_for = {id: id for id in boxes}
    described = []
    for units in _sets(scene):
        ids = {m.id for u in units for m in u.members}
        if len(units) > 1 and ids <= boxes.keys() and not _reaches_itself(ids, scene, stands_for):
            box = _drawn_once(units)
            described.append(f"{box.lines[0]} ({box.lines[1]})")
            boxes = {k: b for k, b in boxes.items() if k not in ids} | {box.id: box}
            stands_for.update(dict.fromkeys(ids, box.id))
    if not described:
        return scene
    edges, more = _few_into(
        _rewired(scene, stands_for), {i for i, b in boxes.items() if b.kind == "many"}
    )
    for id, count in more.items():
        box = boxes[id]
        boxes[id] = replace(box, lines=(*box.lines, f"reads {count} more"))
    note = (
        f"{len(scene.boxes):,} boxes are drawn as {len(boxes):,}; drawn once: "
        f"{', '.join(described[:6])}{', …' * (len(described) > 6)}."
    )
    place = {b.id: i for i, b in enumerate(scene.boxes)}
    ordered = tuple(boxes[i] for i in _in_order(boxes, edges, place))
    return replace(scene, boxes=ordered, edges=tuple(edges), note=f"{note} {scene.note}".strip())


def _sets(scene: Scene) -> Iterator[list[_Unit]]:
    """Units that are alike, the outermost scopes first."""
    like: dict[Any, list[_Unit]] = defaultdict(list)
    for unit in (*_scopes(scene.boxes), *_loose(scene)):
        like[len(unit.around), unit.around, _signature(unit, scene.edges)].append(unit)
    yield from sorted(like.values(), key=lambda units: len(units[0].around))


def _scopes(boxes: Sequence[Box]) -> Iterator[_Unit]:
    inside: dict[tuple[Region, ...], list[Box]] = defaultdict(list)
    for box in boxes:
        for depth, region in enumerate(box.regions, 1):
            if region.kind == "scope":
                inside[box.regions[:depth]].append(box)
    for regions, members in inside.items():
        yield _Unit(regions[-1].title, regions[:-1], tuple(members))


def _loose(scene: Scene) -> Iterator[_Unit]:
    """The connected nodes outside all scopes, within one part: an update, a part of a gradient."""
    own = {b.id: b for b in scene.boxes if all(r.kind != "scope" for r in b.regions)}
    group: dict[str, set[str]] = {i: {i} for i in own}
    for edge in scene.edges:
        tail, head = own.get(edge.tail), own.get(edge.head)
        if tail is None or head is None or part_of(tail) != part_of(head):
            continue
        small, large = sorted((group[tail.id], group[head.id]), key=len)
        if small is not large:
            large |= small
            group.update(dict.fromkeys(small, large))
    members: dict[int, list[Box]] = defaultdict(list)
    for name, box in own.items():
        members[id(group[name])].append(box)
    for boxes in members.values():
        computed = [b for b in boxes if b.kind not in LEAVES]
        if computed:
            names = [line[2:] for b in boxes for line in b.lines if line.startswith("⟶ ")]
            title = names[0] if names else computed[-1].lines[0].partition(" = ")[2].split(" ")[0]
            part = tuple(r for r in boxes[0].regions[:1] if r.kind in PARTS)
            yield _Unit(title, part, tuple(boxes))


def _signature(unit: _Unit, edges: Sequence[Edge]) -> Any:
    place = {b.id: i for i, b in enumerate(unit.members)}
    wires = tuple(
        sorted((place.get(e.tail, -1), place[e.head], e.operand) for e in edges if e.head in place)
    )
    return tuple((b.kind, tuple(_nameless(b))) for b in unit.members), wires


def _nameless(box: Box) -> Iterator[str]:
    """The label without what differs from one layer to the next: names and numbers of nodes."""
    first, *rest = box.lines
    yield "" if box.kind in LEAVES else first.partition(" = ")[2]
    yield from ("⟶" if line.startswith("⟶") else line for line in rest)


def _reaches_itself(ids: set[str], scene: Scene, stands_for: Mapping[str, str]) -> bool:
    """Whether something outside lies between two of these boxes: they cannot be one, then."""
    heads: dict[str, list[str]] = defaultdict(list)
    for edge in scene.edges:
        heads[stands_for[edge.tail]].append(stands_for[edge.head])
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


def _drawn_once(units: Sequence[_Unit]) -> Box:
    first = units[0]
    titles = [u.title for u in units]
    stems = {t.rstrip("0123456789").rstrip("_-. ") for t in titles}
    stem = stems.pop() if len(stems) == 1 else ""
    shown = shortened(stem or f"{titles[0]} … {titles[-1]}", 40)
    ops = [b.lines[0].partition(" = ")[2].split(" ")[0] for b in first.members]
    summary = " + ".join(dict.fromkeys(op for op in ops if op))
    figures = [b.figure for u in units for b in u.members if b.figure is not None]
    outputs = any(b.is_output for b in first.members)
    return Box(
        f"{first.members[0].id}_and_like",
        "many",
        (f"{shown} ×{len(units)}", f"{contents_text(first.members)} each", shortened(summary, 40)),
        shortened(", ".join(titles)) + "\n" + "\n".join(b.lines[0] for b in first.members[:12]),
        first.around,
        is_output=outputs,
        figure=sum(figures) if figures else None,
    )


def _rewired(scene: Scene, stands_for: Mapping[str, str]) -> Iterator[Edge]:
    """The edges between what is drawn: of those between the same two one, with all it keeps."""
    merged: dict[tuple[str, str], list[Edge]] = defaultdict(list)
    for edge in scene.edges:
        ends = stands_for[edge.tail], stands_for[edge.head]
        if ends == (edge.tail, edge.head):
            yield edge
        elif ends[0] != ends[1]:
            merged[ends].append(edge)
    for (tail, head), found in merged.items():
        saved = tuple(dict(value for e in found for value in e.saved).items())
        sizes = all_sizes(found)
        yield replace(found[0], tail=tail, head=head, operand="", saved=saved, sizes=sizes)


def _few_into(edges: Iterable[Edge], many: set[str]) -> tuple[list[Edge], Counter[str]]:
    """The edges, of those into a box that stands for many only the first few; how many are left."""
    kept, into, more = [], Counter[str](), Counter[str]()
    for edge in edges:
        if edge.head in many:
            into[edge.head] += 1
            if into[edge.head] > MOST_READ:
                more[edge.head] += 1
                continue
        kept.append(edge)
    return kept, more


def _in_order(
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
    while ready:
        _, now = heappop(ready)
        yield now
        for head in heads[now]:
            waiting[head] -= 1
            if not waiting[head]:
                heappush(ready, (own[head], head))
