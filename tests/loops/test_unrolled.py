"""Loops of every kind over named lengths against the same graph unrolled: one program for all T."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate


def carried(c, row, w):
    return sg.sin(c * w + row) * 0.5 + c


def scanned(x, w, h):
    last, ys = sg.scan(lambda c, row: (carried(c, row, w), c * row), h, x)
    return last + sg.sum(ys, axis=0)


def reversed_(x, w, h):
    last, ys = sg.scan(lambda c, row: (carried(c, row, w), c * row), h, x, reverse=True)
    return last - sg.sum(ys, axis=0) / 2


def counted(x, w, h):
    return sg.fori(x.shape[0], lambda i, c: carried(c, sg.take(x, i, axis=0), w), h)


def mapped(x, w, h):
    return sg.sum(sg.map(lambda row: carried(h, row, w), x), axis=0) * h


def whiled(x, w, h):
    def body(c):
        return c[0] + 1, carried(c[1], sg.take(x, c[0], axis=0), w)

    steps = sg.asarray(x.shape[0])
    return sg.while_loop(lambda c: c[0] < steps, body, (sg.astype(0, "int64"), h))[1]


def by_hand(loop, x, w, h):
    """The same for a number of steps that is known."""
    rows = [x[t] for t in range(x.shape[0])]
    if loop is mapped:
        return sum((carried(h, row, w) for row in rows), sg.zeros_like(h)) * h
    stacked, c = [], h
    for row in reversed(rows) if loop is reversed_ else rows:
        stacked.append(c * row)
        c = carried(c, row, w)
    if loop is scanned:
        return c + sum(stacked, sg.zeros_like(h))
    if loop is reversed_:
        return c - sum(stacked, sg.zeros_like(h)) / 2
    return c


def derived(function, x, w, h, ws):
    """The values, both modes to third order, a Jacobian, and a batch with its gradients."""
    y = function(x, w, h)
    loss = sg.sum(sg.real(y * y))
    wrt = [w, h]
    found = [y, *sg.grad(loss, [x, *wrt], disconnected="zero")]
    tangents = [sg.ones_like(v) * 0.3 for v in (x, w, h)]
    found += sg.jvp([y], [x, w, h], tangents)
    third = loss
    for _ in range(3):
        third = sum(sg.sum(sg.real(g)) for g in sg.grad(third, wrt, disconnected="zero"))
        found.append(third)
    found += sg.jvp([found[-2]], wrt, tangents[1:], disconnected="zero")

    def one(v):
        z = function(x, v, h)
        return z, sg.grad(sg.sum(sg.real(z * z)), v, disconnected="zero")

    found += sg.vmap(one)(ws)
    if y.dtype.kind == "f":
        found.append(sg.jacobian(y, h))
    return found


@pytest.mark.parametrize(
    ("loop", "dtype"),
    [(scanned, "float32"), (reversed_, "float32")]
    + [(f, d) for f in (scanned, reversed_, counted, mapped, whiled) for d in ("f8", "c16")],
)
def test_every_loop_is_the_unrolled_one(loop, dtype):
    """For T = 0, 1, 2 and 7 by one program."""
    dtype = np.dtype(dtype).name
    w, h = sg.placeholder("w", (), dtype), sg.placeholder("h", (2,), dtype)
    ws = sg.placeholder("ws", (3,), dtype)
    x = sg.placeholder("x", ("T", 2), dtype)
    program = sg.compile([x, w, h, ws], derived(loop, x, w, h, ws))
    rng = np.random.default_rng(0)
    for length in (0, 1, 2, 7):
        plain = sg.placeholder("plain", (length, 2), dtype)
        arrays = [
            (rng.uniform(-1, 1, s) + 1j * rng.uniform(-1, 1, s) * (dtype[0] == "c")).astype(dtype)
            if dtype[0] == "c"
            else rng.uniform(-1, 1, s).astype(dtype)
            for s in ((length, 2), (), (2,), (3,))
        ]
        wanted = derived(lambda *args: by_hand(loop, *args), plain, w, h, ws)
        expected = evaluate(wanted, dict(zip((plain, w, h, ws), arrays, strict=True)))
        for i, (a, b) in enumerate(zip(program(*arrays), expected, strict=True)):
            assert (np.shape(a), a.dtype) == (np.shape(b), b.dtype), i
            near = 1e4 * np.finfo(dtype).eps
            np.testing.assert_allclose(
                a, b, rtol=near, atol=near * max(1, np.abs(b).max(initial=0))
            )
