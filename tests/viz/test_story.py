"""The story: every stage that changed something, nodes in their places, marks, lifetimes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import RenderError
from symgrad_viz import story
from symgrad_viz.lifetimes import _rows
from symgrad_viz.story import MOST_NODES, story_svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def step():
    x = sg.placeholder("x", ("N", 6), "float32")
    w1 = sg.variable("w1", np.zeros((6, 5), "float32"))
    w2 = sg.variable("w2", np.zeros((5, 2), "float32"))
    loss = sg.sum((sg.relu(x @ w1) @ w2 - 1) ** 2)
    d1, d2 = sg.grad(loss, [w1, w2])
    return sg.compile([x], loss, updates={w1: w1 - 0.1 * d1, w2: w2 - 0.1 * d2})


@pytest.fixture(scope="module")
def drawn(step):
    return ET.fromstring(story_svg(step))


def panels(root):
    return [g for g in root.iter(f"{SVG}g") if re.fullmatch(r"stage\d+", g.get("id", ""))]


def texts(group):
    return [t.text or "" for t in group.iter(f"{SVG}text")]


def places(group):
    """Where each node of a panel lies: the centre of its first line."""
    found = {}
    for g in group.iter(f"{SVG}g"):
        if "node" in g.get("class", "").split() and "is-gone" not in g.get("class"):
            found[g.get("id").partition("-")[2]] = g.find(f"{SVG}text").get("x")
    return found


def of_class(group, name):
    return [g for g in group.iter(f"{SVG}g") if name in g.get("class", "").split()]


def test_the_stages_are_those_that_changed_something(step, drawn):
    names = [texts(p)[0] for p in panels(drawn)]
    assert names[0] == "1. as written"
    assert names[1] == "2. its gradient"
    assert names[-1] == f"{len(names)}. what runs, after fusion"
    changed = [s.name for s in step.trace.stages if s.after is not s.before]
    assert [n.split()[-1] for n in names[2:]] == [c for c in changed if c in " ".join(names)]


def test_the_first_stage_is_the_forward_part(drawn):
    first, second, *_ = panels(drawn)
    assert not of_class(first, "is-backward")
    assert of_class(second, "is-backward")
    assert set(places(first)) < set(places(second))


def test_every_node_keeps_its_place(drawn):
    _, *later = panels(drawn)
    known = {}
    for panel in later:
        for id, x in places(panel).items():
            assert known.setdefault(id, x) == x


def test_what_is_new_is_marked_and_what_went_struck_through(drawn):
    written, gradient, *later = panels(drawn)
    assert not of_class(written, "mark")
    assert not of_class(gradient, "mark")
    for before, panel in zip([gradient, *later], later, strict=False):
        new = set(places(panel)) - set(places(before))
        assert len(of_class(panel, "mark")) == len(new)
        for ghost in of_class(panel, "is-gone"):
            assert ghost.get("id").partition("-")[2] in places(before)
            assert ghost.get("id").partition("-")[2] not in places(panel)


def test_the_group_that_swallowed_a_node_is_named(drawn):
    last = panels(drawn)[-1]
    fused = {g.get("id").partition("-")[2] for g in of_class(last, "is-fused") if g.get("id")}
    assert fused
    told = [t for g in of_class(last, "is-gone") for t in texts(g) if t.startswith("in ")]
    assert told
    assert {t.removeprefix("in ") for t in told} <= fused


def test_the_rules_name_stands_at_what_it_made_and_above_its_stage(step, drawn):
    simplify = next(p for p in panels(drawn) if texts(p)[0].endswith("simplify"))
    made = {t for g in of_class(simplify, "node") for t in texts(g) if t.startswith("⟵ ")}
    assert "⟵ sum_of_squares" in made
    assert "sum_of_squares" in texts(simplify)[2]


def test_the_lifetimes_stand_under_the_last_stage(step, drawn):
    titles = [t.text for t in panels(drawn)[-1].iter(f"{SVG}title")]
    for slot in step.plan.slots:
        if slot.kind in ("arena", "output", "next"):
            assert any(t.startswith(f"{slot.name} ") for t in titles), slot


def test_buffers_in_one_row_do_not_live_at_once(step):
    for row in _rows(step.plan):
        for (_, last, _), (first, _, _) in pairwise(row):
            assert first >= last


def test_a_story_without_a_gradient():
    x = sg.placeholder("x", (3,), "float32")
    root = ET.fromstring(story_svg(sg.compile([x], sg.exp(x) * 2 * 3)))
    assert texts(panels(root)[0])[0] == "1. as written"
    assert texts(panels(root)[1])[0].endswith("simplify")


def test_a_story_in_which_nothing_changes():
    x = sg.placeholder("x", (3,), "float32")
    root = ET.fromstring(story_svg(sg.compile([x], sg.exp(x), passes=())))
    assert [texts(p)[0] for p in panels(root)] == ["1. as written"]
    assert any("memory of 1 steps" in t for t in texts(root))


def test_ids_are_unique_and_the_picture_is_accessible(drawn):
    ids = [g.get("id") for g in drawn.iter() if g.get("id")]
    assert len(ids) == len(set(ids))
    assert drawn.get("role") == "img"
    assert [child.tag for child in drawn][:3] == [f"{SVG}{t}" for t in ("title", "desc", "style")]
    assert "prefers-color-scheme: dark" in drawn.find(f"{SVG}style").text


def test_the_same_program_gives_the_same_story(step):
    assert story_svg(step) == story_svg(step)


def test_hostile_names_are_shown_and_do_no_harm(hostile_graph, hostile_names):
    root = ET.fromstring(story_svg(sg.compile(list(hostile_graph.inputs), hostile_graph.outputs[0]),
                                   title=hostile_names[0]))  # fmt: skip
    assert not list(root.iter(f"{SVG}script"))
    assert "</svg><script>alert(1)</script>" in texts(root)
    assert r"\u202egnp.exe" in texts(root)


def test_it_is_written(step, tmp_path):
    path = tmp_path / "story.svg"
    assert story(step, path) == path
    assert path.read_text(encoding="utf-8").startswith("<svg")
    assert path.stat().st_size < 300_000


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("story.png", {}, r"a story is an SVG; name 'story\.png' with \.svg"),
        ("none/story.svg", {}, "there is no folder"),
        ("story.svg", {"theme": "pink"}, "theme is one of"),
        ("story.svg", {"columns": 0}, "columns is a number from 1 on"),
    ],
)
def test_wrong_options_are_refused(step, tmp_path, name, options, message):
    with pytest.raises(RenderError, match=message):
        story(step, tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_graph_has_no_story(net, tmp_path):
    with pytest.raises(RenderError, match="a Program has a story, not a Graph"):
        story(net(), tmp_path / "story.svg")


def test_a_large_program_is_shown_by_the_explorer(tmp_path):
    h = x = sg.placeholder("x", (3,), "float32")
    for _ in range(MOST_NODES):
        h = sg.tanh(h)
    with pytest.raises(RenderError, match=r"program\.explore"):
        story(sg.compile([x], h, passes=()), tmp_path / "story.svg")


def test_columns(step):
    widths = [float(ET.fromstring(story_svg(step, columns=c)).get("width")) for c in (1, 2, 9)]
    assert widths == sorted(widths)
