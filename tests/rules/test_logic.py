"""Booleans: what conditions imply, masks in arithmetic. Each rule alone: `test_every_rule`."""

import numpy as np
import pytest

import symgrad as sg
from tests.rules.becomes import becomes, named, ops, stays

SIMPLIFY = named("simplify", "merge")


def masks():
    return [sg.placeholder(name, (2, 3), "bool") for name in "mn"]


def both(*operands):
    return sg.logical_and(*operands)


def either(*operands):
    return sg.logical_or(*operands)


def no(x):
    return sg.logical_not(x)


def test_operators_on_booleans_are_logic():
    m, n = inputs = masks()
    becomes(inputs, m & n, both(m, n), SIMPLIFY, "bits")
    becomes(inputs, m | n, either(m, n), SIMPLIFY, "bits")
    becomes(inputs, m ^ n, sg.logical_xor(m, n), SIMPLIFY, "bits")
    becomes(inputs, ~m, no(m), SIMPLIFY, "bits")
    becomes(inputs, m * n, both(m, n), SIMPLIFY, "bits")
    becomes(inputs, m + n, either(m, n), SIMPLIFY, "bits")
    becomes(inputs, ~(~m), m, SIMPLIFY, "bits")


def test_operators_on_integers_stay():
    x, y = (sg.placeholder(name, (2, 3), "int32") for name in "xy")
    for z in (x & y, x | y, x ^ y, ~x, x * y, x + y):
        stays([x, y], z, SIMPLIFY, "bits")


def test_conditions_with_themselves_and_with_constants():
    m, n = inputs = masks()
    for z in (m & m, m | m, m & True, m | False, m ^ False, m & (m | n), m | (m & n)):
        becomes(inputs, z, m, SIMPLIFY, "bits")
    becomes(inputs, m ^ True, no(m), SIMPLIFY, "bits")
    becomes(inputs, (m & n) & m, both(m, n), SIMPLIFY, "bits")
    becomes(inputs, n | (m | n), either(m, n), SIMPLIFY, "bits")
    becomes(inputs, m & (~m | n), both(m, n), SIMPLIFY, "bits")
    becomes(inputs, m | (~m & n), either(m, n), SIMPLIFY, "bits")


@pytest.mark.parametrize("known", [True, False])
def test_conditions_that_are_known(known):
    inputs = masks()
    m = inputs[0]
    spelled = [m | True, m | ~m] if known else [m & False, m & ~m, m ^ m]
    for z in spelled:
        graph = sg.compile(inputs, z).graph
        assert ops(graph) == ["broadcast_to"], graph
        assert (sg.compile(inputs, z)(*[np.eye(2, 3) > 0] * 2) == known).all()


def test_what_is_no_boolean_is_not_taken_for_one():
    """`logical_and` takes numbers, and gives a boolean."""
    x, y = (sg.placeholder(name, (2, 3)) for name in "xy")
    for z in (both(x, x), either(x, x), both(x, True), either(x, False), both(x, either(x, y))):
        stays([x, y], z, SIMPLIFY, "bits")


def test_negations_gather():
    m, n = inputs = masks()
    becomes(inputs, ~m & ~n, no(either(m, n)), SIMPLIFY, "bits")
    becomes(inputs, ~m | ~n, no(both(m, n)), SIMPLIFY, "bits")
    becomes(inputs, ~(~m & ~n), either(m, n), SIMPLIFY, "bits")
    k, j = no(m), no(n)
    stays(inputs, [both(k, j), k, j], SIMPLIFY, "bits")


def test_masks_as_numbers():
    m, n = masks()
    x = sg.placeholder("x", (2, 3))
    inputs = [m, n, x]

    def number(mask):
        return sg.astype(mask, "float64")

    becomes(inputs, number(m) * number(n), number(both(m, n)), SIMPLIFY, "bits")
    becomes(inputs, x * m * n, x * number(both(m, n)), SIMPLIFY, "bits")
    becomes(inputs, 1 - number(m), number(no(m)), SIMPLIFY, "bits")
    becomes(inputs, sg.astype(-x, "bool"), sg.astype(x, "bool"), SIMPLIFY, "bits")


def test_masks_mix_at_reals():
    m = sg.placeholder("m", (2, 3), "bool")
    x, y = (sg.placeholder(name, (2, 3)) for name in "xy")
    mixed = m * x + (1 - sg.astype(m, "float64")) * y
    becomes([m, x, y], mixed, sg.where(m, x, y), SIMPLIFY, "reals")


def test_a_confusion_matrix_needs_no_negations_of_its_own():
    guess, truth = (sg.placeholder(name, 8, "bool") for name in ("guess", "truth"))
    counts = [guess & truth, guess & ~truth, ~guess & truth, ~guess & ~truth]
    program = sg.compile([guess, truth], [sg.sum(sg.astype(c, "float64")) for c in counts])
    assert "bitwise_and" not in ops(program.graph), program.graph
    p, t = np.arange(8) % 2 == 0, np.arange(8) < 3
    np.testing.assert_array_equal(program(p, t), [2, 2, 1, 3])
