"""The story: every stage that changed something, nodes in their places, marks, lifetimes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import RenderError
from symgrad_viz import story
from symgrad_viz.lifetimes import MOST_ROWS, draw_lifetimes, lifetime_rows
from symgrad_viz.story import MOST_BOXES, story_svg
from symgrad_viz.theme import LIGHT, SMALL_SIZE
from symgrad_viz.words import bytes_text, text_width

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
    keeps_its_places(drawn)


def keeps_its_places(root):
    _, *later = panels(root)
    known = {}
    for panel in later:
        for id, x in places(panel).items():
            assert known.setdefault(id, x) == x


def test_forward_backward_and_update_have_frames_of_their_own(drawn):
    first, *others = panels(drawn)
    frames = [[c.get("class") for c in of_class(p, "cluster")] for p in (first, *others)]
    assert frames[0] == ["cluster is-forward"]
    for found in frames[1:]:
        assert found == [f"cluster is-{part}" for part in ("forward", "backward", "update")]


def test_headings_count_the_nodes_of_the_trace(step, drawn):
    """And what they say of a stage adds up to what they said of the one before."""
    lengths = [len(step.raw), *(len(s.after) for s in step.trace.stages if s.after is not s.before)]
    _, gradient, *later = [texts(p)[1] for p in panels(drawn)]
    assert gradient == f"{len(step.raw)} nodes"
    now = len(step.raw)
    for told in later:
        counts = {
            what: int(n) for n, what in re.findall(r"(\d+) (new|gone|replaced|merged|fused)", told)
        }
        before, after = map(int, re.match(r"(\d+) → (\d+) nodes", told).groups())
        assert before == now
        assert after == before + counts.pop("new", 0) - sum(counts.values())
        assert after in lengths
        now = after
    assert now == len(step.graph)


def test_what_is_new_is_marked_and_what_went_struck_through(drawn):
    written, gradient, *later = panels(drawn)
    assert not of_class(written, "is-new")
    assert not of_class(gradient, "is-new")
    for before, panel in zip([gradient, *later], later, strict=False):
        new = set(places(panel)) - set(places(before))
        assert len(of_class(panel, "is-new")) == len(new)
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


def test_what_a_rewrite_made_is_told_apart_from_an_equal_that_was_there():
    x = sg.placeholder("x", ("N", 1000), "float32")
    w1, w2 = (
        sg.variable(f"w{i}", np.zeros(shape, "float32"))
        for i, shape in enumerate([(1000, 100), (100, 10)])
    )
    loss = sg.sum((sg.relu(x @ w1) @ w2 - 1) ** 2)
    steps = zip((w1, w2), sg.grad(loss, [w1, w2]), strict=True)
    program = sg.compile([x], loss, updates={w: w - 0.1 * d for w, d in steps})
    _, gradient, *later = panels(ET.fromstring(story_svg(program)))
    headings = " ".join(texts(p)[1] for p in later)
    assert re.search(r"\d replaced", headings)
    assert re.search(r"\d merged with an equal", headings)
    marks = {"became": [], "=": []}
    for before, panel in zip([gradient, *later], later, strict=False):
        for ghost in of_class(panel, "is-gone"):
            how, _, of = (texts(ghost)[1:] or [""])[0].partition(" ")
            marks.get(how, []).append((of in places(before), of in places(panel)))
    assert set(marks["became"]) == {(False, True)}
    assert set(marks["="]) == {(True, True)}


def ends(element, left=0.0):
    """Where every line that begins at the left ends."""
    left += float((re.findall(r"translate\((\S+) ", element.get("transform", "")) or [0])[0])
    if element.tag == f"{SVG}text" and element.get("text-anchor") == "start":
        yield (
            left
            + float(element.get("x"))
            + text_width(element.text or "", float(element.get("font-size")))
        )
    for child in element:
        if child.get("class") != "legend":
            yield from ends(child, left)


@pytest.mark.parametrize("columns", [1, None, 9])
@pytest.mark.parametrize("most", [1, 40])
def test_all_that_is_told_lies_within_the_sheet(step, columns, most):
    x = sg.placeholder("x", (3,), "float32")
    tiny = sg.compile([x], sg.exp(x) * 2 * 3)
    for program, title in ((step, None), (tiny, None), (tiny, "title " * 20)):
        root = ET.fromstring(story_svg(program, title=title, columns=columns, most=most))
        assert max(ends(root)) <= float(root.get("width"))
        assert "…" not in "".join(t for p in panels(root) for t in texts(p)[:4])
        if most == 1:
            assert "program.explore('page.html')" in " ".join(texts(root))


def test_the_rules_name_stands_at_what_it_made_and_above_its_stage(step, drawn):
    simplify = next(p for p in panels(drawn) if texts(p)[0].endswith("simplify"))
    made = {t for g in of_class(simplify, "node") for t in texts(g) if t.startswith("⟵ ")}
    assert "⟵ sum_of_squares" in made
    assert "sum_of_squares" in texts(simplify)[2]


def test_the_lifetimes_stand_under_the_last_stage(step, drawn):
    titles = [t.text for t in panels(drawn)[-1].iter(f"{SVG}title")]
    assert any(
        t.endswith(f"{bytes_text(step.plan.arena_bytes)} in the arena") for t in texts(drawn)
    )
    for slot in step.plan.slots:
        if slot.kind in ("arena", "output", "next"):
            assert any(t.startswith(f"{slot.name} ") for t in titles), slot


def test_what_lies_in_the_array_of_a_next_value_has_a_bar_of_its_own():
    x, w = sg.placeholder("x", (64, 100)), sg.variable("w", np.ones((100, 50)))
    loss = sg.sum(sg.relu(x @ w) ** 2)
    plan = sg.compile(x, loss, updates={w: w - 0.1 * sg.grad(loss, w)}).plan
    canvas = ET.Element("g")
    draw_lifetimes(canvas, plan, 1000, LIGHT)
    titles = [t.text for t in canvas.iter("title")]
    (name,) = plan.inside
    (own,) = (t for t in titles if t.startswith(f"{name} "))
    (host,) = (t for t in titles if t.startswith("w_next "))
    assert ", in w_next: " in own
    assert ", a next value: " in host
    assert int(own.split()[-1]) < int(host.split()[-3])  # that is written when it is done with


def test_buffers_in_one_row_do_not_live_at_once(step):
    for row in lifetime_rows(step.plan)[0]:
        for (one, host), (other, where) in pairwise(row):
            assert other.first >= one.last
            assert host == where


def test_of_very_many_buffers_the_largest_are_drawn():
    x = sg.placeholder("x", (3,), "float32")
    outputs = [sg.exp(x[:2] * i) for i in range(MOST_ROWS)] + [sg.tanh(x)]
    plan = sg.compile([x], outputs, passes=()).plan
    rows, left_out = lifetime_rows(plan)
    assert (len(rows), left_out > 0) == (MOST_ROWS, True)
    assert max(s.nbytes for s in plan.slots) in {s.nbytes for row in rows for s, _ in row}


def test_numbers_of_many_steps_do_not_touch():
    h = x = sg.placeholder("x", (3,))
    for _ in range(120):
        h = sg.tanh(h) if h.op.name != "tanh" else sg.exp(h)
    plan = sg.compile([x], h, passes=()).plan
    canvas = ET.Element("g")
    draw_lifetimes(canvas, plan, 1000, LIGHT)
    notes = [t for t in canvas.iter("text") if (t.text or "").isdigit()]
    spans = [(float(t.get("x")), text_width(t.text, SMALL_SIZE)) for t in notes]
    assert len(spans) > 20
    for (left, wide), (right, _) in pairwise(spans):
        assert left + wide < right


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


@pytest.mark.parametrize("most", [1000, 20, 1], ids=["open", "scopes closed", "parts closed"])
def test_hostile_names_are_shown_and_do_no_harm(hostile_graph, hostile_names, most):
    program = sg.compile(list(hostile_graph.inputs), hostile_graph.outputs[0])
    root = ET.fromstring(story_svg(program, title=hostile_names[0], most=most))
    assert not list(root.iter(f"{SVG}script"))
    assert "</svg><script>alert(1)</script>" in texts(root)
    assert any(r"\u202egnp.exe" in t for t in texts(root)) or most == 1


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
        ("story.svg", {"columns": 1.5}, "columns is a number from 1 on"),
        ("story.svg", {"title": 5}, "title is a text, not 5"),
        ("story.svg", {"theme": ["light"]}, "theme is one of"),
        ("story.svg", {"most": 0}, "most is a number from 1 on"),
    ],
)
def test_wrong_options_are_refused(step, tmp_path, name, options, message):
    with pytest.raises(RenderError, match=message):
        story(step, tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_graph_has_no_story(net, tmp_path):
    with pytest.raises(RenderError, match="a Program has a story, not a Graph"):
        story(net(), tmp_path / "story.svg")


# Large programs


def unrolled(scopes):
    """Many layers, in scopes or not."""
    h = x = sg.placeholder("x", ("N", 4), "float32")
    weights = [sg.variable(f"w{i}", np.zeros((4, 4), "float32")) for i in range(30)]
    for i, w in enumerate(weights):
        with sg.scope(f"block{i // 10}"), sg.scope(f"layer{i}") if scopes else nullcontext():
            h = sg.tanh(h @ w)
    loss = sg.sum(h * h)
    gradients = zip(weights, sg.grad(loss, weights), strict=True)
    return sg.compile([x], loss, updates={w: w - 0.1 * g for w, g in gradients})


def chain():
    """So many nodes that hang together that no scope or line tells them apart."""
    h = x = sg.placeholder("x", (3,), "float32")
    for _ in range(500):
        h = sg.tanh(h)
    return sg.compile([x], h, passes=())


def named(count):
    """So many scopes with names of their own."""
    h = x = sg.placeholder("x", ("N", 400), "float32")
    weights = [sg.variable(f"w{i}", np.zeros((400, 400), "float32")) for i in range(count)]
    for i, w in enumerate(weights):
        with sg.scope(chr(ord("a") + i) * 2):
            h = sg.tanh(h @ w)
    loss = sg.sum(h * h)
    gradients = zip(weights, sg.grad(loss, weights), strict=True)
    return sg.compile([x], loss, updates={w: w - 0.1 * g for w, g in gradients})


def looped(times):
    """Lines that feed each other over and over."""
    x = sg.placeholder("x", ("N", 400), "float32")
    w = sg.variable("w", np.zeros((400, 400), "float32"))
    h = x
    for _ in range(times):
        z = h @ w
        h = sg.tanh(z + x)
    loss = sg.sum(h * h)
    return sg.compile([x], loss, updates={w: w - 0.1 * sg.grad(loss, w)})


def upward(root):
    """The edges of what runs that do not lead downwards."""
    for edge in of_class(panels(root)[-1], "edge"):
        numbers = edge.find(f"{SVG}path").get("d").split()
        if float(numbers[2]) >= float(numbers[-1]):
            yield edge.find(f"{SVG}title").text


def test_scopes_with_names_of_their_own_are_put_together_with_their_neighbours():
    root = ET.fromstring(story_svg(named(19)))
    first, *_ = panels(root)
    names = [texts(g)[0] for g in drawn_boxes(first)]
    assert {"aa … bb", "cc … dd", "ee … ff"} <= set(names)
    assert max(len(drawn_boxes(p)) for p in panels(root)) <= MOST_BOXES
    assert "neighbours are put together" in " ".join(texts(root)[:3])
    assert list(upward(root)) == []


def test_lines_of_a_loop_are_one_box():
    root = ET.fromstring(story_svg(looped(20)))
    boxes = [texts(g) for g in drawn_boxes(panels(root)[0])]
    (loop,) = (lines for lines in boxes if "h @ w" in lines[1])
    assert len(re.findall(r":\d+", loop[0])) == 2
    assert "sg.tanh(z + x)" in loop[1]
    assert list(upward(root)) == []


def drawn_boxes(panel):
    return [g for g in of_class(panel, "node") if "is-gone" not in g.get("class")]


@pytest.mark.parametrize(
    ("build", "said", "titles"),
    [
        (lambda: unrolled(True), "what is in a scope is one box", ["block0", "block2"]),
        (lambda: unrolled(False), "what is in a scope is one box", ["block0", "block2"]),
        (chain, "what a line wrote is one box", ["test_story.py"]),
    ],
    ids=["scopes in scopes", "scopes", "a line"],
)
def test_a_large_program_is_drawn_with_its_scopes_closed(build, said, titles):
    root = ET.fromstring(story_svg(build()))
    for panel in panels(root):
        assert 2 <= len(drawn_boxes(panel)) <= MOST_BOXES
    assert said in " ".join(texts(root)[:2])
    first = texts(panels(root)[0])
    assert all(any(t.startswith(title) for t in first) for title in titles)
    keeps_its_places(root)


def test_a_closed_box_says_what_is_in_it_and_is_marked_when_that_changes():
    program = unrolled(True)
    root = ET.fromstring(story_svg(program))
    _, gradient, *later = panels(root)
    assert "⟶ 28 more" in texts(gradient)  # next values
    assert any(re.fullmatch(r"\d+ ops, \d+ parameters", t) for t in texts(gradient))
    assert all(of_class(p, "is-new") for p in later)
    assert not of_class(gradient, "is-new")
    assert any(re.fullmatch(r"\d+ fused", t) for t in texts(later[-1]))


def test_a_scope_that_is_left_and_entered_again_is_two_boxes():
    h = x = sg.placeholder("x", (3,), "float32")
    for _ in range(2):
        with sg.scope("a"):
            h = sg.tanh(sg.exp(h))
        h = sg.sin(h)
    (only,) = panels(ET.fromstring(story_svg(sg.compile([x], h, passes=()), most=5)))
    names = [texts(g)[0] for g in drawn_boxes(only)]
    assert sorted(names) == ["a", "a (2)", "n3 = sin(n2)", "n6 = sin(n5)", "x"]
    ends = [float(g.find(f"{SVG}path").get("d").split()[-1]) for g in of_class(only, "edge")]
    starts = [float(g.find(f"{SVG}path").get("d").split()[2]) for g in of_class(only, "edge")]
    assert all(a < b for a, b in zip(starts, ends, strict=True))


@pytest.mark.parametrize("most", [1, 5, 20, 10_000])
def test_so_many_boxes_are_drawn_as_are_wanted(step, most):
    whole, drawn = (ET.fromstring(story_svg(step, **o)) for o in ({}, {"most": most}))
    counts = [[len(drawn_boxes(p)) for p in panels(root)] for root in (whole, drawn)]
    # Each of the three parts is at least one box.
    assert max(counts[1]) <= max(most, 3)
    assert counts[0] == counts[1] or most < max(counts[0])


def test_columns(step):
    widths = [float(ET.fromstring(story_svg(step, columns=c)).get("width")) for c in (1, 2, 9)]
    assert widths == sorted(widths)
