"""Loops and choices in pictures: frames that show their bodies, and what is carried."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import symgrad as sg
from symgrad_viz.builder import scene_of
from symgrad_viz.engines import ENGINES
from symgrad_viz.picture import render
from symgrad_viz.scene import CARRY, saved_text
from symgrad_viz.view import view_of

SVG = "{http://www.w3.org/2000/svg}"
x = sg.placeholder("x", ("T", 4), "float64")
w = sg.placeholder("w", (4, 4), "float64")


def rnn():
    def step(h, row):
        new = sg.tanh(row + h @ w)
        return new, sg.sum(new)

    last, ys = sg.scan(step, sg.zeros(4), x)
    loss = sg.sum(last**2) + sg.sum(ys)
    return sg.Graph([loss, *sg.grad(loss, [w, x])])


def mean():
    a, b = sg.placeholder("a", ()), sg.placeholder("b", ())

    def step(pair):
        return (pair[0] + pair[1]) / 2, sg.sqrt(pair[0] * pair[1])

    first, _ = sg.while_loop(lambda pair: abs(pair[0] - pair[1]) > b * 1e-12, step, (a, b))
    return sg.Graph([first, sg.grad(first, a)])


def choice():
    y = sg.cond(sg.sum(x) > 0, lambda: sg.sum(x**2), lambda: sg.sum(sg.tanh(x)))
    return sg.Graph([y, sg.grad(y, x)])


def frames(scene, *kinds):
    return {r.title: r for b in scene.boxes for r in b.regions if r.kind in kinds}


def inside(scene, region):
    return {b.id: b for b in scene.boxes if region in b.regions}


def test_a_loop_opens_with_its_carries_slices_and_the_arrow_from_carry_to_carry():
    scene = scene_of(rnn(), stubs=False)
    (title, region), *_ = frames(scene, "loop").items()
    assert title.endswith("= loop ×T")
    boxes = inside(scene, region)
    labels = [b.lines[0] for b in boxes.values() if b.kind in ("carry", "slice")]
    assert labels == ["carry0", "x[t]"]
    (back,) = (e for e in scene.edges if e.way == CARRY and e.head in boxes)
    assert boxes[back.head].lines[0] == "carry0"
    assert boxes[back.tail].what == "tanh"
    # What is read whole has an edge from where it stands.
    assert [boxes[e.head].lines[0] for e in scene.edges if e.tail == "n1" and e.head in boxes]
    # What leaves the loop is a stack of what a step computes.
    stacks = {e.carries for e in scene.edges if e.tail in boxes and e.head not in boxes}
    assert "float64[T]" in stacks


def test_the_loop_of_a_gradient_says_which_one_it_mirrors():
    scene = scene_of(rnn(), stubs=False)
    found = frames(scene, "mirror")
    (forward, *_), (backward, *_) = frames(scene, "loop"), found
    own = forward.partition(" ")[0]
    assert backward.endswith(f"loop ×T, the last step first: the gradient of {own}") or (
        "the gradient of" in backward
    )
    (region,) = found.values()
    kinds = {b.kind for b in inside(scene, region).values()}
    assert {"carry", "slice", "backward"} <= kinds


def test_a_while_loop_shows_its_condition():
    scene = scene_of(mean(), stubs=False)
    (title,) = (t for t in frames(scene, "loop") if "while" in t)
    assert title.endswith("= while_loop ×?")
    (test,) = (b for b in scene.boxes if b.kind == "test")
    assert test.lines == ("while abs(carry0 - carry1) > n3",)
    read = [e.tail for e in scene.edges if e.head == test.id]
    assert len(read) == 2
    # The number of steps, of which the gradient's graph is made, and the first carry.
    (steps,) = (t for t in frames(scene, "loop") if "steps need" in t)
    assert steps.endswith("what steps1 steps need")
    (size,) = (b.id for b in scene.boxes if b.lines[0] == "steps1")
    assert [e.tail for e in scene.edges if e.head == size] == [test.id]
    (end,) = (b for b in scene.boxes if b.lines[-1] == "⟶ output 0")
    assert end.what == "divide 2.0"


def test_a_choice_has_two_frames_that_meet():
    scene = scene_of(choice(), stubs=False)
    assert [t.partition(" = ")[2] for t in frames(scene, "loop")] == [
        "cond: one of the two runs"
    ] * 2
    assert set(frames(scene, "branch")) == {"if true", "if false"}
    first = next(b for b in scene.boxes if b.kind == "test")
    into = [(e.operand, e.tail) for e in scene.edges if e.head == first.id]
    boxes = {b.id: b for b in scene.boxes}
    labels = [(name, boxes[tail].what) for name, tail in into]
    assert labels == [("if", "greater 0.0"), ("", "sum"), ("", "sum")]
    sides = [r.title for _, tail in into for r in boxes[tail].regions if r.kind == "branch"]
    assert sides == ["if true", "if false"]


def grouped():
    """What runs: a group of the backward part reads the stack of a loop."""
    last, _ = sg.scan(lambda h, row: (sg.tanh(row + h @ w), None), sg.zeros(4), x)
    loss = sg.sum(last**2)
    return sg.compile([x, w], [loss, sg.grad(loss, w)]).graph


@pytest.mark.parametrize("make", [rnn, choice, grouped])
def test_closed_and_open_keep_the_same(make):
    graph = make()
    opened, closed = (view_of(graph, expand=e, stubs=False) for e in (True, False))
    assert saved_text(opened.edges) == saved_text(closed.edges)
    assert len({b.id for b in opened.boxes}) == len(opened.boxes)
    assert not any(e.way == CARRY for e in closed.edges)
    assert not frames(closed, "loop", "mirror", "branch")


def test_bodies_are_coloured_by_what_all_steps_cost():
    xs = sg.placeholder("xs", (50, 8))
    _, ys = sg.scan(lambda c, row: (c, sg.tanh(row * 3.0)[:4] * c), sg.zeros(4), xs[:, :8])
    program = sg.compile([xs], ys, passes=())
    scene = view_of(program, color_by="cost", expand=True)
    heats = {b.what: b.figure for b in scene.boxes if b.figure is not None}
    assert heats["tanh"] == 50 * 8
    assert heats["multiply"] == 50 * 4


@pytest.mark.skipif(
    not any(e.command("svg") for e in ENGINES.values()), reason="Graphviz is not installed"
)
@pytest.mark.parametrize("make", [rnn, mean, choice])
def test_users_names_are_escaped_and_carries_are_told(make):
    root = ET.fromstring(render(make()))
    titles = [e.text for e in root.iter(f"{SVG}title")]
    carried = [t for t in titles if t is not None and "handed to the next step" in t]
    assert len(carried) == sum(e.way == CARRY for e in scene_of(make()).edges)
    name = '</title><script>alert("1")</script>&amp;\\N'
    seq = sg.placeholder(name, (3, 2))
    other = sg.placeholder(f"{name}2", ())
    with sg.scope(name):
        last, _ = sg.scan(lambda c, row: (c * row + other, None), sg.zeros(2), seq)
        end = sg.while_loop(lambda c: c[0] < other, lambda c: c * 2.0, last)
        text = render(sg.Graph([sg.cond(other > 0, lambda: end, lambda: end * other)]))
    root = ET.fromstring(text)
    assert not list(root.iter(f"{SVG}script"))
    assert any('<script>alert("1")' in (e.text or "") for e in root.iter(f"{SVG}text"))


def test_a_loop_of_nothing_but_numbers_is_drawn():
    n = sg.placeholder("n", ("T",))
    found, ys = sg.scan(lambda c, row: (c, 1.0), 2.0, n)
    nested, _ = sg.scan(lambda c, _: (sg.fori(2, lambda i, k: k * 2.0, c), None), found, length=3)
    for expand in (True, False, None):
        scene = scene_of(sg.Graph([found, ys, nested]), expand=expand)
        assert sum(b.is_output for b in scene.boxes) >= 2
        assert np.isfinite(len(scene.edges))
