"""Powers, roots, exponentials and logarithms."""

from __future__ import annotations

import numpy as np

from symgrad.ir.node import Node, constant_value
from symgrad.ops.elementwise import abs, exp, log, sqrt, square
from symgrad.ops.leaves import ones_like
from symgrad.rewrite.family import INVERSE
from symgrad.rewrite.pattern import Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule
from symgrad.rules.masks import every, is_finite

# ---- powers ---------------------------------------------------------------------------------


def _keep_the_sign(a: Node, b: Node) -> bool:
    """Whether exponents multiply: an even one loses the sign, and a fraction after it the rest."""
    one, other = constant_value(a), constant_value(b)
    if one is None or other is None or not (is_finite(a) and is_finite(b)):
        return False
    return bool(((np.remainder(other, 1) == 0) | (np.remainder(one, 2) != 0)).all())


@rule(exact=Exact.REALS, kinds="f", single_use=True, when=_keep_the_sign)
def power_of_power(x: Var, a: Const, b: Const) -> Rewrite:
    """(x**a)**b is x**(a * b), unless the inner power overflows."""
    return Rewrite(before=(x**a) ** b, after=x ** (a * b))


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


@rule(exact=Exact.ROUNDING, kinds="iuf")
def power_three(x: Var) -> Rewrite:
    """x**3 is two multiplications, many times faster than a power."""
    return Rewrite(before=x**3, after=square(x) * x)


@rule(exact=Exact.ROUNDING, kinds="iuf")
def power_four(x: Var) -> Rewrite:
    """x**4 is two squares, many times faster than a power."""
    return Rewrite(before=x**4, after=square(square(x)))


@rule(exact=Exact.ROUNDING, kinds="f")
def power_minus_two(x: Var) -> Rewrite:
    """x**-2 is the square of the inverse, which overflows where the power does."""
    return Rewrite(before=x**-2, after=square(1 / x))


@rule(exact=Exact.REALS, kinds="f")
def power_minus_half(x: Var) -> Rewrite:
    """x**-0.5 is the inverse of the root, but for -inf and -0, where the power is 0 and inf."""
    return Rewrite(before=x**-0.5, after=1 / sqrt(x))


@rule(exact=Exact.REALS, kinds="f")
def power_half(x: Var) -> Rewrite:
    """x**0.5 is the square root, but for -inf, where the power is inf and the root NaN."""
    return Rewrite(before=x**0.5, after=sqrt(x))


@rule(exact=Exact.BITS, kinds="iuf")
def product_with_itself(x: Var) -> Rewrite:
    """x * x is a square: one operand to read."""
    return Rewrite(before=x * x, after=square(x))


@rule(exact=Exact.REALS, kinds="f", single_use=True)
def product_of_powers(x: Var, a: Var, b: Var) -> Rewrite:
    """x**a * x**b is x**(a + b): a power less, unless one of them overflows."""
    return Rewrite(before=x**a * x**b, after=x ** (a + b))


@rule(exact=Exact.REALS, kinds="f", single_use=True)
def power_times_base(x: Var, a: Const) -> Rewrite:
    """x**a * x is x**(a + 1), unless one of them overflows."""
    return Rewrite(before=x**a * x, after=x ** (a + 1))


# ---- roots, exponentials and logarithms -----------------------------------------------------


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


@rule(exact=Exact.REALS, kinds="f", single_use=True, when=lambda x, y: x.shape == y.shape)
def product_of_roots(x: Var, y: Var) -> Rewrite:
    """A product of roots is the root of the product, unless that overflows or both are negative."""
    return Rewrite(before=sqrt(x) * sqrt(y), after=sqrt(x * y))


@rule(exact=Exact.REALS, kinds="f")
def over_its_root(x: Var) -> Rewrite:
    """x / sqrt(x) is the root, but for 0 and inf."""
    return Rewrite(before=x / sqrt(x), after=sqrt(x))


@rule(
    exact=Exact.REALS,
    kinds="f",
    single_use=True,
    when=lambda x, y: x.shape == y.shape,
    family=(INVERSE,),
    reasons={
        "quotient_of_exps": (
            "exp(x) / exp(y) is exp(x - y): one exponential, but the rounding of it shows."
        )
    },
)
def product_of_exps(x: Var, y: Var) -> Rewrite:
    """exp(x) * exp(y) is exp(x + y): one exponential, but the rounding of the sum shows in it."""
    return Rewrite(before=exp(x) * exp(y), after=exp(x + y))


@rule(exact=Exact.REALS, kinds="f", single_use=True)
def inverse_of_exp(x: Var) -> Rewrite:
    """1 / exp(x) is exp(-x): a change of sign, not a division. At inf only one has a slope."""
    return Rewrite(before=1 / exp(x), after=exp(-x))


@rule(exact=Exact.REALS, kinds="f", single_use=True)
def over_exp_of_negative(x: Var, y: Var) -> Rewrite:
    """Dividing by exp(-y) is multiplying by exp(y). At -inf only one has a slope."""
    return Rewrite(before=x / exp(-y), after=x * exp(y))


@rule(exact=Exact.REALS, kinds="f", single_use=True)
def power_of_exp(x: Var, c: Const) -> Rewrite:
    """exp(x)**c is exp(x * c): an exponential less, unless it overflows."""
    return Rewrite(before=exp(x) ** c, after=exp(x * c))


@rule(
    exact=Exact.REALS,
    kinds="f",
    single_use=True,
    when=lambda x, y: x.shape == y.shape,
    family=(INVERSE,),
    reasons={
        "difference_of_logs": (
            "log(x) - log(y) is log(x / y): one logarithm, unless that overflows or both are "
            "negative."
        )
    },
)
def sum_of_logs(x: Var, y: Var) -> Rewrite:
    """log(x) + log(y) is log(x * y): one logarithm, unless that overflows or both are negative."""
    return Rewrite(before=log(x) + log(y), after=log(x * y))


def _is_odd(c: Node) -> bool:
    return is_finite(c) and every(c, lambda v: np.remainder(v, 2) != 0)


@rule(exact=Exact.REALS, kinds="f", single_use=True, when=_is_odd)
def log_of_power(x: Var, c: Const) -> Rewrite:
    """log(x**c) is c * log(x), unless c is even, which would hide the sign of x."""
    return Rewrite(before=log(x**c), after=log(x) * c)


@rule(exact=Exact.REALS, kinds="f", single_use=True)
def log_of_root(x: Var) -> Rewrite:
    """log(sqrt(x)) is half of log(x): no root, and no rounding by it."""
    return Rewrite(before=log(sqrt(x)), after=log(x) * 0.5)


@rule(exact=Exact.REALS, kinds="f", single_use=True)
def log_of_inverse(x: Var) -> Rewrite:
    """log(1 / x) is -log(x), but for -0: no division, and no rounding by it."""
    return Rewrite(before=log(1 / x), after=-log(x))


@rule(exact=Exact.REALS, kinds="f")
def exp_of_log(x: Var) -> Rewrite:
    """The exponential undoes the logarithm, unless there is none."""
    return Rewrite(before=exp(log(x)), after=x)
