"""Long parts of a picture, laid in columns, as the lines of a newspaper are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

from symgrad_viz.layers import GAP_X, spot_of
from symgrad_viz.scene import Box, Edge, Region, Scene, part_of, ranks

ROWS = 60  # what is longer is laid in columns
ROW = 1500.0  # points: how wide a frame may be before what hangs on nothing else goes below


def in_columns(
    boxes: Sequence[Box], edges: Sequence[Edge], rows: int
) -> tuple[tuple[Box, ...], dict[str, int]]:
    """Parts of more ranks than `rows` in columns: the boxes, and the column of each.

    The frames of a part are there once for each of its columns.
    """
    part = {b.id: part_of(b) for b in boxes}
    place = {b.id: i for i, b in enumerate(boxes)}
    near = [e for e in edges if part[e.tail] == part[e.head] and place[e.tail] < place[e.head]]
    rank = ranks(boxes, near)
    high: Counter[str] = Counter()
    for box in boxes:
        high[part[box.id]] = max(high[part[box.id]], rank[box.id] + 1)
    columns = {}
    for box in boxes:
        tall = high[part[box.id]]
        columns[box.id] = rank[box.id] // ceil(tall / ceil(tall / rows))
    return tuple(_moved(b, columns[b.id]) for b in boxes), columns


def stacked(scene: Scene) -> Iterator[tuple[str, str]]:
    """Edges that nobody sees: what hangs together in a frame goes below the rest if that is wide.

    Only within a frame, since Graphviz sets frames beside each other.
    """
    rank = ranks(scene.boxes, scene.edges)
    heads = {e.head for e in scene.edges}
    rows: dict[tuple[Region, ...], list[list[Box]]] = {}
    for own in _components(scene.boxes, scene.edges):
        around = dict.fromkeys(b.regions for b in own)
        if len(around) == 1:
            rows.setdefault(own[0].regions, []).append(own)
    for found in rows.values():
        lowest, used, high = "", 0.0, 0
        row: list[list[Box]] = []
        for own in found:
            used += _width(own)
            tall = max(rank[b.id] for other in (*row, own) for b in other) + 1
            if row and used > ROW and high + 2 * tall < ROWS:
                high += tall
                deepest = max((b for other in row for b in other), key=lambda b: rank[b.id])
                lowest, used, row = deepest.id, _width(own), []
            row.append(own)
            if lowest:
                yield from ((lowest, b.id) for b in own if b.id not in heads)


def _components(boxes: Sequence[Box], edges: Sequence[Edge]) -> list[list[Box]]:
    """The boxes that hang together, in their order."""
    group = {b.id: [b] for b in boxes}
    for edge in edges:
        tail, head = group.get(edge.tail), group.get(edge.head)
        if tail is not None and head is not None and tail is not head:
            small, large = sorted((tail, head), key=len)
            large += small
            group.update((b.id, large) for b in small)
    return list({id(own): own for own in group.values()}.values())


def _width(boxes: Sequence[Box]) -> float:
    """About how wide boxes are that hang together, of which leaves and stubs stand in a row."""
    wide = [spot_of(b).width + GAP_X for b in boxes]
    return max(*wide, sum(wide) / 2) if len(wide) > 1 else sum(wide)


def width_in_columns(boxes: Sequence[Box], edges: Sequence[Edge], rows: int) -> float:
    """About how wide a scene is in columns, in points."""
    _, columns = in_columns(boxes, edges, rows)
    rank = ranks(boxes, edges)
    wide: Counter[tuple[int, int]] = Counter()
    for box in boxes:
        wide[columns[box.id], rank[box.id]] += int(spot_of(box).width + GAP_X)
    widest: dict[int, int] = {}
    for (column, _), width in wide.items():
        widest[column] = max(widest.get(column, 0), width)
    return sum(widest.values())


def _moved(box: Box, column: int) -> Box:
    if not column:
        return box
    return replace(box, regions=tuple(_again(r, column) for r in box.regions))


def _again(region: Region, column: int) -> Region:
    """A frame in a later column."""
    return replace(region, id=f"{region.id}_{column + 1}", title=f"{region.title} (goes on)")
