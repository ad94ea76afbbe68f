"""Random numbers: the same for a key, of the law they say, with gradients where there are any."""

import importlib.util

import numpy as np
import pytest
from scipy import special, stats

import symgrad as sg
from symgrad.ir.errors import DtypeError, ShapeError
from tests.helpers import close, each, same, value

R = sg.random
KEY = R.key(7)
COUNT = 20_000
LAWS = {
    "uniform": (lambda **k: R.uniform(KEY, low=-1.0, high=3.0, **k), stats.uniform(-1, 4)),
    "normal": (lambda **k: R.normal(KEY, loc=1.0, scale=2.0, **k), stats.norm(1, 2)),
    "truncated": (
        lambda **k: R.truncated_normal(KEY, low=-0.5, high=2.0, **k), stats.truncnorm(-0.5, 2)
    ),
    "tail": (lambda **k: R.truncated_normal(KEY, low=7.0, high=9.0, **k), stats.truncnorm(7, 9)),
    "exponential": (lambda **k: R.exponential(KEY, scale=3.0, **k), stats.expon(0, 3)),
    "gumbel": (lambda **k: R.gumbel(KEY, loc=1.0, scale=0.5, **k), stats.gumbel_r(1, 0.5)),
    "gamma": (lambda **k: R.gamma(KEY, 2.5, scale=2.0, **k), stats.gamma(2.5, 0, 2)),
    "small gamma": (lambda **k: R.gamma(KEY, 0.3, **k), stats.gamma(0.3)),
    "beta": (lambda **k: R.beta(KEY, 2.0, 0.7, **k), stats.beta(2, 0.7)),
    "dirichlet": (lambda **k: R.dirichlet(KEY, [2.0, 0.3, 0.4], **k)[:, 0], stats.beta(2, 0.7)),
}  # fmt: skip
FREQUENCIES = {
    "bernoulli": (lambda n: R.bernoulli(KEY, 0.3, n), [0.7, 0.3]),
    "randint": (lambda n: R.randint(KEY, n, low=0, high=4), [0.25] * 4),
    "poisson": (lambda n: R.poisson(KEY, 0.8, n), stats.poisson(0.8).pmf(range(12))),
    "categorical": (lambda n: R.categorical(KEY, np.log([0.1, 0.6, 0.3]), n), [0.1, 0.6, 0.3]),
    "choice": (lambda n: R.choice(KEY, 3, n, p=[0.5, 0.0, 0.5]), [0.5, 0, 0.5]),
    "choice of all": (lambda n: R.choice(KEY, 5, n), [0.2] * 5),
}


def correlation(a, b):
    return abs(np.corrcoef(value(a), value(b))[0, 1])


# ---- laws -----------------------------------------------------------------------------------


@each("dtype", ["float32", "float64"])
@each("name", LAWS)
def test_the_law_is_that_of_scipy(name, dtype):
    draw, law = LAWS[name]
    found = value(draw(shape=(COUNT,), dtype=dtype))
    assert found.dtype == dtype
    assert stats.kstest(found.astype(float), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", FREQUENCIES)
def test_the_frequencies_are_the_probabilities(name):
    draw, p = FREQUENCIES[name]
    seen = np.bincount(value(draw((COUNT,))).astype(int), minlength=len(p))
    expected = COUNT * np.asarray(p)
    assert not seen[expected == 0].any()
    held = expected > 5
    scaled = expected[held] * seen[held].sum() / expected[held].sum()
    assert stats.chisquare(seen[held], scaled).pvalue > 1e-3


def test_permutations_and_choices_without_replacement():
    same(np.sort(value(R.permutation(KEY, 50))), np.arange(50))
    x = np.arange(12.0).reshape(3, 4)
    order = value(R.permutation(KEY, 4))
    same(value(R.permutation(KEY, x, axis=-1)), x[:, order])
    assert len(np.unique(value(R.choice(KEY, 20, (4, 5), replace=False)))) == 20
    same(value(R.choice(KEY, x, (2,), axis=1)), x[:, value(R.choice(KEY, 4, (2,)))])
    keys = R.split(KEY, 300)
    drawn = [value(R.choice(k, 3, (2,), p=[0.1, 0.9, 0.0], replace=False)) for k in keys]
    same(np.unique(np.sort(drawn, axis=1), axis=0), np.array([[0, 1]]))


# ---- keys -----------------------------------------------------------------------------------


def test_the_numbers_are_those_of_numpys_philox():
    """Written down, so that they are the same everywhere; and NumPy's, so that others have them."""
    words = np.random.SeedSequence(7).generate_state(2, np.uint64)
    same(value(KEY), words)
    generator = np.random.Generator(np.random.Philox(key=words))
    same(value(R.uniform(KEY, (3,))), generator.random(3))
    same(
        value(R.split(R.key(0)))[0], np.array([5312087694084997812, 2167078804631760376], "uint64")
    )


def test_a_key_gives_the_same_numbers_and_others_do_not():
    same(value(R.normal(KEY, (5,))), value(R.normal(KEY, (5,))))
    key = R.key(1)
    a, b = R.split(key)
    made = [key, a, b, R.fold_in(key, 0), R.fold_in(key, 1), R.fold_in(a, 0), R.key(2)]
    drawn = [R.normal(k, (COUNT,)) for k in made]
    assert max(correlation(x, y) for i, x in enumerate(drawn) for y in drawn[:i]) < 0.04
    same(value(R.split(KEY, 5))[:2], value(R.split(KEY)))
    same(value(R.fold_in(KEY, np.int8(3))), value(R.fold_in(KEY, 3)))


def test_equal_draws_of_a_program_are_one():
    key = sg.placeholder("key", (2,), "uint64")
    x, y = R.normal(key, (4,)), R.normal(key, (4,))
    program = sg.compile([key], x - y)
    assert program.source.split("def step")[1].count("draw(") <= 1
    same(program(np.array([1, 2], "uint64")), np.zeros(4))


def test_a_program_is_fed_keys_and_steps():
    key, step = sg.placeholder("key", (2,), "uint64"), sg.placeholder("step", (), "int64")
    x = sg.placeholder("x", ("N", 3), "float32")
    noise = R.normal(R.fold_in(key, step), x.shape, dtype="float32")
    program = sg.compile([key, step, x], noise + x)
    words, zeros = np.array([1, 2], "uint64"), np.zeros((4, 3), "float32")
    found = program(words, 5, zeros)
    same(found, value(R.normal(R.fold_in(sg.constant(words), 5), (4, 3), dtype="float32")))
    assert not np.any(found == program(words, 6, zeros))


def test_the_number_of_threads_changes_nothing():
    key, x = sg.placeholder("key", (2,), "uint64"), sg.placeholder("x", 300_000, "float32")
    y = sg.exp(R.normal(key, x.shape, dtype="float32") * x)
    feeds = np.array([3, 4], "uint64"), np.ones(300_000, "float32")
    same(sg.compile([key, x], y, threads=2)(*feeds), sg.compile([key, x], y, threads=1)(*feeds))


def test_vmap_draws_for_each_key():
    keys = R.split(KEY, 3)
    for draw in (
        lambda k: R.normal(k, (2, 2)),
        lambda k: R.gamma(k, [1.0, 2.0]),
        lambda k: R.poisson(k, [5.0, 20.0]),
        lambda k: R.permutation(k, 4),
        lambda k: R.randint(R.fold_in(k, 1), (3,), high=9),
        lambda k: R.split(k, 2),
    ):
        same(value(sg.vmap(draw)(keys)), np.stack([value(draw(k)) for k in keys]))


def test_a_saved_program_draws_the_same(tmp_path):
    key, a = sg.placeholder("key", (2,), "uint64"), sg.placeholder("a", 3)
    y = R.gamma(key, a) + R.normal(R.split(key)[0], (3,)) + R.permutation(R.fold_in(key, 1), 3)
    program = sg.compile([key, a], [y, sg.grad(sg.sum(y), a)])
    spec = importlib.util.spec_from_file_location("saved", program.save_source(tmp_path / "s.py"))
    saved = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(saved)
    feeds = np.array([3, 4], "uint64"), np.array([0.5, 2.0, 9.0])
    for found, expected in zip(saved.Program()(*feeds), program(*feeds), strict=True):
        same(found, expected)


# ---- gradients ------------------------------------------------------------------------------


def test_normal_and_uniform_are_functions_of_their_parameters():
    a, b = sg.placeholder("a", ()), sg.placeholder("b", ())
    z, u = value(R.normal(KEY, (9,))), value(R.uniform(KEY, (9,)))
    y = sg.sum(R.normal(KEY, (9,), loc=a, scale=b) + R.uniform(KEY, (9,), low=a, high=b))
    da, db = sg.compile([a, b], sg.grad(y, [a, b]))(1.0, 2.0)
    close(da, np.sum(1 + 1 - u))
    close(db, np.sum(z + u))


def test_gamma_keeps_its_quantile():
    """Along the gradient the distribution function of what is drawn stays where it is."""
    a = sg.placeholder("a", 200)
    at = np.geomspace(0.05, 500, 200)
    y = R.gamma(KEY, a)
    x, slope = sg.compile([a], [y, sg.grad(sg.sum(y), a)])(at)
    h = 1e-5 * at
    moved = special.gammaincinv(at + h, special.gammainc(at, x))
    back = special.gammaincinv(at - h, special.gammainc(at, x))
    np.testing.assert_allclose(slope, (moved - back) / (2 * h), 2e-6, 1e-12)


def test_the_mean_gradient_is_the_gradient_of_the_mean():
    """Of E[log x] = digamma(a) for gamma, a / (a + b) for beta."""
    a, b = sg.placeholder("a", ()), sg.placeholder("b", ())
    log = sg.mean(sg.log(R.gamma(KEY, a, (COUNT,))))
    assert abs(sg.compile([a], sg.grad(log, a))(2.0) - special.polygamma(1, 2)) < 0.02
    mean = sg.mean(R.beta(KEY, a, b, (COUNT,)))
    da, db = sg.compile([a, b], sg.grad(mean, [a, b]))(2.0, 3.0)
    assert abs(da - 3 / 25) < 0.005
    assert abs(db + 2 / 25) < 0.005


def test_no_gradient_flows_to_discrete_laws():
    p = sg.placeholder("p", 3)
    for draw in (R.poisson, R.bernoulli, R.categorical):
        with pytest.raises(sg.GradientError):
            sg.grad(sg.sum(sg.astype(draw(KEY, p), "float64")), p)


# ---- types and errors -----------------------------------------------------------------------


def test_shapes_and_dtypes():
    assert R.normal(KEY).type == sg.TensorType((), "float64")
    assert R.normal(KEY, ("N", 2), dtype="float16").type == sg.TensorType(("N", 2), "float16")
    loc = sg.placeholder("loc", ("N", 1), "float32")
    assert R.normal(KEY, loc=loc, scale=np.ones(3, "float32")).type == sg.TensorType(
        ("N", 3), "float32"
    )
    assert R.categorical(KEY, loc, axis=0).type == sg.TensorType((1,), "int64")
    assert R.randint(KEY, (2,), high=200, dtype="uint8").dtype == "uint8"
    assert R.permutation(KEY, loc.shape[0]).shape == loc.shape[:1]
    assert value(R.normal(KEY, (0, 2))).shape == (0, 2)


@each(
    ("error", "words", "draw"),
    [
        (DtypeError, "a key is uint64", lambda: R.normal(0)),
        (DtypeError, "a key is uint64", lambda: R.normal(np.zeros(2))),
        (ShapeError, "for several use vmap", lambda: R.normal(R.split(KEY))),
        (DtypeError, "a seed is an int", lambda: R.key(-1)),
        (DtypeError, "a seed is an int", lambda: R.key(1.5)),
        (ShapeError, "number of keys", lambda: R.split(KEY, -1)),
        (DtypeError, "integers", lambda: R.fold_in(KEY, 1.5)),
        (DtypeError, "floats are drawn", lambda: R.normal(KEY, dtype="int64")),
        (ShapeError, "do not broadcast", lambda: R.normal(KEY, (2,), loc=np.ones(3))),
        (ShapeError, "no integers from 3", lambda: R.randint(KEY, low=3, high=3)),
        (DtypeError, "cannot hold", lambda: R.randint(KEY, high=300, dtype="uint8")),
        (DtypeError, "randint takes ints", lambda: R.randint(KEY, high=3.5)),
        (ShapeError, "cannot be drawn", lambda: R.choice(KEY, 3, (4,), replace=False)),
        (ShapeError, "for 3 parts", lambda: R.choice(KEY, 3, p=[0.5, 0.5])),
        (ShapeError, "for 2 parts", lambda: R.choice(KEY, np.ones((2, 3)), p=np.ones(3) / 3)),
        (DtypeError, "float32 and float64", lambda: R.gamma(KEY, 1.0, dtype="float16")),
        (ShapeError, "out of range", lambda: R.permutation(KEY, np.ones(3), axis=1)),
    ],
)
def test_what_is_refused(error, words, draw):
    with pytest.raises(error, match=words):
        draw()


@pytest.mark.parametrize(
    ("draw", "good", "bad", "words"),
    [
        (lambda p: R.bernoulli(KEY, p), 1.0, 2.0, "from 0 to 1, not 2.0"),
        (lambda p: R.bernoulli(KEY, p), [0.0, 0.5], [0.5, np.nan], "from 0 to 1, not nan"),
        (lambda p: R.choice(KEY, 2, p=p), [0.5, 0.5], [1.5, -0.5], "from 0 to 1, not 1.5"),
        (lambda p: R.choice(KEY, 2, p=p), [0.5, 0.5], [0.5, 0.4], r"sum to 1, not 0\.9"),
        (lambda p: R.choice(KEY, 2, p=p, replace=False), [1.0, 0.0], [1.0, 1.0], "sum to 1, not 2"),
    ],
)
def test_what_is_no_law_is_refused_known_or_fed(draw, good, bad, words):
    x = sg.placeholder("x", np.shape(good))
    program = sg.compile([x], draw(x))
    same(program(np.asarray(good)), value(draw(good)))
    for attempt in (lambda: draw(bad), lambda: program(np.asarray(bad))):
        with pytest.raises(sg.KernelError, match=rf"(?s){words}.*test_random\.py"):
            attempt()


def test_as_many_probabilities_as_parts_also_of_named_dimensions():
    x, p = sg.placeholder("x", ("N", 2)), sg.placeholder("p", ("N",))
    program = sg.compile([x, p], R.choice(KEY, x, (3,), p=p))
    same(program(np.eye(2), np.array([0.0, 1.0])), np.array([[0.0, 1.0]] * 3))
    many = sg.placeholder("many", (4, 3))
    drawn = sg.vmap(lambda p: R.choice(KEY, 3, p=p))(many)
    same(sg.compile([many], drawn)(np.eye(3)[[0, 1, 2, 1]]), np.array([0, 1, 2, 1]))


def test_integers_below_a_named_dimension():
    x = sg.placeholder("x", ("N",))
    drawn = [R.randint(KEY, (50,), high=x.shape[0]), R.choice(KEY, x.shape[0], (50,))]
    for found in sg.compile([x], drawn)(np.ones(3)):
        assert set(found) == {0, 1, 2}
