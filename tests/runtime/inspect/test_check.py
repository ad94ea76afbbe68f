"""Where a NaN, an inf or a loss of precision is made: the first node, its line, its inputs."""

import re

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.dims import evaluate
from symgrad.ir.errors import BoundsError, FeedError, GraphError, SymbolicError
from symgrad.testing import random_graph
from tests.helpers import each, sample

RNG = np.random.default_rng(0)


def program(outputs, *inputs, **options):
    return sg.compile(list(inputs), outputs, **options)


def test_a_check_that_finds_nothing_is_true_and_says_so():
    x = sg.placeholder("x", ("N", 3), "float32")
    made = program(sg.sum(sg.exp(x)), x)
    found = made.check(np.ones((2, 3), "f4"))
    assert found
    assert found.findings == ()
    assert str(found) == f"no nan and no inf in {found.count} nodes"
    beside = made.check(x=np.ones((2, 3), "f4"), against="float64")
    assert beside
    assert 0 < beside.largest < 1e-6
    assert str(beside).startswith("the largest relative error of")


def test_the_first_node_is_named_with_its_line_and_the_ranges_of_its_inputs():
    x, w = sg.placeholder("x", ("N", 3)), sg.variable("w", np.full(3, 2.0))
    p = sg.log(x * w)
    q = sg.sum(p) - sg.sum(p)  # inf - inf
    found = program(q * 3, x).check(np.array([[1.0, 0.0, 4.0]]))
    assert not found
    first, second = found.findings
    assert (first.node.op.name, second.node.op.name) == ("log", "subtract")
    (place,) = first.node.origin.locations
    assert place.text == "sg.log(x * w)"
    assert first.made == "made inf: 1 of 3, first at (0, 1)"
    assert [(r.low, r.high, r.nans, r.infs) for r in first.inputs] == [(0, 8, 0, 0)]
    assert (first.result.low, first.result.infs) == (pytest.approx(np.log(2)), 1)
    assert second.made == "made nan: 1 of 1"
    text = str(found)
    assert text.startswith("log made inf: 1 of 3, first at (0, 1)\n  built at test_check.py:")
    assert re.search(
        r"input 0, multiply float64\[N, 3\] \(test_check.py:\d+\): from 0 to 8\n", text
    )
    assert "and after it 1 more:\n  subtract made nan" in text


def test_what_is_passed_on_is_not_made():
    x = sg.placeholder("x", 3)
    masked = sg.where(np.array([True, False, True]), x, -np.inf)
    assert program(sg.nn.softmax(masked), x).check(np.ones(3)), "constants are meant"
    found = program(sg.sum(sg.tanh(x * 2)), x).check([1, np.nan, np.inf])
    assert [(f.node.name, f.made) for f in found.findings] == [
        ("x", "was given inf and nan: 2 of 3, first at (1,)")
    ]


def test_a_variable_with_a_nan_is_named():
    w = sg.variable("w", np.array([1.0, np.nan]))
    found = program(sg.sum(w)).check()
    assert found.findings[0].node is w


def test_gradients_are_looked_at_and_say_which_rule_made_them():
    x = sg.placeholder("x", "N")
    made = program(sg.grad(sg.sum(sg.sqrt(x)), x), x)
    found = made.check([1.0, 0.0])
    assert "made by vjp(sqrt)" in str(found)


@pytest.mark.parametrize("size", [3, 100_000])
@pytest.mark.parametrize("passes", [None, ()])
def test_nodes_inside_fused_groups_are_named_with_the_nodes_outside(size, passes):
    x = sg.placeholder("x", "N")
    shifted = sg.negative(sg.cumulative_sum(x))
    made = program(sg.sum(sg.tanh(sg.sqrt(shifted)) * x), x, passes=passes)
    found = made.check(np.ones(size))
    assert [f.node.op.name for f in found.findings] == ["sqrt"]
    (operand,) = found.findings[0].inputs
    assert operand.name.startswith(("negative", "cumulative_sum"))
    assert operand.size == size


def test_a_check_changes_nothing():
    x, w = sg.placeholder("x", "N", "float32"), sg.variable("w", np.float32(3))
    loss = sg.sum(sg.log(w * x))
    step = sg.compile([x], loss, {w: w - sg.grad(loss, w)})
    arrays = np.array([1.0, 0.0], "f4")
    for options in ({}, {"against": "float64"}):
        before = w.cell.array
        step.check(arrays, **options)
        assert w.cell.array is before
        assert w.value == 3
    assert arrays.tolist() == [1, 0]
    assert step([1.0, 2.0]) == pytest.approx(2 * np.log(3) + np.log(2))


# ---- against float64 ------------------------------------------------------------------------


def test_the_first_node_that_loses_precision_is_named():
    x = sg.placeholder("x", "N", "float32")
    y = (x * 1e7 + 1) - x * 1e7
    made = program(sg.sum(sg.tanh(y) * x), x, passes=())
    found = made.check(np.arange(1, 5, dtype="f4"), against="float64")
    assert [f.node.op.name for f in found.findings] == ["subtract"], "what follows is its fault"
    assert found.findings[0].error > 0.1
    assert found.largest >= found.findings[0].error
    assert "subtract has a relative error of" in str(found)
    assert made.check(np.arange(1, 5, dtype="f4"), against="float64", rtol=2)


def test_the_error_is_that_of_numpy_by_hand():
    x = sg.placeholder("x", "N", "float32")
    made = program(sg.exp(x), x)
    array = RNG.uniform(-3, 3, 100).astype("f4")
    found = made.check(array, against="float64", rtol=0)
    exact = np.exp(array.astype("f8"))
    expected = np.max(abs(np.exp(array) - exact)) / exact.max()
    assert found.findings[0].error == found.largest == pytest.approx(expected, rel=1e-12)


def test_an_overflow_that_float64_does_not_have_is_infinitely_wrong():
    x = sg.placeholder("x", "N", "float32")
    found = program(sg.log(sg.exp(x)), x, passes=()).check([100.0, 1.0], against="float64")
    assert found.findings[0].node.op.name == "exp"
    assert found.findings[0].error == np.inf


def test_zeros_are_compared_with_what_they_were_made_of():
    x = sg.placeholder("x", 3, "float32")
    zero = sg.sum(x) - (x[0] + x[1] + x[2])
    assert program(zero, x, passes=()).check([0.1, 0.2, 0.7], against="float64", rtol=1e-5)


def test_dtypes_random_numbers_and_python_code_are_taken_as_they_are():
    class Halved(sg.NumpyFunction):
        def forward(self, x):
            assert x.dtype == np.float32
            return x / 2

        def backward(self, g):
            return g / 2

    x, key = sg.placeholder("x", (4, 3), "float32"), sg.random.key(0)
    outputs = [
        sg.astype(x, "float16"), x + sg.random.normal(key, (4, 3), dtype="float32"), Halved()(x),
        sg.sum(x, dtype="float32"), sg.random.gamma(key, sg.exp(x)), sg.argmax(x, axis=1),
        *divmod(x, 2), sg.linalg.svdvals(x), sg.arange(4, dtype="float32"),
        sg.astype(x, "complex64") * 1j,
    ]  # fmt: skip
    made = program(outputs, x)
    assert made.check(RNG.standard_normal((4, 3)).astype("f4"), against="float64", rtol=2e-3)


def test_what_makes_no_sense_is_refused():
    x = sg.placeholder("x", 2)
    made = program(sg.exp(x), x)
    with pytest.raises(GraphError, match="nothing that float64 holds better"):
        made.check([1.0, 2.0], against="float64")
    with pytest.raises(GraphError, match="None or 'float64'"):
        made.check([1.0, 2.0], against="float32")
    with pytest.raises(FeedError, match="missing"):
        made.check()
    unset = sg.Graph.parse(sg.Graph([sg.variable("w", 1.0)]).text()).inputs[0]
    with pytest.raises(SymbolicError, match="has no value"):
        program(unset * 2).check()
    indexed = program(sg.take(x, sg.astype(x, int)), x)
    for run in (indexed, indexed.check):
        with pytest.raises(BoundsError, match=r"index 9 is .* by gather\((?s:.*) sg.take\(x"):
            run([1.0, 9.0])


@each("seed", range(20))
def test_random_programs_are_checked_and_what_is_not_finite_is_found(seed):
    rng = np.random.default_rng(seed)
    inputs, outputs = random_graph(rng, 10)
    made = program(outputs, *inputs)
    names = frozenset[str]().union(*(x.tensor.names for x in inputs))
    sizes = dict.fromkeys(names, 3)
    feeds = [sample(rng, [evaluate(s, sizes) for s in x.shape], x.dtype) for x in inputs]
    finite = all(np.isfinite(y).all() for y in made(*feeds))
    found = made.check(*feeds)
    assert finite or not found
    assert all(str(f.node.origin) for f in found.findings)
    if any(x.dtype == np.float32 for x in inputs):
        assert made.check(*feeds, against="float64", rtol=np.inf)


def test_against_a_wider_dtype_masks_that_were_widened():
    x = sg.placeholder("x", ("N", 4), "float32")
    kept = sg.where(x > 0, sg.exp(x), 0) * sg.where(x > 0, x, 0)
    program = sg.compile([x], [kept, sg.grad(sg.sum(kept), x)])
    array = np.random.default_rng(0).standard_normal((6, 4)).astype("float32")
    assert program.check(array, against="float64")


def test_what_reaches_no_output_is_harmless():
    x = sg.placeholder("x", "N")
    guarded = sg.where(x > 0, sg.log(x), 0)
    value, slope = sg.sum(guarded), sg.grad(sg.sum(guarded), x)
    found = program([value, slope], x).check([1.0, -1.0, 0.0])
    assert found
    assert found.findings == ()
    assert [f.node.op.name for f in found.harmless][:1] == ["log"]
    first, second, third, *_ = str(found).splitlines()
    assert first == f"no nan and no inf reaches an output in {found.count} nodes"
    assert second == "harmless, of which no output has anything:"
    assert third.startswith("  log made inf and nan: 2 of 3, first at (1,)  test_check.py:")


@pytest.mark.parametrize("passes", [None, ()])
def test_the_culprit_is_told_from_what_is_harmless_before_and_after_it(passes):
    x, y = sg.placeholder("x", "N"), sg.placeholder("y", "N")
    before = sg.where(x > 0, sg.log(x), 0)
    after = sg.where(y > 0, sg.log2(y), 0)
    made = program([sg.sqrt(before - 1) * 2, sg.tanh(after)], x, y, passes=passes)
    found = made.check([1.0, -1.0], [1.0, -1.0])
    assert [f.node.op.name for f in found.findings] == ["sqrt"]
    assert [f.node.op.name for f in found.harmless] == ["log", "log2"]
    assert str(found).startswith("sqrt made nan: 2 of 2")
    assert "\nharmless, of which no output has anything:\n  log made nan" in str(found)


def test_updates_are_outputs():
    x, w = sg.placeholder("x", 3), sg.variable("w", np.ones(3))
    step = sg.compile(x, [], {w: w * sg.log(x)})
    assert [f.node.op.name for f in step.check([1.0, -1.0, 1.0]).findings] == ["log"]


def test_precision_that_is_lost_but_not_wanted_is_harmless():
    x = sg.placeholder("x", "N", "float32")
    lost = (x * 1e7 + 1) - x * 1e7
    found = program(sg.where(x > 100, lost, x), x, passes=()).check(
        np.arange(1, 5, dtype="f4"), against="float64"
    )
    assert found
    assert [f.node.op.name for f in found.harmless] == ["subtract"]
    assert found.largest > 0.1
    assert "\nharmless, of which no output has anything:\n  subtract has a rel" in str(found)


@pytest.mark.parametrize("steps", [6, "T"])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_fault_in_a_loop_is_told_with_its_step(steps, reverse):
    x, h = sg.placeholder("x", (steps, 2)), sg.placeholder("h", (2,))

    def step(c, row):
        return sg.log(c * row) + c, c

    last, _ = sg.scan(step, h, x, reverse=reverse)
    rows = np.ones((6, 2))
    rows[4, 1] = rows[3, 1] = -1
    (finding,) = sg.compile([x, h], last).check(rows, np.ones(2)).findings
    assert f"it began in step {4 if reverse else 3}, with log" in finding.made
    assert not sg.compile([x, h], last).check(abs(rows), np.ones(2)).findings
