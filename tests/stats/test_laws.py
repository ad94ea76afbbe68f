"""Every law against scipy.stats: values and tails, moments, samples, gradients, divergences."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special, stats

import symgrad as sg
from tests.helpers import each, generator, same, value

L = sg.stats
KEY = sg.random.key(3)
COUNT = 20_000
PS = np.array([1e-250, 1e-30, 1e-9, 1e-3, 0.1, 0.4999, 0.5, 0.5001, 0.9, 0.999, 1 - 1e-9])
REAL = np.array([-300.0, -41.0, -8.0, -2.0, -0.7, 0.0, 1e-9, 0.5, 1.0, 3.0, 9.0, 41.0, 300.0])
ABOVE = np.array([-1.0, 0.0, 1e-200, 1e-9, 0.01, 0.4, 1.0, 2.5, 9.0, 40.0, 300.0, np.inf])
UNIT = np.array([-0.5, 0.0, 1e-200, 1e-9, 0.01, 0.4, 0.7, 0.99, 1 - 1e-9, 1.0, 1.5])
COUNTS = np.array([-1.0, 0, 0.5, 1, 2, 3, 5, 9, 10, 11, 30, 80])

# A law, its parameters, SciPy's, and where it is asked.
CONTINUOUS = {
    "normal": (L.Normal, (0.5, 2.0), stats.norm(0.5, 2.0), REAL),
    "laplace": (L.Laplace, (0.5, 2.0), stats.laplace(0.5, 2.0), REAL),
    "logistic": (L.Logistic, (0.5, 2.0), stats.logistic(0.5, 2.0), REAL),
    "cauchy": (L.Cauchy, (0.5, 2.0), stats.cauchy(0.5, 2.0), REAL * 1e4),
    "gumbel": (L.Gumbel, (0.5, 2.0), stats.gumbel_r(0.5, 2.0), REAL),
    "student": (L.StudentT, (3.5, 0.5, 2.0), stats.t(3.5, 0.5, 2.0), REAL),
    "student of many": (L.StudentT, (1e6,), stats.t(1e6), REAL),
    "exponential": (L.Exponential, (2.0,), stats.expon(0, 2.0), ABOVE),
    "gamma": (L.Gamma, (2.5, 2.0), stats.gamma(2.5, 0, 2.0), ABOVE),
    "small gamma": (L.Gamma, (0.3,), stats.gamma(0.3), ABOVE),
    "large gamma": (L.Gamma, (300.0,), stats.gamma(300.0), ABOVE),
    "inverse gamma": (L.InverseGamma, (2.5, 2.0), stats.invgamma(2.5, 0, 2.0), ABOVE),
    "chi2": (L.Chi2, (3.0,), stats.chi2(3.0), ABOVE),
    "weibull": (L.Weibull, (1.7, 2.0), stats.weibull_min(1.7, 0, 2.0), ABOVE),
    "pareto": (L.Pareto, (2.5, 1.5), stats.pareto(2.5, 0, 1.5), ABOVE),
    "half normal": (L.HalfNormal, (2.0,), stats.halfnorm(0, 2.0), ABOVE),
    "log normal": (L.LogNormal, (0.3, 0.8), stats.lognorm(0.8, 0, math.exp(0.3)), ABOVE),
    "uniform": (L.Uniform, (-0.3, 0.9), stats.uniform(-0.3, 1.2), UNIT),
    "beta": (L.Beta, (2.5, 0.7), stats.beta(2.5, 0.7), UNIT),
    "large beta": (L.Beta, (80.0, 120.0), stats.beta(80.0, 120.0), UNIT),
}
DISCRETE = {
    "bernoulli": (L.Bernoulli, (0.3,), stats.bernoulli(0.3), COUNTS),
    "binomial": (L.Binomial, (10, 0.3), stats.binom(10, 0.3), COUNTS),
    "large binomial": (L.Binomial, (100_000, 1e-4), stats.binom(100_000, 1e-4), COUNTS),
    "negative binomial": (L.NegativeBinomial, (3.5, 0.4), stats.nbinom(3.5, 0.4), COUNTS),
    "geometric": (L.Geometric, (0.3,), stats.geom(0.3), COUNTS),
    "poisson": (L.Poisson, (4.5,), stats.poisson(4.5), COUNTS),
}
ALL = CONTINUOUS | DISCRETE
NO_ENTROPY = ("negative binomial", "poisson")
NO_QUANTILE = tuple(DISCRETE)
# Laws of one kind whose divergence is known, by the first parameters and others.
OTHERS = {
    "normal": (-1.0, 3.0), "laplace": (-1.0, 3.0), "cauchy": (-1.0, 3.0), "gumbel": (0.9, 1.4),
    "exponential": (3.0,), "gamma": (1.5, 1.2), "inverse gamma": (1.5, 1.2), "chi2": (4.5,),
    "weibull": (1.4, 1.5), "half normal": (1.3,), "log normal": (0.1, 1.1), "beta": (1.5, 1.1),
    "uniform": (-0.5, 1.0), "bernoulli": (0.6,), "binomial": (10, 0.6), "geometric": (0.6,),
    "poisson": (3.0,),
}  # fmt: skip
SCIPYS = {
    "normal": stats.norm, "laplace": stats.laplace, "cauchy": stats.cauchy,
    "gumbel": stats.gumbel_r, "exponential": lambda s: stats.expon(0, s),
    "gamma": lambda a, s: stats.gamma(a, 0, s), "chi2": stats.chi2,
    "inverse gamma": lambda a, s: stats.invgamma(a, 0, s),
    "weibull": lambda k, s: stats.weibull_min(k, 0, s),
    "half normal": lambda s: stats.halfnorm(0, s),
    "log normal": lambda m, s: stats.lognorm(s, 0, math.exp(m)), "beta": stats.beta,
    "uniform": lambda a, b: stats.uniform(a, b - a), "bernoulli": stats.bernoulli,
    "binomial": stats.binom, "geometric": stats.geom, "poisson": stats.poisson,
}  # fmt: skip


def made(name, dtype=None):
    """A law of the table; of a dtype, its parameters are arrays of it."""
    kind, parameters, _, _ = ALL[name]
    return kind(*(p if dtype is None else np.asarray(p, dtype) for p in parameters))


def alike(found, expected, tolerance=1e-10):
    """Equal to so many digits, or both less than can be told apart from 0."""
    np.testing.assert_allclose(found, expected, tolerance, 1e-300)


# ---- values ---------------------------------------------------------------------------------


@each("name", ALL)
def test_log_densities_are_scipys(name):
    _, _, law, x = ALL[name]
    with np.errstate(all="ignore"):
        expected = (law.logpdf if name in CONTINUOUS else law.logpmf)(x)
    expected = np.where(x == np.inf, -np.inf, expected)  # for which SciPy has some NaNs
    alike(value(made(name).log_prob(x)), expected)
    alike(value(made(name).prob(x)), np.exp(expected), 1e-9)  # SciPy's logarithms have no more


@each("part", ["cdf", "sf", "log_cdf", "log_sf"])
@each("name", ALL)
def test_distribution_functions_are_scipys_in_the_tails_too(name, part):
    _, _, law, x = ALL[name]
    with np.errstate(all="ignore"):
        expected = getattr(law, part.replace("_", ""))(x)
        if part.startswith("log"):  # of which SciPy loses digits near 0
            rest = law.sf(x) if part == "log_cdf" else law.cdf(x)
            expected = np.where(rest > 0.5, expected, np.log1p(-rest * (rest <= 0.5)))
    found = value(getattr(made(name), part)(x))
    if name == "half normal" and part == "log_sf":
        far = np.log(2) + stats.norm(0, 2.0).logsf(np.maximum(x, 0))  # SciPy's underflows
        expected = np.where(x > 9, far, expected)
    if name == "weibull" and part == "log_cdf":
        expected[2] = 1.7 * np.log(x[2] / 2)  # here, too
    alike(found, expected)


@each("part", ["icdf", "isf"])
@each("name", [n for n in CONTINUOUS if n not in NO_QUANTILE])
def test_quantiles_are_scipys(name, part):
    law = ALL[name][2]
    expected = law.ppf(PS) if part == "icdf" else law.isf(PS)
    if name == "half normal":  # of which SciPy loses the digits of small p
        inverse = special.erfinv if part == "icdf" else special.erfcinv
        expected = 2 * math.sqrt(2) * inverse(PS)
    if name == "student":  # SciPy's is inf
        expected[0] = 6.326062272941687e71 * (-1 if part == "icdf" else 1)
    scale = float(law.std()) if np.isfinite(law.std()) else 1
    np.testing.assert_allclose(value(getattr(made(name), part)(PS)), expected, 1e-10, 1e-14 * scale)
    assert np.isnan(value(getattr(made(name), part)([-0.1, 1.1]))).all()


@each("name", ALL)
def test_moments_are_scipys(name):
    law, expected = made(name), ALL[name][2]
    alike(float(law.mean), expected.mean())
    alike(float(law.variance), expected.var())
    alike(float(law.stddev), expected.std())
    if name in NO_ENTROPY:
        with pytest.raises(sg.UnsupportedError, match="no entropy in closed form"):
            law.entropy()
    else:
        alike(float(law.entropy()), expected.entropy())


@each("name", ALL)
def test_float32_is_as_good_as_it_can_be(name):
    if name in ("large binomial", "student of many"):
        return  # their parameters are beyond the digits of float32
    _, _, law, x = ALL[name]
    found = made(name, "float32")
    with np.errstate(all="ignore"):
        x = x[(np.abs(x) < 50) & (np.abs(x - 1) > 1e-6) & ((x == 0) | (np.abs(x) > 1e-8))]
        x = x.astype("float32")
        expected = (law.logpdf if name in CONTINUOUS else law.logpmf)(x.astype(float))
        cdf, sf = law.cdf(x.astype(float)), law.sf(x.astype(float))
    assert found.log_prob(x).dtype == found.cdf(x).dtype == found.mean.dtype == "float32"
    np.testing.assert_allclose(value(found.log_prob(x)), expected, 1e-5, 1e-5)
    np.testing.assert_allclose(value(found.cdf(x)), cdf, 1e-5, 1e-37)
    np.testing.assert_allclose(value(found.sf(x)), sf, 1e-5, 1e-37)


# Where sums of large terms cancel, and where SciPy's float32 goes wrong: a law, of it what, and
# the value, which is mpmath's.
QUARTERS = [0.25, 0.25, 0.5]
HARD = [
    (lambda f: L.Poisson(f(1e5)).log_prob(f(1e5)), -6.67540209902312),
    (lambda f: L.Poisson(f(1e5)).log_prob(f(101_000.0)), -11.66379342617525),
    (lambda f: L.Gamma(f(1e4)).log_prob(f(1e4)), -5.524117052526095),
    (lambda f: L.Gamma(f(1e4)).entropy(), 6.024075385026086),
    (lambda f: L.Beta(f(1e4), f(1e4)).log_prob(f(0.5)), 4.725939923623342),
    (lambda f: L.Beta(f(1e4), f(3.0)).entropy(), -7.363161818286837),
    (lambda f: L.Beta(f(100.0), f(100.0)).cdf(f(0.25)), 1.781475521753681e-14),
    (lambda f: L.Binomial(f(1000.0), f(0.25)).sf(f(30.0)), 1.0),
    (lambda f: L.Binomial(f(1000.0), f(0.25)).log_prob(f(300.0)), -9.99426278783907),
    (lambda f: L.NegativeBinomial(f(1000.0), f(0.5)).log_prob(f(1000.0)), -4.719514762970506),
    (lambda f: L.StudentT(f(1e4)).entropy(), 1.419038535704506),
    (lambda f: L.StudentT(f(2.0**27)).entropy(), 1.418938540655253),
    (lambda f: L.StudentT(f(0.5)).icdf(f(0.125)), -6.55954493243189),
    (lambda f: L.Geometric(f(2.0**-30)).entropy(), 21.7944154163327),
    (lambda f: L.Bernoulli(f(2.0**-30)).entropy(), 2.029763107777824e-8),
    (lambda f: L.VonMises(f(0.0), f(1e4)).entropy(), -3.186206650908158),
    (lambda f: L.VonMises(f(0.0), f(100.0)).variance, 0.005012626994831234),
    (lambda f: L.Beta(f(0.5), f(0.5)).log_sf(f(2.0**-66)), -7.411229568430828e-11),
    (lambda f: L.Gumbel().log_sf(f(1000.0)), -1000.0),
    (lambda f: L.Weibull(f(20.0)).log_cdf(f(2.0**-100)), -1386.294361119891),
    (lambda f: L.Dirichlet(f([1e4, 2e4, 3e4])).log_prob(f(QUARTERS)), -1688.152182634497),
    (lambda f: L.Dirichlet(f([1e4, 2e4, 3e4])).entropy(), -9.956021133976664),
    (
        lambda f: L.Multinomial(f(1e5), f(QUARTERS)).log_prob(f([25e3, 25e3, 5e4])),
        -11.61794207997971,
    ),
]


@each("dtype", ["float32", "float64"])
@each("case", HARD, ids=range(len(HARD)))
def test_no_digits_cancel(case, dtype):
    found = value(case[0](lambda x: np.asarray(x, dtype)))
    np.testing.assert_allclose(found, case[1], 1e-5 if dtype == "float32" else 1e-13)


# ---- samples --------------------------------------------------------------------------------


@each("name", CONTINUOUS)
def test_samples_have_the_law(name):
    law, expected = made(name), ALL[name][2]
    drawn = value(law.sample(KEY, (COUNT,)))
    assert drawn.dtype == "float64"
    assert stats.kstest(drawn, expected.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", DISCRETE)
def test_frequencies_of_samples_are_the_probabilities(name):
    law, expected = made(name), ALL[name][2]
    drawn = value(law.sample(KEY, (COUNT,)))
    assert drawn.dtype == "int64"
    p = expected.pmf(np.arange(drawn.max() + 1)) * COUNT
    seen = np.bincount(drawn, minlength=len(p))
    assert not seen[p == 0].any()
    held = p > 5
    assert stats.chisquare(seen[held], p[held] * seen[held].sum() / p[held].sum()).pvalue > 1e-3


@each("name", [n for n in CONTINUOUS if "many" not in n])
def test_gradients_flow_through_samples(name):
    """Those of the mean of draws are those of the mean; by implicit differentiation at a draw."""
    kind, parameters, _, _ = ALL[name]
    nodes = [sg.placeholder(f"p{i}", ()) for i in range(len(parameters))]
    law = kind(*nodes)
    draw = law.sample(KEY)
    slopes = [sg.grad(draw, nodes), sg.grad(law.cdf(sg.stop_gradient(draw)), nodes)]
    slope = sg.grad(law.cdf(x := sg.placeholder("x", ())), x)
    at = [np.asarray(p) for p in parameters]
    through, by = sg.compile(nodes, slopes)(*at)
    density = sg.compile([*nodes, x], slope)(*at, sg.compile(nodes, draw)(*at))
    if name in ("student", "laplace", "logistic", "cauchy", "beta", "large beta"):
        assert np.isfinite(through).all()  # of two draws
        return
    np.testing.assert_allclose(through, -np.asarray(by) / density, 1e-6, 1e-9)


def test_no_gradient_flows_through_counts():
    p = sg.placeholder("p", ())
    for law in (L.Bernoulli(p), L.Poisson(p), L.Binomial(5, p), L.Geometric(p)):
        drawn = sg.astype(law.sample(KEY), "float64")
        assert not law.reparametrised
        with pytest.raises(sg.GradientError):
            sg.grad(drawn, p)


# ---- gradients ------------------------------------------------------------------------------


@each("part", ["log_prob", "cdf", "log_sf"])
@each("name", ALL)
def test_gradients_are_differences(name, part):
    kind, parameters, law, _ = ALL[name]
    if "large" in name or "many" in name:
        return  # differences have no digits left
    x = np.asarray(law.ppf(np.array([0.45, 0.6, 0.8])), float)
    x = x[law.sf(x) > 0]
    moving = [i for i in range(len(parameters)) if not isinstance(parameters[i], int)]

    def function(*args):
        given = list(parameters)
        for i, p in zip(moving, args, strict=False):
            given[i] = p
        return getattr(kind(*given), part)(args[-1] if name in CONTINUOUS else x)

    at = [np.asarray(parameters[i]) for i in moving] + [x] * (name in CONTINUOUS)
    sg.testing.check_grads(function, *at)


@each("name", [n for n in CONTINUOUS if "large" not in n and "many" not in n])
def test_gradients_of_quantiles_are_differences(name):
    kind, parameters, _, _ = ALL[name]
    at = [np.asarray(p) for p in parameters]
    sg.testing.check_grads(lambda *a: kind(*a[:-1]).icdf(a[-1]), *at, np.array([0.15, 0.45, 0.8]))


def test_gradients_outside_the_support_are_0():
    x = sg.placeholder("x", (4,))
    for law in (L.Gamma(2.5, 1.0), L.Exponential(), L.LogNormal(), L.InverseGamma(2.0)):
        y = sg.sum(sg.where(x > 0, law.log_prob(x), 0))
        found = sg.compile([x], sg.grad(y, x))(np.array([-1.0, 0.0, 1.0, -np.inf]))
        assert np.isfinite(found).all()
        same(found[[0, 1, 3]], np.zeros(3))


# ---- divergences ----------------------------------------------------------------------------


@each("name", OTHERS)
def test_divergences_are_the_mean_of_the_difference(name):
    kind, parameters, law, _ = ALL[name]
    other = SCIPYS[name](*OTHERS[name])
    found = float(L.kl(kind(*parameters), kind(*OTHERS[name])))
    if name in DISCRETE:
        k = np.arange(law.ppf(0), 400) if name != "bernoulli" else np.arange(2)
        k = k[law.pmf(k) > 0]
        expected = np.sum(law.pmf(k) * (law.logpmf(k) - other.logpmf(k)))
    else:
        if name == "cauchy":  # over the quantiles, where the tails are short
            at = (np.arange(100_000) + 0.5) / 100_000
            expected = np.mean(law.logpdf(law.ppf(at)) - other.logpdf(law.ppf(at)))
            return alike(found, expected, 1e-8)
        ends = [law.ppf(p) for p in (1e-14, 0.01, 0.5, 0.99)] + [law.isf(1e-14)]
        expected = sum(
            integrate.quad(
                lambda x: law.pdf(x) * (law.logpdf(x) - other.logpdf(x)), *pair, epsabs=1e-12
            )[0]
            for pair in itertools.pairwise(ends)
        )
    np.testing.assert_allclose(found, expected, 1e-7)
    alike(float(L.kl(kind(*parameters), kind(*parameters))), 0)


def test_a_divergence_that_is_not_known_says_what_to_do():
    with pytest.raises(sg.UnsupportedError, match="StudentT has no divergence"):
        L.kl(L.StudentT(3.0), L.StudentT(4.0))
    for p, q in (
        (L.Normal(), L.StudentT(3.0)),
        (L.Cauchy(), L.Normal()),
        (L.VonMises(0.0, 1.0), L.Normal()),
        (L.Poisson(3.0), L.Normal()),
        (L.Normal(), L.Independent(L.Normal([0.0, 1.0]))),
        (L.Uniform(), L.InverseGamma(3.0)),
        (L.Transformed(L.Normal(), L.Sigmoid()), L.Beta(1.0, 2.0)),
    ):
        names = f"{type(p).__name__} from {type(q).__name__}"
        with pytest.raises(sg.UnsupportedError, match=rf"{names}.*samples|such a law"):
            L.kl(p, q)
    assert float(L.kl(L.Uniform(0.0, 2.0), L.Uniform(0.0, 1.0))) == math.inf
    with pytest.raises(sg.KernelError, match="n is the same"):
        L.kl(L.Binomial(3, 0.5), L.Binomial(4, 0.5))


# ---- logits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [L.Bernoulli, L.Geometric, lambda **k: L.Binomial(7, **k)])
def test_logits_are_the_same_law(kind):
    logits = np.array([-3.0, -0.2, 0.0, 2.0])
    by_logits, by_p = kind(logits=logits), kind(p=1 / (1 + np.exp(-logits)))
    k = np.arange(1.0, 8)[:, None] if kind is not L.Bernoulli else np.arange(2.0)[:, None]
    for part in ("log_prob", "cdf", "sf"):
        alike(value(getattr(by_logits, part)(k)), value(getattr(by_p, part)(k)), 1e-12)
    alike(value(by_logits.mean), value(by_p.mean), 1e-12)
    same(value(by_logits.sample(KEY)), value(by_p.sample(KEY)))


def test_logits_do_not_underflow():
    law = L.Bernoulli(logits=[-1000.0, 1000.0])
    same(value(law.log_prob([1, 0])), np.array([-1000.0, -1000.0]))
    logits = sg.placeholder("l", (2,))
    y = sg.sum(L.Bernoulli(logits=logits).log_prob([1, 0]))
    same(sg.compile([logits], sg.grad(y, logits))(np.array([-1e3, 1e3])), np.array([1.0, -1.0]))


def test_von_mises():
    x = np.linspace(-3, 3, 9)
    for k in (0.01, 2.0, 1e4, 1e9):
        law, expected = L.VonMises(0.4, k), stats.vonmises(k, 0.4)
        alike(value(law.log_prob(x)), expected.logpdf(x), 1e-9)
        alike(float(law.entropy()), expected.entropy(), 1e-6 if k > 1e5 else 1e-10)
    drawn = value(L.VonMises(0.4, 2.0).sample(KEY, (COUNT,)))
    assert stats.kstest(drawn, stats.vonmises(2.0, 0.4).cdf).pvalue > 1e-3
    sg.testing.check_grads(lambda m, k, x: L.VonMises(m, k).log_prob(x), 0.4, 2.0, x)
    p, q = stats.vonmises(2.0, 0.4), stats.vonmises(1.0, -0.3)
    expected = integrate.quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), -math.pi, math.pi)
    alike(float(L.kl(L.VonMises(0.4, 2.0), L.VonMises(-0.3, 1.0))), expected[0])
    with pytest.raises(sg.UnsupportedError, match="VonMises has no distribution function"):
        L.VonMises(0.0, 1.0).cdf(0.1)
    k = sg.placeholder("k", ())
    with pytest.raises(sg.GradientError):
        sg.grad(L.VonMises(0.0, k).sample(KEY), k)
    assert generator("x") is not None
