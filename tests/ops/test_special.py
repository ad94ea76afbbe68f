"""Special functions: values against SciPy and mathematical identities, tails, gradients."""

import importlib.util
import math

import numpy as np
import pytest
from scipy import special as scipy

import symgrad as sg
from symgrad.ir.errors import DtypeError, UnsupportedError
from tests.helpers import close, each, generator, same, value

S = sg.special
NAN, INF = np.nan, np.inf
RANGES = {
    "erf": (-5, 5), "erfc": (-5, 9), "erfcx": (-5, 500), "ndtr": (-8, 8), "log_ndtr": (-300, 5),
    "ndtri": (0, 1), "erfinv": (-1, 1), "erfcinv": (0, 2), "logit": (0, 1), "expit": (-30, 30),
    "gammaln": (-20, 20), "digamma": (-9.9, 20), "i0": (-9, 9), "i1": (-9, 9), "i0e": (-900, 900),
    "i1e": (-900, 900), "j0": (-20, 20), "j1": (-20, 20),
}  # fmt: skip
PAIRS = ("gammainc", "gammaincc", "betaln")
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1e-30, -1e-30, 1.0, -1.0, 2.0, 0.5, 50.0, -50.0]
OWN = ("erf", "erfc", "erfcx", "ndtr", "log_ndtr", "ndtri", "erfinv", "erfcinv", "logit")

# Of gammainc(2.5, 1.5) and gammaincc(2.5, 20) by a, of betainc(2.5, 0.5, 0.3) by a and b.
EXACT = -0.25217540042362785, 3.499890642552943e-07, -0.025922222220768485, 0.0499451682147513


def derivative(y, x, at):
    """The derivative of y at the numbers given, as a program."""
    return sg.compile([x], sg.grad(sg.sum(y), x))(np.asarray(at, float))


def slope(name, *at, by):
    """A partial derivative of a function at numbers."""
    xs = [sg.placeholder(f"x{i}", ()) for i in range(len(at))]
    return float(sg.compile(xs, sg.grad(getattr(S, name)(*xs), xs[by]))(*at))


# ---- values ---------------------------------------------------------------------------------


@each("dtype", ["float32", "float64"])
@each("name", RANGES)
def test_values_are_scipys(name, dtype):
    x = generator(name).uniform(*RANGES[name], 500).astype(dtype)
    found = value(getattr(S, name)(x))
    assert found.dtype == dtype
    expected = getattr(scipy, name)(x.astype(float))
    tolerance = 2e-6 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found, expected, tolerance, tolerance * (name not in OWN))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PAIRS)
def test_values_of_two_are_scipys(name, dtype):
    a, b = generator(name).uniform(0.1, 20, (2, 300)).astype(dtype)
    same(value(getattr(S, name)(a, b)), getattr(scipy, name)(a, b))
    # SciPy's float32 is off in the fourth digit here, or inf.
    x = np.asarray(0.3, dtype)
    same(value(S.betainc(a, b, x)), scipy.betainc(a, b, x, dtype=float).astype(dtype))
    large = np.asarray([100.0, 31, 1000], dtype), np.asarray([100.0, 970, 31], dtype)
    same(value(S.betaincc(*large, x)), scipy.betaincc(*large, x, dtype=float).astype(dtype))


@each("name", OWN)
@each("dtype", ["float32", "float64"])
def test_special_values_are_scipys_with_the_right_sign_of_zero(name, dtype):
    x = np.array(SPECIAL, dtype)
    found, expected = value(getattr(S, name)(x)), getattr(scipy, name)(x)
    np.testing.assert_allclose(found, expected, 1e-6)
    if name in ("erf", "erfinv"):
        same(np.signbit(found), np.signbit(x) | (np.isnan(found) & np.signbit(found)))


def test_tails_are_exact_to_the_last_digits():
    """From mpmath with 40 digits."""
    found = [float(S.ndtr(-30.0)), float(S.erfc(25.0)), float(S.log_ndtr(-1000.0))]
    exact = [4.906713927148187e-198, 8.300172571196523e-274, -500007.82669481216]
    np.testing.assert_allclose(found, exact, 1e-15)
    np.testing.assert_allclose(float(S.erfcx(1e10)), 5.641895835477563e-11, 1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_inverses_invert(dtype):
    p = np.linspace(0.001, 0.999, 301).astype(dtype)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(value(S.ndtr(S.ndtri(p))), p, 20 * eps)
    np.testing.assert_allclose(value(S.erf(S.erfinv(p))), p, 20 * eps)
    np.testing.assert_allclose(value(S.erfc(S.erfcinv(p))), p, 20 * eps)
    np.testing.assert_allclose(value(S.expit(S.logit(p))), p, 20 * eps)


@pytest.mark.parametrize("name", ["ndtr", "erf", "log_ndtr"])
def test_many_elements_are_computed_in_chunks(name):
    wide = generator(name).normal(0, 3, (2, 70_002))
    for x in (wide[:, ::2], wide[0], wide.T[:40_000]):
        node = sg.placeholder("x", x.shape)
        found = sg.compile([node], getattr(S, name)(node))(x)
        np.testing.assert_allclose(found, getattr(scipy, name)(x), 1e-12)


def test_numpys_bessel_function_of_a_node_is_a_node():
    close(float(np.i0(sg.constant(1.5))), np.i0(1.5), 1e-14)


def test_what_is_less_precise_becomes_float32():
    for dtype, wanted in (("float16", "float32"), ("int8", "float32"), ("int64", "float64")):
        assert S.erf(np.ones(2, dtype)).dtype == wanted
        assert S.gammaln(np.ones(2, dtype)).dtype == wanted
    with pytest.raises(DtypeError, match="astype"):
        S.erf(np.ones(2, bool))


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_polygamma_is_scipys(n):
    x = generator("polygamma").uniform(0.01, 40, 300)
    np.testing.assert_allclose(value(S.polygamma(n, x)), scipy.polygamma(n, x), 1e-11)
    np.testing.assert_allclose(value(S.zeta(n + 1.5, x)), scipy.zeta(n + 1.5, x))


@pytest.mark.parametrize("s", [2.0, 3.0, 7.0])
def test_zeta_far_below_zero_is_scipys_and_needs_no_longer(s):
    near = np.array([-1000.25, -1234.5, -99999.75, -2000.0, -3.5, 2.0])
    np.testing.assert_allclose(value(S.zeta(s, near)), scipy.zeta(s, near), 1e-14, 1e-13)
    # Of a sum in both directions next to nothing is left out.
    far = value(S.zeta(s, np.array([-1e12 - 0.5])))
    both = scipy.zeta(s, 0.5) * (1 + (-1) ** s)
    np.testing.assert_allclose(far, [both], rtol=1e-10, atol=1e-10)


def test_digamma_at_its_poles_and_infinities():
    at = np.array([0.0, -0.0, -1.0, -2.0, INF, NAN])
    same(value(S.digamma(at)), scipy.digamma(at))


BELOW = [-0.5, -0.3, -1.7, -3.25, -9.9, -1e-3, -5.5]
# By mpmath, to 30 digits; a row an order.
POLYGAMMA_BELOW = [
    [0.03648997397857652, 2.113309779635399, -1.4857174995110567, 4.46627587235028,
     -7.32663757284758, 999.4211381978913, 1.792911330399933],
    [8.934802200544679, 13.945160267805722, 14.632201633884014, 19.474085068082154,
     103.259759109148, 1000001.6473414317, 9.7033198653394],
    [-0.82879664423432, 67.63908119988317, -69.0345495501142, 123.95521103942203,
     -1998.66888464069, 1999999997.5893795, -0.0275879107068768],
    [193.40909103400244, 766.6198904191685, 768.8497345301308, 1558.508802818279,
     60014.25012104584, 6000000000006.519, 194.8090484045005],
    [-3.4742498266672253, 9731.83495623352, -9738.980600591567, 24481.546101215874,
     -2399973.835266041, 2.3999999999999972e+16, -0.004525930280322061],
]  # fmt: skip


@pytest.mark.parametrize(("n", "expected"), [*enumerate(POLYGAMMA_BELOW)])
def test_polygamma_below_zero(n, expected):
    at = np.array(BELOW)
    np.testing.assert_allclose(value(S.polygamma(n, at)), expected, 5e-14)
    x = sg.placeholder("x", at.shape)
    y = S.gammaln(x)
    for _ in range(n + 1):
        y, tangent = sg.grad(sg.sum(y), x), sg.jvp(y, x, np.ones(at.shape))
    for found in (y, tangent):
        np.testing.assert_allclose(sg.compile([x], found)(at), expected, 5e-14)


@pytest.mark.parametrize("name", ["gammaln", "digamma", "betaln"])
def test_gradients_below_zero(name):
    x = np.array([-0.4, -1.3, -2.6, 1.5])
    args = (x, np.full(4, 2.37)) if name == "betaln" else (x,)
    sg.testing.check_grads(getattr(S, name), *args)


def test_polygamma_at_its_poles_and_infinities():
    at = np.array([0.0, -0.0, -1.0, -2.0, -INF, INF, NAN])
    same(value(S.polygamma(1, at)), np.array([INF, INF, INF, INF, NAN, 0, NAN]))
    same(value(S.polygamma(2, at)), np.array([-INF, INF, NAN, NAN, NAN, -0.0, NAN]))
    same(value(S.polygamma(3, at)), np.array([INF, INF, INF, INF, NAN, 0, NAN]))


# ---- gradients ------------------------------------------------------------------------------


def finite(function, at, by, h=1e-4):
    """A derivative of SciPy's function, by differences of sixth order."""

    def moved(k):
        return function(*(a + k * h * (i == by) for i, a in enumerate(at)))

    weights = (45, -9, 1)
    return sum(w * (moved(k) - moved(-k)) for k, w in enumerate(weights, 1)) / (60 * h)


@pytest.mark.parametrize("by", [0, 1])
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gammas_have_both_gradients(name, by):
    for a, x in ((0.3, 0.1), (0.5, 4.0), (2.0, 2.0), (5.0, 30.0), (60.0, 55.0), (300.0, 320.0)):
        expected = finite(getattr(scipy, name), (a, x), by, 1e-3 * min(a, x))
        assert math.isclose(slope(name, a, x, by=by), expected, rel_tol=1e-6, abs_tol=1e-11)


@pytest.mark.parametrize("by", [0, 1, 2])
def test_betainc_has_all_three_gradients(by):
    for a, b, x in ((0.3, 0.4, 0.1), (2.0, 3.0, 0.5), (2.0, 3.0, 0.97), (90.0, 40.0, 0.7)):
        expected = finite(scipy.betainc, (a, b, x), by, 1e-3 * min(a, b, x, 1 - x))
        assert math.isclose(slope("betainc", a, b, x, by=by), expected, rel_tol=1e-6, abs_tol=1e-10)


def test_derivatives_by_parameters_are_exact():
    """From mpmath with 50 digits."""
    assert math.isclose(slope("gammainc", 2.5, 1.5, by=0), EXACT[0], rel_tol=1e-13)
    assert math.isclose(slope("gammaincc", 2.5, 20.0, by=0), EXACT[1], rel_tol=1e-12)
    assert math.isclose(slope("betainc", 2.5, 0.5, 0.3, by=0), EXACT[2], rel_tol=1e-13)
    assert math.isclose(slope("betainc", 2.5, 0.5, 0.3, by=1), EXACT[3], rel_tol=1e-13)


@pytest.mark.parametrize("z", [-3.0, -0.3, 0.0, 1.0, 3.0])
def test_derivatives_by_large_parameters(z):
    """On both sides of the size at which the way of computing changes."""
    for a in (0.9999e8, 1.0001e8):
        past = z / math.sqrt(a)
        x = a * (1 + past)
        found = slope("gammainc", a, x, by=0) / slope("gammainc", a, x, by=1)
        assert math.isclose(found, -1 - past / 2 + past**2 / 6, rel_tol=1e-8)


def test_derivatives_where_no_series_ends():
    """NaN, and soon, rather than a number which is none."""
    assert slope("gammainc", 1e30, 1e30, by=0) <= 0
    assert slope("gammainc", 1e300, 3.0, by=0) == 0
    assert math.isnan(slope("betainc", 1e20, 1e20, 0.5, by=0))


def test_third_derivatives_by_a_parameter():
    a = sg.placeholder("a", ())
    y = S.gammainc(a, 2.0)
    for _ in range(2):
        y = sg.grad(y, a)
    third = sg.compile([a], [y, sg.grad(y, a)])
    up, down = third(2.0 + 1e-5)[0], third(2.0 - 1e-5)[0]
    close(third(2.0)[1], (up - down) / 2e-5, 1e-7)


def test_gradients_at_the_ends():
    x = sg.placeholder("x", 2)
    same(derivative(S.gammainc(2.0, x), x, [0.0, -0.0]), np.zeros(2))
    same(derivative(S.log_ndtr(x), x, [INF, -0.0])[:1], np.zeros(1))
    close(derivative(S.log_ndtr(x), x, [-1000.0, -40.0]), [1000.000999998, 40.0249688472], 1e-11)
    same(derivative(S.i1(x), x, [0.0, -0.0]), np.full(2, 0.5))
    same(derivative(S.j1(x), x, [0.0, -0.0]), np.full(2, 0.5))
    same(derivative(S.i0e(x), x, [0.0, -0.0]), np.zeros(2))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("float64", 1e-13)])
def test_derivatives_of_scaled_tails_do_not_cancel(dtype, tolerance):
    """From their asymptotic series."""
    x = sg.placeholder("x", 2, dtype)
    at = np.array([1e4, 1e7], dtype)
    exact = -(1 - 1.5 / at.astype(float) ** 2) / (math.sqrt(math.pi) * at.astype(float) ** 2)
    found = sg.compile([x], sg.grad(sg.sum(S.erfcx(x)), x))(at)
    np.testing.assert_allclose(found, exact, tolerance)
    second = sg.compile([x], sg.grad(sg.sum(sg.grad(sg.sum(S.log_ndtr(x)), x)), x))(-at)
    np.testing.assert_allclose(second, 1 / at.astype(float) ** 2 - 1, tolerance * 5)


def test_the_greeks_of_an_option_are_short():
    """The density is one exponential: nothing of the kernel is differentiated."""
    x = sg.placeholder("x", 5)
    first = sg.grad(sg.sum(S.ndtr(x)), x)
    source = sg.compile([x], [first, sg.grad(sg.sum(first), x)]).source
    assert "def ndtr" not in source
    assert source.count(" exp(") == 1


# ---- programs, errors -----------------------------------------------------------------------


def test_a_saved_program_with_scipys_kernels_says_so(tmp_path):
    a, x = sg.placeholder("a", 4), sg.placeholder("x", 4)
    y = S.gammainc(a, x) + S.erf(x)
    program = sg.compile([a, x], [y, *sg.grad(sg.sum(y), [a, x])])
    feeds = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 2.0, 5.0, 9.0])
    expected = program(*feeds)
    path = program.save_source(tmp_path / "saved_special.py")
    assert "import scipy.special\n" in program.source
    assert "It needs NumPy and SciPy and nothing else." in path.read_text()
    spec = importlib.util.spec_from_file_location("saved_special", path)
    saved = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(saved)
    for found, wanted in zip(saved.Program()(*feeds), expected, strict=True):
        same(found, wanted)


def test_without_scipy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr("symgrad.ops.special.scipys.find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match=r"pip install 'symgrad\[special\]'"):
        S.gammaln(np.ones((7, 1, 3), "uint16"))  # of a type that nobody has asked for before
    close(float(S.digamma(1.0)), -np.euler_gamma)


def test_what_is_no_number_is_refused():
    x = sg.placeholder("x", ())
    with pytest.raises(DtypeError, match="zeta is a number"):
        S.zeta(x, 1.0)
    for order in (-1, 1.5, True):
        with pytest.raises(DtypeError, match="order of polygamma"):
            S.polygamma(order, x)


@pytest.mark.parametrize("a", [0.5, 1.0, 2.0])
def test_the_ends_are_the_same_for_every_parameter(a):
    for name, at in (("gammainc", (a, 0.0)), ("gammaincc", (a, 0.0)), ("betainc", (a, 0.5, 0.0)),
                     ("betainc", (0.5, a, 1.0))):  # fmt: skip
        assert [slope(name, *at, by=by) for by in range(len(at) - 1)] == [0] * (len(at) - 1)
