"""Algebra and movement, as they meet in programs. Each rule alone: `test_every_rule`."""

import warnings

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.linalg.products import vdot_p
from tests.rules.becomes import becomes, named, ops, stays

SIMPLIFY = named("simplify", "merge")


def xy(shape=(2, 3), dtype="float64"):
    return [sg.placeholder("x", shape, dtype), sg.placeholder("y", shape, dtype)]


def test_signs_cancel():
    x, y = xy()
    becomes([x, y], sg.negative(sg.negative(x)), x, SIMPLIFY, "bits")
    becomes([x, y], x - (-y), x + y, SIMPLIFY, "values")
    becomes([x, y], (-x) * (-y), x * y, SIMPLIFY, "values")
    becomes([x, y], -(x - y), y - x, SIMPLIFY, "values")


def test_zeros_keep_their_signs_at_bits():
    x, _ = xy()
    stays([x], x + 0.0, SIMPLIFY, "bits")
    becomes([x], x + -0.0, x, SIMPLIFY, "bits")
    becomes([x], x + 0.0, x, SIMPLIFY, "values")
    becomes([x], x - 0.0, x, SIMPLIFY, "bits")
    stays([x], x - -0.0, SIMPLIFY, "bits")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32"])
def test_rules_of_arithmetic_leave_other_dtypes_sound(dtype):
    x, y = xy(dtype=dtype)
    for z in (x * x, x * 1, abs(x * y) if dtype != "bool" else x, x**2, x | y, sg.maximum(x, x)):
        program = sg.compile([x, y], z, exact="reals")
        program.graph.verify()
        assert program.graph.outputs[0].type == z.type


def test_a_boolean_times_itself_is_no_square():
    """It is `and`, and boolean; the square of a boolean is an int8."""
    x, _ = xy(dtype="bool")
    assert "square" not in ops(sg.compile([x], x * x, exact="reals", passes=SIMPLIFY).graph)


def test_constants_gather_and_combine():
    x, y = xy()
    becomes([x, y], (x * 2.0) * 3.0, x * 6.0, SIMPLIFY)
    becomes([x, y], 2.0 * (x * 3.0), x * 6.0, SIMPLIFY)
    becomes([x, y], (x * 2.0) * (y * 3.0), (y * x) * 6.0, SIMPLIFY)
    stays([x, y], (x * 2.0) * 3.0, SIMPLIFY, "values")
    stays([x], (x + 2.0) + 3.0, SIMPLIFY)
    becomes([x], (x + 2.0) + 3.0, x + 5.0, SIMPLIFY, "reals")
    becomes([x], (x - 2.0) - 3.0, x - 5.0, SIMPLIFY, "reals")
    becomes([x], (x + 2.0) - 5.0, x + -3.0, SIMPLIFY, "reals")
    becomes([x], (x - 0.1) + 0.1, x, SIMPLIFY, "reals")


def test_constants_that_overflow_together_stay_apart():
    x, _ = xy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stays([x], (x * 1e200) * 2e200, SIMPLIFY)
        stays([x], (x * 1e-200) * 2e-200, SIMPLIFY)
        stays([x], (x * 5e-324) * 1e308, SIMPLIFY)
        stays([x], x / 5e-324, SIMPLIFY)
        stays([x], x / 1e308, SIMPLIFY)


def test_division_by_a_constant():
    x, y = xy()
    becomes([x], x / 4.0, x * 0.25, SIMPLIFY, "bits")
    becomes([x], x / 3.0, x * (1 / 3.0), SIMPLIFY, "reals")
    stays([x], x / 3.0, SIMPLIFY)
    becomes([x], (x * 5.0) / 3.0, x * (5.0 / 3.0), SIMPLIFY)
    becomes([x], (x / 3.0) * 5.0, x * (5.0 / 3.0), SIMPLIFY)
    stays([x], x / 0.0, SIMPLIFY)
    stays([x, y], x / y, SIMPLIFY)
    becomes([x, y], x * (1 / y), x / y, SIMPLIFY)


@pytest.mark.parametrize("name", ["over_power_of_two", "over_constant"])
def test_the_rules_of_division_do_not_meet_themselves(name):
    """Alone, without folding, they act once: not on the inverse that they make."""
    from symgrad.rules import factors

    x, _ = xy()
    program = sg.compile([x], x / 4.0, exact="reals", passes=[getattr(factors, name)])
    assert program.trace.rules() == {name: 1}
    np.testing.assert_array_equal(program(np.ones((2, 3))), np.full((2, 3), 0.25))


def test_powers():
    x, _ = xy()
    becomes([x], x**2, sg.square(x), SIMPLIFY)
    becomes([x], x**1, x, SIMPLIFY, "values")
    becomes([x], x**0, sg.ones_like(x), SIMPLIFY)
    becomes([x], x**-1, 1 / x, SIMPLIFY)
    becomes([x], x**3, sg.square(x) * x, SIMPLIFY)
    becomes([x], x**4, sg.square(sg.square(x)), SIMPLIFY)
    becomes([x], x**-2, sg.square(1 / x), SIMPLIFY)
    stays([x], x**0.5, SIMPLIFY)
    stays([x], x**5, SIMPLIFY)
    stays([x], x**3, SIMPLIFY, "values")
    becomes([x], x**-0.5, 1 / sg.sqrt(x), SIMPLIFY, "reals")
    becomes([x], x**1.5 * x**2.5, sg.square(sg.square(x)), SIMPLIFY, "reals")
    becomes([x], (x**1.5) ** 3, x**4.5, SIMPLIFY, "reals")


def test_an_even_power_hides_a_sign():
    """The root of the sixth power is that of the magnitude."""
    x, _ = xy()
    y = (x**6) ** 0.25
    assert "power_of_power" not in sg.compile([x], y, exact="reals").trace.rules()


def test_exponentials_and_logarithms():
    x, y = xy()
    becomes([x, y], sg.exp(x) * sg.exp(y), sg.exp(x + y), SIMPLIFY, "reals")
    becomes([x, y], sg.exp(x) / sg.exp(y), sg.exp(x - y), SIMPLIFY, "reals")
    becomes([x], 1 / sg.exp(x), sg.exp(-x), SIMPLIFY, "reals")
    becomes([x, y], sg.log(x) + sg.log(y), sg.log(x * y), SIMPLIFY, "reals")
    becomes([x], sg.log(x**5), sg.log(x) * 5.0, SIMPLIFY, "reals")
    becomes([x], sg.exp(sg.log(x)), x, SIMPLIFY, "reals")
    stays([x, y], sg.exp(x) * sg.exp(y), SIMPLIFY)


def test_quotients():
    x, y = xy()
    z = sg.placeholder("z", (2, 3))
    becomes([x, y], (-x) / (-y), x / y, SIMPLIFY, "bits")
    becomes([x, y], -(1 / x), -1.0 / x, SIMPLIFY, "bits")
    becomes([x, y], x / (y * 0.25), (x / y) * 4.0, SIMPLIFY)
    stays([x, y], x / (y * 5.0), SIMPLIFY)
    becomes([x, y], (x * 3.0) / (y * 0.25), (x / y) * 12.0, SIMPLIFY)
    becomes([x, y, z], (x / y) / z, x / (y * z), SIMPLIFY, "reals")
    becomes([x, y, z], x / (y / z), (x * z) / y, SIMPLIFY, "reals")
    becomes([x, y], x / (1 / y), x * y, SIMPLIFY, "reals")
    becomes([x, y], 1 / (x / y), y / x, SIMPLIFY, "reals")
    becomes([x], 1 / (1 / x), x, SIMPLIFY, "reals")
    one = sg.constant(1.0)
    for quotient in ((x / y) / z, x / (y / z), one / (x / y), one / (one / x)):
        stays([x, y, z], quotient, SIMPLIFY)


def test_multiples_of_one_value():
    x, y = xy()
    becomes([x], x + x, x * 2.0, SIMPLIFY, "bits")
    becomes([x], x * 3.0 + x * 2.0, x * 5.0, SIMPLIFY)
    becomes([x], 3 * x + x, x * 4.0, SIMPLIFY)
    stays([x], x * 3.0 + x * -2.0, SIMPLIFY)
    stays([x], x * 0.7 + x * 0.3, SIMPLIFY)
    becomes([x, y], x * 3.0 + y * 3.0, (y + x) * 3.0, SIMPLIFY)
    becomes([x, y], x * -3.0 + y * 3.0, (y - x) * 3.0, SIMPLIFY)
    becomes([x, y], x * 3.0 - y * 3.0, (x - y) * 3.0, SIMPLIFY)
    third = sg.constant(0.3)
    stays([x, y], x * third + y * third, SIMPLIFY)
    stays([x, y], x * 3.0 + y * 2.0, SIMPLIFY)


def test_columns_meet_unless_they_would_cancel():
    x, s, t = sg.placeholder("x", (8, 40)), sg.placeholder("s", (8, 1)), sg.placeholder("t", (8, 1))
    kernels = named("simplify", "kernels")
    becomes([x, s, t], (x / s) * t, x * (t / s), kernels, "reals")
    becomes([x, s, t], (x * s) * t, x * (s * t), kernels, "reals")
    for once in ((x / s) * s, (x / s) * (s * 3.0), (x * s) * (1.0 / s), (x / s) * -s):
        found = sg.compile([x, s, t], once, exact="reals", passes=kernels).trace.rules()
        assert not {"divisor_meets_factor", "small_factors_meet"} & {*found}


def test_the_slope_of_half_a_square():
    """By powers of two nothing is rounded, so that they may cancel."""
    x, _ = xy()
    becomes([x], sg.grad(sg.sum(0.5 * x**2), x), x, SIMPLIFY)


def test_integers_wrap_either_way():
    x, _ = xy(dtype="uint8")
    seven = np.uint8(7)
    becomes([x], (x + 200) + 63, x + seven, SIMPLIFY, "bits")
    becomes([x], (x * 37) * 7, x * np.uint8(37 * 7 % 256), SIMPLIFY, "bits")
    becomes([x], x + x, x * np.uint8(2), SIMPLIFY, "bits")


def test_what_is_rounded_is_round():
    x, _ = xy()
    becomes([x], sg.floor(sg.floor(x)), sg.floor(x), SIMPLIFY, "bits")
    becomes([x], sg.sign(sg.sign(x)), sg.sign(x), SIMPLIFY, "bits")
    becomes([x], abs(sg.exp(x)), sg.exp(x), SIMPLIFY, "bits")
    becomes([x], abs(x * -3.0), abs(x) * 3.0, SIMPLIFY)
    stays([x], sg.floor(sg.ceil(x)), SIMPLIFY)


def test_what_only_reals_allow():
    x, y = xy()
    for written in (x - x, x / x, x * 0, (x + y) - y, sg.sqrt(x) ** 2, sg.log(sg.exp(x))):
        program = sg.compile([x, y], written)
        assert not {r.name for f in program.trace.fired if (r := f.rule).exact == sg.Exact.REALS}
    becomes([x, y], (x + y) - y, x, SIMPLIFY, "reals")
    becomes([x, y], x - x, sg.zeros_like(x), SIMPLIFY, "reals")


def test_views_compose():
    x = sg.placeholder("x", (2, 3, 4))
    becomes([x], x.T.T, x, SIMPLIFY, "bits")
    y = sg.permute_dims(sg.permute_dims(x, (2, 0, 1)), (1, 0, 2))
    becomes([x], y, sg.permute_dims(x, (0, 2, 1)), SIMPLIFY, "bits")
    becomes([x], sg.reshape(sg.reshape(x, (6, 4)), (24,)), sg.reshape(x, (24,)), SIMPLIFY)
    becomes([x], sg.reshape(x, (2, 3, 4)), x, SIMPLIFY, "bits")
    s = sg.placeholder("s", ())
    wide = sg.reshape(sg.broadcast_to(s, (6,)), (2, 3))
    becomes([s], wide, sg.broadcast_to(s, (2, 3)), SIMPLIFY, "bits")


def test_what_is_repeated_is_moved_before():
    x, y = sg.placeholder("x", (3,)), sg.placeholder("y", (3, 2))
    wide = sg.broadcast_to(x, (2, 3))
    becomes([x, y], wide.T * y, sg.reshape(x, (3, 1)) * y, SIMPLIFY, "bits")
    four = sg.reshape(sg.broadcast_to(x, (4, 3)), (2, 2, 3))
    becomes([x], four, sg.broadcast_to(x, (2, 2, 3)), SIMPLIFY, "bits")
    becomes([x], sg.squeeze(sg.expand_dims(x, axis=1)), x, SIMPLIFY, "bits")


def test_what_is_moved_alike_is_moved_once():
    x, y = xy()
    becomes([x, y], x.T * y.T, (x * y).T, SIMPLIFY)
    becomes([x, y], (x.T - y.T).T, x - y, SIMPLIFY)
    stays([x, y], x.T * y.T, SIMPLIFY, "values")
    z = sg.placeholder("z", (3, 2))
    stays([x, z], x.T * z, SIMPLIFY)


def test_casts():
    x = sg.placeholder("x", (3,), "float32")
    i = sg.placeholder("i", (3,), "int64")
    becomes([x], sg.astype(sg.astype(x, "float64"), "float32"), x, SIMPLIFY, "bits")
    becomes(
        [i],
        sg.astype(sg.astype(i, "int32"), "int64"),
        sg.astype(sg.astype(i, "int32"), "int64"),
        SIMPLIFY,
    )
    becomes([x], sg.astype(sg.astype(x, "float64"), "bool"), sg.astype(x, "bool"), SIMPLIFY, "bits")
    b = sg.placeholder("b", (3,), "bool")
    twice = sg.astype(sg.astype(b, "int64"), "float32")
    becomes([b], twice, sg.astype(b, "float32"), SIMPLIFY, "bits")


def test_not_every_integer_is_a_float():
    i = sg.placeholder("i", (1,), "int64")
    there_and_back = sg.astype(sg.astype(i, "float64"), "int64")
    stays([i], there_and_back, SIMPLIFY, "reals")
    assert sg.compile([i], there_and_back)(np.array([2**53 + 1])) == 2**53


def test_operands_broadcast_by_themselves():
    x, y = sg.placeholder("x", (3,)), sg.placeholder("y", (2, 3))
    becomes([x, y], sg.broadcast_to(x, (2, 3)) * y, x * y, SIMPLIFY, "bits")
    both = sg.exp(sg.broadcast_to(x, (2, 3)))
    becomes([x], both, sg.broadcast_to(sg.exp(x), (2, 3)), SIMPLIFY)
    stays([x], both, SIMPLIFY, "bits")


def test_what_is_computed_no_times_stays_so():
    """NumPy refuses integers to negative powers, but not of none."""
    x = sg.placeholder("x", (), "int64")
    y = sg.broadcast_to(x, (0, 3)) ** sg.broadcast_to(x, (0, 3))
    assert sg.compile([x], y)(-1).shape == (0, 3)


def test_at_bits_no_array_becomes_a_view():
    """A sum or a product goes through a view in another order than through an array."""
    x, s = sg.placeholder("x", (40, 30)), sg.placeholder("s", (), "float32")
    wide = sg.astype(sg.broadcast_to(s, (40, 30)), "float64")
    c = sg.constant(np.random.default_rng(1).standard_normal((30, 40)))
    written = [
        vdot_p(wide, sg.broadcast_to(1.0 / x, (40, 30))),
        sg.sum(sg.maximum(x.T, x.T), axis=0),
        sg.sum(x.T * 1),
        (x.T / 1) @ x,
        sg.sum(c.T),
        sg.sum(c.T, axis=0),
        sg.sum(c.T, axis=1),
        c.T @ x.T,
        sg.sum(sg.reshape(sg.reshape(x.T, (1200,)), (30, 40)), axis=0),
    ]
    a = np.random.default_rng(0).standard_normal((40, 30)).cumsum().reshape(40, 30)
    for exact in ("bits", "values"):
        found = sg.compile([x, s], written, exact=exact)(a, np.float32(2.4268844))
        raw = sg.compile([x, s], written, passes=())(a, np.float32(2.4268844))
        for i, j in zip(found, raw, strict=True):
            np.testing.assert_array_equal(i, j)


def test_an_array_may_become_a_view_at_rounding():
    x = sg.placeholder("x", (2, 3))
    becomes([x], x.T * 1, x.T, SIMPLIFY)
    stays([x], x.T * 1, SIMPLIFY, "values")
    becomes([x], x * 1, x, SIMPLIFY, "bits")


def test_a_scalar_goes_to_the_smaller_operand():
    a, b = sg.placeholder("a", (4, 2)), sg.placeholder("b", (2, 50))
    becomes([a, b], (a @ b) * 0.3, (a * 0.3) @ b, SIMPLIFY)
    stays([a, b], (a @ b) * 3.0, SIMPLIFY)
    becomes([b, a], (b.mT @ a.mT) * 0.3, b.mT @ (a * 0.3).mT, SIMPLIFY)
    c, d = sg.placeholder("c", (2, 50)), sg.placeholder("d", (50, 3))
    becomes([c, d], (c * 3.0) @ d, (c @ d) * 3.0, SIMPLIFY)
    stays([c, d], (c * 0.3) @ d, SIMPLIFY)


def test_a_matrix_of_constants_is_no_scalar():
    a, b = sg.placeholder("a", (4, 2)), sg.placeholder("b", (2, 5))
    stays([a, b], (a @ b) * np.full((4, 5), 3.0), SIMPLIFY)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 1, 1)])
def test_one_element_in_more_dimensions_keeps_the_shape(shape):
    a, b = sg.placeholder("a", (4, 2)), sg.placeholder("b", (2, 5))
    c = np.full(shape, 3.0)
    for y in ((a @ b) * c, -(a * c), (a * c) * 2.0, a * np.ones(shape), sg.sum(a * c)):
        program = sg.compile([a, b], y)
        program.graph.verify()
        assert program.graph.outputs[0].type == y.type


def test_the_whole_of_a_step():
    """The scalars of a loss and of a step size end as one, at the smallest place."""
    x, w = sg.placeholder("x", (64, 100)), sg.variable("w", np.ones((100, 10)))
    loss = sg.sum((x @ w) ** 2)
    step = sg.compile([x], loss, updates={w: w - 1e-6 * sg.grad(loss, w)}, passes=SIMPLIFY)
    assert ops(step.graph).count("multiply") == 1, step.graph
