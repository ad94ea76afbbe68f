"""The logarithm of the gamma function and its derivative.

Between 0.8 and 2.3 they are polynomials times what is zero there, x - 1 and x - 2 or x less the
root of digamma, so that every digit is right next to a zero. From 8 on it is Stirling's series
(DLMF 5.11.1 and 5.11.2), whose tail is a polynomial in 1 / x². Between these the argument is raised
by 6, below them by 1 (5.5.1); below 0 by reflection (5.5.3 and 5.5.4): next to the zeros that are
there no digit is kept but those of the terms. Sums are of pairs, since their terms cancel.
"""

from __future__ import annotations

from symgrad.native import coefficients
from symgrad.native.circular import cosine, sine
from symgrad.native.exponential import log_parts
from symgrad.native.precise import (
    FORMATS,
    INF,
    NAN,
    Pair,
    absolute,
    copysign,
    only_where,
    polynomial,
    product,
    quick_sum,
    two_sum,
    widened,
)
from symgrad.native.vectors import Value

NEAR, FAR, STEPS = (0.8, 2.3), 8.0, 6.0
MOST = 2.5599833278516375e305  # log(gamma(x)) is infinite above, but for a rounding


def _times(a: Pair, b: Pair) -> Pair:
    found, low = product(a[0], b[0])
    code = found.code
    return quick_sum(found, low + code.fma(a[0], b[1], a[1] * b[0]))


def _plus(a: Pair, *more: Pair) -> Pair:
    """The sum of pairs of any sizes."""
    high, low = a
    for b in more:
        high, error = two_sum(high, b[0])
        low = (low + b[1]) + error
    return high, low


def _negative(a: Pair) -> Pair:
    return -a[0], -a[1]


def _constant(x: Value, parts: tuple[float, ...]) -> Pair:
    return x.code.constant("f8", parts[0]), x.code.constant("f8", parts[1])


def _single(x: Value) -> Pair:
    return x, x.code.constant("f8", 0)


def _reciprocal(x: Value) -> Pair:
    found = 1.0 / x
    low = x.code.fma(-found, x, 1.0) * found
    return found, x.code.select(absolute(low) < INF, low, 0.0)


def _where(mask: Value, a: Pair, b: Pair) -> Pair:
    code = mask.code
    return code.select(mask, a[0], b[0]), code.select(mask, a[1], b[1])


def _log(x: Pair, short: bool) -> Pair:
    """The logarithm of a pair above 0."""
    ln2 = FORMATS["f8"].ln2
    k, (high, low) = log_parts(x[0], short)
    found, error = quick_sum(k * ln2[0], high)
    return quick_sum(found, k.code.fma(k, ln2[1], low) + (error + x[1] / x[0]))


class _Regions:
    """Where an argument above 0 lies, and what is made of it there."""

    def __init__(self, x: Value) -> None:
        code = x.code
        self.x, self.is_small, self.is_near = x, x < NEAR[0], x < NEAR[1]
        self.is_far = x >= FAR
        # The series is of z, x or x + 6, which x * (x + 1) ... (x + 5) makes up for. In the place
        # of what others compute there is 3, so that nothing overflows.
        inner = code.select(self.is_near | self.is_far, 3.0, x)
        z = two_sum(inner, code.constant("f8", STEPS))
        self.z = _where(self.is_far, _single(x), z)
        self.z = _where(self.is_near, _single(code.constant("f8", FAR)), self.z)
        five = product(inner, 5.0)
        self.inner = inner
        self.y = _plus(product(inner, inner), five)
        self.rising = _times(_times(self.y, self._raised(4.0)), self._raised(6.0))

    def _raised(self, by: float) -> Pair:
        high, low = quick_sum(self.y[0], self.y[0].code.constant("f8", by))
        return high, low + self.y[1]

    def reciprocals(self) -> Pair:
        """1 / x + 1 / (x + 1) + ... + 1 / (x + 5), from the slope of their product."""
        code = self.x.code
        twice, low = quick_sum(2.0 * self.inner, code.constant("f8", 5.0))
        part = _plus(_times(self.y, _constant(self.x, (3.0, 0.0))), _constant(self.x, (20.0, 0.0)))
        top = _plus(_times(part, self.y), _constant(self.x, (24.0, 0.0)))
        top, bottom = _times(top, (twice, low)), self.rising
        found = top[0] / bottom[0]
        rest = code.fma(-found, bottom[0], top[0]) + (top[1] - found * bottom[1])
        return found, rest / bottom[0]

    def polynomial(self, name: str, t: Value, short: bool) -> Pair:
        """A fitted polynomial, of which the constant is the largest term."""
        last = coefficients.POLYNOMIALS[name, "f4" if short else "f8"][-1]
        part, error = product(t, polynomial(name, t, short, without_last=1))
        high, low = quick_sum(last, part)
        return high, low + (error + (0.0 if short else coefficients.LOST[name]))


def gammaln(x: Value, short: bool = False) -> Value:
    """log(abs(gamma(x)))."""
    if x.kind == "f4":
        return gammaln(widened(x), True).converted("f4")
    code, size = x.code, absolute(x)
    place = _Regions(size)
    # Near 1 and 2, of size or of size + 1.
    t = code.select(place.is_small, size - 0.5, size - 1.5)
    first = code.select(place.is_small, size, size - 1.0)
    second = code.select(place.is_small, size - 1.0, size - 2.0)
    raised = _times(product(first, second), place.polynomial("gammaln", t, short))
    argument = _where(place.is_small, _single(size), place.z)
    logarithm = _log(argument, short)
    zero = _single(code.constant("f8", 0))
    near = _plus(_where(place.is_small, _negative(logarithm), zero), raised)
    z, r = place.z, 1.0 / place.z[0]
    series = _times(z, _plus(logarithm, _constant(x, (-1.0, 0.0))))
    half = logarithm[0] * -0.5, logarithm[1] * -0.5
    tail = r * polynomial("gammaln_tail", r * r, short)
    lower = _where(place.is_far, zero, _negative(_log(place.rising, short)))
    rest = _constant(x, coefficients.HALF_LOG_TWO_PI)
    far = _plus(series, half, (rest[0], rest[1] + tail), lower)
    high, low = _where(place.is_near, near, far)
    below = x < 0.0

    def reflected() -> tuple[Value, ...]:
        part = size - code.call("roundeven", size)
        angle, error = product(part, coefficients.HALF_PI_SUM[0])
        error = code.fma(part, coefficients.HALF_PI_SUM[1], error)
        s, c = sine(angle, error, short), cosine(angle, error, short)
        # Of size + 1 where that is small, for a square may underflow.
        up = _single(code.select(place.is_small, 1.0, size))
        whole = _times(product(absolute(s) * 2.0, c), up)
        logarithm = _log((code.select(whole[0] > 0.0, whole[0], 1.0), whole[1]), short)
        less = _where(place.is_small, raised, (high, low))
        pole = _constant(x, coefficients.LOG_PI)
        found = _plus(pole, _negative(logarithm), _negative(less))
        # What is tiny is not seen beside its logarithm, whatever its sign.
        found = _where(size < 2.0**-60, (high, low), found)
        return code.select(part.equals(0.0), INF, found[0]), found[1]

    high, low = only_where(below, (high, low), reflected)
    found = high + low
    found = code.select((size > MOST) | size.equals(0.0) | high.equals(INF), INF, found)
    return code.select(x.is_nan() | x.equals(-INF), x, found)  # at -inf as SciPy has it


def digamma(x: Value, short: bool = False) -> Value:
    """The derivative of gammaln."""
    if x.kind == "f4":
        return digamma(widened(x), True).converted("f4")
    code, size = x.code, absolute(x)
    place, below = _Regions(size), x < 0.0
    root = coefficients.DIGAMMA_ROOT
    up = code.select(place.is_small, code.constant("f8", 1.0 - root[0]), -root[0])
    t = two_sum(size, up)
    t = t[0], t[1] - root[1]
    near = _times(t, place.polynomial("digamma", t[0], short))
    r = 1.0 / place.z[0]
    w = r * r
    tail = code.fma(w, -polynomial("digamma_tail", w, short), r * -0.5)
    zero = _single(code.constant("f8", 0))
    logarithm = _log(place.z, short)
    lower = _where(place.is_far, zero, _negative(place.reciprocals()))
    far = _plus(lower, logarithm, (tail, tail * 0.0))
    # Near is of size + 1 where that is small; reflected it is to be of size + 1 everywhere.
    over = _reciprocal(size)
    step = _where(place.is_small, _negative(over), zero)
    step = _where(below, _where(place.is_small, zero, over), step)
    high, low = _plus(step, _where(place.is_near, near, far))

    def reflected() -> tuple[Value, ...]:
        part = size - code.call("roundeven", size)
        z = part * part
        pole = _reciprocal(part)
        more = _plus(pole, _single(-part * polynomial("cotangent", z, short)), (high, low))
        return code.select(part.equals(0.0), NAN, more[0]), more[1]

    high, low = only_where(below, (high, low), reflected)
    found = code.select(absolute(high) < INF, high + low, high)
    found = code.select(x.equals(INF), x, found)
    found = code.select(x.equals(0.0), copysign(INF, -x), found)
    return code.select(x.is_nan(), x, found)
