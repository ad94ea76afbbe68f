"""Quantiles, what leaves NaNs out, counts, running extrema, and what goes by order."""

import itertools

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import BoundsError, DtypeError, ShapeError, UnsupportedError
from symgrad.ops.quantiles import METHODS
from tests.helpers import check_second_derivatives, close, generator, same, value

NAN, INF = np.nan, np.inf
RNG = generator("statistics")
SHAPES = [(1,), (7,), (3, 4, 5)]
AXES = {(1,): [None, 0], (7,): [None, -1], (3, 4, 5): [None, 0, -1, (0, 2)]}
SHAPED = [(shape, axis) for shape in SHAPES for axis in AXES[shape]]


def with_nans(shape):
    array = RNG.standard_normal(shape)
    array.reshape(-1)[1::3] = NAN
    if len(shape) == 3:
        array[0, :, 0] = NAN
    return array


def agrees(name, array, *args, **options):
    """NumPy's function on a constant and on a placeholder with named dimensions."""
    all_agree(name, array, [(args, options)])


def all_agree(name, array, calls):
    """As `agrees`, of several calls, each `(args, options)`, in one program."""
    function = getattr(np, name)
    x = sg.placeholder("x", tuple(f"N{i}" for i in range(array.ndim)), array.dtype)
    compiled = sg.compile(x, [function(x, *args, **options) for args, options in calls])(array)
    for (args, options), mine in zip(calls, compiled, strict=True):
        with np.errstate(all="ignore"):
            expected = np.asarray(function(array, *args, **options))
        for y in (mine, value(function(sg.constant(array), *args, **options))):
            assert np.asarray(y).dtype == expected.dtype
            np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-14, strict=False)


def gradient(function, at):
    x = sg.placeholder("x", np.shape(at))
    return value(sg.grad(sg.sum(function(x)), x), {x: np.asarray(at, float)})


# ---- quantiles ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("shape", "axis"), SHAPED)
def test_quantiles_are_numpys(method, shape, axis):
    array = RNG.standard_normal(shape)
    asked = itertools.product((0.3, [0, 0.5, 0.75, 1.0], [[0.1, 0.2]]), (False, True))
    options = {"axis": axis, "method": method}
    all_agree("quantile", array, [((q,), options | {"keepdims": k}) for q, k in asked])


@pytest.mark.filterwarnings("ignore:All-NaN slice")
@pytest.mark.parametrize(("shape", "axis"), SHAPED)
def test_the_others_are_made_of_it(shape, axis):
    array = with_nans(shape)
    for q in (30, [0, 50, 99]):
        agrees("percentile", np.nan_to_num(array), q, axis=axis)
        agrees("nanpercentile", array, q, axis=axis)
        agrees("nanquantile", array, np.divide(q, 100), axis=axis, method="hazen")
    agrees("quantile", array, 0.5, axis=axis)
    agrees("nanmedian", array, axis=axis, keepdims=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile"])
def test_quantiles_with_weights_are_numpys(name, dtype):
    array = np.round(3 * RNG.standard_normal((4, 5))).astype(dtype)
    weights = RNG.uniform(size=(4, 5))
    weights[:, :2] = 0
    nones = name.startswith("nan")  # NumPy's indexes wrongly where it does this along an axis
    if nones and dtype != "int64":
        array[1, 3] = NAN
    many = [(None, weights), ((0, 1), weights), ((1, 0), weights.T + 1)]
    if not nones:
        many += [(0, weights + 1e-3), (-1, weights), (0, weights[:, 2] + 1), (1, weights[1] + 1)]
    of = 100 if name == "percentile" else 1
    for axis, given in many:
        for q in (0.3 * of, 0, [0, 0.25 * of, of], np.float32([0.2 * of, 0.4 * of])):
            options = {"axis": axis, "weights": given, "method": "inverted_cdf"}
            expected = getattr(np, name)(array, q, **options)
            x = sg.placeholder("x", array.shape, dtype)
            same(value(getattr(np, name)(x, q, **options), {x: array}), expected)


def test_weights_of_quantiles_move_them_and_are_checked():
    x, w = sg.placeholder("x", (3,)), sg.placeholder("w", (3,))
    options = {"weights": w, "method": "inverted_cdf"}
    program = sg.compile([x, w], [sg.quantile(x, 0.5, **options), sg.nanquantile(x, 1, **options)])
    same(np.asarray(program(np.array([3.0, NAN, 1]), np.array([1.0, 9, 0.1]))), np.array([NAN, 3]))
    slope = sg.compile([x, w], sg.grad(sg.quantile(x, 0.5, **options), x))
    same(slope(np.array([3.0, 2, 1]), np.array([1.0, 9, 0.1])), np.array([0.0, 1, 0]))
    with pytest.raises(sg.KernelError, match="every weight of a quantile is at least 0"):
        slope(np.array([3.0, 2, 1]), np.array([1.0, -9, 0.1]))
    with pytest.raises(UnsupportedError, match="with weights take method"):
        sg.quantile(x, 0.5, weights=w)
    with pytest.raises(ShapeError, match="weights of the shape"):
        sg.quantile(x, 0.5, method="inverted_cdf", weights=[1.0, 2.0])


def test_the_median_is_a_quantile_also_in_its_gradient():
    for at in ([1.0, 1, 2], [4.0, 1, 3, 2], [2.0, 1, 2, 2], [INF, INF], [5.0]):
        close(gradient(lambda x: sg.quantile(x, 0.5), at), gradient(sg.median, at), 1e-15)
        same(value(sg.quantile(np.array(at), 0.5)), value(sg.median(np.array(at))))


def test_a_quantile_may_be_differentiated_by_its_number():
    x, q = sg.placeholder("x", (6, 2)), sg.placeholder("q", 3)
    array, at = RNG.standard_normal((6, 2)), np.array([0.15, 0.5, 0.83])
    for method in ("linear", "hazen"):
        y = sg.quantile(x, q, axis=0, method=method)
        check_second_derivatives([y**2], [x, q], [array, at], RNG)
    outside = sg.quantile(x, q)
    same(value(outside, {x: array, q: np.array([-1.0, 0, 2])}), np.quantile(array, [0, 0, 1]))


@pytest.mark.parametrize("q", [0.0, 0.5, 1.0])
def test_equal_infinities_have_nothing_between_them(q):
    same(value(sg.quantile(np.array([INF, INF]), q)), np.float64(INF))
    same(gradient(lambda x: sg.quantile(x, q), [INF, INF]).sum(), np.float64(1))


@pytest.mark.parametrize(
    ("low", "middle", "high"),
    [(-INF, -INF, 0), (0, INF, INF), (-INF, NAN, INF), (-INF, -INF, -INF), (-1e308, 0, 1e308)],
)
def test_a_quantile_lies_between_the_elements_beside_it(low, middle, high):
    ends = np.array([low, high])
    for f in (lambda x: sg.quantile(x, [0, 0.5, 1]), lambda x: sg.nanquantile(x, [0, 0.5, 1])):
        np.testing.assert_array_equal(value(f(ends)), [low, middle, high])
    np.testing.assert_array_equal(value(sg.nanmedian(np.append(ends, NAN))), middle)


@pytest.mark.filterwarnings("ignore:(All-NaN|Mean of empty)")
@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_of_no_elements_what_leaves_nans_out_is_nan(shape):
    agrees("nanmedian", np.ones(shape), axis=-1)
    same(value(sg.nanquantile(np.ones(shape), [0.2, 1], axis=-1)), np.full((2, *shape[:-1]), NAN))
    same(gradient(lambda x: sg.nanmedian(x, axis=-1), np.ones(shape)), np.ones(shape))


def test_what_a_quantile_refuses():
    x = sg.placeholder("x", (3, 0))
    with pytest.raises(ShapeError, match="a quantile is a number from 0 to 1"):
        sg.quantile(x, 1.5, axis=0)
    with pytest.raises(UnsupportedError, match="there is no method 'best'; there are linear"):
        sg.quantile(x, 0.5, method="best")
    with pytest.raises(ShapeError, match="of no elements"):
        sg.quantile(x, 0.5, axis=1)
    with pytest.raises(ShapeError, match="axis 2 is out of range"):
        sg.quantile(x, 0.5, axis=2)


# ---- without NaNs ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:(All-NaN|Mean of empty|Degrees of freedom)")
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min"])
@pytest.mark.parametrize(("shape", "axis"), SHAPED)
def test_nan_reductions_are_numpys(name, shape, axis):
    for array in (with_nans(shape), RNG.integers(-3, 4, shape)):
        agrees(f"nan{name}", array, axis=axis)
        agrees(f"nan{name}", array, axis=axis, keepdims=True)
    if name in ("var", "std"):
        agrees(f"nan{name}", with_nans((3, 4, 5)), axis=1, ddof=1)


@pytest.mark.parametrize("name", ["nanvar", "nanstd"])
def test_the_spread_of_complex_numbers_is_real(name):
    array = with_nans((7,)) + 1j * RNG.standard_normal(7)
    agrees(name, array)
    x, there = sg.placeholder("x", 7, "complex128"), ~np.isnan(array)
    found = value(sg.grad(getattr(sg, name)(x), x), {x: array})
    rest = sg.placeholder("rest", int(there.sum()), "complex128")
    expected = value(sg.grad(getattr(sg, name[3:])(rest), rest), {rest: array[there]})
    close(found[there], expected)
    same(found[~there], np.zeros((~there).sum(), complex))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min", "median"])
def test_no_gradient_flows_to_a_nan(name):
    array = RNG.standard_normal(6)
    there = np.array([True, False, True, True, False, True])
    expected = gradient(getattr(sg, name), array[there])
    found = gradient(getattr(sg, f"nan{name}"), np.where(there, array, NAN))
    close(found[there], expected)
    same(found[~there], np.zeros(2))


# ---- counts ---------------------------------------------------------------------------------


def test_bincount():
    x = np.array([1, 3, 1, 0])
    same(value(np.bincount(sg.constant(x))), np.bincount(x))
    same(value(np.bincount(sg.constant(x), minlength=6)), np.bincount(x, minlength=6))
    same(value(sg.bincount(np.zeros(0, int))), np.bincount(np.zeros(0, int)))
    n, w = sg.placeholder("n", "N", "int32"), sg.placeholder("w", "N")
    y = sg.bincount(n, w, length=4)
    program = sg.compile([n, w], [y, sg.grad(y[1], w)])
    found = program(x.astype("int32"), np.arange(4.0))
    same(found[0], np.bincount(x, np.arange(4.0)))
    same(found[1], np.array([1.0, 0, 1, 0]))
    for bad in (4, -1):
        with pytest.raises(BoundsError, match="index 4 is out of bounds"):
            program(np.array([0, bad], np.int32), np.ones(2))
    with pytest.raises(ShapeError, match=r"bincount\(x, length=...\)"):
        sg.bincount(n)
    with pytest.raises(DtypeError, match="takes integers"):
        sg.bincount(w, length=3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bins": 4},
        {"bins": 4, "range": (-1, 1)},
        {"bins": [0.0, 1, 2]},
        {"bins": 5, "density": True},
        {"bins": 3, "weights": np.arange(20.0)},
        {"bins": np.array([-1, 0.3, 1]), "density": True, "weights": np.arange(20.0)},
    ],
)
def test_histograms_are_numpys(options):
    for array in (RNG.standard_normal(20), RNG.integers(0, 6, 20), np.ones(20)):
        x = sg.placeholder("x", 20, array.dtype)
        expected = np.histogram(array, **options)
        found = sg.compile(x, list(np.histogram(x, **options)))(array)
        for mine, numpys in zip(found, expected, strict=True):
            assert mine.dtype == numpys.dtype
            np.testing.assert_allclose(mine, numpys, rtol=1e-13)


# ---- running extrema ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_running_extrema_are_numpys(dtype, axis):
    x = RNG.integers(-3, 4, (3, 4)).astype(dtype)
    for name, ufunc in (("cummax", np.maximum), ("cummin", np.minimum)):
        expected = ufunc.accumulate(x.ravel() if axis is None else x, axis=axis or 0)
        same(value(getattr(sg, name)(x, axis=axis)), expected)


@pytest.mark.parametrize(
    ("x", "cotangent", "expected"),
    [
        ([1, 3, 2, 4], [1, 2, 4, 8], [1, 6, 0, 8]),
        ([2, 2, 1, 2], [1, 2, 6, 3], [1 + 1 + 3 + 1, 1 + 3 + 1, 0, 1]),
        ([1, NAN, 5], [1, 2, 4], [1, 6, 0]),
        ([-INF, -INF], [2, 4], [4, 2]),
        ([], [], []),
    ],
)
def test_ties_of_running_extrema_share_the_gradient(x, cotangent, expected):
    for sign, function in ((1, sg.cummax), (-1, sg.cummin)):
        node, t = sg.placeholder("x", len(x)), sg.placeholder("t", len(x))
        at, y = sign * np.array(x, float), function(node)
        g = sg.vjp(y, node, np.array(cotangent, float))
        close(value(g, {node: at}), expected, 1e-15)
        forward = sg.jvp(y, node, t)
        matrix = [value(forward, {node: at, t: e}) for e in np.eye(len(x))]
        close(np.reshape(matrix, (len(x),) * 2) @ np.array(cotangent, float), expected, 1e-15)


def test_running_extrema_of_running_extrema():
    x = sg.placeholder("x", (3, 4))
    array = RNG.standard_normal((3, 4))
    found = sg.compile(
        x, [sg.cummax(sg.cummax(x, axis=0), axis=1), sg.cummin(sg.cummax(x, axis=0))]
    )
    rows = np.maximum.accumulate(array, 0)
    same(found(array)[0], np.maximum.accumulate(rows, 1))
    same(found(array)[1], np.minimum.accumulate(rows.ravel()))


def test_the_last_of_a_running_maximum_is_the_maximum_also_in_its_gradient():
    for at in ([1.0, 3, 3, 2], [2.0, 2, 2], [0.0, -0.0]):
        close(gradient(lambda x: sg.cummax(x)[-1], at), gradient(sg.max, at), 1e-15)


# ---- by order -------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("largest", [True, False])
def test_top_k(axis, largest):
    x = RNG.standard_normal((4, 5))
    values, indices = sg.top_k(x, 3, axis=axis, largest=largest)
    order = np.argsort(-x if largest else x, axis=axis, kind="stable").take(range(3), axis=axis)
    same(value(indices), order)
    same(value(values), np.take_along_axis(x, order, axis))


def test_the_gradient_of_top_k_is_shared_at_its_end():
    close(gradient(lambda x: sg.top_k(x, 2)[0], [1.0, 3, 1, 0]), [0.5, 1, 0.5, 0])
    x = sg.placeholder("x", "N")
    assert sg.top_k(x, 2)[0].shape == (2,)
    for k in (4, -1):
        with pytest.raises(ShapeError, match="k is an int from 0 to 3"):
            sg.top_k(np.ones(3), k)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_searchsorted_is_numpys(side, dtype):
    a = np.sort(RNG.integers(0, 5, 6)).astype(dtype)
    v = RNG.integers(-1, 6, (3, 2)).astype(dtype)
    if dtype == "float64":
        a[-2:] = v[0, 0] = NAN
    expected = np.searchsorted(a, v, side=side)
    same(value(sg.searchsorted(a, v, side=side)), expected)
    same(value(np.searchsorted(sg.constant(a), v, side)), expected)
    order = RNG.permutation(6)
    turned = sg.searchsorted(a[order], v, side=side, sorter=np.argsort(order))
    same(value(turned), expected)
    rows = np.stack([a, a + 1])
    found = sg.vmap(lambda a, v: sg.searchsorted(a, v, side=side))(rows, np.stack([v, v]))
    same(value(found), np.stack([expected, np.searchsorted(a + 1, v, side=side)]))


def test_what_searchsorted_refuses():
    with pytest.raises(ShapeError, match="a vector in order"):
        sg.searchsorted(np.ones((2, 2)), 1.0)
    with pytest.raises(UnsupportedError, match=r"side must be 'left' .* 'right', not 'middle'"):
        sg.searchsorted(np.ones(2), 1.0, side="middle")
    with pytest.raises(DtypeError, match="complex128"):
        sg.searchsorted(np.ones(2), 1j)
