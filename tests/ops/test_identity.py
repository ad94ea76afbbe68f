"""Ops that are their operand, and change what flows."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.identity import barrier, optimization_barrier
from tests.helpers import each, same, value

AT = np.array([-2.0, 0.5, 3.0])
FORWARDING = [
    sg.stop_gradient,
    optimization_barrier,
    barrier,
    lambda x: barrier(x, np.ones(2)),
    lambda x: sg.scale_gradient(x, 2.0),
    lambda x: sg.clip_gradient(x, -1, 1),
]


def x():
    return sg.placeholder("x", 3)


@each("same_as", FORWARDING)
@each("options", [{}, {"passes": ()}, {"backend": "reference"}])
def test_it_is_its_operand_and_costs_nothing(same_as, options):
    leaf = x()
    y = same_as(sg.exp(leaf))
    program = sg.compile([leaf], [y * 2, y, sg.sum(same_as(leaf))], **options)
    found = program(AT)
    same(found[0], np.exp(AT) * 2)
    same(found[1], np.exp(AT))
    assert found[2] == AT.sum()
    names = [s.name for s in program.plan.steps]
    assert sorted({*names} - {"copy"}) == ["exp", "multiply", "sum"]
    assert value(y, {leaf: AT}).dtype == "float64"


def test_what_it_was_made_by_is_seen_through():
    leaf = x()
    y = sg.scale_gradient(sg.stop_gradient(-sg.clip_gradient(leaf, 0, 1)), 3)
    program = sg.compile([leaf], -y)
    assert program.graph == sg.compile([leaf], leaf).graph
    assert program.trace.rules()["identity_of_operand"] == 3


def test_results_are_the_callers():
    leaf, w = x(), sg.variable("w", AT)
    program = sg.compile([leaf], [sg.stop_gradient(leaf), sg.stop_gradient(w)], passes=())
    given = AT.copy()
    for found in program(given):
        found[:] = 0
    same(given, AT)
    same(w.value, AT)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda a: sg.scale_gradient(a, 0.5), AT * 0.5),
        (lambda a: sg.scale_gradient(a, -1), -AT),
        (lambda a: sg.scale_gradient(a, np.array([1.0, 0, 2])), AT * [1, 0, 2]),
        (lambda a: sg.clip_gradient(a, -1, 1), [-1, 0.5, 1]),
        (lambda a: sg.clip_gradient(a, low=0), [0, 0.5, 3]),
        (lambda a: sg.clip_gradient(a, high=1), [-2, 0.5, 1]),
        (lambda a: sg.clip_gradient(a, high=np.array([1.0, 0, 2])), [-2, 0, 2]),
        (sg.clip_gradient, AT),
        (optimization_barrier, AT),
        (barrier, AT),
    ],
)
def test_what_flows(function, expected):
    leaf = x()
    same(value(sg.vjp(function(leaf), leaf, AT), {leaf: AT}), np.asarray(expected, float))


def test_a_factor_may_be_a_node_and_gets_no_gradient():
    leaf, factor = x(), sg.placeholder("factor", ())
    y = sg.sum(sg.scale_gradient(leaf, factor))
    program = sg.compile([leaf, factor], sg.grad(y, leaf))
    same(program(AT, 3.0), np.full(3, 3.0))
    same(program(AT, -1.0), np.full(3, -1.0))
    with pytest.raises(sg.GradientError, match="none flows to 'factor'"):
        sg.grad(y, factor)


def test_the_gradient_keeps_the_dtype():
    leaf = sg.placeholder("x", 3, "float32")
    for y in (sg.scale_gradient(leaf, np.float64(0.5)), sg.clip_gradient(leaf, -1, 1)):
        assert y.dtype == "float32"
        assert sg.grad(sg.sum(y), leaf).dtype == "float32"


def test_forward_mode():
    leaf = x()
    same(value(sg.jvp(sg.scale_gradient(leaf, 2.0), leaf, AT), {leaf: AT}), 2 * AT)
    y = sg.clip_gradient(leaf, -1, 1)
    with pytest.raises(
        sg.GradientError, match=r"has no forward mode: clip_gradient.*test_identity"
    ):
        sg.jvp(y, leaf, AT)


def test_on_a_batch():
    rows = sg.placeholder("rows", (4, 3))
    factors = sg.placeholder("factors", (4, 1))
    feeds = {rows: np.ones((4, 3)), factors: np.arange(4.0).reshape(4, 1)}
    y = sg.vmap(lambda row, f: sg.scale_gradient(row, f))(rows, factors)
    same(value(sg.grad(sg.sum(y), rows), feeds), feeds[factors] * np.ones((4, 3)))
    fixed = x()
    y = sg.vmap(lambda f: sg.scale_gradient(fixed, sg.sum(f)))(factors)
    same(value(sg.grad(sg.sum(y), fixed), {**feeds, fixed: AT}), np.full(3, 6.0))
    for function in (sg.stop_gradient, optimization_barrier, lambda a: sg.clip_gradient(a, 0, 0.5)):
        same(value(sg.vmap(function)(rows), feeds), feeds[rows])
    late = sg.vmap(lambda f: barrier(fixed, f))(factors)
    same(value(late, {**feeds, fixed: AT}), np.stack([AT] * 4))


def test_what_does_not_fit_is_refused():
    leaf = x()
    with pytest.raises(sg.ShapeError, match="must broadcast to the shape of what flows"):
        sg.scale_gradient(leaf, np.ones((2, 3)))
    with pytest.raises(sg.ShapeError, match="do not match"):
        sg.clip_gradient(leaf, np.ones(4), 1)
    with pytest.raises(sg.GradientError, match="low is at most high, and 1 is more than -1"):
        sg.clip_gradient(leaf, 1, -1)


# ---- barriers -------------------------------------------------------------------------------


def test_a_barrier_keeps_apart_what_would_be_computed_once():
    leaf = x()
    late = barrier(leaf, sg.exp(leaf))
    y = sg.tanh(leaf) + sg.exp(leaf) * sg.tanh(late)
    names = [s.name for s in sg.compile([leaf], y).plan.steps]
    assert names.count("tanh") == 2
    assert names.index("exp") < len(names) - names[::-1].index("tanh") - 1
    same(sg.compile([leaf], y)(AT), np.tanh(AT) + np.exp(AT) * np.tanh(AT))


def test_a_barrier_that_waits_for_nothing_goes_away():
    leaf = x()
    assert sg.compile([leaf], barrier(leaf)).graph == sg.compile([leaf], leaf).graph


def test_a_barrier_is_read_back():
    leaf = x()
    graph = sg.Graph([barrier(optimization_barrier(leaf), sg.exp(leaf))])
    assert sg.Graph.parse(graph.text()) == graph
