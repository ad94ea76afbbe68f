"""Extrema: bounds joined, choices recognised. Each rule alone: `test_every_rule`."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.select import select
from tests.rules.becomes import becomes, named, ops, stays

SIMPLIFY = named("simplify", "merge")


def xy(dtype="float64"):
    return [sg.placeholder("x", (2, 3), dtype), sg.placeholder("y", (2, 3), dtype)]


def test_relu_however_it_is_spelled():
    x, _ = inputs = xy()
    becomes(inputs, sg.maximum(0, x), sg.relu(x), SIMPLIFY, "values")
    becomes(inputs, sg.where(x > 0, x, 0), sg.relu(x), SIMPLIFY, "reals")
    becomes(inputs, sg.where(x >= 0, x, 0), sg.relu(x), SIMPLIFY, "reals")
    stays(inputs, select(x > 0, x), SIMPLIFY)


def test_relu_meets_what_is_not_negative():
    x, y = inputs = xy()
    becomes(inputs, sg.relu(abs(x)), abs(x), SIMPLIFY, "bits")
    becomes(inputs, abs(sg.relu(x)), sg.relu(x), SIMPLIFY, "bits")
    becomes(inputs, sg.relu(x * x), sg.square(x), SIMPLIFY)
    m = x > y
    becomes(inputs, sg.relu(select(m, sg.relu(x))), select(m, sg.relu(x)), SIMPLIFY, "bits")
    assert ops(sg.compile(inputs, sg.relu(-sg.relu(x)), exact="reals").graph) == ["broadcast_to"]


def test_relu_meets_its_mask():
    x, _ = inputs = xy()
    becomes(inputs, sg.relu(x) * (x > 0), sg.relu(x), SIMPLIFY, "bits")
    becomes(inputs, select(x > 0, sg.relu(x)), sg.relu(x), SIMPLIFY, "reals")
    h = sg.relu(x)
    becomes(inputs, select(h > 0, h), h, SIMPLIFY, "reals")
    stays(inputs, select(x > 0, sg.relu(x)), SIMPLIFY)


def test_the_gradient_of_a_squared_relu_at_reals():
    """The mask is that of the output, which is 0 by itself where the mask is."""
    x, _ = xy()
    loss = sg.sum(sg.relu(x) ** 2)
    program = sg.compile([x], sg.grad(loss, x), exact="reals", passes=SIMPLIFY)
    assert ops(program.graph) == ["relu", "multiply"], program.graph
    values = np.array([[-1, 0, 1], [2, -3, 4]])
    np.testing.assert_array_equal(program(values), 2 * np.maximum(values, 0))


def test_bounds_join():
    x, _ = inputs = xy()
    becomes(inputs, sg.maximum(sg.maximum(x, 1), 2), sg.maximum(x, 2), SIMPLIFY, "values")
    becomes(inputs, sg.minimum(3, sg.minimum(x, 2)), sg.minimum(x, 2), SIMPLIFY, "values")
    becomes(inputs, sg.maximum(sg.relu(x), 2), sg.maximum(x, 2), SIMPLIFY, "values")
    becomes(inputs, sg.relu(sg.maximum(x, -2)), sg.relu(x), SIMPLIFY, "values")
    becomes(inputs, sg.maximum(sg.minimum(x, 2), -1), sg.clip(x, -1, 2), SIMPLIFY, "values")
    becomes(inputs, sg.clip(sg.clip(x, -3, 3), -1, 2), sg.clip(x, -1, 2), SIMPLIFY, "values")
    becomes(inputs, sg.relu(sg.clip(x, -1, 6)), sg.minimum(sg.relu(x), 6), SIMPLIFY, "values")
    stays(inputs, sg.minimum(sg.maximum(x, 2), 1), SIMPLIFY)


def test_bounds_that_others_read_stay():
    x, _ = inputs = xy()
    inner = sg.minimum(x, 2)
    stays(inputs, [inner, sg.maximum(inner, -1)], SIMPLIFY)


def test_signs_move_out_of_extrema():
    x, y = inputs = xy()
    becomes(inputs, sg.maximum(-x, -y), -sg.minimum(x, y), SIMPLIFY, "values")
    becomes(inputs, -sg.minimum(-x, -y), sg.maximum(x, y), SIMPLIFY, "values")
    becomes(inputs, -sg.maximum(-x, 2), sg.minimum(x, -2), SIMPLIFY, "values")
    becomes(inputs, -sg.minimum(-x, 2), sg.maximum(x, -2), SIMPLIFY, "values")
    becomes(inputs, sg.maximum(x, -x), abs(x), SIMPLIFY, "values")


def test_lattice_laws_hold_without_nan():
    x, y = inputs = xy("int32")
    becomes(inputs, sg.maximum(x, sg.minimum(x, y)), x, SIMPLIFY, "bits")
    becomes(inputs, sg.minimum(sg.maximum(y, x), x), x, SIMPLIFY, "bits")
    becomes(inputs, sg.maximum(sg.maximum(x, y), x), sg.maximum(x, y), SIMPLIFY, "values")
    becomes(inputs, sg.minimum(x, sg.minimum(x, y)), sg.minimum(x, y), SIMPLIFY, "bits")
    x, y = inputs = xy()
    stays(inputs, sg.maximum(x, sg.minimum(x, y)), SIMPLIFY, "reals")


def test_bounds_spelled_as_choices():
    x, _ = inputs = xy()
    becomes(inputs, sg.where(x < 1, 1, x), sg.maximum(x, 1), SIMPLIFY, "values")
    becomes(inputs, sg.where(x <= 1, 1, x), sg.maximum(x, 1), SIMPLIFY, "values")
    becomes(inputs, sg.where(x > 1, 1, x), sg.minimum(x, 1), SIMPLIFY, "values")
    becomes(inputs, sg.where(x >= 1, 1, x), sg.minimum(x, 1), SIMPLIFY, "values")
    low = sg.where(x < -1, -1, x)
    becomes(inputs, sg.where(low > 2, 2, low), sg.clip(x, -1, 2), SIMPLIFY, "values")
    stays(inputs, sg.where(x > 1, x, 1), named("simplify"))


def test_abs_spelled_as_a_choice():
    x, _ = inputs = xy()
    for choice in (
        sg.where(x > 0, x, -x),
        sg.where(x >= 0, x, -x),
        sg.where(x < 0, -x, x),
        sg.where(x <= 0, -x, x),
    ):
        becomes(inputs, choice, abs(x), SIMPLIFY, "values")


@pytest.mark.parametrize("slope", [0.1, 2.0, -0.5])
def test_leaky_relu_spelled_as_a_choice(slope):
    x, _ = inputs = xy()
    for choice in (
        sg.where(x > 0, x, slope * x),
        sg.where(x >= 0, x, x * slope),
        sg.where(x < 0, slope * x, x),
        sg.where(x <= 0, x * slope, x),
    ):
        becomes(inputs, choice, sg.leaky_relu(x, slope), SIMPLIFY, "values")
    if 0 < slope < 1:
        leaky = sg.leaky_relu(x, slope)
        becomes(inputs, sg.maximum(x, slope * x), leaky, SIMPLIFY, "values")
