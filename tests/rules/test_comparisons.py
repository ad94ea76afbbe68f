"""Comparisons: several as one, and of what may be left out. Each rule alone: `test_every_rule`."""

import pytest

import symgrad as sg
from tests.rules.becomes import becomes, named, ops, stays

SIMPLIFY = named("simplify", "merge")


def xy(dtype="float64"):
    return [sg.placeholder("x", (2, 3), dtype), sg.placeholder("y", (2, 3), dtype)]


def test_a_constant_stands_on_the_right():
    x, y = xy()
    becomes([x, y], sg.less(1.5, x), x > 1.5, SIMPLIFY, "bits")
    becomes([x, y], sg.greater_equal(1.5, x), x <= 1.5, SIMPLIFY, "bits")


def test_values_with_themselves():
    x, _ = xy()
    becomes([x], x <= x, x == x, SIMPLIFY, "bits")
    stays([x], x == x, SIMPLIFY, "rounding")
    stays([x], x != x, SIMPLIFY, "reals")
    for z in (x < x, x > x):
        assert ops(sg.compile([x], z).graph) == ["broadcast_to"]
    assert ops(sg.compile([x], x == x, exact="reals").graph) == ["broadcast_to"]
    i, _ = xy("int32")
    assert ops(sg.compile([i], i >= i).graph) == ["broadcast_to"]


def test_negated_values_compare_the_other_way_round():
    x, y = xy()
    becomes([x, y], -x < -y, x > y, SIMPLIFY, "bits")
    becomes([x, y], -x > 0.0, x < -0.0, SIMPLIFY, "bits")
    i, j = xy("int32")
    stays([i, j], -i < -j, SIMPLIFY, "reals")


def test_the_sign_of_a_difference():
    x, y = xy()
    becomes([x, y], x - y > 0, x > y, SIMPLIFY, "bits")
    becomes([x, y], sg.greater(0, x - y), x < y, SIMPLIFY, "bits")
    stays([x, y], x - y >= 0, SIMPLIFY)
    d = x - y
    stays([x, y], [d, d > 0], SIMPLIFY)
    i, j = xy("int32")
    stays([i, j], i - j > 0, SIMPLIFY)


def test_masks_compared_with_numbers():
    m = sg.placeholder("m", (2, 3), "bool")
    number = sg.astype(m, "float32")
    for z in (number > 0, number == 1, number != 0, number >= 0.5, m == True, m != 0):  # noqa: E712
        becomes([m], z, m, SIMPLIFY, "bits")
    for z in (number < 1, number == 0, m == False, sg.greater_equal(0, number)):  # noqa: E712
        becomes([m], z, sg.logical_not(m), SIMPLIFY, "bits")
    assert ops(sg.compile([m], number > 1).graph) == ["broadcast_to"]


def test_several_comparisons_are_one():
    x, y = inputs = xy()
    becomes(inputs, (x < y) | (x == y), x <= y, SIMPLIFY, "bits")
    becomes(inputs, (x >= y) & (y >= x), x == y, SIMPLIFY, "bits")
    becomes(inputs, (x <= y) & (x != y), x < y, SIMPLIFY, "bits")
    becomes(inputs, (x < y) & ~(x > y), x < y, SIMPLIFY, "bits")
    becomes(inputs, (x > 1) | (x <= 1), x == x, SIMPLIFY, "bits")
    stays(inputs, sg.logical_or(x < y, x > y), SIMPLIFY)
    i, j = xy("int32")
    becomes([i, j], (i < j) | (i > j), i != j, SIMPLIFY, "bits")


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_without_nan_the_opposite_is_a_comparison(dtype):
    x, y = xy(dtype)
    becomes([x, y], ~(x < y), x >= y, SIMPLIFY, "bits")
    becomes([x, y], ~(x <= y), x > y, SIMPLIFY, "bits")
    becomes([x, y], ~(x > y), x <= y, SIMPLIFY, "bits")
    becomes([x, y], ~(x >= y), x < y, SIMPLIFY, "bits")
    x, y = xy()
    stays([x, y], sg.logical_not(x < y), SIMPLIFY)
