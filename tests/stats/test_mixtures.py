"""Mixtures of laws, quantiles of counts, modes, and divergences of laws of two kinds."""

import math

import numpy as np
import pytest
from scipy import special, stats

import symgrad as sg
from tests.helpers import close, each, same, value

L = sg.stats
KEY = sg.random.key(7)
COUNT = 40_000
PS = np.array([1e-9, 1e-3, 0.2, 0.5, 0.8, 0.999, 1 - 1e-9])
X = np.array([-30.0, -1.2, 0.0, 0.4, 2.5, 40.0])
W, MEANS, SCALES = np.array([0.2, 0.5, 0.3]), np.array([-1.0, 0.0, 2.0]), np.array([0.5, 1.0, 0.3])
COUNTS = {
    "poisson": (lambda: L.Poisson(4.5), stats.poisson(4.5)),
    "many": (lambda: L.Poisson(1e5), stats.poisson(1e5)),
    "binomial": (lambda: L.Binomial(10, 0.3), stats.binom(10, 0.3)),
    "negative binomial": (lambda: L.NegativeBinomial(3.5, 0.4), stats.nbinom(3.5, 0.4)),
    "geometric": (lambda: L.Geometric(0.3), stats.geom(0.3)),
    "bernoulli": (lambda: L.Bernoulli(0.3), stats.bernoulli(0.3)),
}


def of_normals():
    return L.Mixture(W, L.Normal(MEANS, SCALES))


def summed(part):
    return sum(w * part(stats.norm(m, s)) for w, m, s in zip(W, MEANS, SCALES, strict=True))


# ---- mixtures -------------------------------------------------------------------------------


def test_a_mixture_has_the_mean_density():
    law = of_normals()
    expected = np.log(np.maximum(summed(lambda n: n.pdf(X)), 1e-320))
    found = value(law.log_prob(X))
    np.testing.assert_allclose(found[1:5], expected[1:5], 1e-12)
    far = np.log(0.5) + stats.norm(0, 1).logpdf(40.0)
    np.testing.assert_allclose(found[5], far, 1e-12)
    np.testing.assert_allclose(value(law.cdf(X)), summed(lambda n: n.cdf(X)), 1e-12)
    np.testing.assert_allclose(value(law.sf(X)), summed(lambda n: n.sf(X)), 1e-12)
    np.testing.assert_allclose(float(law.log_sf(60.0)), np.log(0.5) + stats.norm.logsf(60), 1e-12)
    np.testing.assert_allclose(float(law.log_cdf(30.0)), -0.5 * stats.norm.sf(30), 1e-12)
    mean = summed(lambda n: n.mean())
    np.testing.assert_allclose(float(law.mean), mean, 1e-13)
    spread = summed(lambda n: n.var() + (n.mean() - mean) ** 2)
    np.testing.assert_allclose(float(law.variance), spread, 1e-13)
    assert stats.kstest(value(law.sample(KEY, (COUNT,))), lambda x: value(law.cdf(x))).pvalue > 1e-3


def test_laws_of_several_kinds_mix():
    law = L.Mixture([0.3, 0.7], [L.Normal(-1.0, 0.5), L.Laplace([2.0, 3.0], 1.0)])
    assert (law.batch_shape, law.event_shape, law.dtype) == ((2,), (), "float64")
    assert (law.log_prob(0.0).shape, law.mean.shape) == ((2,), (2,))
    for i, m in enumerate((2.0, 3.0)):
        expected = 0.3 * stats.norm(-1, 0.5).pdf(X) + 0.7 * stats.laplace(m, 1).pdf(X)
        np.testing.assert_allclose(value(law.prob(X[:, None]))[:, i], expected, 1e-12)
    drawn = value(law.sample(KEY, (COUNT,)))
    for i in range(2):
        pvalue = stats.kstest(drawn[:, i], lambda x, i=i: value(law.cdf(x[:, None]))[:, i]).pvalue
        assert pvalue > 1e-3


def test_vectors_mix():
    means = np.array([[0.0, 0, 0], [3.0, 1, -1]])
    law = L.Mixture([0.4, 0.6], L.MultivariateNormal(means, covariance=np.eye(3)))
    x = np.array([[0.0, 1.0, 0.5], [2.0, 1.0, 0.0]])
    normals = [stats.multivariate_normal(m, np.eye(3)) for m in means]
    expected = np.log(0.4 * normals[0].pdf(x) + 0.6 * normals[1].pdf(x))
    np.testing.assert_allclose(value(law.log_prob(x)), expected, 1e-12)
    drawn = value(law.sample(KEY, (COUNT,)))
    assert drawn.shape == (COUNT, 3)
    close(drawn.mean(0), value(law.mean), 0.03)
    close(drawn.var(0), value(law.variance), 0.05)
    assert law.log_prob(np.zeros((5, 1, 3))).shape == (5, 1)


def test_counts_mix():
    law = L.Mixture([0.3, 0.7], [L.Poisson(3.0), L.Binomial(9, 0.5)])
    k = np.arange(30)
    cdf = 0.3 * stats.poisson(3).cdf(k) + 0.7 * stats.binom(9, 0.5).cdf(k)
    same(value(law.icdf(PS[:-1])), np.searchsorted(cdf, PS[:-1]).astype(float))
    drawn = value(law.sample(KEY, (COUNT,)))
    assert drawn.dtype == "int64"
    close(np.bincount(drawn, minlength=12)[:12] / COUNT, np.diff(cdf, prepend=0)[:12], 0.01)
    one = L.Mixture([0.3, 0.7], L.Poisson([3.0, 9.0]))
    cdf = 0.3 * stats.poisson(3).cdf(k) + 0.7 * stats.poisson(9).cdf(k)
    same(value(one.icdf(PS[:-1])), np.searchsorted(cdf, PS[:-1]).astype(float))


def test_quantiles_of_mixtures_are_exact():
    several = L.Mixture(W, [L.Gamma(0.2), L.Exponential(1e-5), L.Pareto(2.0)])
    for law in (of_normals(), several):
        np.testing.assert_allclose(value(law.cdf(law.icdf(PS))), PS, 1e-13)
        np.testing.assert_allclose(value(law.sf(law.isf(PS))), PS, 1e-13)
        np.testing.assert_allclose(value(law.cdf(law.icdf(1e-40))), 1e-40, 1e-12)
        assert np.isnan(value(law.icdf([-0.1, 1.1, np.nan]))).all()
    same(value(of_normals().icdf([0.0, 1.0])), np.array([-np.inf, np.inf]))
    apart = L.Mixture([0.5, 0.5], [L.Uniform(0.0, 1.0), L.Uniform(2.0, 3.0)])
    same(value(apart.icdf([0, 0.25, 0.5, 0.75, 1])), np.array([0, 0.5, 1, 2.5, 3]))
    close(value(apart.isf([0, 0.25, 0.5, 0.75, 1])), np.array([3, 2.5, 1, 0.5, 0]), 1e-15)
    single = L.Mixture(np.float32(W), L.Normal(np.float32(MEANS), np.float32(SCALES)))
    assert single.icdf(0.5).dtype == "float32"
    close(value(single.icdf(PS[1:-1])), value(of_normals().icdf(PS[1:-1])), 1e-5)


def test_gradients_of_quantiles_of_mixtures_are_differences():
    def quantile(logits, means, p, part="icdf"):
        law = L.Mixture(L.Categorical(logits=logits), L.Normal(means, SCALES[:2]))
        return getattr(law, part)(p)

    at = np.log(W[:2]), MEANS[:2]
    sg.testing.check_grads(quantile, *at, np.array([0.2, 0.7]), order=1)
    sg.testing.check_grads(lambda *a: quantile(*a, "isf"), *at, np.asarray(0.3), order=1)
    sg.testing.check_grads(lambda m: sg.hessian(quantile(at[0], m, 0.3), m), at[1], order=1)


def test_a_weight_of_0_has_the_slope_of_the_mean_density():
    """That of log(sum(w * f)) by w is f / sum(w * f)."""
    w = sg.placeholder("w", (3,))
    law, at = L.Mixture(w, L.Normal(MEANS, SCALES)), np.array([0.4, 0.6, 0.0])
    x = 0.5
    for part, of in (("log_prob", "pdf"), ("log_cdf", "cdf"), ("log_sf", "sf")):
        y = getattr(law, part)(x)
        moved = sg.jvp(y, [w], [np.array([0.0, 0.0, 1.0])])
        slope, forward, bend = sg.compile([w], [sg.grad(y, w), moved, sg.hessian(y, w)])(at)
        each = np.array(
            [getattr(stats.norm(m, s), of)(x) for m, s in zip(MEANS, SCALES, strict=True)]
        )
        wanted = each / (at @ each)
        if part != "log_prob" and at @ each > np.exp(-0.5):  # of the logarithm of what is left
            wanted = (each - 1) / (at @ each)
        np.testing.assert_allclose(slope, wanted, 1e-12)
        np.testing.assert_allclose(forward, wanted[2], 1e-12)
        if part == "log_prob":
            np.testing.assert_allclose(bend, -np.outer(wanted, wanted), 1e-11)


@pytest.mark.parametrize("at", [[1.0, 0.0], [0.5, 0.5]])
def test_gradients_by_weights_are_numbers_where_no_law_reaches(at):
    laws = [L.Uniform(0.0, 1.0), L.Uniform(2.0, 3.0)]
    w, x = sg.placeholder("w", (2,)), np.array([0.5, 2.5, 9.0])
    for law in (L.Mixture(w, laws), L.Mixture(L.Categorical(logits=sg.log(w + 1e-9)), laws)):
        y = law.log_prob(x)
        back, forth = sg.compile([w], [sg.jacobian(y, w), sg.jvp(y, [w], [np.ones(2)])])(
            np.array(at)
        )
        assert not np.isnan(back).any()
        assert not np.isnan(forth).any()
        same(back[2], np.zeros(2))


def test_gradients_of_mixtures_are_differences():
    def law(logits, means, logs):
        return L.Mixture(L.Categorical(logits=logits), L.Normal(means, sg.exp(logs)))

    at = np.log(W), MEANS, np.log(SCALES)
    x = np.array([-1.2, 0.3, 2.2])
    sg.testing.check_grads(lambda *a: law(*a[:-1]).log_prob(a[-1]), *at, x)
    sg.testing.check_grads(lambda *a: law(*a[:-1]).log_sf(a[-1]), *at, x)
    sg.testing.check_grads(lambda *a: law(*a).variance, *at)


def test_no_gradient_flows_through_draws_of_a_mixture():
    m = sg.placeholder("m", (3,))
    with pytest.raises(sg.GradientError):
        sg.grad(L.Mixture(W, L.Normal(m, SCALES)).sample(KEY), m)


def test_what_is_no_mixture_is_refused():
    with pytest.raises(sg.ArgumentError, match="a mixture is of laws"):
        L.Mixture([0.5, 0.5], [L.Normal(), L.Poisson(3.0)])
    with pytest.raises(sg.ArgumentError, match="a mixture is of laws"):
        L.Mixture([0.5, 0.5], [L.Normal(), 3.0])
    with pytest.raises(sg.ArgumentError, match="a mixture is of laws"):
        L.Mixture([0.5, 0.5], 3.0)
    with pytest.raises(sg.ShapeError, match="last axis"):
        L.Mixture([1.0], L.Normal())
    with pytest.raises(sg.ShapeError):
        L.Mixture([0.5, 0.5], L.Normal(np.zeros(3)))
    with pytest.raises(sg.KernelError, match="sum to 1"):
        L.Mixture([0.5, 0.6], L.Normal(np.zeros(2)))


# ---- quantiles of counts --------------------------------------------------------------------


@pytest.mark.parametrize("name", COUNTS)
def test_quantiles_of_counts_are_scipys(name):
    make, expected = COUNTS[name]
    law = make()
    same(value(law.icdf(PS)), expected.ppf(PS))
    same(value(law.isf(PS[:-1])), expected.isf(PS[:-1]))
    k = np.unique(value(law.sample(KEY, (200,))))
    k = k[expected.cdf(k) < 1]
    same(value(law.icdf(law.cdf(k))), k.astype(float))
    assert np.isnan(value(law.icdf([-0.1, 1.1]))).all()
    assert float(law.icdf(1.0)) == float(law.isf(0.0)) == expected.ppf(1)
    assert float(law.icdf(0.0)) == expected.ppf(0)


def test_quantiles_of_counts_far_out():
    for law, expected in (
        (L.Poisson(4.5), stats.poisson(4.5)),
        (L.Binomial(1000, 0.01), stats.binom(1000, 0.01)),
    ):
        k = float(law.isf(1e-60))
        assert expected.sf(k) <= 1e-60 < expected.sf(k - 1)


def test_quantiles_of_counts_broadcast_and_are_of_named_sizes():
    rates, p = sg.placeholder("r", ("N", 1), "float32"), sg.placeholder("p", ("M",), "float32")
    found = sg.compile([rates, p], L.Poisson(rates).icdf(p))
    r, at = np.array([[1.0], [9.0]], "float32"), np.array([0.1, 0.5, 0.9], "float32")
    answer = found(r, at)
    assert answer.dtype == "float32"
    same(answer, stats.poisson(r).ppf(at).astype("float32"))
    each = value(sg.vmap(lambda r: L.Poisson(r).icdf(0.9))(sg.constant([1.0, 9.0])))
    same(each, stats.poisson([1.0, 9.0]).ppf(0.9))


def test_the_categorical_law_has_a_distribution_function():
    law = L.Categorical(W)
    same(value(law.cdf([-1, 0, 1, 1.5, 2, 9])), np.array([0.0, 0.2, 0.7, 0.7, 1, 1]))
    close(value(law.sf([-1, 0, 1, 1.5, 2, 9])), np.array([1.0, 0.8, 0.3, 0.3, 0, 0]), 1e-15)
    same(value(law.icdf([0.1, 0.2, 0.3, 0.7, 0.71, 1])), np.array([0.0, 0, 1, 1, 2, 2]))


# ---- modes ----------------------------------------------------------------------------------

MODES = [
    L.Normal(0.3, 2.0), L.Laplace(0.3, 2.0), L.Logistic(0.3, 2.0), L.Cauchy(0.3, 2.0),
    L.Gumbel(0.3, 2.0), L.StudentT(3.0, 0.3), L.Exponential(2.0), L.Gamma(2.5, 2.0),
    L.Gamma(0.5), L.Chi2(5.0), L.InverseGamma(2.5, 2.0), L.Weibull(1.7, 2.0), L.Weibull(0.6),
    L.Pareto(2.5, 0.5), L.HalfNormal(2.0), L.LogNormal(0.3, 0.8), L.Beta(2.5, 1.7),
    L.Beta(0.5, 1.7), L.Beta(1.7, 0.5), L.Beta(0.7, 0.5), L.Uniform(0.5, 2.0), L.VonMises(0.3, 2.0),
]  # fmt: skip


@each("law", MODES, ids=lambda law: type(law).__name__)
def test_the_mode_is_where_the_density_is_largest(law):
    grid = np.linspace(-4, 4, 4001)
    with np.errstate(all="ignore"):
        most = np.nanmax(value(law.log_prob(grid)))
    assert float(law.log_prob(law.mode)) >= most - 1e-14


MODES_OF_COUNTS = [
    L.Binomial(9, 0.3), L.Binomial(9, 0.0), L.Poisson(4.5), L.Poisson(3.0), L.Geometric(0.3),
    L.NegativeBinomial(3.5, 0.4), L.NegativeBinomial(0.5, 0.4), L.Bernoulli(0.7), L.Bernoulli(0.5),
    L.Categorical(W),
]  # fmt: skip


@pytest.mark.parametrize("law", MODES_OF_COUNTS, ids=lambda law: type(law).__name__)
def test_the_mode_of_counts_is_the_least_of_the_likeliest(law):
    logs = value(law.log_prob(np.arange(20)))
    assert float(law.mode) == np.flatnonzero(logs > logs.max() - 1e-12)[0]


def test_modes_of_vectors():
    same(value(L.Dirichlet([2.0, 3.0, 1.0]).mode), np.array([1, 2, 0]) / 3)
    same(value(L.Dirichlet([0.5, 0.7]).mode), np.array([0.0, 1]))
    same(value(L.MultivariateNormal(MEANS, covariance=np.eye(3)).mode), MEANS)
    same(value(L.Independent(L.Normal(MEANS, SCALES)).mode), MEANS)
    with pytest.raises(sg.UnsupportedError, match="no mode"):
        _ = of_normals().mode


# ---- divergences of laws of two kinds -------------------------------------------------------

FIRST = {
    "normal": (L.Normal(0.5, 2.0), stats.norm(0.5, 2)),
    "laplace": (L.Laplace(0.5, 0.7), stats.laplace(0.5, 0.7)),
    "logistic": (L.Logistic(0.5, 0.7), stats.logistic(0.5, 0.7)),
    "gumbel": (L.Gumbel(0.5, 0.7), stats.gumbel_r(0.5, 0.7)),
    "exponential": (L.Exponential(2.0), stats.expon(0, 2)),
    "gamma": (L.Gamma(2.5, 0.7), stats.gamma(2.5, 0, 0.7)),
    "chi2": (L.Chi2(3.0), stats.chi2(3)),
    "inverse gamma": (L.InverseGamma(4.5, 2.0), stats.invgamma(4.5, 0, 2)),
    "weibull": (L.Weibull(1.7, 2.0), stats.weibull_min(1.7, 0, 2)),
    "pareto": (L.Pareto(5.5, 0.3), stats.pareto(5.5, 0, 0.3)),
    "half normal": (L.HalfNormal(2.0), stats.halfnorm(0, 2)),
    "log normal": (L.LogNormal(0.3, 0.4), stats.lognorm(0.4, 0, math.exp(0.3))),
    "uniform": (L.Uniform(0.35, 0.9), stats.uniform(0.35, 0.55)),
    "beta": (L.Beta(2.5, 1.7), stats.beta(2.5, 1.7)),
    "student": (L.StudentT(4.5, 0.5), stats.t(4.5, 0.5)),
}
SECOND = {
    "normal": (L.Normal(-1.0, 3.0), stats.norm(-1, 3)),
    "laplace": (L.Laplace(-1.0, 3.0), stats.laplace(-1, 3)),
    "gumbel": (L.Gumbel(-1.0, 3.0), stats.gumbel_r(-1, 3)),
    "exponential": (L.Exponential(3.0), stats.expon(0, 3)),
    "gamma": (L.Gamma(1.5, 1.2), stats.gamma(1.5, 0, 1.2)),
    "chi2": (L.Chi2(4.0), stats.chi2(4)),
    "half normal": (L.HalfNormal(1.3), stats.halfnorm(0, 1.3)),
    "pareto": (L.Pareto(1.5, 0.2), stats.pareto(1.5, 0, 0.2)),
    "uniform": (L.Uniform(0.1, 1.0), stats.uniform(0.1, 0.9)),
    "beta": (L.Beta(1.5, 1.1), stats.beta(1.5, 1.1)),
}


def tanh_sinh(cuts):
    """The nodes between neighbouring cuts and their weights, which shrink fast to both ends."""
    t = np.linspace(-3.2, 3.2, 81)
    u = np.sinh(t) * np.pi
    widths = np.diff(cuts)[:, None]
    weights = np.cosh(t) * np.pi / 4 / np.cosh(u / 2) ** 2 * (t[1] - t[0])
    return cuts[:-1, None] + widths * special.expit(u), widths * weights


def test_divergences_of_laws_of_two_kinds_are_integrals():
    """Each that has a closed form, against an integral; where q is 0 and p is not, it is inf."""
    known = []
    for a, (p, mine) in FIRST.items():
        tail = np.array([1e-13, 1e-6, 0.01])
        ends = np.array([*mine.ppf(tail), mine.median(), *mine.isf(tail[::-1])])
        for b, (q, theirs) in SECOND.items():
            try:
                found = float(L.kl(p, q))
            except sg.UnsupportedError:
                continue
            low, high = mine.support()
            other = theirs.support()
            if low < other[0] or high > other[1]:
                assert found == math.inf, (a, b)
                continue
            # Laplace's density has its kink at the median.
            x, weights = tanh_sinh(np.sort([*ends, np.clip(theirs.median(), ends[0], ends[-1])]))
            wanted = np.sum(weights * mine.pdf(x) * (mine.logpdf(x) - theirs.logpdf(x)))
            np.testing.assert_allclose(found, wanted, 1e-7, 1e-8, err_msg=f"{a} {b}")
            known.append((a, b))
    assert len(known) > 60


def test_gradients_of_such_divergences_are_differences():
    sg.testing.check_grads(lambda a, s, m: L.kl(L.Gamma(a, s), L.Gumbel(m, s)), 2.5, 0.7, 0.3)
    sg.testing.check_grads(lambda m, s, b: L.kl(L.Normal(m, s), L.Laplace(0.3, b)), 0.1, 0.7, 2.0)
    sg.testing.check_grads(lambda a, b: L.kl(L.Uniform(0.2, a), L.Beta(b, 1.5)), 0.7, 2.0)
    sg.testing.check_grads(lambda a, b: L.kl(L.Bernoulli(a), L.Poisson(b)), 0.7, 2.0)


def test_divergences_broadcast_and_join():
    found = L.kl(L.Gamma(np.ones((3, 1)) * 2), L.Exponential(np.ones(4)))
    assert found.shape == (3, 4)
    p, q = L.Gamma(np.array([1.5, 2.0])), L.Exponential(np.array([1.0, 3.0]))
    joined = L.kl(L.Independent(p), L.Independent(q))
    np.testing.assert_allclose(float(joined), value(L.kl(p, q)).sum(), 1e-14)
    exps = (L.Transformed(law, L.Exp()) for law in (L.Normal(), L.Laplace()))
    np.testing.assert_allclose(float(L.kl(*exps)), float(L.kl(L.Normal(), L.Laplace())), 1e-14)
