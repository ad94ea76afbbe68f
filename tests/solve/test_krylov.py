"""`linalg.cg` and `bicgstab` beside a dense solve: values, derivatives, batches, errors."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import symgrad as sg
from tests.helpers import close

RNG = np.random.default_rng(0)
N = 6
HALF = RNG.standard_normal((N, N))
MATRIX = HALF @ HALF.T / N + np.eye(N)
RIGHT = RNG.standard_normal(N)
a, b = sg.placeholder("a", (N, N)), sg.placeholder("b", N)

WAYS = {
    "cg": sg.linalg.cg,
    "cg of a function": lambda a, b: sg.linalg.cg(lambda v: a @ v, b),
    "bicgstab": sg.linalg.bicgstab,
    "cg, preconditioned": lambda a, b: sg.linalg.cg(a, b, M=lambda r: r / sg.linalg.diagonal(a)),
    "bicgstab, preconditioned": lambda a, b: sg.linalg.bicgstab(a, b, M=np.linalg.inv(MATRIX).T),
}


def all_derivatives(x):
    """To second order, in both modes; by a symmetric matrix as by any other."""
    loss = sg.sum(sg.sin(x))
    first = sg.grad(loss, [a, b])
    seconds = sg.grad(sg.sum(first[0] ** 2) + first[1] @ first[1], [a, b])
    modes = [sg.jacobian(x, b, mode=mode) for mode in ("forward", "reverse")]
    return [x, *first, *seconds, *modes, sg.jvp(x, a, a * a), sg.hessian(loss, b)]


@pytest.mark.parametrize("way", WAYS)
def test_values_and_derivatives_are_those_of_a_dense_system(way):
    matrix = MATRIX + np.triu(MATRIX) * way.startswith("bicgstab")
    wanted = sg.compile([a, b], all_derivatives(sg.linalg.solve(a, b)))(matrix, RIGHT)
    found = sg.compile([a, b], all_derivatives(WAYS[way](a, b)))(matrix, RIGHT)
    for x, y in zip(found, wanted, strict=True):
        close(x, y, tolerance=1e-8)


def test_a_function_of_a_grid_with_a_named_size_and_a_weight():
    u, k = sg.placeholder("u", ("M", 5)), sg.placeholder("k", ())

    def stiff(v):
        flat = sg.pad(v, 1)
        beside = flat[2:, 1:-1] + flat[:-2, 1:-1] + flat[1:-1, 2:] + flat[1:-1, :-2]
        return (4 + k) * v - beside

    x = sg.linalg.cg(stiff, u)
    program = sg.compile([u, k], [x, stiff(x), sg.grad(sg.sum(x), k)])
    for rows in (1, 4):
        given = RNG.standard_normal((rows, 5))
        _, image, slope = program(given, 0.5)
        close(image, given, tolerance=1e-9)
        near = program(given, 0.5 + 1e-6)[0].sum() - program(given, 0.5 - 1e-6)[0].sum()
        assert abs(slope - near / 2e-6) < 1e-4 * (1 + abs(slope))


def test_sparse_matrices_batches_and_a_right_side_of_0():
    sparse = scipy.sparse.diags_array(
        [-np.ones(N - 1), np.full(N, 3.0), -np.ones(N - 1)], offsets=[-1, 0, 1]
    )
    values = sg.placeholder("values", 3 * N - 2)
    made = sg.sparse.matrix(sparse).with_values(values)
    loss = sg.sum(sg.linalg.cg(made, b) ** 2)
    other = sg.sum(sg.sparse.solve(made, b) ** 2)
    given = sg.sparse.matrix(sparse).values
    at = [sg.compile([], given)(), RIGHT]
    pairs = sg.compile([values, b], [sg.grad(loss, [values, b]), sg.grad(other, [values, b])])(*at)
    for x, y in zip(*pairs, strict=True):
        close(x, y, tolerance=1e-8)
    both = sg.compile([], sg.linalg.cg(sparse, np.eye(N)[:, :2]))()
    close(both, np.linalg.inv(sparse.toarray())[:, :2], tolerance=1e-9)
    rows = sg.vmap(lambda s: sg.linalg.cg(sparse, s * b))(sg.constant([0.0, 1.0, -2.0]))
    wanted = np.outer([0, 1, -2], np.linalg.solve(sparse.toarray(), RIGHT))
    close(sg.compile([b], rows)(RIGHT), wanted, tolerance=1e-9)


def test_a_may_be_a_hessian_or_divide():
    """Their derivatives ask whether what flows is 0, which is not to be taken for a bend."""
    k = sg.placeholder("k", N)
    loss = sg.sum(sg.log(1 + b**2) / k) + sg.sum(sg.sqrt(1 + b * b) + sg.exp(b))
    step = sg.linalg.cg(lambda v: sg.hvp(loss, b, v), sg.grad(loss, b))
    wanted = sg.linalg.solve(sg.hessian(loss, b), sg.grad(loss, b))
    slopes = [sg.grad(sg.sum(x), [b, k]) for x in (step, wanted)]
    found = sg.compile([b, k], [[step, *slopes[0]], [wanted, *slopes[1]]])
    for x, y in zip(*found(RIGHT * [1, 1, 0, 1, 1, 1], 1 + RIGHT**2), strict=True):
        close(x, y, tolerance=1e-8)
    slope = sg.grad(sg.sum(sg.linalg.cg(lambda v: v / k, b)), k)
    close(sg.compile([b, k], slope)(RIGHT, 1 + RIGHT**2), RIGHT, tolerance=1e-9)


@pytest.mark.parametrize("method", [sg.linalg.cg, sg.linalg.bicgstab])
def test_a_preconditioner_saves_steps_of_every_system(method):
    sizes = np.logspace(0, 6, 60)
    k, right = sg.placeholder("k", 60), np.ones(60)
    x = method(lambda v: k * v, right, M=scipy.sparse.diags_array(1.01 / sizes), maxiter=4)
    batch = sg.vmap(lambda s: method(lambda v: k * v, s * right, M=lambda v: v / k, maxiter=4))
    outputs = [x, sg.grad(sg.sum(x), k), sg.jvp(x, k, k), batch(sg.constant([0.0, 2.0]))]
    found = sg.compile([k], outputs)(sizes)
    wanted = [1 / sizes, -1 / sizes**2, -1 / sizes, np.outer([0, 2], 1 / sizes)]
    for y, z in zip(found, wanted, strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-6)
    alone = sg.compile([k], method(lambda v: k * v, right, maxiter=4))
    with pytest.raises(sg.KernelError, match="in at most 4 steps"):
        alone(sizes)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: sg.linalg.cg(-1 * a, b), "symmetric and positive definite"),
        (lambda: sg.linalg.cg(a, b, maxiter=1), r"at most 1 steps: \|b - a\(x\)\| is [0-9.]+"),
        (lambda: sg.linalg.cg(lambda v: 2 * v + 1, b), "did not converge"),
        (lambda: sg.grad(sg.sum(sg.linalg.bicgstab(0 * a, b)), b), "bicgstab did not converge"),
    ],
)
def test_what_does_not_converge_is_told_with_the_line(build, words):
    program = sg.compile([a, b], build())
    with pytest.raises(sg.KernelError, match=rf"(?s){words}.*test_krylov\.py"):
        program(MATRIX, RIGHT)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: sg.linalg.cg(lambda v: v**2, b), "not linear"),
        (lambda: sg.linalg.cg(lambda v: v[1:], b), r"x is float64\[6\], and a\(x\)"),
        (lambda: sg.linalg.cg(a, sg.zeros(N, dtype="complex128")), "real floats"),
        (lambda: sg.linalg.cg(a, b, tol="1e-3"), "tol is a number"),
        (lambda: sg.linalg.cg(a, b, tol=float("nan")), "tol is a number"),
        (lambda: sg.linalg.bicgstab(a, b, maxiter=True), "maxiter is an int"),
        (lambda: sg.linalg.cg(None, b), "no array of numbers"),
        (lambda: sg.linalg.cg(a, b, M=lambda r: r**2), r"linear function M, and M\(x\) is not"),
        (lambda: sg.linalg.cg(a, b, M=np.ones((2, N))), r"x is float64\[6\], and M\(x\)"),
    ],
)
def test_bad_input_is_refused(build, words):
    with pytest.raises(sg.SymgradError, match=words):
        build()


def test_a_graph_that_was_saved_is_read_where_nothing_else_was_imported(tmp_path):
    path = tmp_path / "g.json"
    sg.Graph([sg.linalg.cg(a, b)], [a, b]).save(path)
    code = f"import symgrad as sg; print(len(sg.Graph.load({str(path)!r}).inputs))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "2\n"
