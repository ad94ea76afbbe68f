"""Hyperbolic functions and their inverses: near 0 polynomials, elsewhere exp and log as pairs."""

from __future__ import annotations

from symgrad.native.exponential import exp, exp_parts, joined, log1p, log_parts
from symgrad.native.precise import (
    INF,
    NAN,
    Pair,
    absolute,
    clipped,
    copysign,
    everywhere,
    polynomial,
    product,
    quick_sum,
    root,
    scaled,
    two_sum,
    widened,
)
from symgrad.native.vectors import Value


def _small(name: str, x: Value, short: bool = False) -> Value:
    """An odd function near 0: x + x z P(z)."""
    z = x * x
    return x.code.fma(x * z, polynomial(name, z, short), x)


def _half_exp(x: Value, short: bool) -> Pair:
    """exp(x) / 2 as a pair."""
    if short:
        return exp(x, True) * 0.5, everywhere(0.0, x)
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
    large = code.select(a < 1.0, large, code.select(a.equals(1.0), INF, everywhere(NAN, x)))
    return copysign(code.select(a < 0.5, _small("atanh", a, short), large), x)
