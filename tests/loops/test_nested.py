"""Bodies within bodies."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate

x = sg.placeholder("x", ())
v = sg.placeholder("v", (2,))


def test_constants_of_functions_within_functions_stay_apart():
    def inner(c):
        return sg.fori(2, lambda i, d: sg.where(v[0] > 0, 5.0, d) * sg.where(v[1] > 0, 7.0, d), c)

    def body(i, c):
        return sg.where(v[0] > 3, 2.0, inner(c)) + sg.where(v[1] > 3, 3.0, c)

    y = sg.fori(2, body, x)
    programs = [sg.compile([x, v], y, passes=p) for p in ((), sg.passes.DEFAULT)]
    for at in ([1.0, 1.0], [-1.0, -1.0], [4.0, 4.0]):
        wanted = evaluate([y], {x: 1.5, v: np.array(at)})
        assert [p(1.5, np.array(at)) for p in programs] == wanted * 2


def test_a_gradient_within_bodies_within_bodies():
    def inner(i, d):
        return d - 0.1 * sg.grad(d**2 * x, d)

    def body(c, row):
        d = sg.fori(2, lambda i, d: inner(i, d) * c + row, c)
        return d, sg.grad(d * c, c)

    last, _ = sg.scan(body, x, v)
    c = x
    for t in range(2):
        d = c
        for _ in range(2):
            d = (d - 0.2 * d * x) * c + v[t]
        c = d
    pair = [last, c, *sg.grad(last, [x, v]), *sg.grad(c, [x, v])]
    found = evaluate(pair, {x: 0.7, v: np.array([0.3, -0.4])})
    for a, b in ((0, 1), (2, 4), (3, 5)):
        np.testing.assert_allclose(found[a], found[b], rtol=1e-12)


def test_loops_within_loops_run_machine_code():
    pytest.importorskip("llvmlite")
    x, c = sg.placeholder("x", (3, 5, 100, 100)), sg.placeholder("c", (100, 100))

    def row(c, r):
        return sg.tanh(c) * sg.cos(c) + sg.tanh(r) * sg.cos(r), None

    y = sg.scan(lambda c, block: (sg.scan(row, c, block)[0], None), c, x)[0]
    program = sg.compile([x, c], y, backend="native")
    assert program.plan.has_native
    arrays = [np.random.default_rng(0).uniform(-1, 1, n.shape) for n in (x, c)]
    plain = sg.compile([x, c], y)
    assert not plain.plan.has_native
    np.testing.assert_allclose(program(*arrays), plain(*arrays), rtol=1e-12, atol=1e-13)


def test_gradients_within_maps_within_maps():
    a, b, c = (sg.placeholder(n, shape) for n, shape in (("a", (2, 3)), ("b", (2, 4)), ("c", (3,))))

    def f(x, y, z):
        return sg.scan(lambda c, r: (sg.sin(c * r * y) + z, None), x, b[0])[0]

    def at(x, y, z):
        return sg.grad(f(x, y, z), x)

    mapped = sg.vmap(lambda p, q: sg.vmap(lambda x, z: sg.vmap(lambda y: at(x, y, z))(q))(p, c))(
        a, b
    )
    arrays = [np.random.default_rng(0).uniform(-1, 1, n.shape) for n in (a, b, c)]
    found = sg.compile([a, b, c], mapped)(*arrays)
    single = sg.compile([a, b, c], [at(a[1, 2], b[1, 3], c[2]), at(a[0, 1], b[0, 0], c[1])])(
        *arrays
    )
    np.testing.assert_allclose([found[1, 2, 3], found[0, 1, 0]], single, rtol=1e-12)
    product = sg.vmap(lambda p: sg.vmap(lambda q: sg.grad(sg.sum(p * q), p))(p))(a)
    np.testing.assert_array_equal(sg.compile([a], product)(arrays[0])[1, :, 0], arrays[0][1])
