"""Patterns: what they match, what they bind, what they make."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import RewriteError
from symgrad.rewrite.pattern import (
    Applied,
    Literal,
    as_pattern,
    instantiate,
    interior,
    match,
    variants,
)

X, Y, C = sg.Var("x"), sg.Var("y"), sg.Const("c")


def node(name="x", shape=(2, 3), dtype="float64"):
    return sg.placeholder(name, shape, dtype)


def bound_by(pattern, target):
    bound = {}
    return bound if match(as_pattern(pattern), target, bound) else None


def test_an_op_on_a_variable_makes_a_pattern():
    pattern = sg.tanh(X) * 2 + Y
    assert isinstance(pattern, Applied)
    assert repr(pattern) == "add(multiply(tanh(x), 2), y)"


def test_a_variable_is_bound_to_what_it_stands_for():
    a, b = node("a"), node("b")
    assert bound_by(sg.exp(X) - Y, sg.exp(a) - b) == {"x": a, "y": b}
    assert bound_by(sg.exp(X) - Y, a - sg.exp(b)) is None


def test_a_variable_twice_is_one_node():
    a, b = node("a"), node("b")
    assert bound_by(X * X, a * a) == {"x": a}
    assert bound_by(X * X, a * b) is None
    assert bound_by(X * X, sg.exp(a) * sg.exp(a)) is None  # equal, but two nodes


def test_equal_constants_are_the_same():
    a = node("a")
    assert bound_by((Y * C) + C, (a * 2.0) + 2.0) is not None
    assert bound_by((Y * C) + C, (a * 2.0) + 3.0) is None


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_const_is_one_element(shape):
    a = node("a")
    assert bound_by(X * C, a * np.full(shape, 3.0)) is not None
    assert bound_by(X * C, a * np.full((2, 3), 3.0)) is None
    assert bound_by(X * C, a * node("b")) is None


@pytest.mark.parametrize(
    ("literal", "value", "fits"),
    [
        (0, 0.0, True), (0, -0.0, False), (-0.0, -0.0, True), (-0.0, 0.0, False), (0.0, 0.0, True),
        (1, 1.0, True), (1, 1.5, False), (2, np.nan, False),
    ],
)  # fmt: skip
def test_a_literal_is_a_value_and_the_sign_of_a_zero(literal, value, fits):
    assert (bound_by(X + literal, node() + value) is not None) == fits


def test_literals_of_integers_and_booleans():
    assert bound_by(X + 0, node(dtype="int32") + 0) is not None
    assert bound_by(X * 1, node(dtype="int32") * 1) is not None
    assert bound_by(X & True, node(dtype="bool") & True) is not None


def test_attributes_are_matched_and_bound():
    a, axis = node("a"), sg.Attr("axis")
    pattern = sg.sum(X, axis=axis, dtype=None, keepdims=False)
    assert bound_by(pattern, sg.sum(a, axis=1)) == {"x": a, "axis": (1,)}
    assert bound_by(pattern, sg.sum(a, axis=1, keepdims=True)) is None


def test_variants_are_the_orders_of_commutative_operands():
    assert [*map(repr, variants(sg.exp(X) * Y))] == ["multiply(exp(x), y)", "multiply(y, exp(x))"]
    assert len([*variants((X * Y) + C)]) == 4
    assert len([*variants(X * X)]) == 1
    assert len([*variants(X - Y)]) == 1


def test_the_interior_is_what_a_match_takes_away():
    a = node("a")
    inner = sg.exp(a)
    outer = sg.tanh(inner)
    target = outer * 2.0
    assert [*interior(as_pattern(sg.tanh(sg.exp(X)) * C), target)] == [outer, inner]
    assert [*interior(as_pattern(sg.tanh(X) * C), target)] == [outer]
    assert [*interior(as_pattern(X * C), target)] == []


def test_what_is_made_has_the_dtype_beside_it():
    a = node("a", dtype="float32")
    made = instantiate(as_pattern(X * 2 + 1), {"x": a}, a)
    assert made.type == a.type
    assert made.op.name == "add"
    one = instantiate(Literal(1), {}, a)
    assert one.dtype == np.float32


@pytest.mark.parametrize("wrong", ["text", None, np.ones(3), 1j])
def test_a_pattern_is_made_of_nothing_else(wrong):
    with pytest.raises(RewriteError, match="a pattern is made of"):
        as_pattern(wrong)
