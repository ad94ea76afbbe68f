"""Activations, normalisation and dropout, against their formulas."""

import numpy as np
import pytest
from scipy.special import ndtr

import symgrad as sg
from symgrad.ir.errors import ShapeError, UnsupportedError
from tests.helpers import check_derivatives, check_second_derivatives, close, generator, same, value

nn = sg.nn
X = generator("layers").normal(0, 2, (4, 3, 5))
FORMULAS = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * ndtr(x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: np.where(x > 0, 1.0507009873554805 * x, 1.7580993408473766 * np.expm1(x)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_activations(name):
    function = getattr(nn, name)
    close(value(function(X)), FORMULAS[name](X), 1e-14)
    assert function(X.astype("float32")).dtype == "float32"
    assert function(np.arange(3)).dtype == "float64"
    x = sg.placeholder("x", X.shape)
    check_derivatives([function(x)], [x], [X], generator(name))
    check_second_derivatives([function(x)], [x], [X], generator(name))


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_activations_of_large_numbers_have_finite_gradients(name, dtype):
    x = sg.placeholder("x", 4, dtype)
    y = getattr(nn, name)(x)
    at = np.array([1e4, -1e4, 0, -0.0], dtype)
    found, slope = sg.compile([x], [y, sg.grad(sg.sum(y), x)])(at)
    assert np.isfinite(found).all()
    limits = {"elu": (1, 0, 1, 1), "selu": (1.0507009873554805, 0, *[1.0507009873554805] * 2)}
    close(slope, limits.get(name, (1, 0, 0.5, 0.5)), 1e-6)


def test_gelu_in_the_form_of_tanh_is_near():
    close(value(nn.gelu(X, approximate="tanh")), FORMULAS["gelu"](X), 1e-3)
    with pytest.raises(UnsupportedError, match="'none' or 'tanh'"):
        nn.gelu(X, approximate="sigmoid")


def test_what_was_there_is_the_same_function():
    for name in ("relu", "leaky_relu", "softmax", "log_sigmoid", "relu6"):
        assert getattr(nn, name) is getattr(sg, name)
    assert all(callable(getattr(nn, name)) for name in nn.__all__)


# ---- normalisation --------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [-1, (1, 2), (0, 2)])
def test_layer_norm(axis):
    shape = [X.shape[a] for a in (axis if isinstance(axis, tuple) else (axis,))]
    scale, offset = generator("norm").normal(size=(2, *shape))
    mean, var = X.mean(axis, keepdims=True), X.var(axis, keepdims=True)
    held = [n if i in np.arange(3)[list(np.atleast_1d(axis))] else 1 for i, n in enumerate(X.shape)]
    expected = (X - mean) / np.sqrt(var + 1e-5) * scale.reshape(held) + offset.reshape(held)
    close(value(nn.layer_norm(X, scale, offset, axis=axis)), expected, 1e-12)
    xs = [sg.placeholder(n, a.shape) for n, a in (("x", X), ("s", scale), ("o", offset))]
    y = nn.layer_norm(*xs, axis=axis)
    check_derivatives([y], xs, [X, scale, offset], generator("norm"))


def test_batch_norm():
    scale, offset = generator("norm").normal(size=(2, 3))
    mean, var = X.mean((0, 2)), X.var((0, 2))
    per = (3, 1)
    expected = (X - mean.reshape(per)) / np.sqrt(var.reshape(per) + 1e-5) * scale.reshape(per)
    expected += offset.reshape(per)
    close(value(nn.batch_norm(X, scale, offset)), expected, 1e-12)
    close(value(nn.batch_norm(X, scale, offset, mean=mean, variance=var)), expected, 1e-12)
    last = nn.batch_norm(np.moveaxis(X, 1, -1), scale, offset, axis=-1)
    close(value(last), np.moveaxis(expected, 1, -1), 1e-12)
    xs = [sg.placeholder(n, a.shape) for n, a in (("x", X), ("s", scale), ("o", offset))]
    check_derivatives([nn.batch_norm(*xs)], xs, [X, scale, offset], generator("norm"))


def test_batch_norm_of_a_named_batch():
    x = sg.placeholder("x", ("N", 3, 5), "float32")
    y = nn.batch_norm(x)
    found = sg.compile([x], [y, sg.grad(sg.sum(y * y), x)])(X.astype("float32"))
    close(found[0], value(nn.batch_norm(X)), 1e-5)


def test_what_normalisation_refuses():
    with pytest.raises(ShapeError, match=r"scale is of the shape \(5,\)"):
        nn.layer_norm(X, np.ones(3))
    with pytest.raises(ShapeError, match="out of range"):
        nn.layer_norm(X, axis=3)
    with pytest.raises(ShapeError, match="both mean and variance"):
        nn.batch_norm(X, mean=np.zeros(3))


# ---- dropout --------------------------------------------------------------------------------


def test_dropout_drops_and_scales():
    key = sg.placeholder("key", (2,), "uint64")
    x = sg.placeholder("x", ("N",), "float32")
    y = nn.dropout(x, key, rate=0.25)
    program = sg.compile([key, x], [y, sg.grad(sg.sum(y), x)])
    ones = np.ones(100_000, "float32")
    found, slope = program(np.array([1, 2], "uint64"), ones)
    same(np.unique(found), np.array([0, 4 / 3], "float32"))
    same(slope, found)
    assert abs(np.mean(found) - 1) < 0.01
    assert np.mean(found != program(np.array([1, 3], "uint64"), ones)[0]) > 0.3


def test_dropout_at_the_ends_and_beyond():
    key = sg.random.key(0)
    same(value(nn.dropout(X, key, rate=0)), X)
    same(value(nn.dropout(X, key, rate=1)), X * 0)
    for rate in (-0.1, 1.1, True):
        with pytest.raises(UnsupportedError, match="rate of dropout"):
            nn.dropout(X, key, rate=rate)


def test_a_batch_of_one_row_tells_no_variance():
    norm = sg.nn.BatchNorm(3)
    loss = sg.mean(norm(sg.placeholder("x", ("N", 3))) ** 2)
    program = sg.compile(sg.Graph([loss]).inputs[:1], loss, updates=norm.updates(loss))
    before = norm.variance.value
    program(np.ones((1, 3)))
    np.testing.assert_array_equal(norm.variance.value, before)
