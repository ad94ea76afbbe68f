"""The methods of arrays on nodes: NumPy's names, arguments, values, shapes and dtypes."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.array_methods import ArrayMethods
from tests.helpers import generator, value

X = generator("x").uniform(-2, 2, (3, 4))
CUBE = generator("cube").uniform(-2, 2, (2, 1, 3))
FLAGS, Z = X > 0, X + 1j * X[::-1]
UP = np.array([-1.5, 0.0, 0.3, 1.1])
CALLS = {
    "reshape": [(lambda x: x.reshape(4, 3), X), (lambda x: x.reshape((2, -1)), X),
                (lambda x: x.reshape(-1), X)],
    "ravel": [(lambda x: x.ravel(), X)],
    "flatten": [(lambda x: x.flatten(), CUBE)],
    "transpose": [(lambda x: x.transpose(), CUBE), (lambda x: x.transpose(2, 0, 1), CUBE),
                  (lambda x: x.transpose((1, 2, 0)), CUBE), (lambda x: x.transpose(None), CUBE),
                  (lambda x: x.transpose(0), UP)],
    "swapaxes": [(lambda x: x.swapaxes(0, -1), CUBE)],
    "squeeze": [(lambda x: x.squeeze(), CUBE), (lambda x: x.squeeze(1), CUBE)],
    "repeat": [(lambda x: x.repeat(2), X), (lambda x: x.repeat(2, 0), X)],
    "diagonal": [(lambda x: x.diagonal(), X), (lambda x: x.diagonal(1, 1, 0), X)],
    "trace": [(lambda x: x.trace(), X), (lambda x: x.trace(1), X)],
    "real": [(lambda x: x.real, Z), (lambda x: x.real, X)],
    "imag": [(lambda x: x.imag, Z), (lambda x: x.imag, X)],
    "astype": [(lambda x: x.astype("float32"), X), (lambda x: x.astype(int), X)],
    "copy": [(lambda x: x.copy(), X)],
    "conj": [(lambda x: x.conj(), Z)],
    "conjugate": [(lambda x: x.conjugate(), Z)],
    "clip": [(lambda x: x.clip(-1, 1), X), (lambda x: x.clip(min=0), X),
             (lambda x: x.clip(None, 0), X)],
    "round": [(lambda x: x.round(), X)],
    "dot": [(lambda x: x.dot(X.T), X), (lambda x: x.dot(UP), X)],
    "take": [(lambda x: x.take([0, 5]), X), (lambda x: x.take([2, 0], 1), X)],
    "searchsorted": [(lambda x: x.searchsorted(X), UP),
                     (lambda x: x.searchsorted(UP, "right"), UP)],
    "sum": [(lambda x: x.sum(), X), (lambda x: x.sum(0), X), (lambda x: x.sum(1, "float32"), X),
            (lambda x: x.sum((0, 2), keepdims=True), CUBE)],
    "prod": [(lambda x: x.prod(), X), (lambda x: x.prod(axis=1), X)],
    "mean": [(lambda x: x.mean(), X), (lambda x: x.mean(0, keepdims=True), X)],
    "var": [(lambda x: x.var(), X), (lambda x: x.var(0, ddof=1), X)],
    "std": [(lambda x: x.std(), X), (lambda x: x.std(0, ddof=1, keepdims=True), X)],
    "max": [(lambda x: x.max(), X), (lambda x: x.max(1), X)],
    "min": [(lambda x: x.min(), X), (lambda x: x.min(1, keepdims=True), X)],
    "all": [(lambda x: x.all(), FLAGS), (lambda x: x.all(0), FLAGS)],
    "any": [(lambda x: x.any(), FLAGS), (lambda x: x.any(1, keepdims=True), FLAGS)],
    "argmax": [(lambda x: x.argmax(), X), (lambda x: x.argmax(1), X)],
    "argmin": [(lambda x: x.argmin(), X), (lambda x: x.argmin(0, keepdims=True), X)],
    "argsort": [(lambda x: x.argsort(), X), (lambda x: x.argsort(0), X)],
    "argpartition": [(lambda x: x.argpartition(1), UP)],
    "choose": [(lambda x: x.choose([X[0], X[1]]), FLAGS[0].astype("int64"))],
    "compress": [(lambda x: x.compress([True, False, True], 0), X)],
    "cumsum": [(lambda x: x.cumsum(), X), (lambda x: x.cumsum(0), X), (lambda x: x.cumsum(1), X)],
    "cumprod": [(lambda x: x.cumprod(), X), (lambda x: x.cumprod(axis=1), X)],
}  # fmt: skip
# They tell numbers, of a node without placeholders or of any: see test_numpy_names.
TELLS = ("item", "tolist", "itemsize", "nbytes")
OWN = [n for n in vars(ArrayMethods) if not n.startswith("_") and n not in TELLS]


def test_every_method_is_called():
    assert sorted(CALLS) == sorted(OWN)
    assert all(hasattr(np.ndarray, name) for name in OWN)


@pytest.mark.parametrize(("name", "i"), [(n, i) for n in CALLS for i in range(len(CALLS[n]))])
def test_a_method_is_numpys(name, i):
    function, array = CALLS[name][i]
    x = sg.placeholder("x", array.shape, array.dtype)
    y, expected = function(x), function(array)
    assert (y.shape, y.dtype) == (np.shape(expected), expected.dtype)
    np.testing.assert_allclose(value(y, {x: array}), expected, 1e-13)


def test_a_program_written_for_arrays_runs_on_nodes():
    def loss(x, w):
        h = x.dot(w).clip(0, None)
        p = h - h.max(axis=1, keepdims=True)
        return (np.log(np.exp(p).sum(1)) - p.mean(axis=1)).mean() + (w.ravel() ** 2).sum()

    x, w = sg.placeholder("x", ("N", 4)), sg.placeholder("w", (4, 3))
    y = loss(x, w)
    found, slope = sg.compile([x, w], [y, sg.grad(y, w)])(X, X.T)
    np.testing.assert_allclose(found, loss(X, X.T), 1e-14)
    sg.testing.check_grads(loss, X, X.T)
    assert slope.shape == (4, 3)


@pytest.mark.parametrize("name", ["sort", "fill", "resize", "put", "tofile", "flat"])
def test_what_changes_an_array_or_wants_its_values_is_not_there(name):
    with pytest.raises(AttributeError, match=f"a node has no attribute '{name}'"):
        getattr(sg.placeholder("x", (3,)), name)


def test_what_is_refused_names_the_users_line():
    x = sg.placeholder("x", (3, 4))
    for attempt in (lambda: x.sum(7), lambda: x.reshape(5, 5), lambda: x.dot(X)):
        with pytest.raises(sg.ShapeError, match=r"(?s)\(float64\[3, 4\].*test_array_methods\.py"):
            attempt()
