"""What is kept of the steps of a scan: the same results and gradients in less memory."""

from functools import cache

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.loops.loop import depth
from symgrad.passes import in_stretches

w = sg.placeholder("w", (3, 3))
h = sg.placeholder("h", (2, 3))
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("length", [0, 1, 2, 5, 9, 11])
@pytest.mark.parametrize("keep", ["sqrt", 1, 2, 100])
@pytest.mark.parametrize("reverse", [False, True])
def test_as_if_all_were_kept(length, keep, reverse):
    arrays = [RNG.uniform(-1, 1, shape) for shape in ((length, 2, 3), w.shape, h.shape)]
    found = program(length, keep, reverse)(*arrays)
    for outputs in zip(found, all_kept(length, reverse)(*arrays), strict=True):
        np.testing.assert_allclose(*outputs, rtol=1e-9, atol=1e-12)


@cache  # each other way is compared with it
def all_kept(length, reverse):
    return program(length, "all", reverse)


def program(length, keep, reverse):
    x = sg.placeholder("x", (length, 2, 3))

    def step(carry, rows):
        c, n, total = carry
        c = sg.tanh(c @ w + rows["a"])
        return (c, n + 1, total + sg.sum(c * rows["b"])), (c * 2, {"n": n})

    sequences = {"a": x, "b": x * 3}
    (c, n, total), (ys, more) = sg.scan(step, (h, 0, 0.0), sequences, reverse=reverse, keep=keep)
    assert (n.dtype, more["n"].dtype, total.dtype) == (np.int64, np.int64, np.float64)
    loss = sg.sum(sg.sin(c)) + total + sg.sum(ys**2)
    grads = sg.grad(loss, [x, w, h])
    again = sg.grad(sum(sg.sum(g * g) for g in grads), w)
    return sg.compile([x, w, h], [c, n, total, ys, more["n"], *grads, again])


def test_without_sequences_or_without_a_carry():
    a, _ = sg.scan(lambda c, _: (sg.sin(c) + 1, None), h, length=10, keep="sqrt")
    b, _ = sg.scan(lambda c, _: (sg.sin(c) + 1, None), h, length=10)
    arrays = [RNG.uniform(-1, 1, h.shape)]
    pair = [sg.grad(sg.sum(y**2), h) for y in (a, b)]
    np.testing.assert_allclose(*sg.compile([h], pair)(*arrays), rtol=1e-12)
    ys = sg.scan(lambda c, row: (c, sg.exp(row)), (), h, keep=1)[1]
    np.testing.assert_allclose(sg.compile([h], ys)(*arrays), np.exp(arrays[0]))


def test_it_is_saved_and_loaded(tmp_path):
    last, ys = sg.scan(lambda c, r: (sg.tanh(c * r), c), h[0], h, keep=1)
    outputs = [last, ys, sg.vmap(lambda c: sg.scan(lambda c, r: (c @ w, r), c, h, keep=1)[0])(w)]
    outputs.append(sg.grad(sg.sum(last) + sg.sum(ys**2), h))
    graph = sg.Graph.load(sg.Graph(outputs, [h, w]).save(tmp_path / "graph.json"))
    again = sg.grad(sg.sum(graph.outputs[0]), graph.inputs[0])
    arrays = [RNG.uniform(-1, 1, n.shape) for n in (h, w)]
    found = sg.compile([*graph.inputs], [*graph.outputs, again])(*arrays)
    expected = sg.compile([h, w], [*outputs, sg.grad(sg.sum(last), h)])(*arrays)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_square_root_of_the_memory():
    def grad(**keep):
        x, first = sg.placeholder("x", (900, 100)), sg.placeholder("first", (100,))
        last, _ = sg.scan(lambda c, r: (sg.tanh(c + r), None), first, x, **keep)
        return sg.compile([x, first], sg.grad(sg.sum(last**2), first))

    assert grad(keep="sqrt").plan.peak_bytes * 5 < grad().plan.peak_bytes


@pytest.mark.parametrize(("keep", "budget"), [("sqrt", 300_000), (None, 60_000)])
def test_a_logistic_map_in_reverse_over_ten_thousand_steps(keep, budget):
    """x -> r x (1 - x), whose slope by r is carried along as well; keep goes with a budget."""
    x, r = sg.placeholder("x", (50,)), sg.placeholder("r", ())

    def step(c, _):
        return r * c * (1 - c), None

    last, _ = sg.scan(step, x, length=10_000, keep=keep)
    slope = sg.grad(sg.sum(last), r)
    program = sg.compile([x, r], slope, memory_budget=budget)
    assert program.plan.peak_bytes <= budget < 50 * 10_000 * 8
    points = np.linspace(0.1, 0.9, 50)
    value, tangent = points, np.zeros(50)
    for _ in range(10_000):
        after = value * (1 - value)
        tangent = after + 3.2 * (1 - 2 * value) * tangent
        value = 3.2 * after
    np.testing.assert_allclose(program(points, 3.2), tangent.sum(), rtol=1e-9)


@pytest.mark.parametrize(
    ("length", "reverse", "exact"),
    [(5, False, "rounding"), (11, True, "rounding"), (12, False, "bits")],
)
def test_stretches_compute_the_same(length, reverse, exact):
    """Carries of all kinds, stacks that others read, and a gradient of a gradient."""
    x = sg.placeholder("x", (length, 2, 3))

    def step(carry, rows):
        c, n, total, unread = carry
        c = sg.tanh(c @ w + rows["a"])
        return (c, n + 1, total + sg.sum(c * rows["b"]), unread * 2), (c * 2, {"n": n})

    init, xs = (h, 0, 0.0, h), {"a": x, "b": x * 3}
    (c, n, total, _), (ys, more) = sg.scan(step, init, xs, reverse=reverse)
    loss = sg.sum(sg.sin(c)) + total + sg.sum(ys**2)
    grads = sg.grad(loss, [x, w, h])
    again = sg.grad(sum(sg.sum(g * g) for g in grads), w)
    arrays = [RNG.uniform(-1, 1, n.shape) for n in (x, w, h)]
    for outputs in ([c, n, ys, more["n"], *grads], [total, *grads, again]):
        program = sg.compile([x, w, h], outputs, exact=exact)
        for number, deep in ((3, False), (2, True)):
            passes = in_stretches(number, deep)
            tight = sg.compile([x, w, h], outputs, exact=exact, passes=passes)
            assert (depth(tight.graph) > 2) == (length >= 2 * number)
            for a, b in zip(tight(*arrays), program(*arrays), strict=True):
                np.testing.assert_allclose(a, b, rtol=0 if exact == "bits" else 1e-9, atol=1e-13)


@pytest.mark.parametrize("keep", [0, -1, 2.5, "half"])
def test_what_keep_may_be(keep):
    with pytest.raises(sg.SymgradError, match="keep"):
        sg.scan(lambda c, row: (c + row, None), h[0], h, keep=keep)


def test_keep_needs_a_number_of_steps():
    x = sg.placeholder("x", ("T", 3))
    with pytest.raises(sg.ShapeError, match="leave keep out"):
        sg.scan(lambda c, row: (c + row, None), x[0], x, keep="sqrt")


@pytest.mark.parametrize("keep", [20, 30])
def test_a_budget_may_be_missed_by_a_loop_that_is_in_stretches_already(keep):
    x, h, w = (sg.placeholder(n, s) for n, s in zip("xhw", ((3000, 40), 40, (40, 40)), strict=True))
    last = sg.scan(lambda c, row: (sg.tanh(c @ w + row), None), h, x, keep=keep)[0]
    with pytest.raises(sg.GraphError, match="no program was found that needs at most"):
        sg.compile([x, w, h], sg.grad(sg.sum(last**2), w), memory_budget=60_000)
