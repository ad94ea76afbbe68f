"""What needs no loop is computed before or after it: the same as unrolled, for every length."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate

LENGTHS = [0, 1, 2, 5]
w = sg.placeholder("w", (3, 4))
u = sg.placeholder("u", (4, 4))
h = sg.placeholder("h", (2, 4))
RNG = np.random.default_rng(5)
ARRAYS = {n: RNG.uniform(-1, 1, n.shape) for n in (w, u, h)}


def unrolled(step, init, xs, reverse=False):
    carry, ys = init, [None] * xs.shape[0]
    for t in range(xs.shape[0])[:: -1 if reverse else 1]:
        carry, ys[t] = step(carry, xs[t])
    if not ys:
        nothing = sg.scan(step, init, xs)[1] or ()
        return carry, tuple(sg.zeros(y.shape, dtype=y.dtype) for y in nothing)
    return carry, () if ys[0] is None else tuple(map(sg.stack, zip(*ys, strict=True)))


def held(step, init, length, reverse=False, grad=True):
    """The loops that are left of a scan and its gradient, which is that of the unrolled graph."""

    def outputs(scan, xs):
        carry, ys = scan(step, init, xs, reverse=reverse)
        return [*(carry if isinstance(carry, tuple) else (carry,)), *(ys or ())]

    return held_of(outputs, length, grad)


def held_of(make, length, grad=True):
    """The same for all that is made with a function like `scan`."""
    feeds = ARRAYS | {sg.placeholder("x", (length, 2, 3)): RNG.uniform(-1, 1, (length, 2, 3))}
    x = [*feeds][-1]
    named = sg.placeholder("x", ("T", 2, 3))
    found = []
    for scan, xs in ((sg.scan, x), (sg.scan, named), (unrolled, x)):
        outputs = make(scan, xs)
        loss = sum(sg.sum(sg.sin(y)) for y in outputs)
        grads = sg.grad(loss, [w, u, h, xs], disconnected="zero") if grad else []
        found.append([*outputs, *grads])
    expected = evaluate(found[2], feeds)
    for outputs, xs in zip(found, (x, named), strict=False):
        for grade in ("bits", "rounding"):
            program = sg.compile([w, u, h, xs], outputs, exact=grade)
            for a, b in zip(program(*feeds.values()), expected, strict=True):
                assert (np.shape(a), np.asarray(a).dtype) == (np.shape(b), np.asarray(b).dtype)
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    return [n for n in program.graph.nodes if n.op.body]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("reverse", [False, True])
def test_an_rnn(length, reverse):
    def step(c, row):
        c = sg.tanh(row @ w + c @ u + h[0])
        return c, (c @ sg.matrix_transpose(w), sg.sum(c * c))

    loops = held(step, h, length, reverse)
    inside = [n.op.name for loop in loops for n in loop.body.nodes]
    # Of the products with weights those with the carry are left, one each way.
    assert inside.count("matmul") == 2


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("reverse", [False, True])
def test_sums_of_all_kinds(length, reverse):
    def step(carry, row):
        c, a, b, d, e = carry
        c = sg.tanh(c @ u + row @ w)
        weighted = sg.matrix_transpose(row) @ c
        rest = d + sg.matrix_transpose(c) @ c, e + sg.sum(row, axis=0)
        return (c, weighted + a, b + sg.sum(c), *rest), None

    held(step, (h, w, h[0, 0], u, h[0, :3]), length, reverse)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(length, reverse):
    def step(c, row):
        after = c + sg.exp(row @ w)
        return after, (after, c)

    assert held(step, h, length, reverse, grad=False) == []
    held(step, h, length, reverse)


@pytest.mark.parametrize("length", LENGTHS)
def test_what_only_looks_like_a_sum(length):
    def step(carry, row):
        a, b, c, d = carry
        wide = row @ w
        return (a + a, b + b * wide, c + wide, c + wide + d), (sg.sin(c) + d,)

    held(step, (h, h, h, h), length)


@pytest.mark.parametrize("length", LENGTHS)
def test_loops_within_loops(length):
    def step(c, row):
        inner, ys = sg.scan(lambda d, r: (d + sg.tanh(d @ u) * r[0], d), c, row)
        return inner, (sg.sum(ys, axis=0) @ u,)

    held(step, h, length)


@pytest.mark.parametrize("length", LENGTHS)
def test_without_a_carry(length):
    held(lambda c, row: (c, (row @ w, sg.exp(row))), (), length)


@pytest.mark.parametrize(("length", "reverse"), [(0, 0), (1, 1), (2, 0), (5, 0), (5, 1)])
def test_small_loops_of_one_length_are_one(length, reverse):
    """Beside each other, and the second reads what the first stacks; what differs stays apart."""

    def first(c, row):
        c = sg.tanh(c @ u + row @ w)
        return c, (c, sg.sum(row))

    def second(pair, row):
        a, b = pair
        return (a * sg.sin(b), b + row), (a, row * sg.cos(a))

    def make(scan, x):
        c, (rows, sums) = scan(first, h, x, reverse=reverse)
        pair, ys = scan(second, (h, h), rows, reverse=reverse)
        d, zs = scan(lambda d, row: (d * sg.cos(row[0, 0]), (d,)), h[0], x, reverse=reverse)
        back, more = scan(first, h, x, reverse=not reverse)
        return [c, sums, *pair, *ys, d, *zs, back, *more]

    loops = held_of(make, length)
    assert len([n for n in loops if not n.origin.is_backward]) == 2


def test_loops_with_more_between_them_are_two():
    def make(between):
        def outputs(scan, x):
            c, (rows,) = scan(lambda c, r: (sg.tanh(c @ u + r @ w), (c,)), h, x)
            last, (ys,) = scan(lambda c, r: (c * r, (c + r,)), *between(c, rows))
            return [last, ys]

        return outputs

    for between in (
        lambda c, rows: (c, rows), lambda c, rows: (h, rows * 2), lambda c, rows: (h, rows[::-1])
    ):  # fmt: skip
        assert len(held_of(make(between), 5, grad=False)) == 2
    assert len(held_of(make(lambda c, rows: (h, rows)), 5, grad=False)) == 1


@pytest.mark.parametrize(("length", "reverse"), [(1, 0), (2, 1), (5, 0), (5, 1)])
def test_of_a_stack_only_the_last_row_is_read(length, reverse):
    at = 0 if reverse else -1

    def step(pair, row):
        a, b = pair
        c = sg.tanh(a @ u + row @ w)
        rows = c @ sg.matrix_transpose(w), sg.exp(row) * c[0, 0], sg.sin(a) * b, b, c
        return (c, sg.cos(c) + b), rows

    def make(scan, x):
        (c, _), rows = scan(step, (h, h * 2), x, reverse=reverse)
        return [c, *(y[at] for y in rows[:3]), rows[3][at, 1], rows[4][at, 0]]

    held_of(make, length, grad=False)
    x = sg.placeholder("x", (length + 2, 2, 3))
    outputs = make(sg.scan, x)
    (loop,) = (n for n in sg.compile([w, u, h, x], outputs).graph.nodes if n.op.body)
    assert len(loop.body.outputs) == loop.attr("carries") == 4
    held_of(lambda scan, x: [*make(scan, x), *scan(step, (h, h), x)[1]], length)


def test_histories_are_kept_once():
    x = sg.placeholder("x", (7, 2, 4))

    def step(c, row):
        after = sg.tanh(c @ u + row)
        return after, (c, after)

    for reverse in (False, True):
        last, (before, after) = sg.scan(step, h, x, reverse=reverse)
        outputs = [last * 1, sg.sum(before**2, axis=0), sg.sum(after**3, axis=0)]
        feeds = {x: RNG.uniform(-1, 1, x.shape), u: ARRAYS[u], h: ARRAYS[h]}
        expected = evaluate(outputs, feeds)
        for backend in ("numpy", "reference"):
            program = sg.compile([x, u, h], outputs, backend=backend)
            for a, b in zip(program(*feeds.values()), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12)
        (loop,) = (s for s in program.plan.steps if s.inner)
        assert loop.turns.kept == (0,)
        assert program.plan.slots[loop.results[0].slot].shape == (8, 2, 4)
        assert len(loop.results) == 1


def test_an_lstm_needs_the_least_products_and_no_copies():
    names = {"x": (30, 4, 3), "w": (3, 20), "u": (5, 20)}
    x, w, u = (sg.placeholder(name, shape) for name, shape in names.items())

    def cell(carry, row):
        h, c = carry
        i, f, o, g = sg.split(row @ w + h @ u, 4, axis=1)
        c = sg.sigmoid(f) * c + sg.sigmoid(i) * sg.tanh(g)
        return (sg.sigmoid(o) * sg.tanh(c), c), None

    (h, _), _ = sg.scan(cell, (sg.zeros((4, 5)), sg.zeros((4, 5))), x)
    program = sg.compile([x, w, u], sg.grad(sg.sum(h**2), [w, u]), backend="numpy")
    inside = [s.name for step in program.plan.steps if step.inner for s in step.inner.steps]
    assert inside.count("matmul") == 2
    assert not {"copy", "place", "put", "concat"} & {*inside}
    assert [s.name for s in program.plan.steps].count("matmul") == 3


@pytest.mark.parametrize("exact", ["bits", "rounding"])
def test_a_short_loop_is_written_out(exact):
    def step(c, row):
        c = sg.tanh(c @ u + row)
        return c, c * 2

    for length in (0, 1, 2, 3):
        x = sg.placeholder("x", (length, 2, 4))
        for reverse in (False, True):
            last, ys = sg.scan(step, h, x, reverse=reverse)
            program = sg.compile([x, u, h], [last, ys], exact=exact)
            assert any(n.op.body for n in program.graph.nodes) == (length > 2)
            arrays = [RNG.uniform(-1, 1, x.shape), ARRAYS[u], ARRAYS[h]]
            raw = sg.compile([x, u, h], [last, ys], passes=())
            for a, b in zip(program(*arrays), raw(*arrays), strict=True):
                np.testing.assert_allclose(a, b, rtol=0 if exact == "bits" else 1e-12)
