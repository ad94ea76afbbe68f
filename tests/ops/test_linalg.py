"""Inverses, systems, diagonals, and `sg.linalg`, against NumPy."""

import runpy
from itertools import pairwise

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import DtypeError, KernelError, ShapeError
from tests.helpers import close, each, generator, same, value

RNG = generator("linalg")
SQUARE = RNG.standard_normal((2, 3, 3))
s = sg.placeholder("s", (2, 3, 3))


@pytest.mark.parametrize("shape", [(3,), (3, 2), (2, 3, 4)])
def test_solve_is_numpys(shape):
    right = RNG.standard_normal(shape)
    b = sg.placeholder("b", shape)
    found, expected = sg.linalg.solve(s, b), np.linalg.solve(SQUARE, right)
    assert found.shape == expected.shape
    close(value(found, {s: SQUARE, b: right}), expected)
    same(value(np.linalg.solve(s, b) - found, {s: SQUARE, b: right}), np.zeros(expected.shape))


def test_inv_is_numpys():
    close(value(sg.linalg.inv(s), {s: SQUARE}), np.linalg.inv(SQUARE))
    close(value(np.linalg.inv(s), {s: SQUARE}), np.linalg.inv(SQUARE))
    whole = sg.placeholder("whole", (2, 2), "int32")
    found = value(sg.linalg.inv(whole), {whole: np.array([[2, 0], [0, 4]], "int32")})
    same(found, np.array([[0.5, 0], [0, 0.25]]))


@each("offset", [-2, -1, 0, 1, 3])
@each("shape", [(3, 4), (2, 3, 4), (4, 2, 5)])
def test_diagonals_and_traces_are_numpys(shape, offset):
    array = RNG.standard_normal(shape)
    x = sg.placeholder("x", shape)
    same(value(np.diagonal(x, offset=offset), {x: array}), np.diagonal(array, offset))
    close(value(np.trace(x, offset), {x: array}), np.trace(array, offset))
    last = sg.linalg.diagonal(x, offset=offset)
    same(value(last, {x: array}), np.linalg.diagonal(array, offset=offset))
    close(
        value(sg.linalg.trace(x, offset=offset), {x: array}), np.linalg.trace(array, offset=offset)
    )
    same(
        value(sg.diagonal(x, offset=offset, axis1=-1, axis2=0), {x: array}),
        np.diagonal(array, offset, -1, 0),
    )


@pytest.mark.parametrize("k", [-1, 0, 2])
def test_diag_goes_both_ways(k):
    array, matrix = RNG.standard_normal(3), RNG.standard_normal((4, 3))
    x, y = sg.placeholder("x", (3,)), sg.placeholder("y", (4, 3))
    same(value(np.diag(x, k), {x: array}), np.diag(array, k))
    same(value(sg.diag(y, k=k), {y: matrix}), np.diag(matrix, k))


def test_a_diagonal_of_a_named_square():
    x = sg.placeholder("x", ("N", "N"))
    y = sg.diagonal(x, offset=1)
    assert str(y.shape) == "(N - 1,)"
    same(sg.compile([x], y)(np.arange(9.0).reshape(3, 3)), [1.0, 5.0])
    grad = sg.compile([x], sg.grad(sg.sum(y**2), x))(np.ones((3, 3)))
    same(grad, 2 * np.eye(3, k=1))


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: sg.linalg.inv(sg.placeholder("x", (2, 3))), ShapeError, "2 and 3 do not match"),
        (lambda: sg.linalg.inv(sg.placeholder("x", 3)), ShapeError, "two axes or more"),
        (lambda: sg.linalg.inv(sg.placeholder("x", (2, 2), "f2")), DtypeError, "no float16"),
        (lambda: sg.linalg.solve(s, sg.placeholder("x", 4)), ShapeError, "3 and 4 do not match"),
        (lambda: sg.linalg.solve(s, 1.0), ShapeError, "not a scalar"),
        (lambda: sg.diagonal(sg.placeholder("x", 3)), ShapeError, "out of range"),
        (lambda: sg.diagonal(s, axis1=1, axis2=1), ShapeError, "twice"),
        (lambda: sg.diag(s), ShapeError, "a vector or a matrix"),
    ],
)
def test_what_does_not_fit_is_refused(build, error, words):
    with pytest.raises(error, match=words):
        build()


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_determinant_has_a_hessian_whatever_its_rank(rank, dtype):
    """The determinant is linear in each element, so that differences of gradients are exact."""
    rng = generator("rank")
    at = sum(np.outer(*rng.standard_normal((2, 3))) for _ in range(rank)) + np.zeros((3, 3), dtype)
    x, t = sg.placeholder("x", (3, 3), dtype), sg.placeholder("t", (3, 3), dtype)
    slope = sg.jvp(sg.linalg.det(x), [x], [t])
    bend = sg.compile([x, t], [sg.jvp(slope, [x], [t]), sg.vjp(slope, x, np.ones((), dtype))])
    along, step = rng.standard_normal((3, 3)).astype(dtype), 1e-3
    forward, reverse = bend(at, along)
    near = [np.linalg.det(at + s * along) for s in (-step, 0, step)]
    close(forward, (near[0] - 2 * near[1] + near[2]) / step**2, 1e-6)
    close(np.sum(reverse * along), forward, 1e-12)


def test_a_singular_matrix_is_told_with_the_step():
    program = sg.compile([s], sg.linalg.inv(s))
    with pytest.raises(KernelError, match=r"inv\(float64\[2, 3, 3\]\) failed.*Singular") as caught:
        program(np.ones((2, 3, 3)))
    assert isinstance(caught.value.__cause__, np.linalg.LinAlgError)
    assert "test_linalg.py" in str(caught.value)


def test_a_program_with_them_stands_alone(tmp_path):
    b = sg.placeholder("b", (3, 3))
    y = sg.linalg.inv(s) @ sg.linalg.solve(s, b) + sg.diag(sg.diagonal(b))
    program = sg.compile([s, b], y)
    array = RNG.standard_normal((3, 3))
    expected = program(SQUARE, array)
    saved = runpy.run_path(str(program.save_source(tmp_path / "p.py")))["Program"]()
    same(saved(SQUARE, array), expected)
    close(
        expected, np.linalg.inv(SQUARE) @ np.linalg.solve(SQUARE, array) + np.diag(array.diagonal())
    )


def test_the_namespace_lists_what_it_has():
    assert {*sg.linalg.__all__} >= {"inv", "solve", "trace", "diagonal", "matmul", "vecdot"}
    assert all(callable(getattr(sg.linalg, n)) for n in sg.linalg.__all__)
    assert sg.linalg.matmul is sg.matmul


def test_multi_dot_takes_the_cheapest_order():
    sizes = [30, 35, 15, 5, 10, 20, 25]  # the example of the textbook
    nodes = [sg.placeholder(f"m{i}", (a, b)) for i, (a, b) in enumerate(pairwise(sizes))]
    y = sg.linalg.multi_dot(nodes)
    products = [n for n in sg.Graph(y).nodes if n.op.name == "matmul"]
    flops = sum(a.shape[0] * a.shape[1] * b.shape[1] for a, b in (n.inputs for n in products))
    assert flops == 15125
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(n.shape) for n in nodes]
    np.testing.assert_allclose(sg.compile(nodes, y)(*arrays), np.linalg.multi_dot(arrays))


@pytest.mark.parametrize("shapes", [((3,), (3, 4)), ((3, 4), (4,)), ((3,), (3, 4), (4, 2), (2,))])
def test_multi_dot_takes_vectors_at_the_ends(shapes):
    nodes = [sg.placeholder(f"m{i}", s) for i, s in enumerate(shapes)]
    arrays = [np.random.default_rng(i).standard_normal(s) for i, s in enumerate(shapes)]
    found = sg.compile(nodes, sg.linalg.multi_dot(nodes))(*arrays)
    np.testing.assert_allclose(found, np.linalg.multi_dot(arrays))
    assert np.linalg.multi_dot(nodes).shape == found.shape


def test_multi_dot_refuses_what_is_no_chain():
    a, b = sg.placeholder("a", (3, 4)), sg.placeholder("b", (3, 4))
    with pytest.raises(sg.ShapeError, match="4 and 3 do not match"):
        sg.linalg.multi_dot([a, b])
    with pytest.raises(sg.ShapeError, match="two matrices or more"):
        sg.linalg.multi_dot([a])
    with pytest.raises(sg.ShapeError, match="two matrices or more"):
        sg.linalg.multi_dot([a, sg.placeholder("v", 4), b])


@pytest.mark.parametrize("offset", [2**31, 2**40, -(2**31) - 1, -(2**63)])
def test_a_diagonal_far_beyond_the_matrix_is_empty(offset):
    x = sg.placeholder("x", (3, 4))
    for backend in ("numpy", "reference"):
        program = sg.compile(x, sg.linalg.diagonal(x, offset=offset), backend=backend)
        assert program(np.ones((3, 4))).shape == (0,)


def test_least_squares_of_less_than_full_rank():
    a, b = np.array([[1.0, 2], [2, 4], [3, 6]]), np.array([1.0, 2, 4])
    expected, known = np.linalg.lstsq(a, b), np.linalg.lstsq(sg.constant(a), b)
    for mine, theirs in zip(known, expected, strict=True):
        assert mine.shape == theirs.shape
        close(value(mine), theirs)
    x = sg.placeholder("x", (3, 2))
    found = np.linalg.lstsq(x, b)
    solution, rank = sg.compile([x], [found.x, found.rank])(a)
    close(solution, expected[0])
    assert rank == 1
    residuals = sg.compile([x], found.residuals)
    with pytest.raises(sg.KernelError, match="that a has full rank, else lstsq has no residuals"):
        residuals(a)
    close(residuals(a + np.eye(3, 2)), np.linalg.lstsq(a + np.eye(3, 2), b)[1])
    nearly = a + 1e-3 * np.eye(3, 2)
    for rcond in (None, 1e-2):  # which the rank is told by, too
        assert (
            int(np.linalg.lstsq(sg.constant(nearly), b, rcond)[2])
            == (np.linalg.lstsq(nearly, b, rcond)[2])
        )
