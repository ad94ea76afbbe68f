"""Special functions whose values are SciPy's or our own, at hard points and in their limits.

The numbers are mpmath's, with 40 digits.
"""

import importlib.util
import math

import numpy as np
import pytest
from scipy import special as scipy

import symgrad as sg
from tests.helpers import close, each, generator, same, value

S = sg.special
INF, NAN = math.inf, math.nan

UNARY = {
    "expi": (-20, 20), "exp1": (0.01, 50), "ellipk": (-50, 1), "ellipe": (-50, 1),
    "gamma": (-9.9, 30), "entr": (-1, 5),
}  # fmt: skip
BINARY = {
    "jv": ((0, 20), (0, 30)), "yv": ((0, 8), (0.5, 30)), "iv": ((0, 20), (0, 30)),
    "kv": ((0, 8), (0.5, 30)), "rel_entr": ((0, 5), (0, 5)), "kl_div": ((0, 5), (0, 5)),
    "beta": ((0.1, 9), (0.1, 9)), "gammaincinv": ((0.1, 9), (0, 1)),
    "gammainccinv": ((0.1, 9), (0, 1)), "stdtr": ((0.5, 30), (-9, 9)),
    "stdtrit": ((0.5, 30), (0.01, 0.99)),
}  # fmt: skip
TERNARY = dict.fromkeys(("betaincc", "betaincinv", "betainccinv"), ((0.2, 9), (0.2, 9), (0, 1)))
EXACT = {
    "expi": [(1e-10, -22.448635264938925), (1.0, 1.8951178163559368), (50.0, 1.058563689713169e20),
             (-0.5, -0.5597735947761608), (-30.0, -3.0215520106888124e-15)],
    "exp1": [(1e-10, 22.448635265138925), (0.5, 0.5597735947761608), (5.0, 0.0011482955912753257),
             (200.0, 6.885226106307636e-90)],
    "ellipk": [(-1e6, 0.00829404781659062), (-2.0, 1.17142008414677), (1e-9, 1.5707963271875958),
               (0.5, 1.8540746773013719)],
    "ellipe": [(-1e6, 1000.0043970243486), (-2.0, 2.184438142746201), (1e-9, 1.5707963264021976),
               (0.5, 1.3506438810476755), (1 - 1e-9, 1.0000000056239635)],
    "jv": [(0.5, 1e-8, 7.978845608028654e-05), (2.5, 0.3, 0.0026053018556586676),
           (20.0, 5.0, 2.7703300521289416e-11), (1.3, 200.0, -0.04150497800737109)],
    "yv": [(0.5, 1e-8, -7978.845608028653), (2.5, 0.3, -49.30221696995155),
           (20.0, 5.0, -593396529.6914321), (1.3, 200.0, 0.038216396449999225)],
    "iv": [(0.5, 1e-8, 7.978845608028654e-05), (2.5, 0.3, 0.0026390148935902732),
           (20.0, 5.0, 5.024239357971806e-11), (1.3, 200.0, 2.0310661346052446e85)],
    "kv": [(0.5, 1e-8, 12533.141247823589), (2.5, 0.3, 75.15214016437488),
           (20.0, 5.0, 482700052.06214845), (1.3, 200.0, 1.2308584919679847e-88)],
    "hyp2f1": [(0.5, 1.5, 2.5, -30.0, 0.2564612690598226), (0.3, -2.0, 1.2, 0.99, 0.6497875),
               (2.0, 3.0, 4.5, 0.95, 23.271996848948962),
               (1.0, 1.0, 2.0, -0.5, 0.8109302162163288)],
    "eval_legendre": [(30, 0.3, 0.14665500486868718), (200, 0.999, -0.08228633696193599),
                      (7, -1.0, -1.0), (5, 1.7, 72.01248874999999)],
    "multigammaln": [(1.5, 2, 0.4515827052894549), (20.25, 5, 191.42332485030207),
                     (1e5, 3, 3153847.574641352)],
    "kl_div": [(1.0, 1.0 + 2**-30, 4.3368086872493727e-19), (0.3, 0.33, 0.0014069460587025444),
               (0.3, 0.28, 0.0006978614460854327), (2.0, 1e-5, 22.412155291060348),
               (1e-8, 3.0, 2.99999979480707)],
    "gamma": [(0.1, 9.51350769866873), (-0.5, -3.544907701811032), (-3.7, 0.2516439959024227),
              (30.5, 4.822696933490909e31), (170.0, 4.269068009004705e304)],
}  # fmt: skip
LAMBERT = [
    (-0.3678, 0, -0.9793607149578305), (-0.3678, -1, -1.0209272394094255),
    (-0.36787944, 0, -0.9999201984841515), (-0.36787944, -1, -1.0000798057615958),
    (-0.367879441171442, 0, -0.9999999582487163), (-0.2, 0, -0.25917110181907377),
    (-0.2, -1, -2.5426413577735265), (-0.25, 0, -0.3574029561813889),
    (-0.25, -1, -2.15329236411035), (-1e-300, -1, -697.3227762954601), (1e-300, 0, 1e-300),
    (0.5, 0, 0.35173371124919584), (10.0, 0, 1.7455280027406994), (1e300, 0, 684.2472086297608),
]  # fmt: skip
SLOPES = {
    "ellipk": [(-1e3, 6.067690323165636e-05), (-2.0, 0.1108185091411757),
               (0.999, 499.1639931300771),
               (0.0, 0.39269908169872414), (1e-9, 0.39269908214051064), (0.5, 0.847213084793979)],
    "ellipe": [(-1e3, -0.01577708735936138), (-2.0, -0.2532545146498578),
               (0.0, -0.39269908169872414),
               (1e-9, -0.3926990818459863), (0.5, -0.5034307962536965),
               (0.999, -1.9214022871450709)],
}  # fmt: skip
AIRY = {
    -20.0: (-0.1764061270779847, 0.8928628567364713, -0.20013930932265134, -0.7914290338395364),
    -2.3: (0.02670633305735697, 0.700033662876576, -0.45492823439436497, -0.005811059307051358),
    0.0: (0.3550280538878172, -0.2588194037928068, 0.6149266274460007, 0.4482883573538264),
    5.0: (0.00010834442813607442, -0.0002474138908684625, 657.7920441711711, 1435.8190802179824),
}
SICI = {
    1e-8: (1e-8, -17.843465079050834), 0.5: (0.4931074180430667, -0.1777840788066129),
    30.0: (1.5667565400303511, -0.033032417282071146),
    1e4: (1.570891545385962, -3.0551916724485215e-05),
}  # fmt: skip
# Of stdtr: degrees of freedom, t, the value, its derivative by the degrees of freedom.
STUDENT = [
    (0.7, -30.0, 0.028738377617670178, -0.09916846633331576),
    (2.5, 0.4, 0.6395903655346385, 0.005761084382893981),
    (3.0, 0.001, 0.5003675525152695, 9.732986293627774e-06),
    (30.0, -8.0, 3.1329112378503795e-09, -7.572895987424506e-10),
    (8.0, 2.8284271247461903, 0.9888980479297613, 0.001393962605774202),
    (10000.0, -3.0, 0.0013532240949988331, -3.3282403426193825e-10),
    (2e6, -3.0, None, -8.309770201006025e-15),
]


def slope(function, *at, by=0):
    """The derivative of a function by an argument, at numbers, which both modes agree on."""
    xs = [sg.placeholder(f"x{i}", ()) for i in range(len(at))]
    y = function(*xs)
    modes = [sg.grad(y, xs[by]), sg.jvp(y, xs[by], 1.0)]
    back, forth = sg.compile(xs, modes)(*at)
    np.testing.assert_allclose(back, forth, 1e-12)
    return float(back)


# ---- values ---------------------------------------------------------------------------------


@each("dtype", ["float32", "float64"])
@each("name", [*UNARY, *BINARY, *TERNARY])
def test_values_are_scipys(name, dtype):
    ranges = (UNARY | BINARY | TERNARY)[name]
    ranges = ranges if isinstance(ranges[0], tuple) else (ranges,)
    xs = [generator(f"{name} {r}").uniform(*r, 300).astype(dtype) for r in ranges]
    found = value(getattr(S, name)(*xs))
    assert found.dtype == dtype
    expected = getattr(scipy, name)(*(x.astype(float) for x in xs))
    tolerance = 4e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found, expected, tolerance, tolerance)


@each("name", EXACT)
def test_values_at_hard_points(name):
    for *at, expected in EXACT[name]:
        np.testing.assert_allclose(float(getattr(S, name)(*at)), expected, 1e-13)


def test_functions_of_several_results():
    for x, expected in AIRY.items():
        np.testing.assert_allclose([float(y) for y in S.airy(x)], expected, 3e-14)
    for x, expected in SICI.items():
        np.testing.assert_allclose([float(y) for y in S.sici(x)], expected, 3e-14)


def test_the_real_branches_of_lambertw():
    for x, k, expected in LAMBERT:
        np.testing.assert_allclose(float(S.lambertw(x, k)), expected, 1e-15)
    x = np.concatenate([generator("w").uniform(-1 / np.e, 3, 500), np.geomspace(1e-5, 1e9, 200)])
    np.testing.assert_allclose(value(S.lambertw(x)), scipy.lambertw(x).real, 1e-12)
    y = generator("v").uniform(-1 / np.e, 0, 500)
    np.testing.assert_allclose(value(S.lambertw(y, k=-1)), scipy.lambertw(y, -1).real, 1e-12)
    narrow = value(S.lambertw(y.astype("float32"), -1))
    assert narrow.dtype == "float32"
    exact = scipy.lambertw(y.astype("float32").astype(float), -1).real
    np.testing.assert_allclose(narrow, exact, 1e-6)


def test_lambertw_at_its_ends():
    at = [0.0, -0.0, INF, NAN, -1.0, -np.exp(-1)]
    same(value(S.lambertw(at)), np.array([0.0, -0.0, INF, NAN, NAN, -1.0]))
    same(np.signbit(value(S.lambertw(at)))[:2], np.array([False, True]))
    same(value(S.lambertw(at, k=-1)), np.array([-INF, -INF, NAN, NAN, NAN, -1.0]))
    same(value(S.lambertw(np.float32(-np.exp(-1)))), np.float32(-1))


@pytest.mark.parametrize(
    "name", ["betaln", "beta", "betaincinv", "betainccinv", "stdtr", "stdtrit"]
)
def test_slopes_of_float32_are_those_of_float64(name):
    rng = generator(name)
    a, b = (10 ** rng.uniform(low, 3, 60) for low in (-2, -5))
    p = np.append(rng.uniform(size=40), [1e-7] * 10 + [1 - 1e-7] * 10)
    args = {"b": (a, b, p), "s": (a, rng.normal(size=60) if name == "stdtr" else p)}[name[0]]
    args = [v.astype("float32") for v in args[: 2 if name in ("betaln", "beta") else 3]]
    found = []
    for dtype in ("float32", "float64"):
        xs = [sg.placeholder(f"x{i}", (60,), dtype) for i in range(len(args))]
        slopes = sg.grad(sg.sum(getattr(S, name)(*xs)), xs)
        found.append(sg.compile(xs, slopes)(*(v.astype(dtype) for v in args)))
    for single, double in zip(*found, strict=True):
        held = (np.abs(double) < 1e35) & (np.abs(double) > 1e-35)
        assert held.sum() > 30
        np.testing.assert_allclose(single[held], double[held], 2e-5)


def test_slopes_of_inverses_where_they_round_to_1():
    x = [sg.placeholder(n, ()) for n in "aby"]
    slopes = sg.compile(x, sg.grad(S.betainccinv(*x), x))(*map(np.asarray, (3.0, 0.4, 1e-9)))
    # The inverse is 1 - z with z**b * (1 + …) / (b * beta(a, b)) = y, and z = 8e-24.
    z = (0.4e-9 * scipy.beta(0.4, 3.0)) ** 2.5
    by_log = scipy.digamma(3.4) - scipy.digamma([3.0, 0.4])
    np.testing.assert_allclose(slopes[2], -z / 0.4e-9, 1e-12)
    np.testing.assert_allclose(slopes[0], z * by_log[0] / 0.4, 1e-9)
    by_b = (by_log[1] + np.log(z) - 1 / 0.4) / 0.4
    np.testing.assert_allclose(slopes[1], z * by_b, 1e-9)


def test_slopes_of_bessel_functions_that_overflow():
    def slope(function, at):
        x = sg.placeholder("x", ())
        return float(sg.compile([x], sg.grad(function(x), x))(np.asarray(at)))

    assert slope(S.i1, 720.0) == slope(S.i1, -720.0) == np.inf
    assert slope(lambda x: S.yv(2.5, x), 1e-300) == slope(lambda x: S.yv(0.5, x), 0.0) == np.inf
    assert slope(lambda x: S.jv(-1.5, x), 0.0) == np.inf
    assert slope(lambda x: S.jv(-2.5, x), 0.0) == -np.inf
    np.testing.assert_allclose(slope(lambda x: S.iv(2.0, x), 713.5), 1.1012374998360224e308, 1e-12)


@pytest.mark.parametrize("name", ["rel_entr", "kl_div"])
def test_divergences_at_the_ends_are_scipys(name):
    a, b = map(np.ravel, np.meshgrid([0.0, -0.0, 1.0, -1.0, 0.3, NAN], [0.0, 1.0, -1.0, 0.3, NAN]))
    found = value(getattr(S, name)(a, b))
    np.testing.assert_allclose(found, getattr(scipy, name)(a, b), 1e-14)


def test_legendre_polynomials_are_scipys():
    x = generator("legendre").uniform(-1, 1, 200)
    for n in (0, 1, 2, 9, 60):
        np.testing.assert_allclose(
            value(S.eval_legendre(n, x)), scipy.eval_legendre(n, x), 1e-12, 1e-13
        )
        found = value(S.eval_gegenbauer(n, 1.75, x))
        np.testing.assert_allclose(found, scipy.eval_gegenbauer(n, 1.75, x), 1e-11, 1e-11)


# ---- derivatives ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_of_elliptic_integrals_do_not_cancel(name):
    for at, expected in SLOPES[name]:
        np.testing.assert_allclose(slope(getattr(S, name), at), expected, 1e-13)


def test_derivatives_in_the_limit():
    assert slope(S.lambertw, 0.0) == 1
    assert slope(S.lambertw, INF) == 0
    assert slope(S.entr, 0.0) == INF
    assert slope(lambda x: S.rel_entr(x, 0.5), 0.0) == -INF
    assert slope(S.rel_entr, 0.0, 0.0, by=1) == 0
    assert slope(lambda x: S.jv(1, x), 0.0) == 0.5
    assert slope(lambda x: S.jv(2.5, x), 0.0) == 0
    assert slope(lambda x: S.iv(1, x), 0.0) == 0.5
    assert slope(lambda x: S.sici(x)[0], 0.0) == 1
    assert slope(lambda x: S.eval_legendre(6, x), 1.0) == 21
    assert slope(lambda x: S.eval_legendre(6, x), -1.0) == -21
    assert [slope(S.gammaincinv, 2.0, 0.0, by=0), slope(S.stdtrit, 3.0, 0.5, by=0)] == [0, 0]
    np.testing.assert_allclose(
        slope(S.lambertw, -0.3678),
        1 / (np.exp(-0.9793607149578305) * (1 - 0.9793607149578305)),
        1e-12,
    )


def test_the_derivative_of_lambertw_near_the_branch_point():
    for k, sign in ((0, 1), (-1, -1)):
        found = slope(lambda x, k=k: S.lambertw(x, k), -0.36787944)
        np.testing.assert_allclose(found, 1 / (-0.36787944 * (1 + 1 / dict(_branches())[k])), 1e-9)
        assert np.sign(found) == sign


def _branches():
    return [(k, w) for x, k, w in LAMBERT if x == -0.36787944]


@pytest.mark.parametrize(("df", "t", "expected", "by_df"), STUDENT)
def test_student_has_both_gradients(df, t, expected, by_df):
    np.testing.assert_allclose(slope(S.stdtr, df, t), by_df, 1e-10 if df < 1e4 else 2e-9)
    if expected is None:
        return
    np.testing.assert_allclose(float(S.stdtr(df, t)), expected, 1e-12)
    density = slope(S.stdtr, df, t, by=1)
    if abs(expected - 0.5) < 0.49:
        np.testing.assert_allclose(slope(S.stdtrit, df, expected), -by_df / density, 2e-9)
        np.testing.assert_allclose(slope(S.stdtrit, df, expected, by=1), 1 / density, 1e-9)


@pytest.mark.parametrize(
    ("df", "p", "expected"),
    [
        (0.05, 1e-8, -1.0876044676001736e153),
        (0.3, 1e-50, -1.3958120070683172e165),
        (2.5, 1e-300, -8.76543788227999e119),
        (2.5, 0.0, -INF),
        (2.5, 1.0, INF),
        (1e6, 0.0, -INF),
        (40.0, 1e-300, -186620412.89710914),
    ],
)
def test_students_quantiles_far_out(df, p, expected):
    np.testing.assert_allclose(float(S.stdtrit(df, p)), expected, 1e-11)


def test_bessel_functions_of_an_order_that_is_an_int():
    x = sg.placeholder("x", ("N",))
    y = S.jv(np.arange(3)[:, None], x)
    at = np.array([0.5, 2.0])
    found, back = sg.compile([x], [y, sg.grad(sg.sum(y), x)])(at)
    close(found, scipy.jv(np.arange(3)[:, None], at), 1e-14)
    close(back, scipy.jvp(np.arange(3)[:, None], at).sum(0), 1e-13)


# ---- refusals, programs ---------------------------------------------------------------------


def test_a_derivative_that_is_not_known_says_so_even_beside_one_that_is():
    x = sg.placeholder("x", ())
    for y in (S.jv(x, x), S.hyp2f1(1.0, x, 2.0, 0.5 * x), sg.exp(S.kv(2 * x, 3.0))):
        for disconnected in ("raise", "zero"):
            with pytest.raises(sg.GradientError, match=r"is not known[\s\S]*stop_gradient"):
                sg.grad(y, x, disconnected=disconnected)
    held = S.jv(sg.stop_gradient(x), x)
    close(slope(lambda x: S.jv(sg.stop_gradient(x), x), 1.5), scipy.jvp(1.5, 1.5), 1e-13)
    assert held.shape == ()


def test_what_is_no_branch_or_degree_is_refused():
    x = sg.placeholder("x", ())
    for k in (1, 0.0, True, x):
        with pytest.raises(sg.ArgumentError, match="branch k"):
            S.lambertw(x, k)
    for n in (-1, 1.5, True, x):
        with pytest.raises(sg.ArgumentError, match="degree"):
            S.eval_legendre(n, x)
    with pytest.raises(sg.ArgumentError, match="no gradient flows"):
        S.eval_gegenbauer(2, x, x)
    for d in (0, 1.5, x):
        with pytest.raises(sg.ArgumentError, match="dimension d"):
            S.multigammaln(x, d)


def test_saved_programs_import_scipy_and_are_the_same(tmp_path):
    x = sg.placeholder("x", ("N",))
    y = sum(S.airy(x)) + sum(S.sici(x)) + S.lambertw(x) + S.eval_legendre(4, x) + S.kl_div(x, 2 * x)
    program = sg.compile([x], [y, sg.grad(sg.sum(y), x)])
    at = np.linspace(0.2, 2, 7)
    expected = program(at)
    path = program.save_source(tmp_path / "saved_scipys.py")
    spec = importlib.util.spec_from_file_location("saved_scipys", path)
    saved = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(saved)
    for found, wanted in zip(saved.Program()(at), expected, strict=True):
        same(found, wanted)


def test_float16_and_ints_become_floats():
    for dtype, wanted in (("float16", "float32"), ("int8", "float32"), ("int64", "float64")):
        for name in ("gamma", "expi", "ellipk", "lambertw"):
            assert getattr(S, name)(np.zeros(2, dtype)).dtype == wanted


def test_differences_of_what_is_large_are_exact():
    """From mpmath with 30 digits."""
    x = 1e9
    found = [slope(S.i0e, x), slope(S.i1e, x), slope(S.betaln, 1e8, 2.0), slope(S.betaln, 2.0, 1e8)]
    found += [slope(S.i0e, -50.0), slope(S.i1e, -50.0)]
    exact = [-6.307831307415837e-15, -6.307831297954090e-15, -1.99999999e-8]
    np.testing.assert_allclose(found[:3], exact[:3], 1e-12)
    gap = scipy.digamma(2.0) - scipy.digamma(1e8 + 2)
    np.testing.assert_allclose(found[3], gap, 1e-14)
    h = 1e-3
    for name, mine in (("i0e", found[4]), ("i1e", found[5])):
        f = getattr(scipy, name)
        np.testing.assert_allclose(mine, (f(-50 + h) - f(-50 - h)) / (2 * h), 1e-7)
    np.testing.assert_allclose(float(S.rel_entr(3.0, 3.0000001)), -9.999999816967548e-08, 1e-14)


def test_the_series_of_a_slope_meet_its_other_form():
    """At 60 that of Bessel functions and at 10 that of digamma change over."""
    for f, at in ((lambda x: S.i0e(x), 60.0), (lambda x: S.betaln(x, 3.0), 10.0)):
        near, past = slope(f, np.nextafter(at, 0)), slope(f, np.nextafter(at, 100))
        np.testing.assert_allclose(near, past, 1e-12)


def test_densities_of_large_parameters_keep_their_digits_in_float32():
    """The slopes of the incomplete functions, against those in float64."""
    for f, at in ((S.gammainc, (1e4, 1e4)), (S.betaincc, (1e4, 1e4, 0.5))):
        for i in range(len(at)):
            xs = [sg.placeholder(f"x{k}", (), "float32") for k in range(len(at))]
            narrow = sg.compile(xs, sg.grad(f(*xs), xs[i]))(*map(np.float32, at))
            np.testing.assert_allclose(float(narrow), slope(f, *at, by=i), 1e-5)
