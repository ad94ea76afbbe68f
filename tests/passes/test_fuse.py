"""Fusion: elementwise runs become one node, without doing anything twice."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.graph import Graph
from symgrad.testing import assert_equivalent, random_feeds
from tests.passes.becomes import named, ops

FUSE = named("fusion")


def fused(inputs, outputs):
    """The graph after fusion, having the same numbers."""
    outputs = outputs if isinstance(outputs, list) else [outputs]
    graph = sg.compile(inputs, outputs, passes=FUSE).graph
    graph.verify()
    feeds = random_feeds(np.random.default_rng(0), inputs)
    assert assert_equivalent(inputs, outputs, feeds, passes=FUSE, exact="bits")
    return graph


def groups(graph):
    """The ops inside each group."""
    return [
        [m.op.name for m in dict(n.attrs)["graph"].nodes if m.inputs]
        for n in graph.nodes
        if n.op.name == "fused"
    ]


def xy(shape=(2, 3)):
    return [sg.placeholder("x", shape), sg.placeholder("y", shape)]


def test_a_chain_is_one_group():
    x, y = xy()
    graph = fused([x, y], sg.exp(x * y) - x)
    assert groups(graph) == [["multiply", "exp", "subtract"]]
    assert ops(graph) == ["fused"]
    assert graph.outputs[0].inputs == (x, y)


def test_one_op_is_no_group():
    x, y = xy()
    assert ops(fused([x, y], sg.exp(x))) == ["exp"]


def test_a_node_that_others_read_is_not_computed_twice():
    x, y = xy()
    shared = sg.exp(x)
    graph = fused([x, y], [sg.sum(shared + 1, axis=0), sg.sum(shared * y, axis=1)])
    assert ops(graph).count("exp") == 1
    assert sum(g.count("exp") for g in groups(graph)) == 0


def test_a_node_with_all_its_readers_in_one_group_joins_it():
    x, y = xy()
    shared = sg.exp(x)
    assert groups(fused([x, y], (shared + 1) * (shared - y))) == [
        ["exp", "add", "subtract", "multiply"]
    ]


def test_an_output_inside_stays_outside():
    x, y = xy()
    inner = sg.exp(x) * y
    graph = fused([x, y], [inner, sg.tanh(inner) + 1])
    assert sorted(groups(graph)) == [["exp", "multiply"], ["tanh", "add"]]


def test_every_group_has_one_output():
    x, y = xy()
    for n in fused([x, y], [sg.exp(x) * y + 1, sg.exp(x * y)]).nodes:
        if n.op.name == "fused":
            assert len(dict(n.attrs)["graph"].outputs) == 1


def test_no_cycle_through_a_node_outside():
    """a -> sum -> b and a -> b: were a and b one group, it would need its own result."""
    x, y = xy()
    a = sg.exp(x) * y
    b = (a + sg.sum(a)) * 2.0
    graph = fused([x, y], b)
    assert groups(graph) == [["exp", "multiply"], ["add", "multiply"]]
    order = {n: i for i, n in enumerate(graph.nodes)}
    assert all(order[i] < order[n] for n in graph.nodes for i in n.inputs)


def test_only_one_shape_in_a_group():
    x, y = sg.placeholder("x", (3,)), sg.placeholder("y", (2, 3))
    graph = fused([x, y], sg.exp(-x) * (y + 1))
    assert sorted(groups(graph)) == [["add", "multiply"], ["negative", "exp"]]


def test_scalars_are_left_alone():
    x = sg.placeholder("x", ())
    assert groups(fused([x], sg.exp(x * 2.0) + 1.0)) == []


def test_constants_of_no_dimensions_are_inside():
    x, _ = xy()
    graph = fused([x], sg.exp(x * 2.0))
    (inner,) = [dict(n.attrs)["graph"] for n in graph.nodes if n.op.name == "fused"]
    assert [n.op.name for n in inner.nodes].count("constant") == 1
    assert [n.name for n in inner.inputs] == ["p0"]


def test_dtypes_may_differ_within():
    x, y = xy()
    graph = fused([x, y], sg.where(x > y, sg.astype(x, "float32"), sg.astype(y, "float32")))
    assert groups(graph) == [["greater", "astype", "astype", "where"]]


def test_a_fused_node_knows_all_its_lines():
    x, y = xy()
    a = sg.exp(x)
    b = a * y
    node = fused([x, y], b).outputs[0]
    texts = [p.text for p in node.origin.locations]
    assert any("sg.exp(x)" in t for t in texts)
    assert any("a * y" in t for t in texts)
    assert node.origin.made_by == ("fusion",)


def test_fused_graphs_print_and_parse():
    x, y = xy()
    graph = fused([x, y], [sg.exp(x * 2.0) + y, sg.tanh(x) - y])
    assert Graph.parse(graph.text(full=True)) == graph


@pytest.mark.parametrize("depth", [5_000])
def test_a_long_chain_is_one_group(depth):
    x, _ = xy()
    y = x
    for _ in range(depth):
        y = sg.tanh(y)
    graph = sg.compile([x], y, passes=FUSE).graph
    assert ops(graph) == ["fused"]
    assert len(groups(graph)[0]) == depth
