"""Sigmoids, hinges, softmax, fmax, xlogy, sinc: values, slopes at kinks, stability."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import DtypeError, ShapeError
from tests.helpers import close, each, generator, same, value

INF, NAN = np.inf, np.nan
EXTREMES = np.array([-INF, -1000, -40, 0, 40, 1000, INF])
ALL = [
    sg.sigmoid, sg.softplus, sg.log_sigmoid, sg.leaky_relu, sg.relu6, sg.hard_tanh, sg.logsumexp,
    sg.softmax, sg.log_softmax, sg.sinc,
]  # fmt: skip


def slope(function, at, **options):
    """The gradient of the sum, as compiled."""
    x = sg.placeholder("x", np.shape(at), getattr(at, "dtype", "float64"))
    return sg.compile([x], sg.grad(sg.sum(function(x)), x, **options))(np.asarray(at, x.dtype))


def slopes(function, *at):
    xs = [sg.placeholder(f"x{i}", np.shape(a)) for i, a in enumerate(at)]
    program = sg.compile(xs, sg.grad(sg.sum(function(*xs)), xs))
    return program(*(np.asarray(a, float) for a in at))


# ---- every one of them ----------------------------------------------------------------------


@each("function", ALL)
@each("dtype", ["float16", "float32", "float64"])
def test_the_dtype_is_kept_and_large_numbers_are_no_trouble(function, dtype):
    x = np.array([-1000, -10, -0.5, 0, 0.5, 10, 1000], dtype)
    y, g = value(function(x)), slope(function, x)
    assert (y.dtype, g.dtype) == (x.dtype, x.dtype)
    assert np.isfinite(g).all()
    assert np.isfinite(y).all()


@pytest.mark.parametrize("function", ALL)
def test_no_elements_and_no_dimensions(function):
    options = {"axis": None} if function in (sg.softmax, sg.log_softmax) else {}
    scalar = value(function(np.float32(0.5), **options))
    assert (scalar.dtype, scalar.shape) == (np.float32, ())
    y = value(function(np.empty((2, 0), np.float32)))
    same(y, np.float32(-INF) if function is sg.logsumexp else np.empty((2, 0), np.float32))


def test_a_number_without_a_sign_has_a_hard_tanh():
    same(value(sg.hard_tanh(np.arange(4, dtype="uint8"))), np.array([0, 1, 1, 1], "uint8"))


@pytest.mark.parametrize("function", ALL)
def test_integers_are_taken_as_numpys_functions_take_them(function):
    close(value(function(np.arange(-3, 4))), value(function(np.arange(-3.0, 4))))
    assert value(function(np.arange(4))).dtype == np.exp(np.arange(4)).dtype or function in (
        sg.relu6,
        sg.hard_tanh,
    )


@pytest.mark.parametrize("function", [f for f in ALL if f not in (sg.relu6, sg.hard_tanh)])
def test_complex_numbers_and_booleans_are_refused(function):
    with pytest.raises(DtypeError, match="takes integers, floats, not complex128; take real"):
        function(np.ones(3, complex))
    with pytest.raises(DtypeError, match="bool"):
        function(np.ones(3, bool))


@pytest.mark.parametrize("function", ALL)
def test_named_dimensions_and_batches(function):
    x = sg.placeholder("x", ("N",))
    array = generator(str(function)).uniform(-3, 3, 5)
    y = function(x)
    row = y if y.shape else sg.reshape(y, (1,))
    program = sg.compile([x], [y, sg.jacobian(row, x)])
    found, jacobian = program(array)
    close(found, value(function(array)))
    pull = sg.vjp(row, x, weights := sg.placeholder("w", row.shape))
    rows = sg.compile([x, weights], pull)
    for seed, line in zip(np.eye(jacobian.shape[0]), jacobian, strict=True):
        close(rows(array, seed), line)


# ---- sigmoid, softplus ----------------------------------------------------------------------


def test_sigmoid_keeps_all_its_digits():
    # From mpmath, with 30 digits.
    expected = [4.24835425529158899e-18, 0.0474258731775667809, 0.880797077977882444]
    np.testing.assert_allclose(value(sg.sigmoid([-40.0, -3, 2])), expected, rtol=1e-15)
    same(value(sg.sigmoid(EXTREMES[[0, 1, 3, 5, 6]])), np.array([0, 0, 0.5, 1, 1]))
    assert np.isnan(value(sg.sigmoid(NAN)))


def test_softplus_keeps_all_its_digits():
    expected = [4.24835425529158899e-18, 0.0485873515737420588, 2.1269280110429725, 40]
    at = np.array([-40.0, -3, 2, 40])
    np.testing.assert_allclose(value(sg.softplus(at)), expected, rtol=1e-15)
    np.testing.assert_allclose(value(sg.log_sigmoid(-at)), np.negative(expected), rtol=1e-15)
    same(value(sg.softplus(EXTREMES)), np.logaddexp(EXTREMES, 0))
    assert np.isnan(value(sg.softplus(NAN)))


def test_their_slopes_are_finite_everywhere():
    same(slope(sg.sigmoid, EXTREMES[[0, 1, 3, 5, 6]]), np.array([0, 0, 0.25, 0, 0]))
    same(slope(sg.softplus, EXTREMES[[0, 1, 3, 5, 6]]), np.array([0, 0, 0.5, 1, 1]))
    same(slope(sg.log_sigmoid, EXTREMES[[0, 1, 3, 5, 6]]), np.array([1, 1, 0.5, 0, 0]))


def test_log1mexp_keeps_all_its_digits():
    # From exp(-x) = x and 1 - exp(-x) = x to first order, and log(1 - exp(-1)).
    at = np.array([-1e-300, -1e-10, -1, -40, -700])
    expected = [-690.77552789821371, -23.025850929990458, -0.45867514538708193,
                -4.24835425529158899e-18, -9.85967654375977e-305]  # fmt: skip
    np.testing.assert_allclose(value(sg.log1mexp(at)), expected, rtol=1e-14)
    np.testing.assert_allclose(slope(sg.log1mexp, at[1:4]), 1 / -np.expm1(-at[1:4]), rtol=1e-14)
    same(value(sg.log1mexp([0.0, -INF, 1, NAN])), np.array([-INF, 0, NAN, NAN]))


# ---- hinges ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "at", "chosen"),
    [
        (sg.leaky_relu, 0, {"zero": 0.01, "left": 0.01, "right": 1, "split": 0.505}),
        (lambda x: sg.leaky_relu(x, 0.1), 0, {"zero": 0.1, "left": 0.1, "right": 1, 0.5: 0.55}),
        (lambda x: sg.leaky_relu(x, 0), 0, {"zero": 0, "left": 0, "right": 1, "split": 0.5}),
        (lambda x: sg.leaky_relu(x, 1), 0, {"zero": 1, "left": 1, "right": 1, "split": 1}),
        (lambda x: sg.leaky_relu(x, 2), 0, {"zero": 1, "left": 2, "right": 1, "split": 1.5}),
        (lambda x: sg.leaky_relu(x, -1), 0, {"zero": 0, "left": -1, "right": 1, "split": 0}),
        (sg.relu6, 0, {"zero": 0, "left": 0, "right": 1, "split": 0.5}),
        (sg.relu6, 6, {"zero": 0, "left": 1, "right": 0, "split": 0.5}),
        (sg.hard_tanh, -1, {"zero": 0, "left": 0, "right": 1, "split": 0.5}),
        (sg.hard_tanh, 1, {"zero": 0, "left": 1, "right": 0, "split": 0.5}),
    ],
)
def test_the_slope_at_a_kink_is_chosen(function, at, chosen):
    for policy, expected in chosen.items():
        assert slope(function, [float(at)], kinks=policy) == expected
        x = sg.placeholder("x", ())
        tangent = sg.jvp(function(x), x, 1.0, kinks=policy)
        assert value(tangent, {x: np.float64(at)}) == expected
    for away in (at - 0.25, at + 0.25):
        (found,) = slope(function, [away])
        h = 1e-4
        close(found, (value(function(away + h)) - value(function(away - h))) / (2 * h))


@pytest.mark.parametrize("factor", [0.01, 0, 1, 2.5, -0.5])
def test_leaky_relu_of_anything(factor):
    x = np.array([-INF, -2, -0.0, 0, 3, INF, NAN])
    with np.errstate(invalid="ignore"):
        expected = np.where(x > 0, x, np.where(x == 0, 0, factor * x if factor else x * 0.0))
    found = value(sg.leaky_relu(x, factor))
    np.testing.assert_array_equal(found[1:], expected[1:])
    assert not np.isnan(found[0])


def test_an_infinite_cotangent_meets_nothing_where_the_slope_is_0():
    x = sg.placeholder("x", 2)
    for function in (sg.relu6, sg.hard_tanh, lambda x: sg.leaky_relu(x, 0)):
        found = value(sg.vjp(function(x), x, [INF, NAN]), {x: np.array([-9.0, -9])})
        same(found, np.zeros(2))


@pytest.mark.parametrize("factor", [NAN, INF, "0.1", None, sg.constant(0.1)])
def test_the_slope_of_leaky_relu_is_a_number(factor):
    with pytest.raises(DtypeError, match="the slope is a finite number, not"):
        sg.leaky_relu(np.ones(2), factor)


# ---- logsumexp, softmax ---------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp_is_numpys_logaddexp_reduced(axis, keepdims):
    x = generator("logsumexp").uniform(-3, 3, (2, 3, 4))
    expected = np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))
    found = value(sg.logsumexp(x, axis=axis, keepdims=keepdims))
    assert found.shape == expected.shape
    close(found, expected, 1e-15)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
def test_softmax_and_its_logarithm(axis):
    x = generator("softmax").uniform(-3, 3, (2, 3, 4))
    expected = np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)
    close(value(sg.softmax(x, axis=axis)), expected, 1e-15)
    close(value(sg.log_softmax(x, axis=axis)), np.log(expected), 1e-15)


@pytest.mark.parametrize("at", [1000, -1000, 0])
def test_far_from_0_softmax_has_as_many_digits(at):
    x = np.array([at, at + 1, at - 1], np.float32)
    expected = np.exp([0.0, 1, -1]) / np.exp([0.0, 1, -1]).sum()
    for found in (value(sg.softmax(x)), slope(sg.logsumexp, x)):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=3e-7)
    np.testing.assert_allclose(value(sg.log_softmax(x)), np.log(expected), rtol=3e-7)


@pytest.mark.parametrize(
    ("x", "total", "parts"),
    [
        ([1000, 1000, -1000], 1000 + np.log(2), [0.5, 0.5, 0]),
        ([-INF, -INF], -INF, [NAN, NAN]),
        ([INF, 0], INF, [NAN, 0]),
        ([INF, INF, 5], INF, [NAN, NAN, 0]),
        ([-INF, 3], 3, [0, 1]),
        ([NAN, 0], NAN, [NAN, NAN]),
        ([7], 7, [1]),
    ],
)
def test_infinities(x, total, parts):
    x = np.array(x, float)
    np.testing.assert_allclose(value(sg.logsumexp(x)), total, rtol=1e-15)
    np.testing.assert_allclose(value(sg.softmax(x)), parts, rtol=1e-15)
    np.testing.assert_allclose(slope(sg.logsumexp, x), parts, rtol=1e-15)


def test_an_axis_out_of_range():
    for function in (sg.logsumexp, sg.softmax, sg.log_softmax):
        with pytest.raises(ShapeError, match="axis 2 is out of range for 2 dimensions"):
            function(np.ones((2, 2)), axis=2)
        with pytest.raises(ShapeError, match="names an axis twice"):
            function(np.ones((2, 2)), axis=(0, -2))


# ---- fmax, fmin -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_fmax_and_fmin(name):
    a, b = np.array([0, NAN, 1, 2, NAN]), np.array([0, 1, NAN, 3, NAN])
    ours, numpys = getattr(sg, name), getattr(np, name)
    same(value(numpys(sg.constant(a), b)), numpys(a, b))
    larger = [0, 1] if name == "fmax" else [1, 0]
    expected = np.array([[0.5, 0, 1, larger[0], 0.5], [0.5, 1, 0, larger[1], 0.5]])
    same(np.array(slopes(ours, a, b)), expected)
    same(np.array(slopes(lambda b, a: ours(a, b), b, a)), expected[::-1])
    x, y = sg.placeholder("x", 5), sg.placeholder("y", 5)
    for column, direction in enumerate(((1.0, 0.0), (0.0, 1.0))):
        tangents = [np.full(5, d) for d in direction]
        found = value(sg.jvp(ours(x, y), [x, y], tangents), {x: a, y: b})
        same(found, expected[column])


@pytest.mark.parametrize("order", [1, -1])
def test_at_a_tie_with_a_constant_the_slope_is_chosen(order):
    for policy, high, low in (("zero", 0, 0), ("left", 0, 1), ("right", 1, 0), ("split", 0.5, 0.5)):
        assert slope(lambda x: sg.fmax(*(0, x)[::order]), [0.0], kinks=policy) == high
        assert slope(lambda x: sg.fmin(*(0, x)[::order]), [0.0], kinks=policy) == low


# ---- xlogy, sinc ----------------------------------------------------------------------------


def test_xlogy_is_0_where_its_first_operand_is():
    x, y = np.array([0, 0, 0, 0, 2, 0, 0]), np.array([0, -1, INF, NAN, 3, 1, -INF])
    expected = np.array([0, 0, 0, NAN, 2 * np.log(3), 0, 0])
    same(value(sg.xlogy(x, y)), expected)
    np.testing.assert_allclose(value(sg.xlog1py(x, y - 1)), expected, rtol=1e-15)
    same(value(sg.xlogy(np.float32(0), 0)), np.float32(0))


@pytest.mark.parametrize(("function", "shift"), [(sg.xlogy, 0), (sg.xlog1py, -1)])
def test_the_slopes_of_xlogy(function, shift):
    by_x, by_y = slopes(function, [0, 0, 3.0, 3], [shift, 2.0 + shift, 2 + shift, shift])
    np.testing.assert_allclose(by_x, [-INF, np.log(2), np.log(2), -INF])
    np.testing.assert_allclose(by_y, [0, 0, 1.5, INF])
    x, y = sg.placeholder("x", ()), sg.placeholder("y", ())
    mixed = sg.grad(sg.grad(function(x, y), y), x)
    close(value(mixed, {x: np.float64(0), y: np.float64(2 + shift)}), 0.5)


# From mpmath, with 30 digits: derivatives of sin(pi x) / (pi x), either side of where they are
# computed in another way.
SINC_AT = np.array([0.25, 1.0625, 1.375, 2.5])
SINC = (
    [0.90031631615710607, -0.0584462853614238686, -0.213876355520873761, 0.127323954473516269],
    [-0.772838139882234181, -0.86808376003934737, -0.122768783159429826, -0.0509295817894065074],
    [-2.70306075725885905, 2.21088173412802862, 2.28944779524239321, -1.21589339600439209],
    [4.52127228855079045, 2.86806354598333935, -2.24829767086015107, 1.45907207520527051],
)


def test_sinc_and_its_derivatives():
    x = sg.placeholder("x", 4)
    y = sg.sinc(x)
    for expected in SINC:
        np.testing.assert_allclose(value(y, {x: SINC_AT}), expected, rtol=2e-14)
        y = sg.grad(sg.sum(y), x)
    same(value(np.sinc(sg.constant(SINC_AT))), np.sinc(SINC_AT))


def test_sinc_at_0():
    x = sg.placeholder("x", ())
    found = []
    y = sg.sinc(x)
    for _ in range(5):
        found.append(value(y, {x: np.float64(0)}))
        y = sg.grad(y, x)
    close(found, [1, 0, -(np.pi**2) / 3, 0, np.pi**4 / 5], 1e-15)
    tiny = value(sg.grad(sg.sinc(x), x), {x: np.float64(1e-9)})
    np.testing.assert_allclose(tiny, -(np.pi**2) / 3 * 1e-9, rtol=1e-12)
