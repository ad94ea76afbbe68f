"""The buffers of a plan over its steps: which memory is used when, and what shares it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Mapping
from itertools import islice
from math import ceil

from symgrad.lowering.plan import Plan
from symgrad_viz.places import Place, Places
from symgrad_viz.scene import Box
from symgrad_viz.shapes import draw_box, draw_note, draw_title
from symgrad_viz.svg import element
from symgrad_viz.theme import ADVANCE, NODE_SIZE, SMALL_SIZE, Palette
from symgrad_viz.words import bytes_text, counted, shortened, sizes_text, text_width

HEAD, ROW, BAR = 50.0, 24.0, 18.0
MOST_ROWS = 24
TITLE = NODE_SIZE * 1.2
KINDS: Mapping[str, tuple[str, str]] = {
    "arena": ("op", "in the arena"),
    "output": ("fused", "an output"),
    "next": ("update", "a next value"),
}


def lifetimes_size(plan: Plan) -> tuple[float, float]:
    """How wide the picture of a plan's buffers is at least, and how high."""
    rows, left_out = lifetime_rows(plan)
    wide = max(text_width(_title(plan), TITLE), text_width(_note(left_out), SMALL_SIZE))
    return wide, HEAD + ROW * len(rows)


def draw_lifetimes(canvas: ET.Element, plan: Plan, width: float, palette: Palette) -> None:
    """Draw a bar for each buffer, from the step that writes it first to the last that needs it.

    Buffers in one row lie in the same memory, one after the other.
    """
    rows, left_out = lifetime_rows(plan)
    draw_title(canvas, _title(plan), 0, 10, palette, TITLE, "start")
    draw_note(canvas, _note(left_out), (0, 24), palette)
    step = width / max(len(plan.steps), 1)
    letters = int(step / (SMALL_SIZE * ADVANCE)) - 1
    number = (len(str(len(plan.steps) - 1)) + 1) * SMALL_SIZE * ADVANCE
    each = 1 if letters > 6 else ceil(number / step)
    for i, of in islice(enumerate(plan.steps), None, None, each):
        named = shortened(f"{i} {of.name}", letters) if letters > 6 else str(i)
        draw_note(canvas, named, (i * step, 42), palette)
    for row, places in enumerate(rows):
        y = HEAD + row * ROW + BAR / 2
        for slot, host in places:
            size = ((slot.last - slot.first + 1) * step - 3, BAR)
            label = f"{slot.name} {bytes_text(slot.nbytes)}"
            where = f"in {plan.slots[host].name}" if host >= 0 else KINDS[slot.kind][1]
            label += "" if slot.kind == "arena" else f", {where}"
            wide = int(size[0] / (NODE_SIZE * ADVANCE))
            text = label if len(label) < wide else slot.name if len(slot.name) < wide else ""
            label += f": {slot.type!r}, steps {slot.first} to {slot.last}"
            group = element(canvas, "g")
            element(group, "title", label)
            kind = "op" if host >= 0 else KINDS[slot.kind][0]
            at = (slot.first * step + size[0] / 2, y)
            draw_box(group, Box("", kind, (text,), ""), at, size, palette, "key")


def _title(plan: Plan) -> str:
    sizes = sizes_text(plan.sizes.items())
    memory = f"{bytes_text(plan.peak_bytes)} in all, {bytes_text(plan.arena_bytes)} in the arena"
    return f"memory of {len(plan.steps)} steps{sizes}: {memory}"


def _note(left_out: int) -> str:
    note = f"{counted(left_out, 'smaller place')} left out; " if left_out else ""
    note += "one row is one place in memory; a bar lasts from the step that first writes a buffer "
    return note + "to the last that reads it"


def lifetime_rows(plan: Plan) -> tuple[list[list[Place]], int]:
    """The buffers by where they lie: those of the arena, then outputs and next values.

    What lies in the array of a next value stands above that. Of very many only the largest; and how
    many are left out.
    """
    end = len(plan.steps) - 1
    rows: dict[tuple[int, int], list[Place]] = defaultdict(list)
    for i, (slot, host) in enumerate(Places(plan).all):
        if host >= 0:
            rows[host, slot.offset].append(Place(slot, host))
        elif slot.kind == "arena":
            rows[-1, slot.offset].append(Place(slot))
        elif slot.kind in KINDS:
            writing = (k for k, s in enumerate(plan.steps) if any(r.slot == i for r in s.results))
            first = max(slot.first, next(writing, 0))
            rows[i, plan.peak_bytes].append(Place(slot._replace(first=first, last=end)))
    largest = sorted(rows, key=lambda key: -max(place.slot.nbytes for place in rows[key]))
    return [rows[key] for key in sorted(largest[:MOST_ROWS])], max(len(rows) - MOST_ROWS, 0)
