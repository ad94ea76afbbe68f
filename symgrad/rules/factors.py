"""Factors and divisors: multiples added up, constants gathered, inverses joined."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.dims import guess
from symgrad.ir.node import Node, constant_node, constant_value
from symgrad.ir.types import broadcast_shapes
from symgrad.ir.values import ArrayData
from symgrad.ops.elementwise import abs, divide, multiply, negative, reciprocal
from symgrad.rewrite.family import DIFFERENCE, INVERSE, PRODUCT, QUOTIENT
from symgrad.rewrite.pattern import Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule
from symgrad.rules.masks import (
    every,
    is_as_wide,
    is_finite,
    is_positive,
    may_enter,
    may_leave,
    value_of,
)

# ---- terms and multiples --------------------------------------------------------------------


@rule(exact=Exact.BITS, kinds="iuf")
def sum_with_itself(x: Var) -> Rewrite:
    """x + x is a multiple: one operand to read, and a factor that may meet others."""
    return Rewrite(before=x + x, after=x * 2)


def _add_up(c: Node, d: Node) -> bool:
    """Whether factors are of one sign, so that nothing cancels, and do not add up to 1."""
    a, b = constant_value(c), constant_value(d)
    if a is None or b is None or not (is_finite(c) and is_finite(d)):
        return False
    with np.errstate(over="ignore"):
        both = np.abs(a + b)
    apart = np.abs(both - 1) > 4 * np.finfo(both.dtype).eps
    return bool(((np.sign(a) == np.sign(b)) & np.isfinite(both) & apart).all())


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=_add_up)
def multiples_add_up(x: Var, c: Const, d: Const) -> Rewrite:
    """Two multiples of one value are one, where no digits cancel."""
    return Rewrite(before=x * c + x * d, after=x * (c + d))


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=is_positive)
def multiple_and_itself(x: Var, c: Const) -> Rewrite:
    """A value and a positive multiple of it are one multiple."""
    return Rewrite(before=x * c + x, after=x * (c + 1))


def _are_alike(x: Node, y: Node) -> bool:
    return x.shape == y.shape


@rule(exact=Exact.REALS, kinds="f", single_use=True, when=_are_alike, family=(DIFFERENCE, QUOTIENT))
def common_factor_of_sum(x: Var, y: Var, z: Var) -> Rewrite:
    """A factor of two terms is multiplied once; where they cancel, that rounds differently."""
    return Rewrite(before=x * z + y * z, after=(x + y) * z)


def _is_common(x: Node, y: Node, c: Node, d: Node) -> bool:
    a, b = constant_value(c), constant_value(d)
    if a is None or b is None or a.ndim or b.ndim:
        return False
    return bool(np.abs(a) == np.abs(b)) and may_leave(c) and x.type == y.type


def _is_equal(c: Node, d: Node) -> bool:
    return bool(constant_value(c) == constant_value(d))


FOUR = ({"x": (3,), "y": (3,), "c": -2.5, "d": 2.5}, {"x": (3,), "y": (3,), "c": 2.5, "d": 2.5})


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=_is_common, examples=FOUR)
def common_scalar(x: Var, y: Var, c: Const, d: Const) -> Rewrite:
    """A sum of multiples by one number, or by it and its negative, is a multiple by that number."""
    return Rewrite(
        before=x * c + y * d,
        after=lambda x, y, c, d: (y + x if _is_equal(c, d) else y - x) * d,
    )


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=_is_common, examples=FOUR)
def common_scalar_of_difference(x: Var, y: Var, c: Const, d: Const) -> Rewrite:
    """A difference of multiples by one number, or by it and its negative, is a multiple by it."""
    return Rewrite(
        before=x * c - y * d,
        after=lambda x, y, c, d: (x - y if _is_equal(c, d) else x + y) * c,
    )


# ---- constants gather -----------------------------------------------------------------------


def _is_one_constant(x: Node, c: Node) -> bool:
    return constant_value(x) is None and is_finite(c)


@rule(exact=Exact.BITS, kinds="iuf", ordered=True, when=_is_one_constant)
def constant_factor_last(x: Var, c: Const) -> Rewrite:
    """A constant stands on the right of a product, so that other rules find it there."""
    return Rewrite(before=c * x, after=lambda x, c: x * c)


def _is_two_to_the(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(np.abs(np.frexp(value)[0]) == 0.5)


def _combines(c: Node, d: Node) -> bool:
    a, b = constant_value(c), constant_value(d)
    if a is None or b is None or not (is_finite(c) and is_finite(d)):
        return False
    with np.errstate(over="ignore", under="ignore"):
        both = np.abs(np.multiply(a, b))
    info = np.finfo(both.dtype)
    # A product of 1 would undo a rounding that somebody wrote on purpose: (x * c) * (1 / c). By
    # powers of two nothing is rounded.
    is_one = (np.abs(both - 1) <= 4 * info.eps) & ~(_is_two_to_the(a) & _is_two_to_the(b))
    normal = np.minimum(np.minimum(np.abs(a), np.abs(b)), both) >= info.tiny
    return bool((np.isfinite(both) & normal & ~is_one).all())


@rule(exact=Exact.ROUNDING, kinds="f", when=_combines)
def factors_combine(x: Var, c: Const, d: Const) -> Rewrite:
    """Two constant factors are one, multiplied when compiling."""
    return Rewrite(before=(x * c) * d, after=x * (c * d))


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=may_leave)
def scalar_gathers(x: Var, y: Var, c: Const) -> Rewrite:
    """A constant factor moves out of one operand of a product, to where it may meet another."""
    return Rewrite(
        before=(x * c) * y,
        after=lambda x, y, c: (x * y) * c if _is_no_larger(y, x) else None,
    )


def _is_mask(x: Node) -> bool:
    """Whether a node is a mask as numbers, by which to multiply is to select."""
    return x.op.cast and x.inputs[0].dtype.kind == "b"


def _source(x: Node) -> Node:
    """The node without constant factors, divisors, signs and inverses.

    Two with one source must not meet, for they would cancel.
    """
    while x.op in (multiply.op, divide.op, negative.op, reciprocal.op):
        varying = [y for y in x.inputs if constant_value(y) is None]
        if len(varying) != 1:
            break
        x = varying[0]
    return x


def _is_smaller(x: Node, y: Node, z: Node) -> bool:
    """Whether two operands have one shape that broadcasts to that of the first."""
    smaller = y.shape == z.shape != x.shape and constant_value(y) is constant_value(z) is None
    return (
        smaller
        and _source(y) is not _source(z)
        and not any(map(_is_mask, (x, y, z)))
        and guess(y.size) * 8 <= guess(x.size)
        and is_as_wide(x, y)
    )


COLUMNS = ({"x": (2, 8), "y": (2, 1), "z": (2, 1)},)


def _joins(x: Node, y: Node, c: Node) -> bool:
    small = guess(y.size) * 8 <= guess(x.size) and is_as_wide(x, y) and constant_value(y) is None
    return small and may_enter(c) and not any(map(_is_mask, (x, y)))


COLUMN = ({"x": (2, 8), "y": (2, 1), "c": 0.3},)


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=_joins, examples=COLUMN, last=True)
def scalar_joins_smaller(x: Var, y: Var, c: Const) -> Rewrite:
    """A constant factor joins the smaller of two others: fewer multiplications."""
    return Rewrite(before=(x * y) * c, after=x * (y * c))


@rule(exact=Exact.REALS, kinds="f", single_use=True, when=_is_smaller, examples=COLUMNS, last=True)
def divisor_meets_factor(x: Var, y: Var, z: Var) -> Rewrite:
    """Of a divisor and a factor of less elements the quotient is taken, unless it overflows."""
    return Rewrite(before=(x / y) * z, after=x * (z / y))


@rule(exact=Exact.REALS, kinds="f", single_use=True, when=_is_smaller, examples=COLUMNS, last=True)
def small_factors_meet(x: Var, y: Var, z: Var) -> Rewrite:
    """Factors of less elements than what they scale are multiplied, unless that overflows."""
    return Rewrite(before=(x * y) * z, after=x * (y * z))


def _meets_a_scalar(x: Node, s: Node, c: Node) -> bool:
    return s.ndim == c.ndim == 0 < x.ndim and may_enter(c) and constant_value(s) is None


SCALARS = ({"x": (2, 3), "s": (), "c": 0.3},)


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    when=_meets_a_scalar,
    examples=SCALARS,
)
def scalars_meet(x: Var, s: Var, c: Const) -> Rewrite:
    """Two scalar factors of an array are multiplied first: one pass instead of two."""
    return Rewrite(before=(x * s) * c, after=x * (s * c))


@rule(exact=Exact.REALS, kinds="f", single_use=True, when=_meets_a_scalar, examples=SCALARS)
def scalar_meets_divisor(x: Var, s: Var, c: Const) -> Rewrite:
    """A scalar factor and divisor of an array are one factor, which may overflow on its own."""
    return Rewrite(before=(x / s) * c, after=x * (c / s))


def _is_no_larger(y: Node, x: Node) -> bool:
    return constant_value(y) is None and broadcast_shapes(x.shape, y.shape) == x.shape


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=may_leave)
def scalar_leaves_dividend(x: Var, y: Var, c: Const) -> Rewrite:
    """A constant factor moves out of a quotient, to where it may meet another."""
    return Rewrite(
        before=(x * c) / y, after=lambda x, y, c: (x / y) * c if _is_no_larger(y, x) else None
    )


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=lambda y, c: _can_divide(y, c))
def scalar_leaves_divisor(x: Var, y: Var, c: Const) -> Rewrite:
    """A constant factor of a divisor moves out of the quotient, to where it may meet another."""
    return Rewrite(
        before=x / (y * c),
        after=lambda x, y, c: (x / y) * (1 / c) if _is_no_larger(x, y) else None,
    )


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=is_finite)
def scalar_leaves_abs(x: Var, c: Const) -> Rewrite:
    """A constant factor leaves an absolute value as its magnitude, to where it may meet another."""
    return Rewrite(before=abs(x * c), after=abs(x) * abs(c))


@rule(exact=Exact.BITS, kinds="iu", family=(PRODUCT,))
def integer_terms_combine(x: Var, c: Const, d: Const) -> Rewrite:
    """Two constant terms are one: integers wrap either way."""
    return Rewrite(before=(x + c) + d, after=x + (c + d))


@rule(exact=Exact.REALS, kinds="f", single_use=True)
def terms_combine(x: Var, c: Const, d: Const) -> Rewrite:
    """Two constant terms are one, added when compiling."""
    return Rewrite(before=(x + c) + d, after=x + (c + d))


@rule(exact=Exact.REALS, kinds="iuf", single_use=True)
def subtractions_combine(x: Var, c: Const, d: Const) -> Rewrite:
    """Two constants taken away are one, added when compiling."""
    return Rewrite(before=(x - c) - d, after=x - (c + d))


@rule(exact=Exact.REALS, kinds="iuf", single_use=True)
def addition_and_subtraction_combine(x: Var, c: Const, d: Const) -> Rewrite:
    """What is added and what is taken away are one constant term."""
    return Rewrite(before=(x + c) - d, after=x + (c - d))


@rule(exact=Exact.REALS, kinds="iuf", single_use=True)
def subtraction_and_addition_combine(x: Var, c: Const, d: Const) -> Rewrite:
    """What is taken away and what is added are one constant term."""
    return Rewrite(before=(x - c) + d, after=x + (d - c))


def _has_inverse(x: Node, c: Node) -> bool:
    """Whether a constant is the divisor of what is not, and it and its inverse are normal."""
    if constant_value(x) is not None or not is_finite(c):
        return False
    info = np.finfo(c.dtype)
    return every(c, lambda v: (np.abs(v) < 0.25 / info.tiny) & (np.abs(v) > 4 / info.max))


def _can_divide(x: Node, c: Node) -> bool:
    return _has_inverse(x, c) and may_enter(c)


def _is_power_of_two(x: Node, c: Node) -> bool:
    return every(c, _is_two_to_the) and _has_inverse(x, c)


@rule(exact=Exact.BITS, kinds="f", when=_is_power_of_two)
def over_power_of_two(x: Var, c: Const) -> Rewrite:
    """Dividing by a power of two is multiplying by its inverse, which is exact and faster."""
    return Rewrite(before=x / c, after=x * (1 / c))


@rule(exact=Exact.REALS, kinds="f", when=_has_inverse)
def over_constant(x: Var, c: Const) -> Rewrite:
    """Dividing by a constant is multiplying by its inverse, but 49 * (1 / 49) is less than 1."""
    return Rewrite(before=x / c, after=x * (1 / c))


def _inverse_combines(x: Node, c: Node, d: Node) -> bool:
    return _has_inverse(x, d) and _combines(c, constant_node(ArrayData(1 / value_of(d), d.dtype)))


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=_inverse_combines)
def factor_over_constant(x: Var, c: Const, d: Const) -> Rewrite:
    """A constant factor and a constant divisor are one factor, computed when compiling."""
    return Rewrite(before=(x * c) / d, after=x * (c / d))


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=_inverse_combines)
def over_constant_times(x: Var, c: Const, d: Const) -> Rewrite:
    """A constant divisor and a constant factor are one factor, computed when compiling."""
    return Rewrite(before=(x / d) * c, after=x * (c / d))


# ---- inverses and quotients ----------------------------------------------------------------


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True)
def times_inverse(x: Var, y: Var) -> Rewrite:
    """Multiplying by an inverse is dividing: one operation, and one rounding less."""
    return Rewrite(before=x * (1 / y), after=x / y)


@rule(exact=Exact.ROUNDING, kinds="f")
def reciprocal_is_inverse(x: Var) -> Rewrite:
    """An inverse has two spellings, of which other rules need to know but one.

    The value is the same to the bit; the slope is a square in one and a quotient in the other.
    """
    return Rewrite(before=reciprocal(x), after=1 / x)


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=may_leave)
def times_constant_over(x: Var, y: Var, c: Const) -> Rewrite:
    """A constant dividend moves out of a product, to where it may meet another factor."""
    return Rewrite(
        before=x * (c / y), after=lambda x, y, c: (x / y) * c if _is_no_larger(x, y) else None
    )


@rule(exact=Exact.REALS, kinds="f")
def over_inverse(x: Var, y: Var) -> Rewrite:
    """Dividing by an inverse is multiplying; 1 / (1 / y) is y, but for rounding."""
    return Rewrite(before=x / (1 / y), after=x * y)


@rule(exact=Exact.REALS, kinds="f", single_use=True)
def inverse_of_quotient(x: Var, y: Var) -> Rewrite:
    """The inverse of a quotient is the quotient the other way round; its slope at inf is 0."""
    return Rewrite(before=1 / (x / y), after=y / x)


@rule(
    exact=Exact.REALS,
    kinds="f",
    family=(INVERSE,),
    reasons={"over_times": "(x / y) * y is x, but for rounding and y = 0."},
)
def times_over(x: Var, y: Var) -> Rewrite:
    """(x * y) / y is x, but for rounding and y = 0."""
    return Rewrite(before=(x * y) / y, after=x)


@rule(exact=Exact.REALS, kinds="f", single_use=True)
def quotient_of_quotient(x: Var, y: Var, z: Var) -> Rewrite:
    """Two divisors are one: a division less, unless their product overflows."""
    return Rewrite(
        before=(x / y) / z, after=lambda x, y, z: x / (y * z) if y.shape == z.shape else None
    )


@rule(exact=Exact.REALS, kinds="f", single_use=True)
def over_quotient(x: Var, y: Var, z: Var) -> Rewrite:
    """The divisor of a divisor is a factor: a division less, unless the product overflows."""
    return Rewrite(
        before=x / (y / z), after=lambda x, y, z: (x * z) / y if x.shape == z.shape else None
    )
