"""Comparisons: several as one, and of what may be left out. Each rule alone: `test_every_rule`."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.select import select
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


def test_bounds_combine():
    x, y = inputs = xy()
    becomes(inputs, (x < 2) & (x < 1), x < 1, SIMPLIFY, "bits")
    becomes(inputs, (x > 2) & (x > 1), x > 2, SIMPLIFY, "bits")
    met = sg.logical_and(y > 0, x > 2)
    becomes(inputs, (x > 2) & ((y > 0) & (x > 1)), met, named("simplify"), "bits")


def test_bounds_that_make_no_difference():
    m = sg.placeholder("m", (2, 3), "bool")
    x, _ = xy()
    for bounded, free in (
        (sg.maximum(x, -1) < 2, x < 2),
        (sg.minimum(x, 2) >= -1, x >= -1),
        (sg.relu(x) < 2, x < 2),
    ):
        becomes([m, x], m & bounded, sg.logical_and(m, free), SIMPLIFY, "bits")
    for bounded in (sg.maximum(x, -1) > -1, sg.maximum(x, 3) > 2):
        stays([m, x], sg.logical_and(m, bounded), named("simplify"), "bits")


def test_the_mask_of_a_clip_of_a_clip():
    """Its backward has one mask of two comparisons, both of the input."""
    x = sg.placeholder("x", 9)
    y = sg.clip(sg.clip(x, -3, 3), -1, 2)
    program = sg.compile([x], [y, sg.grad(sg.sum(y), x)], passes=SIMPLIFY)
    names = ["maximum", "minimum", "less", "greater", "logical_and", "select"]
    assert sorted(ops(program.graph)) == sorted(names), program.graph
    values = np.array([-4, -2, -1, 0, 1.5, 2, 2.5, 4, np.nan])
    clipped, slope = program(values)
    np.testing.assert_array_equal(clipped, np.clip(values, -1, 2))
    np.testing.assert_array_equal(slope, [0, 0, 0, 1, 1, 0, 0, 0, 0])


def test_the_mask_of_a_bounded_relu():
    x, y = inputs = xy()
    mask = (sg.relu(x) > 0) & (x < 6)
    inside = sg.logical_and(x > 0, x < 6)
    becomes(inputs, select(mask, y), select(inside, y), named("simplify"))


def test_what_the_output_of_relu_tells_its_operand_tells():
    x, y = inputs = xy()
    becomes(inputs, sg.relu(x + y) == 0, x + y <= 0, SIMPLIFY, "bits")
    becomes(inputs, sg.leaky_relu(x, 0.1) > 0, x > 0, SIMPLIFY, "bits")
    stays(inputs, sg.leaky_relu(x, -0.1) > 0, SIMPLIFY)
    h = sg.relu(x)
    stays(inputs, [h, sg.equal(h, 0)], SIMPLIFY)
