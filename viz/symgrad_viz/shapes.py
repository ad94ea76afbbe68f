"""The shapes of the built-in layout as SVG, with the ids and classes that Graphviz is told too."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from symgrad_viz.scene import Box, Edge
from symgrad_viz.svg import element
from symgrad_viz.theme import LAYOUT_FONT, NODE_SIZE, SMALL_SIZE, Paint, Palette

LINE = 14.0
LID = 5.0
Point: TypeAlias = tuple[float, float]
DASHES: Mapping[str, str] = {"backward": "6 3"}


def draw_title(canvas: ET.Element, title: str, x: float, y: float, palette: Palette) -> None:
    """The title of the picture, centred."""
    _text(canvas, title, (x, y), palette.text, NODE_SIZE + 1)


def draw_frame(
    canvas: ET.Element,
    kind: str,
    title: str,
    place: tuple[float, float, float, float],
    palette: Palette,
) -> None:
    """A frame with a title around a part of the graph; `place` is left, top, width, height."""
    x, y, width, height = place
    paint = palette.regions[kind]
    group = element(canvas, "g", id=kind, class_=f"cluster is-{kind}")
    element(group, "title", title)
    frame = element(group, "rect", x=x, y=y, width=width, height=height, rx=8.0)
    frame.set("stroke-dasharray", DASHES.get(kind, "none"))
    _paint(frame, paint)
    _text(group, title, (x + 10, y + 17), paint.text, NODE_SIZE + 1, "start")


def draw_box(
    canvas: ET.Element, box: Box, centre: Point, size: tuple[float, float], palette: Palette
) -> None:
    """One node in the shape of its kind, with its lines and its tooltip."""
    x, y = centre
    width, height = size
    paint = palette.nodes[box.kind]
    group = element(canvas, "g", id=box.id, class_=f"node {box.classes}")
    element(group, "title", box.tooltip)
    if paint.stroke != "none":
        _outline(group, box.kind, centre, size, paint)
        if box.is_output:
            around = (width + 7, height + 7)
            _outline(group, box.kind, centre, around, Paint(paint.stroke, "none", ""))
    small = SMALL_SIZE if box.kind == "stub" else NODE_SIZE
    lid = LID if box.kind == "variable" else 0.0
    top = y - LINE * len(box.lines) / 2 + LINE * 0.75 + lid / 2
    for i, line in enumerate(box.lines):
        _text(group, line, (x, top + i * LINE), paint.text, small)


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
        case "fused":
            drawn = []
            for offset in (3.0, 0.0):
                rect = element(
                    group, "rect", x=left + offset, y=top - offset, width=width, height=height
                )
                drawn.append(rect)
        case _:
            drawn = [element(group, "rect", x=left, y=top, width=width, height=height, rx=7.0)]
    for shape in drawn:
        _paint(shape, paint)
        if kind == "update":
            shape.set("stroke-width", "2")


def draw_arrow(canvas: ET.Element, edge: Edge, points: Sequence[Point], palette: Palette) -> None:
    """An edge through some points, from top to bottom, with an arrow at its end."""
    group = element(canvas, "g", class_=f"edge{' is-stub' if edge.is_stub else ''}")
    element(group, "title", edge.tooltip)
    (x, y), *rest = points
    way = f"M {x:.1f} {y:.1f}"
    for to_x, to_y in rest:
        middle = (y + to_y) / 2
        way += f" C {x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    path = element(group, "path", d=way, fill="none", stroke=palette.edge)
    if edge.is_stub:
        path.set("stroke-dasharray", "4 3")
    corners = f"{x:.1f},{y:.1f} {x - 3:.1f},{y - 7:.1f} {x + 3:.1f},{y - 7:.1f}"
    element(group, "polygon", points=corners, fill=palette.edge, stroke=palette.edge)
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
