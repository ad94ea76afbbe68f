"""The built-in layout: layers from top to bottom, in plain Python, for when there is no Graphviz.

It is Sugiyama's method in its simplest form: rank, order within the ranks by barycentre, place.
The forward part stands left, the backward part right of it, the update below that.
Scopes have no frames here, and fused nodes are drawn closed.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from symgrad_viz.phases import PARTS, UPDATE
from symgrad_viz.scene import Box, Edge, Scene, part_of, ranks
from symgrad_viz.shapes import draw_arrow, draw_box, draw_frame, draw_title
from symgrad_viz.theme import NODE_SIZE, SMALL_SIZE, THEMES, Palette
from symgrad_viz.words import text_width

PAD = 9.0
LINE = 14.0
GAP_X = 18.0
GAP_Y = 34.0
MARGIN = 16.0
TITLE = 26.0
SWEEPS = 8
WIDEST = 90.0  # of strips in which nothing stands


@dataclass(slots=True)
class Spot:
    """A place in a layer: of a box, or (without one) where a long edge passes.

    `x`, `y` is its centre; `up` and `down` are the lengths of the longest paths from it.
    """

    width: float
    height: float
    box: Box | None = None
    rank: int = 0
    x: float = 0.0
    y: float = 0.0
    up: int = 0
    down: int = 0
    above: list[Spot] = field(default_factory=list)
    below: list[Spot] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the graph with a place for everything in it, from 0, 0 to `width`, `height`."""

    kind: str
    title: str
    spots: Sequence[Spot]
    routes: Sequence[tuple[Edge, Sequence[Spot]]]
    width: float
    height: float


def layout(scene: Scene, theme: str = "auto") -> ET.Element:
    """The picture of a scene as an `<svg>` element.

    No edge may go from one part to another, so the scene is one with stubs.
    """
    palette = THEMES[theme]
    placed, width, height = arranged(_columns(blocks_of(scene)), TITLE)
    root = ET.Element("svg", {"width": f"{width:.0f}", "height": f"{height:.0f}"})
    root.set("viewBox", f"0 0 {width:.0f} {height:.0f}")
    canvas = ET.SubElement(root, "g", {"class": "graph"})
    draw_title(canvas, scene.title, width / 2, TITLE - 8, palette)
    for block, corner in placed:
        _draw(canvas, block, corner, palette)
    return root


def _columns(blocks: Sequence[Block]) -> list[list[Block]]:
    """Each part beside the one before, but the update below the backward part."""
    columns: list[list[Block]] = []
    for block in blocks:
        if block.kind == UPDATE and columns:
            columns[-1].append(block)
        else:
            columns.append([block])
    return columns


def arranged(
    columns: Sequence[Sequence[Block]], top: float
) -> tuple[list[tuple[Block, tuple[float, float]]], float, float]:
    """The upper left corner of each block, in columns that begin at `top`; the width and height."""
    placed, left, lowest = [], MARGIN, top
    for column in columns:
        at = top
        for block in column:
            placed.append((block, (left, at)))
            at += block.height + MARGIN
        left += max(b.width for b in column) + MARGIN
        lowest = max(lowest, at)
    return placed, left, lowest


def blocks_of(scene: Scene) -> list[Block]:
    """The parts of a scene, everything in its place."""
    return [_block(kind, boxes, scene.edges) for kind, boxes in _parts(scene).items()]


def _parts(scene: Scene) -> Mapping[str, list[Box]]:
    """The boxes of each frame, in the order of computing."""
    parts: dict[str, list[Box]] = {part: [] for part in ("", *PARTS)}
    for box in scene.boxes:
        parts[part_of(box)].append(box)
    return {part: boxes for part, boxes in parts.items() if boxes}


def _block(kind: str, boxes: Sequence[Box], all_edges: Sequence[Edge]) -> Block:
    spots = {b.id: spot_of(b) for b in boxes}
    edges = [e for e in all_edges if e.head in spots and e.tail in spots]
    for id, rank in ranks(boxes, edges).items():
        spots[id].rank = rank
    routes = [(e, _route(spots[e.tail], spots[e.head])) for e in edges]
    layers = _layers(list(spots.values()), [r for _, r in routes])
    _order(layers)
    _place(layers)
    title = next((r.title for r in boxes[0].regions if r.kind == kind), "")
    everything = [s for layer in layers for s in layer]
    left = min(s.x - s.width / 2 for s in everything) - MARGIN
    for spot in everything:
        spot.x -= left
        spot.y += TITLE if kind else 0.0
    width = max(s.x + s.width / 2 for s in everything) + MARGIN
    bottom = max(s.y + s.height / 2 for s in everything) + MARGIN
    return Block(kind, title, list(spots.values()), routes, max(width, text_width(title)), bottom)


def spot_of(box: Box) -> Spot:
    """A spot as large as a box."""
    size = SMALL_SIZE if box.kind == "stub" else NODE_SIZE
    widest = max(text_width(line, size) for line in box.lines)
    around = 1.35 if box.kind == "placeholder" else 1.0
    pad = 2.0 if box.kind == "stub" else PAD
    tall = 8.0 if box.kind == "variable" else 0.0
    return Spot(widest * around + 2 * pad, len(box.lines) * LINE + pad + tall, box)


def _route(tail: Spot, head: Spot) -> list[Spot]:
    """The spots that an edge passes, one a layer."""
    between = [Spot(GAP_X / 2, 0.0, rank=r) for r in range(tail.rank + 1, head.rank)]
    return [tail, *between, head]


def _layers(boxes: Sequence[Spot], routes: Sequence[Sequence[Spot]]) -> list[list[Spot]]:
    passed = [s for route in routes for s in route[1:-1]]
    lowest = min(s.rank for s in boxes)
    layers: list[list[Spot]] = [[] for _ in range(max(s.rank for s in boxes) - lowest + 1)]
    for spot in (*boxes, *passed):
        layers[spot.rank - lowest].append(spot)
    for route in routes:
        for upper, lower in pairwise(route):
            upper.below.append(lower)
            lower.above.append(upper)
    return layers


def _order(layers: Sequence[list[Spot]]) -> None:
    """Sort each layer by the mean place of its neighbours, downwards and upwards in turn."""
    for layer in layers:
        for i, spot in enumerate(layer):
            spot.x = float(i)
    for sweep in range(SWEEPS + 1):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            layer.sort(key=lambda s: _mean(s.above if down else s.below, s.x))
            for i, spot in enumerate(layer):
                spot.x = float(i)


def _mean(spots: Sequence[Spot], otherwise: float) -> float:
    return sum(s.x for s in spots) / len(spots) if spots else otherwise


def _place(layers: Sequence[list[Spot]]) -> None:
    top = MARGIN
    for layer in layers:
        tallest = max((s.height for s in layer), default=0.0)
        right = 0.0
        for spot in layer:
            spot.x, right = right + spot.width / 2, right + spot.width + GAP_X
            spot.y = top + tallest / 2
            if spot.box is None:
                spot.height = tallest  # an edge runs straight past the boxes of a layer
        top += tallest + GAP_Y
    _measure(layers)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            _straighten(layer, [_aim(s, down) for s in layer])
    _close(layers)


def _close(layers: Sequence[Sequence[Spot]]) -> None:
    """Close what is empty from top to bottom: what hangs on nothing stays where the rest began."""
    spots = sorted((s for layer in layers for s in layer), key=lambda s: s.x - s.width / 2)
    reached, moved = -inf, 0.0
    for spot in spots:
        left = spot.x - spot.width / 2
        moved += max(left - reached - WIDEST, 0.0) if reached > -inf else 0.0
        reached = max(reached, left + spot.width)
        spot.x -= moved


def _measure(layers: Sequence[Sequence[Spot]]) -> None:
    """Give each spot the length of the longest path through it: what is long is to be straight."""
    for layer in layers:
        for spot in layer:
            spot.up = max((s.up + 1 for s in spot.above), default=0)
    for layer in reversed(layers):
        for spot in layer:
            spot.down = max((s.down + 1 for s in spot.below), default=0)


def _aim(spot: Spot, down: bool) -> float:
    """Where a spot stands straight: by those of its neighbours that lie on the longest paths.

    Where those are on its other side it stays, so that loose ends follow what they hang on.
    """
    beside, other = (spot.above, spot.below) if down else (spot.below, spot.above)
    longest = max((s.up + s.down for s in (*beside, *other)), default=0)
    return _mean([s for s in beside if s.up + s.down == longest], spot.x)


def _straighten(layer: Sequence[Spot], wanted: Sequence[float]) -> None:
    """Move each spot as near to where it wants to be as the spots placed before it allow.

    What lies on long paths is placed first, loose ends last, in the room that is left.
    """
    offsets = [0.0]
    for a, b in pairwise(layer):
        offsets.append(offsets[-1] + (a.width + b.width) / 2 + GAP_X)
    placed: list[int] = []
    for i in sorted(range(len(layer)), key=lambda i: -layer[i].up - layer[i].down):
        at = bisect(placed, i)
        x = wanted[i]
        if at > 0:
            left = placed[at - 1]
            x = max(x, layer[left].x + offsets[i] - offsets[left])
        if at < len(placed):
            right = placed[at]
            x = min(x, layer[right].x + offsets[i] - offsets[right])
        layer[i].x = x
        placed.insert(at, i)


def _draw(canvas: ET.Element, block: Block, corner: tuple[float, float], palette: Palette) -> None:
    left, top = corner
    if block.kind:
        place = (left, top, block.width, block.height)
        draw_frame(canvas, block.kind, block.title, place, palette, block.kind)
    into: dict[int, list[tuple[Edge, Sequence[Spot]]]] = {}
    for edge, route in block.routes:
        into.setdefault(id(route[-1]), []).append((edge, route))
    for arriving in into.values():
        arriving.sort(key=lambda pair: pair[1][-2].x)
        for nth, (edge, route) in enumerate(arriving, 1):
            tail, head = route[0], route[-1]
            end = head.x + head.width * 0.6 * (nth / (len(arriving) + 1) - 0.5)
            points = [(tail.x, tail.y + tail.height / 2)]
            points += [(s.x, s.y + s.height * side) for s in route[1:-1] for side in (-0.5, 0.5)]
            rim = 3.5 * (head.box is not None and head.box.is_output)
            points.append((end, head.y - head.height / 2 - rim))
            draw_arrow(canvas, edge, [(x + left, y + top) for x, y in points], palette)
    for spot in block.spots:
        if spot.box is not None:
            size = spot.width, spot.height
            draw_box(canvas, spot.box, (spot.x + left, spot.y + top), size, palette)
