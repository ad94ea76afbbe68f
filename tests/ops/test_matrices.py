"""Products, norms and functions of matrices, against NumPy."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.testing import check_grads
from tests.helpers import check_derivatives, close, each, generator, same, value

RNG = generator("matrices")
la = sg.linalg


def placed(array, name="x"):
    return sg.placeholder(name, array.shape, array.dtype)


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("shapes", [((3, 3), (3, 3)), ((3,), (3, 3))])
def test_cross_is_numpys(shapes, axis):
    a, b = (RNG.standard_normal(s) for s in shapes)
    x, y = placed(a), placed(b, "y")
    found = la.cross(x, y, axis=axis)
    close(value(found, {x: a, y: b}), np.cross(a, b, axis=axis))
    same(value(np.cross(x, y, axis=axis) - found, {x: a, y: b}), np.zeros(found.shape))
    check_derivatives([found], [x, y], [a, b], RNG)


@pytest.mark.parametrize(
    "shapes", [((2, 3), (4, 5)), ((2,), (3, 2)), ((2, 1, 3), (2, 2)), ((), (2,))]
)
def test_kron_is_numpys(shapes):
    a, b = (RNG.standard_normal(s) for s in shapes)
    x, y = placed(a), placed(b, "y")
    found = np.kron(x, y)
    assert found.shape == np.kron(a, b).shape
    close(value(found, {x: a, y: b}), np.kron(a, b))


def test_outer_and_block_diag():
    a, b = RNG.standard_normal(2), RNG.standard_normal((2, 1))
    x, y = placed(a), placed(b, "y")
    close(value(np.outer(x, y[:, 0]), {x: a, y: b}), np.outer(a, b))
    found = value(la.block_diag(x, y, 3), {x: a, y: b})
    expected = np.zeros((4, 4))
    expected[0, :2], expected[1:3, 2:3], expected[3, 3] = a, b, 3
    same(found, expected)
    named = sg.placeholder("n", ("N", "M"))
    assert str(la.block_diag(named, y).shape) == "(N + 2, M + 1)"


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 7])
def test_matrix_power_is_numpys(n):
    a = RNG.standard_normal((2, 3, 3))
    x = placed(a)
    close(value(np.linalg.matrix_power(x, n), {x: a}), np.linalg.matrix_power(a, n), 1e-9)
    whole = sg.placeholder("i", (3, 3), "int64")
    assert la.matrix_power(whole, n).dtype == ("float64" if n < 0 else "int64")


def test_matrix_rank_counts_what_is_not_0():
    a = np.diag([1.0, 1e-3, 0.0])
    x = placed(a)
    for rtol, rank in ((None, 2), (1e-2, 1), (2.0, 0)):
        assert value(la.matrix_rank(x, rtol=rtol), {x: a}) == rank
    with pytest.raises(sg.GradientError):
        sg.grad(la.matrix_rank(x) * 1.0, x)


@each("keepdims", [False, True])
@each("ord", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_matrix_norms_are_numpys(ord, keepdims):
    a = RNG.standard_normal((2, 3, 4))
    x = placed(a)
    given = {"ord": ord, "keepdims": keepdims}
    close(value(la.matrix_norm(x, **given), {x: a}), np.linalg.matrix_norm(a, **given))
    for axis in ((0, 2), (2, 1)):
        close(
            value(np.linalg.norm(x, axis=axis, **given), {x: a}),
            np.linalg.norm(a, axis=axis, **given),
        )
    check_grads(lambda x: la.matrix_norm(x, ord=ord), a)


def test_what_ties_for_the_largest_shares_the_gradient():
    a = np.array([[1.0, -2], [2, 1]])
    for ord in (1, np.inf):
        assert check_grads(lambda x, p=ord: la.matrix_norm(x, ord=p), a).kinks
    check_grads(lambda x: la.matrix_norm(x, ord=2), np.diag([2.0, 1.0]))


@pytest.mark.parametrize("size", [1e-8, 0.1, 3.0, 60.0])
def test_expm_is_that_of_the_eigenvalues(size):
    half = RNG.standard_normal((4, 4))
    a = (half + half.T) * size / 8
    w, v = np.linalg.eigh(a)
    x = placed(a)
    close(value(la.expm(x), {x: a}), (v * np.exp(w)) @ v.T, 1e-12)
    nilpotent = np.eye(4, k=1) * size
    expected = sum(np.linalg.matrix_power(nilpotent, k) / [1, 1, 2, 6][k] for k in range(4))
    close(value(la.expm(x), {x: nilpotent}), expected, 1e-12)


def test_expm_of_what_is_not_finite_is_nan():
    x = sg.placeholder("x", (2, 2))
    assert np.isnan(value(la.expm(x), {x: np.array([[np.inf, 0], [0, 1]])})).all()


def test_pinv_of_a_matrix_without_full_rank():
    a = RNG.standard_normal((4, 2)) @ RNG.standard_normal((2, 3))
    x = placed(a)
    close(value(la.pinv(x), {x: a}), np.linalg.pinv(a))
    close(value(la.pinv(x, rtol=0.9), {x: a}), np.linalg.pinv(a, rtol=0.9))


@pytest.mark.parametrize("shapes", [((3, 4, 3), (3,)), ((4, 3), (3,)), ((2, 3, 4, 3), (2, 1)),
                                    ((3, 4, 3), ())])  # fmt: skip
def test_a_tolerance_for_each_matrix(shapes):
    """`rtol` broadcasts with the batch, as in the array API, whatever holds it."""
    shape, of_rtol = shapes
    u, _, vh = np.linalg.svd(RNG.standard_normal(shape), full_matrices=False)
    a = (u * [1, 1e-2, 1e-5]) @ vh
    rtol = np.resize([0.5, 1e-3, 1e-9], of_rtol)
    x, limit = placed(a), sg.placeholder("limit", of_rtol)
    batch = np.broadcast_shapes(shape[:-2], of_rtol)
    rank = np.linalg.matrix_rank(a, rtol=rtol)
    inverse = np.linalg.pinv(np.broadcast_to(a, (*batch, *shape[-2:])), rtol=rtol)
    for given in (rtol, rtol.tolist(), limit):
        feeds = {x: a, limit: rtol}
        same(value(la.matrix_rank(x, rtol=given), feeds), rank)
        close(value(la.pinv(x, rtol=given), feeds), inverse)
    same(value(np.linalg.matrix_rank(x, rtol=rtol), {x: a}), rank)
    close(value(np.linalg.pinv(x, rtol=rtol), {x: a}), inverse)
    mapped = sg.vmap(lambda row, least: la.pinv(row, rtol=least))
    if rtol.ndim and len(of_rtol) < len(shape) - 1:
        close(value(mapped(x, limit), {x: a, limit: rtol}), inverse)


def test_a_tolerance_has_a_gradient_of_its_own_nowhere():
    a = RNG.standard_normal((2, 4, 3))
    x = placed(a)
    check_grads(lambda x: la.pinv(x, rtol=np.array([1e-9, 1e-8])), [a])
    rtol = sg.placeholder("rtol", 2)
    with pytest.raises(sg.GradientError, match="'rtol'"):
        sg.grad(sg.sum(la.pinv(x, rtol=rtol)), rtol)
    for wrong in (np.array([1j, 0]), "1e-3", np.ones(3)):
        for f in (la.pinv, la.matrix_rank):
            with pytest.raises(sg.SymgradError):
                f(x, rtol=wrong)
