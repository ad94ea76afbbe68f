"""The error function and what belongs to the normal distribution.

All tails are exp(-a²) erfcx(a), in which erfcx(a) = exp(a²) erfc(a) is a polynomial in
(a - 2) / (a + 2), divided by 1 + 2 a (M. M. Shepherd and J. G. Laframboise, Chebyshev approximation
of (1 + 2 x) exp(x²) erfc x, Mathematics of Computation 36, 1981). The square in the exponent is
exact, and the parts are multiplied as pairs: a rounding there would show in every digit far out.
"""

from __future__ import annotations

from symgrad.native import coefficients
from symgrad.native.exponential import exp, exp_parts, joined, log1p, log_parts
from symgrad.native.precise import (
    INF,
    Pair,
    absolute,
    clipped,
    copysign,
    polynomial,
    product,
    quick_sum,
    scaled,
    two_sum,
    widened,
)
from symgrad.native.vectors import Value


def _scaled_tail(a: Value, short: bool) -> Pair:
    """erfcx(a) as a pair, for a >= 0."""
    code = a.code
    a = clipped(a, 0.0, 2.0**60)
    if short:
        return polynomial("erfcx", (a - 2.0) / (a + 2.0), True) / code.fma(a, 2.0, 1.0), a * 0.0
    top, top_low = two_sum(a, code.constant("f8", -2.0))
    bottom, bottom_low = two_sum(a, code.constant("f8", 2.0))
    q = top / bottom
    q_low = (code.fma(-q, bottom, top) + (top_low - q * bottom_low)) / bottom
    first = coefficients.POLYNOMIALS["erfcx", "f8"][-1]
    part, error = product(q, polynomial("erfcx", q, without_last=True))
    p, p_low = quick_sum(first, part)
    p_low = p_low + code.fma(q_low, polynomial("erfcx_slope", q), error + coefficients.ERFCX_LOST)
    d, lost = two_sum(2.0 * a, code.constant("f8", 1.0))
    found = p / d
    return found, (code.fma(-found, d, p) + (p_low - found * lost)) / d


def _tail(a: Value, square: Pair, short: bool, factor: float = 1.0) -> Pair:
    """erfc(a) times a power of two as a pair, given a² as a pair."""
    high, low = _scaled_tail(a, short)
    if short:
        return exp(-square[0], True) * (factor * high), low
    y, error, k = exp_parts(-square[0], -square[1])
    first, rest = product(y, high)
    first, rest = quick_sum(first, rest + a.code.fma(y, low, error * high))
    return scaled(factor * first, k), scaled(factor * rest, k)


def erf(x: Value) -> Value:
    """The error function."""
    code, a = x.code, absolute(x)
    z = a * a
    near = code.fma(a, polynomial("erf", z), a)
    if x.kind == "f4":
        b = clipped(a, 0.0, 4.1)
        far = 1.0 - exp(-code.fma(b, polynomial("log_erfc", b), b))
        return copysign(code.select(a < 0.95, near, far), x)
    b = clipped(a, 0.0, 40.0)
    high, low = _tail(b, product(b, b), False)
    far = (1.0 - high) - low
    return copysign(code.select(a < 1.0, near, far), x)


def erfc(x: Value, short: bool = False) -> Value:
    """1 - erf(x), accurate in the tail."""
    if x.kind == "f4":
        return erfc(widened(x), True).converted("f4")
    a = clipped(absolute(x), 0.0, 40.0)
    return _either_side(x, _tail(a, product(a, a), short), 2.0)


def _either_side(x: Value, tail: Pair, whole: float) -> Value:
    """A tail above 0, and the whole without it below."""
    code = x.code
    upper, lower = tail[0] + tail[1], (whole - tail[0]) - tail[1]
    return code.select(x.is_nan(), x, code.select(x < 0.0, lower, upper))


def _half_square(x: Value) -> tuple[Value, Pair]:
    """|x| / sqrt(2) and x² / 2 as a pair."""
    a = clipped(absolute(x), 0.0, 60.0)
    square, lost = product(a * 0.5, a)
    return a * coefficients.SQRT_HALF[0], (square, lost)


def ndtr(x: Value, short: bool = False) -> Value:
    """The distribution function of the standard normal distribution."""
    if x.kind == "f4":
        return ndtr(widened(x), True).converted("f4")
    a, square = _half_square(x)
    return _either_side(-x, _tail(a, square, short, 0.5), 1.0)


def log_ndtr(x: Value, short: bool = False) -> Value:
    """log(ndtr(x)), accurate in both tails."""
    if x.kind == "f4":
        return log_ndtr(widened(x), True).converted("f4")
    code = x.code
    a, square = _half_square(x)
    high, low = _tail(a, square, short, 0.5)
    below = log1p(-high, -low)
    far = x < -1.0
    size = clipped(absolute(x), 0.0, 2.0**600)
    exponent, lost = product(size * 0.5, size)
    factor = _scaled_tail(size * coefficients.SQRT_HALF[0], short)
    top = code.select(far, factor[0] * 0.5, high)
    rest = code.select(far, factor[1] * 0.5, low)
    n, parts = log_parts(code.select(x < 0.0, top, 1.0))
    logarithm = joined(n, parts, rest / top)
    above = code.select(far, (logarithm - lost) - exponent, logarithm)
    found = code.select(x < 0.0, above, below)
    found = code.select(x.equals(-INF), -INF, found)
    return code.select(x.is_nan(), x, found)
