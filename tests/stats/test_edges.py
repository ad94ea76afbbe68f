"""Laws at NaN, at infinity, at the ends of supports; dtypes of all that they give."""

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import close, each, same, value

L = sg.stats
NAN, INF = np.nan, np.inf
LAWS = {
    "Normal": (0.5, 1.5), "Laplace": (0.5, 1.5), "Logistic": (0.5, 1.5), "Cauchy": (0.5, 1.5),
    "Gumbel": (0.5, 1.5), "StudentT": (3.0, 0.5, 1.5), "Exponential": (1.5,), "Gamma": (2.5, 1.5),
    "Chi2": (3.0,), "InverseGamma": (2.5, 1.5), "Weibull": (2.5, 1.5), "Pareto": (2.5, 1.5),
    "HalfNormal": (1.5,), "LogNormal": (0.5, 1.5), "Uniform": (0.5, 1.5), "Beta": (2.5, 3.5),
    "VonMises": (0.5, 1.5), "Bernoulli": (0.25,), "Binomial": (5, 0.25), "Poisson": (2.5,),
    "NegativeBinomial": (3.5, 0.25), "Geometric": (0.25,), "Categorical": ([0.25, 0.75],),
}  # fmt: skip
PARTS = ("log_prob", "prob", "cdf", "sf", "log_cdf", "log_sf", "icdf", "isf")
OTHERS = ("mean", "variance", "stddev", "mode", "entropy")


def asked(law, part, *at):
    """What a law gives, or None if it has none."""
    try:
        found = getattr(law, part)
        return found(*at) if callable(found) else found
    except sg.UnsupportedError:
        return None


@each("name", LAWS)
def test_nan_stays_nan(name):
    law = getattr(L, name)(*LAWS[name])
    for part in PARTS:
        if (found := asked(law, part, np.array([NAN, 1.0]))) is not None:
            same(np.isnan(value(found)), np.array([True, False]))


@each("name", LAWS)
def test_float32_stays_float32(name):
    law = getattr(L, name)(*(np.asarray(p, "float32") for p in LAWS[name]))
    for part in PARTS:
        for x in (1, np.arange(2), np.ones(2, "float32")):
            found = asked(law, part, x)
            assert found is None or found.dtype == "float32", part
    for part in OTHERS:
        found = asked(law, part)
        assert found is None or found.dtype == "float32", part


def test_logarithms_of_tails_that_float32_has_no_room_for():
    tails = [(L.Gamma(50.0), "log_cdf", 0.3), (L.Beta(50.0, 2.0), "log_cdf", 0.01)]
    tails += [(L.InverseGamma(50.0), "log_sf", 0.7), (L.Poisson(0.01), "log_sf", 40.0)]
    tails += [(L.StudentT(50.0), "log_cdf", -1e3), (L.Binomial(99, 0.01), "log_sf", 80.0)]
    for law, part, x in tails:
        single = type(law)(*(np.asarray(p, "float32") for p in law.parameters.values()))
        found = value(getattr(single, part)(np.float32(x)))
        assert found.dtype == "float32"
        assert found < -88
        np.testing.assert_allclose(found, value(getattr(law, part)(x)), 1e-5)


@each("name", [n for n in LAWS if n not in ("VonMises", "Categorical")])
def test_distribution_functions_have_gradients_at_the_ends(name):
    """An interval that ends at infinity, or at the end of a support, has one: censored data."""
    parameters = LAWS[name]
    nodes = [sg.placeholder(f"p{i}", ()) for i in range(len(parameters))]
    x = sg.placeholder("x", (5,))
    law = getattr(L, name)(*nodes)
    ends = getattr(L, name)(*parameters).bounds()
    low, high = (s * INF if e is None else float(e) for e, s in zip(ends, (-1, 1), strict=True))
    at = np.array([-INF, low - 1, low, high, INF])
    for part, below, above in (("cdf", 0, 1), ("sf", 1, 0)):
        y = getattr(law, part)(x)
        slopes = sg.jacobian(y, nodes)
        found, *by = sg.compile([*nodes, x], [y, *slopes])(*map(np.asarray, parameters), at)
        same(found[[0, 1, 4]], np.array([below, below, above], float))
        for slope in by:
            assert np.isfinite(slope).all()
            same(slope[[0, 4]], np.zeros(2))


def test_gradients_by_the_scale_at_the_end_of_a_support():
    s, x = sg.placeholder("s", ()), np.zeros(1)
    for law in (L.Gamma(2.5, s), L.Weibull(2.5, s)):
        found = sg.compile([s], sg.grad(sg.sum(law.log_prob(x)), s))(np.asarray(2.0))
        np.testing.assert_allclose(found, -1.25, 1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_at_the_end_of_a_support_are_their_limits(dtype):
    s = sg.placeholder("s", (), dtype)
    steep = [L.Weibull(0.5, s), L.Gamma(0.5, s)]
    wanted = [(getattr(law, part)(0.0), 0.0) for law in steep for part in ("cdf", "sf", "log_sf")]
    wanted += [(L.Chi2(s).sf(0.0), 0.0), (steep[0].log_prob(0.0), -0.25)]
    wanted += [(L.Exponential(s).log_cdf(0.0), -0.5), (steep[0].log_cdf(0.0), -0.25)]
    wanted += [(L.Weibull(s, 2.0).log_cdf(0.0), -INF), (L.Pareto(s, 1.5).log_cdf(1.5), 0.5)]
    back = [sg.grad(y, s) for y, _ in wanted]
    forth = [sg.jvp(y, [s], [np.ones((), dtype)]) for y, _ in wanted]
    found = sg.compile([s], [*back, *forth])(np.asarray(2.0, dtype))
    same(np.asarray(found), np.array([slope for _, slope in wanted] * 2, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_densities_have_a_slope_where_they_end(dtype):
    s, x = sg.placeholder("s", (), dtype), sg.placeholder("x", (5,), dtype)
    at = np.array([-1.0, 0.0, 1.0, np.inf, -np.inf], dtype)
    for law in (L.Gamma(s), L.Beta(s, s), L.Weibull(s), L.Chi2(2 * s), L.Normal(0.0, s)):
        y = law.prob(x)
        found = sg.compile([s, x], [sg.grad(sg.sum(y), x), sg.jvp(y, [s], [np.ones((), dtype)])])
        by_x, by_s = found(np.asarray(2.0, dtype), at)
        assert np.isfinite(by_x).all()
        assert np.isfinite(by_s).all()
        same(by_x[3:], np.zeros(2, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gumbels_gradient_does_not_overflow(dtype):
    m, x = sg.placeholder("m", (), dtype), np.array([-100.0, -1e4], dtype)
    y = sg.sum(L.Gumbel(m).cdf(x) + L.Weibull(9.0, sg.exp(m)).sf(-x))
    same(sg.compile([m], sg.grad(y, m))(np.asarray(0.0, dtype)), np.zeros((), dtype))


def test_paretos_law_has_digits_where_it_begins():
    law, x = L.Pareto(0.6213730864547703, 0.7708781803816672), 0.7708781803829079
    for part, wanted in (("cdf", 1.0000562932120692e-12), ("log_sf", -1.0000562932125693e-12)):
        np.testing.assert_allclose(value(getattr(law, part)(x)), wanted, 1e-13)
    tiny = L.Pareto(2.5, 1e-300)
    np.testing.assert_allclose(value(tiny.log_sf(1.0)), -2.5 * 300 * np.log(10), 1e-14)


def test_waiting_for_what_is_all_but_impossible():
    law, rarer = L.Geometric(logits=-800.0), L.Geometric(logits=-801.0)
    close(float(law.entropy()), 801.0, 1e-13)
    close(float(law.log_cdf(3.0)), np.log(3) - 800, 1e-13)
    np.testing.assert_allclose(float(L.kl(law, rarer)), np.exp(-1), 1e-11)
    close(float(L.kl(law, L.Geometric(logits=-800.0))), 0.0)
    close(float(L.kl(L.Geometric(0.5), law)), 800 - 2 * np.log(2), 1e-12)
    assert value(law.sample(sg.random.key(0), (3,))).min() > 2**62
    same(value(law.icdf([0.0, 0.5, 1.0])), np.array([0.0, INF, INF]))
    for logits in (-40.0, -60.0):
        waited = np.log(2) * np.exp(-logits)
        np.testing.assert_allclose(float(L.Geometric(logits=logits).icdf(0.5)), waited, 1e-13)
        np.testing.assert_allclose(float(L.Geometric(logits=logits).isf(0.5)), waited, 1e-13)
    for part in ("entropy", "log_cdf"):  # on both sides of where the forms change
        near = [L.Geometric(logits=x) for x in (-37 - 1e-9, -37 + 1e-9)]
        below, above = (float(n.entropy() if part == "entropy" else n.log_cdf(2.0)) for n in near)
        np.testing.assert_allclose(below, above, 1e-9)


def test_classes_that_cannot_be_have_no_slope_of_others():
    p = sg.placeholder("p", (3,))
    y = L.Categorical(p).log_prob([1, 2])
    back, forth = sg.compile([p], [sg.jacobian(y, p), sg.jvp(y, [p], [np.ones(3)])])(
        np.array([0.0, 0.25, 0.75])
    )
    np.testing.assert_allclose(back, [[0, 4, 0], [0, 0, 4 / 3]], 1e-14)
    np.testing.assert_allclose(forth, [4, 4 / 3], 1e-14)


def test_a_covariance_is_symmetric():
    lopsided, c = np.array([[2.0, 1.0], [0.5, 2.0]]), sg.placeholder("c", (2, 2))
    with pytest.raises(sg.KernelError, match="covariance of MultivariateNormal is a symmetric"):
        L.MultivariateNormal(np.zeros(2), lopsided)
    program = sg.compile([c], L.MultivariateNormal(np.zeros(2), c).log_prob(np.zeros(2)))
    with pytest.raises(sg.KernelError, match="covariance of MultivariateNormal is a symmetric"):
        program(lopsided)
    assert np.isfinite(program(lopsided + lopsided.T))
    many = np.random.default_rng(0).normal(size=(9, 40, 50)).astype("float32")
    around = many @ many.mT + 1e-7 * np.triu(many[..., :40])  # as much as rounding does
    L.MultivariateNormal(np.zeros(40, "float32"), around)
    with pytest.raises(sg.ShapeError):
        L.MultivariateNormal(np.zeros(2), lopsided[:1])


@pytest.mark.parametrize("kind", [L.Bernoulli, lambda logits: L.Binomial(3, logits=logits)])
def test_logits_that_are_infinite_are_certain(kind):
    law = kind(logits=np.array([-INF, INF]))
    most = 1 if kind is L.Bernoulli else 3
    same(value(law.log_prob([0, most])), np.zeros(2))
    same(value(law.log_prob([most, 0])), np.full(2, -INF))
    same(value(L.kl(law, law)), np.zeros(2))


def test_slopes_where_a_count_is_certain():
    p, at = sg.placeholder("p", ()), np.asarray(1.0)
    for part, sign in (("cdf", 1), ("sf", -1)):
        slope = sg.jacobian(getattr(L.Geometric(p), part)([1.0, 2.0, 50.0]), p)
        same(sg.compile([p], slope)(at), np.array([sign, 0.0, 0.0]))
    kinds = (L.Bernoulli, L.Poisson, lambda p: L.Binomial(3, p))
    for y in [L.kl(kind(p), kind(p)) for kind in kinds] + [L.Poisson(p).log_sf(50.0)]:
        assert np.isfinite(sg.compile([p], sg.grad(y, p))(np.asarray(0.0)))
        assert np.isfinite(sg.compile([p], sg.jvp(y, [p], [1.0]))(np.asarray(0.0)))
    logits = sg.placeholder("logits", ())
    for law in (L.Geometric(logits=logits), L.NegativeBinomial(2.0, logits=logits)):
        slopes = sg.compile([logits], [sg.grad(m, logits) for m in (law.mean, law.variance)])
        same(np.asarray(slopes(np.asarray(-800.0))), np.full(2, -INF))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_students_law_far_out(dtype):
    nodes = [sg.placeholder(n, (), dtype) for n in ("df", "x")]
    far = np.array(1e30 if dtype == "float32" else 1e300, dtype)
    law = L.StudentT(nodes[0])
    y = [law.log_prob(nodes[1]), law.cdf(nodes[1])]
    found = sg.compile(nodes, [*y, *sg.grad(y[0], nodes), *sg.grad(y[1], nodes)])(
        np.array(3, dtype), far
    )
    density = np.log(6 * np.sqrt(3) / np.pi) - 4 * np.log(np.float64(far))
    np.testing.assert_allclose(found[0], density, 1e-6 if dtype == "float32" else 1e-14)
    np.testing.assert_allclose(found[3] * far, -4, 1e-6)
    assert found[1] == 1
    assert np.isfinite(found[2])
    same(np.asarray(found[4:]), np.zeros(2, dtype))


def test_counts_that_are_no_numbers():
    same(value(L.Categorical([0.25, 0.75]).log_prob([INF, -INF])), np.full(2, -INF))
    found = value(L.Multinomial(3, [0.25, 0.75]).log_prob([[NAN, 1.0], [INF, 1.0], [1.0, 2.0]]))
    same(np.isnan(found), np.array([True, False, False]))
    assert found[1] == -INF


def test_classes_that_cannot_be_have_no_part_in_the_gradient_of_an_entropy():
    logits = sg.placeholder("logits", (3,))
    y = L.Categorical(logits=logits).entropy()
    found = sg.compile([logits], [y, sg.grad(y, logits)])(np.array([-INF, 0.0, 1.0]))
    p, log_p = np.exp([-1.3132616875182228, -0.3132616875182228]), -1.3132616875182228
    entropy = -(p[0] * log_p + p[1] * (log_p + 1))
    np.testing.assert_allclose(found[0], entropy, 1e-14)
    slopes = -p * (np.array([log_p, log_p + 1]) + entropy)
    np.testing.assert_allclose(found[1], [0.0, *slopes], 1e-13)


def test_no_draws_of_a_class_that_cannot_be_are_certain():
    logits = sg.placeholder("logits", (3,))
    y = L.Multinomial(3, logits=logits).log_prob([[0, 1, 2], [1, 1, 1]])
    found, by = sg.compile([logits], [y, sg.grad(y[0], logits)])(np.array([-INF, 0.0, 0.0]))
    same(found, np.array([value(L.Multinomial(3, [0.0, 0.5, 0.5]).log_prob([0, 1, 2])), -INF]))
    np.testing.assert_allclose(by, [0, -0.5, 0.5], 1e-14)


@pytest.mark.parametrize("at", [-800.0, 800.0])
def test_divergences_of_logits_from_probabilities(at):
    logits = sg.placeholder("logits", ())
    law, coin = L.Bernoulli(logits=logits), L.Bernoulli(0.5)
    y = [L.kl(law, coin), L.kl(coin, law)]
    found = sg.compile([logits], [*y, *(sg.grad(part, logits) for part in y)])(np.asarray(at))
    np.testing.assert_allclose(found, [np.log(2), 400 - np.log(2), 0, np.sign(at) / 2], 1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_divergences_of_logits_whose_probabilities_underflow(dtype):
    a, b = sg.placeholder("a", (4,), dtype), sg.placeholder("b", (4,), dtype)
    y = L.kl(L.Bernoulli(logits=a), L.Bernoulli(logits=b))
    program = sg.compile([a, b], [y, *sg.grad(sg.sum(y), [a, b])])
    at = [np.array([-800, 800, 0, 0.5], dtype), np.array([1, 1, -800, 0.25], dtype)]
    p, q = 0.6224593312018546, 0.5621765008857981
    near = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    wanted = [1.3132616875182228, 0.3132616875182228, 400 - np.log(2), near]
    tolerance = 1e-13 if dtype == "float64" else 2e-6
    found, by_a, by_b = program(*at)
    np.testing.assert_allclose(found, wanted, tolerance)
    np.testing.assert_allclose(by_a, [0, 0, 200, p * (1 - p) * 0.25], tolerance)
    chance = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(by_b, [chance, chance - 1, -0.5, q - p], 3 * tolerance)


@pytest.mark.parametrize(
    ("concentration", "expected"),
    [
        (1e8, 6.579736095269821e-16),
        (1e4, 6.578015505128951e-8),
        (300.0, 7.247643130138145e-5),
        (50.0, 0.002501370342405215),
        (0.05, 3.263661132967888e48),
        (0.001, INF),
    ],
)
def test_weibulls_variance_for_extreme_concentrations(concentration, expected):
    law = L.Weibull(concentration, 2.0)
    np.testing.assert_allclose(value(law.variance), expected, 1e-12)
    np.testing.assert_allclose(value(law.stddev), np.sqrt(expected), 1e-12)
