"""Sparse matrices: products, systems, and what programs return, beside dense arrays."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import symgrad as sg
from symgrad.testing import check_grads

RNG = np.random.default_rng(0)
X = RNG.standard_normal(5)


def array(rows=4, columns=5, kind="csr", dtype="float64"):
    """A SciPy array with an empty row and an empty column."""
    dense = RNG.choice([0.0, 1.0, -2.0, 0.5], (rows, columns))
    dense[1], dense[:, 2] = 0, 0
    return scipy.sparse.coo_array(dense.astype(dtype)).asformat(kind)


def doubled():
    """Entries that stand at one place, out of order, one of them 0."""
    rows, columns = [3, 0, 3, 1, 0], [1, 2, 1, 0, 2]
    return scipy.sparse.coo_array(([1.0, 2.0, 3.0, 0.0, 5.0], (rows, columns)), shape=(4, 5))


MATRICES = [
    array(), array(kind="csc"), array(kind="coo"), array(kind="dia"), array(kind="lil"), doubled(),
    scipy.sparse.csr_matrix(array()), array(dtype="float32"), array(dtype="complex128"),
    array(dtype="int64"), scipy.sparse.csr_array((4, 5)),
]  # fmt: skip


def test_numpys_arithmetic_of_a_matrix_is_that_of_its_operators():
    given = array()
    a, dense = sg.sparse.matrix(given), given.toarray()
    y = np.ones(4)
    for found, wanted in [
        (np.matmul(a, X), dense @ X), (np.matmul(y, a), y @ dense), (y @ a, y @ dense),
        (np.multiply(np.float64(3), a).todense(), 3 * dense), (np.negative(a).todense(), -dense),
        (np.divide(a, 2).todense(), dense / 2), (np.subtract(a, a).todense(), 0 * dense),
    ]:  # fmt: skip
        np.testing.assert_allclose(sg.compile([], found)(), wanted)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_result_that_is_changed_leaves_the_next_alone(kind):
    made = sg.sparse.matrix(array())
    program = sg.compile([], made.T * 2.0 if kind == "csc" else made * 2.0)
    first, second = program(), program()
    wanted = second.toarray()
    first.data[:], first.indices[:], first.indptr[:] = 7, 0, 0
    assert second.format == program().format == kind
    np.testing.assert_array_equal(second.toarray(), wanted)
    np.testing.assert_array_equal(program().toarray(), wanted)


def gradient(a, x):
    """That of the squares of a product."""
    return sg.grad(sg.sum(sg.real((a @ x) ** 2)), x)


@pytest.mark.parametrize("a", MATRICES, ids=lambda a: f"{a.format} {a.dtype} {a.nnz}")
def test_products_are_those_of_dense_arrays(a):
    dense = a.toarray()
    x, w = sg.placeholder("x", 5), sg.placeholder("w", (2, 5, 3))
    left, right = sg.placeholder("left", 4), RNG.standard_normal((3, 4))
    ours = sg.sparse.matrix(a)
    pairs = [
        (a @ x, dense @ x), (sg.matmul(ours, x), dense @ x), (left @ a, left @ dense),
        (ours @ w, dense @ w), (ours.T @ left, dense.T @ left), (right @ ours, right @ dense),
        (w[0].T @ ours.T, w[0].T @ dense.T), (ours.todense(), dense),
        (gradient(ours, x), gradient(dense, x)),
    ]  # fmt: skip
    flat = [y for pair in pairs for y in pair]
    values = sg.compile([x, w, left], flat)(X, RNG.standard_normal((2, 5, 3)), X[:4])
    for found, wanted in zip(values[::2], values[1::2], strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-9)


def test_arithmetic_of_sparse_matrices():
    a, b = array(), array(5, 4, "csc")
    ours, theirs = sg.sparse.matrix(a), sg.sparse.matrix(b)
    v = sg.placeholder("v", a.nnz)
    of_v = ours.with_values(v)
    for found, wanted in [
        (of_v @ theirs, a @ b), (ours.T @ of_v, a.T @ a), (a @ theirs, a @ b),
        (of_v + theirs.T, a + b.T), (of_v - a, a - a), (a - of_v / 2, a / 2),
        (2 * of_v.T, 2 * a.T), (theirs.T - of_v, b.T - a),
    ]:  # fmt: skip
        found = sg.compile([v], found)(a.data)
        np.testing.assert_allclose(found.toarray(), wanted.toarray(), rtol=1e-12)


SQUARE = array(4, 4) + scipy.sparse.eye_array(4) * 7


def test_gradients_by_values_and_vectors_of_every_order():
    a = sg.sparse.matrix(SQUARE)
    start = np.concatenate([a.values, X[:4]])

    def both(matrix):
        def function(z):
            m = matrix.with_values(z[: a.nnz])
            return sg.sum(sg.sin(m @ z[a.nnz :])) + sg.sum(sg.cos(m.solve(z[a.nnz :])))

        return function

    for matrix in (a, a.T):
        check_grads(both(matrix), start, order=2)


def test_gradients_by_a_sparse_matrix_are_sparse():
    a = array()
    ours = sg.sparse.matrix(a)
    v, x = sg.placeholder("v", a.nnz), sg.placeholder("x", 5)
    of_v = ours.with_values(v)
    g, by_x = sg.compile([v, x], sg.grad(sg.sum((of_v @ x) ** 2), (of_v, x)))(a.data, X)
    wanted = np.outer(2 * (a @ X), X) * (a.toarray() != 0)
    np.testing.assert_allclose(g.toarray(), wanted, rtol=1e-12)
    np.testing.assert_allclose(by_x, 2 * a.T @ (a @ X), rtol=1e-12)


def test_a_result_of_float16_is_of_float32_which_scipy_has():
    x = sg.placeholder("x", 3, "float16")
    found = sg.compile([x], sg.jacobian(x[1:] * x[:-1], x, sparse=True))(np.ones(3, "float16"))
    assert (found.dtype, found.toarray().sum()) == ("float32", 4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "float16"])
def test_systems_of_every_dtype(dtype):
    values = sg.sparse.matrix(SQUARE).values
    a = sg.sparse.matrix(SQUARE).with_values(sg.astype(values, dtype))
    b = sg.placeholder("b", (2, 4, 3), dtype)
    for matrix, dense in ((a, SQUARE.toarray()), (a.T, SQUARE.T.toarray())):
        y = sg.sparse.solve(matrix, b)
        assert y.dtype == dtype
        at = RNG.standard_normal((2, 4, 3)).astype(dtype)
        found = sg.compile([b], y)(at)
        np.testing.assert_allclose(
            found, np.linalg.solve(dense, at.astype("complex128")), atol=2e-3
        )


def test_batches_of_matrices_and_vectors():
    a = sg.sparse.matrix(SQUARE)
    v, x = sg.placeholder("v", (3, a.nnz)), sg.placeholder("x", (3, 4))
    values, xs = RNG.uniform(1, 2, (3, a.nnz)), RNG.standard_normal((3, 4))
    of = sg.vmap(lambda v, x: a.with_values(v) @ x)(v, x)
    solved = sg.vmap(lambda x: a.solve(x))(x)
    found, roots = sg.compile([v, x], [of, solved])(values, xs)
    for i in range(3):
        one = sg.compile([], sg.sparse.matrix(SQUARE).with_values(values[i]))()
        np.testing.assert_allclose(found[i], one @ xs[i], rtol=1e-12)
        np.testing.assert_allclose(roots[i], np.linalg.solve(SQUARE.toarray(), xs[i]), rtol=1e-9)


def test_values_that_are_a_view_are_solved_with():
    a, at = sg.sparse.matrix(SQUARE), RNG.uniform(1, 2, SQUARE.nnz)
    v, b = sg.placeholder("v", a.nnz), np.ones(4)
    for view, values in ((sg.flip(v), at[::-1]), (sg.broadcast_to(v[:1], a.nnz), at[:1])):
        one = sg.compile([], a.with_values(np.broadcast_to(values, a.nnz)))()
        found = sg.compile([v], a.with_values(view).solve(b))(at)
        np.testing.assert_allclose(one @ found, b, rtol=1e-9)


def test_a_matrix_is_factored_once_for_a_solve_its_gradient_and_the_next_call(monkeypatch):
    made = []
    whole = scipy.sparse.linalg.splu
    monkeypatch.setattr(scipy.sparse.linalg, "splu", lambda m: made.append(1) or whole(m))
    big = scipy.sparse.diags_array(np.ones((3, 30)), offsets=[-1, 0, 1], shape=(30, 30)) * 1.0
    a = sg.sparse.matrix(big + 3 * scipy.sparse.eye_array(30))
    v, b = sg.placeholder("v", a.nnz), sg.placeholder("b", 30)
    y = a.with_values(v).solve(b)
    program = sg.compile([v, b], [y, sg.grad(sg.sum(y * y), [v, b])])
    values = np.asarray(a.values)
    for _ in range(3):
        program(values, np.ones(30))
    assert len(made) == 1
    program(2 * values, np.ones(30))
    assert len(made) == 2


def test_a_singular_matrix_is_told_with_its_line():
    b = sg.placeholder("b", 3)
    y = sg.sparse.solve(scipy.sparse.csr_array(np.ones((3, 3))), b)
    with pytest.raises(
        sg.LinAlgError, match=r"sparse_solve.*(Singular|singular)[\s\S]*test_matrices"
    ):
        sg.compile([b], y)(np.ones(3))


def test_programs_return_sparse_arrays_that_are_the_callers():
    x = sg.placeholder("x", 5)
    j = sg.jacobian(sg.sin(x[1:]) * x[:-1], x, sparse=True)
    program = sg.compile([x], {"j": j, "both": [j.T, sg.sum(x)]})
    for p in (program, copy.deepcopy(program), pickle.loads(pickle.dumps(program))):
        found = p(X)
        assert isinstance(found["j"], scipy.sparse.csr_array)
        assert isinstance(found["both"][0], scipy.sparse.csc_array)
        assert (found["both"][0] != found["j"].T).nnz == 0
        found["j"].data[:] = found["j"].indices[:] = 0  # harms nobody
        assert (found["both"][0] != p(X)["j"].T).nnz == 0


def test_a_file_of_a_program_gives_the_values(tmp_path):
    a, x = array(4, 5), sg.placeholder("x", 5)
    program = sg.compile([x], [a @ x, sg.sparse.solve(SQUARE, (a @ x))])
    scope = {"__name__": "saved"}
    exec(program.save_source(tmp_path / "p.py").read_text(), scope)
    for found, wanted in zip(scope["Program"]()(X), program(X), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_saved_graph_is_read_again_and_a_changed_one_refused(tmp_path):
    a, x = array(4, 5), sg.placeholder("x", 5)
    graph = sg.compile([x], a @ x, passes=()).graph
    path = tmp_path / "graph.json"
    graph.save(path)
    assert sg.Graph.load(path) == graph
    text = str(graph)
    assert sg.Graph.parse(text) == graph
    with pytest.raises(sg.ParseError, match="lie within them"):
        sg.Graph.parse(text.replace("columns=5", "columns=1"))


def test_newtons_method_with_a_sparse_jacobian():
    x = sg.placeholder("x", 50)
    f = 3 * x - sg.cos(sg.roll(x, 1)) - 1
    step = sg.compile([x], x - sg.jacobian(f, x, sparse=True).solve(f))
    at = np.zeros(50)
    for _ in range(6):
        at = step(at)
    assert abs(3 * at - np.cos(np.roll(at, 1)) - 1).max() < 1e-14


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda a, x: sg.sparse.matrix(np.eye(3)), "csr_array"),
        (lambda a, x: sg.sparse.matrix(a.astype(bool)), "takes integers"),
        (lambda a, x: a @ x[1:], "5 and 4"),
        (lambda a, x: sg.sparse.solve(a, x), "square matrix, not one of 4 × 5"),
        (lambda a, x: sg.sparse.matrix(a).with_values(x[:2]), "values are wanted"),
        (lambda a, x: sg.sparse.matrix(a) * x, "no scalar"),
        (lambda a, x: sg.sparse.matrix(a) + x, r"A.todense\(\)"),
        (lambda a, x: sg.sparse.matrix(a)[0], r"A.todense\(\)"),
        (lambda a, x: np.sin(sg.sparse.matrix(a)), "np.sin is not of sparse"),
        (lambda a, x: np.add.reduce(sg.sparse.matrix(a)), "np.add.reduce is not of sparse"),
        (lambda a, x: np.divide(X[0], sg.sparse.matrix(a)), "by a sparse matrix"),
        (lambda a, x: sg.jacobian(x * x, x, sparse="yes"), "sparse is True or False"),
        (lambda a, x: sg.hessian(sg.sum(x), x, sparse=1), "sparse is True or False"),
        (lambda a, x: sg.sparse.matrix(a) @ sg.sparse.matrix(a), "have no product"),
        (lambda a, x: sg.sparse.from_entries(x, [0] * 5, [0, 1, 2, 3, 9], (4, 5)), "of 5 columns"),
        (lambda a, x: sg.sparse.from_entries(x, [0.0] * 5, [0] * 5, (4, 5)), "is an int"),
        (lambda a, x: sg.sparse.from_entries(x, [0] * 5, [0] * 5, ("N", 5)), "two ints"),
        (lambda a, x: sg.sparse.from_entries(x, [0] * 5, [0] * 5, 5), "two ints"),
        (lambda a, x: sg.sparse.from_entries(x, [0] * 5, [0] * 5, (5, 5, 5)), "two ints"),
    ],
)
def test_bad_input_is_refused(build, said):
    with pytest.raises(sg.SymgradError, match=said):
        build(array(), sg.placeholder("x", 5))
