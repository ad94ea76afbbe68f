"""Exponentials and logarithms, and what neural networks make of them.

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
    everywhere,
    exponent_and_rest,
    nearest,
    polynomial,
    power_of_two,
    product,
    quick_sum,
    scaled,
    two_sum,
    widened,
)
from symgrad.native.vectors import Value


def _reduced(x: Value) -> tuple[Value, Value, Pair]:
    """n as float and integer, and r with x = n ln 2 + r, for x that is not large."""
    code, ln2 = x.code, FORMATS[x.kind].ln2
    n, k = nearest(x, coefficients.LOG2E[0])
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
    part, error = quick_sum(r, r * r * polynomial("exp", r, short, square=r * r))
    y, last = quick_sum(1.0, part)
    return y, last + code.fma(rest, y, error), k


def exp(x: Value, short: bool = False) -> Value:
    """e to the power of x."""
    code, form = x.code, FORMATS[x.kind]
    ln2 = form.ln2
    x = clipped(x, form.least, form.most)
    n, k = nearest(x, coefficients.LOG2E[0])
    r = code.fma(n, -ln2[1], code.fma(n, -ln2[0], x))
    return scaled(code.fma(r * r, polynomial("exp", r, short, square=r * r), r) + 1.0, k)


def exp2(x: Value) -> Value:
    """2 to the power of x."""
    if x.kind == "f4":
        return exp2_of_pair(widened(x), True).converted("f4")
    return exp2_of_pair(x, False)


def exp2_of_pair(x: Value, short: bool, low: Value | None = None) -> Value:
    """2 to the power of x + low, of a float64."""
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
    part, error = quick_sum(r, r * r * polynomial("exp", r, short, square=r * r))
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
    """A logarithm: k ln 2 + parts + low."""
    ln2 = FORMATS[k.kind].ln2
    total, error = quick_sum(k * ln2[0], parts[0])
    rest = k.code.fma(k, ln2[1], parts[1]) + error
    return total + (rest if low is None else rest + low)


def _of_special(x: Value, found: Value) -> Value:
    """The values of a logarithm where its argument is not positive, or not finite."""
    code = x.code
    found = code.select(x < INF, found, x)
    return code.select(x > 0.0, found, code.select(x.equals(0.0), -INF, everywhere(NAN, x)))


def log(x: Value, short: bool = False) -> Value:
    """The natural logarithm."""
    if x.kind == "f4":
        return _of_special(x, _log_of_float32(x))
    return _of_special(x, joined(*log_parts(x, short)))


def _log_of_float32(x: Value) -> Value:
    """The logarithm without a division, for x > 0 and finite: of float64 it would take longer."""
    code, ln2 = x.code, FORMATS[x.kind].ln2
    k, m = exponent_and_rest(x)
    f = m - 1.0
    square = f * f
    total, error = quick_sum(k * ln2[0], f)
    low = code.fma(k, ln2[1], error)
    return total + code.fma(square, polynomial("log1p", f, square=square), low)


def _log_in_base(x: Value, factor: tuple[float, ...], unit: tuple[float, ...]) -> Value:
    """The logarithm whose factor is 1 / log(base), in which that of 2 is `unit`."""
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
    short = x.kind == "f4"
    return _log_in_base(x, coefficients.LOG2E_F4 if short else coefficients.LOG2E, (1.0,))


def log10(x: Value) -> Value:
    """The logarithm to base 10."""
    if x.kind == "f4":
        return _log_in_base(x, coefficients.LOG10E_F4, coefficients.LOG10_2_F4)
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
    found = code.select(x > -1.0, found, code.select(x.equals(-1.0), -INF, everywhere(NAN, x)))
    return code.select(absolute(x) < 2.0**-60, x, found)


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


def logit(x: Value) -> Value:
    """log(x / (1 - x)), the inverse of the sigmoid; NaN beyond 0 and 1."""
    code = x.code
    # Near 1/2, where 2 x - 1 is exact, as log1p of what the quotient has more than 1.
    away = code.fma(x, 2.0, -1.0)
    rest = 1.0 - x
    q = away / rest
    near = log1p(q, code.fma(-q, rest, away) / rest)
    high, low = quick_sum(1.0, -x)
    q = x / high
    k, parts = log_parts(q)
    far = joined(k, parts, (code.fma(-q, high, x) - q * low) / x)
    found = code.select(absolute(away) < 0.5, near, far)
    found = code.select(x.equals(0.0), -INF, code.select(x.equals(1.0), INF, found))
    return code.select((x >= 0.0) & (x <= 1.0), found, NAN)


def log1mexp(x: Value) -> Value:
    """log(1 - exp(x)) of x <= 0: near 0 by expm1, far from it by log1p (Maechler, 2012)."""
    code = x.code
    near = x > -0.6931471805599453
    found = log1p(-exp(x))
    return code.select(near, log(-expm1(x)), found)


def _times(x: Value, y: Value, logarithm: Value) -> Value:
    """The product with a logarithm of y, but 0 where x is 0, unless y is NaN."""
    return x.code.select(x.equals(0.0) & y.equals(y), 0.0, x * logarithm)


def xlogy(x: Value, y: Value) -> Value:
    """x log(y), but 0 where x is 0."""
    return _times(x, y, log(y))


def xlog1py(x: Value, y: Value) -> Value:
    """x log(1 + y), but 0 where x is 0."""
    return _times(x, y, log1p(y))
