"""A kernel that fails is told once: with its step, what it was made of, and the user's line."""

import re

import numpy as np
import pytest

import symgrad as sg

BACKENDS = ("numpy", "reference")
X = sg.placeholder("x", ("N", 3))
V = sg.placeholder("v", "N")
INDEX = sg.placeholder("i", 2, "int64")
SQUARE = sg.placeholder("a", (3, 3))
HUGE = 2**40


def raised(outputs, inputs, arrays, backend):
    with pytest.raises(sg.SymgradError) as caught:
        sg.compile(inputs, outputs, backend=backend)(*arrays)
    text = str(caught.value)
    assert text.count("failed: ") <= 1
    assert re.search(r"\n  built at test_failures\.py:\d+: ", text)
    return caught.value


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("build", "array", "errors", "words"),
    [
        (lambda: sg.linalg.cholesky(SQUARE), -np.eye(3), (sg.LinAlgError, np.linalg.LinAlgError),
         "cholesky(float64[3, 3]) failed"),
        (lambda: sg.linalg.inv(SQUARE), np.zeros((3, 3)), (np.linalg.LinAlgError,), "inv("),
        (lambda: sg.take(np.arange(3.0), INDEX), [0, 9], (sg.BoundsError, IndexError), "index 9"),
        (lambda: sg.repeat(V, HUGE), np.ones(64), (sg.AllocationError, MemoryError), "copy("),
        (lambda: sg.linalg.outer(V, V), np.ones(2**23), (sg.AllocationError, MemoryError), "mult"),
    ],
)  # fmt: skip
def test_kernels_that_fail(build, array, errors, words, backend):
    y = build()
    for output in (y, [y, y + 1]):
        inputs = sg.Graph([y]).inputs
        error = raised(output, inputs, [array], backend)
        assert words in str(error) or str(error).startswith("fused(")
        assert isinstance(error, errors)
        assert isinstance(error, sg.KernelError)
        assert error.__cause__ is not None


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [sg.max, sg.min, sg.argmax, sg.argmin])
def test_extrema_of_nothing(function, backend):
    error = raised(function(X, axis=0), X, [np.ones((0, 3))], backend)
    assert isinstance(error, sg.ShapeError)
    assert str(error).startswith(f"{function.__name__}(float64[0, 3]) with N = 0: an axis of size")
    assert sg.compile(X, function(X, axis=1), backend=backend)(np.ones((0, 3))).shape == (0,)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("build", [lambda: sg.eye(2**21), lambda: sg.zeros((2**22, 2**22)) + 1])
def test_arrays_for_which_there_is_no_memory(build, backend):
    error = raised(build(), [], [], backend)
    assert isinstance(error, (sg.AllocationError, MemoryError))


def test_an_error_state_of_the_callers_is_not_asked():
    program = sg.compile(V, 1 / V)
    with np.errstate(all="raise"):
        assert program([0.0]) == np.inf
        assert sg.compile(V, 1 / V, backend="reference")([0.0]) == np.inf
        assert np.asarray(1 / sg.constant(0.0)) == np.inf


def test_values_for_which_there_is_no_memory():
    with pytest.raises(sg.AllocationError, match=r"eye\(\) failed(.|\n)*built at test_failures"):
        np.asarray(sg.eye(2**21))


@pytest.mark.parametrize("backend", BACKENDS)
def test_arrays_that_are_larger_than_any_can_be(backend):
    y = sg.broadcast_to(V, (HUGE, "N"))
    program = sg.compile(V, y, backend=backend)
    with pytest.raises(sg.AllocationError, match=r"no memory holds(.|\n)*built at test_failures"):
        program(np.ones(2**22))
