"""Large models: their pictures fit three screens, and draw once what repeats."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import symgrad as sg
from symgrad import nn
from symgrad_viz import render
from symgrad_viz.explorer_data import Document
from symgrad_viz.groups import shut
from symgrad_viz.modules import layers_of
from symgrad_viz.picture import LARGEST, size_of_svg
from symgrad_viz.scene import CARRY, Box, Edge, Region, Scene, contents_text
from symgrad_viz.sheet import Placed, Stage, laid_out
from symgrad_viz.story import story_svg
from symgrad_viz.theme import SMALL_SIZE
from symgrad_viz.view import ROWS, view_of
from symgrad_viz.words import text_width

SVG = "{http://www.w3.org/2000/svg}"


def learning(net, x):
    """A step of Adam for a net."""
    loss = sg.sum(net(x) ** 2)
    return sg.compile([x], loss, updates=sg.optim.Adam(net).updates(loss))


def dense():
    layers = (
        layer
        for key in sg.random.split(sg.random.key(0), 5)
        for layer in (nn.Linear(300, 300, key=key), sg.tanh)
    )
    return learning(nn.Sequential(*layers), sg.placeholder("x", ("N", 300)))


def looped(rounds=433):
    h = x = sg.placeholder("x", ("N",))
    for _ in range(rounds):
        h = sg.tanh(h * 0.5 + x)
    return sg.compile([x], {"h": h}, passes=())


def mixed(ops=200):
    """A chain that does not repeat itself."""
    h = x = sg.placeholder("x", ("N",))
    rng = np.random.default_rng(0)
    for i in rng.integers(5, size=ops):
        h = (sg.tanh, sg.sin, sg.exp, sg.cos, sg.atan)[i](h)
    return sg.compile([x], h, passes=())


@pytest.mark.parametrize(
    ("build", "boxes", "said"),
    [
        (dense, 90, ["Adam × 10 parameters", "each: 1 op and 2 arrays of state"]),
        (looped, 5, ["rounds ×433", "⟶ h"]),
        (mixed, 210, ["n200 h = "]),
    ],
)
def test_pictures_and_stories_fit_three_screens(build, boxes, said):
    program = build()
    picture = render(program)
    words = re.findall(r"<text[^>]*>([^<]*)", picture)
    for text in said:
        assert any(text in word for word in words), text
    assert len(view_of(program).boxes) <= boxes
    for drawn in (picture, story_svg(program)):
        assert max(size_of_svg(drawn)) <= LARGEST
        sizes = [t.get("font-size") for t in ET.fromstring(drawn).iter(f"{SVG}text")]
        assert min(map(float, sizes)) >= SMALL_SIZE >= 10


def test_no_text_is_wider_than_its_column():
    """A long chain stands in columns, and what a column begins with is named above it."""
    scene = view_of(mixed())
    ranks = len([b for b in scene.boxes if b.kind != "stub"])
    stubs = [b for b in scene.boxes if b.kind == "stub"]
    assert len(stubs) == -(-ranks // ROWS) - 1
    assert all(text_width(b.lines[0]) < 200 for b in stubs)


def test_like_scopes_hand_on_to_the_next_and_keep_all_their_outputs():
    program = looped(200)
    scene = view_of(program)
    (back,) = (e for e in scene.edges if e.way == CARRY)
    boxes = {b.id: b for b in scene.boxes}
    assert boxes[back.tail].what == "tanh"
    assert boxes[back.tail].lines[-1] == "⟶ h"
    assert boxes[back.head].what == "multiply 0.5"


def test_what_was_written_tells_what_stands_above_what():
    """A later stage that has two boxes feed each other both ways turns nothing upside down."""
    part = (Region("forward", "forward", "forward"),)
    placed = tuple(Placed(i, i, Box(f"n{i}", "op", (f"n{i}",), "", part)) for i in range(3))
    down = (Edge("n0", "n1", ""), Edge("n1", "n2", ""))
    again = tuple(p for p in placed)  # boxes of their own, as of a stage that changes something
    written, runs = Stage(placed, down), Stage(again, (*down, Edge("n2", "n0", "")))
    sheet = laid_out([written, runs])
    heights = [sheet.spots[i][1] for i in range(3)]
    assert heights == sorted(heights)
    assert sheet.routes[2, 0].stub is not None
    assert sheet.routes[0, 1].stub is None


def test_a_group_lies_in_the_scope_of_most_of_its_ops():
    scene = view_of(dense(), collapse=False, expand=False)
    fused = [b for b in scene.boxes if b.kind == "fused" and b.regions[0].kind == "forward"]
    assert fused
    assert all("Sequential" in [r.title for r in b.regions] for b in fused)


def test_scopes_of_modules_say_their_layers():
    keys = sg.random.split(sg.random.key(0), 3)
    net = nn.Sequential(
        nn.Conv2d(6, 16, 5, key=keys[0]),
        nn.Flatten(),
        nn.Linear(64, 4, key=keys[1]),
        sg.tanh,
        nn.Linear(4, 2, key=keys[2]),
    )
    program = learning(net, sg.placeholder("x", ("N", 6, 6, 6)))
    first = "Conv2d 6→16, 5×5 · 2,416 parameters"
    found = layers_of(program.raw)
    assert found["Sequential", "layers.0"] == first
    assert found["Sequential", "layers.2"] == "Linear 64→4 · 260 parameters"
    labels = {r.label for b in view_of(program).boxes for r in b.regions}
    assert f"layers.0 · {first}" in labels
    worlds = Document(program, False, None).to_json(None)["worlds"].values()
    assert all(world["about"]["forward\nSequential\nlayers.0"] == first for world in worlds)


def test_a_scope_that_is_entered_again_has_its_own_name():
    scope = Region("s", "scope", "down")
    boxes = tuple(Box(name, "op", (name,), "", (scope,)) for name in "ab")
    titles = dict.fromkeys("ab", "blocks / down (2)")
    (box,) = shut(Scene("", "", boxes, ()), titles, lambda title, inside: title).boxes
    assert (box.lines[0], box.regions) == ("down (2)", ())


def test_what_is_in_a_closed_box_is_called_what_it_is():
    kinds = ("op", "op", "variable", "constant", "placeholder")
    boxes = [Box(str(i), kind, ("",), "") for i, kind in enumerate(kinds)]
    assert contents_text(boxes) == "2 ops, 1 input, 1 parameter, 1 constant"
