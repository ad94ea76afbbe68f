"""Sorting, the median, and ties."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import ShapeError
from tests.helpers import check_second_derivatives, close, each, generator, same, value

NAN, INF = np.nan, np.inf


def numbers(dtype, shape=(3, 4, 5)):
    return np.round(generator(dtype).uniform(0, 4, shape)).astype(dtype)


def pulled(function, at, *cotangent):
    x = sg.placeholder("x", np.shape(at))
    y = function(x)
    g = sg.vjp(y, x, *cotangent) if cotangent else sg.grad(sg.sum(y), x)
    return sg.compile([x], g)(np.asarray(at, float))


# ---- values ---------------------------------------------------------------------------------


@each("dtype", ["float32", "float64", "int32", "uint8", "bool", "float16"])
@each("axis", [0, 1, -1, None])
def test_sort_and_argsort_are_numpys(dtype, axis):
    x = numbers(dtype)
    same(value(sg.sort(x, axis=axis)), np.sort(x, axis=axis))
    same(value(sg.argsort(x, axis=axis)), np.argsort(x, axis=axis, kind="stable"))
    same(value(np.sort(sg.constant(x), axis=axis)), np.sort(x, axis=axis))
    same(value(np.sort(sg.constant(x))), np.sort(x))
    same(value(np.argsort(sg.constant(x), axis)), np.argsort(x, axis, kind="stable"))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "bool"])
def test_descending_turns_the_order_and_keeps_that_of_equals(dtype):
    x = numbers(dtype)
    if dtype == "int8":
        x[0, 0, :2] = -128, 127
    same(value(sg.sort(x, axis=1, descending=True)), np.sort(x, axis=1)[:, ::-1])
    order = value(sg.argsort(x, axis=1, descending=True))
    same(np.take_along_axis(x, order, 1), np.sort(x, axis=1)[:, ::-1])
    turned = [0, 1, 2, 3] if dtype == "bool" else [1, 3, 0, 2]
    equals = np.array([1, 2, 1, 2]).astype(dtype)
    same(value(sg.argsort(equals, descending=True)), np.array(turned))


def test_nans_are_last_both_ways():
    x = [NAN, -INF, 2, NAN, INF, -1]
    same(value(sg.sort(x)), np.array([-INF, -1, 2, INF, NAN, NAN]))
    same(value(sg.sort(x, descending=True)), np.array([INF, 2, -1, -INF, NAN, NAN]))
    same(value(sg.argsort(x)), np.array([1, 5, 2, 4, 0, 3]))
    same(value(sg.argsort(x, descending=True)), np.array([4, 2, 5, 1, 0, 3]))


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2)])
def test_of_no_elements(shape):
    x = sg.placeholder("x", shape)
    for axis in range(len(shape)):
        y = sg.sort(x, axis=axis)
        same(value(y, {x: np.empty(shape)}), np.empty(shape))
        same(value(sg.grad(sg.sum(y), x), {x: np.empty(shape)}), np.empty(shape))
    assert np.isnan(value(sg.median(x, axis=shape.index(0)), {x: np.empty(shape)})).all()


@pytest.mark.parametrize("function", [sg.sort, sg.argsort])
def test_bad_input(function):
    with pytest.raises(ShapeError, match="axis 2 is out of range for 2 dimensions"):
        function(np.ones((2, 2)), axis=2)
    with pytest.raises(ShapeError, match="axis -1 is out of range for 0 dimensions"):
        function(1.0)


def test_complex_numbers_are_in_the_order_of_numpy():
    a = np.array([2 + 1j, 1 - 1j, 2 - 3j, 1 + 5j])
    same(value(sg.sort(a)), np.sort(a))
    same(value(sg.argsort(a)), np.argsort(a))
    same(value(sg.median(a)), np.median(a))


def test_the_median_has_no_other_axes():
    with pytest.raises(ShapeError, match="axis 1 is out of range for 1 dimensions"):
        sg.median(np.ones(2), axis=1)


# ---- ties -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "cotangent", "expected"),
    [
        ([1, 1], [1, 2], [1.5, 1.5]),
        ([2, 1], [1, 2], [2, 1]),
        ([3, 1, 3, 1, 2], [1, 2, 3, 4, 5], [4.5, 1.5, 4.5, 1.5, 3]),
        ([0.0, -0.0], [1, 2], [1.5, 1.5]),
        ([NAN, 1, NAN], [1, 2, 3], [2.5, 1, 2.5]),
        ([INF, INF, -INF], [1, 2, 3], [2.5, 2.5, 1]),
    ],
)
def test_what_ties_shares_the_gradient_of_sort(x, cotangent, expected):
    cotangent, expected = np.array(cotangent, float), np.array(expected, float)
    same(pulled(sg.sort, x, cotangent), expected)
    node, t = sg.placeholder("x", len(x)), sg.placeholder("t", len(x))
    # Forwards it is the transpose.
    forward = sg.jvp(sg.sort(node), node, t)
    matrix = [value(forward, {node: np.array(x, float), t: e}) for e in np.eye(len(x))]
    close(np.array(matrix) @ cotangent, expected)


def test_rows_do_not_mix_and_the_order_may_fall():
    x = np.array([[1.0, 1, 2], [2, 1, 1], [2, 2, 2]])
    cotangent = np.array([[1.0, 2, 4], [1, 2, 4], [3, 6, 0]])
    same(pulled(sg.sort, x, cotangent), np.array([[1.5, 1.5, 4], [4, 1.5, 1.5], [3, 3, 3]]))
    falling = pulled(lambda n: sg.sort(n, descending=True), x, cotangent)
    same(falling, np.array([[3, 3, 1], [1, 3, 3], [3, 3, 3.0]]))
    same(pulled(lambda n: sg.sort(n, axis=0), x.T, cotangent.T), pulled(sg.sort, x, cotangent).T)


def test_the_gradient_does_not_depend_on_how_equal_elements_are_given():
    rng = generator("equal")
    x = np.repeat([3.0, 1, 2], [4, 1, 5])
    cotangent = rng.standard_normal(10)
    found = pulled(sg.sort, x, cotangent)
    for _ in range(5):
        order = rng.permutation(10)
        close(pulled(sg.sort, x[order], cotangent), found[order])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("descending", [False, True])
def test_derivatives(axis, descending):
    x = sg.placeholder("x", (3, 4))
    array = generator("sort").permutation(12).reshape(3, 4) / 3
    y = sg.sort(x, axis=axis, descending=descending)
    check_second_derivatives([y**2], [x], [array], generator("w"))
    check_second_derivatives([sg.median(x, axis=axis) ** 2], [x], [array], generator("w"))


# ---- median ---------------------------------------------------------------------------------


@each("dtype", ["float32", "float64", "int32", "bool"])
@each("axis", [None, 0, 1, -1, (0, 2)])
@each("keepdims", [False, True])
def test_the_median_is_numpys(dtype, axis, keepdims):
    x = numbers(dtype)
    expected = np.median(x, axis=axis, keepdims=keepdims)
    same(value(sg.median(x, axis=axis, keepdims=keepdims)), np.asarray(expected))
    same(value(np.median(sg.constant(x), axis=axis, keepdims=keepdims)), np.asarray(expected))


@pytest.mark.parametrize(
    ("x", "expected", "gradient"),
    [
        ([1, 1, 2], 1, [0.5, 0.5, 0]),
        ([1, 2, 1], 1, [0.5, 0, 0.5]),
        ([3, 1, 2], 2, [0, 0, 1]),
        ([4, 1, 3, 2], 2.5, [0, 0, 0.5, 0.5]),
        ([2, 1, 2, 2], 2, [1 / 3, 0, 1 / 3, 1 / 3]),
        ([5], 5, [1]),
        ([NAN, 1, 2], NAN, [1, 0, 0]),
        ([INF, -INF, 1], 1, [0, 0, 1]),
        ([INF, INF], INF, [0.5, 0.5]),
    ],
)
def test_the_median_and_its_gradient(x, expected, gradient):
    same(value(sg.median(np.array(x, float))), np.float64(expected))
    close(pulled(sg.median, x), gradient, 1e-15)


def test_named_dimensions():
    x = sg.placeholder("x", ("N", "M"))
    outputs = [sg.median(x), sg.median(x, axis=0), sg.sort(x, axis=0), sg.argsort(x)]
    program = sg.compile([x], [*outputs, sg.grad(sg.median(x), x)])
    for shape in ((3, 4), (3, 3), (1, 1)):
        array = generator("named").uniform(size=shape)
        *found, g = program(array)
        expected = [
            np.median(array),
            np.median(array, axis=0),
            np.sort(array, 0),
            np.argsort(array),
        ]
        for mine, numpys in zip(found, expected, strict=True):
            close(mine, numpys, 1e-15)
        assert np.count_nonzero(g) == 2 - array.size % 2
        close(g.sum(), 1)


def test_in_batches():
    x = sg.placeholder("x", (2, 3))
    array = np.array([[1.0, 1, 2], [5, 3, 4]])
    y = sg.reshape(sg.sort(x, axis=1) ** 2, -1)
    found = value(sg.jacobian(y, x), {x: array})
    for seed, row in zip(np.eye(6), found, strict=True):
        close(row, value(sg.vjp(y, x, seed), {x: array}))
    hessian = value(sg.hessian(sg.sum(y * np.arange(6.0)), x), {x: array}).reshape(6, 6)
    close(hessian, hessian.T)


def test_no_gradient_flows_through_argsort():
    x = sg.placeholder("x", 3)
    with pytest.raises(ValueError, match="argsort"):
        sg.grad(sg.sum(sg.astype(sg.argsort(x), "float64")), x)


def test_the_dtype_is_kept():
    x = sg.placeholder("x", 3, "float32")
    array = np.array([1, 1, 2], np.float32)
    assert value(sg.grad(sg.sum(sg.sort(x) ** 2), x), {x: array}).dtype == np.float32
    assert value(sg.median(x), {x: array}).dtype == np.float32
