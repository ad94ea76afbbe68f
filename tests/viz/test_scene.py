"""What is drawn: parts, stubs, folded constants, fused nodes, labels and tooltips."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from types import SimpleNamespace
from xml.sax.saxutils import escape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.ir.errors import RenderError
from symgrad.ir.origin import Maker, Origin, built_as, scope
from symgrad_viz import builder
from symgrad_viz.builder import scene_of
from symgrad_viz.phases import BACKWARD, FORWARD, PARTS, UPDATE, parts_of
from symgrad_viz.scene import REACH, part_of, ranks, saved_text
from symgrad_viz.words import printable, shortened


def box_of(scene, id):
    return next(b for b in scene.boxes if b.id == id)


def test_each_node_is_a_box_or_a_constant_within_a_label(net):
    graph = net()
    scene = scene_of(graph)
    folded = {f"n{i}" for i, n in enumerate(graph.nodes) if n.op.name == "constant"}
    drawn = [b.id for b in scene.boxes if b.kind != "stub"]
    assert folded
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == {f"n{i}" for i in range(len(graph))} - folded


def test_parts(net):
    graph = net()
    parts = parts_of(graph)
    assert set(parts.values()) == {FORWARD, BACKWARD, UPDATE}
    loss, *steps = graph.outputs
    assert parts[loss] == FORWARD
    assert {parts[s] for s in steps} == {UPDATE}
    for node, part in parts.items():
        if node.origin.is_backward:
            assert part == BACKWARD
        if node.op.name in ("placeholder", "variable"):
            assert part == FORWARD


def test_the_seed_of_a_gradient_is_backward():
    x = sg.placeholder("x", (3,), "float32")
    graph = sg.Graph([sg.grad(sg.sum(x * x), x)])
    parts = parts_of(graph)
    for node in graph.nodes:
        if node.op.name != "placeholder":
            assert parts[node] == BACKWARD, node


def test_an_input_that_only_the_update_uses_is_in_the_update():
    x = sg.placeholder("x", (3,), "float32")
    rate = sg.placeholder("rate", (), "float32")
    graph = sg.Graph([sg.sum(x * x), x - rate * sg.grad(sg.sum(x * x), x)])
    parts = parts_of(graph)
    assert parts[rate] == UPDATE
    assert parts[x] == FORWARD


def test_a_forward_graph_has_no_regions():
    x = sg.placeholder("x", (3,), "float32")
    assert all(not b.regions for b in scene_of(sg.Graph([sg.tanh(x)])).boxes)


def test_forward_mode_is_not_called_backward():
    x = sg.placeholder("x", (3,), "float32")
    y = sg.tanh(x)
    with built_as(Origin(made_by=(Maker("jvp", "tanh"),))):
        tangent = y * y
    titles = {r.title for b in scene_of(sg.Graph([y, tangent])).boxes for r in b.regions}
    assert titles == {"forward", "tangents"}


@pytest.mark.parametrize("layers", [1, 2, 20])
def test_no_edge_leaves_its_part(net, layers):
    scene = scene_of(net(layers))
    part = {b.id: part_of(b) for b in scene.boxes}
    assert {(part[e.tail], part[e.head]) for e in scene.edges} == {(p, p) for p in PARTS}
    assert any(e.is_stub for e in scene.edges)


def test_a_stub_stands_for_its_value_beside_the_use(net):
    scene = scene_of(net())
    stubs = [e for e in scene.edges if e.is_stub]
    assert stubs
    for edge in stubs:
        stub, head = box_of(scene, edge.tail), box_of(scene, edge.head)
        value = box_of(scene, edge.tail.partition("_at_")[0])
        assert stub.kind == "stub"
        assert stub.regions == head.regions
        kept = (f"kept: {saved_text([edge])}",) if edge.is_saved else ()
        assert stub.lines == (*value.lines[:2], *kept)
        assert stub.tooltip == value.tooltip
        assert PARTS.index(part_of(value)) < PARTS.index(part_of(head))


def test_without_stubs_every_edge_is_drawn_in_full(net):
    graph = net()
    scene = scene_of(graph, stubs=False)
    assert all(b.kind != "stub" for b in scene.boxes)
    assert {(e.tail, e.head) for e in scene.edges} == {
        (e.tail.partition("_at_")[0], e.head) for e in scene_of(graph).edges
    }


def test_an_edge_over_many_ranks_becomes_a_stub():
    h = first = sg.tanh(sg.placeholder("x", (3,), "float32"))
    for _ in range(REACH + 1):
        h = sg.exp(h)
    scene = scene_of(sg.Graph([h + first]))
    assert [e.tail for e in scene.edges if e.is_stub] == [f"n1_at_n{REACH + 3}"]
    near = scene_of(sg.Graph([sg.exp(first) + first]))
    assert not any(e.is_stub for e in near.edges)


@pytest.mark.parametrize("update", [True, False])
def test_each_part_has_a_frame(net, update):
    boxes = scene_of(net(update=update)).boxes
    titles = {r.title for b in boxes for r in b.regions}
    assert titles == {"forward", "backward"} | ({"update"} if update else set())
    assert ("update" in {b.kind for b in boxes}) == update


def test_leaves_are_ranked_just_above_their_first_use(net):
    scene = scene_of(net(6))
    rank = ranks(scene.boxes, scene.edges)
    for box in scene.boxes:
        heads = [rank[e.head] for e in scene.edges if e.tail == box.id]
        assert all(h > rank[box.id] for h in heads)
        if heads and box.kind in ("variable", "placeholder", "stub"):
            assert rank[box.id] == min(heads) - 1


@pytest.mark.parametrize(
    ("build", "label"),
    [
        (lambda x: x * 2.0, "x * 2"),
        (lambda x: 2.0 * x, "2 * x"),
        (lambda x: x - 1.0, "x - 1"),
        (lambda x: 1.0 - x, "1 - x"),
        (lambda x: sg.where(x > 0.0, x, 0.5), "x where n2, else 0.5"),
        (lambda x: x * x, "x * x"),
    ],
)
def test_constants_are_folded_into_labels(build, label):
    x = sg.placeholder("x", (3,), "float32")
    graph = sg.Graph([build(x)])
    box = box_of(scene_of(graph), f"n{len(graph) - 1}")
    assert box.lines[0] == f"n{len(graph) - 1} = {label}"


def test_a_constant_that_is_an_output_or_large_is_drawn():
    scene = scene_of(sg.Graph([sg.constant(2.0), sg.tanh(sg.constant(np.arange(50.0)))]))
    assert [b.lines[0] for b in scene.boxes if b.kind == "constant"] == ["2.0", "n1 = constant"]


def test_operands_are_numbered_where_their_order_matters():
    x, y = (sg.placeholder(n, (3,), "float32") for n in "xy")
    a, b = (sg.placeholder(f"{n} with a name of many letters", (3,), "float32") for n in "ab")
    scene = scene_of(sg.Graph([a - b]))
    assert scene.boxes[-1].lines[0] == "n2 = subtract"
    assert {e.operand for e in scene.edges} == {"0", "1"}
    # A formula says the order itself.
    for node in (a + b, x - x, x - y):
        assert {e.operand for e in scene_of(sg.Graph([node])).edges} == {""}


def test_outputs_are_named(net):
    graph = net(1)
    plain = scene_of(graph)
    assert [b.lines[-1] for b in plain.boxes if b.is_output] == ["⟶ output 0", "⟶ output 1"]
    program = SimpleNamespace(graph=graph, output_names=("loss", "w0 (update)"))
    named = scene_of(program)
    assert [b.lines[-1] for b in named.boxes if b.is_output] == ["⟶ loss", "⟶ w0 (update)"]


def test_tooltips_say_what_where_and_why():
    x = sg.placeholder("x", (3,), "float32")
    with scope("layer1"):
        h = sg.tanh(x)
    with built_as(h.origin.then(Maker("vjp", "tanh")).then(Maker("rewrite", "mask_multiply"))):
        g = h * h
    box = box_of(scene_of(sg.Graph([g])), "n2")
    first, place, region, maker = box.tooltip.split("\n")
    assert first == "n2 = multiply(h, h) : float32[3]"
    assert place.startswith("test_scene.py:")
    assert place.endswith("  sg.tanh(x)")
    assert region == "in: layer1"
    assert maker == "made by: vjp(tanh) then mask_multiply"
    assert "⟵ mask_multiply" in box.lines


def test_the_label_has_the_last_rewrite_and_counts_the_others():
    x = sg.placeholder("x", (3,), "float32")
    with built_as(Origin(made_by=tuple(map(Maker.parse, ("vjp(tanh)", "a", "b", "c"))))):
        g = x * x
    assert box_of(scene_of(sg.Graph([g])), "n1").lines[2] == "⟵ c +2"


def test_scopes_nest():
    x = sg.placeholder("x", (3,), "float32")
    with scope("a"):
        y = sg.tanh(x)
        with scope("b"):
            z = sg.tanh(y)
    with scope("b"):
        w = sg.tanh(z)
    by_id = {b.id: [r.title for r in b.regions] for b in scene_of(sg.Graph([w])).boxes}
    assert by_id == {"n0": [], "n1": ["a"], "n2": ["a", "b"], "n3": ["b"]}
    ids = {r.id for b in scene_of(sg.Graph([w])).boxes for r in b.regions}
    assert len(ids) == 3


def test_a_parameter_is_drawn_in_the_scope_that_alone_reads_it():
    x = sg.placeholder("x", (3,))
    own, shared, made = (sg.variable(n, np.zeros(3)) for n in ("own", "shared", "made"))
    with sg.scope("a"):
        y = x * own + shared
    with sg.scope("b"):
        y = sg.tanh(y) * shared + made
    boxes = {b.lines[0]: b for b in scene_of(sg.Graph([y * 2 + made])).boxes}
    titles = {n: [r.title for r in boxes[n].regions] for n in ("own", "shared", "made", "x")}
    assert titles == {"own": ["a"], "shared": [], "made": [], "x": []}


def test_fused_nodes_show_what_is_inside(fused_graph):
    scene = scene_of(fused_graph)
    fused = {r.id for b in scene.boxes for r in b.regions if r.kind == "fused"}
    assert fused == {"n3", "n4"}
    assert "fused" not in {b.kind for b in scene.boxes}
    inside = [b.what for b in scene.boxes if b.regions]
    assert inside == ["multiply 2.0", "add", "tanh", "exp", "multiply 3.0"]
    # No box for parameters or for `item`: edges go from what gives to what takes.
    assert len(scene.boxes) == 9
    heads = {e.head for e in scene.edges}
    assert "n7" in heads
    assert {e.tail for e in scene.edges if e.head == "n7"} == {"n4_1", "n4_3"}


def test_fused_nodes_of_much_are_closed(monkeypatch, fused_graph):
    inside = 6 + 4
    for most, closed in ((len(fused_graph) + inside, 0), (len(fused_graph) + inside - 1, 2)):
        monkeypatch.setattr(builder, "EXPANDED", most)
        assert sum(b.kind == "fused" for b in scene_of(fused_graph).boxes) == closed


def test_closed_fused_nodes_list_what_is_inside(fused_graph):
    scene = scene_of(fused_graph, expand=False)
    fused = [b for b in scene.boxes if b.kind == "fused"]
    assert [b.lines[2] for b in fused] == ["multiply + add + tanh", "exp + multiply"]
    assert not any("item" in b.lines[0] for b in scene.boxes)
    assert [(e.tail, e.carries) for e in scene.edges if e.head == "n7"] == [
        ("n4", "float32[4]"),
        ("n4", "float32[4]"),
    ]


def test_what_cannot_be_drawn_is_refused():
    x = sg.placeholder("x", (3,), "float32")
    with pytest.raises(RenderError, match=r"sg\.Graph\(\[node\]\)"):
        scene_of(x)
    with pytest.raises(RenderError, match="not a int"):
        scene_of(3)


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_can_stand_in_xml(text):
    shown = printable(text)
    assert ET.fromstring(f"<a>{escape(shown)}</a>").text == (shown or None)
    assert shown.isprintable()
    assert "\n" not in shown


def test_long_texts_are_cut():
    assert shortened("a" * 10_000, 40) == "a" * 39 + "…"
    assert len(shortened("\x00" * 10_000, 40)) == 40
    assert shortened("short", 40) == "short"


@pytest.mark.parametrize("length", [5, "T"])
def test_a_loop_says_how_often_it_runs_what(length):
    x = sg.placeholder("x", (length, 3))
    _, ys = sg.scan(lambda c, row: (sg.tanh(c * row), c), sg.zeros(3), x)
    graph = sg.Graph([ys, sg.grad(sg.sum(ys), x)])
    boxes = [b for b in scene_of(graph, expand=False).boxes if b.kind != "stub"]
    labels = ["\n".join(b.lines) for b in boxes]
    loops = [text for text in labels if f"loop ×{length}" in text]
    assert len(loops) == 3
    assert "multiply + tanh" in loops[0]
