"""Laws at NaN, at infinity, at the ends of supports; dtypes of all that they give."""

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import same, value

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


@pytest.mark.parametrize("name", LAWS)
def test_nan_stays_nan(name):
    law = getattr(L, name)(*LAWS[name])
    for part in PARTS:
        if (found := asked(law, part, np.array([NAN, 1.0]))) is not None:
            same(np.isnan(value(found)), np.array([True, False]))


@pytest.mark.parametrize("name", LAWS)
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


@pytest.mark.parametrize("name", [n for n in LAWS if n not in ("VonMises", "Categorical")])
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
def test_gumbels_gradient_does_not_overflow(dtype):
    m, x = sg.placeholder("m", (), dtype), np.array([-100.0, -1e4], dtype)
    y = sg.sum(L.Gumbel(m).cdf(x) + L.Weibull(9.0, sg.exp(m)).sf(-x))
    same(sg.compile([m], sg.grad(y, m))(np.asarray(0.0, dtype)), np.zeros((), dtype))


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
