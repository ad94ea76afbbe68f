"""Operands cut in place of results: where only slices are read that do not overlap."""

import numpy as np

import symgrad as sg
from symgrad.ir.graph import Graph
from symgrad.passes.cut_operands import MOST_PARTS, cut_operands, sliced
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace
from tests.helpers import same, sample, value

x, y = (sg.placeholder(name, (5, 12), "float32") for name in "xy")
b = sg.placeholder("b", (12,), "float32")
RNG = np.random.default_rng(1)


def cut(outputs, exact=Exact.ROUNDING):
    graph = Graph(outputs, [x, y, b])
    return graph, cut_operands(graph, exact, Trace())


def count(graph, name):
    return sum(n.op.name == name for n in graph.nodes)


def test_gates_are_computed_of_slices():
    z = sg.exp(x + b) * y
    before, after = cut([sg.tanh(z[:, :4]) + z[:, 4:8] * z[:, 8:]])
    assert (count(before, "exp"), count(after, "exp")) == (1, 3)
    assert all(n.inputs[0].op.name == "placeholder" for n in after.nodes if n.op.name == "slice")
    feeds = {p: sample(RNG, p.shape, p.dtype) for p in (x, y, b)}
    same(*(value(graph.outputs[0], feeds) for graph in (after, before)))


def test_operands_that_are_repeated_are_cut_along_their_own_axes():
    column = sg.placeholder("column", (5, 1), "float32")
    z = column * b + 2
    graph = Graph([z[1:3] * 2, z[3:]], [column, b])
    after = cut_operands(graph, Exact.ROUNDING, Trace())
    assert after != graph
    assert {n.shape for n in after.nodes if n.op.name == "slice"} == {(2, 1)}


def test_what_would_be_computed_twice_stays():
    z = x + b
    whole = [
        [z[:, :5] * z[:, 4:9]],  # an element is read twice
        [z[:, :5], z],  # all of it is read, too
        [z[:, :5], sg.sum(z)],
        [z[:, :5]],  # one part alone is another rule's
        [z[:, :5], z[:2]],  # parts along two axes
        [z[:, ::2], z[:, 1::2]],
        [z[:, i : i + 1] for i in range(MOST_PARTS + 1)],
        [sg.cumulative_sum(x, axis=1)[:, i : i + 2] for i in (0, 2)],
    ]
    for outputs in whole:
        before, after = cut(outputs)
        assert after == before, outputs
        assert not sliced(before)


def test_where_rows_may_not_be_summed_otherwise_nothing_is_cut():
    z = x + b
    before, after = cut([z[:, :5] * 2, z[:, 5:]], Exact.VALUES)
    assert after is before
