"""Loops in the compiler: merged, without what is dead, their bodies compiled; random bodies."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate
from symgrad.ops.identity import clip_gradient_p
from symgrad.ops.loops.loop import substituted
from symgrad.passes import loops
from symgrad.testing import random_graph

x = sg.placeholder("x", (6, 3))
w = sg.placeholder("w", (3, 3))
h = sg.placeholder("h", (3,))
FEEDS = {n: np.random.default_rng(3).uniform(-1, 1, n.shape) for n in (x, w, h)}


def loops_of(outputs, exact="rounding"):
    """The loops of the program of some outputs, which computes what the graph does."""
    program = sg.compile([x, w, h], outputs, exact=exact)
    for a, b in zip(program(*FEEDS.values()), evaluate(outputs, FEEDS), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    return [n for n in program.graph.nodes if n.op.body]


def step(carry, row):
    carry = sg.tanh(carry @ w + row)
    return carry, carry * 2


def test_the_forward_runs_once():
    last, ys = sg.scan(step, h, x)
    loss = sg.sum(last) + sg.sum(ys**2)
    forward, backward = loops_of([loss, last, *sg.grad(loss, [x, w, h])])
    assert (forward.attr("reverse"), backward.attr("reverse")) == (False, True)
    twice = sg.scan(step, h, x)[1]
    assert len(loops_of([ys, twice, last])) == 1
    assert len(loops_of([*sg.jvp([last, ys], [w], [w]), last, ys])) == 1


def test_loops_that_differ_stay_apart(monkeypatch):
    monkeypatch.setattr(loops, "SMALL", 0)

    def other(carry, row):
        carry = sg.tanh(carry @ w - row)
        return carry, carry * 2

    assert len(loops_of([sg.scan(step, h, x)[1], sg.scan(other, h, x)[1]])) == 2
    assert len(loops_of([sg.scan(step, h, x)[1], sg.scan(step, x[0], x)[1]])) == 2
    assert len(loops_of([sg.scan(step, h, x)[1], sg.scan(step, h, x, reverse=True)[1]])) == 2
    assert len(loops_of([sg.scan(step, h, x)[1], sg.scan(step, h, x[:5])[1]])) == 2


def test_a_loop_that_reads_another_stays_apart(monkeypatch):
    monkeypatch.setattr(loops, "SMALL", 0)
    last, ys = sg.scan(step, h, x)
    again, zs = sg.scan(lambda c, row: (step(c, row[0])[0], row[1]), h, (x, ys))
    assert len(loops_of([last, again, zs])) == 2


def test_carries_that_are_not_alike_at_first_sight():
    def swapped(carry, row):
        a, b = carry
        return (b * row, a * row), a + b

    def straight(carry, row):
        return carry * row, carry * 2

    pair = (h, h)
    (a, b), ys = sg.scan(swapped, pair, x)
    c, zs = sg.scan(straight, h, x)
    (loop,) = loops_of([a, b, ys, c, zs])
    assert len(loop.body.outputs) <= 5


def test_what_nobody_reads_is_not_computed():
    def many(carry, row):
        a, b, c = carry
        return (a * row, b + sg.exp(row), c + b), (sg.sin(a), sg.cos(row))

    (a, _, _), (s, _) = sg.scan(many, (h, h, h), x)
    (loop,) = loops_of([a, s], "values")
    assert {n.op.name for n in loop.body.nodes if n.inputs} == {"multiply", "sin"}
    assert loop.attr("carries") == 1
    (_, b, c), _ = sg.scan(many, (h, h, h), x)
    (loop,) = loops_of([c], "values")
    assert loop.attr("carries") == 2
    assert len(loops_of([b, c], "values")) == 1


def test_a_carry_that_stays_is_read_whole():
    (still, last), _ = sg.scan(lambda c, row: ((c[0], c[1] * c[0] + row), None), (h, h), x)
    (loop,) = loops_of([still, last])
    assert loop.attr("carries") == 1
    assert loops_of([still]) == []


def test_what_no_step_changes_is_computed_before():
    last, _ = sg.scan(lambda c, row: (c @ (sg.exp(w) @ w).T + row * sg.tanh(w[0]), None), h, x)
    (loop,) = loops_of([last])
    inside = {n.op.name for n in loop.body.nodes if n.inputs}
    assert not inside & {"exp", "tanh"}
    assert sum(n.op.name == "matmul" for n in loop.body.nodes) == 1


def test_what_may_fail_stays_for_there_may_be_no_step():
    y = sg.placeholder("y", ("T", 2))
    m = sg.placeholder("m", (2, 2))
    _, rows = sg.scan(lambda c, row: (c, row @ sg.linalg.cholesky(c)), m, y)
    program = sg.compile([y, m], rows)
    (loop,) = (n for n in program.graph.nodes if n.op.body)
    assert loop.attr("carries") == 0
    assert program(np.empty((0, 2)), -np.eye(2)).shape == (0, 2)
    with pytest.raises(sg.KernelError, match="cholesky"):
        program(np.empty((1, 2)), -np.eye(2))


def test_rules_reach_bodies_and_are_told():
    ys = sg.map(lambda row: sg.negative(sg.negative(row)), x)
    program = sg.compile([x], ys, exact="values")
    (loop,) = (n for n in program.graph.nodes if n.op.body)
    assert not any(n.inputs for n in loop.body.nodes)
    assert "double_negative" in program.trace.rules()
    assert "double_negative" in str(program.trace)
    raw = sg.compile([x], ys, passes=())
    np.testing.assert_allclose(program(FEEDS[x]), raw(FEEDS[x]), rtol=1e-12)


class Drawn:
    """A random graph as a body, its first input carried, the second in slices, the rest fixed."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        inputs, outputs = random_graph(rng, 8)
        self.outputs = [y for y in outputs if not isinstance(y.type, tuple)]
        self.length = int(rng.choice([0, 1, 2, 5]))
        self.inputs = inputs
        if not self.is_fit:
            return
        self.carried, self.sliced, *fixed = inputs
        shape = (self.length, *self.sliced.shape)
        self.rows = sg.placeholder("rows", shape, self.sliced.dtype)
        given = [self.carried, self.rows, *fixed]
        self.feeds = {n: (rng.uniform(1, 6, n.shape)).astype(n.dtype) for n in given}

    @property
    def is_fit(self):
        return len(self.inputs) > 1 and bool(self.outputs)

    def step(self, carry, row):
        ys = substituted(self.outputs, {self.carried: carry, self.sliced: row})
        return next((y for y in ys if y.type == carry.type), carry), tuple(ys)

    def looped(self):
        carry, ys = sg.scan(self.step, self.carried, self.rows)
        return [carry, *ys]

    def unrolled(self):
        last, found = self.carried, []
        for t in range(self.length):
            last, ys = self.step(last, self.rows[t])
            found.append(ys)
        nothing = [sg.zeros((0, *y.shape), dtype=y.dtype) for y in self.outputs]
        stacks = [sg.stack(each) for each in zip(*found, strict=True)]
        return [last, *(stacks or nothing)]


def same(a, b, exactly, tolerance=2e-3):
    assert (np.shape(a), a.dtype) == (np.shape(b), b.dtype)
    if exactly:
        np.testing.assert_array_equal(a, b)
    elif b.dtype.kind in "fc":
        scale = np.abs(np.where(np.isfinite(b), b, 0)).max(initial=1)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("grade", ["bits", "values", "rounding", "reals"])
@pytest.mark.parametrize("start", range(0, 60, 10))
def test_random_bodies(grade, start):
    drawn = [d for d in map(Drawn, range(start, start + 10)) if d.is_fit]
    assert len(drawn) > 2
    for one in drawn:
        program = sg.compile([*one.feeds], one.looped(), exact=grade)
        # As it was written, step by step: NumPy sums what is laid out otherwise in another order.
        written = sg.compile([*one.feeds], one.unrolled(), passes=())
        feeds = one.feeds.values()
        for a, b in zip(program(*feeds), written(*feeds), strict=True):
            same(a, b, grade in ("bits", "values"))


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_gradients_of_random_bodies(start):
    drawn = [d for d in map(Drawn, range(start, start + 10)) if d.is_fit]
    # The gradients of two steps are clipped one by one, and unrolled, if they are equal, as one.
    drawn = [
        d for d in drawn if not any(n.op is clip_gradient_p.op for n in sg.Graph(d.outputs).nodes)
    ]
    for one in drawn:
        # What overflows has 0 times infinity for a slope, of which a loop may keep the 0.
        if not all(np.all(np.isfinite(y)) for y in evaluate(one.unrolled(), one.feeds)):
            continue
        wrt = [n for n in one.feeds if n.dtype.kind == "f"]
        grads = []
        for ys in (one.looped(), one.unrolled()):
            loss = sum(sg.sum(sg.tanh(y * 0.1)) for y in ys if y.dtype.kind == "f")
            if not wrt or not isinstance(loss, sg.Node):
                break
            grads.append(sg.grad(loss, wrt, disconnected="zero"))
        else:
            found = sg.compile([*one.feeds], grads[0])(*one.feeds.values())
            for a, b in zip(found, evaluate(grads[1], one.feeds), strict=True):
                same(a, b, False)


def test_why_and_phases_of_a_loop_that_was_merged():
    last, ys = sg.scan(step, h, x)
    loss = sg.sum(last) + sg.sum(ys**2)
    program = sg.compile([x, w, h], [loss, sg.grad(loss, w)])
    forward, backward = (n for n in program.graph.nodes if n.op.body)
    assert (forward.origin.is_backward, backward.origin.is_backward) == (False, True)
    told = str(program.why(last))
    assert "loop_result" in told
    assert "not computed" not in told


@pytest.mark.parametrize("length", [3, 20])
def test_an_lstm_is_the_unrolled_one(length):
    rng = np.random.default_rng(0)
    n, d, m = 4, 3, 5
    shapes = {"x": (length, n, d), "y": (n, m), "u": (d, 4 * m), "v": (m, 4 * m), "b": (4 * m,)}
    nodes = {name: sg.placeholder(name, s) for name, s in shapes.items()}
    arrays = [rng.uniform(-1, 1, s) for s in shapes.values()]
    u, v, b = nodes["u"], nodes["v"], nodes["b"]

    def cell(carry, row):
        h, c = carry
        i, f, o, g = sg.split(row @ u + h @ v + b, 4, axis=1)
        c = sg.sigmoid(f) * c + sg.sigmoid(i) * sg.tanh(g)
        return (sg.sigmoid(o) * sg.tanh(c), c), None

    begin = (sg.zeros((n, m)), sg.zeros((n, m)))
    (looped, _), _ = sg.scan(cell, begin, nodes["x"])
    carry = begin
    for t in range(length):
        carry, _ = cell(carry, nodes["x"][t])
    results, sizes = [], []
    for last in (looped, carry[0]):
        loss = sg.mean((last - nodes["y"]) ** 2)
        program = sg.compile([*nodes.values()], [loss, *sg.grad(loss, [*nodes.values()])])
        results.append(program(*arrays))
        sizes.append(len(program.plan.steps))
    for a, b_ in zip(*results, strict=True):
        np.testing.assert_allclose(a, b_, rtol=1e-10, atol=1e-12)
    assert sizes[0] < 30
