"""Common subexpressions: what is computed twice is computed once."""

import numpy as np
import pytest

import symgrad as sg
from tests.rules.becomes import becomes, named, ops, stays

CSE = named("common_subexpressions")


def xy():
    return [sg.placeholder("x", (2, 3)), sg.placeholder("y", (2, 3))]


def test_twins_are_one():
    x, y = xy()
    one = sg.exp(x + y)
    becomes([x, y], sg.exp(x + y) * sg.exp(x + y), one * one, CSE, "bits")


def test_whole_branches_are_one():
    x, y = xy()
    branch = sg.sum(sg.tanh(x * 2.0) @ y.T)
    again = sg.sum(sg.tanh(x * 2.0) @ y.T)
    becomes([x, y], [branch, again], [branch, branch], CSE, "bits")


@pytest.mark.parametrize("exact", ["values", "rounding", "reals"])
def test_the_order_of_commutative_operands_does_not_matter(exact):
    x, y = xy()
    one = x * y
    becomes([x, y], (x * y) + (y * x), one + one, CSE, exact)


def test_at_bits_the_order_matters():
    """Of two NaNs NumPy returns the first."""
    x, y = xy()
    stays([x, y], (x * y) + (y * x), CSE, "bits")


def test_the_operands_of_what_is_kept_are_not_swapped():
    x, y = xy()
    graph = sg.compile([x, y], [y * x, x * y], passes=CSE).graph
    assert graph.outputs[0] is graph.outputs[1]
    assert graph.outputs[0].inputs == (y, x)


def test_other_orders_and_attributes_are_not_the_same():
    x, y = xy()
    stays([x, y], (x - y) / (y - x), CSE)
    stays([x, y], sg.sum(x, axis=0) * sg.sum(x, axis=0, keepdims=True), CSE)


def test_equal_constants_are_one_and_unequal_are_not():
    x, _ = xy()
    a, b = sg.constant(np.arange(6.0).reshape(2, 3)), sg.constant(np.arange(6.0).reshape(2, 3))
    one = x + a
    becomes([x], (x + a) * (x + b), one * one, CSE, "bits")
    assert len(ops(sg.compile([x], (x + 0.0) * (x + -0.0), passes=CSE).graph)) == 3
    c, d = sg.constant(np.ones(3, "float32")), sg.constant(np.ones(3, "float64"))
    stays([x], (x * c) - (x * d), CSE)


def test_inputs_are_never_merged():
    x, y = xy()
    stays([x, y], x + y, CSE)
    v, w = sg.variable("v", np.ones(3)), sg.variable("w", np.ones(3))
    assert len(sg.compile([], v + w, passes=CSE).graph.inputs) == 2


def test_both_results_of_twins():
    x, y = xy()
    q, r = divmod(x, y)
    q2, r2 = divmod(x, y)
    becomes([x, y], [q, r2, q2, r], [q, r, q, r], CSE, "bits")


@pytest.mark.parametrize("exact", ["bits", "values"])
def test_a_product_by_what_becomes_its_own_transpose_keeps_its_digits(exact):
    """BLAS takes a @ a.T in another way than a @ b.T, and rounds otherwise."""
    x = sg.placeholder("x", (21, 30))
    program = sg.compile([x], sg.exp(x) @ sg.exp(x).T, exact=exact)
    for seed in range(20):
        a = np.exp(X := np.random.default_rng(seed).standard_normal((21, 30)))
        assert program(X).tobytes() == (a @ a.copy().T).tobytes()
    merged = sg.compile([x], sg.exp(x) @ sg.exp(x).T, exact="rounding")
    assert sum(n.op.name == "exp" for n in merged.graph.nodes) == 1
