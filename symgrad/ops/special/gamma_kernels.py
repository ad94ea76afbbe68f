"""Kernels about the gamma function that need no SciPy: the derivatives of its logarithm, and those
of the incomplete gamma and beta functions by their parameters.

They compute in float64. As those in `kernels.py` their source is copied into programs; a name that
begins with an underscore is a part that several of them share.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, var-annotated"

import numpy as np


def _given(y, dtype, out):
    """The result where it is wanted, in its dtype."""
    if out is None:
        return np.asarray(y).astype(dtype)[()]
    np.copyto(out, y, casting="same_kind")
    return out


def _factorial(first, end):
    """The product of the integers from the first up to before the end, 1 if there are none."""
    y = 1.0
    for i in range(first, end):
        y *= i
    return y


def _bernoulli(x, order):
    """The sum of B(2k) * (2k + order - 1)! / (2k)! / x**(2k) over k from 1 on, for large x."""
    numbers = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
    y = 0.0
    for k in range(len(numbers), 0, -1):
        rising = _factorial(2 * k + 1, 2 * k + order)
        falling = _factorial(2 * k + order, 2 * k + 1)
        y = (y + numbers[k - 1] * rising / falling) / (x * x)
    return y


def _psi(x, order):
    """The derivative of digamma of an order, for x > 0.

    By the recurrence up to x >= 8 + order and the asymptotic series, DLMF 5.11.2 and 5.15.8.
    """
    least, factorial = 8 + order, _factorial(1, order + 1)
    steps = np.zeros(np.shape(x))
    for _ in range(least):
        small = np.less(x, least)
        steps += np.divide(1, x, out=np.zeros(np.shape(x)), where=small) ** (order + 1)
        x = np.where(small, x + 1, x)
    tail = _bernoulli(x, order)
    leading = factorial / order / x**order if order else -np.log(x)
    y = leading + 0.5 * factorial / x ** (order + 1) + tail / x**order + factorial * steps
    return y if order % 2 else -y


def _cotangent_slope(x, order):
    """The derivative of pi * cot(pi * x) of an order, for abs(x) <= 0.5.

    It is a polynomial in the cotangent, whose slope is -1 - cot**2: its terms have one sign.
    """
    coefficients = np.array([0.0, 1])
    for _ in range(order):
        slope = coefficients[1:] * np.arange(1, coefficients.size)
        coefficients = -np.pi * np.append(slope, [0, 0])
        coefficients[2:] -= np.pi * slope
    # From 0.5 on down, so that the root at a half is one exactly.
    rest = 0.5 - np.abs(x)
    cotangent = np.where(rest < 0.25, np.copysign(np.tan(np.pi * rest), x), 1 / np.tan(np.pi * x))
    return np.pi * np.polynomial.polynomial.polyval(cotangent, coefficients)


def polygamma(x, order, out=None):
    """The derivative of digamma of an order; for x < 0 by reflection, DLMF 5.15.6.

    At a pole it is the limit: infinite for an odd order; for an even one that from the side of the
    zero's sign, and NaN at -1, -2, …, since those from the two sides differ.
    """
    z = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        below = np.less(z, 0)
        inside = np.where(np.equal(z, 0), 1, z)
        y = _psi(np.where(below, 1 - inside, inside), order)
        part = np.where(below, z - np.rint(z), 0.25)
        y = np.where(below, (y if order % 2 == 0 else -y) - _cotangent_slope(part, order), y)
        odd = order % 2 == 1
        y = np.where(np.equal(z, 0), np.inf if odd else -np.copysign(np.inf, z), y)
        y = np.where(np.equal(part, 0), np.inf if odd else np.nan, y)
        y = np.where(np.equal(z, -np.inf), np.nan, y)
    return _given(y, np.asarray(x).dtype, out)


def binet(x, order, out=None):
    """The derivative of an order of what Stirling's formula lacks, for x > 0.

    By the recurrence binet(x) = binet(x + 1) + (x + 1/2) * log(1 + 1 / x) - 1 up to x >= 10 + order
    and the asymptotic series DLMF 5.11.1.
    """
    z, least = np.asarray(x, np.float64), 10 + order
    with np.errstate(all="ignore"):
        z = np.where(np.greater(z, 0), z, np.nan)
        steps = np.zeros(z.shape)
        for _ in range(least):
            steps += np.where(np.less(z, least), _binet_step(z, order), 0)
            z = np.where(np.less(z, least), z + 1, z)
        y = _bernoulli(z, order - 1) / z ** (order - 1.0)
    return _given(steps + (-y if order % 2 else y), np.asarray(x).dtype, out)


def _binet_step(x, order):
    """The derivative of (x + 1/2) * log(1 + 1 / x) - 1 of an order."""
    logs = [np.log1p(1 / x)]
    for m in range(1, order + 1):
        logs.append(_log_slope(x + 1, m) - _log_slope(x, m))
    if order == 0:
        return (x + 0.5) * logs[0] - 1
    return (x + 0.5) * logs[order] + order * logs[order - 1]


# ---- derivatives by parameters --------------------------------------------------------------


def _choose(n, k):
    """The binomial coefficient."""
    y = 1
    for i in range(k):
        y = y * (n - i) // (i + 1)
    return y


def _exponential(logs, order):
    """The derivatives of exp(f) over it, up to an order (i, j), from those of f."""
    y = {(0, 0): 1.0}
    for i in range(order[0] + 1):
        for j in range(order[1] + 1):
            by = (1, 0) if i else (0, 1)
            m, n = i - by[0], j - by[1]
            if i or j:
                y[i, j] = sum(
                    _choose(m, p) * _choose(n, q) * logs[p + by[0], q + by[1]] * y[m - p, n - q]
                    for p in range(m + 1)
                    for q in range(n + 1)
                )
    return y


def _leibniz(a, b, order):
    """The derivative of a product of an order (i, j), from those of its factors."""
    return sum(
        _choose(order[0], p) * _choose(order[1], q) * a[p, q] * b[order[0] - p, order[1] - q]
        for p in range(order[0] + 1)
        for q in range(order[1] + 1)
    )


def _log_slope(x, n):
    """The derivative of log(x) of order n."""
    return (-1) ** (n - 1) * _factorial(1, n) / x**n


def _series(ratio, slopes, order, count):
    """The derivatives of sums of products of ratio(k), up to an order, for `count` elements.

    `slopes(k, i, j)` is the derivative of log(ratio(k)) of order (i, j), for a row of indices k; an
    element is a row, too. It is NaN for an element that takes more terms than there is time for.
    """
    start, row, most = 0.0, 64, 2**18
    indices = [(i, j) for i in range(order[0] + 1) for j in range(order[1] + 1)]
    logs = {index: np.zeros((count, 1)) for index in indices}
    total = {index: np.full(count, float(index == (0, 0))) for index in indices}
    term, live = np.ones((count, 1)), np.ones(count, np.bool_)
    while start < most:
        k = np.arange(start, min(start + row, most))
        # Most need few terms; what needs many takes them in longer rows, which are fewer steps.
        start, row = start + row, min(2 * row, max(64, most // count))
        term = term[:, -1:] * np.cumprod(ratio(k), axis=1)
        for index in indices:
            steps = np.broadcast_to(slopes(k, *index), term.shape)
            logs[index] = logs[index][:, -1:] + np.cumsum(steps, axis=1)
        parts = {index: term * part for index, part in _exponential(logs, order).items()}
        for index in indices:
            total[index] += np.where(live, np.sum(parts[index], axis=1), 0)
        size = sum(np.abs(part[:, -1]) for part in parts.values())
        live = live & (size > 1e-17 * total[0, 0])
        if not live.any():
            return total
    return {index: np.where(live, np.nan, sums) for index, sums in total.items()}


def _gamma_below(a, x, n):
    """Where x is not much larger than a: by the series of positive terms DLMF 8.11.4."""
    row = a[:, None]
    total = _series(
        lambda k: x[:, None] / (row + 1 + k),
        lambda k, i, j: -_log_slope(row + 1 + k, i) if i else 0.0,
        (n, 0),
        a.size,
    )
    logs = {(i, 0): -_psi(a + 1, i - 1) + (np.log(x) if i == 1 else 0) for i in range(1, n + 1)}
    return x / a * _leibniz(_exponential(logs, (n, 0)), total, (n, 0))


def _gamma_above(a, x, n):
    """Where x is larger: by Legendre's continued fraction, DLMF 8.9.2, from its end."""
    count = 300
    f = [x + 2 * count + 1 - a, -np.ones(a.shape), *np.zeros((n, *a.shape))]
    for k in range(count, 0, -1):
        r = _quotient([k * (a - k), float(k)], f, n)
        r[0], r[1] = r[0] + x + 2 * k - 1 - a, r[1] - 1
        f = r
    parts = {(i, 0): part for i, part in enumerate(_quotient([1.0], f, n))}
    logs = {(i, 0): -_psi(a, i - 1) + (np.log(x) if i == 1 else 0) for i in range(1, n + 1)}
    return -x * _leibniz(_exponential(logs, (n, 0)), parts, (n, 0))


def _quotient(a, b, n):
    """The derivatives of a quotient up to an order, at least 1, from those of its parts."""
    y = []
    for m in range(max(n, 1) + 1):
        rest = sum(_choose(m, i) * b[i] * y[m - i] for i in range(1, m + 1))
        y.append(((a[m] if m < len(a) else 0.0) - rest) / b[0])
    return y


def _pieces(part):
    """The indices at which it is true, so many at a time that their series need little memory."""
    at = np.flatnonzero(part)
    return [at[i : i + 1024] for i in range(0, at.size, 1024)]


def _gamma_large(a, x, n):
    """Where a is large, order 1: what Temme's expansion DLMF 8.12.8 comes to, but for 1 / a."""
    past = (x - a) / a
    logarithm = np.where(np.abs(past) < 0.5, np.log1p(past), np.log(x / a))
    slope = -x / a * np.where(past == 0, 1, logarithm / past)
    return slope if n == 1 else np.full(a.shape, np.nan)


def gamma_slope(a, x, order, out=None):
    """The derivative by a, of an order from 1 on, of gammainc(a, x), over that by x.

    For a > 1e8 the first is right to 2e-9, and the others are NaN.
    """
    dtype, shape = np.result_type(a, x), np.broadcast(a, x).shape
    a, x = (np.ravel(v).astype(np.float64) for v in np.broadcast_arrays(a, x))
    y = np.where(np.equal(x, 0), 0, np.nan)
    with np.errstate(all="ignore"):
        inside = (a > 0) & (x > 0) & (x < np.inf)
        large = inside & (a > 1e8)
        high = inside & ~large & (x > a + 3 * np.sqrt(a) + 3)
        low = inside & ~large & ~high
        for part, found in ((low, _gamma_below), (high, _gamma_above), (large, _gamma_large)):
            for at in _pieces(part):
                y[at] = found(a[at], x[at], order)
    return _given(y.reshape(shape), dtype, out)


def _beta_below(a, b, x, log_x, log_y, order):
    """Where x is not larger than the mean: by the series of positive terms DLMF 8.17.8."""
    first, second = a[:, None], b[:, None]

    def slopes(k, i, j):
        of_a = _log_slope(first + 1 + k, i) if i and not j else 0.0
        return (_log_slope(first + second + k, i + j) if i + j else 0.0) - of_a

    def log(i, j):
        y = _psi(a + b, i + j - 1) + (log_x * i + log_y * j if i + j == 1 else 0)
        if not j:
            y = y - _psi(a, i - 1) - _log_slope(a, i)
        return y - (0 if i else _psi(b, j - 1))

    total = _series(
        lambda k: (first + second + k) / (first + 1 + k) * x[:, None], slopes, order, a.size
    )
    logs = {(i, j): log(i, j) for i in range(order[0] + 1) for j in range(order[1] + 1) if i + j}
    return x * (1 - x) / a * _leibniz(_exponential(logs, order), total, order)


def beta_slope(a, b, x, order, out=None):
    """The derivative of betainc(a, b, x), `order` times by a and by b, over that by x."""
    dtype, shape = np.result_type(a, b, x), np.broadcast(a, b, x).shape
    a, b, x = (np.ravel(v).astype(np.float64) for v in np.broadcast_arrays(a, b, x))
    y = np.where((x == 0) | (x == 1), 0, np.nan)
    with np.errstate(all="ignore"):
        inside = (a > 0) & (b > 0) & (x > 0) & (x < 1)
        high = inside & (x > (a + 1) / (a + b + 2))
        for at in _pieces(inside & ~high):
            z = x[at]
            y[at] = _beta_below(a[at], b[at], z, np.log(z), np.log1p(-z), order)
        for at in _pieces(high & (1 - x < 1)):  # of 1 itself the series has no end
            # betainc(a, b, x) = 1 - betainc(b, a, 1 - x)
            z, logs = 1 - x[at], (np.log1p(-x[at]), np.log(x[at]))
            y[at] = -_beta_below(b[at], a[at], z, *logs, order[::-1])
    return _given(y.reshape(shape), dtype, out)
