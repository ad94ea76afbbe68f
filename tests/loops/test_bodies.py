"""What a step may be, what it may reach, and what is refused, with the line."""

from typing import NamedTuple

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate

x = sg.placeholder("x", (5, 3))
X = np.random.default_rng(0).uniform(-1, 1, (5, 3))


def value(node, **feeds):
    return evaluate([node], {x: X} | feeds)[0]


class Pair(NamedTuple):
    a: sg.Node
    b: sg.Node


def test_forms_are_kept():
    def step(carry, row):
        assert isinstance(row, dict)
        pair = Pair(carry["p"].b, carry["p"].a + row["u"][0])
        return {"p": pair, "n": [carry["n"][0] + 1]}, (row["u"][1], {"s": sg.sum(pair.a)})

    init = {"p": Pair(np.zeros(3), sg.ones(3)), "n": [0]}
    carry, (first, rest) = sg.scan(step, init, {"u": [x, x * 2]})
    assert isinstance(carry["p"], Pair)
    assert (carry["n"][0].dtype, int(value(carry["n"][0]))) == (np.int64, 5)
    assert first.shape == (5, 3)
    assert rest.keys() == {"s"}
    np.testing.assert_array_equal(value(first), X * 2)


def test_a_carry_may_be_nothing_and_a_result_none():
    carry, ys = sg.scan(lambda c, row: (c, sg.sum(row)), (), x)
    assert carry == ()
    np.testing.assert_allclose(value(ys), X.sum(1))
    carry, ys = sg.scan(lambda c, _: (c * 2, None), 1.5, length=3)
    assert ys is None
    assert float(carry) == 12


def test_without_anything_but_a_length():
    _, ys = sg.scan(lambda c, _: (c, sg.ones(2)), (), length=3)
    program = sg.compile([], ys)
    np.testing.assert_array_equal(program(), np.ones((3, 2)))


def test_what_a_step_reaches_becomes_an_operand():
    w = sg.variable("w", np.full(3, 2.0))
    table = np.arange(3.0)
    scaled = sg.exp(w * 3)
    carry, _ = sg.scan(lambda c, row: (c + row * scaled * table, None), np.zeros(3), x)
    (source,) = carry.inputs
    assert any(n is scaled for n in source.inputs)
    assert not any(n.op.name == "exp" for n in source.body.nodes)
    (grad,) = sg.grad(sg.sum(carry), [w])
    np.testing.assert_allclose(value(grad), X.sum(0) * np.arange(3) * 3 * np.exp(6))


def test_loops_within_loops():
    w = sg.placeholder("w", (3,))

    def outer(carry, row):
        inner, ys = sg.scan(lambda c, element: (c * element + w, sg.sum(c)), carry, row)
        return inner, (ys, inner)

    def unrolled(carry):
        for t in range(5):
            for i in range(3):
                carry = carry * x[t, i] + w
        return carry

    carry, (ys, _) = sg.scan(outer, w, x)
    assert ys.shape == (5, 3)
    feeds = {x: X, w: np.array([1.0, 2.0, 3.0])}
    pair = [carry, unrolled(w)]
    for _ in range(3):
        a, b = evaluate(pair, feeds)
        np.testing.assert_allclose(a, b, rtol=1e-12)
        pair = [sg.grad(sg.sum(y * y), w) for y in pair]
    program = sg.compile([x, w], [carry, ys, sg.grad(sg.sum(ys) + sg.sum(carry), w)])
    raw = sg.compile([x, w], program.graph.outputs, passes=(), backend="reference")
    for a, b in zip(program(X, feeds[w]), raw(X, feeds[w]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_fori_counts_from_zero():
    found = sg.fori(4, lambda i, c: c * 10 + i, sg.constant(0))
    assert int(found) == 123
    n = sg.placeholder("n", ("N",))
    program = sg.compile([n], sg.fori("N", lambda i, c: c + n[i] * i, 0.0))
    assert program(np.array([5.0, 6.0, 7.0])) == 6 + 14
    assert program(np.empty(0)) == 0


def test_map_is_vmap_one_after_the_other():
    def f(row):
        return sg.cumulative_sum(row) * row[0]

    np.testing.assert_allclose(value(sg.map(f, x)), value(sg.vmap(f)(x)))
    np.testing.assert_allclose(value(sg.map(lambda p: p[0] * p[1], (x, x + 1))), X * (X + 1))


def test_numbers_take_the_dtype_that_they_become():
    rows = sg.placeholder("rows", (4, 2), "float32")
    carry, _ = sg.scan(lambda c, row: (c + sg.sum(row), None), 0.0, rows)
    assert carry.dtype == np.float32
    carry, _ = sg.scan(lambda c, row: (1, c), sg.constant(0, "int8"), rows)
    assert carry.dtype == np.int8


def test_integers_and_booleans_are_carried():
    def step(carry, row):
        count, seen = carry
        return (count + 1, seen | (sg.sum(row) > 0)), count

    (count, seen), ys = sg.scan(step, (sg.constant(0), sg.constant(False)), x)
    program = sg.compile([x], [count, seen, ys])
    assert [v.tolist() for v in program(X)] == [5, bool((X.sum(1) > 0).any()), [0, 1, 2, 3, 4]]


def test_carries_that_change_places():
    (a, b), ys = sg.scan(lambda c, row: ((c[1], c[0]), c[0]), (x[0], x[1]), x)
    for backend in ("reference", "numpy"):
        found = sg.compile([x], [a, b, ys], backend=backend)(X)
        np.testing.assert_array_equal(found[0], X[1])
        np.testing.assert_array_equal(found[1], X[0])
        np.testing.assert_array_equal(found[2], X[[0, 1, 0, 1, 0]])


def test_kinks_reach_the_body():
    zero = sg.placeholder("zero", ())
    y = sg.fori(3, lambda i, c: c + sg.relu(zero), 0.0)
    for policy, slope in (("zero", 0), ("right", 3), ("left", 0), (0.5, 1.5)):
        assert evaluate([sg.grad(y, zero, kinks=policy)], {zero: 0.0}) == [slope]
        assert evaluate(sg.jvp([y], [zero], [sg.ones(())], kinks=policy), {zero: 0.0}) == [slope]
    with sg.kinks("right"):
        y = sg.fori(3, lambda i, c: c + sg.relu(zero), 0.0)
    assert evaluate([sg.grad(y, zero)], {zero: 0.0}) == [3]


def test_one_function_has_one_gradient_inside_too():
    zero = sg.placeholder("zero", ())
    for relu in (sg.relu, lambda v: sg.maximum(v, 0), lambda v: (v + abs(v)) / 2):
        y = sg.fori(3, lambda i, c, f=relu: c + f(zero), 0.0)
        assert evaluate([sg.grad(y, zero)], {zero: 0.0}) == [0]


def test_untaken_branches_do_not_poison():
    rows = sg.placeholder("rows", (3,))
    loss = sg.map(lambda r: sg.where(r > 0, sg.sqrt(r), 0), rows)
    (grad,) = evaluate([sg.grad(sg.sum(loss), rows)], {rows: np.array([-1.0, 0.0, 4.0])})
    np.testing.assert_array_equal(grad, [0, 0, 0.25])
    # What was carried is not used in the end: no infinite slope meets a cotangent of 0.
    last, ys = sg.scan(lambda c, r: (sg.sqrt(c * r), c), rows[0], rows)
    (grad,) = evaluate([sg.grad(ys[0], rows)], {rows: np.zeros(3)})
    assert last.shape == ()
    np.testing.assert_array_equal(grad, [1, 0, 0])


def test_a_user_function_inside():
    class Cube(sg.Function):
        def forward(ctx, v):
            ctx.save_for_backward(v)
            return v**3

        def backward(ctx, g):
            (v,) = ctx.saved_tensors
            return g * 3 * v**2

    y = sg.map(lambda row: Cube.apply(row), x)
    np.testing.assert_allclose(value(sg.grad(sg.sum(y), x)), 3 * X**2)


# ---- what is refused ------------------------------------------------------------------------


def refused(error, *parts):
    return pytest.raises(error, match="(?s)" + ".*".join(parts))


def test_a_carry_keeps_its_shape():
    with refused(
        sg.ShapeError, r"scan: carry is float64\[3\] before", r"float64\[6\] after", "concat"
    ):
        sg.scan(lambda c, row: (sg.concat([c, row]), None), np.zeros(3), x)
    with refused(sg.ShapeError, r"fori: carry\[1\] is", "test_bodies.py"):
        sg.fori(3, lambda i, c: (c[0], x), (x, x[0]))


def test_a_carry_keeps_its_dtype():
    with refused(sg.DtypeError, r"float32\[3\] before a step and float64\[3\] after", "astype"):
        sg.scan(lambda c, row: (c + row, None), np.zeros(3, "float32"), x)


def test_a_carry_keeps_its_form():
    with refused(sg.GraphError, "carry", "a sequence of 2"):
        sg.scan(lambda c, row: ((c[0],), None), (x, x), x)
    with refused(sg.GraphError, "becomes"):
        sg.scan(lambda c, row: ((c, c), None), x, x)
    with refused(sg.GraphError, "carry is None"):
        sg.scan(lambda c, row: (c, None), None, x)


def test_a_step_gives_two_things():
    with refused(sg.GraphError, "two things", "not Node"):
        sg.scan(lambda c, row: c, x, x)
    with refused(sg.GraphError, "nothing to compute"):
        sg.scan(lambda c, row: (c, None), (), x)


def test_sequences_have_one_length():
    y = sg.placeholder("y", ("T", 2))
    with refused(sg.ShapeError, r"xs\[0\] has 5 steps, and xs\[1\] has T"):
        sg.scan(lambda c, row: (c, row), (), (x, y))
    with refused(sg.ShapeError, "length has 4 steps, and xs has 5"):
        sg.scan(lambda c, row: (c, row), (), x, length=4)
    with refused(sg.ShapeError, "a scalar, which has no slices"):
        sg.map(lambda row: row, x[0, 0])
    with refused(sg.ShapeError, "length says how many"):
        sg.scan(lambda c, row: (c, row), x)
    for length in (-1, 2.5, "two words"):
        with pytest.raises(sg.SymgradError):
            sg.fori(length, lambda i, c: c, x)


def test_a_number_of_steps_that_is_computed_is_for_while_loop():
    n = sg.placeholder("n", (), "int64")
    with refused(sg.ShapeError, "'n' int64", "while_loop"):
        sg.fori(n, lambda i, c: c, 0.0)


def test_a_step_has_no_side_effects():
    norm = sg.nn.BatchNorm(3)
    with refused(sg.UnsupportedError, "side effects", "state"):
        sg.map(lambda row: norm(row[None]), x)


def test_an_error_in_a_step_names_its_line():
    with refused(sg.ShapeError, "matmul", "test_bodies.py"):
        sg.map(lambda row: row @ x, x)


def test_what_a_file_may_not_say():
    (source,) = sg.map(sg.exp, x).inputs
    attrs = dict(source.attrs)
    for wrong in (
        {"carries": 1}, {"sequences": 2}, {"sequences": -1}, {"length": 4}, {"length": -1},
        {"sizes": (("T", 3), ("N", sg.dim("T")))},
    ):  # fmt: skip
        with pytest.raises(sg.SymgradError):
            source.op.check((x.type,), attrs | wrong)


def nested(depth, c):
    return sg.fori(2, lambda i, c: nested(depth - 1, c), c) if depth else c * 2


def test_loops_are_nested_so_deep():
    assert float(nested(4, sg.constant(1.0))) == 2.0**16
    with refused(sg.GraphError, "nested at most 8"):
        nested(9, x)
