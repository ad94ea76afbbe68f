"""Kernels that take SciPy's values in float64, whose float32 ones are off in the fourth digit.

As those in `kernels.py` their source is copied into programs; a name that begins with an underscore
is a part that several of them share.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import numpy as np


def scipys(name):
    """A ufunc of scipy.special."""
    from scipy import special

    return getattr(special, name)


def optimizers():
    """The module scipy.optimize."""
    from scipy import optimize

    return optimize


def _in_double(name, arrays, out):
    """A ufunc of scipy.special, computed in float64 and rounded to the dtype of the arrays."""
    y = scipys(name)(*arrays, out=out, dtype=np.float64)
    return y.astype(np.result_type(*arrays)) if out is None else y


def betainc(a, b, x, out=None):
    """The incomplete beta function."""
    return _in_double("betainc", (a, b, x), out)


def betaincc(a, b, x, out=None):
    """Its complement."""
    return _in_double("betaincc", (a, b, x), out)


def betaincinv(a, b, y, out=None):
    """Its inverse."""
    return _in_double("betaincinv", (a, b, y), out)


def betainccinv(a, b, y, out=None):
    """The inverse of its complement."""
    return _in_double("betainccinv", (a, b, y), out)


def zeta(q, s, out=None):
    """Hurwitz's zeta function; far below 0 as a sum in both directions without the rest of one.

    SciPy adds up from q to 9 there, which for -1e12 takes hours.
    """
    x, q = np.asarray(s, q.dtype), np.asarray(q)
    far = (q < -1000) & (q > np.floor(q)) & (x > 1) & (x == np.floor(x))
    if not far.any():
        return scipys("zeta")(x, q, out=out)
    below = np.where(far, q, -0.5).astype(np.float64)
    part = below - np.floor(below)
    y, above, rest = (
        scipys("zeta")(np.float64(s), v) for v in (np.where(far, part, q), 1 - part, 1 - below)
    )
    y = np.where(far, y + (-1.0) ** s * (above - rest), y)
    if out is None:
        return y.astype(q.dtype)[()]
    np.copyto(out, y, casting="same_kind")
    return out


def stdtr(df, t, out=None):
    """Student's distribution function."""
    return _in_double("stdtr", (df, t), out)


def stdtrit(df, p, out=None):
    """Its inverse; far out by the first term of the series of the tail.

    SciPy looks for it up to 1e100 only, and gives something else where it is further out.
    """
    a, chance = np.asarray(df, np.float64) / 2, np.asarray(p, np.float64)
    tail = np.minimum(chance, 1 - chance)
    y = scipys("stdtrit")(df, chance)
    with np.errstate(all="ignore"):
        power = (np.log(2 * a * tail) + scipys("betaln")(a, 0.5)) / (-2 * a)
        far = (tail == 0) | ((power > 20) & (tail > 0))
        y = np.where(far, np.copysign(np.sqrt(2 * a) * np.exp(power), chance - 0.5), y)
    if out is None:
        return y.astype(np.result_type(df, p))[()]
    np.copyto(out, y, casting="same_kind")
    return out
