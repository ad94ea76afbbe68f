"""Linear algebra, as it meets in programs. Each rule alone: `test_every_rule`."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.linalg.products import vdot_p
from tests.rules.becomes import becomes, named, ops, stays

SIMPLIFY = named("common_subexpressions", "simplify", "merge")
inv, solve = sg.linalg.inv, sg.linalg.solve


def matrices(*shapes):
    return [sg.placeholder(n, s) for n, s in zip("abcdef", shapes, strict=False)]


def simplified(inputs, outputs, exact="rounding"):
    return sg.compile(inputs, outputs, exact=exact, passes=SIMPLIFY).graph


def test_transposes_cancel_in_a_product():
    a, b = matrices((3, 4), (5, 4))
    becomes([a, b], (a @ b.T).T, b @ a.T, SIMPLIFY)
    becomes([a, b], (b @ a.T).T, a @ b.T, SIMPLIFY)
    becomes([a], (a.T @ a).T, a.T @ a, SIMPLIFY)
    stays([a, b], (a @ b.T).T, SIMPLIFY, "values")
    product = a @ b.T
    stays([a, b], [product.T, product], SIMPLIFY)


def test_the_gradient_of_a_product_with_a_transpose_has_no_transpose_left_over():
    x, w, y = matrices(("N", 4), (3, 4), ("N", 3))
    graph = simplified([x, w, y], sg.grad(sg.sum((x @ w.T) * y), w))
    assert ops(graph) == ["permute_dims", "matmul"], graph


def test_signs_meet():
    a, b, c = matrices((3, 8), (8, 2), (3, 2))
    becomes([a, b], (-a) @ (-b), a @ b, SIMPLIFY, "bits")
    becomes([a, b, c], c - (-a) @ b, c + a @ b, SIMPLIFY, "values")
    becomes([a, b, c], c + a @ (-b), c - a @ b, SIMPLIFY, "values")


def test_thin_products():
    a, b = matrices((3, 1), (1, 5))
    becomes([a, b], a @ b, a * b, SIMPLIFY, "values")
    stays([a, b], a @ b, SIMPLIFY, "bits")
    a, b = matrices((3, 0), (0, 5))
    becomes([a, b], a @ b, sg.zeros((3, 5)), SIMPLIFY)


def test_what_was_repeated_is_multiplied_once():
    a, b, s = matrices((3, 4), (4, 1), ())
    becomes([a, b], a @ sg.broadcast_to(b, (4, 7)), sg.broadcast_to(a @ b, (3, 7)), SIMPLIFY)
    graph = simplified([a, s], a @ sg.broadcast_to(s, (4, 7)))
    assert [n.shape for n in graph.nodes if n.op.name == "matmul"] == [(3, 1)]
    total = sg.sum(a, axis=1, keepdims=True) * 2.0
    becomes([a], a @ sg.full((4, 1), 2.0), total, SIMPLIFY)
    becomes([a], a @ sg.full((4, 7), 2.0), sg.broadcast_to(total, (3, 7)), SIMPLIFY)


def test_the_gradient_of_a_sum_over_a_product_needs_no_product():
    x, w = matrices(("N", 4), (4, 3))
    graph = simplified([x, w], sg.grad(sg.sum(x @ w), [x, w]))
    assert "matmul" not in ops(graph), graph


def test_a_batch_that_was_repeated_broadcasts_by_itself():
    a, b = matrices((3, 4), (5, 4, 2))
    becomes([a, b], sg.broadcast_to(a, (5, 3, 4)) @ b, a @ b, SIMPLIFY)
    becomes([b, a], b.mT @ sg.broadcast_to(a.T, (5, 4, 3)), b.mT @ a.T, SIMPLIFY)


def test_the_gradient_of_a_layer_on_a_batch_is_one_product():
    x, w = matrices((6, 7, 4), (4, 3))
    graph = simplified([x, w], sg.grad(sg.sum(sg.tanh(x @ w)), w))
    shapes = [n.shape for n in graph.nodes if n.op.name == "matmul"]
    assert shapes == [(6, 7, 3), (4, 3)], graph


def test_a_sum_over_an_outer_product_is_a_product():
    a, b = matrices((3, 4), (4, 5))
    becomes([a, b], sg.sum(a[:, :, None] * b[None], axis=1), a @ b, SIMPLIFY)
    v, m = matrices((4,), (3, 4))
    written = sg.sum(v * m, axis=-1)
    becomes([v, m], written, sg.reshape(m @ sg.reshape(v, (4, 1)), (3,)), SIMPLIFY)
    stays([v, m], written, SIMPLIFY, "values")
    one, other = matrices((3, 4), (3, 4))
    stays([one, other], sg.sum(one * other, axis=1), SIMPLIFY)
    stays([v, m], sg.sum(v[:3, None] * m, axis=1), SIMPLIFY)


def test_products_of_all_elements():
    a, b = matrices((3, 4), (3, 4))
    becomes([a, b], sg.sum(a.T * b.T), vdot_p(a, b), SIMPLIFY)
    becomes([a, b], sg.sum((a * 3.0) * b), vdot_p(a, b) * 3.0, SIMPLIFY)
    becomes([a, b], sg.sum((-a) * b), -vdot_p(a, b), SIMPLIFY)


def test_a_trace_of_a_product_makes_no_product():
    a, b = matrices((3, 4), (4, 3))
    becomes([a, b], sg.linalg.trace(a @ b), vdot_p(a, b.T), SIMPLIFY)
    becomes([a, b], sg.diagonal(a @ b), sg.sum(a * b.T, axis=-1), SIMPLIFY)
    graph = simplified([a, b], sg.grad(sg.linalg.trace(a @ b), [a, b]))
    assert ops(graph) == ["permute_dims", "permute_dims"], graph


def test_a_trace_of_a_product_and_its_spelling_as_a_sum_have_one_gradient():
    """Where the other factor is inf, too: no 0 of a matrix that was not written meets it."""
    a, b = matrices((2, 2), (2, 2))
    other = np.array([[np.inf, 1.0], [2.0, 3.0]])
    for y in (sg.linalg.trace(a @ b), sg.sum(a * b.T), sg.einsum("ij,ji", a, b)):
        found = sg.compile([a, b], sg.grad(y, a), passes=())(np.ones((2, 2)), other)
        np.testing.assert_array_equal(found, other.T)


def test_diagonals():
    a, v = matrices((3, 4), (3,))
    becomes([a], sg.diagonal(a.T, offset=1), sg.diagonal(a, offset=-1), SIMPLIFY, "bits")
    becomes([v], sg.diagonal(sg.diag(v)), v, SIMPLIFY)


def test_a_diagonal_matrix_scales():
    a, v = matrices((3, 4), (3,))
    rows = sg.reshape(v, (3, 1)) * a
    for written in (sg.diag(v) @ a, (sg.eye(3) * v) @ a, (v * sg.eye(3)) @ a):
        becomes([a, v], written, rows, SIMPLIFY, "reals")
        stays([a, v], written, SIMPLIFY)
    becomes([a, v], a.T @ (sg.eye(3) * v), a.T * v, SIMPLIFY, "reals")
    becomes([a], sg.eye(3) @ a @ sg.eye(4), a, SIMPLIFY, "reals")


def test_products_in_the_cheapest_order():
    a, b, c = matrices((8, 9), (9, 8), (8, 1))
    becomes([a, b, c], a @ b @ c, a @ (b @ c), SIMPLIFY, "reals")
    row = sg.reshape(c, (1, 8))
    becomes([a, b, c], row @ (a @ b), (row @ a) @ b, SIMPLIFY, "reals")
    stays([a, b, c], a @ b @ c, SIMPLIFY)
    product = a @ b
    stays([a, b, c], [product, product @ c], SIMPLIFY, "reals")
    n, m = matrices(("N", 2), (2, "N"))
    graph = simplified([n, m], (n @ m) @ n, "reals")
    assert [x.shape for x in graph.nodes if x.op.name == "matmul"] == [(2, 2), n.shape], graph


def test_an_order_may_decide_whether_a_number_is_inf_or_nan():
    """So that a chain is not regrouped at `rounding`."""
    a, b, c = np.array([[np.inf]]), np.array([[1.0, -1.0]]), np.array([[1.0], [2.0]])
    with np.errstate(invalid="ignore"):
        assert np.isnan((a @ b) @ c).all()
        assert (a @ (b @ c) == -np.inf).all()


def test_one_product_instead_of_two():
    a, b, c = matrices((3, 4), (3, 4), (4, 2))
    becomes([a, b, c], a @ c + b @ c, (a + b) @ c, SIMPLIFY, "reals")
    becomes([a, b, c], c.T @ a.T - c.T @ b.T, c.T @ (a - b).T, SIMPLIFY, "reals")
    stays([a, b, c], a @ c + b @ c, SIMPLIFY)


def test_a_sum_moves_into_a_product():
    a, b = matrices((30, 4), (4, 2))
    graph = simplified([a, b], sg.sum(a @ b, axis=0), "reals")
    assert [n.shape for n in graph.nodes if n.op.name == "matmul"] == [(1, 2)], graph
    assert "matmul" in ops(simplified([a, b], sg.sum(a @ b, axis=0)))


def test_outer_products_within_a_chain():
    a, u, v = matrices((6, 6), (6,), (6,))
    graph = simplified([a, u, v], a @ (u[:, None] * v[None, :]) @ a, "reals")
    shapes = [n.shape for n in graph.nodes if n.op.name == "matmul"]
    assert sorted(shapes) == [(1, 6), (6, 1)], graph


def test_systems_are_solved_not_inverted():
    a, b = matrices((3, 3), (3, 2))
    becomes([a, b], inv(a) @ b, solve(a, b), SIMPLIFY, "reals")
    becomes([a, b], b.T @ inv(a), solve(a.T, b).T, SIMPLIFY, "reals")
    becomes([a], inv(inv(a)), a, SIMPLIFY, "reals")
    becomes([a, b], solve(inv(a), b), a @ b, SIMPLIFY, "reals")
    becomes([a], inv(a.T), inv(a).T, SIMPLIFY, "reals")
    graph = simplified([a], solve(a, sg.eye(3)), "bits")
    assert ops(graph) == ["inv"], graph
    both = simplified([a, b], [inv(a), inv(a) @ b], "reals")
    assert ops(both) == ["inv", "matmul"], both
    assert ops(simplified([a, b], inv(a) @ b)) == ["inv", "matmul"]


@pytest.mark.parametrize("exact", ["rounding", "reals"])
def test_a_mahalanobis_distance_and_its_gradient(exact):
    x, m, s = matrices((4,), (4,), (4, 4))
    d = x - m
    y = d @ inv(s) @ d
    program = sg.compile([x, m, s], [y, *sg.grad(y, [m, s])], exact=exact)
    rng = np.random.default_rng(0)
    v, u, r = rng.standard_normal(4), rng.standard_normal(4), rng.standard_normal((4, 4))
    w, away = np.linalg.inv(r), v - u
    found = program(v, u, r)
    np.testing.assert_allclose(found[0], away @ w @ away)
    np.testing.assert_allclose(found[1], -(w + w.T) @ away)
    np.testing.assert_allclose(found[2], -w.T @ np.outer(away, away) @ w.T)


def test_a_scalar_factor_of_a_column_is_no_row():
    """Two rules would each take it for their own, and chase each other."""
    a, z = sg.placeholder("a", (5, 4)), sg.placeholder("z", (4, 1))
    program = sg.compile([a, z], a @ (z * 0.01), exact="reals")
    assert [s.name for s in program.plan.steps] == ["multiply", "matmul"]
