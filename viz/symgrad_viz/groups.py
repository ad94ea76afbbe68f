"""Scopes that are closed: a box for all that is in one, which says how much that is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from symgrad_viz.closing import QUOTE
from symgrad_viz.collapse import in_order
from symgrad_viz.phases import BACKWARD, UPDATE
from symgrad_viz.scene import (
    CARRY,
    LEAVES,
    Box,
    Edge,
    Scene,
    all_sizes,
    contents_text,
    part_of,
)
from symgrad_viz.scopes import shared
from symgrad_viz.words import shortened

_MORE = re.compile(r"⟶ ([\d,]+) more")
_AGAIN = re.compile(r" \(\d+\)$")  # of a scope that is left and entered again


def group(id: str, name: str, inside: Sequence[Box]) -> Box:
    """A closed box in words: how many ops and parameters it has, which ops, how many fused."""
    ops = Counter(b.what.split(" ")[0].split("(")[0] for b in computed(inside))
    fused = ops.pop("fused", 0)
    listed = [f"{op} ×{n}" if n > 1 else op for op, n in ops.most_common(3) if op]
    marks = [line for b in inside for line in b.lines if line.startswith("⟶")]
    part = part_of(inside[0])
    many = [b for b in inside if b.kind == "many"]
    contents = contents_text([b for b in inside if b.kind != "many"])
    lines = (
        *(shortened(text, 60) for text in name.split(QUOTE, 1)),
        many[0].lines[1] if len(many) == 1 else "",
        f"besides {contents}" if many and contents else contents,
        f"{fused} fused" if fused else "",
        f"{', '.join(listed)}{', …' * (len(ops) > len(listed))}",
        *marks[:2],
        f"⟶ {more:,} more" if (more := sum(map(_outputs, marks[2:]))) else "",
    )
    regions = tuple(r for r in inside[0].regions if r.kind == part)
    kind = part if part in (BACKWARD, UPDATE) else "op"
    said = "\n".join((name, *(b.lines[0] for b in inside[:20]), *["…"] * (len(inside) > 20)))
    return Box(id, kind, tuple(filter(None, lines)), said, regions, bool(marks))


def _outputs(mark: str) -> int:
    """How many outputs a line of a box is of: `⟶ loss`, or `⟶ 194 more`."""
    rest = _MORE.fullmatch(mark)
    return int(rest[1].replace(",", "")) if rest else 1


def computed(inside: Sequence[Box]) -> list[Box]:
    """Those boxes that compute something."""
    return [b for b in inside if b.kind not in LEAVES]


def shut(
    scene: Scene, titles: Mapping[str, str], label: Callable[[str, Sequence[Box]], str]
) -> Scene:
    """The scene, which has no stubs, with a box for all boxes of one part that have one title.

    Boxes without a title stay. A closed box lies in the frames that all those in it share.
    """
    members: dict[tuple[str, str], list[Box]] = defaultdict(list)
    for box in scene.boxes:
        if titles[box.id]:
            members[part_of(box), titles[box.id]].append(box)
    boxes = {b.id: b for b in scene.boxes}
    stands_for = {b.id: b.id for b in scene.boxes}
    for (_, title), inside in members.items():
        own = inside[0].id if len(inside) == 1 else f"{inside[0].id}_and_others"
        for box in inside:
            stands_for[box.id] = own
        if len(inside) == 1:
            continue
        around = tuple(shared(b.regions for b in inside))
        called = next((b.lines[0] for b in inside if b.kind == "many"), label(title, inside))
        if around and around[-1].kind == "scope":
            # The frame of the scope itself is the box now.
            name = title.rpartition(" / ")[2]
            stem = name if around[-1].title.startswith(name) else _AGAIN.sub("", name)
            if around[-1].title.startswith(stem):
                label_of = f"{around[-1].label}{name[len(stem) :]}"
                called = called if called.startswith(f"{name} ×") else label_of
                around = around[:-1]
        closed = replace(group(own, called, inside), regions=around)
        figures = [b.figure for b in inside if b.figure is not None]
        boxes[own] = replace(closed, figure=sum(figures) if figures else None)
        for box in inside:
            del boxes[box.id]
    merged: dict[tuple[str, str, bool], list[Edge]] = defaultdict(list)
    for edge in scene.edges:
        tail, head = stands_for[edge.tail], stands_for[edge.head]
        if tail != head or edge.tail == edge.head:
            merged[tail, head, edge.way == CARRY].append(edge)
    edges = []
    for (tail, head, _), found in merged.items():
        saved = tuple(dict(value for e in found for value in e.saved).items())
        same = (tail, head) == (found[0].tail, found[0].head)
        first = replace(found[0], tail=tail, head=head, saved=saved, sizes=all_sizes(found))
        edges.append(first if same else replace(first, operand="", way=first.way * (not saved)))
    place = {b.id: i for i, b in enumerate(scene.boxes)}
    place |= {stands_for[i]: at for i, at in reversed(place.items())}
    ordered = tuple(boxes[i] for i in in_order(boxes, edges, place))
    return replace(scene, boxes=ordered, edges=tuple(edges))
