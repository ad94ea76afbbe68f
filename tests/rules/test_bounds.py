"""Bounds: of which of two one counts, and conditions on what was bounded."""

import numpy as np

import symgrad as sg
from symgrad.ops.select import select
from tests.rules.becomes import becomes, named, ops, stays

SIMPLIFY = named("simplify", "merge")


def xy():
    return [sg.placeholder("x", (2, 3)), sg.placeholder("y", (2, 3))]


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
        (sg.minimum(x, 2) != 1, x != 1),
    ):
        becomes([m, x], m & bounded, sg.logical_and(m, free), SIMPLIFY, "bits")
    for bounded in (sg.maximum(x, -1) > -1, sg.maximum(x, 3) > 2, sg.minimum(x, 2) != 3):
        stays([m, x], sg.logical_and(m, bounded), named("simplify"), "bits")


def test_the_mask_of_a_clip_of_a_clip():
    """Its backward has one mask of two comparisons: where neither bound is the result."""
    x = sg.placeholder("x", 9)
    y = sg.clip(sg.clip(x, -3, 3), -1, 2)
    program = sg.compile([x], [y, sg.grad(sg.sum(y), x)], passes=SIMPLIFY)
    names = ["maximum", "minimum", "not_equal", "not_equal", "logical_and", "select"]
    assert sorted(ops(program.graph)) == sorted(names), program.graph
    values = np.array([-4, -2, -1, 0, 1.5, 2, 2.5, 4, np.nan])
    clipped, slope = program(values)
    np.testing.assert_array_equal(clipped, np.clip(values, -1, 2))
    # A NaN is the result of its clip, so that the gradient flows to it.
    np.testing.assert_array_equal(slope, [0, 0, 0, 1, 1, 0, 0, 0, 1])


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
