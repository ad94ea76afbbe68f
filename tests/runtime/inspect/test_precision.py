"""Programs whose error is held to a limit, by grades and by wider values inside."""

import numpy as np
import pytest

import symgrad as sg

x = sg.placeholder("x", 5, "float32", within=(1e-3, 1))
lost = (sg.exp(x) - 1 - x) / x**2  # a rule takes expm1


def test_what_rounding_harms_is_computed_in_float64():
    plain, kept = sg.compile(x, lost), sg.compile(x, lost, error=1e-6)
    values = np.geomspace(1e-3, 1, 5).astype("f4")
    assert plain.error(values).outputs[0].relative > 1e-4
    assert kept.error(values, bound=True).bound < 1e-6
    assert kept(values).dtype == np.float32
    first = kept.trace.stages[0]
    assert first.name == "widen"
    wide = {n.op.name for n in first.after.nodes if n.dtype == np.float64}
    assert {"exp", "subtract"} <= wide
    long = values.astype("g")
    exact = (np.expm1(long) - long) / long**2
    np.testing.assert_allclose(kept(values), exact, rtol=1e-6)


def test_nothing_is_widened_that_need_not_be():
    program = sg.compile(x, lost, error=10)
    assert all(n.dtype == np.float32 for n in program.graph.nodes)
    assert program.graph == sg.compile(x, lost).graph


def test_a_finer_grade_is_tried_first():
    b = sg.placeholder("b", 3, within=(1, 2))
    y = (b + 1e8) - 1e8  # at reals this is b, and a rule may say so
    assert sg.compile(b, y, exact="reals", error=1e-7).trace.stages[0].name != "widen"


def test_a_limit_that_nothing_keeps_to_is_refused_with_the_line():
    b = sg.placeholder("b", (), within=(1e5, 1e8))
    with pytest.raises(sg.GraphError, match=r"at most 1e-06: .* subtract moves it most"):
        sg.compile(b, b - sg.sqrt(b * b - 1), error=1e-6)


def test_what_no_wider_value_mends_is_the_result():
    with pytest.raises(sg.GraphError, match="float32 are rounded by more than that") as caught:
        sg.compile(x, lost, error=1e-9)
    assert "test_precision.py:9" in str(caught.value), "the user's line, not that of compile"


def test_updates_named_sizes_and_branches():
    data = sg.placeholder("data", ("N", 3), "float32", within=(-2, 2))
    mask = sg.placeholder("mask", ("N", 3), "bool")
    w = sg.variable("w", np.ones(3, "f4"))
    loss = sg.mean(sg.var(sg.where(mask, data, 0) @ w + 1000, axis=0))
    step = sg.compile([data, mask], loss, updates={w: w - sg.grad(loss, w)}, error=1e-5)
    fed = np.random.default_rng(0).uniform(-2, 2, (9, 3)).astype("f4")
    assert step.error(fed, fed > 0).outputs[0].relative < 1e-5
    before = w.value
    step(fed, fed > 0)
    assert w.value.dtype == np.float32
    assert (w.value != before).any()


@pytest.mark.parametrize("bad", [0, -1.0, np.inf, np.nan, "1e-6", True])
def test_bad_limits(bad):
    with pytest.raises(sg.GraphError, match="positive number"):
        sg.compile(x, lost, error=bad)


def test_what_it_needs_is_told():
    free = sg.placeholder("free", 3)
    with pytest.raises(sg.GraphError, match=r"declare it: sg.placeholder\('free', ..., within="):
        sg.compile(free, free * 2, error=1e-6)
    with pytest.raises(sg.GraphError, match="not for memory_budget"):
        sg.compile(x, lost, error=1e-6, memory_budget=10**6)


def test_points_near_zero_within_a_range_are_tried():
    x = sg.placeholder("x", 4, "float32", within=(-1, 1))
    program = sg.compile(x, sg.exp(x) - 1 - x, error=1e-6)
    for size in (1e-2, 1e-4):
        (found,) = program.error(np.full(4, size, "float32"), bound=True).outputs
        assert found.bound < 1e-6 * found.largest
