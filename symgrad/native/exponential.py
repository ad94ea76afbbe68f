"""Exponentials and logarithms, and the hyperbolic functions that are made of them.

Sources: W. J. Cody and W. Waite, Software Manual for the Elementary Functions (1980), for the
reduction by ln 2; the logarithm by s = f / (2 + f) is that of fdlibm (Sun Microsystems, 1993).
Errors are in units in the last place; tests/native/test_functions.py measures them.
"""

from __future__ import annotations

from symgrad.native import coefficients
from symgrad.native.precise import (
    FORMATS,
    INF,
    NAN,
    Pair,
    absolute,
    clipped,
    copysign,
    exponent_and_rest,
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


def _reduced(x: Value) -> tuple[Value, Value, Pair]:
    """n as float and integer, and r with x = n ln 2 + r, for x that is not large."""
    code, ln2 = x.code, FORMATS[x.kind].ln2
    n, k = nearest(x * coefficients.LOG2E[0])
    first = code.fma(n, -ln2[0], x)
    r = code.fma(n, -ln2[1], first)
    low = code.fma(n, -ln2[1], first - r)
    return n, k, (r, code.fma(n, -ln2[2], low))


def exp_parts(
    x: Value, low: Value | None = None, short: bool = False
) -> tuple[Value, Value, Value]:
    """y, e and k with exp(x + low) = (y + e) 2**k."""
    code, form = x.code, FORMATS[x.kind]
    _, k, (r, rest) = _reduced(clipped(x, form.least, form.most))
    if low is not None:
        rest = rest + low
    part, error = quick_sum(r, r * r * polynomial("exp", r, short))
    y, last = quick_sum(1.0, part)
    return y, last + code.fma(rest, y, error), k


def exp(x: Value, short: bool = False) -> Value:
    """e to the power of x."""
    code, form = x.code, FORMATS[x.kind]
    ln2 = form.ln2
    x = clipped(x, form.least, form.most)
    n, k = nearest(x * coefficients.LOG2E[0])
    r = code.fma(n, -ln2[1], code.fma(n, -ln2[0], x))
    return scaled(code.fma(r * r, polynomial("exp", r, short), r) + 1.0, k)


def exp2(x: Value) -> Value:
    """2 to the power of x."""
    if x.kind == "f4":
        return _exp2(widened(x), True).converted("f4")
    return _exp2(x, False)


def _exp2(x: Value, short: bool, low: Value | None = None) -> Value:
    code, ln2 = x.code, coefficients.LN2
    x = clipped(x, -1200.0, 1200.0)
    n, k = nearest(x)
    r = x - n
    if low is not None:
        r, low = two_sum(r, low)
    high = sum(ln2[:2])
    t, rest = product(r, high)
    if not short:
        rest = code.fma(r, (ln2[0] - high) + ln2[1] + ln2[2], rest)
    if low is not None:
        rest = code.fma(low, high, rest)
    return scaled((code.fma(t * t, polynomial("exp", t, short), rest) + t) + 1.0, k)


def expm1(x: Value, short: bool = False) -> Value:
    """exp(x) - 1, accurate where x is small."""
    code = x.code
    low, high = (-40.0, 709.9) if x.kind == "f8" else (-20.0, 88.8)
    _, k, (r, rest) = _reduced(clipped(x, low, high))
    part, error = quick_sum(r, r * r * polynomial("exp", r, short))
    # Half of 2**k, since 2**k itself may be too large.
    half = power_of_two(k - 1)
    high_part, more = quick_sum(half - 0.5, half * part)
    swapped, other = quick_sum(half * part, half - 0.5)
    large = half > 0.5
    found = code.select(large, high_part, swapped)
    more = code.select(large, more, other) + half * code.fma(rest, part, rest + error)
    found = (found + more) * 2.0
    found = code.select(x > high, INF, found)
    return code.select(absolute(x) < 2.0**-60, x, found)


def log1p_parts(f: Value, short: bool = False) -> Pair:
    """log(1 + f) as a pair, for 1 + f in [sqrt(1/2), sqrt(2)]."""
    code = f.code
    s = f / (f + 2.0)
    z = s * s
    half, error = product(f * 0.5, f)
    high, low = quick_sum(f, -half)
    return high, low + code.fma(s, code.fma(z, polynomial("log", z, short), half), -error)


def log_parts(x: Value, short: bool = False) -> tuple[Value, Pair]:
    """k and a pair with log(x) = k ln 2 + pair, for x > 0 and finite."""
    k, m = exponent_and_rest(x)
    return k, log1p_parts(m - 1.0, short)


def joined(k: Value, parts: Pair, low: Value | None = None) -> Value:
    """k ln 2 and the rest of a logarithm."""
    ln2 = FORMATS[k.kind].ln2
    total, error = quick_sum(k * ln2[0], parts[0])
    rest = k.code.fma(k, ln2[1], parts[1]) + error
    return total + (rest if low is None else rest + low)


def _of_special(x: Value, found: Value) -> Value:
    """What a logarithm is where its argument is not positive, or not finite."""
    code = x.code
    found = code.select(x < INF, found, x)
    return code.select(x > 0.0, found, code.select(x.equals(0.0), -INF, _nan(x)))


def _nan(x: Value) -> Value:
    """NaN in every lane."""
    return x.code.constant(x.kind, NAN)


def log(x: Value, short: bool = False) -> Value:
    """The natural logarithm."""
    return _of_special(x, joined(*log_parts(x, short)))


def _log_in_base(x: Value, factor: tuple[float, ...], unit: tuple[float, ...]) -> Value:
    """The logarithm whose factor is 1 / log(base), in which that of 2 is `unit`; of a float64."""
    code = x.code
    k, (high, low) = log_parts(x)
    part, error = product(high, factor[0])
    error = code.fma(low, factor[0], code.fma(high, factor[1], error))
    total, rest = quick_sum(k * unit[0], part)
    if len(unit) > 1:
        error = code.fma(k, unit[1], error)
    return _of_special(x, total + (rest + error))


def log2(x: Value) -> Value:
    """The logarithm to base 2."""
    if x.kind == "f4":
        return log2(widened(x)).converted("f4")
    return _log_in_base(x, coefficients.LOG2E, (1.0,))


def log10(x: Value) -> Value:
    """The logarithm to base 10."""
    if x.kind == "f4":
        return log10(widened(x)).converted("f4")
    return _log_in_base(x, coefficients.LOG10E, coefficients.LOG10_2)


def log1p(x: Value, low: Value | None = None) -> Value:
    """log(1 + x + low), accurate where x is small."""
    code = x.code
    u = x + 1.0
    error = code.select(x > 1.0, 1.0 - (u - x), x - (u - 1.0))
    if low is not None:
        error = error + low
    k, m = exponent_and_rest(u)
    found = joined(k, log1p_parts(m - 1.0), error / u)
    found = code.select(x < INF, found, x)
    found = code.select(x > -1.0, found, code.select(x.equals(-1.0), -INF, _nan(x)))
    return code.select(absolute(x) < 2.0**-60, x, found)


# ---- powers ---------------------------------------------------------------------------------


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
    found = _exp2(e, short, rest)
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


# ---- hyperbolic -----------------------------------------------------------------------------


def _small(name: str, x: Value, short: bool = False) -> Value:
    """An odd function near 0: x + x z P(z)."""
    z = x * x
    return x.code.fma(x * z, polynomial(name, z, short), x)


def _half_exp(x: Value, short: bool) -> Pair:
    """exp(x) / 2 as a pair."""
    y, error, k = exp_parts(x, short=short)
    return scaled(y, k - 1), scaled(error, k - 1)


def sinh(x: Value, short: bool = False) -> Value:
    """The hyperbolic sine."""
    if x.kind == "f4":
        return sinh(widened(x), True).converted("f4")
    code, a = x.code, absolute(x)
    high, low = _half_exp(a, short)
    large = high + code.select(high < INF, low - 0.25 / high, 0.0)
    return copysign(code.select(a < 1.0, _small("sinh", a, short), large), x)


def cosh(x: Value, short: bool = False) -> Value:
    """The hyperbolic cosine."""
    if x.kind == "f4":
        return cosh(widened(x), True).converted("f4")
    code = x.code
    high, low = _half_exp(absolute(x), short)
    return high + code.select(high < INF, low + 0.25 / high, 0.0)


def tanh(x: Value) -> Value:
    """The hyperbolic tangent."""
    code, a = x.code, absolute(x)
    large = 1.0 - 2.0 / (exp(2.0 * clipped(a, 0.0, 22.0)) + 1.0)
    return copysign(code.select(a < 0.55, _small("tanh", a), large), x)


def asinh(x: Value, short: bool = False) -> Value:
    """The inverse of sinh."""
    if x.kind == "f4":
        return asinh(widened(x), True).converted("f4")
    code, a = x.code, absolute(x)
    # log(a + sqrt(a² + 1)), of 2 a where a² has no room for 1, each as a pair.
    square, lost = product(a, a)
    total, error = two_sum(square, code.constant("f8", 1.0))
    s = root(total)
    s_low = (code.fma(-s, s, total) + (error + lost)) / (2.0 * s)
    high, low = quick_sum(s, a)
    low = low + s_low
    huge = a > 2.0**60
    high, low = code.select(huge, a, high), code.select(huge, 0.0, low)
    k, parts = log_parts(high)
    k = code.select(huge, k + 1.0, k)
    large = joined(k, parts, low / high)
    large = code.select(a < INF, large, a)
    return copysign(code.select(a < 0.5, _small("asinh", a, short), large), x)


def acosh(x: Value, short: bool = False) -> Value:
    """The inverse of cosh; NaN for x < 1."""
    if x.kind == "f4":
        return acosh(widened(x), True).converted("f4")
    code = x.code
    # log1p(t + sqrt(t (t + 2))) with t = x - 1, as pairs.
    t = x - 1.0
    square, lost = product(t, t)
    twice = 2.0 * t
    total, error = two_sum(twice, square)
    s = root(total)
    s_low = code.select(total > 0.0, (code.fma(-s, s, total) + (error + lost)) / (2.0 * s), 0.0)
    high, low = quick_sum(s, t)
    huge = x > 2.0**60
    usual = log1p(high, low + s_low)
    k, parts = log_parts(x)
    large = joined(k + 1.0, parts)
    found = code.select(huge, large, usual)
    found = code.select(x < INF, found, x)
    return code.select(x >= 1.0, found, NAN)


def atanh(x: Value, short: bool = False) -> Value:
    """The inverse of tanh; NaN beyond -1 and 1."""
    if x.kind == "f4":
        return atanh(widened(x), True).converted("f4")
    code, a = x.code, absolute(x)
    d = 1.0 - a
    q = 2.0 * a / d
    rest = code.fma(-q, d, 2.0 * a) / d
    large = 0.5 * log1p(q, rest)
    large = code.select(a < 1.0, large, code.select(a.equals(1.0), INF, _nan(x)))
    return copysign(code.select(a < 0.5, _small("atanh", a, short), large), x)


# ---- of neural networks ---------------------------------------------------------------------


def sigmoid(x: Value) -> Value:
    """1 / (1 + exp(-x))."""
    code = x.code
    y, error, k = exp_parts(-absolute(x))
    e, e_low = scaled(y, k), scaled(error, k)
    d, d_low = quick_sum(1.0, e)
    positive = x >= 0.0
    top, top_low = code.select(positive, 1.0, e), code.select(positive, 0.0, e_low)
    q = top / d
    rest = code.fma(-q, d, top) + code.fma(-q, d_low + e_low, top_low)
    found = code.fma(rest, code.select(positive, q, 1.0 - q), q)
    return code.select(x.is_nan(), x, found)


def softplus(x: Value) -> Value:
    """log(1 + exp(x)), accurate and finite wherever x is."""
    code = x.code
    return code.select(x > 0.0, x, 0.0) + log1p(exp(-absolute(x)))


def logaddexp(x: Value, y: Value) -> Value:
    """log(exp(x) + exp(y)) without overflow on the way."""
    code = x.code
    more, less = code.select(x > y, x, y), code.select(x > y, y, x)
    gap = code.select(x.equals(y), 0.0, less - more)
    return code.select(x.is_nan() | y.is_nan(), NAN, more + log1p(exp(gap)))
