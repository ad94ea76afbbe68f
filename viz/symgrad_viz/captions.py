"""Titles of frames: tabs below the upper line, beside the edges where there is room.

Graphviz routes edges as if titles were not there.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from symgrad_viz.theme import ADVANCE, LAYOUT_FONT, SMALL_SIZE, Paint
from symgrad_viz.words import text_width

_NUMBER = re.compile(r"-?\d+\.?\d*")
SAMPLES = 8  # of each curve
AROUND = 4.0
INSET, HIGH = 2.0, 20.0  # of a tab, below the line
Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle that holds something."""

    left: float
    top: float
    right: float
    bottom: float


def tab(
    kind: str, title: str, corner: Point, paint: Paint, size: float, whole: str = ""
) -> ET.Element:
    """The title of a frame below its upper line, beginning at `corner`; `whole` is its tooltip."""
    left, top = corner
    group = ET.Element("g", {"class": f"caption is-{kind}"})
    if whole not in ("", title):
        ET.SubElement(group, "title").text = whole
    around = {
        "x": f"{left:.2f}", "y": f"{top + INSET:.2f}", "rx": "4",
        "width": f"{tab_width(title, size):.2f}", "height": f"{size * 1.5:.2f}",
        "stroke": paint.stroke, "fill": paint.fill,
    }  # fmt: skip
    ET.SubElement(group, "rect", around)
    text = ET.SubElement(
        group, "text", {"x": f"{left + AROUND:.2f}", "y": f"{top + INSET + size * 1.08:.2f}"}
    )
    text.set("font-family", LAYOUT_FONT)
    text.set("font-size", f"{size:.2f}")
    text.set("fill", paint.text)
    text.text = title
    return group


def tab_width(title: str, size: float) -> float:
    """How wide a tab is."""
    return text_width(title, size) + 2 * AROUND


def placed(
    frame: ET.Element, title: str, size: float, drawn: Sequence[Area]
) -> tuple[Point, str, float]:
    """Where the title of a frame begins, below its upper line, and as much of it as is drawn there.

    Where the whole title would cover what is drawn, a part of it may have room. If none has, the
    shortest begins at the left. Last comes how wide the frame has to be at least for that to have
    room: 0 if it has.
    """
    xs, ys = zip(*_points(frame), strict=True)
    top, first, last = min(ys), min(xs) + 2.5 * AROUND, max(xs) - AROUND
    taken = sorted((a for a in drawn if a.top <= top + HIGH and a.bottom >= top), key=_left)
    for text in dict.fromkeys((title, *_parts(title))):
        left, width = first, tab_width(text, size)
        for area in taken:
            if left < area.right + AROUND and left + width > area.left - AROUND:
                left = area.right + AROUND
        if left + width < last:
            return (left, top), text, 0.0
    return (first, top), text, last - first + width + 4 * AROUND


def _left(area: Area) -> float:
    return area.left


def _parts(title: str) -> Iterator[str]:
    """Shorter titles: less and less of what comes beside the name, or beside how often.

    >>> list(_parts("n41 = fused: 2 ops in one pass"))
    ['n41 = fused', 'n41']
    >>> list(_parts("make.py:169: rounds ×433"))
    ['rounds ×433', '×433']
    """
    head, _, tail = title.partition(": ")
    short = tail if "×" in tail and "×" not in head else head.partition(" · ")[0]
    yield short
    yield f"×{short.rpartition('×')[2]}" if "×" in short else short.partition(" = ")[0]


def drawn_by(edges: Iterable[ET.Element]) -> Iterator[Area]:
    """Small areas that cover what edges draw, and their labels."""
    for edge in edges:
        for path in edge.iter("path"):
            points = _points(path)
            for i in range(0, len(points) - 3, 3):
                curve = list(_curve(*points[i : i + 4]))
                yield from (_around(pair) for pair in pairwise(curve))
        for head in edge.iter("polygon"):
            yield _around(_points(head))
        for text in edge.iter("text"):
            x, y = (float(text.get(name, "0")) for name in "xy")
            wide = len(text.text or "") * SMALL_SIZE * ADVANCE
            yield Area(x - wide / 2, y - SMALL_SIZE, x + wide / 2, y)


def _points(shape: ET.Element) -> list[Point]:
    numbers = [float(n) for n in _NUMBER.findall(shape.get("d") or shape.get("points") or "")]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _around(points: Sequence[Point]) -> Area:
    xs, ys = zip(*points, strict=True)
    return Area(min(xs), min(ys), max(xs), max(ys))


def _curve(a: Point, b: Point, c: Point, d: Point) -> Iterator[Point]:
    for i in range(SAMPLES + 1):
        t = i / SAMPLES
        u = 1 - t
        weights = u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t
        at = list(zip(weights, (a, b, c, d), strict=True))
        yield sum(w * p[0] for w, p in at), sum(w * p[1] for w, p in at)
