"""Titles of frames stand beside the edges."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from symgrad_viz.captions import Area, drawn_by, placed


@pytest.mark.parametrize(
    ("areas", "left"),
    [
        ([], 10),
        ([Area(0, -9, 12, 9)], 16),
        ([Area(60, -30, 62, 5), Area(20, -3, 30, 40)], 66),
        ([Area(60, 20, 62, 30)], 10),
        ([Area(x, 0, x + 1, 1) for x in range(0, 200, 30)], 10),
    ],
    ids=["no edge", "an edge at the left", "two edges", "an edge far below", "edges all over"],
)
def test_the_title_of_a_frame_stands_where_no_edge_runs(areas, left):
    frame = ET.Element("polygon", points="0,0 0,80 200,80 200,0")
    *found, wanted = placed(frame, "title", 10, areas)
    assert found == [(left, 0), "title"]
    assert (wanted > 200) == (len(areas) > 5)  # wider than the frame is, where it has no room


@pytest.mark.parametrize(
    ("title", "drawn"),
    [
        ("n4 = fused: 2 ops in one pass", "n4 = fused"),
        ("make.py:169: rounds ×433", "rounds ×433"),
        ("blocks ×12: blocks.0 is drawn", "blocks ×12"),
        ("make.py:169: a loop of rounds ×433", "×433"),
        ("head · Linear 32→65 · 2,145 parameters", "head"),
    ],
)
def test_where_there_is_room_for_a_part_of_a_title_that_is_drawn(title, drawn):
    frame = ET.Element("polygon", points="0,0 0,80 250,80 250,0")
    assert placed(frame, title, 10, [Area(120, 0, 124, 9)]) == ((10, 0), drawn, 0)


def test_edges_are_covered_by_small_areas():
    edge = ET.fromstring(
        '<g><path d="M0,0C0,10 100,90 100,100"/><polygon points="1,2 3,4 5,6"/>'
        '<text x="50" y="20">1</text></g>'
    )
    *curve, head, label = drawn_by([edge])
    assert all(a.right - a.left < 30 and a.bottom - a.top < 30 for a in curve)
    assert (curve[0].left, curve[-1].right) == (0, 100)
    assert head == Area(1, 2, 5, 6)
    assert label.left < 50 < label.right
