"""Minima by SciPy's methods, of losses over arrays and piece by piece."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import FeedError, GraphError, ShapeError, UnsupportedError
from symgrad.optim.minimize import METHODS
from tests.helpers import close, generator

minimize = sg.optim.minimize


def rosenbrock():
    a = sg.variable("a", [-1.2, 1.0])
    return 100 * (a[1] - a[0] ** 2) ** 2 + (1 - a[0]) ** 2, a


@pytest.mark.parametrize("method", METHODS)
def test_rosenbrock(method):
    loss, a = rosenbrock()
    found = minimize(loss, [a], method=method, tolerance=1e-8, max_steps=500)
    close(a.value, [1.0, 1.0], 1e-3)
    assert found.loss == pytest.approx(float(np.asarray(loss)), abs=1e-12)
    assert found.evaluations > 0
    assert found.slope < 0.1


def test_bounds_hold():
    loss, a = rosenbrock()
    minimize(loss, [a], bounds=(None, 0.5))
    close(a.value, [0.5, 0.25], 1e-5)
    b = sg.variable("b", np.float32(3.0))
    found = minimize(loss + (b - 2) ** 2, [a, b], bounds={a: (-1, [0.25, 9.0])})
    close(a.value, [0.25, 0.0625], 1e-4)
    assert b.value == pytest.approx(2.0)
    assert b.value.dtype == np.float32
    assert found.converged


def net(rows=200):
    rng = generator("minimize")
    X = rng.standard_normal((rows, 3))
    Y = np.sin(X @ [1.0, -2.0, 0.5])
    x, y = sg.placeholder("x", ("N", 3)), sg.placeholder("y", "N")
    layers = sg.nn.Sequential(
        sg.nn.Linear(3, 8, key=sg.random.key(1), dtype="float64"),
        sg.tanh,
        sg.nn.Linear(8, 1, key=sg.random.key(2), dtype="float64"),
    )
    return layers, sg.mean((layers(x)[:, 0] - y) ** 2), {"x": X, "y": Y}


def test_a_net_over_arrays_and_piece_by_piece():
    layers, loss, data = net()
    start = layers.state()
    found = minimize(loss, layers, data, max_steps=60)
    assert found.steps <= 60
    assert found.loss < 0.06
    state = layers.state()
    layers.load(start)
    with ThreadPoolExecutor(2) as threads:
        pieces = minimize(
            loss, layers, sg.chunks(**data, rows=64), over="N", max_steps=60, executor=threads
        )
    assert pieces.loss == pytest.approx(found.loss, rel=0.5)
    assert layers.state().keys() == state.keys()


def test_newton_over_pieces_solves_least_squares_at_once():
    rng = generator("newton")
    X = rng.standard_normal((50, 4))
    Y = X @ [1.0, 2.0, 3.0, 4.0]
    x, y, w = sg.placeholder("x", ("N", 4)), sg.placeholder("y", "N"), sg.variable("w", np.zeros(4))
    loss = sg.sum((x @ w - y) ** 2)
    found = minimize(loss, [w], sg.chunks(x=X, y=Y, rows=7), over="N", method="trust-krylov")
    close(w.value, [1.0, 2.0, 3.0, 4.0], 1e-6)
    assert found.converged


def test_an_error_leaves_variables_as_they_are():
    w = sg.variable("w", 1.0)
    calls = []

    def read(start, stop):
        calls.append(start)
        if len(calls) > 5:
            raise OSError("gone")
        return np.ones(stop - start)

    x = sg.placeholder("x", "N")
    with pytest.raises(OSError, match="gone"):
        minimize(sg.sum((x * w - 3) ** 4), [w], sg.chunks(x=(read, 4), rows=2), over="N")
    assert w.value == 1.0


def test_what_does_not_fit_is_refused():
    loss, a = rosenbrock()
    other = sg.variable("other", 1.0)
    x = sg.placeholder("x", "N")
    for error, words, call in [
        (UnsupportedError, "not 'Powell'", lambda: minimize(loss, [a], method="Powell")),
        (UnsupportedError, "no bounds", lambda: minimize(loss, [a], method="CG", bounds=(0, 1))),
        (GraphError, "not searched for", lambda: minimize(loss, [a], bounds={other: (0, 1)})),
        (ShapeError, "bounds of 'a'", lambda: minimize(loss, [a], bounds=(np.zeros(3), None))),
        (ShapeError, "above the high", lambda: minimize(loss, [a], bounds=(1, 0))),
        (ShapeError, "(low, high)", lambda: minimize(loss, [a], bounds=3)),
        (GraphError, "listed twice", lambda: minimize(loss, [a, a])),
        (GraphError, "over='N'", lambda: minimize(sg.sum(x) * other, [other], sg.chunks(x=[1.0]))),
        (FeedError, "sg.chunks", lambda: minimize(loss, [a], over="N")),
        (FeedError, "missing: 'x'", lambda: minimize(sg.sum(x) * other, [other])),
    ]:  # fmt: skip
        with pytest.raises(error, match=re.escape(words)):
            call()
