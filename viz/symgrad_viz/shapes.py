"""The shapes of the built-in layout as SVG, with the ids and classes that Graphviz is told too."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from symgrad_viz.captions import tab
from symgrad_viz.scene import Box, Edge
from symgrad_viz.svg import element
from symgrad_viz.theme import (
    HEAT,
    LAYOUT_FONT,
    NODE_SIZE,
    ON_HEAT,
    SMALL_SIZE,
    Paint,
    Palette,
)

LINE, SMALL_LINE = 14.0, 12.0
LID = 5.0
Point: TypeAlias = tuple[float, float]
DASHES: Mapping[str, str] = {"backward": "6 3", "update": "2 3"}


def draw_title(
    canvas: ET.Element,
    title: str,
    x: float,
    y: float,
    palette: Palette,
    size: float = NODE_SIZE + 1,
    anchor: str = "middle",
) -> None:
    """The title of the picture, centred, or of a part of it."""
    _text(canvas, title, (x, y), palette.text, size, anchor)
    canvas[-1].set("class", "title")


def draw_note(
    canvas: ET.Element, note: str, place: Point, palette: Palette, size: float = SMALL_SIZE
) -> None:
    """A line of small text."""
    _text(element(canvas, "g", class_="note"), note, place, palette.edge_text, size, "start")


def draw_frame(
    canvas: ET.Element,
    kind: str,
    title: str,
    place: tuple[float, float, float, float],
    palette: Palette,
    id: str = "",
) -> None:
    """A frame with a title around a part of the graph; `place` is left, top, width, height."""
    x, y, width, height = place
    paint = palette.regions[kind]
    group = element(canvas, "g", class_=f"cluster is-{kind}")
    if id:
        group.set("id", id)
    element(group, "title", title)
    frame = element(group, "rect", x=x, y=y, width=width, height=height, rx=8.0)
    frame.set("stroke-dasharray", DASHES.get(kind, "none"))
    _paint(frame, paint)
    canvas.append(tab(kind, title, (x + 10, y), paint, NODE_SIZE + 1))


def draw_box(
    canvas: ET.Element,
    box: Box,
    centre: Point,
    size: tuple[float, float],
    palette: Palette,
    role: str = "node",
    small: bool = False,
) -> None:
    """One node in the shape of its kind, with its lines and its tooltip.

    `small` writes all lines but the first in small letters.
    """
    x, y = centre
    width, height = size
    paint = paint_of(box, palette)
    group = element(canvas, "g", class_=f"{role} {box.classes}")
    if box.id:
        group.set("id", box.id)
        element(group, "title", box.tooltip)
    if paint.stroke != "none":
        _outline(group, box.kind, centre, size, paint)
        if box.is_output:
            around = (width + 7, height + 7)
            _outline(group, box.kind, centre, around, Paint(paint.stroke, "none", ""))
    first = SMALL_SIZE if box.kind == "stub" else NODE_SIZE
    rest, line_height = (SMALL_SIZE, SMALL_LINE) if small else (first, LINE)
    lid = LID if box.kind == "variable" else 0.0
    at = y - (LINE + line_height * (len(box.lines) - 1)) / 2 + LINE * 0.75 + lid / 2
    for i, line in enumerate(box.lines):
        _text(group, line, (x, at), paint.text, rest if i else first)
        at += line_height


def _outline(
    group: ET.Element, kind: str, centre: Point, size: tuple[float, float], paint: Paint
) -> None:
    (x, y), (width, height) = centre, size
    left, top, right, bottom = x - width / 2, y - height / 2, x + width / 2, y + height / 2
    match kind:
        case "placeholder":
            drawn = [element(group, "ellipse", cx=x, cy=y, rx=width / 2, ry=height / 2)]
        case "variable":
            arc = f"A {width / 2:.2f} {LID} 0 0"
            body = (
                f"M {left:.2f} {top + LID:.2f} {arc} 1 {right:.2f} {top + LID:.2f} "
                f"V {bottom - LID:.2f} {arc} 1 {left:.2f} {bottom - LID:.2f} Z"
            )
            lid = f"M {left:.2f} {top + LID:.2f} {arc} 0 {right:.2f} {top + LID:.2f}"
            drawn = [element(group, "path", d=body)]
            _paint(element(group, "path", d=lid), Paint(paint.stroke, "none", ""))
        case "fused" | "many":
            drawn = []
            for offset in (3.0, 0.0):
                rect = element(
                    group, "rect", x=left + offset, y=top - offset, width=width, height=height
                )
                drawn.append(rect)
        case "test":
            ends = [(left, y), (left + 9, top), (right - 9, top), (right, y)]
            points = [*ends, (right - 9, bottom), (left + 9, bottom)]
            listed = " ".join(f"{a:.2f},{b:.2f}" for a, b in points)
            drawn = [element(group, "polygon", points=listed)]
        case _:
            corner = 0.0 if kind == "backward" else 7.0
            drawn = [element(group, "rect", x=left, y=top, width=width, height=height, rx=corner)]
    for shape in drawn:
        _paint(shape, paint)
        if kind in ("update", "many", "frame", "carry"):
            shape.set("stroke-width", "2")
        if kind == "slice":
            shape.set("stroke-dasharray", "4 2")


def draw_mark(
    canvas: ET.Element, centre: Point, size: tuple[float, float], palette: Palette
) -> None:
    """Mark a box as new: a ground under it like that of a marker, and a plus."""
    (x, y), (width, height) = centre, size
    left, top = x - width / 2 - 8, y - height / 2 - 8
    paint = palette.nodes["new"]
    group = element(canvas, "g", class_="key is-new")
    frame = element(group, "rect", x=left, y=top, width=width + 16, height=height + 16, rx=10.0)
    _paint(frame, paint)
    _text(group, "+", (left - 1, top + 8), paint.text, NODE_SIZE * 1.8, "end")


def paint_of(box: Box, palette: Palette) -> Paint:
    """The colours of a box: those of its kind, or of its figures."""
    paint = palette.nodes[box.kind]
    return paint if box.heat is None else Paint(paint.stroke, HEAT[box.heat], ON_HEAT)


def draw_arrow(canvas: ET.Element, edge: Edge, points: Sequence[Point], palette: Palette) -> None:
    """An edge through some points, from top to bottom, with an arrow at its end."""
    group = element(canvas, "g", class_=f"edge {edge.classes}".strip())
    element(group, "title", edge.tooltip)
    (x, y), *rest = points
    way = f"M {x:.1f} {y:.1f}"
    for to_x, to_y in rest:
        middle = (y + to_y) / 2
        way += f" C {x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    colour = palette.ways.get(edge.way, palette.edge)
    path = element(group, "path", d=way, fill="none", stroke=colour)
    if edge.is_stub:
        path.set("stroke-dasharray", "4 3")
    corners = f"{x:.1f},{y:.1f} {x - 3:.1f},{y - 7:.1f} {x + 3:.1f},{y - 7:.1f}"
    element(group, "polygon", points=corners, fill=colour, stroke=colour)
    if edge.operand:
        _text(group, edge.operand, (x + 5, y - 4), palette.edge_text, SMALL_SIZE, "start")


def _paint(shape: ET.Element, paint: Paint) -> None:
    shape.set("stroke", paint.stroke)
    shape.set("fill", paint.fill)


def _text(
    parent: ET.Element, text: str, place: Point, colour: str, size: float, anchor: str = "middle"
) -> None:
    x, y = place
    element(
        parent, "text", text,
        x=x, y=y, fill=colour, font_size=size, font_family=LAYOUT_FONT, text_anchor=anchor,
    )  # fmt: skip
