"""Facts of matrices: those that are found hold, those that are declared are used and checked."""

import re

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import ArgumentError, DtypeError, ShapeError, SymgradError
from symgrad.ir.evaluate import evaluate
from symgrad.ops.linalg.assume import NAMES, Facts
from symgrad.ops.linalg.facts import facts_of
from symgrad.ops.select import select
from symgrad.runtime.inspect.assumptions import TESTS
from tests.helpers import close
from tools.structure_table import EXPRESSIONS, compiled, texts, values

x = sg.placeholder("x", (4, 4))
d = sg.placeholder("d", (4,))
p = sg.placeholder("p", (4,), within=(0.5, 2))
tall = sg.placeholder("tall", (4, 2))
gram = x @ x.T
EYE = sg.eye(4)
FACTS = {
    "a gram matrix": (gram, "positive_semidefinite"),
    "with the identity": (gram + EYE, "positive_definite"),
    "of the transpose": (x.T @ x + 0.5 * EYE, "positive_definite"),
    "with a positive diagonal": (gram + sg.diag(p), "positive_definite"),
    "with any diagonal": (gram + sg.diag(d), "symmetric"),
    "with a number that is positive": (gram + sg.exp(d[0]) * EYE, "positive_definite"),
    "less the identity": (gram - EYE, "symmetric"),
    "of a symmetric one": (x @ (gram @ x.T), "positive_semidefinite"),
    "the other way round": ((x @ gram) @ x.T, "positive_semidefinite"),
    "an outer product": (sg.expand_dims(d, axis=1) * d, "positive_semidefinite"),
    "differences": (sg.square(sg.expand_dims(d, axis=1) - d), "symmetric"),
    "a function of distances": (sg.exp(-abs(sg.expand_dims(d, axis=1) - d)), "symmetric"),
    "Schur's product": ((gram + EYE) * (x.T @ x + EYE), "positive_definite"),
    "a sum with the transpose": (x + x.T, "symmetric"),
    "lower": (sg.tril(x), "lower"),
    "strictly upper": (sg.triu(x, k=1), "upper"),
    "transposed": (sg.tril(x).T, "upper"),
    "a product of lower ones": (sg.tril(x) @ sg.tril(x), "lower"),
    "lower and upper": (sg.triu(sg.tril(x)), "diagonal"),
    "a factor": (sg.linalg.cholesky(gram + EYE), "lower"),
    "of a factor": (sg.linalg.inv(sg.linalg.cholesky(gram + EYE)), "lower"),
    "an inverse": (sg.linalg.inv(gram + EYE), "positive_definite"),
    "an exponential": (sg.linalg.expm((x + x.T) / 8), "positive_definite"),
    "a rotation": (sg.linalg.expm(x - x.T), "orthogonal"),
    "of qr": (sg.linalg.qr(x)[0], "orthogonal"),
    "the other of qr": (sg.linalg.qr(x)[1], "upper"),
    "eigenvectors": (sg.linalg.eigh(gram)[1], "orthogonal"),
    "scaled": (-2.0 * sg.diag(d), "diagonal"),
    "a batch": (sg.broadcast_to(gram, (3, 4, 4)), "positive_semidefinite"),
}
NOTHING = {
    "any": x,
    "a product": x @ x,
    "almost lower": sg.tril(x, k=1),
    "low rank alone": sg.linalg.inv(x),
    "tall": sg.linalg.qr(tall)[0],
    "of zeros made ones": sg.exp(sg.tril(x)),
}


def feeds():
    rng = np.random.default_rng(0)
    arrays = {n: rng.standard_normal(n.shape) for n in (x, d, tall)}
    return arrays | {p: rng.uniform(0.5, 2, 4)}


@pytest.mark.parametrize("name", FACTS)
def test_what_is_found_is_what_is_expected_and_holds(name):
    node, expected = FACTS[name]
    found = facts_of(node)
    assert NAMES[expected] in found
    (matrix,) = evaluate([node], feeds())
    for fact, flags in NAMES.items():
        if flags in found:
            assert TESTS[fact](matrix) == "" or (fact == "positive_definite" and expected != fact)


def test_nothing_is_found_of_what_has_no_structure():
    found = {name: facts_of(node) for name, node in NOTHING.items()}
    assert set(found.values()) == {Facts.NONE}, found


def test_named_sizes():
    lower = sg.tril(sg.placeholder("n", ("N", "N")))
    assert Facts.LOWER in facts_of(lower)
    assert Facts.DEFINITE in facts_of(lower @ lower.T + sg.eye(lower.shape[0]))


def _masked(where):
    """x where a mask has it, and the identity."""
    return select(where, x) + EYE


LOOKALIKES = {
    "a row of a mask": _masked(np.array([[True, False, True, True]])),
    "a column of a mask": _masked(np.array([[True], [False], [True], [True]])),
    "the mask of a column": _masked(sg.arange(1) <= sg.reshape(sg.arange(4), (4, 1))),
    "an even function of one number": abs(sg.placeholder("one", (1, 1))),
}


@pytest.mark.parametrize("name", LOOKALIKES)
def test_what_only_looks_like_structure_is_none(name):
    found = facts_of(LOOKALIKES[name])
    assert not found & (Facts.LOWER | Facts.UPPER | Facts.SKEW)


def test_low_rank_beside_a_zero_on_the_diagonal():
    numbers, at = np.array([0.0, 1, -2, 3]), feeds()
    matrix = sg.diag(d) + tall @ tall.T
    found = [sg.linalg.solve(matrix, x), *sg.linalg.slogdet(matrix)]
    arrays = [numbers, at[tall], at[x]]
    program = sg.compile([d, tall, x], found, exact="reals")
    for a, b in zip(program(*arrays), evaluate(found, at | {d: numbers}), strict=True):
        close(a, b, 1e-9)


def test_elements_of_a_kronecker_product_in_rows_of_another_length():
    outer, inner = sg.reshape(x[:2, :2], (2, 1, 2, 1)), sg.reshape(x[2:, 2:], (1, 2, 1, 2))
    node = sg.reshape(outer * inner, (2, 8)) @ sg.reshape(sg.stack([d, d]), (8, 1))
    array = feeds()
    program = sg.compile([x, d], node, exact="reals")
    close(program(array[x], array[d]), evaluate([node], array)[0], 1e-9)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_structured_programs_give_the_same_by_fewer_operations(text):
    plain, best = compiled(text)
    close(best(*values().values()), plain(*values().values()), 1e-9)
    before, after = best.cost()
    shared = {"det(spd)", "inv(x @ x.T + eye)"}  # where the factor is used once
    assert after.flops <= before.flops or text in shared


def test_the_table_is_up_to_date():
    for path, wanted in texts().items():
        assert path.read_text(encoding="utf-8") == wanted, "run python -m tools.structure_table"


@pytest.mark.parametrize("fact", NAMES)
def test_what_is_declared_is_checked(fact):
    b = sg.placeholder("b", 4)
    program = sg.compile([x, b], sg.linalg.solve(sg.assume(x, fact), b))
    good = np.diag([1.0, -1, 1, -1]) if fact == "orthogonal" else np.diag([1.0, 2, 3, 4])
    bad = np.full((4, 4), 2.0) + np.diag([1.0, 2, 3, 4])
    bad[0, 1], bad[1, 0] = 7, 9
    assert program.check(good, np.ones(4))
    told = program.check(bad, np.ones(4))
    assert not told
    assert f"was declared {fact.replace('_', ' ')}, and" in str(told)
    assert "test_facts.py" in str(told)


def test_each_matrix_of_a_batch_is_checked_by_its_own_size():
    many = sg.placeholder("many", (2, 2, 2))
    pair = np.stack([1e20 * np.eye(2), np.eye(2)])
    for fact, broken, words in (
        ("symmetric", [[1, 1], [0, 1]], r"transpose at \(1, 0, 1\)"),
        ("positive_semidefinite", [[-1, 0], [0, 1]], "the eigenvalue -1"),
        ("positive_definite", [[0, 0], [0, 1]], "the eigenvalue 0"),
    ):
        program = sg.compile([many], sg.linalg.inv(sg.assume(many, fact)))
        assert program.check(pair)
        told = str(program.check(np.stack([pair[0], np.array(broken, float)])))
        assert re.search(words, told), told
    zeros = sg.compile([many], sg.assume(many, "positive_semidefinite") + many)
    assert zeros.check(0 * pair)


def test_what_is_declared_is_taken_at_every_grade():
    b = sg.placeholder("b", 4)
    arrays = [np.tril(np.ones((4, 4))) @ np.tril(np.ones((4, 4))).T, np.arange(4.0)]
    for facts, op in (
        (["positive_definite"], "cholesky"),
        (["lower"], "solve_triangular"),
        (["diagonal"], "divide"),
    ):
        node = sg.linalg.solve(sg.assume(x, *facts), b)
        program = sg.compile([x, b], node)
        assert op in {n.op.name for n in program.graph.nodes}
        if op == "cholesky":
            np.testing.assert_allclose(program(*arrays), np.linalg.solve(*arrays))


def test_gradients_of_what_is_declared():
    a = sg.assume(gram + EYE, "positive_definite")
    plain = gram + EYE
    for f in (
        lambda m: sg.sum(sg.linalg.inv(m) * x),
        sg.linalg.logdet,
        sg.linalg.det,
        lambda m: d @ sg.linalg.solve(m.T, d),
    ):
        found = sg.grad(f(a), x)
        close(*evaluate([found, sg.grad(f(plain), x)], feeds()), 1e-10)


def test_an_indefinite_matrix_is_told_with_its_line():
    b = sg.placeholder("b", 4)
    program = sg.compile([x, b], sg.linalg.solve(sg.assume(x, "positive_definite"), b))
    with pytest.raises(SymgradError, match=r"not positive definite(.|\n)*test_facts.py"):
        program(-np.eye(4), np.ones(4))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: sg.assume(x, "positiv"), ArgumentError, "'positiv' is no fact of a matrix"),
        (lambda: sg.assume(x), ArgumentError, "name what is known of x"),
        (lambda: sg.assume(d, "lower"), ShapeError, "two axes or more"),
        (lambda: sg.assume(tall, "lower"), ShapeError, "4 and 2"),
        (lambda: sg.assume(sg.astype(x, "complex128"), "lower"), DtypeError, "real floats"),
        (lambda: sg.assume(x, 3), SymgradError, "facts"),
    ],
)
def test_what_cannot_be_declared(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_declared_facts_are_saved_and_batched(tmp_path):
    graph = sg.Graph([sg.linalg.solve(sg.assume(x, "lower"), d)], [x, d])
    graph.save(tmp_path / "g.json")
    assert sg.Graph.load(tmp_path / "g.json") == graph
    many = sg.placeholder("many", (3, 4, 4))
    found = sg.vmap(lambda m: sg.linalg.solve(sg.assume(m, "lower"), np.ones(4)))(many)
    at = np.tril(np.ones((3, 4, 4)))
    close(evaluate([found], {many: at})[0], np.linalg.solve(at, np.ones((3, 4, 1)))[..., 0])


def test_a_complex_matrix_by_its_transpose_has_another_factor():
    """L @ L.T is not Hermitian; of it NumPy reads the lower triangle."""
    z = sg.placeholder("z", (3, 3), "complex128")
    factor = sg.linalg.cholesky(z)
    program = sg.compile([z], sg.linalg.cholesky(factor @ factor.T), exact="reals")
    rng = np.random.default_rng(0)
    half = rng.standard_normal((3, 3)) + 0.2j * rng.standard_normal((3, 3))
    at = half @ np.conj(half.T) + 3 * np.eye(3)
    lower = np.linalg.cholesky(at)
    close(program(at), np.linalg.cholesky(lower @ lower.T))


def test_pivots_are_floats():
    """Also those that a file holds."""
    graph = sg.Graph([sg.linalg.solve(sg.diag(d), d)], [d])
    text = sg.compile([d], graph.outputs, exact="reals").graph.text(full=True)
    assert "pivots(" in text
    with pytest.raises(SymgradError, match="takes floats, complex, not bool"):
        sg.Graph.parse("n0: bool[4] = placeholder(name='d')\nn1: bool[4] = pivots(n0)\nreturn n1\n")
