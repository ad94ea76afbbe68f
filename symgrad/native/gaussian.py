"""The error function and what belongs to the normal distribution.

All tails are exp(-a²) erfcx(a), in which erfcx(a) = exp(a²) erfc(a) is a polynomial in
(a - 2) / (a + 2), divided by 1 + 2 a (M. M. Shepherd and J. G. Laframboise, Chebyshev approximation
of (1 + 2 x) exp(x²) erfc x, Mathematics of Computation 36, 1981). The square in the exponent is
exact, and the parts are multiplied as pairs: a rounding there would show in every digit far out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from symgrad.native import coefficients
from symgrad.native.exponential import exp, exp_parts, joined, log, log1p, log_parts
from symgrad.native.precise import (
    FORMATS,
    INF,
    NAN,
    Pair,
    absolute,
    clipped,
    copysign,
    nearest,
    polynomial,
    power_of_two,
    product,
    quick_sum,
    root,
    scaled,
    two_sum,
    widened,
)
from symgrad.native.vectors import Value
from symgrad.ops.special.kernels import quantile_coefficients


class Tail(NamedTuple):
    """How `ndtr` of a kind is computed: by which polynomial; and from where on its tail is 0.

    On the way it is 2**`shift` times as large.
    """

    name: str
    far: float
    shift: int


TAILS: Mapping[str, Tail] = {
    "f4": Tail("short_tail", 14.5, 64),
    "f8": Tail("tail", 38.6, 512),
}


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
    part, error = product(q, polynomial("erfcx", q, without_last=1))
    p, p_low = quick_sum(first, part)
    p_low = p_low + code.fma(
        q_low, polynomial("erfcx_slope", q), error + coefficients.LOST["erfcx"]
    )
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


def ndtr(x: Value) -> Value:
    """The distribution function of the standard normal distribution.

    The tail below -a is exp(-a²/2) G, where G is t P(q), with t = 1 / (a + 2), the one division,
    and q = (a - 2) / (a + 2) = 1 - 4 t. That is taken of a t of which q is not rounded. By how much
    it is wrong is known, and what G loses with it is put into the exponent: d log G / d log t is
    about 1.04 + 1.7 t, which is near enough for an error.
    """
    code, form, tail = x.code, FORMATS[x.kind], TAILS[x.kind]
    a = clipped(absolute(x), -INF, tail.far)
    d = a + 2.0
    q = code.fma(1.0 / d, -4.0, 1.0)
    t = code.fma(q, -0.25, 0.25)
    lost = code.fma(2.0 - d + a, -t, code.fma(-d, t, 1.0))
    # The line that is the start of the polynomial as a pair, then what it bends away from that.
    *_, gradient, first = coefficients.POLYNOMIALS[tail.name, x.kind]
    line = code.fma(q, gradient, first)
    bend = code.fma(q, gradient, first - line) + coefficients.LOST[tail.name]
    bent = polynomial(tail.name, q, without_last=2, square=q * q)
    bend = code.fma(q * q, bent, bend)
    g, g_low = product(line, t)
    # From here on as `exp` has it, where the density is wanted too: LLVM writes it once.
    square = clipped(x * x * -0.5, form.least, form.most)
    n, k = nearest(square, coefficients.LOG2E[0])
    high = code.fma(n, -form.ln2[0], square)
    r = code.fma(n, -form.ln2[1], high)
    part = code.fma(n, -form.ln2[1], r * r * polynomial("exp", r, square=r * r))
    low = code.fma(a * -0.5, a, -square)
    low = code.fma(lost, code.fma(t, 1.7, 1.04), low)
    g_low = code.fma(t, bend, g_low)
    g_low = code.fma(g + g_low, low, g_low)
    found = g + code.fma(g + g_low, high, code.fma(g + g_low, part, g_low))
    # By two powers, since the tail may be subnormal: the first one is that of a normal number.
    found = found * power_of_two(k + tail.shift) * 2.0**-tail.shift
    return code.select(x > 0.0, 1.0 - found, found)


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


def erfcx(x: Value, short: bool = False) -> Value:
    """exp(x²) erfc(x), which is accurate and finite where erfc(x) has become 0."""
    if x.kind == "f4":
        return erfcx(widened(x), True).converted("f4")
    code, a = x.code, absolute(x)
    high, low = _scaled_tail(a, short)
    b = clipped(a, 0.0, 40.0)
    square, lost = product(b, b)
    y, error, k = exp_parts(square, lost)
    double, more = scaled(y, k + 1), scaled(error, k + 1)
    below = code.select(double < INF, (double - high) + (more - low), INF)
    above = code.select(a > 2.0**60, coefficients.TWO_OVER_ROOT_PI[0] * 0.5 / a, high + low)
    return code.select(x.is_nan(), x, code.select(x < 0.0, below, above))


# ---- inverses -------------------------------------------------------------------------------


def _rational(number: int, x: Value) -> Value:
    parts = []
    known: Callable[[], tuple[Any, ...]] = quantile_coefficients
    for first, *rest in known()[number]:
        found = x.code.constant(x.kind, first)
        for c in rest:
            found = x.code.fma(found, x, c)
        parts.append(found)
    return parts[0] / parts[1]


def _inverse(x: Value, c: Value, short: bool) -> Pair:
    """The a >= 0 with erf(a) = |x| and erfc(a) = c, as a value and what is to be added to it.

    By Wichura's rational functions (AS 241), then a step of Newton's. That is by the one of the two
    that is below 1/2, since the other has no digits left for it.
    """
    code = x.code
    q, tail = absolute(x) * 0.5, c * 0.5
    r = root(-log(tail, True))
    outer = code.select(r > 5.0, _rational(2, r - 5.0), _rational(1, r - 1.6))
    near = tail >= 0.075
    first = code.select(near, _rational(0, code.fma(-q, q, 0.180625)) * q, outer)
    a = first * coefficients.SQRT_HALF[0]
    if short:
        return a, code.constant(a.kind, 0.0)
    half_slope = exp(-(a * a)) * coefficients.TWO_OVER_ROOT_PI[0]
    inner = ((a - absolute(x)) + a * polynomial("erf", a * a)) / half_slope
    # Far out in the tail all is so small that it is multiplied by a power of two.
    unit = 2.0**600
    high, low = _tail(a, product(a, a), False, unit)
    slope = high / _scaled_tail(a, True)[0] * coefficients.TWO_OVER_ROOT_PI[0]
    step = ((high - c * unit) + low) / slope
    return a, code.select(c > 0.5, -inner, step)


def erfinv(x: Value, short: bool = False) -> Value:
    """The y with erf(y) = x; NaN beyond -1 and 1."""
    if x.kind == "f4":
        return erfinv(widened(x), True).converted("f4")
    code, a = x.code, absolute(x)
    found, more = _inverse(x, 1.0 - a, short)
    found = code.select(a < 1.0, found + more, code.select(a.equals(1.0), INF, _nan(x)))
    return copysign(code.select(a.equals(0.0), a, found), x)


def erfcinv(x: Value, short: bool = False) -> Value:
    """The y with erfc(y) = x; NaN below 0 and above 2."""
    if x.kind == "f4":
        return erfcinv(widened(x), True).converted("f4")
    code = x.code
    above = x > 1.0
    tail = code.select(above, 2.0 - x, x)
    found, more = _inverse(1.0 - x, tail, short)
    return _either_end(above, tail, found + more)


def ndtri(x: Value, short: bool = False) -> Value:
    """The y with ndtr(y) = x; NaN below 0 and above 1."""
    if x.kind == "f4":
        return ndtri(widened(x), True).converted("f4")
    code, (root_two, low) = x.code, (2 * v for v in coefficients.SQRT_HALF)
    below = x < 0.5
    tail = 2.0 * code.select(below, x, 1.0 - x)
    found, more = _inverse(2.0 * (x - 0.5), tail, short)
    high, lost = product(found, root_two)
    return _either_end(below, tail, high + code.fma(more, root_two, code.fma(found, low, lost)))


def _either_end(negative: Value, tail: Value, size: Value) -> Value:
    """A quantile of a size, which is infinite where the tail is 0, and NaN where it is below."""
    code = tail.code
    size = code.select(tail > 0.0, size, code.select(tail.equals(0.0), INF, _nan(tail)))
    return code.select(negative, -size, size)


def _nan(x: Value) -> Value:
    return x.code.constant(x.kind, NAN)
