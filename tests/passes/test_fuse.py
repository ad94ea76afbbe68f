"""Fusion: what works row by row becomes one node, without doing anything twice."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.graph import Graph
from symgrad.ops.select import select
from symgrad.passes.fuse import Group, Why, taken_apart, with_groups
from symgrad.rewrite.rule import Exact
from symgrad.testing import assert_equivalent, random_feeds
from tests.rules.becomes import named, ops

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
    found = fused([x, y], [sg.sum(shared + 1, axis=0), sg.sum(shared * y, axis=1)])
    assert groups(found) == [["exp", "add", "sum", "multiply", "sum"]]
    apart = fused([x, y], [x @ (shared + 1).T, shared.T @ shared])
    assert sum(g.count("exp") for g in groups(apart)) == 1


def test_a_node_with_all_its_readers_in_one_group_joins_it():
    x, y = xy()
    shared = sg.exp(x)
    assert groups(fused([x, y], (shared + 1) * (shared - y))) == [
        ["exp", "add", "subtract", "multiply"]
    ]


def test_a_group_gives_back_all_that_is_read_outside():
    x, y = xy()
    inner = sg.exp(x) * y
    graph = fused([x, y], [inner, sg.tanh(inner) + 1])
    assert groups(graph) == [["exp", "multiply", "tanh", "add"]]
    assert ops(graph) == ["fused", "item", "item"]
    assert Graph.parse(graph.text(full=True)) == graph


def test_no_cycle_through_a_node_outside():
    """a -> sum -> b and a -> b: were a and b one group, it would need its own result."""
    x, y = xy()
    a = sg.exp(x) * y
    b = (a + sg.sum(a)) * 2.0
    graph = fused([x, y], b)
    assert groups(graph) == [["exp", "multiply", "sum"], ["add", "multiply"]]
    order = {n: i for i, n in enumerate(graph.nodes)}
    assert all(order[i] < order[n] for n in graph.nodes for i in n.inputs)


def test_softmax_and_layer_norm_are_one_pass_over_the_rows():
    x, y = xy((4, 5))
    e = sg.exp(x - sg.max(x, axis=1, keepdims=True))
    assert len(groups(fused([x], e / sg.sum(e, axis=1, keepdims=True)))) == 1
    away = x - sg.mean(x, axis=1, keepdims=True)
    norm = away / sg.sqrt(sg.mean(away * away, axis=-1)[:, None] + 1e-5)
    graph = fused([x, y], norm * y)
    assert [n for n in ops(graph) if n not in ("fused", "size_of")] == []


def test_a_reduction_over_the_rows_ends_a_group():
    x, y = xy((4, 5))
    e = sg.exp(x)
    graph = fused([x, y], e - sg.sum(e * y, axis=0))
    assert groups(graph) == [["exp", "multiply", "sum"]]
    assert ops(graph) == ["fused", "item", "item", "subtract"]


def test_a_reduction_over_the_rows_is_made_where_they_are_read():
    x, y = xy((4, 5))
    graph = fused([x, y], [sg.sum(x, axis=0), sg.exp(x) * y])
    assert sorted(groups(graph)[0]) == ["exp", "multiply", "sum"]
    again = sg.exp(x) * sg.sum(x, axis=0)
    assert ops(fused([x, y], again)) == ["sum", "fused"]


def test_the_first_axis_that_is_longer_than_one_counts():
    x, y = xy((1, 4, 5))
    assert groups(fused([x, y], sg.sum(sg.exp(x) * y, axis=2) + 1)) == [
        ["exp", "multiply", "sum", "add"]
    ]


@pytest.mark.parametrize(
    "moved", [lambda x: x.T, lambda x: sg.flip(x, axis=0), lambda x: sg.reshape(x, (2, 8))]
)
def test_a_view_that_moves_rows_parts_groups(moved):
    x, y = xy((4, 4))
    graph = fused([x, y], sg.tanh(moved(sg.exp(x) * 2.0)) + 1.0)
    assert groups(graph) == [["exp", "multiply"], ["tanh", "add"]]


def test_a_view_within_the_rows_is_inside_and_at_the_ends_outside():
    x, y = xy((4, 6))
    inner = sg.reshape(sg.exp(x) * 2.0, (4, 2, 3))
    graph = fused([x, y], sg.reshape(sg.tanh(sg.permute_dims(inner, (0, 2, 1))), (4, 6)))
    assert groups(graph) == [["exp", "multiply", "reshape", "permute_dims", "tanh"]]
    assert ops(graph) == ["fused", "reshape"]


def test_what_only_a_later_group_reads_is_made_there():
    """So that it is neither written nor read: the slope of tanh, of the value that is kept."""
    x, w = sg.placeholder("x", (4, 4)), sg.variable("w", np.eye(4))
    loss = sg.sum((sg.tanh(x @ w) @ w) ** 2)
    graph = fused([x], [loss, sg.grad(loss, w)])
    assert sum("tanh" in g for g in groups(graph)) == 0
    assert ["multiply", "subtract", "multiply"] in groups(graph)


def test_a_mask_is_made_early_where_it_is_all_that_is_kept():
    x, w = sg.placeholder("x", (4, 4)), sg.variable("w", np.eye(4))
    z = (x @ w) * 2.0
    graph = fused([x], select(z > 0, sg.exp(z) @ w))
    assert groups(graph) == [["multiply", "greater", "exp"]]


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
    assert node.origin.makers == "fusion"


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


def test_below_rounding_no_group_ends_in_a_reduction_over_its_rows():
    """It may be joined from parts, which rounds differently."""
    x, y = xy((4, 5))
    outputs = [sg.sum(sg.exp(x) * y, axis=0), sg.sum(sg.exp(x) * y, axis=1)]
    for exact, count in (("values", 2), ("rounding", 0)):
        graph = sg.compile([x, y], outputs, exact=exact, passes=FUSE).graph
        assert ops(graph).count("sum") == count


def test_a_group_of_one_result_is_taken_apart():
    a = sg.placeholder("a", 3)
    graph = sg.Graph([sg.sum(sg.reshape(sg.sin(a) * 2 + 1, (3, 1)) @ sg.ones((1, 2)))], [a])
    grouped = with_groups(graph, Exact.BITS)
    assert any(n.inner_graph for n in grouped.nodes)
    assert taken_apart(grouped, lambda inner: True) == graph


def test_a_group_knows_why_it_ends_where_it_does():
    x, w, g = (sg.placeholder(name, (8, 8)) for name in "xwg")
    shifted = sg.tanh(x @ w) * g[:, ::-1] + 1.0
    turned = sg.flip(shifted, axis=0) * shifted  # of rows that come later
    graph = fused([x, w, g], [sg.sum(shifted**2.0, axis=0), shifted @ w, turned])
    found = {
        (end.inside.op.name, "" if end.outside is None else end.outside.op.name, end.why, end.reads)
        for node in graph.nodes
        if isinstance(node.inner_graph, Group)
        for end in node.inner_graph.ends
    }
    assert found == {
        ("tanh", "matmul", Why.PRODUCT, True),
        ("multiply", "slice", Why.VIEW, True),
        ("sum", "", Why.SUM, False),
        ("add", "matmul", Why.PRODUCT, False),
        ("add", "slice", Why.VIEW, False),
        ("add", "multiply", Why.LATER, False),
    }
    bounds = [b for n in graph.nodes if isinstance(g := n.inner_graph, Group) for b in g.bounds()]
    told = [(b.reads, b.at.op.name, [n.op.name for n in b.others], b.why) for b in bounds]
    assert (True, "matmul", [], Why.PRODUCT) in told
    assert (False, "sum", [], Why.SUM) in told
    # Where several read one node for one reason, that is one bound; those that it reads come first.
    assert len(told) == len(set(map(str, told)))
    assert sum(len(b.others) for b in bounds) == sum(not e[3] and e[1] != "" for e in found)
