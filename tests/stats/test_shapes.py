"""Laws of vectors and of transforms; shapes, named sizes, what is refused, and where."""

import doctest
import importlib.util
import inspect
import math

import numpy as np
import pytest
from scipy import stats

import symgrad as sg
from tests.helpers import close, generator, same, value

L = sg.stats
KEY = sg.random.key(5)
COUNT = 40_000
COVARIANCE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])
MEAN = np.array([0.5, -1.0, 2.0])
A = np.array([0.7, 2.0, 3.5])
P = np.array([0.2, 0.5, 0.3])


def points(name, *shape):
    return generator(name).normal(0, 2, shape)


# ---- vectors --------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["covariance", "scale_tril"])
def test_the_multivariate_normal_law(by):
    matrix = COVARIANCE if by == "covariance" else np.linalg.cholesky(COVARIANCE)
    law, expected = (
        L.MultivariateNormal(MEAN, **{by: matrix}),
        stats.multivariate_normal(MEAN, COVARIANCE),
    )
    x = np.concatenate([points("mvn", 5, 3), [[300.0, -200.0, 100.0]]])
    np.testing.assert_allclose(value(law.log_prob(x)), expected.logpdf(x), 1e-12)
    np.testing.assert_allclose(float(law.entropy()), expected.entropy(), 1e-12)
    same(value(law.mean), MEAN)
    close(value(law.variance), np.diag(COVARIANCE), 1e-14)
    drawn = value(law.sample(KEY, (COUNT,)))
    close(drawn.mean(0), MEAN, 0.01)
    close(np.cov(drawn.T), COVARIANCE, 0.015)
    z = (drawn - MEAN) @ np.linalg.inv(np.linalg.cholesky(COVARIANCE)).T
    assert stats.kstest((z**2).sum(1), stats.chi2(3).cdf).pvalue > 1e-3
    assert (law.batch_shape, law.event_shape, drawn.shape) == ((), (3,), (COUNT, 3))


def test_batches_of_multivariate_normal_laws():
    means, factors = points("means", 4, 1, 3), np.linalg.cholesky(COVARIANCE * np.ones((2, 1, 1)))
    law = L.MultivariateNormal(means, scale_tril=factors)
    assert (law.batch_shape, law.mean.shape, law.entropy().shape) == ((4, 2), (4, 2, 3), (4, 2))
    x = points("x", 5, 4, 2, 3)
    found = value(law.log_prob(x))
    for i in np.ndindex(5, 4, 2):
        expected = stats.multivariate_normal(means[i[1], 0], COVARIANCE).logpdf(x[i])
        np.testing.assert_allclose(found[i], expected, 1e-12)
    assert law.sample(KEY, (7,)).shape == (7, 4, 2, 3)


def test_the_divergence_of_multivariate_normal_laws():
    p = L.MultivariateNormal(MEAN, covariance=COVARIANCE)
    q = L.MultivariateNormal(np.zeros(3), covariance=np.eye(3) + 0.3)
    inverse = np.linalg.inv(np.eye(3) + 0.3)
    ratio = np.linalg.slogdet(np.eye(3) + 0.3)[1] - np.linalg.slogdet(COVARIANCE)[1]
    expected = (np.trace(inverse @ COVARIANCE) + MEAN @ inverse @ MEAN - 3 + ratio) / 2
    np.testing.assert_allclose(float(L.kl(p, q)), expected, 1e-12)


def test_gradients_of_the_multivariate_normal_law():
    def log_prob(mean, half, x):
        return L.MultivariateNormal(mean, covariance=half @ half.mT + np.eye(3)).log_prob(x)

    sg.testing.check_grads(log_prob, MEAN, COVARIANCE, points("x", 2, 3))
    sg.testing.check_grads(
        lambda mean, half: L.MultivariateNormal(mean, scale_tril=half).sample(KEY, (2,)),
        MEAN, np.linalg.cholesky(COVARIANCE),
    )  # fmt: skip


def test_the_law_of_dirichlet():
    law, expected = L.Dirichlet(A), stats.dirichlet(A)
    x = np.array([[0.2, 0.5, 0.3], [1e-9, 0.7, 0.3 - 1e-9], [0.98, 0.01, 0.01]])
    np.testing.assert_allclose(value(law.log_prob(x)), expected.logpdf(x.T), 1e-12)
    same(value(law.log_prob([[0.5, 0.6, -0.1], [0.5, 0.5, 0.5]])), np.full(2, -np.inf))
    for part in ("mean", "entropy"):
        found = getattr(law, part)
        found = found if part == "mean" else found()
        np.testing.assert_allclose(value(found), getattr(expected, part)(), 1e-12)
    np.testing.assert_allclose(value(law.variance), expected.var(), 1e-12)
    drawn = value(law.sample(KEY, (COUNT,)))
    assert stats.kstest(drawn[:, 0], stats.beta(A[0], A[1:].sum()).cdf).pvalue > 1e-3
    q = np.array([1.0, 1.5, 0.9])
    mean = np.mean(expected.logpdf(drawn.T) - stats.dirichlet(q).logpdf(drawn.T))
    found = float(L.kl(law, L.Dirichlet(q)))
    assert abs(found - mean) < 0.02
    sg.testing.check_grads(lambda a, b: L.kl(L.Dirichlet(a), L.Dirichlet(b)), A, q)
    assert L.Dirichlet(np.ones((4, 3))).sample(KEY, (2,)).shape == (2, 4, 3)


@pytest.mark.parametrize("by", ["p", "logits"])
def test_the_categorical_law(by):
    law = L.Categorical(**{by: P if by == "p" else np.log(P) + 3})
    np.testing.assert_allclose(value(law.log_prob([0, 1, 2])), np.log(P), 1e-14)
    same(value(law.log_prob([-1, 3])), np.full(2, -np.inf))
    same(value(law.log_prob([0.5])), np.full(1, -np.inf))
    np.testing.assert_allclose(float(law.entropy()), stats.entropy(P), 1e-14)
    seen = np.bincount(value(law.sample(KEY, (COUNT,))), minlength=3)
    assert stats.chisquare(seen, P * COUNT).pvalue > 1e-3
    q = np.array([0.6, 0.1, 0.3])
    found = float(L.kl(law, L.Categorical(q)))
    np.testing.assert_allclose(found, stats.entropy(P, q), 1e-13)
    wide = L.Categorical(np.broadcast_to(P, (4, 3)))
    assert wide.sample(KEY, (2,)).shape == (2, 4)
    assert wide.log_prob(np.zeros((5, 1), int)).shape == (5, 4)


def test_a_categorical_law_with_a_class_that_never_comes():
    law = L.Categorical([0.0, 1.0])
    same(value(law.log_prob([0, 1])), np.array([-np.inf, 0.0]))
    assert float(law.entropy()) == 0
    assert float(L.kl(law, L.Categorical([0.5, 0.5]))) == math.log(2)
    assert float(L.kl(L.Categorical([0.5, 0.5]), law)) == math.inf


@pytest.mark.parametrize("by", ["p", "logits"])
def test_the_multinomial_law(by):
    law = L.Multinomial(10, **{by: P if by == "p" else np.log(P) + 3})
    expected = stats.multinomial(10, P)
    x = np.array([[2, 5, 3], [0, 10, 0], [1, 1, 8]])
    np.testing.assert_allclose(value(law.log_prob(x)), expected.logpmf(x), 1e-12)
    same(value(law.log_prob([[1, 1, 1], [-1, 11, 0]])), np.full(2, -np.inf))
    np.testing.assert_allclose(value(law.mean), expected.mean(), 1e-14)
    np.testing.assert_allclose(value(law.variance), np.diag(expected.cov()), 1e-14)
    drawn = value(law.sample(KEY, (COUNT,)))
    same(drawn.sum(1), np.full(COUNT, 10))
    for i in range(3):
        p = stats.binom(10, P[i]).pmf(np.arange(11)) * COUNT
        held = p > 5
        seen = np.bincount(drawn[:, i], minlength=11)[held]
        assert stats.chisquare(seen, p[held] * seen.sum() / p[held].sum()).pvalue > 1e-3
    assert L.Multinomial([3, 4], P).sample(KEY, (5,)).shape == (5, 2, 3)


def test_independent_laws_are_one_of_vectors():
    scale = np.array([1.0, 2.0, 0.5])
    law = L.Independent(L.Normal(MEAN, scale))
    x = points("independent", 4, 3)
    expected = stats.norm(MEAN, scale).logpdf(x).sum(1)
    np.testing.assert_allclose(value(law.log_prob(x)), expected, 1e-13)
    assert (law.batch_shape, law.event_shape) == ((), (3,))
    assert law.sample(KEY, (2,)).shape == (2, 3)
    np.testing.assert_allclose(float(law.entropy()), stats.norm(MEAN, scale).entropy().sum(), 1e-13)
    other = L.Independent(L.Normal(np.zeros(3), 1.0))
    np.testing.assert_allclose(
        float(L.kl(law, other)), value(L.kl(law.law, other.law)).sum(), 1e-13
    )
    assert L.Independent(L.Normal(np.zeros((2, 3)), 1.0), 2).log_prob(0.0).shape == ()
    with pytest.raises(sg.ShapeError, match="no 2 axes"):
        L.Independent(L.Normal(MEAN, 1.0), 2)
    with pytest.raises(sg.ArgumentError, match="number of axes"):
        L.Independent(L.Normal(MEAN, 1.0), 0.5)


# ---- transforms -----------------------------------------------------------------------------


def test_a_transformed_law_has_the_density_of_the_other():
    x = np.array([0.1, 0.9, 3.0])
    found = L.Transformed(L.Normal(0.3, 0.8), L.Exp())
    np.testing.assert_allclose(
        value(found.log_prob(x)), stats.lognorm(0.8, 0, math.exp(0.3)).logpdf(x), 1e-12
    )
    up, down = (L.Transformed(L.Gumbel(), L.Affine(1.5, s)) for s in (2.0, -2.0))
    for law, expected in ((up, stats.gumbel_r(1.5, 2)), (down, stats.gumbel_l(1.5, 2))):
        for mine, theirs in (
            ("log_prob", "logpdf"),
            ("cdf", "cdf"),
            ("sf", "sf"),
            ("log_cdf", "logcdf"),
        ):
            np.testing.assert_allclose(
                value(getattr(law, mine)(x)), getattr(expected, theirs)(x), 1e-10
            )
        p = np.array([1e-6, 0.3, 0.99])
        np.testing.assert_allclose(value(law.icdf(p)), expected.ppf(p), 1e-10)
        np.testing.assert_allclose([float(law.mean), float(law.variance)], expected.stats(), 1e-12)
        assert stats.kstest(value(law.sample(KEY, (COUNT,))), expected.cdf).pvalue > 1e-3


def test_the_logit_normal_law():
    law = L.Transformed(L.Normal(0.2, 1.5), L.Sigmoid())
    x = np.array([-0.1, 0.0, 1e-12, 0.2, 0.8, 1.0, 1.1])
    z = np.log(x[2:5] / (1 - x[2:5]))
    expected = stats.norm(0.2, 1.5).logpdf(z) - np.log(x[2:5] * (1 - x[2:5]))
    found = value(law.log_prob(x))
    np.testing.assert_allclose(found[2:5], expected, 1e-12)
    same(found[[0, 1, 5, 6]], np.full(4, -np.inf))
    same(value(law.cdf(x))[[0, 1, 5, 6]], np.array([0.0, 0, 1, 1]))
    grid = np.linspace(1e-6, 1 - 1e-6, 200_001)
    np.testing.assert_allclose(np.trapezoid(value(law.prob(grid)), grid), 1, 1e-6)
    assert stats.kstest(value(law.sample(KEY, (COUNT,))), lambda y: value(law.cdf(y))).pvalue > 1e-3


def test_log_determinants_are_summed_over_a_vector():
    law = L.Transformed(L.MultivariateNormal(MEAN, covariance=COVARIANCE), L.Exp())
    x = np.exp(points("logs", 4, 3))
    expected = stats.multivariate_normal(MEAN, COVARIANCE).logpdf(np.log(x)) - np.log(x).sum(1)
    np.testing.assert_allclose(value(law.log_prob(x)), expected, 1e-12)
    same(value(law.log_prob([1.0, -1.0, 2.0])), np.float64(-np.inf))
    assert law.sample(KEY, (2,)).shape == (2, 3)


def test_gradients_of_transformed_laws():
    at = np.array([0.2, 0.7])
    for transform in (L.Exp(), L.Sigmoid()):
        sg.testing.check_grads(
            lambda m, s, x, t=transform: L.Transformed(L.Normal(m, s), t).log_prob(x), 0.3, 0.8, at
        )
    sg.testing.check_grads(
        lambda m, s, x: L.Transformed(L.Logistic(), L.Affine(m, s)).log_prob(x), 0.3, -0.8, at
    )


def test_divergences_of_transformed_laws():
    p, q = L.Normal(0.3, 0.8), L.Normal(0.0, 1.0)
    found = L.kl(L.Transformed(p, L.Exp()), L.Transformed(q, L.Exp()))
    assert float(found) == float(L.kl(p, q)) == float(L.kl(L.LogNormal(0.3, 0.8), L.LogNormal()))
    with pytest.raises(sg.UnsupportedError, match="Transformed has no divergence"):
        L.kl(L.Transformed(p, L.Exp()), L.Transformed(q, L.Sigmoid()))


def test_a_transform_of_ones_own():
    class Cube(L.Transform):
        def forward(self, x):
            return x**3

        def inverse(self, y):
            return sg.sign(y) * sg.abs(y) ** (1 / 3)

        def log_slope(self, x):
            return sg.log(3 * x**2)

    law = L.Transformed(L.Normal(2.0, 0.1), Cube())
    drawn = value(law.sample(KEY, (COUNT,)))
    assert stats.kstest(drawn, lambda y: stats.norm(2, 0.1).cdf(np.cbrt(y))).pvalue > 1e-3
    close(float(law.log_prob(8.0)), stats.norm(2, 0.1).logpdf(2.0) - math.log(12), 1e-12)


# ---- shapes, dtypes -------------------------------------------------------------------------


def test_parameters_broadcast_and_draws_come_in_front():
    law = L.Gamma(np.ones((3, 1)), np.ones(4))
    assert (law.batch_shape, law.event_shape, law.mean.shape) == ((3, 4), (), (3, 4))
    assert law.sample(KEY).shape == (3, 4)
    assert law.sample(KEY, (2,)).shape == (2, 3, 4)
    assert law.log_prob(np.ones((5, 1, 1))).shape == (5, 3, 4)
    with pytest.raises(sg.ShapeError, match=r"(?s)Normal\(.*test_shapes\.py"):
        L.Normal(np.zeros(3), np.ones(2))


def test_sizes_may_be_named():
    mu, x = sg.placeholder("mu", ("N",)), sg.placeholder("x", ("M", "N"))
    key = sg.placeholder("key", (2,), "uint64")
    law = L.Normal(mu, 2.0)
    program = sg.compile([mu, x, key], [law.log_prob(x), law.sample(key, ("M",))])
    at, words = (np.arange(3.0), points("named", 5, 3)), value(KEY)
    found, drawn = program(*at, words)
    np.testing.assert_allclose(found, stats.norm(at[0], 2).logpdf(at[1]), 1e-13)
    assert drawn.shape == (5, 3)
    p = sg.placeholder("p", ("N", "K"))
    several = sg.compile([p], [L.Categorical(p).log_prob(0), L.Dirichlet(p).mean])
    laws = np.array([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
    np.testing.assert_allclose(several(laws)[0], np.log(laws[:, 0]), 1e-14)
    factor = sg.placeholder("l", ("K", "K"))
    normal = L.MultivariateNormal(np.zeros(1), scale_tril=factor)
    found = sg.compile([factor], normal.entropy())(np.eye(3))
    np.testing.assert_allclose(found, stats.multivariate_normal(np.zeros(3)).entropy(), 1e-13)


def test_vmap_over_parameters_and_keys():
    keys, rates = sg.random.split(KEY, 3), np.array([0.5, 2.0, 9.0])
    for draw in (
        lambda key, rate: L.Gamma(rate).sample(key, (2,)),
        lambda key, rate: L.Poisson(rate).sample(key, (2,)),
        lambda key, rate: L.Binomial(9, rate / 10).sample(key, (2,)),
        lambda key, rate: L.VonMises(0.0, rate).sample(key, (2,)),
    ):
        found = value(sg.vmap(draw)(keys, sg.constant(rates)))
        same(found, np.stack([value(draw(keys[i], rates[i])) for i in range(3)]))


def test_the_dtype_is_that_of_the_floats_among_the_parameters():
    single = np.float32(0.5)
    assert L.Normal(single, 2.0).log_prob(1.0).dtype == "float32"
    assert L.Normal(single, 2.0).log_prob(np.ones(2)).dtype == "float64"
    assert L.Binomial(np.arange(3), single).log_prob(1).dtype == "float32"
    assert L.Poisson(3).log_prob([1, 2]).dtype == "float64"
    assert L.Normal(single).sample(KEY).dtype == "float32"
    with pytest.raises(sg.DtypeError, match="complex128"):
        L.Normal(1j, 1.0)


# ---- refusals -------------------------------------------------------------------------------

BAD = [
    (lambda s: L.Normal(0.0, s), -1.0, "scale of Normal is positive, not -1.0"),
    (lambda s: L.Normal(0.0, s), np.nan, "scale of Normal is positive, not nan"),
    (lambda s: L.Gamma(s), [1.0, 0.0], "concentration of Gamma is positive, not 0.0"),
    (lambda s: L.Poisson(s), -0.5, "rate of Poisson is at least 0, not -0.5"),
    (lambda s: L.Bernoulli(s), 1.5, "p of Bernoulli is a probability, from 0 to 1, not 1.5"),
    (lambda s: L.Binomial(s, 0.5), 2.5, "n of Binomial is an integer from 0 on, not 2.5"),
    (lambda s: L.Categorical(s), [0.5, 0.6], r"p of Categorical has .* sum to 1, not 1\.1"),
    (lambda s: L.Uniform(1.0, s), 1.0, "high - low of Uniform is positive, not 0.0"),
    (lambda s: L.Transformed(L.Normal(), L.Affine(0.0, s)), 0.0, "scale of Affine is not 0"),
]


@pytest.mark.parametrize(("law", "bad", "words"), BAD)
def test_parameters_are_refused_known_or_fed(law, bad, words):
    x = sg.placeholder("x", np.shape(bad))
    program = sg.compile([x], law(x).log_prob(1.0))
    for attempt in (lambda: law(bad), lambda: program(np.asarray(bad))):
        with pytest.raises(sg.KernelError, match=rf"(?s){words}.*test_shapes\.py"):
            attempt()


def test_what_is_no_law_is_refused():
    for attempt in (lambda: L.Bernoulli(), lambda: L.Bernoulli(0.5, 0.0)):
        with pytest.raises(sg.ArgumentError, match="Bernoulli takes one of them: p= or logits="):
            attempt()
    for attempt in (
        lambda: L.Dirichlet(1.0),
        lambda: L.Categorical(0.5),
        lambda: L.MultivariateNormal(0.0, np.eye(2)),
    ):
        with pytest.raises(sg.ShapeError, match="vector"):
            attempt()
    with pytest.raises(sg.ShapeError):
        L.MultivariateNormal(np.zeros(3), scale_tril=np.eye(2))
    for attempt, words in (
        (lambda: L.Normal(None), "Normal takes a number or array for loc"),
        (lambda: L.Transformed(3.0, L.Exp()), "a law and a transform"),
        (lambda: L.Transformed(L.Normal(), np.exp), "a law and a transform"),
        (lambda: L.Independent(3.0), "laws of sg.stats are joined"),
        (lambda: L.kl(3, 4), "two laws of sg.stats"),
    ):
        with pytest.raises(sg.ArgumentError, match=words):
            attempt()
    with pytest.raises(TypeError, match=r"Normal\(loc=0\.0, scale=1\.0\)"):
        L.Normal(0.0, sigma=1.0)
    with pytest.raises(AttributeError):
        L.Normal().loc = 3.0
    law = L.MultivariateNormal(np.zeros(2), covariance=np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(sg.KernelError):
        value(law.log_prob(np.zeros(2)))


# ---- the public face ------------------------------------------------------------------------


def test_laws_are_told_from_each_other_and_shown():
    assert L.Normal() != L.Normal()
    assert repr(L.Normal(0.0, 1.0)).startswith("Normal(loc=<constant float64")
    assert str(inspect.signature(L.StudentT)) == "(df, loc=0.0, scale=1.0)"
    assert dir(L) == sorted(L.__all__)


@pytest.mark.parametrize("name", [n for n in L.__all__ if ">>>" in (getattr(L, n).__doc__ or "")])
def test_the_examples_run(name):
    found = getattr(L, name)
    names = {"sg": sg, "np": np}
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(found), names, name, None, 0)
    told = []
    doctest.DocTestRunner().run(test, out=told.append)
    assert not told, "".join(told)


def test_a_saved_program_is_the_same(tmp_path):
    x, scale = sg.placeholder("x", (4,)), sg.placeholder("s", ())
    key = sg.placeholder("key", (2,), "uint64")
    law = L.StudentT(3.0, 0.0, scale)
    y = (
        sg.sum(law.log_prob(x))
        + sg.sum(law.sample(key, (3,)))
        + sg.sum(L.Binomial(7, scale).sample(key))
    )
    program = sg.compile([x, scale, key], [y, sg.grad(y, scale)])
    at = points("saved", 4), np.asarray(0.7), value(KEY)
    expected = program(*at)
    path = program.save_source(tmp_path / "saved_law.py")
    spec = importlib.util.spec_from_file_location("saved_law", path)
    saved = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(saved)
    for found, wanted in zip(saved.Program()(*at), expected, strict=True):
        same(found, wanted)
