"""Where an extremum is NaN the gradient flows to the NaNs, which share one unit."""

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import each

NAN = np.nan
AT = np.array([1.0, NAN, 3.0, NAN, 2.0])
SHARED = [0, 0.5, 0, 0.5, 0]


def pairs(function):
    return lambda x: function(function(x[0], x[1]), function(function(x[2], x[4]), x[3]))


WHOLE = {
    "max": sg.max,
    "min": sg.min,
    "max by numpy": lambda x: np.max(x),
    "max over axes": lambda x: sg.max(sg.reshape(x, (1, 5)), axis=(0, 1)),
    "negated min": lambda x: -sg.min(-x),
    "chain of maxima": pairs(sg.maximum),
    "chain of minima": pairs(sg.minimum),
    "negated chain": lambda x: -pairs(sg.minimum)(-x),
    "median": sg.median,
    "median over an axis": lambda x: sg.median(sg.stack([x, x], axis=1), axis=0)[0],
    "quantile": lambda x: sg.quantile(x, 0.3),
    "quantile of an end": lambda x: sg.quantile(x, 0.0),
    "percentile": lambda x: sg.percentile(x, 50, method="nearest"),
    "last of cummax": lambda x: sg.cummax(x)[-1],
    "last of cummin": lambda x: sg.cummin(x)[4],
    "last of sort": lambda x: sg.sort(x)[-1],
    "last of descending sort": lambda x: sg.sort(x, descending=True)[4],
    "max of max": lambda x: sg.max(sg.max(sg.reshape(sg.concat([x, x[:1]]), (2, 3)), axis=1)),
    "max at": lambda x: sg.constant([0.0, 0]).at[np.array([1] * 5)].max(x)[1],
    "min at": lambda x: sg.constant([0.0, 0]).at[np.array([0] * 5)].min(x)[0],
}


@each("passes", [(), None], ids=["raw", "optimised"])
@each("mode", ["reverse", "forward"])
@each("name", WHOLE)
def test_nans_share_the_gradient(name, mode, passes):
    x = sg.placeholder("x", 5)
    y = WHOLE[name](x)
    value, found = sg.compile([x], [y, sg.jacobian(y, x, mode=mode)], passes=passes)(AT)
    assert np.isnan(value)
    np.testing.assert_array_equal(found, SHARED)


PARTS = {
    "maximum": (lambda x: sg.maximum(x, 1.5), [0, 1, 1, 1, 1]),
    "minimum": (lambda x: sg.minimum(1.5, x), [1, 1, 0, 1, 0]),
    "maximum of an array": (lambda x: sg.maximum(x, np.arange(5.0)), [1, 1, 1, 1, 0]),
    "clip": (lambda x: sg.clip(x, 1.5, 2.5), [0, 1, 0, 1, 1]),
    "hard tanh": (lambda x: sg.hard_tanh(x / 2), [0.5, 0.5, 0, 0.5, 0]),
    "leaky relu": (lambda x: sg.leaky_relu(-x, slope=0.5), [-0.5, -1, -0.5, -1, -0.5]),
    "max_pool": (lambda x: sg.max_pool(x[None, None], 2, stride=1), [0, 2, 0, 2, 0]),
    "cummax": (sg.cummax, [1, 3, 0, 1, 0]),
    "sort": (lambda x: sg.sort(x), [1, 1, 1, 1, 1]),
    "norm inf": (lambda x: sg.vector_norm(x, ord=np.inf), [0, NAN, 0, NAN, 0]),
    "norm -inf": (lambda x: sg.vector_norm(x, ord=-np.inf), [0, NAN, 0, NAN, 0]),
    "a bound that is nan": (lambda x: sg.maximum(x, NAN), [0, 0, 0, 0, 0]),
    "nanmax": (lambda x: sg.nanmax(x), [0, 0, 1, 0, 0]),
    "nanmedian": (lambda x: sg.nanmedian(x), [0, 0, 0, 0, 1]),
    "nanquantile": (lambda x: sg.nanquantile(x, 1), [0, 0, 1, 0, 0]),
    "chosen": (lambda x: sg.where(x > 1.5, x, 1.5), [0, 0, 1, 0, 1]),
    "not chosen": (lambda x: sg.where(x <= 1.5, 1.5, x), [0, 1, 1, 1, 1]),
}


@each("passes", [(), None], ids=["raw", "optimised"])
@each("name", PARTS)
def test_what_is_nan_is_what_it_flows_to(name, passes):
    function, expected = PARTS[name]
    x = sg.placeholder("x", 5)
    y = sg.sum(function(x))
    found = [sg.grad(y, x), sg.jacobian(y, x, mode="forward")]
    for value in sg.compile([x], found, passes=passes)(AT):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_of_two_that_vary(name):
    a, b = np.array([NAN, 1, NAN, 2]), np.array([0, NAN, NAN, 2])
    x, y = sg.placeholder("x", 4), sg.placeholder("y", 4)
    by_x = np.array([0, 1, 0.5, 0.5] if name.startswith("f") else [1, 0, 0.5, 0.5])
    z = sg.sum(getattr(sg, name)(x, y))
    found = sg.compile([x, y], sg.grad(z, [x, y]))(a, b)
    np.testing.assert_array_equal(found, [by_x, 1 - by_x])
    z = getattr(sg, name)(x, y)
    forward = [sg.jvp(z, [x, y], [np.full(4, d), np.full(4, 1.0 - d)]) for d in (1.0, 0.0)]
    np.testing.assert_array_equal(sg.compile([x, y], forward)(a, b), [by_x, 1 - by_x])


def test_a_choice_that_passes_over_a_nan_has_the_gradient_of_what_it_took():
    x, y = sg.placeholder("x", 2), sg.placeholder("y", 2)
    z = sg.sum(sg.where(x > y, x, y))
    found = sg.compile([x, y], sg.grad(z, [x, y]))(np.array([NAN, 1]), np.array([2.0, NAN]))
    np.testing.assert_array_equal(found, [[0, 0], [1, 1]])


def test_a_second_derivative_at_a_nan():
    x = sg.placeholder("x", 5)
    found = sg.compile([x], sg.hessian(sg.max(x * x), x))(AT)
    np.testing.assert_array_equal(found, np.diag([0, 1.0, 0, 1.0, 0]))
