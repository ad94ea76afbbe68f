"""Masks: selections instead of products, one instead of two, scalars out of the way."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.select import keep_where_positive, select
from tests.rules.becomes import becomes, named, stays

SIMPLIFY = named("simplify")
KERNELS = named("kernels")


def xg():
    return [sg.placeholder("x", (2, 3)), sg.placeholder("g", (2, 3))]


def test_a_mask_multiplied_in_is_a_selection_at_reals():
    x, g = xg()
    becomes([x, g], g * (x > 1.5), select(x > 1.5, g), SIMPLIFY, "reals")
    becomes([x, g], (x > 1.5) * g, select(x > 1.5, g), SIMPLIFY, "reals")
    becomes([x, g], g * sg.astype(x > 1.5, "float64"), select(x > 1.5, g), SIMPLIFY, "reals")


@pytest.mark.parametrize("exact", ["bits", "values", "rounding"])
def test_elsewhere_inf_times_0_is_nan(exact):
    x, g = xg()
    program = sg.compile([x, g], g * (x > 1.5), exact=exact)
    found = program(np.zeros((2, 3)), np.full((2, 3), np.inf))
    assert np.isnan(found).all(), program.graph


@pytest.mark.parametrize("exact", ["bits", "values", "rounding", "reals"])
@pytest.mark.parametrize("passes", [None, ()], ids=["optimised", "raw"])
def test_in_a_gradient_nothing_flows_where_a_mask_is_0(exact, passes):
    """With passes and without: a selection by what a derivative means."""
    x, g = xg()
    back = sg.vjp(sg.relu(x), x, g)
    found = sg.compile([x, g], back, exact=exact, passes=passes)(
        np.array([[-1, 0, 1], [np.nan, -np.inf, np.inf]]), np.full((2, 3), np.nan)
    )
    np.testing.assert_array_equal(found, [[0, 0, np.nan], [0, 0, np.nan]])


def test_choices_between_a_value_and_0():
    x, g = xg()
    m = x > 1.5
    becomes([x, g], sg.where(m, g, 0.0), select(m, g), SIMPLIFY, "bits")
    becomes([x, g], sg.where(m, 0.0, g), select(sg.logical_not(m), g), SIMPLIFY, "bits")
    becomes([x, g], sg.where(m, g, g), g, SIMPLIFY, "bits")
    becomes([x, g], sg.where(sg.logical_not(m), x, g), sg.where(m, g, x), SIMPLIFY, "bits")
    stays([x, g], sg.where(m, g, -0.0), SIMPLIFY, "bits")


def test_what_is_negated_must_be_a_mask():
    """`logical_not` takes floats, and `where` does not."""
    x, g = xg()
    stays([x, g], sg.where(sg.logical_not(x), g, x), SIMPLIFY, "bits")


def test_selections_merge():
    x, g = xg()
    m, n = x > 1.5, g < 1.0
    becomes([x, g], select(m, select(n, g)), select(sg.logical_and(m, n), g), SIMPLIFY, "bits")
    becomes([x, g], select(m, select(m, g)), select(m, g), SIMPLIFY, "bits")


def test_selections_that_others_read_do_not_merge():
    x, g = xg()
    inner = select(g < 1.0, g)
    stays([x, g], [select(x > 1.5, inner), inner], SIMPLIFY, "bits")


def test_scalars_and_signs_move_out():
    x, g = xg()
    m = x > 1.5
    becomes([x, g], select(m, g * 3.0), select(m, g) * 3.0, SIMPLIFY, "values")
    becomes([x, g], select(m, -g), -select(m, g), SIMPLIFY, "values")
    stays([x, g], select(m, g * 3.0), SIMPLIFY, "bits")
    stays([x, g], select(m, g * np.inf), SIMPLIFY, "rounding")


def test_scalars_move_into_a_product_that_is_selected():
    a, b = sg.placeholder("a", (4, 2)), sg.placeholder("b", (2, 5))
    m = sg.placeholder("m", (4, 5), "bool")
    becomes([a, b, m], select(m, a @ b) * 0.3, select(m, (a * 0.3) @ b), SIMPLIFY)


def test_the_backward_of_relu_is_one_kernel():
    x, g = xg()
    becomes([x, g], select(x > 0, g), keep_where_positive(x, g), KERNELS, "bits")
    stays([x, g], select(x > 1, g), KERNELS, "bits")
    stays([x, g], select(x >= 0, g), KERNELS, "bits")


def test_relu_from_loss_to_gradient():
    """The mask is taken from the output of relu, which is alive anyway."""
    x, w = sg.placeholder("x", (8, 4)), sg.placeholder("w", (4, 3))
    loss = sg.sum(sg.relu(x @ w) ** 2)
    program = sg.compile([x, w], [loss, sg.grad(loss, w)])
    names = [s.name for s in program.plan.steps]
    assert "keep_where_positive" in names, program.source
    assert not {"greater", "select"} & {*names}, program.source
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((8, 4)), rng.standard_normal((4, 3))
    h = np.maximum(a @ b, 0)
    found = program(a, b)
    np.testing.assert_allclose(found[0], (h**2).sum())
    np.testing.assert_allclose(found[1], a.T @ (2 * h))


def test_a_mask_in_two_places_is_made_once():
    x, g = xg()
    m = x > 1.5
    program = sg.compile([x, g], [select(m, g), select(x > 1.5, x)])
    assert [s.name for s in program.plan.steps].count("greater") == 1, program.graph


def test_a_mask_that_selects_several_times_is_widened_once():
    x, y = sg.placeholder("x", (40, 50)), sg.placeholder("y", (40, 50))
    masked = select(x > y, sg.exp(x)), select(x > y, y)
    program = sg.compile([x, y], list(masked), exact="bits")
    assert program.source.count("keep_bits(") == 3  # its definition, and two calls
    assert program.source.count("negative(") == 1
    rng = np.random.default_rng(0)
    hostile = np.array([np.inf, -np.inf, np.nan, -0.0, 5e-324])
    a, b = rng.choice(hostile, (40, 50)), rng.standard_normal((40, 50))
    for fed in ((a, b), (b, a)):
        found, expected = program(*fed), sg.compile([x, y], list(masked), passes=())(*fed)
        assert [f.tobytes() for f in found] == [e.tobytes() for e in expected]
