"""Choices: one instead of several, as late as possible. Each rule alone: `test_every_rule`."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.index.slices import place
from symgrad.ops.select import select
from tests.rules.becomes import becomes, named, ops, stays

SIMPLIFY = named("simplify", "merge")


def mxy():
    return [sg.placeholder("m", (2, 3), "bool"), *(sg.placeholder(n, (2, 3)) for n in "xy")]


def test_known_masks():
    m, x, y = inputs = mxy()
    becomes(inputs, sg.where(True, x, y), x, SIMPLIFY, "bits")
    becomes(inputs, sg.where(False, x, y), y, SIMPLIFY, "bits")
    becomes(inputs, select(True, x), x, SIMPLIFY, "bits")
    becomes(inputs, sg.where(m | ~m, x, y), x, SIMPLIFY)
    for z in (select(False, x), select(m & ~m, x), select(m, 0.0), select(m, select(~m, x))):
        graph = sg.compile(inputs, z).graph
        assert ops(graph) == ["broadcast_to"], graph


def test_choices_of_booleans_are_logic():
    m, x, y = inputs = mxy()
    becomes(inputs, sg.where(m, True, False), m, SIMPLIFY)
    becomes(inputs, sg.where(m, False, True), sg.logical_not(m), SIMPLIFY)
    becomes(inputs, sg.where(m, x > y, False), sg.logical_and(m, x > y), SIMPLIFY)


def test_choices_within_choices_by_the_same_mask():
    m, x, y = inputs = mxy()
    z = x + y
    becomes(inputs, sg.where(m, sg.where(m, x, y), z), sg.where(m, x, z), SIMPLIFY, "bits")
    becomes(inputs, sg.where(m, x, sg.where(m, y, z)), sg.where(m, x, z), SIMPLIFY, "bits")
    becomes(inputs, sg.where(m, x, sg.where(~m, y, z)), sg.where(m, x, y), SIMPLIFY, "bits")
    becomes(inputs, select(m, sg.where(m, x, y)), select(m, x), SIMPLIFY, "bits")
    no = sg.logical_not(m)
    becomes(inputs, select(no, sg.where(m, x, y)), select(no, y), SIMPLIFY, "bits")
    becomes(inputs, sg.where(m, select(m, x), y), sg.where(m, x, y), SIMPLIFY, "bits")
    becomes(inputs, sg.where(m, x, select(m, y)), select(m, x), SIMPLIFY, "bits")


def test_what_is_selected_need_not_be_selected_before():
    m, x, y = inputs = mxy()
    becomes(inputs, select(m, select(m, x) * y), select(m, x * y), SIMPLIFY, "bits")
    becomes(inputs, select(m, y + select(m, x)), select(m, x + y), SIMPLIFY, "values")
    becomes(inputs, select(m, x * m), select(m, x), SIMPLIFY, "bits")
    both = sg.logical_and(m, x > 1.5)
    becomes(inputs, select(both, x * m), select(both, x), SIMPLIFY, "bits")
    inner = select(m, x)
    stays(inputs, [inner, select(m, inner * y)], SIMPLIFY)


def test_what_keeps_zeros_is_not_selected_again():
    m, x, _ = inputs = mxy()
    for f in (sg.square, sg.tanh, sg.sqrt, sg.relu):
        becomes(inputs, select(m, f(select(m, x))), f(select(m, x)), SIMPLIFY, "values")
    stays(inputs, select(m, sg.exp(select(m, x))), SIMPLIFY)


def test_selections_side_by_side():
    m, x, y = inputs = mxy()
    becomes(inputs, select(m, x) * select(m, y), select(m, x * y), SIMPLIFY, "bits")
    becomes(inputs, select(m, x) + select(m, y), select(m, x + y), SIMPLIFY, "bits")
    becomes(inputs, select(m, x) - select(m, y), select(m, x - y), SIMPLIFY, "bits")
    becomes(inputs, select(m, x) + select(~m, y), sg.where(m, x, y), SIMPLIFY, "values")
    becomes(inputs, select(m, x) - select(~m, y), sg.where(m, x, -y), SIMPLIFY, "values")
    becomes(inputs, select(~m, y) - select(m, x), sg.where(m, -x, y), SIMPLIFY, "values")
    scaled = select(m, x * 3.0) + select(~m, y * 3.0)
    becomes(inputs, scaled, sg.where(m, x, y) * 3.0, SIMPLIFY)
    scaled = select(m, x) + select(~m, y * 3.0)
    becomes(inputs, scaled, sg.where(m, x, y * 3.0), SIMPLIFY)
    scaled = select(m, x * 2.0) + select(~m, y)
    becomes(inputs, scaled, sg.where(m, x * 2.0, y), SIMPLIFY)
    scaled = select(m, x * 2.0) + select(~m, y * 3.0)
    becomes(inputs, scaled, sg.where(m, x * 2.0, y * 3.0), SIMPLIFY)


def test_the_sum_of_two_cotangents_is_not_selected_again():
    x, y = inputs = [sg.placeholder(n, (2, 3)) for n in "xy"]
    m, n = x > 1.5, y < 0.5
    total = select(m, y) + select(n, x) * 3.0
    becomes(inputs, select(sg.logical_or(m, n), total), total, SIMPLIFY, "values")
    k = x > y
    more, masks = select(k, y), sg.logical_or(sg.logical_or(m, n), k)
    becomes(inputs, select(masks, total + more), total + more, SIMPLIFY, "values")
    stays(inputs, select(sg.logical_or(m, n), y + select(n, x)), SIMPLIFY)


def test_what_both_cases_have_in_common():
    m, x, y = inputs = mxy()
    for f in (sg.exp, sg.log, sg.sqrt, sg.negative):
        becomes(inputs, sg.where(m, f(x), f(y)), f(sg.where(m, x, y)), SIMPLIFY, "bits")
    z = sg.placeholder("z", (2, 3))
    becomes([*inputs, z], sg.where(m, x * z, y * z), sg.where(m, x, y) * z, SIMPLIFY, "bits")
    becomes([*inputs, z], sg.where(m, x + z, y + z), sg.where(m, x, y) + z, SIMPLIFY, "bits")
    becomes(inputs, sg.where(m, x * 3.0, y * 3.0), sg.where(m, x, y) * 3.0, SIMPLIFY, "bits")
    taken = sg.exp(x)
    stays(inputs, [taken, sg.where(m, taken, sg.exp(y))], SIMPLIFY)


def test_what_is_chosen_from_stays_small():
    """Two exponentials of three numbers are less work than one of six."""
    m, x, y = sg.placeholder("m", (8, 3), "bool"), sg.placeholder("x", 3), sg.placeholder("y", 3)
    stays([m, x, y], sg.where(m, sg.exp(x), sg.exp(y)), SIMPLIFY)


def test_a_mask_along_a_sum_selects_the_sum():
    m, x = inputs = sg.placeholder("m", (2, 1), "bool"), sg.placeholder("x", (2, 3))
    selected = select(sg.reshape(m, (2,)), sg.sum(x, axis=1))
    becomes(inputs, sg.sum(select(m, x), axis=1), selected, SIMPLIFY, "bits")
    kept = select(m, sg.sum(x, axis=1, keepdims=True))
    becomes(inputs, sg.sum(select(m, x), axis=1, keepdims=True), kept, SIMPLIFY, "bits")
    stays(inputs, sg.sum(select(m, x), axis=0), SIMPLIFY)


def test_what_is_put_among_zeros_is_selected_before():
    m, x = inputs = sg.placeholder("m", 2, "bool"), sg.placeholder("x", 2)
    put = {"index": ((1, 3, 1),), "shape": (5,)}
    becomes(
        inputs,
        select(place(m, **put), place(x, **put)),
        place(select(m, x), **put),
        SIMPLIFY,
        "bits",
    )


def test_the_gradient_of_a_choice_is_one_choice():
    """Huber's loss: what flows is the residual or its sign."""
    p, t = inputs = [sg.placeholder(n, 8) for n in "pt"]
    r = p - t
    loss = sg.mean(sg.where(abs(r) <= 1, 0.5 * r * r, abs(r) - 0.5))
    program = sg.compile(inputs, sg.grad(loss, p), passes=SIMPLIFY)
    assert ops(program.graph).count("where") == 1, program.graph
    assert not {"select", "logical_or", "logical_not"} & {*ops(program.graph)}, program.graph
    values = np.linspace(-3, 3, 8)
    np.testing.assert_allclose(program(values, np.zeros(8)), np.clip(values, -1, 1) / 8)


@pytest.mark.parametrize("exact", ["bits", "values", "rounding", "reals"])
def test_cross_entropy_takes_one_logarithm(exact):
    p, t = inputs = sg.placeholder("p", 8), sg.placeholder("t", 8, "bool")
    loss = -sg.sum(sg.where(t, sg.log(p), sg.log(1 - p)))
    program = sg.compile(inputs, loss, exact=exact, passes=SIMPLIFY)
    assert ops(program.graph).count("log") == 1, program.graph
    values, truth = np.linspace(0.1, 0.9, 8), np.arange(8) % 2 == 0
    expected = -np.log(np.where(truth, values, 1 - values)).sum()
    np.testing.assert_allclose(program(values, truth), expected)
