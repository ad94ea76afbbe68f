"""Kernels of entropies, Lambert's W and polynomials, that need no SciPy.

As those in `ops/kernels.py` their source is copied into programs.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, var-annotated"

import numpy as np


def _with_limits(y, a, b, at_zero, out):
    """A relative entropy y of a and b with its values where a is 0, and outside the domain."""
    y = np.where(np.equal(a, 0) & np.greater_equal(b, 0), at_zero, y)
    y = np.where(np.less(a, 0) | np.less(b, 0), np.inf, y)
    y = np.where(np.greater(a, 0) & np.equal(b, 0), np.inf, y)
    y = np.where(np.isnan(a) | np.isnan(b), np.nan, y)
    if out is None:
        return y.astype(np.result_type(a, b))[()]
    np.copyto(out, y, casting="same_kind")
    return out


def rel_entr(a, b, out=None):
    """a * log(a / b), and its limit where a is 0."""
    with np.errstate(all="ignore"):
        past = np.divide(np.subtract(a, b), b)
        y = np.where(np.abs(past) < 0.5, np.log1p(past), np.log(np.divide(a, b)))
        y = np.multiply(a, y)
        return _with_limits(y, a, b, 0, out)


def kl_div(a, b, out=None):
    """a * log(a / b) - a + b; without cancellation where the two are close."""
    a, b = np.asarray(a), np.asarray(b)
    with np.errstate(all="ignore"):
        past = np.divide(np.subtract(a, b), b)
        near = np.abs(past) < 0.1
        # b * ((1 + t) * log(1 + t) - t), whose series begins with t**2 / 2.
        t, series = np.where(near, past, 0), np.zeros(())
        for k in range(18, 1, -1):
            series = (1 if k % 2 == 0 else -1) / (k * (k - 1)) + t * series
        far = np.subtract(np.add(np.multiply(a, np.log(np.divide(a, b))), b), a)
        y = np.where(near, b * t * t * series, far)
        return _with_limits(y, a, b, b, out)


def lambertw(x, k, out=None):
    """The real y with y * exp(y) = x, of the branch 0 or -1.

    Near -1 / e by the series DLMF 4.13.6, elsewhere by the iteration of Fritsch, Shafer and
    Crowley, Algorithm 443, Comm. ACM 16 (1973).
    """
    x = np.asarray(x)
    z = x.astype(np.float64)
    with np.errstate(all="ignore"):
        # x + 1 / e, of which the first number is the nearest and the second the rest.
        past = np.maximum((z + 0.36787944117144233) - 1.2428753672788363e-17, 0)
        p = np.sqrt(2 * np.e * past)
        p = p if k == 0 else -p
        series = np.zeros(())
        for c in (
            0.002440877991143982666, -0.003811298034891999227, 0.006014543252956117861,
            -0.009616892024299431707, 0.01563563253233392122, -0.02598471487360376249,
            0.04450231481481481481, -0.07962962962962962963, 0.1527777777777777778,
            -0.3333333333333333333, 1.0, -1.0,
        ):  # fmt: skip
            series = c + p * series
        if k == 0:
            one = np.log1p(np.maximum(z, 0))
            guess = np.where(z < 0.5, np.where(z < -0.25, series, z / (1 + z)), 0)
            guess = np.where(z < 0.5, guess, one * (1 - np.log1p(one) / (2 + one)))
        else:
            one = np.log(-z)
            guess = np.where(z < -0.25, series, one - np.log(-one))
        y = guess
        for _ in range(4):
            rest = np.log(z / y) - y
            q = 2 * (1 + y) * (1 + y + 2 / 3 * rest)
            y = y * (1 + rest / (1 + y) * (q - rest) / (q - 2 * rest))
        y = np.where(np.abs(p) < 0.03, series, y)
        y = np.where(z == 0, z if k == 0 else -np.inf, y)
        y = np.where(np.isposinf(z) & (k == 0), z, y)
        # The number nearest to -1 / e is that of the branch point, also below it.
        y = np.where(z < x.dtype.type(-0.36787944117144233), np.nan, y)
        y = np.where(np.isnan(z) | ((z > 0) & (k == -1)), np.nan, y)
    if out is None:
        return y.astype(x.dtype)[()]
    np.copyto(out, y, casting="same_kind")
    return out


def gegenbauer(x, n, alpha, out=None):
    """Gegenbauer's polynomial, by its recurrence, DLMF 18.9.1."""
    x = np.asarray(x)
    z = x.astype(np.float64)
    before, y = np.zeros(x.shape), np.ones(x.shape)
    with np.errstate(all="ignore"):
        for k in range(n):
            before, y = y, (2 * (k + alpha) * z * y - (k + 2 * alpha - 1) * before) / (k + 1)
    if out is None:
        return y.astype(x.dtype)[()]
    np.copyto(out, y, casting="same_kind")
    return out
