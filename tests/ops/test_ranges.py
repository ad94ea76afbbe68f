"""Ranges: declared, inferred, checked when something is fed, and used."""

import math
import pickle

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import each
from tests.ops import ranges_campaign

p = sg.placeholder("p", 3, within=(0, 1))
n = sg.placeholder("n", ("N", 4), within=(-2, 3))
x = sg.placeholder("x", 3)

RANGES = [
    (p * (1 - p), 0, 1),
    (p * p, 0, 1),
    (n * n, 0, 9),
    (sg.exp(n), math.exp(-2), math.exp(3)),
    (sg.softmax(n, axis=1), 0, 1),
    (1 / (1 + sg.exp(-n)), 1 / (1 + math.exp(2)), 1 / (1 + math.exp(-3))),
    (sg.relu(n), 0, 3),
    (n @ sg.ones((4, 2)), -8, 12),
    (sg.sin(x), -1, 1),
    (sg.sigmoid(x), 0, 1),
    (sg.mean(p), 0, 1),
    (sg.mean(n, axis=0), -2, 3),
    (sg.linalg.vector_norm(p), 0, math.sqrt(3)),
    (sg.max(n, axis=1), -2, 3),
    (sg.astype(n > 0, "float32"), 0, 1),
    (sg.concat([n, n * 2]), -4, 6),
    (n[0, :2].T, -2, 3),
    (sg.argmax(n, axis=1), 0, 3),
    (sg.log_softmax(n, axis=1), -5 - math.log(4), 0),
    (sg.clip(x, -1, 2), -1, 2),
]


@each(("node", "low", "high"), RANGES)
def test_range(node, low, high):
    found = node.range
    assert not found.nan
    assert found.low <= low
    assert found.high >= high
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-3, abs=1e-3)


def test_a_range_says_what_may_not_be_finite():
    assert sg.log(p).range == (-math.inf, sg.log(p).range.high, False)
    assert sg.log(n).range.nan
    assert sg.exp(x).range.high == math.inf
    assert not sg.exp(x).range.nan
    assert (sg.exp(x) - sg.exp(x)).range.nan
    assert "or NaN" in str(sg.sqrt(x).range)
    assert (x + x).range.high == math.inf
    assert sg.special.gammaln(x).range.nan


@pytest.mark.parametrize(
    "mask",
    [
        lambda y: y >= 0,
        lambda y: sg.logical_not(y >= 0),
        lambda y: sg.equal(y * 0, 0),
        lambda y: sg.astype(y * 0, "bool"),
    ],
)
def test_a_mask_of_a_nan_may_be_either(mask):
    s = sg.placeholder("s", 2, within=(-1, 4))
    y = mask(sg.sqrt(s))
    assert y.range[:2] == (0, 1)
    assert not sg.compile(s, 1 / sg.astype(y, "float64")).finite()
    most = sg.compile(s, [y, sg.maximum(sg.astype(y, "float64"), 0.5)])([-1.0, 4.0])
    np.testing.assert_array_equal(most[1], np.maximum(most[0], 0.5))


def test_integers_that_are_no_floats():
    k = sg.placeholder("k", (), "int64", within=(0, 2**53))
    large = 2**53 + 1
    outputs = [k >= large, sg.maximum(k, large), k + 1 > 2**53, k * 2**10]
    found = sg.compile(k, outputs)(2**53)
    assert found[:3] == [False, large, True]
    wide = sg.placeholder("k", (), "int64", within=(0, 2**62))
    for y in (wide * 2, sg.astype(sg.astype(wide, "float64") * 2, "int64")):
        assert y.range.low < -(2**62)


def test_ends_are_numbers_of_the_dtype():
    tiny = sg.placeholder("t", 2, "float32", within=(1e-300, 0.001))
    assert tiny.range == (0, float(np.float32(0.001)), False)
    wider = sg.astype(tiny, "float64")
    found = sg.compile(tiny, [tiny > 0, wider <= 0.001])(np.array([0, 0.001], "float32"))
    np.testing.assert_array_equal(found, [[False, True], [True, False]])
    half = sg.placeholder("h", (), "float16", within=(0, 1e6))
    assert half.range.finite
    with pytest.raises(sg.FeedError, match="65504"):
        sg.compile(half, half)(np.float16(np.inf))


def test_ends_that_rounding_and_signs_of_zero_move():
    k = sg.placeholder("k", 3, int, within=(-2, -1))
    assert 0 in sg.reciprocal(k).range
    found = sg.compile([p, x], sg.pow(p, -sg.abs(sg.tanh(x))) >= 0)([-0.0, 0.5, 1], [99, 0, 1])
    assert found.tolist() == [False, True, True]  # -0.0 to the power -1 is -inf
    infinite = sg.sum(sg.exp(p + 1000))
    assert infinite.range.low == -math.inf


def test_rules_know_that_a_named_axis_may_be_empty():
    positive = sg.placeholder("q", "N", within=(1, 2))
    outputs = [sg.sum(positive) > 0.5, positive @ positive > 0.5, sg.logsumexp(positive) > 0.5]
    program = sg.compile(positive, outputs)
    assert program([]) == [False, False, False]
    assert program([1.0]) == [True, True, True]
    assert sg.compile(positive, 1 / sg.sum(positive)).finite()  # as it says, of 1 or more elements


HARD = [
    (sg.vector_norm, (4,), "float64", (1e-310, 1e-308), np.full(4, 1e-308)),
    (sg.vector_norm, (4,), "float64", (0, 0), np.zeros(4)),
    (sg.log_softmax, (6,), "float32", (-3, 2**24), np.array([-3, *[2**24] * 5])),
    (lambda x: sg.logsumexp(x, axis=0), (0, 3), "float64", (1, 2), np.zeros((0, 3))),
]


@each(("build", "shape", "dtype", "within", "fed"), HARD)
def test_values_that_vanish_round_twice_or_are_of_nothing(build, shape, dtype, within, fed):
    h = sg.placeholder("h", shape, dtype, within=within)
    y = build(h)
    assert sg.compile(h, y)(fed.astype(dtype)) in y.range


def test_random_programs_lie_within_their_ranges():
    ranges_campaign.TALLY.clear()
    for seed in range(80):
        ranges_campaign.check(seed)
    assert ranges_campaign.TALLY["known"] > ranges_campaign.TALLY["unknown"]


def test_what_is_fed_is_held_to_what_was_declared():
    y = sg.compile([p, x], p * x)
    y(np.array([0.0, 0.5, 1.0]), np.full(3, np.nan))
    for _ in range(2):  # a call that is checked quickly, too
        with pytest.raises(sg.FeedError, match=r"within \(0, 1\), and was fed 2.0 at \[1\]"):
            y(np.array([0.5, 2.0, 0.5]), np.ones(3))
        with pytest.raises(sg.FeedError, match="was fed nan"):
            y(np.array([np.nan, 0.0, 0.5]), np.ones(3))
    scalar = sg.placeholder("s", (), within=(0, math.inf))
    root = sg.compile(scalar, sg.sqrt(scalar))
    assert root(4.0) == 2
    with pytest.raises(sg.FeedError, match=r"within \(0, inf\), and was fed -1.0;"):
        root(-1.0)
    with pytest.raises(sg.FeedError, match="within"):
        sg.compile(scalar, sg.sqrt(scalar), partial=True)(-1.0)
    whole = sg.placeholder("i", 2, "int64", within=(0, 3))
    with pytest.raises(sg.FeedError, match="was fed 4 at"):
        sg.compile(whole, whole + 1)([0, 4])


@pytest.mark.parametrize(
    ("within", "dtype", "said"),
    [
        ((1, 0), "float64", "holds no number"),
        ((0, math.nan), "float64", "holds no number"),
        ("ab", "float64", "two numbers"),
        (3, "float64", "two numbers"),
        ((0, 1, 2), "float64", "two numbers"),
        ((math.inf, math.inf), "float64", "holds no number"),
        ((10**400, 10**401), "float64", "two numbers"),
        ((0, 1), "bool", "not for bool"),
        ((0, 1), "complex128", "not for complex128"),
    ],
)
def test_bad_ranges_are_refused(within, dtype, said):
    with pytest.raises(sg.GraphError, match=said):
        sg.placeholder("q", 3, dtype, within=within)


def test_a_written_program_checks_ranges_too(tmp_path):
    q = sg.placeholder("q", 3, within=(0, math.inf))
    program = sg.compile([p, q], sg.abs(p) + sg.abs(q))
    path = program.save_source(tmp_path / "written.py")
    scope = {"__name__": "written"}
    exec(path.read_text(), scope)
    written = scope["Program"]()
    np.testing.assert_array_equal(written([0, 0.5, 1], [1, 2, 3]), [1, 2.5, 4])
    with pytest.raises(ValueError, match=r"'p' must lie within \(0.0, 1.0\)"):
        written([-1.0, 0.5, 1], [1, 2, 3])
    with pytest.raises(ValueError, match=r"'q' must lie within \(0.0, inf\)"):
        written([0, 0.5, 1], [1, -2, 3])


def test_a_range_is_part_of_the_graph(tmp_path):
    graph = sg.Graph([p * 2])
    assert sg.Graph.parse(graph.text(full=True)) == graph
    assert sg.Graph.load(graph.save(tmp_path / "g.json")) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert graph != sg.Graph([sg.placeholder("p", 3) * 2])
    wrong = graph.text(full=True).replace("(0.0, 1.0)", "(1.0, 0.0)")
    with pytest.raises(sg.ParseError, match="holds no number"):
        sg.Graph.parse(wrong)
    with pytest.raises(sg.ParseError, match="within"):
        sg.Graph.parse(graph.text(full=True).replace("(0.0, 1.0)", "'x'"))


def test_what_a_range_decides_is_not_computed():
    y = sg.sum(sg.relu(p) + sg.abs(p) + sg.where(p >= 0, p, -p) + sg.sqrt(p * p))
    program = sg.compile(p, [y, sg.grad(y, p)], exact="reals")
    ops = {node.op.name for node in program.graph.nodes}
    assert not ops & {"abs", "relu", "where", "greater_equal", "sqrt"}
    value, gradient = program([0.25, 0.5, 1.0])
    assert value == 7
    np.testing.assert_array_equal(gradient, [4, 4, 4])
    assert {
        "magnitude_of_known_sign",
        "comparison_decided_by_range",
    } <= program.trace.rules().keys()
    q = sg.placeholder("q", 3, within=(2, 5))
    least = sg.compile([p, q], sg.minimum(p, q))
    assert [node.op.name for node in least.graph.nodes] == ["placeholder", "placeholder"]


@each("ends", [(0, 1e9), (1, 1e9), (-1e9, 0), (-1e9, -1), (-1e9, 1e9)])
def test_roots_less_what_they_are_nearly_equal_to(ends):
    b, c = sg.placeholder("b", 3, within=ends), sg.placeholder("c", 3, within=(0, 1))
    root = sg.sqrt(b * b + c)
    outputs = [root - b, b - root, root + b, -b - root, sg.where(b > 0, -b + root, root)]
    at = np.clip([2.0**29, -(2.0**29), 3.0], *ends)
    given = np.array([1.0, 1.0, 0.0])
    found = sg.compile([b, c], outputs, exact="reals")(at, given)
    exact = np.hypot(at, given)
    less = given / np.maximum(exact + abs(at), 1e-300)
    above, below = np.where(at > 0, less, exact - at), np.where(at < 0, less, exact + at)
    expected = [above, -above, below, -below, np.where(at > 0, less, exact)]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_without_a_declared_range_nothing_changes():
    y = sg.abs(sg.sigmoid(x)) + sg.relu(x)
    assert "magnitude_of_known_sign" not in sg.compile(x, y).trace.rules()


def test_finite():
    assert sg.compile(p, sg.log(1 + p) / (1 + p)).finite()
    assert "proved" in str(sg.compile(n, sg.softmax(n, axis=1)).finite())
    found = sg.compile(n, sg.log(n + 2) * 2 + sg.exp(n)).finite()
    assert not found
    assert found.node.op.name == "log"
    assert "log can make an inf" in str(found)
    assert "test_ranges.py" in str(found)
    assert "which lies from 0 to 5" in str(found)
    assert str(sg.compile(n, sg.sqrt(n)).finite()).startswith("sqrt can make a NaN")
    unread = sg.where(p > 0.5, sg.exp(x), 1.0)
    assert not sg.compile([p, x], unread).finite()  # which a range cannot know
    assert sg.compile([p, x], [sg.sum(p), sg.sin(x) > 0]).finite()
