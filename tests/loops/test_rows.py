"""Stacks that lie in the memory of sequences which nobody reads afterwards: the same results."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate
from symgrad.lowering import rows
from symgrad.lowering.loops import Loop
from symgrad.passes import loops

RNG = np.random.default_rng(8)
SHAPES = {"u": (4, 16), "v": (4, 4), "h": (2, 4)}
GIVEN = {sg.placeholder(name, s): RNG.uniform(-1, 1, s) for name, s in SHAPES.items()}
u, v, h = GIVEN


def lstm(carry, z):
    a, c = carry
    i, f, o, g = sg.split(z + a @ u, 4, axis=1)
    c = sg.sigmoid(f) * c + sg.sigmoid(i) * sg.tanh(g)
    return (sg.sigmoid(o) * sg.tanh(c), c), None


def side_by_side(carry, z):
    z = z + sg.concat([carry] * 4, axis=1)
    y = sg.tanh(z[:, :4]) * carry
    return y, (sg.sin(z[:, :8]), sg.exp(z[:, 8:12]) * y, sg.cos(y + z[:, 12:]))


def read_late(carry, z):
    y = sg.sin(z[:, 4:]) * sg.sum(z[:, :4])
    c = sg.tanh(carry @ v + z[:, :4])
    return c, (y, sg.exp(c) * z[:, 4:8])


def held(feeds, outputs, backend="numpy", exact="values"):
    """How many stacks lie in rows of others; the program computes what the graph does."""
    program = sg.compile([*feeds], outputs, backend=backend, exact=exact)
    for _ in range(2):
        for a, b in zip(program(*feeds.values()), evaluate(outputs, feeds), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    found = [s for s in program.plan.steps if isinstance(s, Loop)]
    return sum(bool(r.views) for s in found for r in s.results)


@pytest.mark.parametrize("backend", ["numpy", "reference", None])
@pytest.mark.parametrize("step", [lstm, side_by_side, read_late])
def test_the_same_results(step, backend, monkeypatch):
    monkeypatch.setattr(rows, "LEAST", 0)
    for length, reverse in ((3, False), (4, True), (7, False)):
        x = sg.placeholder("x", (length, 2, 16))
        init = (h, h * 2) if step is lstm else h
        carry, ys = sg.scan(step, init, x * 3, reverse=reverse)
        first = carry[0] if step is lstm else carry
        again = [sg.scan(lambda c, r: (c + sg.sum(r), c), h[0, 0], y)[1] for y in ys or ()]
        loss = sg.sum(first**2) + sum(sg.sum(sg.sin(y)) for y in again)
        outputs = [first, loss, *sg.grad(loss, [x, u, v, h], disconnected="zero")]
        found = held({**GIVEN, x: RNG.uniform(-1, 1, x.shape)}, outputs, backend)
        assert found >= (0 if backend is None else 4 if step is lstm else 1)


def test_an_lstm_takes_the_memory_of_what_it_keeps():
    shapes = (64, 16, 32), (32, 256), (64, 256)
    x, a, b = (sg.placeholder(n, s) for n, s in zip("xab", shapes, strict=True))

    def cell(carry, row):
        h, c = carry
        i, f, o, g = sg.split(row @ a + h @ b, 4, axis=1)
        c = sg.sigmoid(f) * c + sg.sigmoid(i) * sg.tanh(g)
        return (sg.sigmoid(o) * sg.tanh(c), c), None

    zero = sg.zeros((16, 64))
    grads = sg.grad(sg.sum(sg.scan(cell, (zero, zero), x)[0][0] ** 2), [a, b])
    program = sg.compile([x, a, b], grads, backend="numpy")
    kept = 64 * 16 * 64 * 8  # bytes of one of h, c, tanh(c) and four gates, with their cotangents
    assert program.plan.peak_bytes < 8 * kept


x = sg.placeholder("x", (5, 2, 4))
FEEDS = {**GIVEN, x: RNG.uniform(-1, 1, x.shape)}
z = sg.exp(x)


def after(whole):
    return lambda c, r: ((c := sg.tanh(c @ v + r + whole)), sg.sin(c * 2))


def halves(c, r):
    c = sg.tanh(c @ v + r)
    return c, (sg.sin(c[:, :2]), sg.cos(c[:, 2:]))


def both(last, y):
    return [sg.scan(lambda c, r: (c + r[0] * r[1], c), h[:, :2], y)[1]]


def sums(last, y):
    return [last, sg.sum(y**2)]


@pytest.mark.parametrize(
    ("step", "xs", "then", "count"),
    [
        (after(1), z, lambda last, y: [last, sg.sum(sg.cos(y), axis=0)], 1),
        (halves, z, both, 2),
        (halves, z, lambda last, y: [y[0].reshape(10, 2) @ last, y[1] * 2], 0),
        (after(1), z, lambda last, y: [last, sg.sum(sg.cos(y) + z)], 0),
        (after(1), z, lambda last, y: [last, y], 0),
        (after(z[3]), z, sums, 0),
        (after(1), z[::-1], sums, 0),
        (lambda c, r: (sg.tanh(c @ v + r), sg.sin(c * r)), z, sums, 0),
    ],
)  # fmt: skip
def test_what_is_read_again_is_not_written_over(step, xs, then, count, monkeypatch):
    """By what comes after, by the caller, by another step, and in the same step."""
    monkeypatch.setattr(rows, "LEAST", 0)
    monkeypatch.setattr(loops, "SMALL", 0)
    for reverse in (False, True):
        assert held(FEEDS, then(*sg.scan(step, h, xs, reverse=reverse))) == count
