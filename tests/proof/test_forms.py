"""Normal forms: the table of ops against their kernels, and the algebra of sums of products."""

from fractions import Fraction

import numpy as np

import symgrad as sg
from symgrad.ir.evaluate import evaluate
from symgrad.ir.node import apply
from symgrad.ir.op import REGISTRY
from symgrad.proof.canonical import Walk
from symgrad.proof.forms import Forms
from symgrad.proof.functions import meant
from symgrad.proof.terms import TooLarge
from symgrad.testing.graphs import cases_of, random_feeds
from tests.helpers import each
from tests.proof.numbers import Values

METHODS = sorted(n for n in vars(Forms) if n[0] != "_" and n not in ("whole", "shifted", "linear"))


def holds(y, inputs, feeds, sizes=None):
    """Whether a normal form has the value of the node."""
    walk = Walk(20_000)
    (terms,) = walk.forms([y])
    if any(a.kind == "op" or (a.kind == "leaf" and a.of[0] != "input") for a in walk.ring.atoms):
        return False
    fed = dict(zip(inputs, feeds, strict=True))
    expected = evaluate([y], fed, sizes)[0]
    found = Values(walk.ring, fed, sizes).of(terms, np.shape(expected))
    room = 1e-6 if any(n.dtype == np.float32 for n in sg.Graph([y]).nodes) else 1e-9
    np.testing.assert_allclose(found, expected, room, room, err_msg=str(sg.Graph([y])))
    return True


def test_each_method_is_an_op():
    assert not [name for name in METHODS if name not in REGISTRY.every()]


@each("name", METHODS)
def test_a_form_has_the_value_of_its_op(name):
    op = REGISTRY.find(name)
    rng, tried = np.random.default_rng(0), 0
    for shapes, attrs in cases_of(op):
        dtype = next((d for d in ("float64", "bool") if d in op.trials.dtypes.split()), "float64")
        inputs = [sg.placeholder(f"x{i}", shape, dtype) for i, shape in enumerate(shapes)]
        if name in ("where", "select"):
            inputs[0] = sg.placeholder("mask", inputs[0].shape, "bool")
        y = apply(op, inputs, attrs)
        if y.dtype.kind in "fb":
            tried += holds(y, inputs, random_feeds(rng, inputs, domain=op.trials.domain))
    assert tried or name in NOT_BY_A_CASE, name


# These have a form for some shapes only, which are tried below; det is an atom.
NOT_BY_A_CASE = {"det", "diagonal", "eye", "on_diagonal", "reshape", "size_of"}


def test_forms_of_square_matrices():
    x, v = sg.placeholder("x", (3, 3)), sg.placeholder("v", 3)
    rng = np.random.default_rng(0)
    feeds = random_feeds(rng, [x, v])
    for y in (
        sg.linalg.diagonal(x) * v,
        sg.grad(sg.sum(sg.linalg.diagonal(x) ** 2), x),
        sg.eye(3) * v,
        x @ sg.eye(3),
        sg.linalg.trace(x @ x) * sg.eye(3),
    ):
        assert holds(y, [x, v], feeds)


def test_coefficients_are_exact():
    x = sg.placeholder("x", 3)
    (found,) = Walk(1000).forms([1 / (-3 * x)])
    assert [type(c) for _, c in found.items] == [Fraction]
    assert holds(sg.log(1 / (-3 * x)), [x], [-np.arange(1.0, 4)])


def test_forms_of_a_named_size():
    x = sg.placeholder("x", ("N", 3))
    feeds = [np.arange(6.0).reshape(2, 3)]
    assert holds(sg.mean(x, axis=0), [x], feeds, {"N": 2})
    assert holds(sg.sum(sg.ones_like(x)) * x, [x], feeds, {"N": 2})
    assert holds(sg.reshape(x, ("N", 1, 3)), [x], feeds, {"N": 2})


@each("seed", range(40))
def test_random_programs_have_the_value_of_their_forms(seed):
    rng = np.random.default_rng(seed)
    n = [sg.placeholder(name, (3, 3)) for name in "abc"]
    feeds = [rng.choice([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0], (3, 3)) for _ in n]
    pool = list(n)
    steps = [
        lambda a, b: a + b, lambda a, b: a - 0.5 * b, lambda a, b: a * b, lambda a, b: a @ b,
        lambda a, b: sg.relu(a) - b, lambda a, b: sg.maximum(a, b), lambda a, b: a.T + 1,
        lambda a, b: sg.sum(a, axis=0) * b, lambda a, b: a / (1 + b * b),
        lambda a, b: sg.where(a > b, a, 2 * b), lambda a, b: sg.abs(a - b),
        lambda a, b: sg.sqrt(1 + a * a), lambda a, b: sg.sigmoid(a / 8),
        lambda a, b: sg.tanh(b / 8), lambda a, b: sg.softmax(a / 8, axis=1),
        lambda a, b: sg.eye(3) * a, lambda a, b: sg.sin(a + b),
        lambda a, b: sg.linalg.trace(a) * b, lambda a, b: sg.logsumexp(a / 8, axis=0) + b,
    ]  # fmt: skip
    for _ in range(5):
        i, j, k = rng.integers([len(steps), len(pool), len(pool)])
        pool.append(steps[i](pool[j], pool[k]))
    try:
        assert holds(pool[-1], n, feeds)
    except TooLarge:
        assert len(sg.Graph([pool[-1]]).nodes) > 8


def test_the_number_that_was_meant():
    assert meant(0.1, 50) == Fraction(1, 10)
    assert meant(float(np.float32(0.3)), 21) == Fraction(3, 10)
    assert meant(np.pi, 50) == Fraction(np.pi)
    assert meant(0.1 + 1e-12, 50) != Fraction(1, 10)
