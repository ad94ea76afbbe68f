"""Reductions, as they meet in programs. Each rule alone: `test_every_rule`."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.linalg.products import vdot_p
from tests.rules.becomes import becomes, named, stays

SIMPLIFY = named("simplify", "merge")


def xy(shape=(2, 3), dtype="float64"):
    return [sg.placeholder("x", shape, dtype), sg.placeholder("y", shape, dtype)]


def test_reductions():
    x, y = xy()
    becomes([x, y], sg.sum(-x, axis=0), -sg.sum(x, axis=0), SIMPLIFY, "values")
    becomes([x, y], sg.sum(x * 3.0, axis=0), sg.sum(x, axis=0) * 3.0, SIMPLIFY)
    becomes([x, y], sg.sum(x * y), vdot_p(x, y), SIMPLIFY)
    becomes([x, y], sg.sum(x**2), vdot_p(x, x), SIMPLIFY)
    becomes([x, y], sg.sum(sg.sum(x, axis=0), axis=0), sg.sum(x), SIMPLIFY)
    stays([x, y], sg.sum(x * y, axis=0), SIMPLIFY)
    stays([x, y], sg.sum(x * y), SIMPLIFY, "values")


def test_a_sum_of_what_was_repeated():
    x = sg.placeholder("x", (3,))
    becomes([x], sg.sum(sg.broadcast_to(x, (4, 3)), axis=0), x * 4.0, SIMPLIFY)
    becomes(
        [x],
        sg.sum(sg.broadcast_to(x, (4, 3)), axis=1),
        sg.broadcast_to(sg.sum(x), (4,)),
        SIMPLIFY,
    )
    s = sg.placeholder("s", ())
    wide = sg.broadcast_to(s, (4, 2, 3))
    becomes([s], sg.sum(wide, axis=(0, 2)), sg.broadcast_to(s * 12.0, (2,)), SIMPLIFY)


@pytest.mark.parametrize("n", [0, "N"])
def test_a_sum_of_what_was_repeated_no_times_is_0(n):
    """Even of inf: 0 times inf would be NaN."""
    x, like = sg.placeholder("x", (3,)), sg.placeholder("like", (n,))
    y = sg.sum(sg.broadcast_to(x, (n, 3)), axis=0) + sg.sum(like)
    found = sg.compile([x, like], y)(np.array([np.inf, np.nan, 1.0]), np.zeros(0))
    np.testing.assert_array_equal(found, [0, 0, 0])


def test_a_sum_of_integers_that_were_repeated():
    """They are summed as 64 bits, and so multiplied."""
    x = sg.placeholder("x", (3,), "uint8")
    y = sg.sum(sg.broadcast_to(x, (4, 3)), axis=0)
    becomes([x], y, sg.astype(x, "uint64") * np.uint64(4), SIMPLIFY)
    m = sg.placeholder("m", (), "bool")
    y = sg.sum(sg.broadcast_to(m, (2, 3)))
    becomes([m], y, sg.astype(m, "int64") * np.int64(6), SIMPLIFY)


def test_the_extremum_of_what_was_repeated():
    x = sg.placeholder("x", (3, 1))
    wide = sg.broadcast_to(x, (2, 3, 4))
    becomes([x], sg.max(wide, axis=(0, 2)), sg.reshape(x, (3,)), SIMPLIFY)
    becomes([x], sg.min(wide), sg.min(x), SIMPLIFY)
    becomes([x], sg.any(wide > 0), sg.any(x > 0), SIMPLIFY)
    none = sg.broadcast_to(x > 0, (0, 3, 4))
    stays([x], sg.any(none), SIMPLIFY)
    assert not sg.compile([x], sg.any(none))(np.ones((3, 1)))


def test_reductions_of_reductions():
    x = sg.placeholder("x", (2, 3, 4))
    becomes([x], sg.sum(sg.sum(x, axis=1, keepdims=True)), sg.sum(x), SIMPLIFY)
    twice = sg.prod(sg.prod(x, axis=0), axis=1)
    becomes([x], twice, sg.prod(x, axis=(0, 2)), SIMPLIFY, "reals")
    stays([x], twice, SIMPLIFY)  # 1e30 * 1e30 * 1e-30 * 1e-30 may overflow, by pairs it does not
    kept = sg.all(sg.all(x > 0, axis=0, keepdims=True), axis=2, keepdims=True)
    becomes([x], kept, sg.all(x > 0, axis=(0, 2), keepdims=True), SIMPLIFY, "bits")
    becomes([x], sg.mean(sg.mean(x, axis=0)), sg.sum(x) * (1 / 24), SIMPLIFY, "reals")
    becomes([x], sg.max(sg.max(x, axis=0)), sg.max(x), SIMPLIFY, "reals")
    stays([x], sg.max(sg.max(x, axis=0)), SIMPLIFY)


def test_narrow_sums_of_narrow_sums():
    """The second sum is as wide as NumPy makes it, where the first was not."""
    x = sg.placeholder("x", (2, 3), "uint8")
    y = sg.sum(sg.sum(x, axis=0, dtype="uint8"))
    stays([x], y, SIMPLIFY)
    assert sg.compile([x], y)(np.full((2, 3), 200, "uint8")) == 3 * 144


def test_extrema_of_what_was_scaled():
    x, _ = xy()
    becomes([x], sg.max(-x, axis=0), -sg.min(x, axis=0), SIMPLIFY, "values")
    becomes([x], sg.max(x * 3.0), sg.max(x) * 3.0, SIMPLIFY)
    becomes([x], sg.max(x / -2.0), sg.min(x) * -0.5, SIMPLIFY)
    becomes([x], sg.max(sg.exp(x)), sg.exp(sg.max(x)), SIMPLIFY)
    becomes([x], sg.argmax(-x, axis=1), sg.argmin(x, axis=1), SIMPLIFY, "bits")
    becomes([x], sg.argmax(sg.softmax(x), axis=1), sg.argmax(x, axis=1), SIMPLIFY, "reals")
    stays([x], sg.argmax(sg.softmax(x), axis=1), SIMPLIFY)


def test_norms_of_what_was_scaled():
    x, _ = xy()
    norm = sg.linalg.vector_norm
    becomes([x], norm(-x), norm(x), SIMPLIFY, "bits")
    becomes([x], norm(x * -3.0), norm(x) * 3.0, SIMPLIFY)


def test_what_all_terms_share():
    x, s = sg.placeholder("x", (2, 3)), sg.placeholder("s", ())
    becomes([x, s], sg.sum(x * s), sg.sum(x) * s, SIMPLIFY, "reals")
    becomes([x, s], sg.sum(x / s, axis=0), sg.sum(x, axis=0) / s, SIMPLIFY, "reals")
    becomes([x], sg.sum(x + 2.0), sg.sum(x) + 12.0, SIMPLIFY, "reals")
    stays([x], sg.sum(x + 2.0), SIMPLIFY)
    stays([x, s], sg.sum(x / s, axis=0), SIMPLIFY)


def test_masks_reduced():
    x, _ = xy(dtype="bool")
    becomes([x], sg.any(~x), sg.logical_not(sg.all(x)), SIMPLIFY, "bits")
    becomes([x], sg.all(~x, axis=0), sg.logical_not(sg.any(x, axis=0)), SIMPLIFY, "bits")


def test_reductions_of_what_was_moved():
    x, y = sg.placeholder("x", (2, 3)), sg.placeholder("y", (4, 3))
    becomes([x], sg.sum(x.T), sg.sum(x), SIMPLIFY)
    becomes([x], sg.max(sg.reshape(x, -1)), sg.max(x), SIMPLIFY)
    becomes([x], sg.prod(sg.flip(x)), sg.prod(x), SIMPLIFY)
    becomes([x], sg.sum(x.T, axis=0), sg.sum(x, axis=1), SIMPLIFY)
    becomes([x], sg.sum(x[:1], axis=0), sg.reshape(x[:1], (3,)), SIMPLIFY)
    becomes([x, y], sg.sum(sg.concat([x, y])), sg.sum(x) + sg.sum(y), SIMPLIFY)
    stays([x, y], sg.sum(sg.concat([x, y]), axis=1), SIMPLIFY)
    stays([x], sg.sum(x.T, axis=0), SIMPLIFY, "values")
    cube = sg.placeholder("cube", (2, 3, 4))
    turned = sg.sum(sg.permute_dims(cube, (2, 0, 1)), axis=1)
    stays([cube], turned, SIMPLIFY)


@pytest.mark.parametrize("reduce", [sg.sum, sg.prod, sg.nansum, sg.cumulative_sum])
def test_a_dtype_of_ones_own_is_kept(reduce):
    """No dtype is not float64, though NumPy takes the one for the other."""
    x = sg.placeholder("x", (4, 5), "float32")
    y = reduce(x * x, axis=1, dtype="float64")
    outputs = [y, sg.grad(sg.sum(y), x)]
    array = np.random.default_rng(0).standard_normal((4, 5)).astype("float32")
    for found, wanted in zip(
        sg.compile(x, outputs)(array), sg.compile(x, outputs, passes=())(array), strict=True
    ):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_factor_stays_in_a_sum_of_a_narrower_dtype(dtype):
    """Without it the terms would be too small for that, and the sum of another dtype."""
    x = sg.placeholder("x", (3,))
    y = sg.sum(x * 1e50, dtype=dtype)
    found = sg.compile([x], y)(np.full(3, 1e-50))
    assert found.dtype == dtype
    assert found == 3
    if dtype != "float64":
        stays([x], y, SIMPLIFY)


def test_a_sum_of_booleans_that_were_repeated_is_whether_one_is_true():
    m = sg.placeholder("m", (2,), "bool")
    y = sg.sum(sg.broadcast_to(m, (3, 2)), axis=0, dtype=bool)
    stays([m], y, SIMPLIFY)
    np.testing.assert_array_equal(sg.compile([m], y)([True, False]), [True, False])
