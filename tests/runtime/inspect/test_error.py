"""How far rounding moves results: an estimate, a bound that holds, and the lines that cause it."""

from math import inf

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.long_double import WIDE
from tests.runtime import error_campaign

x = sg.placeholder("x", (), "float32")


def error(y, *args, **options):
    return sg.compile(sg.Graph([y]).inputs, y).error(*args, bound=True, **options)


def test_random_programs_against_mpmath():
    error_campaign.RATIOS.clear()
    for seed in range(60):
        error_campaign.check(seed)
    logs = np.abs(np.log10(error_campaign.RATIOS))
    assert len(logs) > 40
    assert np.median(logs) < 0.1
    assert np.max(logs) < 1


def test_the_line_that_cancels_is_named():
    found = error((sg.exp(x) - 1 - x) / x**2, 1e-3)
    (y,) = found.outputs
    assert y.causes[0].node.op.name == "expm1"
    assert 1e-6 < y.relative < 0.1
    assert y.estimate <= y.bound < 1.01 * y.estimate
    assert "expm1  test_error.py:" in str(found)
    assert found.estimate == y.estimate
    assert found.bound == y.bound


@pytest.mark.parametrize("stride", [1, 2])
def test_what_picks_elements_is_computed_in_long_double(stride):
    a = sg.placeholder("a", (1, 1, 6))
    y = sg.grad(sg.sum(sg.max_pool(a, 2, stride=stride) * 0.1), a)
    found = sg.compile(a, y).error(np.random.default_rng(0).standard_normal((1, 1, 6)))
    assert found.estimate < 1e-16


@pytest.mark.parametrize("of", ["value", "by inputs", "by weights"])
def test_convolutions_and_sums_of_windows_have_a_bound(of):
    rng = np.random.default_rng(0)  # of products of these float64 rounds no sum
    arrays = [rng.integers(-(2**20), 2**20, shape) for shape in ((2, 3, 7, 6), (4, 3, 3, 2))]
    found = []
    for dtype in ("float64", "float32"):
        a, w = (sg.placeholder(n, v.shape, dtype) for n, v in zip("aw", arrays, strict=True))
        pooled = sg.avg_pool(sg.conv2d(a, w, stride=2, padding=1), 2, stride=1)
        if of != "value":
            pooled = sg.grad(sg.sum(pooled * 0.75), a if of == "by inputs" else w)
        program = sg.compile([a, w], pooled)
        fed = [v.astype(dtype) for v in arrays]
        found += [program(*fed), program.error(*fed, bound=True)]
    apart = np.max(np.abs(found[2] - found[0]))
    assert apart <= found[3].bound <= 1.01 * apart + 1e-6
    assert found[1].bound < inf


def test_causes_add_up_to_the_error():
    a = sg.placeholder("a", (3, 4), "float32")
    y = sg.sum(sg.exp(a) * sg.sin(a)) / sg.sum(a)
    found = error(y, np.random.default_rng(0).uniform(1, 2, (3, 4)).astype("f4"))
    assert sum(c.moves for c in found.outputs[0].causes) == pytest.approx(
        found.estimate, rel=0.2
    ) or -sum(c.moves for c in found.outputs[0].causes) == pytest.approx(found.estimate, rel=0.2)


def test_nothing_is_updated_and_each_output_is_told_by_its_name():
    w = sg.variable("w", np.ones(3, "f4"))
    v = sg.placeholder("v", ("N", 3), "float32")
    loss = sg.mean((v @ w) ** 2)
    step = sg.compile(v, {"loss": loss, "most": sg.argmax(v)}, updates={w: w - sg.grad(loss, w)})
    found = step.error(np.full((5, 3), 0.1, "f4"), bound=True)
    np.testing.assert_array_equal(w.value, np.ones(3))
    assert [y.name for y in found.outputs] == ["loss"]
    assert found.bound >= found.estimate > 0


def test_exact_arithmetic_has_no_error():
    found = error(x * 2 + 1, 3.0)
    assert found.estimate == 0
    assert found.bound < 1e-17
    assert found.outputs[0].causes == ()


@pytest.mark.parametrize(
    ("build", "value", "reason"),
    [
        (lambda a: sg.linalg.inv(a), np.eye(2) + 0.1, "no bound is known for inv"),
        (
            lambda a: sg.fori(3, lambda i, c: c * a, a),
            np.ones((2, 2)),
            "no bound is known for loop",
        ),
        (lambda a: sg.linalg.solve(a, a[0]), np.eye(2) + 0.1, "no bound is known for solve"),
        (lambda a: sg.linalg.eigvalsh(a) + a[0], np.eye(2), "no bound is known for eigh"),
        (lambda a: sg.linalg.qr(a)[1] + a[0], np.eye(2), "no bound is known for qr"),
        (lambda a: sg.real(sg.fft.fft(a)), np.ones((2, 2)), "no bound is known"),
        (lambda a: 1 / (a - a * 1.0), np.full((2, 2), 0.3), "not bounded"),
    ],
)
def test_where_no_bound_is_known(build, value, reason):
    a = sg.placeholder("a", (2, 2))
    found = error(build(a), value)
    assert found.bound == inf
    assert reason in str(found)
    assert "test_error.py:" in found.outputs[0].why or "not bounded" in reason
    assert sg.compile(a, build(a)).error(value).bound is None


def test_each_output_says_why_it_has_no_bound():
    a = sg.placeholder("a", (2, 2))
    outputs = [sg.linalg.inv(a), a + 1, sg.linalg.det(a)]
    found = sg.compile(a, outputs).error(np.eye(2) + 0.1, bound=True).outputs
    assert [y.why.split("  ")[0] for y in found] == [
        "no bound is known for inv", "", "no bound is known for det"
    ]  # fmt: skip


def test_a_jump_that_rounding_may_cross_has_a_bound_across_it():
    a = sg.placeholder("a", ())
    y = sg.where(a * 3 >= 0.30000000000000004, 1.0, 0.0)  # which 0.1 * 3 is by rounding only
    found = error(y, 0.1)
    assert found.estimate == 1
    assert 1 <= found.bound < 1 + 1e-15
    assert error(y, 0.2).bound < 1e-18


def test_no_bound_where_rounding_decides_which_element_it_is():
    a, b, c, t = (
        sg.placeholder(name, s) for name, s in (("a", ()), ("b", ()), ("c", ()), ("t", 3))
    )
    first, second = 1 + 2.0**-30, 1 + 2.0**-37
    y = t[sg.where(a * b > c, 2, 1)]  # by 2**-67 it is, which no long double holds beside 1
    point = (first, second, first * second, [0.0, 5.0, 1.0])
    found = sg.compile([a, b, c, t], y).error(*point, bound=True)
    assert found.bound == inf
    assert "which element" in str(found)


def test_a_cast_to_a_narrower_dtype_is_an_error_too():
    a = sg.placeholder("a", ())
    found = error(sg.astype(sg.astype(a, "float16"), "float64"), 0.1)
    wanted = abs(0.1 - float(np.float16(0.1)))
    assert found.estimate == pytest.approx(wanted)
    assert found.bound >= wanted
    assert found.outputs[0].causes[0].node.op.name == "astype"


def test_a_solve_in_doubles_is_estimated_by_its_conditioning():
    a = sg.placeholder("a", (8, 8))
    hilbert = 1 / (np.arange(8)[:, None] + np.arange(8) + 1)
    found = sg.compile(a, sg.linalg.inv(a)).error(hilbert)
    assert 1e-9 < found.outputs[0].relative < 1e-3
    assert sg.compile(a, sg.linalg.inv(a)).error(np.eye(8)).outputs[0].relative < 1e-14


@pytest.mark.skipif(WIDE.itemsize == 8, reason="long double is double here")
def test_float64_is_measured_in_long_double():
    a = sg.placeholder("a", 1000)
    values = 1e6 + np.random.default_rng(0).standard_normal(1000)
    naive = sg.mean(a**2) - sg.mean(a) ** 2
    stable, lost = (sg.compile(a, y).error(values, bound=True) for y in (sg.var(a), naive))
    assert stable.estimate < 1e-12 < 1e-6 < lost.bound
    assert lost.estimate > 1e4 * stable.estimate


def test_refusals():
    made = sg.compile(x, x * x)
    with pytest.raises(sg.FeedError):
        made.error()
    assert str(sg.compile(x, x > 0).error(1.0)) == "no output is of floats"
    y = sg.placeholder("bound", (), "float32")
    with pytest.raises(sg.FeedError, match="bound"):
        sg.compile(y, y * y).error(bound=1.0)
