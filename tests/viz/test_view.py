"""Figures, colours, what is drawn once, what is kept, and what stands below a picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.dims import evaluate
from symgrad.ir.errors import RenderError
from symgrad.runtime.executable import Executables
from symgrad_viz import render, to_dot
from symgrad_viz.dot import dot_of
from symgrad_viz.figures import figures_of
from symgrad_viz.legend import ramp, samples
from symgrad_viz.phases import BACKWARD, FORWARD, PARTS, UPDATE, nexts_of, parts_of
from symgrad_viz.scene import CARRY, LEAVES, part_of, ranks, saved_text
from symgrad_viz.theme import DARK, HEAT, LIGHT
from symgrad_viz.view import MOST, view_of
from symgrad_viz.words import bytes_text, count_text, nbytes, time_text

SVG = "{http://www.w3.org/2000/svg}"


WIDTH = 1000  # so wide that products are no part of a fused group


def words_of(dot: str) -> str:
    """A DOT text without the line breaks of its labels."""
    return " ".join(dot.replace(r"\n", " ").split())


def layered(layers: int, *, between=lambda h: h, width: int = 8, **options) -> sg.Program:
    """A step of descent for a net with a scope for each layer."""
    x = sg.placeholder("x", ("N", width), "float32")
    weights, h = [], x
    for i in range(layers):
        with sg.scope(f"layer{i + 1}"):
            weights.append(sg.variable(f"w{i + 1}", np.zeros((width, width), "float32")))
            h = sg.tanh(h @ weights[-1])
        h = between(h)
    loss = sg.sum(h**2)
    grads = sg.grad(loss, weights)
    updates = {w: w - 0.01 * g for w, g in zip(weights, grads, strict=True)}
    return sg.compile([x], loss, updates=updates, **options)


@pytest.fixture(scope="module")
def program():
    made = layered(2, width=WIDTH)
    made(np.ones((16, WIDTH), "float32"))
    return made


@pytest.fixture(scope="module")
def keeping():
    """A program that keeps what its activations gave."""
    made = layered(2, width=WIDTH, passes=())
    made(np.ones((16, WIDTH), "float32"))
    return made


# Parts


def test_a_fused_group_with_the_loss_in_it_lies_forward_and_its_gradient_part_is_marked(program):
    scene = view_of(program)
    fused = [b for b in scene.boxes if any(r.kind == "fused" for r in b.regions)]
    loss = next(b for b in scene.boxes if b.is_output and part_of(b) == FORWARD)
    kinds = {b.kind for b in fused if b.regions == loss.regions}
    assert kinds >= {"op", "backward"}


@pytest.mark.parametrize("expand", [True, False])
def test_a_fused_group_says_what_it_spans(program, expand):
    boxes = view_of(program, expand=expand).boxes
    said = {r.title for b in boxes for r in b.regions} | {line for b in boxes for line in b.lines}
    assert any("2 forward and 4 gradient ops" in text for text in said)
    assert any("1 forward and 2 gradient ops" in text for text in said)
    assert not any("0 forward" in text for text in said)


def test_each_part_of_a_fused_node_is_known(program):
    parts = parts_of(program.graph)
    assert set(parts.values()) == set(PARTS)
    for node in program.graph.nodes:
        for _, inner in node.attrs:
            if isinstance(inner, sg.Graph):
                assert all(n in parts for n in inner.nodes)
                assert parts[node] == min((parts[y] for y in inner.outputs), key=PARTS.index)


# What is kept for the backward part


def test_what_the_backward_part_keeps_is_told_with_its_bytes(keeping):
    scene = view_of(keeping)
    saved = [e for e in scene.edges if e.is_saved]
    assert saved
    boxes = {b.id: b for b in scene.boxes}
    for edge in saved:
        value = boxes[edge.tail.partition("_at_")[0]]
        assert (part_of(value), part_of(boxes[edge.head])) == (FORWARD, BACKWARD)
        assert value.kind not in LEAVES
        assert boxes[edge.tail].lines[-1] == f"kept: {saved_text([edge])}"
        assert "kept for the backward part" in edge.tooltip
    assert f"kept: {WIDTH * 4}*N B = {16 * WIDTH * 4 / 1024:.3g} KiB (N = 16)" in {
        line for b in scene.boxes for line in b.lines
    }
    assert "is-saved" in to_dot(keeping)


def test_without_sizes_bytes_are_an_expression(keeping):
    lines = {line for b in view_of(keeping.graph).boxes for line in b.lines}
    assert "kept: 4000*N B" in lines


def attention():
    """What is kept: queries, keys, values and weights. Their product is read in one pass."""
    x = sg.placeholder("x", (8, 16), "float32")
    weights = [sg.variable(name, np.zeros((16, 16), "float32")) for name in ("q", "k", "v")]
    q, k, v = (x @ w for w in weights)
    loss = sg.sum((sg.nn.softmax(q @ k.T * 0.25, axis=-1) @ v) ** 2)
    return sg.compile([x], [loss, *sg.grad(loss, weights)])


def two_results_of_one_type():
    """Two results of one fused node are two values, though they have the same type."""
    x, u, v = (sg.placeholder(name, (100, 100), "float32") for name in "xuv")
    a, b = sg.tanh(x * 2), sg.exp(x * 2)
    loss = sg.sum((a @ u) ** 2 + (b @ v) ** 2)
    return sg.compile([x, u, v], [loss, *sg.grad(loss, [u, v])])


def net():
    """What is kept: the activations. A gradient op within the loss's pass is no forward part."""
    x, y = (sg.placeholder(name, (64, n), "float32") for name, n in (("x", 1000), ("y", 10)))
    w1, w2 = (sg.variable(f"w{s[0]}", np.ones(s, "float32")) for s in ((1000, 100), (100, 10)))
    loss = sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2)
    return sg.compile([x, y], [loss, *sg.grad(loss, [w1, w2])])


@pytest.mark.parametrize(
    ("build", "number"),
    [(net, 64 * 100), (attention, 3 * 8 * 16 + 8 * 8), (two_results_of_one_type, 2 * 100 * 100)],
)
@pytest.mark.parametrize("expand", [True, False])
def test_what_is_kept_are_the_results_of_forward_ops(build, number, expand):
    assert view_of(build(), expand=expand).kept == bytes_text(number * 4)


# Figures


@pytest.mark.parametrize("color_by", ["cost", "memory"])
def test_heat_follows_the_figures(program, color_by):
    scene = view_of(program, color_by=color_by)
    heats = [b.heat for b in scene.boxes if b.heat is not None]
    assert max(heats) == len(HEAT) - 1
    assert min(heats) >= 0
    title, steps = scene.key
    assert "counted (N = 16)" in title
    assert len(steps) == len(HEAT)
    assert all(text.startswith("≤ ") for text in steps)


def test_time_is_told_to_be_measured(program):
    profile = program.profile(np.ones((16, WIDTH), "float32"), runs=2)
    scene = view_of(program, color_by="time", profile=profile)
    assert "measured" in scene.key[0]
    assert any("% of the steps' time" in b.tooltip for b in scene.boxes)
    assert max(b.heat for b in scene.boxes if b.heat is not None) == len(HEAT) - 1


def test_the_matrix_products_of_a_net_cost_most(program):
    scene = view_of(program, color_by="cost")
    hottest = {b.what for b in scene.boxes if b.heat == len(HEAT) - 1}
    assert hottest == {"matmul"}


def test_the_memory_in_use_is_all_that_the_plan_holds(program):
    figures = figures_of(program, program.graph, None, None)
    plan = program.plan
    assert max(figures.alive.values()) <= plan.peak_bytes
    assert figures.alive[plan.steps[-1].node] >= plan.next_bytes > plan.arena_bytes


def test_views_and_what_is_written_in_place_allocate_nothing(program):
    boxes = [b for b in view_of(program, color_by="memory").boxes if b.figure is not None]
    free = {"a view: nothing is copied", "in place: it overwrites"}
    for box in boxes:
        assert box.figure == 0.0 or not any(text in box.tooltip for text in free), box
    figures = {b.what: b.figure for b in boxes}
    assert figures["matmul"] == WIDTH * WIDTH * 4
    assert figures["permute_dims"] == figures["subtract"] == 0.0


def test_edges_tell_views_and_what_is_overwritten(program):
    scene = view_of(program)
    boxes = {b.id: b for b in scene.boxes}
    for edge in scene.edges:
        told = boxes[edge.head].tooltip
        assert (edge.way == "view") == ("a view: nothing is copied" in told), edge
        assert edge.way != "in-place" or "in place: it overwrites" in told, edge
    red = [e for e in scene.edges if e.way == "in-place"]
    drawn = [b for b in scene.boxes if b.kind != "stub"]
    overwriting = [b for b in drawn if "in place: it overwrites" in b.tooltip]
    assert len({e.head for e in red}) == len(overwriting) > 1
    dot = to_dot(program)
    assert dot.count(LIGHT.ways["in-place"]) == len(red)
    assert "is-view" in dot
    style = ET.fromstring(render(program)).find(f"{SVG}style").text
    assert DARK.ways["view"] in style


def test_tooltips_tell_figures_and_the_reason_of_the_last_rewrite(program):
    tips = [b.tooltip for b in view_of(program).boxes if b.kind != "stub"]
    assert any(f"{2 * 16 * WIDTH**2 / 1e6:.3g} MFLOP, reads" in t for t in tips)
    assert any("memory in use at this step: " in t for t in tips)
    assert any("in place: it overwrites" in t for t in tips)
    views = [t for t in tips if " = permute_dims(" in t]
    assert views
    assert all("a view: nothing is copied" in t for t in views)
    fired = {f.rule.name: f.rule for f in program.trace.fired}
    assert any(
        f"{name}: {rule.reason.split()[0]}" in t for t in tips for name, rule in fired.items()
    )


def test_heat_is_in_the_dot_and_stays_on_a_dark_screen(program):
    assert f'fillcolor="{HEAT[-1]}"' in to_dot(program, color_by="cost")
    style = ET.fromstring(render(program, color_by="cost")).find(f"{SVG}style").text
    dark, _, heat = style.partition("}\n}")
    assert "prefers-color-scheme" in dark
    assert ".heat4" in heat
    assert "heat" not in ET.fromstring(render(program)).find(f"{SVG}style").text


def test_a_graph_of_known_sizes_has_figures_and_others_say_what_is_missing(net):
    x = sg.placeholder("x", (3, 4), "float32")
    scene = view_of(sg.Graph([sg.exp(x) @ x.T]), color_by="cost")
    assert {b.heat for b in scene.boxes if b.kind == "op"} >= {0, 4}
    with pytest.raises(RenderError, match="needs the sizes of N; draw the compiled Program"):
        view_of(net(), color_by="cost")
    with pytest.raises(RenderError, match=r"program\.profile"):
        view_of(net(), color_by="time")
    with pytest.raises(RenderError, match="color_by is one of 'cost', 'memory', 'time', not 'hot'"):
        render(net(), color_by="hot")


def test_a_program_whose_guessed_sizes_do_not_fit_is_drawn_without_figures(monkeypatch):
    def no_plan(self, sizes=None):
        raise sg.ShapeError("a guess that does not fit")

    program = layered(2)
    monkeypatch.setattr(Executables, "shown", no_plan)
    assert all("FLOP" not in b.tooltip for b in view_of(program).boxes)
    with pytest.raises(sg.ShapeError):
        view_of(program, color_by="cost")


def test_a_profile_of_another_program_is_refused(program):
    profile = layered(3, width=WIDTH).profile(np.ones((16, WIDTH), "float32"), runs=1)
    with pytest.raises(RenderError, match="of another program"):
        render(program, profile=profile)
    with pytest.raises(RenderError, match="belongs to a Program"):
        render(program.graph, profile=profile)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (1023, "1023 B"), (25_600, "25 KiB"), (1_048_200, "1 MiB"), (2.5e15, "2274 TiB")],
)
def test_numbers_have_three_digits_and_a_unit(number, text):
    assert count_text(number, "B", 1024) == bytes_text(number) == text
    assert count_text(25_600, "FLOP") == "25.6 kFLOP"


def test_times_and_bytes():
    assert [time_text(t) for t in (2e-9, 3.14e-6, 0.0125, 2)] == [
        "2 ns",
        "3.14 µs",
        "12.5 ms",
        "2 s",
    ]
    x = sg.placeholder("x", ("N", 3), "float64")
    assert nbytes(x.type, {"N": 5}) == 120
    assert bytes_text(nbytes(x.type)) == "24*N B"
    assert bytes_text(1024 * nbytes(x.type)) == "24*N KiB"
    assert bytes_text(nbytes(x.type) + 8) == "(24*N + 8) B"


# What repeats


def test_like_layers_are_drawn_once():
    scene = view_of(layered(6, width=WIDTH), collapse=True, expand=False)
    (many,) = (b for b in scene.boxes if b.kind == "many")
    assert many.lines[0] == "update × 6 parameters"
    assert [line for line in many.lines if line[0] == "⟶"][-1] == "⟶ 2 more"
    titles = {r.title for b in scene.boxes for r in b.regions if r.kind == "scope"}
    assert any(t.startswith("layer ×") and t.endswith("is drawn") for t in titles)
    assert "drawn once: update × 6 parameters, layer ×" in scene.note
    rank = ranks(scene.boxes, scene.edges)
    assert all(rank[e.head] > rank[e.tail] for e in scene.edges if e.way != CARRY)
    # What the first hands to the second goes back to its beginning.
    assert any(e.way == CARRY for e in scene.edges)
    assert {e.tail for e in scene.edges} | {e.head for e in scene.edges} <= {
        b.id for b in scene.boxes
    }


def test_what_layers_that_are_one_keep_is_added_up():
    program = layered(6, width=WIDTH, passes=())
    scene, apart = (view_of(program, collapse=c) for c in (True, False))
    sizes = {"N": 64}
    each = {k: evaluate(size, sizes) for e in apart.edges for k, size in e.saved}
    total = sum(dict(value for e in apart.edges for value in e.saved).values())
    assert scene.kept == apart.kept == saved_text(apart.edges)
    assert scene.kept == f"{bytes_text(total)} = {bytes_text(evaluate(total, sizes))} (N = 64)"
    one = min(each.values())
    layers = [evaluate(sum(dict(e.saved).values()), sizes) for e in scene.edges if e.saved]
    assert max(layers) > one
    assert sum(dict(value for e in scene.edges for value in e.saved).values()) == total


def test_layers_with_something_in_between_are_not_one():
    raw = layered(4, between=lambda h: sg.sort(h)).raw
    scene = view_of(raw, collapse=True)
    forward = [b for b in scene.boxes if part_of(b) == FORWARD]
    assert not any("×" in r.title for b in forward for r in b.regions)


def test_layers_of_other_sizes_are_not_alike():
    x = sg.placeholder("x", (4, 8), "float32")
    h = x
    for i, width in enumerate((8, 8, 5, 5, 5)):
        with sg.scope(f"layer{i}"):
            h = sg.tanh(h @ sg.variable(f"w{i}", np.zeros((h.shape[1], width), "float32")))
    scene = view_of(sg.Graph([sg.exp(h)]), collapse=True)
    titles = {r.title for b in scene.boxes for r in b.regions if "×" in r.title}
    assert titles == {"layer ×2: layer0 is drawn", "layer ×2: layer3 is drawn"}


def test_a_large_graph_is_collapsed_and_says_so():
    program = layered(MOST // 3, width=WIDTH // 4)
    assert len(program.graph) > MOST
    svg = render(program)
    root = ET.fromstring(svg)
    notes = [g for g in root.iter(f"{SVG}g") if g.get("class") == "note"]
    assert f"{len(view_of(program, collapse=False, stubs=False).boxes):,} boxes are drawn as" in (
        " ".join(t.text for g in notes for t in g)
    )
    assert len(svg) < 100_000
    assert len(view_of(program, collapse=False).boxes) > MOST


def test_a_bitmap_says_what_was_drawn_together():
    scene = view_of(layered(6, width=WIDTH), collapse=True)
    assert "are drawn as" in words_of(dot_of(scene, opaque=True, legend=True))
    assert "are drawn as" not in dot_of(scene)


def test_a_huge_graph_without_scopes_points_at_the_explorer():
    h = sg.placeholder("x", (3,), "float32")
    for _ in range(1600):
        h = sg.tanh(h)
    root = ET.fromstring(render(sg.Graph([h]), collapse=False))
    text = " ".join(t.text or "" for t in root.iter(f"{SVG}text"))
    assert "program.explore('page.html')" in text


def test_scopes_with_hostile_names_can_be_collapsed(hostile_names):
    h = sg.placeholder("x", (4, 4), "float32")
    for name in (*hostile_names, "plain"):
        with sg.scope(name):
            h = sg.tanh(h @ h)
    root = ET.fromstring(render(sg.Graph([sg.exp(h)]), collapse=True))
    assert not list(root.iter(f"{SVG}script"))
    assert len([g for g in root.iter(f"{SVG}g") if "node" in g.get("class", "").split()]) == 4


# What stands below, and beside


def test_the_text_of_a_small_graph_is_in_the_description(program, net):
    desc = ET.fromstring(render(program)).find(f"{SVG}desc").text
    assert program.graph.text(origins=False).strip() in desc
    assert "= matmul(" not in ET.fromstring(render(net(20))).find(f"{SVG}desc").text


def test_what_is_kept_is_added_up_below(keeping):
    words = " ".join(t.text or "" for t in ET.fromstring(render(keeping)).iter(f"{SVG}text"))
    assert f"{view_of(keeping).kept} in all." in words


@pytest.mark.parametrize("engine", [None, "layers"])
def test_the_legend_explains_what_is_there_and_nothing_else(program, engine):
    root = ET.fromstring(render(program, engine=engine))
    keys = [g for g in root.iter(f"{SVG}g") if "key" in g.get("class", "").split()]
    said = {g.find(f"{SVG}text").text for g in keys}
    assert said == {
        "input", "parameter", "op", "gradient op", "update", "fused: one pass",
        "from elsewhere", "output",
    }  # fmt: skip
    forward = ET.fromstring(render(sg.Graph([sg.tanh(sg.placeholder("x", (3,)))])))
    keys = [g for g in forward.iter(f"{SVG}g") if "key" in g.get("class", "").split()]
    assert {g.find(f"{SVG}text").text for g in keys} == {"input", "op", "output"}


def test_the_legend_shows_fused_ops_as_the_picture_does(program):
    for expand, kind in ((True, "frame"), (False, "fused")):
        kinds = {b.kind for b in samples(view_of(program, expand=expand))}
        assert kinds & {"frame", "fused"} == {kind}


def test_the_built_in_layout_says_that_it_draws_no_scopes(program):
    words = " ".join(
        t.text or "" for t in ET.fromstring(render(program, engine="layers")).iter(f"{SVG}text")
    )
    assert "no frames around scopes" in words


def test_the_legend_lies_within_the_picture(program):
    with_, without = (ET.fromstring(render(program, legend=on)) for on in (True, False))
    (_, _, wide, high), (_, _, _, low) = (
        map(float, r.get("viewBox").split()) for r in (with_, without)
    )
    assert high > low
    legend = next(g for g in with_.iter(f"{SVG}g") if g.get("class") == "legend")
    for text in legend.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x")) <= wide
        assert low <= float(text.get("y")) <= high
    assert not [g for g in without.iter(f"{SVG}g") if g.get("class") == "legend"]


@pytest.mark.parametrize("color_by", [None, "cost"])
def test_a_bitmap_has_the_legend_that_an_svg_has(program, color_by):
    scene = view_of(program, color_by=color_by)
    dot, without = (dot_of(scene, opaque=True, legend=on) for on in (True, False))
    for box in (*samples(scene), *ramp(scene)):
        assert re.search(f'label="?{re.escape(box.lines[0])}"? ', dot)
    assert "names the rewrite that made a node" in words_of(dot)
    assert "cluster_legend" not in without


def test_titles_of_frames_are_drawn_over_the_edges(program):
    root = ET.fromstring(render(program))
    canvas = root.find(f"{SVG}g")
    order = [g.get("class", "").split()[0] for g in canvas if g.get("class")]
    assert order[-1] == "caption"
    assert order.index("caption") > max(i for i, c in enumerate(order) if c == "edge")
    titles = {t.text for g in canvas if "caption" in g.get("class", "") for t in g}
    assert {"forward", "backward", "update"} <= titles


def test_the_update_lies_below_the_backward_part(program):
    dot = to_dot(program)
    assert "style=invis" in dot
    assert parts_of(program.graph)[program.graph.outputs[-1]] == UPDATE


def test_what_is_only_there_for_the_next_values_is_update():
    """The optimiser's arithmetic, the number of the step, and running means are no forward part."""
    net = sg.nn.Sequential(sg.nn.Linear(4, 3, key=sg.random.key(0)), sg.nn.BatchNorm(3))
    x = sg.placeholder("x", ("N", 4))
    loss = sg.mean(net(x) ** 2)
    program = sg.compile([x], loss, updates=sg.optim.Adam(net, lr=1e-3).updates(loss))
    raw = program.raw
    nexts = nexts_of(raw, program.output_names)
    parts = parts_of(raw, nexts)
    assert len(nexts) == len(raw.outputs) - 1
    assert {parts[y] for y in nexts} == {UPDATE}
    scoped = [n for n in raw.nodes if "Adam" in n.origin.scope and n.inputs]
    assert scoped
    assert {parts[n] for n in scoped} == {UPDATE}
    assert parts[raw.outputs[0]] == "forward"
