"""Norms and the standard deviation: values, kinks, extreme magnitudes."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import ShapeError, UnsupportedError
from tests.helpers import check_second_derivatives, close, each, generator, same, value

INF = np.inf
ORDERS = [1, 2, 3, 1.5, 0.5, 0, -1, -2, INF, -INF]


def slope(function, at):
    x = sg.placeholder("x", np.shape(at))
    return sg.compile([x], sg.grad(sg.sum(function(x)), x))(np.asarray(at, float))


def by_order(ord, **options):
    return lambda x: sg.vector_norm(x, ord=ord, **options)


# ---- values ---------------------------------------------------------------------------------


@each("ord", ORDERS)
@each("axis", [None, 0, -1, (0, 2)])
@each("keepdims", [False, True])
@each("dtype", ["float32", "float64", "int32", "complex128"])
def test_vector_norm_is_numpys(ord, axis, keepdims, dtype):
    x = generator("norm").uniform(1, 3, (2, 3, 4)).astype(dtype)
    expected = np.linalg.vector_norm(x, ord=ord, axis=axis, keepdims=keepdims)
    for function in (sg.vector_norm, np.linalg.vector_norm):
        found = value(function(sg.constant(x), ord=ord, axis=axis, keepdims=keepdims))
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        close(found, expected, 1e-6 if dtype == "float32" else 1e-14)


def test_norm_is_numpys_where_it_is_a_norm_of_vectors():
    x = generator("norm").uniform(-3, 3, (2, 3))
    node = sg.constant(x)
    for options in ({}, {"axis": 1}, {"ord": "fro"}, {"axis": (0, 1)}, {"ord": 1, "axis": 0}):
        expected = np.linalg.norm(x, **options)
        close(value(sg.norm(x, **options)), expected, 1e-15)
        close(value(np.linalg.norm(node, **options)), expected, 1e-15)
    close(value(np.linalg.norm(node, INF, 1, True)), np.linalg.norm(x, INF, 1, True), 1e-15)
    close(value(np.linalg.norm(node[0], 3)), np.linalg.norm(x[0], 3), 1e-15)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e160, 1e200])
def test_squares_that_overflow_or_vanish(scale):
    x = np.array([[3.0, 4], [0, 0]])
    np.testing.assert_allclose(value(sg.vector_norm(scale * x, axis=1)), [5 * scale, 0], rtol=1e-15)
    np.testing.assert_allclose(value(sg.vector_norm(scale * x)), 5 * scale, rtol=1e-15)
    np.testing.assert_allclose(slope(sg.vector_norm, scale * x[0]), [0.6, 0.8], rtol=1e-15)
    single = np.float32(1e-30 if scale < 1 else 1e30) * x[0].astype(np.float32)
    found = value(sg.vector_norm(single))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, 5 * single[0] / 3, rtol=1e-6)


def test_infinities_and_nan_and_nothing():
    assert value(sg.vector_norm([1, -INF])) == INF
    assert np.isnan(value(sg.vector_norm([1, np.nan])))
    assert np.isnan(value(sg.vector_norm([INF, np.nan])))
    for ord in (0, 1, 2, 3, 0.5):
        assert value(sg.vector_norm(np.empty(0), ord=ord)) == 0
    same(value(sg.vector_norm(np.empty((2, 0)), axis=1)), np.zeros(2))
    with pytest.raises(ShapeError, match="an axis of size 0"):
        sg.vector_norm(np.empty(0), ord=INF)
    same(value(sg.vector_norm(-3.0)), np.float64(3))


def test_bad_input():
    x = np.ones((2, 2))
    with pytest.raises(ShapeError, match="axis 2 is out of range for 2 dimensions"):
        sg.vector_norm(x, axis=2)
    for ord in ("fro", None, True, 1j, sg.constant(2.0)):
        with pytest.raises(UnsupportedError, match="the order of a norm is a number, not"):
            sg.vector_norm(x, ord=ord)
    for ord in (3, True, "max"):
        with pytest.raises(UnsupportedError, match=f"ord is 'fro', 'nuc', .* not {ord!r}"):
            np.linalg.norm(sg.constant(x), ord)
    with pytest.raises(ShapeError, match="over one axis, or two"):
        sg.norm(np.ones((2, 2, 2)), ord=1)


# ---- derivatives ----------------------------------------------------------------------------


@each("ord", [o for o in ORDERS if o != 0])
@each("axis", [None, 0, (0, 1)])
def test_derivatives_away_from_kinks(ord, axis):
    x = sg.placeholder("x", (3, 4))
    array = generator("norm").permutation(np.arange(1, 13)).reshape(3, 4) / 5 * (-1) ** np.arange(4)
    check_second_derivatives([sg.vector_norm(x, ord=ord, axis=axis)], [x], [array], generator("w"))


@each(
    ("function", "at", "expected"),
    [
        (sg.vector_norm, [0, 0], [0, 0]),
        (sg.vector_norm, [3, -4], [0.6, -0.8]),
        (sg.norm, [0, 0], [0, 0]),
        (by_order(2, axis=1), [[0, 0], [3, 4]], [[0, 0], [0.6, 0.8]]),
        (by_order(1), [2, 0, -3], [1, 0, -1]),
        (by_order(INF), [2, -2, 1], [0.5, -0.5, 0]),
        (by_order(INF), [0, 0], [0, 0]),
        (by_order(-INF), [2, -1, 1], [0, -0.5, 0.5]),
        (by_order(3), [0, 0], [0, 0]),
        (by_order(3), [0, -2], [0, -1]),
        (by_order(1.5), [0, 2], [0, 1]),
        (by_order(0.5), [0, 2], [0, 1]),
        (by_order(0.5), [0, 0], [0, 0]),
    ],
)
def test_the_gradient_at_kinks(function, at, expected):
    np.testing.assert_allclose(slope(function, at), expected, rtol=1e-14)
    x = sg.placeholder("x", np.shape(at))
    tangent = sg.jvp(sg.sum(function(x)), x, np.ones(x.shape))
    np.testing.assert_allclose(
        value(tangent, {x: np.array(at, float)}), np.sum(expected), atol=1e-14
    )


def test_the_second_derivative_at_the_zero_vector_is_finite():
    x = sg.placeholder("x", 2)
    for function in (sg.vector_norm, by_order(3), by_order(INF), by_order(1), sg.std):
        g = sg.grad(sg.sum(sg.grad(function(x), x) ** 2), x, disconnected="zero")
        assert np.isfinite(value(g, {x: np.zeros(2)})).all()


def test_the_count_of_what_is_not_0_has_no_gradient():
    x = sg.placeholder("x", 2)
    with pytest.raises(ValueError, match="none flows"):
        sg.grad(sg.vector_norm(x, ord=0), x)


def test_named_dimensions_and_batches():
    x = sg.placeholder("x", ("N", 3))
    rows = sg.vector_norm(x, axis=1)
    outputs = [rows, sg.std(x)]
    outputs += [sg.std(x, axis=0, correction=c) for c in (1, 0.5)]
    program = sg.compile([x], [*outputs, sg.grad(sg.std(x), x)])
    array = generator("rows").uniform(-3, 3, (4, 3))
    found, whole, columns, half, g = program(array)
    close(found, np.linalg.norm(array, axis=1), 1e-15)
    close(whole, np.std(array), 1e-15)
    close(columns, np.std(array, axis=0, ddof=1), 1e-15)
    close(half, np.std(array, axis=0, ddof=0.5), 1e-15)
    close(g, (array - array.mean()) / array.size / array.std(), 1e-14)
    single = sg.placeholder("x", ("N",), "float32")
    assert sg.std(single).dtype == np.float32
    fixed = sg.placeholder("x", (4, 3))
    jacobian = value(sg.jacobian(sg.vector_norm(fixed, axis=1), fixed), {fixed: array})
    expected = np.eye(4)[:, :, None] * (array / np.linalg.norm(array, axis=1, keepdims=True))
    close(jacobian, expected, 1e-15)


# ---- std ------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [[1, 1], [0, 0, 0], [0.1, 0.1, 0.1], [1e300, 1e300], [7]])
def test_equal_values_have_a_deviation_of_0_and_no_gradient(at):
    close(slope(sg.std, at), np.zeros(len(at)), 1e-15)
    same(value(sg.std(np.array(at, np.float32 if max(at) < 9 else float))) < 1e-7, np.True_)


@pytest.mark.parametrize(("count", "correction"), [(0, 0), (1, 1), (2, 2), (1, 2)])
def test_too_few_elements(count, correction):
    assert not np.isfinite(value(sg.std(np.arange(float(count)), correction=correction)))


def test_far_apart_values_do_not_overflow():
    np.testing.assert_allclose(value(sg.std([1e200, -1e200])), 1e200, rtol=1e-15)


@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_the_derivatives_of_std(correction):
    x = sg.placeholder("x", (3, 4))
    array = generator("std").uniform(-3, 3, (3, 4))
    y = sg.std(x, axis=1, correction=correction)
    check_second_derivatives([y], [x], [array], generator("w"))


@pytest.mark.parametrize("ord", [-0.5, -1, -2])
def test_an_element_that_is_0_makes_norms_of_negative_order_0_in_both_modes(ord):
    x = sg.placeholder("x", 2)
    y = sg.vector_norm(x, ord=ord)
    forward = [sg.jvp(y, [x], [direction]) for direction in np.eye(2)]
    program = sg.compile([x], [y, sg.grad(y, x), sg.stack(forward)])
    for at in ([0.0, 2.0], [0.0, 0.0], [0.0, INF]):
        norm, *slopes = program(np.array(at))
        same(norm, np.float64(0))
        for found in slopes:
            np.testing.assert_array_equal(found, [0, 0])
    assert np.isnan(program(np.array([0.0, np.nan]))[0])
