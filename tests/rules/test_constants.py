"""Constant folding: what depends on nothing is computed when compiling."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.node import constant_value
from symgrad.passes import graph_pass
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.rule import rules_of
from symgrad.rules import constants
from symgrad.rules.constants import MOST_ELEMENTS
from tests.rules.becomes import becomes, ops, stays


@graph_pass
def folding(graph):
    """The rules of folding alone."""
    return rewrite(graph, rules_of(constants))


FOLD = [folding]


def test_constants_fold_to_the_last():
    x = sg.placeholder("x", 3)
    y = x * sg.sum(sg.exp(sg.constant([1.0, 2.0])) * 3.0)
    expected = x * sg.constant(np.sum(np.exp([1.0, 2.0]) * 3.0))
    becomes([x], y, expected, FOLD, "bits")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float64"])
def test_dtypes_are_kept(dtype):
    x = sg.placeholder("x", 3, dtype)
    c = sg.constant(np.ones(3, dtype))
    becomes([x], sg.concat([x, sg.maximum(c, c)]), sg.concat([x, c]), FOLD, "bits")


def test_special_values_fold_as_they_run():
    zero = sg.constant(np.array([0.0, -0.0, np.inf, np.nan]))
    y = sg.concat([1.0 / zero, sg.sqrt(-zero), sg.exp(zero * 1e308)])
    graph = sg.compile([], y, passes=FOLD).graph
    assert ops(graph) == []
    with np.errstate(all="ignore"):
        expected = sg.compile([], y, passes=())()
    np.testing.assert_array_equal(constant_value(graph.outputs[0]), expected)


def test_what_is_large_is_left_to_the_program():
    small = sg.constant(np.ones(MOST_ELEMENTS))
    large = sg.constant(np.ones(MOST_ELEMENTS + 1))
    x = sg.placeholder("x", ())
    assert ops(sg.compile([x], sg.exp(small) * x, passes=FOLD).graph) == ["multiply"]
    assert ops(sg.compile([x], sg.exp(large) * x, passes=FOLD).graph) == ["exp", "multiply"]


def test_a_large_constant_folds_into_a_small_result():
    x = sg.placeholder("x", ())
    large = sg.constant(np.arange(MOST_ELEMENTS + 1.0))
    assert ops(sg.compile([x], sg.sum(large) * x, passes=FOLD).graph) == ["multiply"]


def test_named_sizes_are_not_known():
    x = sg.placeholder("x", ("N",))
    graph = sg.compile([x], sg.sum(sg.ones_like(x) * 2.0) + sg.sum(x), passes=FOLD).graph
    assert "multiply" in ops(graph)


def test_views_fold_but_repetition_does_not():
    x = sg.placeholder("x", (2, 3))
    c = sg.constant(np.arange(6.0).reshape(3, 2))
    becomes([x], x * c.T, x * sg.constant(np.arange(6.0).reshape(3, 2).T), FOLD)
    stays([x], x * sg.broadcast_to(sg.constant(2.0), (2, 3)), FOLD, "bits")


def test_placeholders_and_variables_do_not_fold():
    x, v = sg.placeholder("x", 3), sg.variable("v", np.ones(3))
    stays([x], sg.exp(x), FOLD)
    assert ops(sg.compile([], sg.exp(v), passes=FOLD).graph) == ["exp"]


def test_leaves_that_are_made_when_run_do_not_fold():
    """They are cheap to make and may be large: an array of nothing but numbers in a row."""
    x = sg.placeholder("x", ("N",))
    graph = sg.compile([x], sg.arange(x.shape[0]) * 2, passes=FOLD).graph
    assert "multiply" in ops(graph)


def test_several_results_of_constants():
    q, r = divmod(sg.constant([7.0, 8.0]), 3.0)
    x = sg.placeholder("x", 2)
    program = sg.compile([x], [q * x, r * x])
    np.testing.assert_array_equal(program(np.ones(2)), [[2, 2], [1, 2]])


def test_what_cannot_be_computed_fails_when_it_runs():
    x = sg.placeholder("x", 3, "int64")
    program = sg.compile([x], x + (sg.ones_like(x) * 2) ** sg.constant(-2, "int64"))
    with pytest.raises(sg.KernelError, match="negative integer powers"):
        program([1, 2, 3])
