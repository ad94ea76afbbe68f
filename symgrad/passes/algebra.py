"""Algebra: identities of arithmetic, each with the grade at which it holds."""

from __future__ import annotations

import numpy as np

from symgrad.ir.dims import guess
from symgrad.ir.node import Node, constant_value
from symgrad.ops.elementwise import abs, exp, log, negative, positive, reciprocal, sqrt, square
from symgrad.ops.leaves import ones_like, zeros_like
from symgrad.ops.logic import equal, logical_not, not_equal
from symgrad.ops.select import maximum, minimum, relu
from symgrad.passes.masks import is_finite
from symgrad.rewrite.pattern import Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, Rule, rule

# ---- signs ----------------------------------------------------------------------------------


@rule(exact=Exact.BITS)
def positive_is_identity(x: Var) -> Rewrite:
    """+x is x."""
    return Rewrite(before=positive(x), after=x)


@rule(exact=Exact.BITS)
def double_negative(x: Var) -> Rewrite:
    """Two changes of sign cancel."""
    return Rewrite(before=negative(negative(x)), after=x)


@rule(exact=Exact.VALUES)
def add_negative(x: Var, y: Var) -> Rewrite:
    """Adding what was negated is subtracting it."""
    return Rewrite(before=x + (-y), after=x - y)


@rule(exact=Exact.VALUES)
def subtract_negative(x: Var, y: Var) -> Rewrite:
    """Subtracting what was negated is adding it."""
    return Rewrite(before=x - (-y), after=x + y)


@rule(exact=Exact.VALUES, once=True)
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


@rule(exact=Exact.VALUES, kinds="f", once=True)
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


@rule(exact=Exact.BITS)
def abs_of_abs(x: Var) -> Rewrite:
    """What has no sign has none to lose."""
    return Rewrite(before=abs(abs(x)), after=abs(x))


@rule(exact=Exact.VALUES)
def square_of_negative(x: Var) -> Rewrite:
    """A square does not see the sign."""
    return Rewrite(before=square(-x), after=square(x))


@rule(exact=Exact.VALUES, kinds="iuf")
def square_of_abs(x: Var) -> Rewrite:
    """A square does not see the sign."""
    return Rewrite(before=square(abs(x)), after=square(x))


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


# ---- constants gather -----------------------------------------------------------------------


def _is_one_constant(x: Node, c: Node) -> bool:
    return constant_value(x) is None and is_finite(c)


@rule(exact=Exact.BITS, kinds="iuf", ordered=True, when=_is_one_constant)
def constant_factor_last(x: Var, c: Const) -> Rewrite:
    """A constant stands on the right of a product, so that other rules find it there."""
    return Rewrite(before=c * x, after=lambda x, c: x * c)


def _combines(c: Node, d: Node) -> bool:
    a, b = constant_value(c), constant_value(d)
    if a is None or b is None or not (is_finite(c) and is_finite(d)):
        return False
    with np.errstate(over="ignore", under="ignore"):
        both = np.abs(np.multiply(a, b))
    info = np.finfo(both.dtype)
    # A product of 1 would undo a rounding that somebody wrote on purpose: (x * c) * (1 / c).
    is_one = np.abs(both - 1) <= 4 * info.eps
    normal = np.minimum(np.minimum(np.abs(a), np.abs(b)), both) >= info.tiny
    return bool((np.isfinite(both) & normal & ~is_one).all())


@rule(exact=Exact.ROUNDING, kinds="f", when=_combines)
def factors_combine(x: Var, c: Const, d: Const) -> Rewrite:
    """Two constant factors are one, multiplied when compiling."""
    return Rewrite(before=(x * c) * d, after=x * (c * d))


@rule(exact=Exact.ROUNDING, kinds="f", once=True, when=is_finite)
def scalar_gathers(x: Var, y: Var, c: Const) -> Rewrite:
    """A constant factor moves out of one operand of a product, to where it may meet another."""
    return Rewrite(
        before=(x * c) * y,
        after=lambda x, y, c: (x * y) * c if _is_no_larger(y, x) else None,
    )


def _is_no_larger(y: Node, x: Node) -> bool:
    return constant_value(y) is None and guess(y.size) <= guess(x.size)


@rule(exact=Exact.REALS, kinds="f", once=True)
def terms_combine(x: Var, c: Const, d: Const) -> Rewrite:
    """Two constant terms are one, added when compiling."""
    return Rewrite(before=(x + c) + d, after=x + (c + d))


def _has_inverse(x: Node, c: Node) -> bool:
    """Whether a constant is the divisor of what is not, and it and its inverse are normal."""
    array = constant_value(c)
    if array is None or constant_value(x) is not None or not is_finite(c):
        return False
    info = np.finfo(array.dtype)
    return bool(((np.abs(array) < 0.25 / info.tiny) & (np.abs(array) > 4 / info.max)).all())


def _is_power_of_two(x: Node, c: Node) -> bool:
    array = constant_value(c)
    is_power = array is not None and bool((np.abs(np.frexp(array)[0]) == 0.5).all())
    return is_power and _has_inverse(x, c)


@rule(exact=Exact.BITS, kinds="f", when=_is_power_of_two)
def over_power_of_two(x: Var, c: Const) -> Rewrite:
    """Dividing by a power of two is multiplying by its inverse, which is exact and faster."""
    return Rewrite(before=x / c, after=x * (1 / c))


@rule(exact=Exact.ROUNDING, kinds="f", when=_has_inverse)
def over_constant(x: Var, c: Const) -> Rewrite:
    """Dividing by a constant is multiplying by its inverse, which is faster."""
    return Rewrite(before=x / c, after=x * (1 / c))


@rule(exact=Exact.ROUNDING, kinds="f", once=True)
def times_inverse(x: Var, y: Var) -> Rewrite:
    """Multiplying by an inverse is dividing: one operation, and one rounding less."""
    return Rewrite(before=x * (1 / y), after=x / y)


@rule(exact=Exact.ROUNDING, kinds="f", once=True)
def times_reciprocal(x: Var, y: Var) -> Rewrite:
    """Multiplying by an inverse is dividing: one operation, and one rounding less."""
    return Rewrite(before=x * reciprocal(y), after=x / y)


# ---- powers ---------------------------------------------------------------------------------


@rule(exact=Exact.BITS)
def power_zero(x: Var) -> Rewrite:
    """x**0 is 1 for every x, NaN included."""
    return Rewrite(before=x**0, after=lambda x: ones_like(x))


@rule(exact=Exact.VALUES)
def power_one(x: Var) -> Rewrite:
    """x**1 is x."""
    return Rewrite(before=x**1, after=x)


@rule(exact=Exact.ROUNDING)
def power_two(x: Var) -> Rewrite:
    """x**2 is a square, which is one multiplication."""
    return Rewrite(before=x**2, after=square(x))


@rule(exact=Exact.ROUNDING, kinds="f")
def power_minus_one(x: Var) -> Rewrite:
    """x**-1 is the inverse, which is one division."""
    return Rewrite(before=x**-1, after=1 / x)


@rule(exact=Exact.REALS, kinds="f")
def power_half(x: Var) -> Rewrite:
    """x**0.5 is the square root, but for -inf, where the power is inf and the root NaN."""
    return Rewrite(before=x**0.5, after=sqrt(x))


@rule(exact=Exact.BITS, kinds="iuf")
def product_with_itself(x: Var) -> Rewrite:
    """x * x is a square: one operand to read."""
    return Rewrite(before=x * x, after=square(x))


# ---- functions ------------------------------------------------------------------------------


@rule(exact=Exact.BITS)
def relu_of_relu(x: Var) -> Rewrite:
    """What is not negative stays as it is."""
    return Rewrite(before=relu(relu(x)), after=relu(x))


@rule(exact=Exact.BITS)
def maximum_of_same(x: Var) -> Rewrite:
    """The larger of a value and itself is the value."""
    return Rewrite(before=maximum(x, x), after=x)


@rule(exact=Exact.BITS)
def minimum_of_same(x: Var) -> Rewrite:
    """The smaller of a value and itself is the value."""
    return Rewrite(before=minimum(x, x), after=x)


@rule(exact=Exact.BITS)
def not_not(x: Var) -> Rewrite:
    """Two negations cancel."""
    return Rewrite(
        before=logical_not(logical_not(x)), after=lambda x: x if x.dtype.kind == "b" else None
    )


@rule(exact=Exact.BITS)
def not_equal_of_equal(x: Var, y: Var) -> Rewrite:
    """Not equal is one comparison; for the others NaN forbids it."""
    return Rewrite(before=logical_not(equal(x, y)), after=not_equal(x, y))


@rule(exact=Exact.BITS)
def equal_of_not_equal(x: Var, y: Var) -> Rewrite:
    """Not unequal is equal: one comparison."""
    return Rewrite(before=logical_not(not_equal(x, y)), after=equal(x, y))


@rule(exact=Exact.REALS, kinds="f")
def log_of_exp(x: Var) -> Rewrite:
    """The logarithm undoes the exponential, unless that overflows."""
    return Rewrite(before=log(exp(x)), after=x)


@rule(exact=Exact.REALS, kinds="f")
def sqrt_of_square(x: Var) -> Rewrite:
    """The root of a square is the absolute value, unless the square overflows."""
    return Rewrite(before=sqrt(square(x)), after=abs(x))


@rule(exact=Exact.REALS, kinds="f")
def square_of_sqrt(x: Var) -> Rewrite:
    """The square of a root is the value, unless that is negative."""
    return Rewrite(before=square(sqrt(x)), after=x)


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


@rule(exact=Exact.REALS, kinds="f")
def plus_minus(x: Var, y: Var) -> Rewrite:
    """(x + y) - y is x, but for the rounding of the sum."""
    return Rewrite(before=(x + y) - y, after=x)


RULES: tuple[Rule, ...] = tuple(r for r in globals().values() if isinstance(r, Rule))
