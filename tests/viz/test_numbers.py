"""A node has one number, in pictures, stories and pages, and beside it its array in the source."""

from __future__ import annotations

import re
import runpy
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from symgrad.ir.graph import is_leaf
from symgrad_viz.elements import Elements
from symgrad_viz.explorer_data import Document
from symgrad_viz.scene import LEAVES
from symgrad_viz.story import story_svg
from symgrad_viz.view import view_of
from tests.viz.page_data import rows, unpacked

MAKE = runpy.run_path(str(Path(__file__).resolve().parents[2] / "viz" / "gallery" / "make.py"))


@pytest.mark.parametrize("build", [lambda: MAKE["two_layer_net"]()[1], MAKE["lenet"]])
def test_a_node_has_one_number_and_its_array_beside_it(build):
    program = build()
    elements, lines = Elements.of(program), str(program.source).splitlines()
    boxes = view_of(program, collapse=False, expand=True, stubs=False).boxes
    picture = {int(b.id[1:]): b for b in boxes if re.fullmatch(r"n\d+", b.id)}
    # It is that of what was written, where it is there yet.
    written = {n: node for n, node in enumerate(program.raw.nodes) if n in picture}
    assert len(written) > len(program.raw) / 4
    assert all(elements.value(n) is elements.lineage.value(node) for n, node in written.items())
    page = Document(program, True, None).to_json(None)
    section = page["sections"][0]
    slots = [slot["name"] for slot in rows(section["slots"])]
    arrays = [
        e["array"] if e.get("array") is not None
        else ", ".join(slots[slot] for _, slot in e["buffers"] or ())
        for e in rows(page["elements"])
    ]  # fmt: skip
    computes = {}
    for line, number in zip(*map(unpacked, section["computes"]), strict=True):
        computes.setdefault(number, line)
    seen = 0
    for number, box in picture.items():
        node, array = elements.nodes[number], arrays[number]
        assert is_leaf(node) == (box.kind in LEAVES)
        call = box.tooltip.partition(" : ")[0]  # of what is drawn, not of results picked unseen
        assert {int(n) for n in re.findall(r"\bn(\d+)\b", call)} <= picture.keys()
        if not array or is_leaf(node):
            continue
        assert box.lines[1].endswith(f" in {array}")
        if number in computes:
            seen += 1
            names = re.findall(r"\w+", lines[computes[number] - 1].partition("  # ")[0])
            assert set(array.split(", ")) <= set(names)
    assert seen > len(picture) / 4
    # The story draws groups closed; what stands outside is told by the same words.
    groups = ET.fromstring(story_svg(program, most=10**6)).iter("{http://www.w3.org/2000/svg}g")
    drawn = {id: g for g in groups if (id := g.get("id", "")).startswith("s") and "-n" in id}
    last = max((id.partition("-")[0] for id in drawn), key=lambda stage: int(stage[1:]))
    own = {int(id.partition("-n")[2]): g for id, g in drawn.items() if id.startswith(f"{last}-")}
    gone = [n for n, g in own.items() if "is-gone" in g.get("class", "")]
    alike = [n for n in own if n in picture and n not in gone]
    assert len(alike) > len(own) / 4
    for number in alike:
        first, second, *_ = ("".join(t.itertext()) for t in own[number] if t.tag.endswith("text"))
        assert (first.partition(" ")[0], second) == (
            picture[number].lines[0].partition(" ")[0],
            picture[number].lines[1],
        )
