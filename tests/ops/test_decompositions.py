"""Factors, eigenvalues, singular values: values, derivatives of what they are for, ties, errors."""

import runpy

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.linalg import kernels
from symgrad.testing import check_grads
from tests.helpers import check_derivatives, close, each, generator, same, value

RNG = generator("decompositions")
la = sg.linalg


def matrices(*shape, dtype="float64"):
    made = RNG.standard_normal(shape)
    return made + 1j * RNG.standard_normal(shape) if dtype == "complex128" else made


def definite(*shape, dtype="float64"):
    x = matrices(*shape, dtype=dtype)
    return x @ x.mT.conj() + 3 * np.eye(shape[-1])


def placed(array, name="x"):
    return sg.placeholder(name, array.shape, array.dtype)


def as_complex(function):
    """What NumPy gives, made complex if it is not."""

    def result(x):
        found, kind = function(x), np.result_type(x.dtype, "complex64")
        if isinstance(found, tuple):
            return type(found)(*(part.astype(kind) for part in found))
        return found.astype(kind)

    return result


# ---- values ---------------------------------------------------------------------------------

SQUARE = {
    "cholesky": (la.cholesky, np.linalg.cholesky),
    "upper": (lambda x: la.cholesky(x, upper=True), lambda x: np.linalg.cholesky(x, upper=True)),
    "eigh": (la.eigh, np.linalg.eigh),
    "eigvalsh": (la.eigvalsh, np.linalg.eigvalsh),
    "eig": (la.eig, as_complex(np.linalg.eig)),
    "eigvals": (la.eigvals, as_complex(np.linalg.eigvals)),
    "det": (la.det, np.linalg.det),
    "slogdet": (la.slogdet, np.linalg.slogdet),
    "pinv": (la.pinv, np.linalg.pinv),
    "matrix_rank": (la.matrix_rank, np.linalg.matrix_rank),
}
ANY = {
    "qr": (la.qr, np.linalg.qr),
    "complete": (lambda x: la.qr(x, mode="complete"), lambda x: np.linalg.qr(x, "complete")),
    "svd": (la.svd, np.linalg.svd),
    "reduced": (
        lambda x: la.svd(x, full_matrices=False),
        lambda x: np.linalg.svd(x, full_matrices=False),
    ),
    "svdvals": (la.svdvals, np.linalg.svdvals),
    "pinv": (la.pinv, np.linalg.pinv),
    "matrix_rank": (la.matrix_rank, np.linalg.matrix_rank),
}


def both(ours, numpys, array):
    x = placed(array)
    found, expected = ours(x), numpys(array)
    if isinstance(expected, tuple):
        assert type(found)._fields == type(expected)._fields
    else:
        found, expected = [found], [expected]
    for y, wanted in zip(found, expected, strict=True):
        assert (y.shape, y.dtype) == (wanted.shape, wanted.dtype)
        close(value(y, {x: array}), wanted, 1e-4 if array.itemsize < 8 else 1e-10)


@each("dtype", ["float32", "float64", "complex128"])
@each("shape", [(3, 3), (2, 4, 4), (1, 1), (0, 0), (0, 2, 2)])
@each(("ours", "numpys"), SQUARE.values(), ids=SQUARE)
def test_square_matrices_are_numpys(ours, numpys, shape, dtype):
    both(ours, numpys, definite(*shape, dtype=dtype).astype(dtype))


@each("dtype", ["float64", "complex128"])
@each("shape", [(4, 2), (2, 5), (3, 2, 4), (3, 3), (0, 3), (3, 0)])
@each(("ours", "numpys"), ANY.values(), ids=ANY)
def test_matrices_of_any_shape_are_numpys(ours, numpys, shape, dtype):
    both(ours, numpys, matrices(*shape, dtype=dtype))


@pytest.mark.parametrize("name", ["eigh", "svd", "qr", "slogdet", "det", "cholesky", "svdvals"])
def test_numpys_functions_build_nodes(name):
    x = sg.placeholder("x", (3, 3))
    made = getattr(np.linalg, name)(x)
    assert type(made) is type(getattr(la, name)(x))


@each(("lower", "trans"), [(True, 0), (False, 0), (True, "T"), (False, "C")])
@each("n", [0, 1, 5, 64, 65, 150])
def test_triangular_systems(n, lower, trans):
    """By blocks; of the other triangle nothing is read."""
    a, b = matrices(n, n) + 9 * n * np.eye(n), matrices(n, 2)
    kept = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
    half, a = np.where(kept, a, 0), np.where(kept, a, np.nan)
    x, y = placed(a), placed(b, "b")
    found = la.solve_triangular(x, y, lower=lower, trans=trans)
    whole = half if trans == 0 else half.T
    close(value(found, {x: a, y: b}), np.linalg.solve(whole, b), 1e-12)
    inverse = sg.compile([x], la.solve_triangular(x, np.eye(n), lower=lower, trans=trans))
    close(inverse(a), np.linalg.inv(whole), 1e-12)


def test_unit_diagonals_and_vectors_and_batches():
    a, b = matrices(2, 3, 3), matrices(3)
    x, y = placed(a), placed(b, "b")
    ones = np.triu(a, 1) + np.eye(3)
    found = la.solve_triangular(x, y[:, None], unit_diagonal=True)
    close(value(found, {x: a, y: b}), np.linalg.solve(ones, b[:, None]))
    k = definite(3, 3)
    solved = la.cho_solve(np.linalg.cholesky(k), y)
    close(value(solved, {y: b}), np.linalg.solve(k, b))
    upper = la.cho_solve(np.linalg.cholesky(k, upper=True), y, upper=True)
    close(value(upper, {y: b}), np.linalg.solve(k, b))


# ---- derivatives ----------------------------------------------------------------------------


def hermitian(x):
    return (x + sg.conj(x.mT)) / 2


def rebuilt_by_eigh(x):
    """A function of a matrix by its eigenvectors, which the phases of these do not change."""
    w, v = la.eigh(hermitian(x))
    return (v * sg.cos(w)[..., None, :]) @ sg.conj(v.mT)


def rebuilt_by_eig(x):
    w, v = la.eig(x)
    return (v * sg.cos(w)[..., None, :]) @ la.inv(v)


def lengths_by_eig(x):
    """What the lengths of the vectors matter to, but not their phases nor their order."""
    w, v = la.eig(x)
    projections = v[..., :, None, :] * sg.conj(v)[..., None, :, :]
    return sg.sum(projections * sg.exp(w)[..., None, None, :], axis=-1)


def rebuilt_by_svd(x):
    u, s, vh = la.svd(x, full_matrices=False)
    return (u * sg.cos(s)[..., None, :]) @ vh


def first_of_svd(x):
    u, s, _ = la.svd(x, full_matrices=False)
    return (u * sg.exp(-s[..., None, :]))[..., :1] @ sg.conj(u.mT)[..., :1, :]


def turned_by_qr(x):
    q, r = la.qr(x)
    return (q * 2) @ sg.cos(r)


SMOOTH = {
    "eigh": (rebuilt_by_eigh, [(3, 3), (2, 4, 4)]),
    "eigvalsh": (lambda x: la.eigvalsh(hermitian(x)), [(3, 3)]),
    "eig": (rebuilt_by_eig, [(3, 3), (2, 4, 4)]),
    "eigenvectors": (lengths_by_eig, [(3, 3), (5, 5)]),
    "eigvals": (lambda x: sg.sum(sg.exp(la.eigvals(x)), axis=-1), [(4, 4)]),
    "svd": (rebuilt_by_svd, [(3, 3), (4, 2), (2, 4), (2, 3, 2)]),
    "left": (first_of_svd, [(3, 3), (4, 2), (2, 4)]),
    "svdvals": (la.svdvals, [(3, 3), (4, 2)]),
    "qr": (turned_by_qr, [(3, 3), (4, 2), (2, 4), (2, 3, 2)]),
    "pinv": (la.pinv, [(3, 3), (4, 2), (2, 4)]),
    "cholesky": (lambda x: la.cholesky(x @ sg.conj(x.mT) + np.eye(x.shape[-2])), [(3, 3)]),
    "det": (la.det, [(3, 3)]),
    "sign": (lambda x: la.slogdet(x).sign * la.slogdet(x).logabsdet, [(3, 3)]),
    "expm": (la.expm, [(3, 3)]),
    "power": (lambda x: la.matrix_power(x, -3), [(3, 3)]),
    "nuclear": (lambda x: la.matrix_norm(x, ord="nuc"), [(3, 3), (4, 2)]),
}


@each("dtype", ["float64", "complex128"])
@each(("name", "shape"), [(n, s) for n, (_, ss) in SMOOTH.items() for s in ss])
def test_derivatives_of_what_does_not_depend_on_signs_or_phases(name, shape, dtype):
    array = matrices(*shape, dtype=dtype)
    x = placed(array)
    check_derivatives([SMOOTH[name][0](x)], [x], [array], RNG)


def test_the_gradient_of_a_symmetric_matrix_is_symmetric():
    x = sg.placeholder("x", (3, 3))
    for y in (la.cholesky(x), la.eigh(x).eigenvectors, la.eigvalsh(x)):
        g = value(sg.grad(sg.sum(y * y * np.arange(1.0, 4)), x), {x: definite(3, 3)})
        close(g, g.T)


def test_a_determinant_has_a_gradient_where_it_is_0():
    """The adjugate; for rank n - 2 it is 0."""
    x = sg.placeholder("x", (3, 3))
    g = sg.compile([x], sg.grad(la.det(x), x))
    close(g(np.diag([2.0, 3.0, 0.0])), np.diag([0.0, 0.0, 6.0]))
    close(g(np.diag([2.0, 0.0, 0.0])), np.zeros((3, 3)))


def test_full_matrices_have_a_derivative_by_their_values_alone():
    array = matrices(2, 4)
    x = placed(array)
    u, s, vh = la.svd(x)
    reduced = sg.grad(sg.sum(la.svdvals(x) ** 3), x)
    close(value(sg.grad(sg.sum(s**3), x), {x: array}), value(reduced, {x: array}))
    for y in (u, vh, la.qr(x.T, mode="complete").Q):
        with pytest.raises(sg.GradientError, match="added to complete a basis"):
            sg.grad(sg.sum(y), x)


# ---- equal values ---------------------------------------------------------------------------

TWICE = np.diag([1.0, 2.0, 2.0])
VECTORS = {
    "eigh": lambda x, how: la.eigh(x, degenerate=how).eigenvectors,
    "svd": lambda x, how: la.svd(x, degenerate=how).U,
}


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_of_equal_values(name):
    x = sg.placeholder("x", (3, 3))
    grads = {
        how: sg.grad(sg.sum(VECTORS[name](x, how) * np.arange(9.0).reshape(3, 3)), x)
        for how in ("nan", "mask", "error")
    }
    assert np.isnan(value(grads["nan"], {x: TWICE})).any()
    assert np.isfinite(value(grads["mask"], {x: TWICE})).all()
    with pytest.raises(sg.KernelError, match=r"(?s)are equal.*degenerate='mask'.*test_decomp"):
        sg.compile([x], grads["error"])(TWICE)
    apart = TWICE + np.diag([0, 0, 1e-3])
    for how in ("mask", "error"):
        same(value(grads[how], {x: apart}), value(grads["nan"], {x: apart}))


@pytest.mark.parametrize("how", ["nan", "mask", "error"])
def test_where_nothing_flows_through_equal_values_nothing_is_wrong(how):
    """A sum of all equal eigenvalues, and the one vector of a simple one."""
    x = sg.placeholder("x", (3, 3))
    w, v = la.eigh(x, degenerate=how)
    close(value(sg.grad(w[1] + w[2], x), {x: TWICE}), np.diag([0.0, 1, 1]))
    g = value(sg.grad(sg.sum(v[:, 0] * np.arange(3.0)), x), {x: TWICE})
    close(np.abs(g), np.array([[0, 0.5, 1], [0.5, 0, 0], [1, 0, 0]]))


def test_a_function_of_the_space_of_equal_values_is_right_with_mask():
    x = sg.placeholder("x", (3, 3))
    v = la.eigh(x, degenerate="mask").eigenvectors[:, 1:]
    found = sg.grad(sg.sum((v @ v.T) * np.arange(9.0).reshape(3, 3)), x)
    near = TWICE + np.diag([0, 0, 1e-7])
    other = la.eigh(x).eigenvectors[:, 1:]
    expected = sg.grad(sg.sum((other @ other.T) * np.arange(9.0).reshape(3, 3)), x)
    close(value(found, {x: TWICE}), value(expected, {x: near}), 1e-5)


# ---- errors ---------------------------------------------------------------------------------

m = sg.placeholder("m", (2, 3))
f2 = sg.placeholder("f2", (3, 3), "float16")


@each(
    ("build", "error", "words"),
    [
        *(
            (lambda f=f: f(m), sg.ShapeError, "2 and 3 do not match")
            for f in (la.cholesky, la.det, la.slogdet, la.eigh, la.eigvalsh, la.expm, la.inv)
        ),
        *(
            (lambda f=f: f(m[0]), sg.ShapeError, "two axes or more")
            for f in (la.cholesky, la.det, la.qr, la.svd, la.pinv, la.svdvals, la.matrix_norm)
        ),
        *(
            (lambda f=f: f(f2), sg.DtypeError, "no float16")
            for f in (la.cholesky, la.det, la.qr, la.svd, la.pinv, la.eigh, la.slogdet)
        ),
        (lambda: la.eigh(f2, degenerate="zero"), sg.UnsupportedError, "'nan', 'mask' or 'error'"),
        (lambda: la.qr(m, mode="raw"), sg.UnsupportedError, "'reduced' or 'complete'"),
        (lambda: la.solve_triangular(m, m), sg.ShapeError, "2 and 3"),
        (lambda: la.solve_triangular(f2, f2, trans=3), sg.UnsupportedError, "trans is 0, 1, 2"),
        (lambda: la.cho_solve(np.eye(3), 1.0), sg.ShapeError, "not a scalar"),
        (lambda: la.matrix_norm(m, ord=3), sg.UnsupportedError, "'fro', 'nuc', 1, -1, 2"),
        (lambda: la.matrix_power(m, 2), sg.ShapeError, "not square"),
        (lambda: la.matrix_power(m, 0.5), sg.DtypeError, "of an integer, not 0.5"),
        (lambda: la.cross(m, m[:, :2]), sg.ShapeError, "of 3 elements, not 3 and 2"),
        (lambda: la.outer(m, m), sg.ShapeError, "to make vectors"),
        (lambda: la.block_diag(), sg.ShapeError, "takes matrices"),
    ],
)
def test_what_does_not_fit_is_refused(build, error, words):
    with pytest.raises(error, match=words):
        build()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (la.cholesky, "not positive definite"),
        (lambda x: la.solve_triangular(x, x), "Singular"),
        (lambda x: sg.grad(la.slogdet(x).logabsdet, x), "Singular"),
        (lambda x: la.solve(sg.assume(x, "diagonal"), x), "Singular"),
        (lambda x: la.inv(sg.assume(x, "diagonal")), "Singular"),
    ],
)
def test_a_singular_matrix_is_told_with_the_line(function, words):
    x = sg.placeholder("x", (2, 2))
    program = sg.compile([x], function(x))
    with pytest.raises(sg.KernelError, match=rf"(?s){words}.*test_decompositions\.py"):
        program(np.zeros((2, 2)))


def test_the_sign_of_a_determinant_is_piecewise_constant():
    x = sg.placeholder("x", (2, 2))
    with pytest.raises(sg.GradientError, match="sign is piecewise constant: its derivative is 0"):
        sg.grad(la.slogdet(x).sign, x)


# ---- programs -------------------------------------------------------------------------------


def test_values_alone_are_computed_alone():
    x = sg.placeholder("x", (3, 3))
    names = {n.op.name for n in sg.compile([x], [la.eigvalsh(x), la.svd(x).S]).graph.nodes}
    assert names == {"placeholder", "eigvalsh", "svdvals"}
    exact = sg.compile([x], la.eigvalsh(x), exact="values").graph
    assert {n.op.name for n in exact.nodes} == {"placeholder", "eigh", "item"}


def likelihoods(k, y):
    """The log likelihood of a Gaussian process, in the ways in which it is written."""
    factor = la.cholesky(k)
    half = la.solve_triangular(factor, y, lower=True)
    logs = sg.sum(sg.log(la.diagonal(factor)))
    yield 0.5 * sg.sum(y * la.cho_solve(factor, y)) + logs
    yield 0.5 * sg.sum(half**2) + logs
    yield 0.5 * (half @ half) + logs
    yield 0.5 * y @ la.solve_triangular(factor.T, half) + logs
    upper = la.cholesky(k, upper=True)
    yield 0.5 * y @ la.cho_solve(upper, y, upper=True) + sg.sum(sg.log(la.diagonal(upper)))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_large_factor_is_made_by_blocks(dtype):
    half = matrices(2, 300, 300, dtype=dtype)
    array = half @ np.conj(np.swapaxes(half, -1, -2)) / 300 + np.eye(300, dtype=dtype)
    x = placed(array)
    close(sg.compile([x], la.cholesky(x))(array), np.linalg.cholesky(array), tolerance=1e-5)
    array[1, 290, 290] = -1
    with pytest.raises(sg.KernelError, match="not positive definite"):
        sg.compile([x], la.cholesky(x))(array)


@pytest.mark.parametrize("way", range(5))
def test_a_gaussian_process_takes_one_factor_and_one_inverse(way):
    x, y = sg.placeholder("x", (4, 4)), sg.placeholder("y", 4)
    loss = list(likelihoods(x, y))[way]
    program = sg.compile([x, y], [loss, *sg.grad(loss, [x, y])])
    names = [n.op.name for n in program.graph.nodes]
    assert names.count("cholesky") == names.count("inv_triangular") == 1
    assert names.count("solve_triangular") == 2
    array, right = definite(4, 4), matrices(4)
    inverse = np.linalg.inv(array)
    a = inverse @ right
    found = program(array, right)
    close(found[0], 0.5 * right @ a + 0.5 * np.linalg.slogdet(array)[1])
    close(found[1], 0.5 * (inverse - np.outer(a, a)))
    close(found[2], a)
    raw = sg.compile([x, y], [loss, *sg.grad(loss, [x, y])], passes=())
    for mine, other in zip(found, raw(array, right), strict=True):
        close(mine, other, 1e-12)


@pytest.mark.parametrize("way", range(5))
def test_a_gaussian_process_has_two_derivatives(way):
    at, right = matrices(4), matrices(4)
    squares = np.subtract.outer(at, at) ** 2

    def loss(t):
        k = t[0] ** 2 * sg.exp(-squares / t[1] ** 2) + t[2] ** 2 * np.eye(4)
        return list(likelihoods(k, sg.constant(right)))[way]

    check_grads(loss, [1.2, 1.5, 0.3])


def test_a_program_with_them_stands_alone(tmp_path):
    x = sg.placeholder("x", (5, 5))
    w, v = la.eigh(x)
    u, s, vh = la.svd(x)
    q, r = la.qr(x)
    parts = [w, v, u @ vh, s, q, r, la.det(x), *la.slogdet(x), la.pinv(x), la.expm(x / 9)]
    parts += [la.cho_solve(la.cholesky(x), x), la.matrix_rank(x), la.eigvalsh(x @ x.T)]
    loss = sg.sum(v * v[:1]) + sg.sum(la.cholesky(x)) + la.det(x)
    program = sg.compile([x], [*parts, sg.grad(loss, x)])
    array = definite(5, 5)
    saved = runpy.run_path(str(program.save_source(tmp_path / "p.py")))["Program"]()
    for mine, other in zip(program(array), saved(array), strict=True):
        same(mine, other)


def test_sizes_may_be_named():
    x, y = sg.placeholder("x", ("N", "N")), sg.placeholder("y", ("N",))
    loss = la.logdet(x) + y @ la.cho_solve(la.cholesky(x), y) + la.eigvalsh(x)[0]
    array, right = definite(4, 4), matrices(4)
    program = sg.compile([x, y], [sg.grad(loss, x), la.expm(x).shape[0], la.qr(x).R])
    assert program(array, right)[0].shape == (4, 4)


def test_they_work_on_batches():
    array = definite(3, 3)
    x = placed(array)
    for y in (la.eigvalsh(x), la.slogdet(x).logabsdet, la.cholesky(x), la.qr(x).R, la.expm(x)):
        rows = value(sg.jacobian(y, x), {x: array}).reshape(-1, 3, 3)
        flat = sg.reshape(y, -1)
        for i in (0, len(rows) - 1):
            close(rows[i], value(sg.grad(flat[i], x), {x: array}))


def test_a_large_factor_is_written_over_what_nobody_reads_afterwards():
    for size, dtype in ((191, "float64"), (192, "float32"), (250, "complex128"), (300, "float64")):
        rng = np.random.default_rng(size)
        a = rng.standard_normal((2, size, size)) + 1j * rng.standard_normal((2, size, size))
        a = (a if dtype == "complex128" else a.real).astype(dtype)
        given = a @ np.conj(np.swapaxes(a, -1, -2)) + size * np.eye(size, dtype=dtype)
        factor = kernels.cholesky(given)
        room = 1e4 * np.finfo(dtype).eps
        np.testing.assert_allclose(factor, np.linalg.cholesky(given), rtol=0, atol=room)
        np.testing.assert_array_equal(kernels.cholesky(given, given), factor)
    x = sg.placeholder("x", (300, 300))
    program = sg.compile([x], sg.sum(sg.log(sg.linalg.diagonal(sg.linalg.cholesky(sg.exp(x))))))
    given = -np.abs(np.subtract.outer(np.arange(300.0), np.arange(300.0)))
    np.testing.assert_allclose(program(given), np.linalg.slogdet(np.exp(given))[1] / 2)
    assert "cholesky(a, a)" in program.source
