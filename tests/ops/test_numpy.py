"""NumPy's functions beyond the standard: what is special to one of them.

Values, dtypes and gradients of all are checked in `test_numpy_names.py`, by a list of calls.
"""

import inspect

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.op import REGISTRY
from tests.helpers import each, generator, same
from tools import numpy_calls

REGISTRY.every()
HOMES = ("symgrad.ops.numpy.", "symgrad.ops.fourier.planes", "symgrad.ops.linalg.tensors")
OURS = {n: f for n, f in REGISTRY.functions.items() if f.__module__.startswith(HOMES)}
X = generator("x").uniform(-2, 2, (3, 4))
V = generator("v").uniform(-2, 2, 4)
UP = np.array([-1.5, -0.4, 0.3, 1.1, 1.9])
ODD = np.array([1.5, np.nan, np.inf, -np.inf, -0.0])


def test_every_function_is_called():
    listed = {numpy_calls.ours(n) for n in numpy_calls.names() if numpy_calls.calls_of(n)}
    assert set(OURS) <= listed


def test_gradients_where_they_are_0_or_pass():
    x = sg.placeholder("x", (5,))
    slope = sg.compile([x], sg.grad(sg.sum(sg.nan_to_num(x) * 3), x))
    same(slope(ODD), np.array([3.0, 0, 0, 0, 3]))
    y = sg.placeholder("y", (5,))
    steps = sg.compile([x, y], sg.grad(sg.sum(np.heaviside(x, y)), y))
    same(steps(np.array([-1.0, 0, 1, -0.0, np.nan]), np.ones(5)), np.array([0.0, 1, 0, 1, 0]))


def test_sizes_may_be_named():
    x, y = sg.placeholder("x", ("N", 4)), sg.placeholder("y", ("N",))
    for function in (
        lambda x, y: np.ravel(x),
        lambda x, y: np.dot(y, x),
        lambda x, y: np.cov(x.T),
        lambda x, y: np.average(x, axis=0, weights=y),
        lambda x, y: np.column_stack([x, y]),
        lambda x, y: np.gradient(x, axis=0),
        lambda x, y: np.trapezoid(x, y, axis=0),
        lambda x, y: np.interp(x, UP, UP**2),
        lambda x, y: np.convolve(y, V),
        lambda x, y: np.vstack([x, x])[::2],
        lambda x, y: np.split(x, [1], axis=0)[1],
        lambda x, y: np.cov(x, rowvar=False, aweights=y),
        lambda x, y: np.histogramdd(x, 2)[0],
        lambda x, y: np.interp(x, np.sort(y), y, period=2.0),
        lambda x, y: np.subtract.outer(y, y),
        lambda x, y: np.maximum.accumulate(x),
        lambda x, y: np.piecewise(y, [y > 1], [np.sin, lambda v: v * 2]),
        lambda x, y: np.linspace(0.0, y, 3, axis=1),
        lambda x, y: np.digitize(x, -np.sort(y)),
        lambda x, y: np.quantile(x, [0.2, 0.7], axis=0),
        lambda x, y: np.std(x, axis=0, mean=np.mean(x, axis=0, keepdims=True)),
    ):
        found = sg.compile([x, y], function(x, y))(X, X[:, 0] ** 2)
        np.testing.assert_allclose(found, function(X, X[:, 0] ** 2), 1e-13, 1e-14)


@each(
    ("attempt", "words"),
    [
        (lambda x: np.split(x, 3, axis=1), "cannot be split into 3 equal parts"),
        (lambda x: np.split(sg.placeholder("n", ("N",)), 2), "not known while the graph is built"),
        (lambda x: np.rot90(x, axes=(0, 0)), "two axes"),
        (lambda x: np.delete(x, 7, axis=0), "out of bounds"),
        (lambda x: np.convolve(x, x), "vectors are taken"),
        (lambda x: np.convolve(x[0], x[1], mode="half"), "'full', 'same' or 'valid'"),
        (lambda x: np.average(x, weights=x[0]), "weights of the shape"),
        (lambda x: np.gradient(x, 1.0, 2.0, 3.0), "3 distances for 2 axes"),
        (lambda x: np.gradient(x[:1], axis=0), "slopes need 2 samples"),
        (lambda x: np.interp(x, [1.0, 2.0], [1.0]), "2 places and 1 values"),
        (lambda x: np.polyval(x, x), "coefficients are a vector"),
        (lambda x: np.select([x > 0], [x, x]), "1 conditions for 2 choices"),
        (lambda x: np.vsplit(x[0], 2), "two axes or more"),
    ],
)
def test_what_is_refused_says_why(attempt, words):
    with pytest.raises(sg.SymgradError, match=words):
        attempt(sg.placeholder("x", (3, 4)))


def test_the_public_names_are_numpys_but_for_one():
    for name, function in OURS.items():
        assert inspect.getdoc(function)
        spaces = {"fft": (sg.fft, np.fft), "linalg": (sg.linalg, np.linalg)}
        place = REGISTRY.qualified_name(name).split(".")[1]
        here, theirs = spaces.get(place, (sg, np))
        assert getattr(here, name) is function
        assert hasattr(theirs, name) or name == "select_first"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.filterwarnings("ignore:(over|under)flow")
def test_powers_of_2_beyond_floats_are_reached(dtype):
    ends = np.finfo(dtype)
    x = np.array([0, -0.0, np.inf, np.nan, ends.smallest_subnormal, ends.max, 1.1, -0.7], dtype)
    powers = np.array([-3000, -2097, -1050, -300, -140, -60, -15, 0, 20, 130, 300, 2000, 2097])
    same(np.asarray(sg.ldexp(x, powers[:, None])), np.ldexp(x, powers[:, None]))


def test_what_differed_from_numpy():
    x, v, u = sg.placeholder("x", (3, 3)), sg.constant(V), np.arange(4, dtype="uint8")
    many = np.array([np.arange(4.0), np.arange(4.0) ** 2])
    np.testing.assert_allclose(np.asarray(np.trapezoid(v, many)), np.trapezoid(V, many), 1e-14)
    same(np.asarray(sg.unravel_index(u, 300)[0]), np.unravel_index(u, 300)[0])
    assert np.i0(sg.constant(u)).dtype == np.i0(u).dtype == "float64"
    assert np.copy(x, order=None) is x
    for order in (np.array(["a", "b"]), "Q"):
        with pytest.raises(sg.UnsupportedError, match="takes no order"):
            np.copy(x, order)
