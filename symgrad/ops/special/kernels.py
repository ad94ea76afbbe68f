"""Kernels of special functions that need no SciPy.

As those in `kernels.py` their source is copied into programs; a name that begins with an underscore
is a part that several of them share.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, var-annotated"

import numpy as np

# ---- the error function and the normal distribution -----------------------------------------


def _polynomial(coefficients, x, y):
    """Into y, by Horner's rule, the highest power first."""
    np.multiply(x, coefficients[0], y)
    np.add(y, coefficients[1], y)
    for c in coefficients[2:]:
        np.multiply(y, x, y)
        np.add(y, c, y)
    return y


def _in_chunks(part, x, out, scratch):
    """The y into which `part(x, y, work)` writes, called on chunks of elements that fit a cache.

    It reads x before it writes y, which may be the same memory.
    """
    x = np.asarray(x)
    y = np.empty(x.shape, x.dtype) if out is None or not out.flags.c_contiguous else out
    given, found = x.reshape(-1), y.reshape(-1)
    size = min(16384, given.size)
    work = np.empty((4, size), x.dtype) if scratch is None else scratch
    for start in range(0, given.size, 16384):
        piece = given[start : start + size]
        part(piece, found[start : start + size], work[:, : piece.size])
    if out is None or y is out:
        return y[()]
    np.copyto(out, y)
    return out


def tail_coefficients(dtype):
    """Of P, with exp(z**2) * erfc(z) = u * P(1 - 4 * u) and u = 1 / (2 + z), for z >= 0.

    Fitted at Chebyshev's points, after Shepherd and Laframboise, Chebyshev approximation of
    (1 + 2x) exp(x**2) erfc(x), Math. Comp. 36 (1981).
    """
    return (
        (
            2.6547909e-06, 8.4322397e-05, 6.5903077e-05, -0.00059876547, -0.00085404032,
            0.0030583143, 0.0064837099, -0.021503253, -0.036442768, 0.27947145, -0.68716067,
            1.0215827,
        )
        if dtype == np.float32
        else (
            -3.822347457215788e-09, -1.319473460580055e-08, 1.304086922880308e-08,
            1.0291258868715471e-07, 7.200169058415987e-08, -2.994287052044624e-07,
            -6.524921870593344e-07, -3.1441080133588315e-08, 2.061139843058221e-06,
            3.670157081796306e-06, -1.1552847223022853e-06, -1.613421242244046e-05,
            -2.168597065992882e-05, 3.4153276290159144e-05, 0.00014446837659009613,
            3.43705083408138e-05, -0.0006630731533802922, -0.0008372959421321016,
            0.003090612028202657, 0.006479185059054307, -0.021510661888073063,
            -0.03644223150658984, 0.2794720925560295, -0.6871606844138134, 1.021582705242023,
        )
    )  # fmt: skip


def _scaled_tail(z, u, y):
    """Into y exp(z**2) * erfc(z) for z >= 0; into u 1 / (2 + z) and into z 1 - 4 * u."""
    np.reciprocal(np.add(z, 2, u), u)
    np.subtract(1, np.multiply(u, 4, z), z)
    return np.multiply(_polynomial(tail_coefficients(y.dtype), z, y), u, y)


def _bell(a, scale, b, c):
    """Into b exp(scale * a**2) to the last digits, for abs(a) <= 40; `scale` is 1, -1 or -0.5.

    The square is split in one that is exact and a small rest, as in Cody, Rational Chebyshev
    approximations for the error function, Math. Comp. 23 (1969).
    """
    np.multiply(np.rint(np.multiply(a, 64, b), b), 1 / 64, b)
    np.subtract(a, b, c)
    rest = np.multiply(np.add(a, b), c, c)
    np.exp(np.multiply(rest, scale, c), c)
    np.exp(np.multiply(np.multiply(b, b, b), scale, b), b)
    return np.multiply(b, c, b)


def _tail(x, unit, scale, work):
    """exp(scale * x**2) * exp(z**2) * erfc(z) with z = abs(x) * unit, and two arrays to spare."""
    a, b, c, y = work
    np.minimum(np.abs(x, a), 40, out=a)
    _bell(a, scale, b, c)
    _scaled_tail(np.multiply(a, unit, a), c, y)
    return np.multiply(y, b, y), a, b


def _erfc(x, y, work):
    tail, sign, one = _tail(x, 1, -1, work)
    np.copysign(1, x, sign)
    np.multiply(tail, sign, tail)
    np.add(tail, np.subtract(1, sign, one), y)


def erfc(x, out=None, scratch=None):
    """1 - erf(x); for negative x it is 2 - erfc(-x)."""
    return _in_chunks(_erfc, x, out, scratch)


def _ndtr(x, y, work):
    tail, sign, one = _tail(x, 0.7071067811865476, -0.5, work)
    np.copysign(0.5, x, sign)
    np.multiply(tail, sign, tail)
    np.subtract(np.add(sign, 0.5, one), tail, y)


def ndtr(x, out=None, scratch=None):
    """The normal distribution: erfc(-x / sqrt(2)) / 2."""
    return _in_chunks(_ndtr, x, out, scratch)


def _erf(x, y, work):
    tail, a, b = _tail(x, 1, -1, work)
    np.copysign(np.subtract(1, tail, tail), x, tail)
    near = np.less(np.abs(x, a), 0.5)
    if near.any():
        np.multiply(a, a, a)
        coefficients = (
            (0.0047195054, -0.026757944, 0.11282835, -0.37612609, 1.1283792)
            if a.dtype == np.float32
            else (
                1.4726381680017032e-06, -1.4845900896375835e-05, 0.00012053337222877719,
                -0.0008548297798086192, 0.005223977373542183, -0.026866170632921085,
                0.11283791670925457, -0.37612638903183476, 1.1283791670955126,
            )
        )  # fmt: skip
        np.copyto(tail, np.multiply(_polynomial(coefficients, a, b), x, b), where=near)
    np.copyto(y, tail)


def erf(x, out=None, scratch=None):
    """Near 0 x times a polynomial in x**2, elsewhere 1 - erfc(abs(x)) with the sign of x."""
    return _in_chunks(_erf, x, out, scratch)


def _erfcx(x, y, work):
    a, b, c, z = work
    _scaled_tail(np.abs(x, a), c, z)
    below = np.less(x, 0)
    if below.any():
        _bell(np.minimum(np.abs(x, a), 40, out=a), 1, b, c)
        np.subtract(np.multiply(b, 2, b), z, z, where=below)
    np.copyto(y, z)


def erfcx(x, out=None, scratch=None):
    """exp(x**2) * erfc(x); for negative x it is 2 * exp(x**2) - erfcx(-x)."""
    return _in_chunks(_erfcx, x, out, scratch)


def _erfcx_slope(x, y, work):
    a, b, u, z = work
    _scaled_tail(np.abs(x, a), u, z)
    c = tail_coefficients(z.dtype)
    _polynomial([k * v for k, v in zip(range(len(c) - 1, 0, -1), c[:-1], strict=True)], a, b)
    np.multiply(np.multiply(b, u, b), 4 * u, b)
    np.multiply(np.subtract(b, z, z), u, z)
    below = np.less(x, 0)
    if below.any():
        _bell(np.minimum(np.abs(x, a), 40, out=a), 1, b, u)
        np.subtract(z, np.multiply(np.multiply(a, b, b), 4, b), z, where=below)
    np.copyto(y, z)


def erfcx_slope(x, out=None, scratch=None):
    """The derivative of erfcx: that of the polynomial, since x * erfcx(x) cancels for large x."""
    return _in_chunks(_erfcx_slope, x, out, scratch)


def _log_ndtr(x, y, work):
    a, b, c, z = work
    _scaled_tail(np.multiply(np.abs(x, a), 0.7071067811865476, a), c, z)
    np.multiply(z, 0.5, z)
    np.multiply(np.multiply(x, x, a), -0.5, a)
    np.multiply(np.exp(a, b), z, b)
    np.add(np.log(z, z), a, z, where=np.less(x, 0))
    np.log1p(np.negative(b, b), z, where=np.greater_equal(x, 0))
    np.copyto(y, z)


def log_ndtr(x, out=None, scratch=None):
    """log(ndtr(x)): for negative x by the scaled tail, else log1p of what is missing from 1."""
    return _in_chunks(_log_ndtr, x, out, scratch)


# ---- their inverses -------------------------------------------------------------------------


def quantile_coefficients():
    """Of three rational functions, above and below: near 1/2, in the tail, and far out in it.

    Wichura, Algorithm AS 241: the percentage points of the normal distribution, Applied Statistics
    37 (1988).
    """
    return (
        (
            (2509.0809287301227, 33430.57558358813, 67265.7709270087, 45921.95393154987,
             13731.693765509461, 1971.5909503065514, 133.14166789178438, 3.3871328727963665),
            (5226.495278852854, 28729.085735721943, 39307.89580009271, 21213.794301586597,
             5394.196021424751, 687.1870074920579, 42.31333070160091, 1.0),
        ),
        (
            (0.0007745450142783414, 0.022723844989269184, 0.2417807251774506,
             1.2704582524523684, 3.6478483247632045, 5.769497221460691, 4.630337846156546,
             1.4234371107496835),
            (1.0507500716444169e-09, 0.0005475938084995345, 0.015198666563616457,
             0.14810397642748008, 0.6897673349851, 1.6763848301838038, 2.053191626637759, 1.0),
        ),
        (
            (2.0103343992922881e-07, 2.7115555687434876e-05, 0.0012426609473880784,
             0.026532189526576124, 0.29656057182850487, 1.7848265399172913, 5.463784911164114,
             6.657904643501103),
            (2.0442631033899397e-15, 1.421511758316446e-07, 1.8463183175100548e-05,
             0.0007868691311456133, 0.014875361290850615, 0.1369298809227358,
             0.599832206555888, 1.0),
        ),
    )  # fmt: skip


def _quantile(q, tail, y, work):
    """Into y the x with ndtr(x) = 0.5 + q, `tail` being 0.5 - abs(q), by rational functions."""
    a, b, c, d = work
    parts = quantile_coefficients()
    np.subtract(0.180625, np.multiply(q, q, a), a)
    _polynomial(parts[0][0], a, b)
    np.multiply(np.divide(b, _polynomial(parts[0][1], a, c), b), q, y)
    out = np.less(tail, 0.075)
    if out.any():
        np.sqrt(np.negative(np.log(tail, a), a), a)
        for shift, part in ((1.6, parts[1]), (5, parts[2])):
            if shift == 5:
                out = np.logical_and(out, np.greater(a, 5))
            np.subtract(a, shift, c)
            _polynomial(part[0], c, b)
            np.divide(b, _polynomial(part[1], c, d), b)
            np.copyto(b, np.inf, where=np.equal(tail, 0))
            np.copyto(y, np.copysign(b, q, b), where=out)


def _ndtri(x, y, work):
    _quantile(np.subtract(x, 0.5), np.minimum(x, np.subtract(1, x)), y, work)


def ndtri(x, out=None, scratch=None):
    """The y with ndtr(y) = x."""
    return _in_chunks(_ndtri, x, out, scratch)


def _erfinv(x, y, work):
    tail = np.multiply(np.subtract(1, np.abs(x)), 0.5)
    _quantile(np.multiply(x, 0.5), tail, y, work)
    np.multiply(y, 0.7071067811865476, y)


def erfinv(x, out=None, scratch=None):
    """The y with erf(y) = x."""
    return _in_chunks(_erfinv, x, out, scratch)


def _erfcinv(x, y, work):
    tail = np.multiply(np.minimum(x, np.subtract(2, x)), 0.5)
    _quantile(np.multiply(np.subtract(1, x), 0.5), tail, y, work)
    np.multiply(y, 0.7071067811865476, y)


def erfcinv(x, out=None, scratch=None):
    """The y with erfc(y) = x."""
    return _in_chunks(_erfcinv, x, out, scratch)


def logit(p, out=None):
    """log(p / (1 - p)), near 1/2 by the difference from it."""
    far = np.subtract(np.log(p), np.log1p(np.negative(p)))
    away = np.multiply(np.subtract(p, 0.5), 2)
    near = np.less(np.abs(away), 0.5)
    y = np.where(near, np.multiply(2, np.arctanh(np.where(near, away, 0))), far)
    if out is None:
        return y[()]
    np.copyto(out, y)
    return out
