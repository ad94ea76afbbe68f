"""Powers and roots.

A power is exp2(y log2 x), in which the logarithm has 64 bits: its error grows with the exponent.
"""

from __future__ import annotations

from symgrad.native import coefficients
from symgrad.native.exponential import exp2_of_pair, log_parts
from symgrad.native.precise import (
    INF,
    NAN,
    Pair,
    absolute,
    copysign,
    exponent_and_rest,
    nearest,
    polynomial,
    product,
    quick_sum,
    root,
    scaled,
    widened,
)
from symgrad.native.vectors import Value


def _log2_pair(x: Value) -> Pair:
    """The logarithm to base 2 of x > 0 with 64 bits, for powers."""
    code = x.code
    k, m = exponent_and_rest(x)
    f = m - 1.0
    d, lost = quick_sum(2.0, f)
    s = f / d
    rest = (code.fma(-s, d, f) - s * lost) / d
    z = s * s
    # 2 s + s z (2/3 + z Q): the first two terms as pairs.
    third = 2.0 / 3.0
    q = polynomial("log_rest", z)
    z_low = code.fma(s, s, -z) + 2.0 * s * rest
    a, a_low = product(z, third)
    a_low = a_low + code.fma(z, coefficients.TWO_THIRDS[1], z_low * third)
    a, more = quick_sum(a, z * z * q)
    a_low = a_low + more
    b, b_low = product(s, a)
    b_low = b_low + code.fma(s, a_low, rest * a)
    high, low = quick_sum(2.0 * s, b)
    low = low + (b_low + 2.0 * rest)
    high, low = quick_sum(high, low)
    e = coefficients.LOG2E
    p, p_low = product(high, e[0])
    p_low = p_low + code.fma(high, e[1], low * e[0])
    total, error = quick_sum(k, p)
    return quick_sum(total, error + p_low)


def power(x: Value, y: Value) -> Value:
    """x to the power of y."""
    if x.kind == "f4":
        return power_f8(widened(x), widened(y), True).converted("f4")
    return power_f8(x, y, False)


def power_f8(x: Value, y: Value, short: bool) -> Value:
    """The power of float64; that of a base of NaN is NaN, but for the exponent 0."""
    code = x.code
    base = absolute(x)
    if short:
        k, (high, low) = log_parts(base)
        log2_high = code.fma(high + low, coefficients.LOG2E[0], k)
        log2_low = code.constant("f8", 0.0)
    else:
        log2_high, log2_low = _log2_pair(base)
    log2_high = code.select(base.equals(0.0), -INF, log2_high)
    log2_high = code.select(base < INF, log2_high, base)
    e = y * log2_high
    rest = code.fma(y, log2_high, -e) + y * log2_low
    rest = code.select(absolute(e) < 1100.0, rest, 0.0)
    found = exp2_of_pair(e, short, rest)
    whole = code.call("trunc", y).equals(y)
    half = y * 0.5
    odd = whole & code.call("trunc", half).differs(half)
    negative = x.reinterpreted("i8") < 0
    found = code.select(negative & odd, -found, found)
    bad = (x < 0.0) & ~whole & (x > -INF)
    found = code.select(bad, NAN, found)
    one = y.equals(0.0) | x.equals(1.0) | (x.equals(-1.0) & absolute(y).equals(INF))
    return code.select(one, 1.0, found)


def cbrt(x: Value) -> Value:
    """The cube root."""
    if x.kind == "f4":
        return cbrt(widened(x)).converted("f4")
    code = x.code
    k, m = exponent_and_rest(absolute(x))
    third = code.call("floor", k * (1.0 / 3.0) + 0.01)
    left = k - 3.0 * third
    a = code.select(left.equals(0.0), m, code.select(left.equals(1.0), m * 2.0, m * 4.0))
    # A parabola near the cube root in [0.7, 5.7), and Halley's step, twice.
    t = code.fma(code.fma(a, -0.0237, 0.3166), a, 0.6932)
    for _ in range(2):
        cube = t * t * t
        t = t * code.fma(2.0, a, cube) / code.fma(2.0, cube, a)
    square, lost = product(t, t)
    error = code.fma(square, t, -a) + lost * t
    t = t - error / (3.0 * square)
    _, n = nearest(third)
    found = copysign(scaled(t, n), x)
    return code.select((absolute(x) < INF) & x.differs(0.0), found, x)


def hypot(x: Value, y: Value) -> Value:
    """The length of the vector (x, y), without overflow on the way."""
    code = x.code
    if x.kind == "f4":
        a, b = widened(x), widened(y)
        found = root(code.fma(a, a, b * b)).converted("f4")
    else:
        a, b = absolute(x), absolute(y)
        large, small = code.select(a > b, a, b), code.select(a > b, b, a)
        factor = code.select(large > 2.0**500, 2.0**-600, code.constant("f8", 1.0))
        factor = code.select(large < 2.0**-400, 2.0**600, factor)
        a, b = large * factor, small * factor
        square, lost = product(a, a)
        other, more = product(b, b)
        total, error = quick_sum(square, other)
        length = root(total)
        rest = code.fma(-length, length, total) + (error + (lost + more))
        length = length + code.select(total > 0.0, rest / (2.0 * length), 0.0)
        found = length / factor
    infinite = absolute(x).equals(INF) | absolute(y).equals(INF)
    found = code.select(x.is_nan() | y.is_nan(), NAN, found)
    return code.select(infinite, INF, found)
