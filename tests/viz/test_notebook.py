"""What a notebook shows: text and a picture, a summary of what is large, and never an error."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import symgrad as sg
from symgrad import display
from symgrad.ir.graph import Graph

SVG, HTML = "image/svg+xml", "text/html"


@pytest.fixture(scope="module")
def program():
    x = sg.placeholder("x", ("N", 3), "float32")
    w = sg.variable("w", np.zeros(3, "float32"))
    loss = sg.sum(sg.relu(x @ w) ** 2)
    return sg.compile([x], loss, updates={w: w - 0.1 * sg.grad(loss, w)})


def chain(length):
    h = x = sg.placeholder("x", (3,), "float32")
    for _ in range(length):
        h = sg.tanh(h)
    return x, h


@pytest.mark.parametrize(
    ("of", "kinds"),
    [
        (lambda p: p, {SVG, HTML}),
        (lambda p: p.graph, {SVG, HTML}),
        (lambda p: p.graph.outputs[0], {SVG, HTML}),
        (lambda p: p.plan, {SVG, HTML}),
        (lambda p: p.trace, {HTML}),
        (lambda p: p.cost(N=2), {HTML}),
        (lambda p: p.check(np.ones((2, 3), "float32")), {HTML}),
        (lambda p: p.why(p.raw.outputs[0]), set()),
    ],
    ids=["program", "graph", "node", "plan", "trace", "cost", "check", "why"],
)
def test_text_and_picture(program, of, kinds):
    thing = of(program)
    found = thing._repr_mimebundle_()
    assert set(found) == {"text/plain", *kinds}
    assert all(found.values())
    json.dumps(found)
    if SVG in kinds:
        drawn = ET.fromstring(found[SVG])
        assert drawn.get("role") == "img"
        inside = ET.fromstring(found[HTML])[0]
        assert "max-width: 100%" in inside.get("style")
        told = [
            [x.text for x in root.iter() if x.tag.endswith("title")] for root in (drawn, inside)
        ]
        assert told[0] == told[1], "tooltips"
    assert set(thing._repr_mimebundle_(include=["text/plain"])) == {"text/plain"}
    assert set(thing._repr_mimebundle_(exclude=["text/plain"])) == kinds


def test_the_text_is_what_prints(program):
    assert program.graph._repr_mimebundle_()["text/plain"] == str(program.graph)
    assert program.trace._repr_mimebundle_()["text/plain"] == str(program.trace)
    assert program.plan._repr_mimebundle_()["text/plain"] == str(program.plan)
    assert program._repr_mimebundle_()["text/plain"].endswith(program.source)


def test_the_table_of_a_trace_names_passes_and_rules(program):
    class Cells(HTMLParser):
        found = ()

        def handle_data(self, data):
            self.found += (data,)

    cells = Cells()
    cells.feed(program.trace._repr_mimebundle_()["text/html"])
    assert {"pass", "nodes", "time", "rules", "simplify"} <= set(cells.found)
    assert any("sum_of_squares" in c for c in cells.found)


def test_above_150_nodes_a_summary_says_how_to_see_more():
    x, h = chain(200)
    graph = Graph([h])
    found = graph._repr_mimebundle_()
    assert set(found) == {"text/plain"}
    text = found["text/plain"]
    assert h._repr_mimebundle_() == {"text/plain": repr(h)}
    assert len(text.splitlines()) == 4
    assert "tanh ×200" in text
    assert "sg.render(" in text
    program = sg.compile([x], h, passes=())
    told = program._repr_mimebundle_()
    assert set(told) == {"text/plain"}
    assert ".explore(" in told["text/plain"]
    assert SVG in Graph([chain(100)[1]])._repr_mimebundle_()


def test_without_the_pictures_there_is_text(program, monkeypatch):
    monkeypatch.setitem(sys.modules, "symgrad_viz.notebook", None)
    for thing in (program, program.graph, program.plan, program.trace):
        assert set(thing._repr_mimebundle_()) == {"text/plain"}


def test_without_graphviz_there_is_a_picture(program, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    assert ET.fromstring(program._repr_mimebundle_()[SVG]).get("role") == "img"


def test_hostile_names_are_text(hostile_graph):
    found = hostile_graph._repr_mimebundle_()
    found["text/plain"].encode()
    root = ET.fromstring(found[SVG])
    assert not [x for x in root.iter() if x.tag.endswith(("script", "}a"))]


def test_a_hostile_trace_is_text(program):
    rule = SimpleNamespace(name="<img src=x onerror=alert(1)>")
    trace = sg.compile([], sg.constant(1.0) * 2).trace
    stage = program.trace.stages[0]
    trace.stages[:] = [type(stage)("</td><script>", stage.before, Graph([]), 0.0)]
    trace.fired[:] = [SimpleNamespace(rule=rule, stage="</td><script>")]
    html = trace._repr_mimebundle_()["text/html"]
    assert "<script" not in html
    assert "<img" not in html


def test_nothing_that_goes_wrong_is_raised():
    class Broken:
        @property
        def graph(self):
            raise RuntimeError("no graph")

        def __str__(self):
            raise RuntimeError("no text")

        __repr__ = __str__

    assert display.mimebundle(Broken()) == {"text/plain": "<Broken>"}


def test_of_a_program_what_runs_is_counted():
    x = sg.placeholder("x", 3)
    program = sg.compile(x, sum(sg.tanh(x) * i for i in range(60)))
    assert len(program.raw) > 150 > len(program.graph)
    assert "image/svg+xml" in program._repr_mimebundle_()


def test_the_text_of_a_picture_is_no_page_of_source():
    program = sg.compile([], sg.sum(sg.variable("w", np.zeros(3))))
    for shown in (program.render(), program.story(), program.explore()):
        assert len(repr(shown)) < 200
