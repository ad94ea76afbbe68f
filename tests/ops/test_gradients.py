"""Derivatives at the points where a formula that is right elsewhere goes wrong."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.select import select
from tests.helpers import check_second_derivatives, close, each, generator, same, value

x = sg.placeholder("x", 3)
NAN, INF = np.nan, np.inf


def gradient(function, at):
    leaf = sg.placeholder("x", np.shape(at))
    return value(sg.grad(sg.sum(function(leaf)), leaf), {leaf: np.asarray(at, float)})


@each(
    ("function", "at", "expected"),
    [
        (sg.relu, [-1.0, 0.0, 2.0], [0, 0, 1]),
        (sg.abs, [-1.0, 0.0, 2.0], [-1, 0, 1]),
        (sg.sign, [-1.0, 0.0, 2.0], None),
        (lambda x: sg.maximum(x, [0.0, 1, 1]), [0.0, 0.0, 2.0], [0, 0, 1]),
        (lambda x: sg.minimum(x, [0.0, 1, 1]), [0.0, 0.0, 2.0], [0, 1, 0]),
        (lambda x: sg.maximum(x, x), [1.0, 2.0], [1, 1]),
        (sg.max, [2.0, 1.0, 2.0], [0.5, 0, 0.5]),
        (sg.min, [2.0, 1.0, 2.0], [0, 1, 0]),
        (lambda x: sg.max(x, axis=0), [[1.0, 5.0], [1.0, 2.0]], [[0.5, 1], [0.5, 0]]),
        (lambda x: sg.hypot(x, 0.0), [0.0, -2.0], [0, -1]),
        (lambda x: sg.atan2(x, 0.0 * x), [0.0], [0]),
        (lambda x: sg.pow(x, 0), [0.0, 2.0], [0, 0]),
        (lambda x: x**1, [0.0, -2.0], [1, 1]),
        (lambda x: x**2, [0.0, -2.0], [0, -4]),
        (lambda x: x**3, [0.0, -2.0], [0, 12]),
        (lambda x: x**0.5, [0.0, 4.0], [INF, 0.25]),
        (lambda x: 0.0**x, [0.0, 2.0], [0, 0]),
        (lambda x: 2.0**x, [0.0], [np.log(2)]),
        (lambda x: sg.pow(x, [0.0, 0.0, 2.0]), [0.0, 3.0, 0.0], [0, 0, 0]),
        (lambda x: select(x > 0, sg.sqrt(x)), [-1.0, 4.0], [0, 0.25]),
        (lambda x: sg.where(x > 0, sg.sqrt(x), 0), [-1.0, 4.0], [0, 0.25]),
        (lambda x: sg.where(x > 0, 1 - 2 * sg.sqrt(x), 0), [-1.0, 4.0], [0, -0.5]),
        (lambda x: sg.relu(sg.where(x > 0, sg.log(x), 0)), [-1.0, 2.0], [0, 0.5]),
        (lambda x: sg.sqrt(sg.where(x > 0, x, 0)), [-1.0, 4.0], [0, 0.25]),
        (lambda x: sg.sqrt(sg.relu(x)), [-1.0, 4.0], [0, 0.25]),
        (sg.std, [1.0, 1.0], [0, 0]),
        (lambda x: sg.std(x, axis=0), [[1.0, 1.0], [1.0, 3.0]], [[0, -0.5], [0, 0.5]]),
        (sg.var, [1.0, 1.0], [0, 0]),
        (sg.prod, [0.0, 2.0, 3.0], [6, 0, 0]),
        (sg.prod, [0.0, 2.0, 0.0], [0, 0, 0]),
        (sg.prod, [5.0], [1]),
        (sg.prod, [1e-200, 1e-200, 1e300], [1e100, 1e100, 0]),
        (lambda x: sg.prod(x, axis=(0, 1)), [[2.0, 3.0], [0.0, 5.0]], [[0, 0], [30, 0]]),
        (lambda x: sg.logaddexp(x, x), [1000.0, -1000.0], [1, 1]),
        (lambda x: sg.sum(sg.stop_gradient(x) * x), [2.0, 3.0], [2, 3]),
        (lambda x: sg.mean(x[:0]) if x.shape[0] else x, np.empty(0), np.empty(0)),
    ],
)  # fmt: skip
def test_gradients_at_special_points(function, at, expected):
    if expected is None:
        with pytest.raises(ValueError, match="none flows"):
            gradient(function, at)
        return
    np.testing.assert_allclose(gradient(function, at), np.asarray(expected, float), rtol=1e-12)


def test_what_is_not_chosen_does_not_poison():
    bad = np.array([NAN, INF, 2.0])
    mask = np.array([False, False, True])
    for function in (
        lambda x: select(mask, x * np.array([NAN, INF, 1.0])),
        lambda x: sg.where(mask, x * np.array([NAN, INF, 1.0]), 0.0),
    ):
        g = value(sg.grad(sg.sum(function(x) * 2), x), {x: bad})
        assert g[2] == 2
    same(value(sg.vjp(select(mask, x), x, bad), {x: np.ones(3)}), np.array([0, 0, 2.0]))
    same(value(sg.vjp(sg.relu(x), x, bad), {x: np.array([-1.0, -1, 1])}), np.array([0, 0, 2.0]))


@pytest.mark.parametrize("count", range(1, 9))
def test_the_derivatives_of_a_product_at_zeros_are_right_in_second_order_too(count):
    rng = generator(f"prod{count}")
    for zeros in range(min(count, 3) + 1):
        array = rng.uniform(0.5, 1.5, (2, count))
        array[:, :zeros] = 0
        leaf = sg.placeholder("x", (2, count))
        for axis in (0, 1, None):
            check_second_derivatives([sg.prod(leaf, axis=axis)], [leaf], [array], rng)


def test_the_third_derivative_of_a_product_of_zeros():
    loss = sg.prod(x)
    for direction in np.eye(3):
        loss = sg.sum(sg.grad(loss, x) * direction)
    assert float(value(loss, {x: np.zeros(3)})) == 1


def test_the_product_over_an_unknown_number_of_elements_has_a_gradient_at_a_zero():
    y = sg.placeholder("y", ("N",))
    g = sg.grad(sg.prod(y), y)
    for at, expected in [([0, 2, 3], [6, 0, 0]), ([2, 0, 0], [0, 0, 0]), ([2, 3, 4], [12, 8, 6])]:
        close(value(g, {y: np.array(at, float)}), np.array(expected, float))


def test_a_gradient_of_no_elements_is_empty():
    empty = sg.placeholder("e", (0, 3))
    for function in (sg.sum, sg.prod, lambda n: sg.sum(sg.tanh(n) @ np.ones((3, 2)))):
        g = sg.grad(function(empty), empty)
        same(value(g, {empty: np.empty((0, 3))}), np.empty((0, 3)))


def test_a_broadcast_operand_gets_the_sum_of_what_flows():
    a, b = sg.placeholder("a", (2, 1)), sg.placeholder("b", ())
    total = sg.sum(sg.multiply(a, np.ones((4, 1, 3))) + b)
    da, db = sg.grad(total, [a, b])
    feeds = {a: np.ones((2, 1)), b: 1.0}
    same(value(da, feeds), np.full((2, 1), 12.0))
    same(value(db, feeds), np.float64(24))
