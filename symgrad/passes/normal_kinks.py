"""Normal forms of what has a kink: choices, extrema, relu, leaky relu, abs.

See `normal.py`. A constant that is compared with stands on the right; choices by a comparison
become extrema, and these the function that they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from symgrad.ir.node import Node, apply, constant_value
from symgrad.ir.op import Op
from symgrad.ir.types import broadcast_shapes
from symgrad.ops.activations import leaky_relu, softplus
from symgrad.ops.elementwise import abs, negative
from symgrad.ops.leaves import constant
from symgrad.ops.logic import (
    bitwise_invert,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_not,
)
from symgrad.ops.select import maximum, minimum, relu, select, where
from symgrad.rewrite.pattern import Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, Rule, rule, rule_for

# ---- comparisons with a constant: the constant on the right ---------------------------------


@rule(exact=Exact.BITS, when=lambda x: constant_value(x) is None)
def less_from_constant(x: Var, c: Const) -> Rewrite:
    """c < x is x > c."""
    return Rewrite(before=less(c, x), after=greater(x, c))


@rule(exact=Exact.BITS, when=lambda x: constant_value(x) is None)
def less_equal_from_constant(x: Var, c: Const) -> Rewrite:
    """c <= x is x >= c."""
    return Rewrite(before=less_equal(c, x), after=greater_equal(x, c))


@rule(exact=Exact.BITS, when=lambda x: constant_value(x) is None)
def greater_from_constant(x: Var, c: Const) -> Rewrite:
    """c > x is x < c."""
    return Rewrite(before=greater(c, x), after=less(x, c))


@rule(exact=Exact.BITS, when=lambda x: constant_value(x) is None)
def greater_equal_from_constant(x: Var, c: Const) -> Rewrite:
    """c >= x is x <= c."""
    return Rewrite(before=greater_equal(c, x), after=less_equal(x, c))


@rule(exact=Exact.BITS, kinds="b")
def invert_is_not(mask: Var) -> Rewrite:
    """To invert a boolean is to negate it."""
    return Rewrite(before=bitwise_invert(mask), after=logical_not(mask))


# ---- choices: by > or >=, extrema as such ---------------------------------------------------


@rule(exact=Exact.REALS, kinds="f")
def where_greater_is_maximum(x: Var, y: Var) -> Rewrite:
    """The one that is greater is the maximum, but for NaN."""
    return Rewrite(before=where(greater(x, y), x, y), after=maximum(x, y))


@rule(exact=Exact.REALS, kinds="f")
def where_greater_equal_is_maximum(x: Var, y: Var) -> Rewrite:
    """The one that is not less is the maximum, but for NaN."""
    return Rewrite(before=where(greater_equal(x, y), x, y), after=maximum(x, y))


@rule(exact=Exact.REALS, kinds="f")
def where_less_is_maximum(x: Var, y: Var) -> Rewrite:
    """The one that is not less is the maximum, but for NaN."""
    return Rewrite(before=where(less(x, y), y, x), after=maximum(x, y))


@rule(exact=Exact.REALS, kinds="f")
def where_less_equal_is_maximum(x: Var, y: Var) -> Rewrite:
    """The one that is greater is the maximum, but for NaN."""
    return Rewrite(before=where(less_equal(x, y), y, x), after=maximum(x, y))


@rule(exact=Exact.REALS, kinds="f")
def where_less_is_minimum(x: Var, y: Var) -> Rewrite:
    """The one that is less is the minimum, but for NaN."""
    return Rewrite(before=where(less(x, y), x, y), after=minimum(x, y))


@rule(exact=Exact.REALS, kinds="f")
def where_less_equal_is_minimum(x: Var, y: Var) -> Rewrite:
    """The one that is not greater is the minimum, but for NaN."""
    return Rewrite(before=where(less_equal(x, y), x, y), after=minimum(x, y))


@rule(exact=Exact.REALS, kinds="f")
def where_greater_is_minimum(x: Var, y: Var) -> Rewrite:
    """The one that is not greater is the minimum, but for NaN."""
    return Rewrite(before=where(greater(x, y), y, x), after=minimum(x, y))


@rule(exact=Exact.REALS, kinds="f")
def where_greater_equal_is_minimum(x: Var, y: Var) -> Rewrite:
    """The one that is less is the minimum, but for NaN."""
    return Rewrite(before=where(greater_equal(x, y), y, x), after=minimum(x, y))


@rule(
    exact=Exact.REALS,
    kinds="f",
    tries=(lambda x: select(x > 0, constant(1, x.dtype)) * x,),
)
def selected_one_multiplies(mask: Var, x: Var) -> Rewrite:
    """1 where a mask holds, multiplied in, is a selection."""
    return Rewrite(before=select(mask, 1) * x, after=select(mask, x))


def _some_constant(operands: Sequence[Op]) -> bool:
    return any(op.name == "constant" for op in operands)


@rule_for(
    lambda op: op.elementwise and not op.projections,
    exact=Exact.BITS,
    operands=_some_constant,
    tries=(lambda x: maximum(x, constant([0, 0, 0, 0], x.dtype)),),
)
def uniform_operand(node: Node) -> Node | None:
    """A constant of equal elements is a scalar, which other rules know."""
    inputs = [_as_scalar(x) for x in node.inputs]
    same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
    if same or broadcast_shapes(*(x.shape for x in inputs)) != node.shape:
        return None
    return apply(node.op, inputs, dict(node.attrs))


def _as_scalar(x: Node) -> Node:
    value = constant_value(x)
    if value is None or value.ndim == 0 or not value.size:
        return x
    first = value.reshape(-1)[:1]
    return constant(first[0]) if value.tobytes() == first.tobytes() * value.size else x


# ---- relu -----------------------------------------------------------------------------------


@rule(exact=Exact.VALUES, kinds="f")
def maximum_is_relu(x: Var) -> Rewrite:
    """The larger of x and 0 is relu."""
    return Rewrite(before=maximum(x, 0), after=relu(x))


@rule(exact=Exact.REALS, kinds="f")
def select_positive_is_relu(x: Var) -> Rewrite:
    """x where it is positive, else 0, is relu, but for NaN."""
    return Rewrite(before=select(greater(x, 0), x), after=relu(x))


@rule(exact=Exact.REALS, kinds="f")
def select_not_negative_is_relu(x: Var) -> Rewrite:
    """x where it is not negative, else 0, is relu, but for NaN."""
    return Rewrite(before=select(greater_equal(x, 0), x), after=relu(x))


def _is_positive(c: Node) -> bool:
    value = constant_value(c)
    return value is not None and bool((value > 0).all())


@rule(exact=Exact.REALS, kinds="f", when=_is_positive)
def selected_minimum_is_clip(x: Var, c: Const) -> Rewrite:
    """The smaller of x and c where x is positive is relu, bounded."""
    return Rewrite(before=select(greater(x, 0), minimum(x, c)), after=minimum(relu(x), c))


@rule(exact=Exact.REALS, kinds="f", when=_is_positive)
def selected_minimum_with_zero_is_clip(x: Var, c: Const) -> Rewrite:
    """The smaller of x and c where x is not negative is relu, bounded."""
    return Rewrite(before=select(greater_equal(x, 0), minimum(x, c)), after=minimum(relu(x), c))


@rule(exact=Exact.REALS, kinds="f")
def select_not_less_is_relu(x: Var) -> Rewrite:
    """x where it is not negative, else 0, is relu."""
    return Rewrite(before=select(logical_not(less(x, 0)), x), after=relu(x))


@rule(exact=Exact.REALS, kinds="f")
def select_not_less_equal_is_relu(x: Var) -> Rewrite:
    """x where it is positive, else 0, is relu."""
    return Rewrite(before=select(logical_not(less_equal(x, 0)), x), after=relu(x))


@rule(exact=Exact.REALS, kinds="f", when=_is_positive)
def bounded_choice_is_clip(x: Var, c: Const) -> Rewrite:
    """0 where x is negative, else the smaller of x and c, is relu, bounded."""
    return Rewrite(before=where(less(x, 0), 0, minimum(x, c)), after=minimum(relu(x), c))


@rule(exact=Exact.REALS, kinds="f", when=_is_positive)
def bounded_choice_with_zero_is_clip(x: Var, c: Const) -> Rewrite:
    """0 where x is not positive, else the smaller of x and c, is relu, bounded."""
    return Rewrite(before=where(less_equal(x, 0), 0, minimum(x, c)), after=minimum(relu(x), c))


@rule(exact=Exact.REALS, kinds="f")
def sum_with_abs_is_relu(x: Var) -> Rewrite:
    """x + |x| is twice relu."""
    return Rewrite(before=x + abs(x), after=relu(x) * 2)


@rule(exact=Exact.REALS, kinds="f")
def twice_relu_over_two(x: Var) -> Rewrite:
    """Half of twice relu is relu."""
    return Rewrite(before=(relu(x) * 2) / 2, after=relu(x))


@rule(exact=Exact.REALS, kinds="f")
def half_of_twice_relu(x: Var) -> Rewrite:
    """Half of twice relu is relu."""
    return Rewrite(before=(relu(x) * 2) * 0.5, after=relu(x))


def _is_no_sign(c: Node) -> bool:
    # A factor of -1 is a change of sign by then.
    value = constant_value(c)
    return value is not None and bool((value != -1).all())


@rule(exact=Exact.REALS, kinds="f", when=_is_no_sign)
def scaled_sum_with_abs_is_relu(x: Var, c: Const) -> Rewrite:
    """c * x + c * |x| is 2 c times relu."""
    return Rewrite(before=x * c + abs(x) * c, after=relu(x) * (c * 2))


@rule(exact=Exact.REALS, kinds="f")
def relu_less_relu_of_negative(x: Var) -> Rewrite:
    """relu(x) - relu(-x) is x, which has no kink."""
    return Rewrite(before=relu(x) - relu(-x), after=x)


@rule(exact=Exact.REALS, kinds="f")
def relu_and_softplus_is_softplus(x: Var) -> Rewrite:
    """relu(x) + softplus(-|x|), or log1p(exp(-|x|)), is softplus, which has no kink."""
    return Rewrite(before=relu(x) + softplus(-abs(x)), after=softplus(x))


def _is_slope(c: Node) -> bool:
    value = constant_value(c)
    return value is not None and bool((value > 0).all()) and bool((value < 1).all())


@rule(exact=Exact.REALS, kinds="f", when=_is_slope)
def maximum_is_leaky_relu(x: Var, c: Const) -> Rewrite:
    """The larger of x and c * x is leaky relu, for a slope c between 0 and 1."""
    return Rewrite(before=maximum(x, x * c), after=lambda x, c: leaky(x, c))


def leaky(x: Node, c: Node) -> Node | None:
    """leaky_relu, for a slope that is an ordinary number."""
    value = constant_value(c)
    assert value is not None
    slope = float(value.item())
    return leaky_relu(x, slope=slope) if math.isfinite(slope) else None


def _is_divisor(c: Node) -> bool:
    value = constant_value(c)
    return value is not None and bool((value > 1).all())


@rule(exact=Exact.REALS, kinds="f", when=_is_divisor)
def maximum_with_part_is_leaky_relu(x: Var, c: Const) -> Rewrite:
    """The larger of x and x / c is leaky relu, for c above 1."""
    return Rewrite(before=maximum(x, x / c), after=lambda x, c: leaky(x, constant_of_inverse(c)))


def constant_of_inverse(c: Node) -> Node:
    """1 / c, for a constant c."""
    value = constant_value(c)
    assert value is not None
    return constant(1 / value)


@rule(exact=Exact.REALS, kinds="f")
def choice_is_leaky_relu(x: Var, c: Const) -> Rewrite:
    """x where it is positive, else c * x, is leaky relu."""
    return Rewrite(before=where(greater(x, 0), x, x * c), after=lambda x, c: leaky(x, c))


@rule(exact=Exact.REALS, kinds="f")
def choice_with_zero_is_leaky_relu(x: Var, c: Const) -> Rewrite:
    """x where it is not negative, else c * x, is leaky relu."""
    return Rewrite(before=where(greater_equal(x, 0), x, x * c), after=lambda x, c: leaky(x, c))


@rule(exact=Exact.REALS, kinds="f")
def choice_by_less_is_leaky_relu(x: Var, c: Const) -> Rewrite:
    """c * x where x is negative, else x, is leaky relu."""
    return Rewrite(before=where(less(x, 0), x * c, x), after=lambda x, c: leaky(x, c))


@rule(exact=Exact.REALS, kinds="f")
def choice_by_less_equal_is_leaky_relu(x: Var, c: Const) -> Rewrite:
    """c * x where x is not positive, else x, is leaky relu."""
    return Rewrite(before=where(less_equal(x, 0), x * c, x), after=lambda x, c: leaky(x, c))


@rule(exact=Exact.REALS, kinds="f")
def choice_by_less_is_abs(x: Var) -> Rewrite:
    """-x where x is negative, else x, is the absolute value."""
    return Rewrite(before=where(less(x, 0), negative(x), x), after=abs(x))


@rule(exact=Exact.REALS, kinds="f")
def choice_by_less_equal_is_abs(x: Var) -> Rewrite:
    """-x where x is not positive, else x, is the absolute value."""
    return Rewrite(before=where(less_equal(x, 0), negative(x), x), after=abs(x))


@rule(exact=Exact.REALS, kinds="f")
def choice_is_abs(x: Var) -> Rewrite:
    """x where it is positive, else -x, is the absolute value."""
    return Rewrite(before=where(greater(x, 0), x, negative(x)), after=abs(x))


@rule(exact=Exact.REALS, kinds="f")
def choice_with_zero_is_abs(x: Var) -> Rewrite:
    """x where it is not negative, else -x, is the absolute value."""
    return Rewrite(before=where(greater_equal(x, 0), x, negative(x)), after=abs(x))


RULES: tuple[Rule, ...] = tuple(r for r in list(globals().values()) if isinstance(r, Rule))
