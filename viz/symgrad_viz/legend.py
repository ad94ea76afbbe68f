"""The legend below a picture: what its shapes mean, its scale of colours, what was left out."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping

from symgrad_viz.layers import spot_of
from symgrad_viz.scene import Box, Scene
from symgrad_viz.shapes import draw_box, draw_note
from symgrad_viz.svg import element
from symgrad_viz.theme import ADVANCE, SMALL_SIZE, Palette

GAP = 10.0
ROW = 34.0
LINE = 16.0
LEAST_WIDTH, WIDEST = 320.0, 900.0  # of the legend, and of its lines
MEANINGS: Mapping[str, str] = {
    "placeholder": "input",
    "variable": "parameter",
    "op": "op",
    "backward": "gradient op",
    "update": "update",
    "fused": "fused: one pass",
    "frame": "fused: one pass",
    "carry": "from step to step",
    "slice": "a slice for each step",
    "test": "what decides",
    "many": "repeated, drawn once",
    "stub": "from elsewhere",
    "new": "+ new in this stage",
    "gone": "gone",
}


def add_legend(root: ET.Element, scene: Scene, palette: Palette, scale: float = 1.0) -> None:
    """Put the legend of a scene below a drawn picture, which grows by it."""
    left, top, width, height = map(float, root.get("viewBox", "0 0 0 0").split())
    bottom = top + height
    wide = max(width / scale, LEAST_WIDTH)
    canvas = element(root, "g", class_="legend")
    if scale != 1.0:
        # Larger, from the lower left corner of the picture on.
        moved = f"{left * (1 - scale):.2f} {bottom * (1 - scale):.2f}"
        canvas.set("transform", f"translate({moved}) scale({scale:g})")
    at = bottom + GAP / 2
    rows = [r for boxes in (samples(scene), ramp(scene)) for r in _rows(boxes, wide - 2 * GAP)]
    for row in rows:
        x = left + GAP
        for box in row:
            spot = spot_of(box)
            centre = x + spot.width / 2, at + ROW / 2
            draw_box(canvas, box, centre, (spot.width, spot.height), palette, "key")
            x += spot.width + GAP
        at += ROW
    for note in notes(scene, int((min(wide, WIDEST) - 2 * GAP) / (SMALL_SIZE * ADVANCE))):
        at += LINE
        draw_note(canvas, note, (left + GAP, at), palette)
    wide, grown = wide * scale, height + (at + GAP - bottom) * scale
    # Graphviz counts in points, the style sheet in pixels.
    for name, new, old in (("width", wide, width), ("height", grown, height)):
        given = root.get(name, "")
        unit = given.lstrip("0123456789.")
        scale = float(given.removesuffix(unit)) / old if old else 1.0
        root.set(name, f"{new * scale:.0f}{unit}")
    root.set("viewBox", f"{left:g} {top:g} {wide:.2f} {grown:.2f}")


def samples(scene: Scene) -> list[Box]:
    """A sample of each kind of box that the picture has; the label says what it is."""
    present = _kinds(scene)
    found = [Box("", kind, (what,), "") for kind, what in MEANINGS.items() if kind in present]
    if any(b.is_output for b in scene.boxes):
        found.append(Box("", "op", ("output",), "", is_output=True))
    return found


def ramp(scene: Scene) -> list[Box]:
    """A sample of each step of the colours, if figures are coloured."""
    return [Box("", "op", (text,), "", heat=i) for i, text in enumerate(scene.key[1])]


def _kinds(scene: Scene) -> set[str]:
    """The kinds of boxes that there are, and whether there are frames around fused ones."""
    framed = any(r.kind == "fused" for b in scene.boxes for r in b.regions)
    return {b.kind for b in scene.boxes} | ({"frame"} if framed else set())


def _rows(boxes: list[Box], width: float) -> Iterator[list[Box]]:
    row: list[Box] = []
    used = 0.0
    for box in boxes:
        wide = spot_of(box).width + GAP
        if row and used + wide > width:
            yield row
            row, used = [], 0.0
        row.append(box)
        used += wide
    if row:
        yield row


def notes(scene: Scene, letters: int) -> Iterator[str]:
    """The text below a picture, in lines of so many letters."""
    said = []
    if any("⟵" in line for b in scene.boxes for line in b.lines):
        said.append("⟵ names the rewrite that made a node.")
    if {"fused", "frame"} & _kinds(scene):
        said.append("Fused ops take the data block by block: what lies between stays in the cache.")
    ways = {e.way for e in scene.edges}
    if "view" in ways:
        said.append("A blue edge is a view: nothing is copied.")
    if "carry" in ways:
        said.append("A bold edge goes back from what a step of a loop hands on to the next step.")
    if "in-place" in ways:
        said.append("A red one ends at an op that overwrites what it reads.")
    if scene.kept:
        said.append(
            f"kept: computed forward, in memory until the backward reads it; {scene.kept} in all."
        )
    if scene.key[0]:
        said.append(f"Colour: {scene.key[0]}.")
    if scene.note:
        said.append(scene.note)
    letters, line = max(letters, 40), ""
    for word in " ".join(said).split():
        if line and len(line) + len(word) >= letters:
            yield line
            line = ""
        line = f"{line} {word}".strip()
    if line:
        yield line
