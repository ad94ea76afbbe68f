"""Normal forms of what has a kink: choices, extrema, relu, leaky relu, abs.

See `autodiff/normal.py`. A constant that is compared with stands on the right; choices by a
comparison become extrema, and these the function that they are.
"""

from __future__ import annotations

from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node, apply, constant_value
from symgrad.ir.types import broadcast_shapes
from symgrad.ops.activations import softplus
from symgrad.ops.elementwise import abs
from symgrad.ops.leaves import constant
from symgrad.ops.logic import greater, less, logical_not
from symgrad.ops.select import maximum, minimum, relu, select, where
from symgrad.rewrite.family import COMPLEMENT, DUAL, OR_EQUAL
from symgrad.rewrite.pattern import Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule, rule_for
from symgrad.rules import extrema
from symgrad.rules.masks import every, value_of

# ---- choices: by > or >=, extrema as such ---------------------------------------------------


@rule(exact=Exact.REALS, kinds="f", family=(OR_EQUAL, COMPLEMENT, DUAL))
def where_greater_is_maximum(x: Var, y: Var) -> Rewrite:
    """The one that is greater is the maximum, but for NaN."""
    return Rewrite(before=where(greater(x, y), x, y), after=maximum(x, y))


@rule(
    exact=Exact.REALS,
    kinds="f",
    examples=(lambda x: select(x > 0, constant(1, x.dtype)) * x,),
)
def selected_one_multiplies(mask: Var, x: Var) -> Rewrite:
    """1 where a mask holds, multiplied in, is a selection."""
    return Rewrite(before=select(mask, 1) * x, after=select(mask, x))


@rule_for(
    lambda op: op.elementwise and not op.projections,
    exact=Exact.BITS,
    operands=lambda ops: CONSTANT in ops,
    examples=(lambda x: maximum(x, constant([0, 0, 0, 0], x.dtype)),),
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


@rule(exact=Exact.REALS, kinds="f", when=extrema.is_above_zero, family=(OR_EQUAL,))
def selected_by_greater_is_clip(x: Var, c: Const) -> Rewrite:
    """The smaller of x and c where x is positive is relu, bounded."""
    return Rewrite(before=select(greater(x, 0), minimum(x, c)), after=minimum(relu(x), c))


@rule(exact=Exact.REALS, kinds="f", family=(OR_EQUAL,))
def select_not_less_is_relu(x: Var) -> Rewrite:
    """x where it is not negative, else 0, is relu."""
    return Rewrite(before=select(logical_not(less(x, 0)), x), after=relu(x))


@rule(exact=Exact.REALS, kinds="f", family=(OR_EQUAL,))
def select_not_greater_is_minimum(x: Var) -> Rewrite:
    """x where it is not positive, else 0, is the smaller of the two."""
    return Rewrite(before=select(logical_not(greater(x, 0)), x), after=minimum(x, 0))


@rule(exact=Exact.REALS, kinds="f", when=extrema.is_above_zero, family=(OR_EQUAL,))
def selected_by_not_less_is_clip(x: Var, c: Const) -> Rewrite:
    """The smaller of x and c where x is not negative is relu, bounded."""
    return Rewrite(before=select(logical_not(less(x, 0)), minimum(x, c)), after=minimum(relu(x), c))


@rule(exact=Exact.REALS, kinds="f", when=extrema.is_above_zero, family=(OR_EQUAL,))
def choice_by_less_is_clip(x: Var, c: Const) -> Rewrite:
    """0 where x is negative, else the smaller of x and c, is relu, bounded."""
    return Rewrite(before=where(less(x, 0), 0, minimum(x, c)), after=minimum(relu(x), c))


@rule(exact=Exact.REALS, kinds="f")
def sum_with_abs_is_relu(x: Var) -> Rewrite:
    """x + |x| is twice relu."""
    return Rewrite(before=x + abs(x), after=relu(x) * 2)


@rule(exact=Exact.REALS, kinds="f")
def half_of_twice(x: Var) -> Rewrite:
    """Half of what was doubled is what there was."""
    return Rewrite(before=(x * 2) / 2, after=x)


@rule(exact=Exact.REALS, kinds="f")
def twice_by_half(x: Var) -> Rewrite:
    """Half of what was doubled is what there was."""
    return Rewrite(before=(x * 2) * 0.5, after=x)


@rule(exact=Exact.REALS, kinds="f")
def half_of_twice_negated(x: Var) -> Rewrite:
    """Half of what was doubled and negated is what there was, negated."""
    return Rewrite(before=(x * -2) / 2, after=-x)


@rule(exact=Exact.REALS, kinds="f")
def twice_negated_by_half(x: Var) -> Rewrite:
    """Half of what was doubled and negated is what there was, negated."""
    return Rewrite(before=(x * -2) * 0.5, after=-x)


# A factor of -1 is a change of sign by then.
@rule(exact=Exact.REALS, kinds="f", when=lambda c: every(c, lambda v: v != -1))
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


def _inversely_leaky(x: Node, c: Node) -> Node | None:
    return extrema.leaky(x, constant(1 / value_of(c)))


@rule(exact=Exact.REALS, kinds="f", when=lambda c: every(c, lambda v: v > 1))
def maximum_with_part_is_leaky_relu(x: Var, c: Const) -> Rewrite:
    """The larger of x and x / c is leaky relu, for c above 1."""
    return Rewrite(before=maximum(x, x / c), after=_inversely_leaky)
