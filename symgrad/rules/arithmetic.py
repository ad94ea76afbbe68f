"""Algebra: identities of arithmetic, each with the grade at which it holds."""

from __future__ import annotations

from symgrad.ir.node import Node
from symgrad.ops.complexes import conj_p
from symgrad.ops.elementwise import abs, exp, floor, negative, positive, square
from symgrad.ops.leaves import ones_like, zeros_like
from symgrad.ops.select import relu
from symgrad.rewrite.family import INVERSE
from symgrad.rewrite.pattern import Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule, rule_for

# ---- signs ----------------------------------------------------------------------------------


@rule(exact=Exact.BITS)
def positive_is_identity(x: Var) -> Rewrite:
    """+x is x."""
    return Rewrite(before=positive(x), after=x)


@rule(exact=Exact.BITS)
def double_negative(x: Var) -> Rewrite:
    """Two changes of sign cancel."""
    return Rewrite(before=negative(negative(x)), after=x)


@rule(exact=Exact.VALUES, family=(INVERSE,))
def add_negative(x: Var, y: Var) -> Rewrite:
    """Adding what was negated is subtracting it."""
    return Rewrite(before=x + (-y), after=x - y)


@rule(exact=Exact.VALUES, single_use=True)
def negative_of_difference(x: Var, y: Var) -> Rewrite:
    """A difference negated is the difference the other way round."""
    return Rewrite(before=-(x - y), after=y - x)


@rule(exact=Exact.VALUES)
def negative_times_negative(x: Var, y: Var) -> Rewrite:
    """The signs of two factors cancel."""
    return Rewrite(before=(-x) * (-y), after=x * y)


@rule(exact=Exact.VALUES, kinds="f")
def negative_times_constant(x: Var, c: Const) -> Rewrite:
    """A constant factor takes over a change of sign."""
    return Rewrite(before=(-x) * c, after=x * (-c))


@rule(exact=Exact.VALUES, kinds="f", single_use=True)
def negative_of_scaled(x: Var, c: Const) -> Rewrite:
    """A constant factor takes over a change of sign."""
    return Rewrite(before=-(x * c), after=x * (-c))


@rule(exact=Exact.VALUES, kinds="f")
def times_minus_one(x: Var) -> Rewrite:
    """Multiplying by -1 changes the sign."""
    return Rewrite(before=x * -1, after=-x)


@rule(exact=Exact.BITS, kinds="f")
def abs_of_negative(x: Var) -> Rewrite:
    """The absolute value does not see the sign."""
    return Rewrite(before=abs(-x), after=abs(x))


@rule(exact=Exact.ROUNDING, kinds="f")
def abs_of_square(x: Var) -> Rewrite:
    """A square has no sign to lose; where it underflows, it still has a slope."""
    return Rewrite(before=abs(square(x)), after=square(x))


@rule(exact=Exact.BITS)
def abs_of_exp(x: Var) -> Rewrite:
    """An exponential has no sign to lose."""
    return Rewrite(before=abs(exp(x)), after=exp(x))


@rule(exact=Exact.BITS)
def quotient_of_negatives(x: Var, y: Var) -> Rewrite:
    """The signs of dividend and divisor cancel."""
    return Rewrite(before=(-x) / (-y), after=x / y)


@rule(exact=Exact.BITS, kinds="f")
def negative_over_constant(x: Var, c: Const) -> Rewrite:
    """A constant divisor takes over a change of sign."""
    return Rewrite(before=(-x) / c, after=x / (-c))


@rule(exact=Exact.BITS, kinds="f")
def constant_over_negative(x: Var, c: Const) -> Rewrite:
    """A constant dividend takes over a change of sign."""
    return Rewrite(before=c / (-x), after=(-c) / x)


@rule(exact=Exact.BITS, kinds="f", single_use=True)
def negative_of_over_constant(x: Var, c: Const) -> Rewrite:
    """A constant divisor takes over a change of sign."""
    return Rewrite(before=-(x / c), after=x / (-c))


@rule(exact=Exact.BITS, kinds="f", single_use=True)
def negative_of_constant_over(x: Var, c: Const) -> Rewrite:
    """A constant dividend takes over a change of sign."""
    return Rewrite(before=-(c / x), after=(-c) / x)


@rule(exact=Exact.VALUES)
def square_of_negative(x: Var) -> Rewrite:
    """A square does not see the sign."""
    return Rewrite(before=square(-x), after=square(x))


@rule(exact=Exact.VALUES, kinds="iuf")
def square_of_abs(x: Var) -> Rewrite:
    """A square does not see the sign."""
    return Rewrite(before=square(abs(x)), after=square(x))


@rule(exact=Exact.BITS, kinds="c")
def double_conj(x: Var) -> Rewrite:
    """Two conjugations cancel."""
    return Rewrite(before=conj_p(conj_p(x)), after=x)


# ---- neutral elements -----------------------------------------------------------------------


@rule(exact=Exact.BITS)
def times_one(x: Var) -> Rewrite:
    """1 is neutral in a product."""
    return Rewrite(before=x * 1, after=x)


@rule(exact=Exact.BITS)
def over_one(x: Var) -> Rewrite:
    """1 is neutral as a divisor."""
    return Rewrite(before=x / 1, after=x)


@rule(exact=Exact.VALUES)
def plus_zero(x: Var) -> Rewrite:
    """0 is neutral in a sum, but for -0 + 0, which is 0."""
    return Rewrite(before=x + 0, after=x)


@rule(exact=Exact.BITS, kinds="f")
def plus_negative_zero(x: Var) -> Rewrite:
    """-0 is neutral in a sum."""
    return Rewrite(before=x + -0.0, after=x)


@rule(exact=Exact.BITS)
def minus_zero(x: Var) -> Rewrite:
    """Subtracting 0 changes nothing."""
    return Rewrite(before=x - 0, after=x)


@rule(exact=Exact.VALUES, kinds="f")
def zero_minus(x: Var) -> Rewrite:
    """What is taken from 0 is negated."""
    return Rewrite(before=0 - x, after=-x)


# ---- functions ------------------------------------------------------------------------------


@rule_for(
    lambda op: op.idempotent and not op.commutative,
    exact=Exact.BITS,
    operands=lambda operands: operands[0].idempotent,
    examples=(lambda x: abs(abs(x)), lambda x: relu(relu(x)), lambda x: floor(floor(x))),
)
def idempotent_twice(node: Node) -> Node | None:
    """What has no sign has none to lose, and what is rounded is round: once is enough."""
    return node.inputs[0] if node.op is node.inputs[0].op else None


# ---- what holds for real numbers only -------------------------------------------------------


@rule(exact=Exact.REALS, kinds="f")
def difference_with_itself(x: Var) -> Rewrite:
    """x - x is 0, but for inf and NaN."""
    return Rewrite(before=x - x, after=lambda x: zeros_like(x))


@rule(exact=Exact.REALS, kinds="f")
def quotient_with_itself(x: Var) -> Rewrite:
    """x / x is 1, but for 0, inf and NaN."""
    return Rewrite(before=x / x, after=lambda x: ones_like(x))


@rule(exact=Exact.REALS, kinds="f")
def times_zero(x: Var) -> Rewrite:
    """x * 0 is 0, but for inf and NaN."""
    return Rewrite(before=x * 0, after=lambda x: zeros_like(x))


@rule(
    exact=Exact.REALS,
    kinds="f",
    family=(INVERSE,),
    reasons={"minus_plus": "(x - y) + y is x, but for the rounding of the difference."},
)
def plus_minus(x: Var, y: Var) -> Rewrite:
    """(x + y) - y is x, but for the rounding of the sum."""
    return Rewrite(before=(x + y) - y, after=x)


@rule(exact=Exact.REALS, kinds="f")
def minus_difference(x: Var, y: Var) -> Rewrite:
    """x - (x - y) is y, but for the rounding of the difference."""
    return Rewrite(before=x - (x - y), after=y)
