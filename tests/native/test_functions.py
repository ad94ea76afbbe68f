"""The functions in machine code: at most 2 units in the last place, and right at special values."""

import numpy as np
import pytest

from symgrad.native import circular, exponential, gamma, gaussian, hyperbolic, powers
from symgrad.native.engine import host
from tests.native.mapped import mapped

pytest.importorskip("llvmlite")
MOST_ULPS = 2.0
COUNT = 20_000

BOTH = (-1e300, 1e300)
# Of each function: what computes it, NumPy's name, and where it is neither 0 nor inf.
ONE = {
    "exp": (exponential.exp, "exp", (-745, 709.7)),
    "exp2": (exponential.exp2, "exp2", (-1074, 1023.9)),
    "expm1": (exponential.expm1, "expm1", (-745, 709.7)),
    "log": (exponential.log, "log", (0, 1e300)),
    "log2": (exponential.log2, "log2", (0, 1e300)),
    "log10": (exponential.log10, "log10", (0, 1e300)),
    "log1p": (exponential.log1p, "log1p", (-1, 1e300)),
    "cbrt": (powers.cbrt, "cbrt", BOTH),
    "sinh": (hyperbolic.sinh, "sinh", (-710, 710)),
    "cosh": (hyperbolic.cosh, "cosh", (-710, 710)),
    "tanh": (hyperbolic.tanh, "tanh", (-25, 25)),
    "asinh": (hyperbolic.asinh, "arcsinh", BOTH),
    "acosh": (hyperbolic.acosh, "arccosh", (1, 1e300)),
    "atanh": (hyperbolic.atanh, "arctanh", (-1, 1)),
    "sin": (circular.sin, "sin", BOTH),
    "cos": (circular.cos, "cos", BOTH),
    "tan": (circular.tan, "tan", BOTH),
    "asin": (circular.asin, "arcsin", (-1, 1)),
    "acos": (circular.acos, "arccos", (-1, 1)),
    "atan": (circular.atan, "arctan", BOTH),
}
TWO = {
    "pow": (powers.power, "power"),
    "hypot": (powers.hypot, "hypot"),
    "atan2": (circular.atan2, "arctan2"),
}
KINDS = ("float32", "float64")
wide = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="longdouble is too short")


def ulps(found, exact):
    """The errors, in units in the last place of what is exact (given in a wider dtype)."""
    kind = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(exact)[1] - 1, kind.minexp) - kind.nmant
        errors = np.abs(found - exact) / np.ldexp(np.ones_like(exact), exponent)
        rounded = exact.astype(found.dtype)
    beyond = ~np.isfinite(rounded)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    return np.where(beyond, np.where(same, 0, np.inf), errors)


def samples(dtype, low, high, seed=0):
    """Numbers of a range: of all magnitudes, evenly, and near the ends and the ordinary values."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**63, COUNT, dtype=np.uint64) << 1 | rng.integers(
        0, 2, COUNT, dtype=np.uint64
    )
    size = np.dtype(dtype).itemsize
    any_bits = (bits >> (64 - 8 * size)).astype(f"u{size}").view(dtype)
    limit = float(np.finfo(dtype).max) / 4
    low, high = max(low, -limit), min(high, limit)
    even = rng.uniform(low, high, COUNT).astype(dtype)
    usual = rng.standard_normal(COUNT).astype(dtype)
    near = (1 + rng.standard_normal(COUNT) * 10.0 ** -rng.uniform(0, 8, COUNT)).astype(dtype)
    turns = (np.arange(1, 200) * np.pi / 2).astype(dtype)
    found = np.concatenate([any_bits, even, usual, 8 * usual, 100 * usual, near, -near, turns])
    with np.errstate(invalid="ignore"):
        return found[(found >= low) & (found <= high) & np.isfinite(found)]


def special(dtype):
    """±0, inf, NaN, the smallest and largest numbers, and integers."""
    kind = np.finfo(dtype)
    plain = [0, 0.5, 1, 2, 3, np.inf, np.nan, kind.tiny, kind.smallest_subnormal, kind.max]
    return np.array([*plain, *(-x for x in plain)], dtype)


def assert_alike(found, expected, given):
    """Both NaN, or near each other and of one sign."""
    with np.errstate(all="ignore"):
        near = np.isclose(found, expected, rtol=1e-5, atol=0)
    fine = (np.isnan(found) & np.isnan(expected)) | (
        near & (np.signbit(found) == np.signbit(expected))
    )
    assert fine.all(), [x[~fine] for x in (*given, found, expected)]


@wide
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name, dtype):
    function, numpy, (low, high) = ONE[name]
    run = mapped(host(), function, dtype)
    x = samples(dtype, low, high)
    assert len(x) > COUNT
    with np.errstate(all="ignore"):
        exact = getattr(np, numpy)(x.astype(np.longdouble))
        assert np.max(ulps(run(x), exact)) <= MOST_ULPS
        given = special(dtype)
        assert_alike(
            run(given), getattr(np, numpy)(given.astype(np.longdouble)).astype(dtype), [given]
        )


@wide
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers(name, dtype):
    function, numpy = TWO[name]
    run = mapped(host(), function, dtype, dtype)
    rng = np.random.default_rng(1)
    x, y = samples(dtype, *BOTH, seed=2), samples(dtype, *BOTH, seed=3)
    size = min(len(x), len(y))
    x, y = x[:size], y[:size]
    if name == "pow":
        x = np.abs(x)
        with np.errstate(all="ignore"):
            range_ = (float(np.log(np.finfo(dtype).max)) + 2) * rng.uniform(-1, 1, size)
            y = (range_ / np.log(x.astype(np.longdouble))).astype(dtype)
    else:
        with np.errstate(over="ignore"):
            y[::2] = x[::2] * rng.uniform(0.2, 5, len(x[::2])).astype(dtype)
    with np.errstate(all="ignore"):
        exact = getattr(np, numpy)(x.astype(np.longdouble), y.astype(np.longdouble))
        assert np.max(ulps(run(x, y), exact)) <= MOST_ULPS
        a, b = map(np.ravel, np.meshgrid(special(dtype), special(dtype)))
        expected = getattr(np, numpy)(a.astype(np.longdouble), b.astype(np.longdouble))
        assert_alike(run(a, b), expected.astype(dtype), [a, b])


def _exact(name, x):
    """Values of the normal distribution's functions, in longdouble, from 40 digits."""
    mp = pytest.importorskip("mpmath").mp
    root = mp.sqrt(2)
    with mp.workdps(40):
        functions = {
            "erf": mp.erf,
            "erfc": mp.erfc,
            "ndtr": lambda v: mp.erfc(-v / root) / 2,
            "log_ndtr": lambda v: (
                mp.log(mp.erfc(-v / root) / 2) if v < 0 else mp.log1p(-mp.erfc(v / root) / 2)
            ),
            "sigmoid": lambda v: 1 / (1 + mp.exp(-v)),
            "softplus": lambda v: mp.log1p(mp.exp(v)),
            "erfcx": lambda v: mp.exp(v * v) * mp.erfc(v) if abs(v) < 60 else _far(mp, v),
            "erfinv": lambda v: _quantile(mp, v, 1 - abs(v)),
            "erfcinv": lambda v: _quantile(mp, 1 - v, min(v, 2 - v)),
            "ndtri": lambda v: root * _quantile(mp, 2 * v - 1, 2 * min(v, 1 - v)),
            "logit": lambda v: mp.log(v / (1 - v)),
            "gammaln": lambda v: (
                mp.log(abs(mp.gamma(v))) if abs(v) < 1000 else mp.re(mp.loggamma(v))
            ),
            "digamma": mp.digamma,
            "log1mexp": lambda v: mp.log(-mp.expm1(v)) if v > -1 else mp.log1p(-mp.exp(v)),
        }
        root = mp.sqrt(2)
        found = [functions[name](mp.mpf(float(v))) for v in x]
        high = np.array([float(v) for v in found])
        low = np.array([float(v - mp.mpf(h)) for v, h in zip(found, high.tolist(), strict=True)])
    return high.astype(np.longdouble) + low


def _far(mp, v):
    """erfcx by its asymptotic series."""
    return (
        sum((-1) ** n * mp.fac2(2 * n - 1) / (2 * v * v) ** n for n in range(9))
        / v
        / mp.sqrt(mp.pi)
    )


def _quantile(mp, x, c):
    """The y with erf(y) = x and erfc(|y|) = c, by Newton's method from SciPy's."""
    y = mp.mpf(float(pytest.importorskip("scipy.special").erfcinv(float(c))))
    for _ in range(2):  # SciPy's has 15 digits, and a step has twice as many as were there
        step = (mp.erfc(y) - c) if c < 0.5 else (abs(x) - mp.erf(y))
        y += step * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return mp.sign(x) * y


# Of each function: where it is tried, and its values at 0, 1, 2, -1, inf and NaN.
inf, nan = np.inf, np.nan
INVERSES = {
    "erfcx": ((-26, 300), (1, 0.427583576155807, 0.25539567631050572, 5.00898008076228, 0, nan)),
    "erfinv": ((-1, 1), (0, inf, nan, -inf, nan, nan)),
    "erfcinv": ((0, 2), (inf, 0, -inf, nan, nan, nan)),
    "ndtri": ((0, 1), (-inf, inf, nan, nan, nan, nan)),
    "logit": ((0, 1), (-inf, inf, nan, nan, nan, nan)),
    "log1mexp": ((-700, 0), (-inf, nan, nan, -0.45867514538708193, nan, nan)),
}


@wide
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", INVERSES)
def test_inverses_and_their_like(name, dtype):
    run = mapped(host(), getattr(gaussian, name, None) or getattr(exponential, name), dtype)
    (low, high), values = INVERSES[name]
    rng = np.random.default_rng(7)
    tiny = 10.0 ** -rng.uniform(0, 36 if dtype == "float32" else 307, 500)
    ends = [low + tiny, high - tiny, tiny, -tiny, 0.5 + tiny, 0.5 - tiny, 2.0**60 * tiny]
    x = np.concatenate([rng.uniform(low, high, 1500), rng.uniform(-1, 1, 300), *ends]).astype(dtype)
    x = x[(x > low) & (x < high)]
    errors = ulps(run(x), _exact(name, x))
    assert np.max(errors) <= MOST_ULPS, (x[np.argmax(errors)], np.max(errors))
    given = np.array([0, 1, 2, -1, inf, nan], dtype)
    assert_alike(np.abs(run(given)), np.abs(np.array(values, dtype)), [given])
    assert (np.signbit(run(given)) == np.signbit(np.array(values)))[~np.isnan(values)].all()


@wide
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", ["gammaln", "digamma"])
def test_gamma_functions(name, dtype):
    """Above 0 everywhere, also next to 1, 2 and 1.46…; below 0 where it is not near a zero."""
    run = mapped(host(), getattr(gamma, name), dtype)
    rng = np.random.default_rng(8)
    tiny = 10.0 ** -rng.uniform(0, 36 if dtype == "float32" else 300, 300)
    near = 10.0 ** -rng.uniform(0, 15, 200) * rng.choice([-1, 1], 200)
    zeros = (1, 2, 1.4616321449683623)
    parts = [
        *(z + near for z in zeros),
        tiny,
        1 / tiny,
        *(rng.uniform(0, b, 700) for b in (3, 9, 40)),
    ]
    x = np.concatenate([*parts, -tiny, -rng.uniform(0, 3, 500), -rng.uniform(0, 40, 500)])
    x = x.astype(dtype)
    x = x[(x > 0) | (x != np.rint(x))]
    exact = _exact(name, x)
    errors = ulps(run(x), exact)
    least = {"gammaln": 0.5, "digamma": 1}[name]
    errors[(x < 0) & (np.abs(exact) < least)] = 0
    assert np.max(errors) <= MOST_ULPS, (x[np.argmax(errors)], np.max(errors))
    given = np.array([0.0, -0.0, 1, 2, -1, -40, inf, -inf, nan, -(2.0**60)], dtype)
    expected = {
        "gammaln": [inf, inf, 0, 0, inf, inf, inf, -inf, nan, inf],
        "digamma": [-inf, inf, -0.5772156649, 0.4227843351, nan, nan, inf, nan, nan, nan],
    }[name]
    assert_alike(run(given), np.array(expected, dtype), [given])
    if dtype == "float64":
        ends = np.array([5e-324, -5e-324, -1e-310, 2.5599833278516375e305, 2.5599833278516387e305])
        small = {"gammaln": [744.440071921381, 744.440071921381, 713.8013788281423]}
        large = {"gammaln": [np.finfo(dtype).max, inf], "digamma": [703.22845411, 703.22845411]}
        found = small.get(name, [-inf, inf, inf]) + large[name]
        np.testing.assert_allclose(run(ends), found, rtol=1e-9)


@wide
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", ["erf", "erfc", "ndtr", "log_ndtr", "sigmoid", "softplus"])
def test_functions_that_numpy_does_not_have(name, dtype):
    function = getattr(gaussian, name, None) or getattr(exponential, name)
    run = mapped(host(), function, dtype)
    rng = np.random.default_rng(4)
    parts = [rng.uniform(-5, 5, 900), rng.uniform(-37, 37, 400), rng.uniform(-1, 1, 400)]
    tiny = rng.standard_normal(200) * 10.0 ** -rng.uniform(0, 30, 200)
    subnormal = [rng.uniform(low, low + 1.5, 100) for low in (-14.5, -38.6)]
    x = np.concatenate([*parts, *subnormal, tiny]).astype(dtype)
    assert np.max(ulps(run(x), _exact(name, x))) <= MOST_ULPS
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30], dtype)
    found = {
        "erf": [0, -0.0, 1, -1, np.nan, 1, -1],
        "erfc": [1, 1, 0, 2, np.nan, 0, 2],
        "ndtr": [0.5, 0.5, 1, 0, np.nan, 1, 0],
        "log_ndtr": [-np.log(2), -np.log(2), -0.0, -np.inf, np.nan, -0.0, None],
        "sigmoid": [0.5, 0.5, 1, 0, np.nan, 1, 0],
        "softplus": [np.log(2), np.log(2), np.inf, 0, np.nan, 1e30, 0],
    }[name]
    last = -1e30 * 5e29 if dtype == "float64" else -np.inf
    expected = np.array([last if v is None else v for v in found], dtype)
    assert_alike(run(ends), expected, [ends])


@pytest.mark.parametrize("dtype", KINDS)
def test_one_lane_and_many_give_the_same_bits(dtype):
    x = samples(dtype, *BOTH)[::37]
    for function, _, _ in ONE.values():
        many, one = (mapped(host(), function, dtype, lanes=n)(x) for n in (16, 1))
        same = (many == one) | (np.isnan(many) & np.isnan(one))
        assert same.all(), function
