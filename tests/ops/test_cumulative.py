"""Running sums and products, and the derivatives of products at zeros."""

import itertools

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import DtypeError, ShapeError
from tests.helpers import check_second_derivatives, close, each, generator, same, value

FUNCTIONS = ["cumulative_sum", "cumulative_prod"]


def zeroed(shape, places):
    """An array of small whole numbers other than 0, with zeros at some places."""
    array = generator(f"{shape}").integers(1, 4, shape).astype(float)
    array[..., list(places)] = 0
    return array


def product_without(x, *left_out):
    return np.prod([v for i, v in enumerate(x) if i not in left_out])


def gradient_of_prod(x):
    return np.array([product_without(x, i) for i in range(len(x))])


def hessian_of_prod(x):
    n = len(x)
    return np.array(
        [[product_without(x, i, j) if i != j else 0.0 for j in range(n)] for i in range(n)]
    )


def hessian_of_cumulative_sum_of_products(x):
    n = len(x)
    total = np.zeros((n, n))
    for k in range(1, n + 1):
        total[:k, :k] += hessian_of_prod(x[:k])
    return total


# ---- values ---------------------------------------------------------------------------------


@each("name", FUNCTIONS)
@each("dtype", ["float32", "float64", "int32", "uint8", "bool", "complex64"])
@each("axis", [0, 1, -1])
@each("initial", [False, True])
def test_they_are_numpys(name, dtype, axis, initial):
    x = (generator(name).uniform(0, 3, (2, 3, 4)) > 1).astype(dtype) * np.ones((), dtype)
    expected = getattr(np, name)(x, axis=axis, include_initial=initial)
    found = value(getattr(sg, name)(x, axis=axis, include_initial=initial))
    same(found, expected)
    same(value(getattr(np, name)(sg.constant(x), axis=axis, include_initial=initial)), expected)


@pytest.mark.parametrize(("name", "old"), [*zip(FUNCTIONS, [np.cumsum, np.cumprod], strict=True)])
def test_they_are_numpys_older_functions(name, old):
    x = generator(name).uniform(0.5, 2, (2, 3))
    node, function = sg.constant(x), getattr(sg, name)
    for options in ({}, {"axis": None}, {"axis": 1}, {"axis": 0, "dtype": "float32"}):
        same(value(old(node, **options)), old(x, **options))
        same(value(function(node, **options)), old(x, **options))
    same(value(old(node, 1)), old(x, 1))
    same(value(function(3.0)), np.array([3.0]))
    small = np.array([1, 2], np.int8)
    same(value(function(small, dtype="int8")), old(small, dtype="int8"))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("shape", "axis"), [((0,), 0), ((2, 0), 0), ((2, 0), 1)])
def test_of_no_elements(name, shape, axis):
    for initial in (False, True):
        expected = getattr(np, name)(np.empty(shape), axis=axis, include_initial=initial)
        same(
            value(getattr(sg, name)(np.empty(shape), axis=axis, include_initial=initial)), expected
        )


def test_nan_and_inf_go_on():
    x = np.array([1, np.inf, 2, np.nan, 3])
    same(value(sg.cumulative_sum(x)), np.cumsum(x))
    same(value(sg.cumulative_prod(x)), np.cumprod(x))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bad_input(name):
    function = getattr(sg, name)
    with pytest.raises(ShapeError, match=f"{name}.*: axis 2 is out of range for 2 dimensions"):
        function(sg.placeholder("x", (2, 2)), axis=2)
    with pytest.raises(ShapeError, match="an axis is an int, not"):
        function(np.ones((2, 2)), axis=(0, 1))
    with pytest.raises(DtypeError, match="'words' is not a dtype"):
        function(np.ones(2), dtype="words")


def test_the_rule_of_the_recurrence_wants_operands_of_one_shape():
    from symgrad.ops.cumulative import scan

    with pytest.raises(ShapeError, match="differ"):
        scan(np.ones(2), np.ones(3), axis=0, reverse=False)


# ---- derivatives ----------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(1, 6))
def test_the_derivatives_of_products_are_exact_whatever_is_0(count):
    x = sg.placeholder("x", count)
    loss = sg.prod(x)
    running = sg.sum(sg.cumulative_prod(x))
    program = sg.compile(
        [x],
        [sg.grad(loss, x), sg.hessian(loss, x), sg.grad(running, x), sg.hessian(running, x)],
    )
    for zeros in range(count + 1):
        for places in itertools.combinations(range(count), zeros):
            array = zeroed((count,), places)
            first, second, running_first, running_second = program(array)
            same(first, gradient_of_prod(array))
            same(second, hessian_of_prod(array))
            parts = [
                np.pad(gradient_of_prod(array[:k]), (0, count - k)) for k in range(1, count + 1)
            ]
            same(running_first, np.sum(parts, axis=0))
            same(running_second, hessian_of_cumulative_sum_of_products(array))


def test_the_row_of_the_table():
    x = sg.placeholder("x", 3)
    g = sg.grad(sg.sum(sg.cumulative_prod(x)), x)
    same(value(g, {x: np.array([0.0, 2, 0])}), np.array([3.0, 0, 0]))
    tangent = sg.jvp(sg.cumulative_prod(x), x, np.ones(3))
    same(value(tangent, {x: np.array([0.0, 2, 0])}), np.array([1.0, 2, 0]))


@each("axis", [0, -1, (0, 2), (1, 2), None, ()])
@each("places", [(), (1,), (0, 2)])
def test_products_over_one_or_several_axes(axis, places):
    x = sg.placeholder("x", (2, 3, 4))
    array = zeroed((2, 3, 4), places)
    rng = generator("axes")
    check_second_derivatives([sg.prod(x, axis=axis)], [x], [array], rng)
    check_second_derivatives([sg.prod(x, axis=axis, keepdims=True)], [x], [array], rng)


@each("name", FUNCTIONS)
@each("axis", [None, 0, 1])
@each("initial", [False, True])
@each("places", [(), (1,), (0, 2)])
def test_running_ones(name, axis, initial, places):
    x = sg.placeholder("x", (2, 4))
    y = getattr(sg, name)(x, axis=axis, include_initial=initial)
    check_second_derivatives([y], [x], [zeroed((2, 4), places)], generator(name))


def test_the_third_derivative_of_a_running_product_of_zeros():
    x = sg.placeholder("x", 3)
    loss = sg.sum(sg.cumulative_prod(x))
    for direction in np.eye(3):
        loss = sg.sum(sg.grad(loss, x) * direction)
    assert value(loss, {x: np.zeros(3)}) == 1


def test_over_named_dimensions():
    x = sg.placeholder("x", ("N", 2, "M"))
    total = sg.sum(sg.cumulative_prod(x, axis=0, include_initial=True)) + sg.sum(
        sg.prod(x, axis=(0, 2))
    )
    program = sg.compile([x], [sg.cumulative_prod(x, axis=2), sg.grad(total, x)])
    for shape in ((3, 2, 2), (1, 2, 4), (0, 2, 3)):
        array = zeroed(shape, (0,))
        running, g = program(array)
        same(running, np.cumprod(array, axis=2))
        fixed = sg.placeholder("x", shape)
        parts = sg.cumulative_prod(fixed, axis=0), sg.prod(fixed, axis=(0, 2))
        expected = sg.grad(sg.sum(parts[0]) + sg.sum(parts[1]), fixed)
        close(g, value(expected, {fixed: array}))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_batches(name):
    x = sg.placeholder("x", (3, 2))
    array = zeroed((3, 2), (1,))
    y = sg.reshape(getattr(sg, name)(x, axis=0) ** 2, -1)
    found = value(sg.jacobian(y, x), {x: array})
    for seed, row in zip(np.eye(6), found, strict=True):
        close(row, value(sg.vjp(y, x, seed), {x: array}))
    hessian = value(sg.hessian(sg.sum(y), x), {x: array})
    close(hessian.reshape(6, 6), hessian.reshape(6, 6).T)


def test_the_dtype_is_kept():
    x = sg.placeholder("x", 4, "float32")
    for y in (sg.prod(x), sg.sum(sg.cumulative_prod(x)), sg.sum(sg.cumulative_sum(x) ** 2)):
        g = sg.grad(y, x)
        assert value(g, {x: np.ones(4, np.float32)}).dtype == np.float32
        assert value(sg.hessian(y, x), {x: np.ones(4, np.float32)}).dtype == np.float32
