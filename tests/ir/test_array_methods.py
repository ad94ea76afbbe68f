"""The methods of arrays on nodes: NumPy's names, arguments, values, shapes and dtypes."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.array_methods import ArrayMethods
from tests.helpers import generator
from tools import numpy_calls

X = generator("x").uniform(-2, 2, (3, 4))
OWN = [n for n in vars(ArrayMethods) if not n.startswith("_")]


def test_every_method_is_numpys_and_called():
    """Their values are those of NumPy's by `tests/ops/test_numpy_names.py`."""
    assert all(numpy_calls.calls_of(f"ndarray.{name}") for name in OWN)


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


@pytest.mark.parametrize("name", ["sort", "fill", "resize", "put", "tofile"])
def test_what_changes_an_array_or_wants_its_values_is_not_there(name):
    with pytest.raises(AttributeError, match=f"a node has no attribute '{name}'"):
        getattr(sg.placeholder("x", (3,)), name)


def test_what_is_refused_names_the_users_line():
    x = sg.placeholder("x", (3, 4))
    for attempt in (lambda: x.sum(7), lambda: x.reshape(5, 5), lambda: x.dot(X)):
        with pytest.raises(sg.ShapeError, match=r"(?s)\(float64\[3, 4\].*test_array_methods\.py"):
            attempt()


@pytest.mark.parametrize(
    ("call", "mend"),
    [
        ("x.clip(0, 1, dtype='float32')", "takes no dtype"),
        ("x.clip(0, 1, casting='unsafe')", "takes no casting"),
        ("x.clip(0, 1, where=x > 0)", r"write sg\.where\(mask, np\.clip"),
        ("x.clip(0, 1, x.copy())", r"write y = x\.clip\("),
        ("x.conj(x.copy())", r"write y = x\.conj\("),
        ("(x * 1j).conjugate(x * 1j)", r"write y = x\.conj\("),
        ("x.sum(0, None, np.zeros(4))", r"write y = x\.sum\("),
    ],
)
def test_what_numpy_takes_and_nodes_do_not_is_refused_by_name(call, mend):
    eval(call, {"np": np, "x": X.copy()})
    with pytest.raises(sg.UnsupportedError, match=mend):
        eval(call, {"np": np, "x": sg.placeholder("x", (3, 4))})


def test_whether_a_cast_keeps_values_is_not_known():
    with pytest.raises(sg.DtypeError, match="not known yet"):
        sg.placeholder("x", 3).astype("int64", casting="same_value")
