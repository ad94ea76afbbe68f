"""The built-in layout: nothing overlaps, edges go down, and it needs no other program."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

import symgrad as sg
from symgrad_viz import layers, render
from symgrad_viz.builder import scene_of

SVG = "{http://www.w3.org/2000/svg}"


def blocks(graph):
    scene = scene_of(graph, expand=False)
    return [layers._block(k, b, scene.edges) for k, b in layers._parts(scene).items()]


@pytest.mark.parametrize("size", [1, 2, 12])
def test_nothing_overlaps(net, size):
    for block in blocks(net(size)):
        spots = block.spots
        for i, a in enumerate(spots):
            for b in spots[:i]:
                beside = abs(a.x - b.x) >= (a.width + b.width) / 2 - 1e-6
                above = abs(a.y - b.y) >= (a.height + b.height) / 2 - 1e-6
                assert beside or above, (a.box, b.box)


@pytest.mark.parametrize("size", [1, 2, 12])
def test_edges_go_down_and_all_lies_in_the_frame(net, size):
    for block in blocks(net(size)):
        for _, route in block.routes:
            heights = [spot.y for spot in route]
            assert heights == sorted(heights)
            assert heights[0] < heights[-1]
        for spot in block.spots:
            assert spot.x - spot.width / 2 >= 0
            assert spot.x + spot.width / 2 <= block.width
            assert spot.y - spot.height / 2 >= 0
            assert spot.y + spot.height / 2 <= block.height


def test_the_longest_path_is_straight():
    h = sg.placeholder("x", (3,), "float32")
    for i in range(8):
        h = sg.tanh(h) + sg.placeholder(f"b{i}", (3,), "float32")
    (block,) = blocks(sg.Graph([h]))
    spine = {round(s.x, 3) for s in block.spots if s.box.kind == "op"}
    assert len(spine) == 1


def test_every_box_and_edge_of_the_scene_is_drawn(net):
    graph = net()
    scene = scene_of(graph, expand=False)
    root = ET.fromstring(render(graph, engine="layers"))
    groups = [g.get("class", "").split() for g in root.iter(f"{SVG}g")]
    ids = {g.get("id") for g in root.iter(f"{SVG}g") if "node" in g.get("class", "").split()}
    assert ids == {b.id for b in scene.boxes}
    assert sum("edge" in g for g in groups) == len(scene.edges)
    assert sum("cluster" in g for g in groups) == 3


def test_closed_fused_nodes(fused_graph):
    root = ET.fromstring(render(fused_graph, engine="layers"))
    fused = [g for g in root.iter(f"{SVG}g") if "node is-fused" in g.get("class", "")]
    assert len(fused) == 2
    assert "multiply + add + tanh" in [t.text for t in fused[0].iter(f"{SVG}text")]


@pytest.mark.parametrize("outputs", [[], ["constant"], ["x"], ["x", "x"]])
def test_graphs_with_hardly_anything_in_them(outputs):
    leaves = {"x": sg.placeholder("x", (3,), "float32"), "constant": sg.constant(2.0)}
    root = ET.fromstring(render(sg.Graph([leaves[o] for o in outputs]), engine="layers"))
    assert sum("node" in g.get("class", "") for g in root.iter(f"{SVG}g")) == len(set(outputs))


def test_a_deep_graph_needs_no_deep_stack():
    h = sg.placeholder("x", (3,), "float32")
    for _ in range(3000):
        h = sg.tanh(h)
    root = ET.fromstring(render(sg.Graph([h]), collapse=False))
    assert sum("node" in g.get("class", "") for g in root.iter(f"{SVG}g")) == 3001 + 50  # stubs


def test_wide_letters_take_two_places():
    assert layers.text_width("漢字") == layers.text_width("abcd")
