"""The sheet that the stages of a program lie on: one place for all that stands there in turn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, TypeAlias

from symgrad.analysis import loops
from symgrad_viz.layers import LINE, MARGIN, PAD, Block, Spot, arranged, blocks_of
from symgrad_viz.scene import CARRY, Box, Edge, Region, Scene, part_of, with_stubs
from symgrad_viz.theme import ADVANCE, NODE_SIZE, SMALL_SIZE
from symgrad_viz.words import shortened, text_width

SMALL_LINE = 12.0
GAP = 14.0  # between boxes and the way of what is carried
ASPECT = 1.4  # of the window; parts stand beside each other or not, as they fill it best
Pair: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Placed:
    """A box of a stage: which element it shows, and at which spot of the sheet.

    `group` is the fused node that it is inside of, where these are open.
    """

    element: int
    spot: int
    box: Box
    group: int | None = None


@dataclass(frozen=True)
class Stage:
    """One graph on the sheet: its boxes and edges, and those boxes of the stage before that went.

    Edges are of elements. `ghosts` are gone, and nothing stands in their places; `added` are the
    elements that the stage before had not. `left` counts all that went, ghosts or not.
    """

    boxes: tuple[Placed, ...]
    edges: tuple[Edge, ...]
    ghosts: tuple[Placed, ...] = ()
    added: tuple[int, ...] = ()
    left: int = 0


@dataclass(frozen=True)
class Route:
    """The way of an edge: `end` is where it meets its head, `points` lie in between.

    A `stub` is the place where the value is named again instead of an edge from afar.
    """

    end: float
    points: tuple[tuple[float, float], ...] = ()
    stub: tuple[float, float] | None = None


@dataclass
class Sheet:
    """The places: the centre of every spot, the way between two spots, the parts' frames."""

    spots: dict[int, tuple[float, float]] = field(default_factory=dict)
    routes: dict[Pair, Route] = field(default_factory=dict)
    frames: list[tuple[str, str, float, float, float, float]] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def laid_out(stages: Sequence[Stage]) -> Sheet:
    """The sheet of all stages: what stands at one spot, now this and then that, has one place."""
    at: dict[int, list[Box]] = defaultdict(list)
    heads: dict[int, dict[int, None]] = defaultdict(dict)
    tails: dict[int, dict[int, None]] = defaultdict(dict)
    carried: dict[Pair, None] = {}
    # The last stage is what runs, and is to be the most beautiful. Those that change nothing are
    # there once.
    for stage in {id(s.boxes): s for s in reversed(stages)}.values():
        spot = {f"n{p.element}": p.spot for p in stage.boxes}
        for placed in stage.boxes:
            at[placed.spot].append(placed.box)
        for edge in stage.edges:
            if edge.way == CARRY:
                carried[spot[edge.tail], spot[edge.head]] = None
                continue
            heads[spot[edge.tail]][spot[edge.head]] = None
            tails[spot[edge.head]][spot[edge.tail]] = None
    cut = _cut(stages)
    tails = {h: {t: None for t in of if (t, h) not in cut} for h, of in tails.items()}
    place = {s: i for i, s in enumerate(_in_order(at, tails))}
    titles = {r.kind: r.title for found in at.values() for b in found for r in b.regions}
    boxes = tuple(_union(s, at[s], titles) for s in place)
    edges = tuple(Edge(str(t), str(h), "") for t in place for h in heads[t])
    boxes, edges = with_stubs(boxes, edges)
    # A stub says but the name, for the value stands on the same sheet.
    names = {s: max((stub_text(b) for b in found), key=len) for s, found in at.items()}
    boxes = tuple(
        replace(b, lines=(names[int(b.id.partition("_at_")[0])],)) if b.kind == "stub" else b
        for b in boxes
    )
    sheet = Sheet()
    blocks = blocks_of(Scene("", "", boxes, edges))
    ways = (arranged(columns, MARGIN) for columns in _columns(blocks))
    best, sheet.width, sheet.height = min(ways, key=lambda way: max(way[1] / ASPECT, way[2]))
    for block, corner in best:
        _enter(sheet, block, corner, at)
    for tail, inner in heads.items():
        for head in inner:
            sheet.routes.setdefault((tail, head), Route(sheet.spots[head][0]))
    sizes = {s: max(map(size_of, found)) for s, found in at.items()} if carried else {}
    for i, (tail, head) in enumerate(carried):
        sheet.routes[tail, head] = _back(sheet, tail, head, sizes, GAP + 5 * (i % 4))
    return sheet


def _cut(stages: Sequence[Stage]) -> set[Pair]:
    """The edges that are drawn as stubs: between parts, and those that would close a cycle.

    What was written tells what stands above what: a later stage closes the cycle.
    """
    found: dict[Pair, None] = {}
    between: set[Pair] = set()
    for stage in stages:
        at = {f"n{p.element}": p for p in stage.boxes}
        for edge in stage.edges:
            above, under = at[edge.tail], at[edge.head]
            if edge.way != CARRY and above.spot != under.spot:
                pair = above.spot, under.spot
                if part_of(above.box) == part_of(under.box):
                    found[pair] = None
                else:
                    between.add(pair)
    cut: set[Pair] = set()
    for cycle in loops(list(found)):
        below: dict[int, set[int]] = {spot: {spot} for spot in cycle}
        for tail, head in found:
            if tail in cycle and head in cycle:
                if tail in below[head]:
                    cut.add((tail, head))
                    continue
                for other in cycle:
                    if tail in below[other]:
                        below[other] |= below[head]
    return cut | between


def _back(
    sheet: Sheet, tail: int, head: int, sizes: Mapping[int, tuple[float, float]], aside: float
) -> Route:
    """The way of what is carried, up to where the next step begins, beside what lies between."""
    (_, top), (_, bottom) = ends = sheet.spots[head], sheet.spots[tail]
    right = max(x + sizes[s][0] / 2 for s, (x, _) in zip((head, tail), ends, strict=True))
    between = [s for s, (_, y) in sheet.spots.items() if top <= y <= bottom]
    for s in sorted(between, key=lambda s: sheet.spots[s][0]):
        x, wide = sheet.spots[s][0], sizes[s][0] / 2
        if x - wide < right + GAP < x + wide + GAP:
            right = x + wide
    right += aside
    begin, end = bottom + sizes[tail][1] / 2 + GAP / 2, top - sizes[head][1] / 2 - GAP
    return Route(ends[0][0], ((right, begin), (right, end)))


def _in_order(at: Mapping[int, Any], tails: Mapping[int, Mapping[int, None]]) -> list[int]:
    """Spots, each after those that it reads; where stages contradict each other, the last wins."""
    order: dict[int, None] = {}
    entered: set[int] = set()
    for root in at:
        stack = [root]
        while stack:
            spot = stack[-1]
            entered.add(spot)
            above = [t for t in tails.get(spot, ()) if t not in entered]
            if above:
                stack.append(above[0])
            else:
                order[stack.pop()] = None
    return list(order)


def _columns(blocks: Sequence[Block]) -> Iterator[list[Sequence[Block]]]:
    """The ways to set parts below and beside each other that keep their order."""
    if not blocks:
        yield []
    for n in range(1, len(blocks) + 1):
        for rest in _columns(blocks[n:]):
            yield [blocks[:n], *rest]


def _union(spot: int, boxes: Sequence[Box], titles: Mapping[str, str]) -> Box:
    """A box as wide and as high as all that stand at a spot."""
    sizes = [size_of(b) for b in boxes]
    letters = ceil((max(w for w, _ in sizes) - 2 * PAD) / (NODE_SIZE * ADVANCE))
    lines = ceil((max(h for _, h in sizes) - PAD) / LINE)
    part = part_of(boxes[0])
    regions = (Region(part, part, titles[part]),) if part else ()
    return Box(str(spot), "op", ("x" * letters,) * lines, "", regions)


def stub_text(box: Box) -> str:
    """The label of a box where it is used from afar."""
    return shortened(box.lines[0].partition(" = ")[0], 24)


def size_of(box: Box) -> tuple[float, float]:
    """How wide and high a box is: its first line is large, the others are small."""
    first, *others = box.lines
    small = max((text_width(line, SMALL_SIZE) for line in others), default=0.0)
    around = 1.3 if box.kind == "placeholder" else 1.0
    lid = 8.0 if box.kind == "variable" else 0.0
    width = max(text_width(first), small) * around
    return width + 2 * PAD, LINE + SMALL_LINE * len(others) + PAD + lid


def _enter(
    sheet: Sheet, block: Block, corner: tuple[float, float], at: Mapping[int, Sequence[Box]]
) -> None:
    left, top = corner
    for spot in block.spots:
        if spot.box is not None and spot.box.kind != "stub":
            sheet.spots[int(spot.box.id)] = (spot.x + left, spot.y + top)
    if block.kind:
        frame = (block.kind, block.title, left, top, block.width, block.height)
        sheet.frames.append(frame)
    arriving: dict[str, list[tuple[Edge, Sequence[Spot]]]] = defaultdict(list)
    for edge, way in block.routes:
        arriving[edge.head].append((edge, way))
    for head, ways in arriving.items():
        ways.sort(key=lambda pair: pair[1][-2].x)
        narrowest = min(size_of(b)[0] for b in at[int(head)])
        for i, (edge, way) in enumerate(ways, 1):
            end = way[-1].x + narrowest * 0.6 * (i / (len(ways) + 1) - 0.5) + left
            points = tuple((s.x + left, s.y + top) for s in way[1:-1])
            tail = int(edge.tail.partition("_at_")[0])
            stub = (way[0].x + left, way[0].y + top) if edge.is_stub else None
            sheet.routes[tail, int(head)] = Route(end, points, stub)
