"""`sg.same`: pairs that are equal, pairs that are not, and what it is asked with."""

import math

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import each
from tests.proof import campaign

x, y = sg.placeholder("x", (3, 4)), sg.placeholder("y", (3, 4))
A, B, v = sg.placeholder("A", (4, 4)), sg.placeholder("B", (4, 4)), sg.placeholder("v", 4)
W1, W2 = sg.placeholder("W1", (4, 5)), sg.placeholder("W2", (5, 2))
X, t, w = sg.placeholder("X", ("N", 4)), sg.placeholder("t", "N"), sg.placeholder("w", 4)
T = sg.placeholder("T", (3, 2))
s = sg.sigmoid(x)
rest = X @ w - t
hidden = sg.relu(x @ W1)
net = sg.sum((hidden @ W2 - T) ** 2)
entropy = -sg.mean(sg.sum(y * sg.log_softmax(x, axis=1), axis=1))
losses = sg.log(1 + sg.exp(-v))

c, d = (sg.placeholder(name, 3, "complex128") for name in "cd")
n = sg.placeholder("n", ())
i, j, M = (sg.placeholder(name, (4, 4)[:k], int) for name, k in (("i", 1), ("j", 1), ("M", 2)))
P = sg.linalg.cholesky(sg.placeholder("P", (4, 4), bool).astype("float64"))
short, single = sg.placeholder("short", 3, "int8"), sg.placeholder("single", 3, "float32")
within = sg.placeholder("within", 3, within=(0, 1))

EQUAL = {
    "binomial": ((x + y) ** 2, x * x + 2 * x * y + y * y),
    "third binomial": ((x - y) * (x + y), x**2 - y**2),
    "fractions": (1 / (1 + x) + 1 / (1 - x), 2 / (1 - x * x)),
    "sigmoid": (s * (1 - s), sg.exp(-x) / (1 + sg.exp(-x)) ** 2),
    "tanh by sigmoid": (sg.tanh(x), 2 * sg.sigmoid(2 * x) - 1),
    "tanh's slope": (1 - sg.tanh(x) ** 2, 1 / sg.cosh(x) ** 2),
    "softplus": (sg.softplus(x) - sg.softplus(-x), x),
    "addition theorem": (sg.sin(x + y), sg.sin(x) * sg.cos(y) + sg.cos(x) * sg.sin(y)),
    "double angle": (sg.cos(2 * x), 1 - 2 * sg.sin(x) ** 2),
    "error function": (sg.erf(-x) + sg.erfc(-x), sg.ones_like(x)),
    "magnitude": (sg.sqrt(x * x), sg.maximum(x, -x)),
    "relu twice": (sg.relu(x) + sg.relu(-x), sg.abs(x)),
    "relu of relu": (sg.relu(sg.relu(x) - 0.5 * sg.relu(-x)), sg.relu(x)),
    "larger and smaller": (sg.maximum(x, y) - sg.minimum(x, y), sg.abs(x - y)),
    "masks": (sg.where((x > 0) & (x > 0), x, 0 * x), sg.where(x >= 0, x, 0)),
    "exp of relu": (sg.exp(sg.relu(x)), sg.where(x > 0, sg.exp(x), 1)),
    "leaky relu": (sg.maximum(x, 0.1 * x), sg.nn.leaky_relu(x, 0.1)),
    "products": ((A @ B).T, B.T @ A.T),
    "association": ((x @ A) @ B, x @ (A @ B)),
    "trace": (sg.linalg.trace(A @ B), sg.sum(A * B.T)),
    "cyclic trace": (sg.linalg.trace(A @ B @ A), sg.linalg.trace(A @ A @ B)),
    "quadratic form": (v @ A @ v, v @ ((A + A.T) / 2) @ v),
    "norm": (sg.linalg.vector_norm(v - w) ** 2, v @ v - 2 * (v @ w) + w @ w),
    "variance": (sg.var(x, axis=0), sg.mean(x**2, axis=0) - sg.mean(x, axis=0) ** 2),
    "softmax shifted": (sg.softmax(x + y[:, :1], axis=1), sg.softmax(x, axis=1)),
    "softmax sums to 1": (sg.sum(sg.softmax(x, axis=1), axis=1), sg.ones(3)),
    "least squares": (sg.grad(sg.mean(rest**2), w), 2 * X.T @ rest / sg.sum(sg.ones_like(t))),
    "normal equations": (sg.hessian(sg.sum(rest**2), w), 2 * X.T @ X),
    "two layers": (sg.grad(net, W1), x.T @ ((2 * (hidden @ W2 - T) @ W2.T) * (x @ W1 > 0))),
    "cross entropy": (
        sg.grad(entropy, x),
        (sg.softmax(x, axis=1) * sg.sum(y, axis=1, keepdims=True) - y) / 3,
    ),
    "logistic curvature": (
        sg.hessian(sg.sum(losses), v),
        sg.eye(4) * (sg.sigmoid(v) * sg.sigmoid(-v)),
    ),
    "solve": (sg.linalg.solve(A, v), sg.linalg.inv(A) @ v),
    "ends": (sg.max(-x, axis=0), -sg.min(x, axis=0)),
    "a turn": (sg.sin(x + 2 * np.pi), sg.sin(x)),
    "a quarter of a turn": (sg.cos(np.pi / 2 - 3 * x), sg.sin(3 * x)),
    "turns of single precision": (sg.tan(single - 4 * np.pi), sg.tan(single)),
    "determinants": (sg.linalg.det((A @ B).T), sg.linalg.det(A @ B)),
    "determinants of products": (
        sg.linalg.det(2 * A @ B.T @ A), 16 * sg.linalg.det(A) ** 2 * sg.linalg.det(B)),
    "determinants of inverses": (
        sg.linalg.det(sg.linalg.inv(A @ B) @ A) * sg.linalg.det(B), sg.ones(())),
    "larger and smaller integers": (sg.maximum(i, j) + sg.minimum(j, i), i + j),
    "products of larger and smaller integers": (sg.maximum(i, j) * sg.minimum(i, j), i * j),
    "larger integers of negative ones": (-sg.maximum(short, -short), sg.minimum(short, -short)),
    "integers": ((i + j) * (i - j), i * i - j * j),
    "matrices of integers": ((M @ M).T, M.T @ M.T),
    "integers and masks": (sg.where(x[0] > 0, i + i, 2 * j), 2 * sg.where(x[0] > 0, i, j)),
}  # fmt: skip

DIFFERENT = {
    "forgotten factor": (sg.grad(sg.sum(rest**2), w), X.T @ rest),
    "forgotten sign": (sg.grad(sg.sum(losses), v), sg.sigmoid(-v)),
    "transposed": (A @ B, B @ A),
    "at the tie only": (x > 0, x >= 0),
    "at one tie of a scalar": (sg.where(n > 0, 1.0, 0.1), sg.where(n >= 0, 1.0, 0.1)),
    "a tie that is summed": (sg.sum(sg.sign(x)), sg.sum(2 * sg.astype(x > 0, "float64") - 1)),
    "small": (x * (1 + 1e-10), x),
    "for large numbers only": (sg.relu(x - 1.7) * 1e-3, 0 * x),
    "rounding to even": (sg.floor(x + 0.5), sg.rint(x)),
    "without the mask": (sg.grad(net, W1), x.T @ (2 * (hidden @ W2 - T) @ W2.T)),
    "mean for sum": (sg.mean(rest**2), sg.sum(rest**2)),
    "wrong axis": (sg.softmax(A, axis=0), sg.softmax(A, axis=1)),
    "determinants of sums": (sg.linalg.det(A + B), sg.linalg.det(A) + sg.linalg.det(B)),
    "determinants of other powers": (sg.linalg.det(2 * A), 8 * sg.linalg.det(A)),
    "integers next to each other": (sg.maximum(short, short + 1), short + 1),
    "casts that round down": (sg.astype(x, int), sg.astype(sg.floor(x), int)),
    "types": (x, sg.astype(x, "float32")),
    "roots of matrices of masks": (P, 2 * P),
    "half a turn": (sg.sin(x + np.pi), sg.sin(x)),
    "not quite a turn": (sg.sin(x + 6.2831), sg.sin(x)),
    "integers that wrap before they are summed": (sg.sum(short + short), 2 * sg.sum(short)),
    "long integers that wrap": (i + 1 > i, sg.equal(i, i)),
    "squares of integers that wrap": (i * i >= 0, sg.equal(i, i)),
    "integers that wrap before they are wider": (sg.astype(3 * short, int), 3 * short.astype(int)),
}


@each("name", EQUAL)
def test_equal(name):
    found = sg.same(*EQUAL[name])
    assert found, str(found)
    assert found.grade is not None
    assert str(found).startswith("equal at ")


@each("name", DIFFERENT)
def test_different(name):
    f, g = DIFFERENT[name]
    found = sg.same(f, g)
    assert found.verdict == "different", str(found)
    if name == "types":
        assert "float32" in str(found)
        return
    point = found.counterexample
    fed = {n.name: n for n in sg.Graph([f, g]).inputs}
    values = sg.compile(list(fed.values()), [f, g])(**point.feeds)
    for value, told in zip(values, (point.first, point.second), strict=True):
        np.testing.assert_allclose(value, told)
    assert values[0][point.place] != values[1][point.place]
    assert str(point.first[point.place]) in str(found)


def test_a_power_of_any_sign_is_not_taken_for_positive():
    a = sg.placeholder("a", ())
    far = (a + 100) ** n  # at a = -101, n = 1, which no point is near
    assert sg.same(sg.sqrt(far * far), far).verdict == "undecided"
    assert sg.same(sg.abs(far), far).verdict == "undecided"
    assert sg.same(far * far, (a + 100) ** (2 * n))


@pytest.mark.parametrize(
    ("f", "g"),
    [
        (sg.where(sg.tanh(100 * x) < 1, x, 0.0), x),
        (sg.where(sg.exp(-1e5 * x * x) > 0, x, 0.0), x),
        (sg.where(x * x + 1e20 > 1e20 - 1, x, 0.0), x),
        (c * (d + 1j), c * d + 1j * c),
        (sg.exp(c + d), sg.exp(c) * sg.exp(d)),
        (sg.relu(within - within**2), within - within**2),
    ],
)
def test_rounding_does_not_refute(f, g):
    assert sg.same(f, g).verdict != "different"


def test_numbers_that_are_no_floats():
    y = sg.exp(x)
    assert sg.same(sg.log(y * 1e-200 * 1e-200), x - 400 * math.log(10))
    assert sg.same((3 * x) ** 1e300, x + 1).verdict != "equal"
    assert sg.same((3 * x) ** 1e7, x + 1).verdict != "equal"


def test_numbers_of_single_precision_are_told_apart():
    f, g = (sg.placeholder(name, 3, "float32") for name in "fg")
    for factor in (1 + 2e-5, 1 - 2e-5):
        assert sg.same(sg.exp(f) * np.float32(factor), sg.exp(f)).verdict != "equal"
    h = 1 + sg.sqrt(1 + g * g)
    assert sg.same(h + np.float32(1e-5) * sg.tanh(g), h).verdict != "equal"
    assert sg.same(f * np.float32(1 / 3), f / 3)


def test_declared_ranges_are_compared():
    with pytest.raises(sg.GraphError, match="different ranges"):
        sg.same(within, sg.placeholder("within", 3))


PLACES = {
    "reals": (v**0, v**3 / sg.rint(v**3)),  # which is NaN at 0
    "values": (sg.where(v < -1, 1 / (0 * v), v), sg.where(v < -1, 1 / (0 * v), abs(v))),
    "bits": (short, abs(short)),  # whose difference wraps
}


@each("exact", PLACES)
def test_a_counterexample_names_an_element_that_differs(exact):
    point = sg.same(*PLACES[exact], exact=exact).counterexample
    first, second = point.first[point.place], point.second[point.place]
    assert first != second
    assert np.isfinite([first, second]).all()


def test_a_counterexample_is_simple():
    assert sg.same(sg.relu(v) + 1, sg.abs(v) + 1).counterexample.feeds["v"].tolist() == [-1.0] * 4


def test_parts_of_decompositions_are_told_apart():
    values = sg.linalg.eigvalsh(A + A.T)
    assert sg.same(values, 2 * values).verdict == "different"
    assert sg.same(values, -sg.linalg.eigvalsh(-A - A.T)[::-1]).verdict == "undecided"


def test_the_finest_grade_is_told():
    assert sg.same(x, x).grade == sg.Exact.BITS
    assert sg.same(sg.negative(-x), x).grade == sg.Exact.BITS
    assert sg.same(x + 0, x).grade == sg.Exact.VALUES
    assert sg.same(sg.exp(x) * sg.exp(y), sg.exp(x + y)).grade == sg.Exact.REALS


def test_equal_as_reals_and_not_to_the_bit():
    assert sg.same((x + y) + 1, x + (y + 1))
    found = sg.same((x + y) + 1, x + (y + 1), exact="bits")
    assert found.verdict == "different"
    assert sg.same(x + 0, x, exact="bits").counterexample.feeds["x"].flat[0] == 0


def test_undecided_says_what_was_tried():
    found = sg.same(sg.sum(sg.sort(v)), sg.sum(v))
    assert found.verdict == "undecided"
    assert not found
    assert "normal forms" in str(found)
    assert "agree at" in str(found)


def test_several_at_once():
    both = sg.grad(sg.sum(rest**2), [w, t])
    assert sg.same(both, [2 * X.T @ rest, -2 * rest])
    assert not sg.same(both, [2 * X.T @ rest, 2 * rest])
    with pytest.raises(sg.ArgumentError, match="given 2 and 1 part;"):
        sg.same(both, w)


def test_placeholders_are_the_same_by_name():
    other = sg.placeholder("x", (3, 4))
    assert sg.same(other * 2, x + x)
    with pytest.raises(sg.GraphError, match="two inputs are called 'x'"):
        sg.same(sg.sum(sg.placeholder("x", 4)), sg.sum(x))


def test_variables_and_numbers():
    parameter = sg.variable("parameter", np.ones(3))
    assert sg.same(parameter * 0 + 1, np.ones(3))
    assert not sg.same(parameter, np.ones(3))


def test_a_gradient_by_hand():
    loss = sg.mean(rest**2)
    n = sg.sum(sg.ones_like(t))
    assert sg.testing.assert_same_gradient(loss, w, by_hand=2 * X.T @ rest / n, proved=True)
    with pytest.raises(AssertionError, match=r"0.5 times the derived one"):
        sg.testing.assert_same_gradient(loss, w, by_hand=X.T @ rest / n)
    product = sg.sum(x @ A * 3)
    by_hand = sg.grad(product, A)
    with pytest.raises(sg.ArgumentError, match="by_hand is one node, not"):
        sg.testing.assert_same_gradient(loss, w, by_hand=[w])
    with pytest.raises(AssertionError, match="it is the transposed one"):
        sg.testing.assert_same_gradient(product, A, by_hand=by_hand.T)
    with pytest.raises(sg.ArgumentError, match="transpose it"):
        sg.testing.assert_same_gradient(net, W1, by_hand=W1.T)
    with pytest.raises(AssertionError, match="elements differ at this point"):
        sg.testing.assert_same_gradient(net, W1, by_hand=W1)
    kinked = sg.sum(sg.relu(v))
    assert sg.testing.assert_same_gradient(kinked, v, by_hand=v > 0)
    with pytest.raises(AssertionError, match=r"choice at kinks: kinks='right'$"):
        sg.testing.assert_same_gradient(kinked, v, by_hand=v >= 0)
    loss = sg.sum(v) * sg.sum(sg.sort(w))
    by_hand = sg.ones(4) * sg.sum(w)
    with pytest.raises(AssertionError, match="not proved"):
        sg.testing.assert_same_gradient(loss, v, by_hand=by_hand, proved=True)


def test_what_is_proved_differs_at_no_point():
    before = campaign.TALLY.copy()
    for seed in range(0, 1200, 11):
        campaign.check(seed, 4000)
    for name, (f, g) in EQUAL.items():
        campaign.hold(name, f, g, sg.same(f, g), 4000)
    found = campaign.TALLY - before
    assert found["equal pairs"] > 80
    assert found["mutants: different"] > 60
    for a, b in ((x * (1 + 1e-5), x), (sg.relu(x - 2.9), 0 * x)):  # which are not equal
        assert campaign.apart(a, b, sg.Exact.REALS, 4000) is not None
