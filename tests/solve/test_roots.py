"""`root`, `fixed_point` and `minimizer`: their values, and gradients of every order."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate

a = sg.placeholder("a", ())
v = sg.placeholder("v", (3,))


def programs(inputs, outputs):
    """One call runs the program, the reference and the plainest evaluation, and compares them."""
    made = [sg.compile(inputs, outputs), sg.compile(inputs, outputs, backend="reference")]

    def call(*arrays):
        first, second = (p(*arrays) for p in made)
        third = evaluate(outputs, dict(zip(inputs, arrays, strict=True)))
        for other in (second, third):
            for x, y in zip(first, other, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-9)
        return first

    return call


CASES = {
    "root": lambda t: sg.root(lambda x: x**3 - t, 1.0),
    "fixed_point": lambda t: sg.fixed_point(lambda x: (2 * x + t / x**2) / 3, 1.0),
    "minimizer": lambda t: sg.minimizer(lambda x: x**4 / 4 - t * x, 1.0),
}


@pytest.mark.parametrize("name", CASES)
def test_cube_roots_to_third_order_in_both_modes(name):
    y, outputs = CASES[name](a), []
    for _ in range(4):
        outputs += [y, *sg.jvp([y], [a], [sg.ones(())])]
        y = sg.grad(y, a)
    found = programs([a], outputs)(8.0)
    exact = [2, 1 / 12, -1 / 144, 5 / 3456, -5 / 10368]
    np.testing.assert_allclose(found[::2], exact[:4], rtol=1e-8)
    np.testing.assert_allclose(found[1::2], exact[1:], rtol=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_on_a_batch(name):
    f = CASES[name]
    at = np.array([1.0, 8.0, 27.0])
    y = sg.vmap(f)(v)
    outputs = [
        y,
        sg.grad(sg.sum(y), v),
        sg.vmap(lambda t: sg.grad(sg.grad(f(t), t), t))(v),
        sg.hessian(sg.sum(y), v),
    ]
    found = programs([v], outputs)(at)
    np.testing.assert_allclose(found[0], np.cbrt(at), rtol=1e-8)
    np.testing.assert_allclose(found[1], np.cbrt(at) ** -2 / 3, rtol=1e-8)
    np.testing.assert_allclose(found[2], -2 / 9 * np.cbrt(at) ** -5, rtol=1e-7)
    np.testing.assert_allclose(found[3], np.diag(found[2]), rtol=1e-7, atol=1e-12)


def test_nested_forms_and_a_system():
    w = sg.variable("w", np.array([[3.0, 1.0], [1.0, 2.0]]))
    u = sg.placeholder("u", (2,))

    def f(x):
        return {"p": w @ x["p"] + 0.1 * x["p"] ** 3 - u, "q": x["q"] - sg.sum(x["p"])}

    x = sg.root(f, {"p": np.zeros(2), "q": 0.0})
    assert x["p"].shape == (2,)
    assert x["q"].shape == ()
    loss = sg.sum(x["p"] ** 2) + x["q"] ** 3
    at = np.array([1.0, -2.0])
    outputs = [*f(x).values(), *sg.grad(loss, [w, u]), sg.hessian(loss, u)]
    p, q, gw, gu, curved = programs([u], outputs)(at)
    np.testing.assert_allclose(p, 0, atol=1e-9)
    np.testing.assert_allclose(q, 0, atol=1e-9)
    program = sg.compile([u], [loss, sg.grad(loss, u)])
    for i in range(2):
        step = np.eye(2)[i] * 1e-5
        (up, gup), (down, gdown) = program(at + step), program(at - step)
        np.testing.assert_allclose(gu[i], (up - down) / 2e-5, rtol=1e-6)
        np.testing.assert_allclose(curved[i], (gup - gdown) / 2e-5, rtol=1e-5, atol=1e-8)
    assert gw.shape == (2, 2)


def test_deep_equilibrium():
    """The Hessian of a loss of the fixed point of a layer, against differences of its gradient."""
    rng = np.random.default_rng(0)
    w = sg.constant(rng.uniform(-0.3, 0.3, (4, 4)))
    u = sg.placeholder("u", (4,))
    z = sg.fixed_point(lambda z: sg.tanh(w @ z + u), np.zeros(4))
    loss = sg.sum(z**2)
    at = rng.uniform(-1, 1, 4)
    slope, curved, again = programs(
        [u], [sg.grad(loss, u), sg.hessian(loss, u), sg.hvp(loss, u, u)]
    )(at)
    program = sg.compile([u], sg.grad(loss, u))
    rows = [(program(at + s) - program(at - s)) / 2e-5 for s in np.eye(4) * 1e-5]
    np.testing.assert_allclose(curved, rows, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(again, curved @ at, rtol=1e-8)
    assert slope.shape == (4,)


def test_a_minimum_that_newton_alone_misses():
    def rosenbrock(x):
        return (a - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

    x = sg.minimizer(rosenbrock, np.array([-1.2, 1.0]))
    found, slope = programs([a], [x, sg.jacobian(x, a)])(1.5)
    np.testing.assert_allclose(found, [1.5, 2.25], rtol=1e-8)
    np.testing.assert_allclose(slope, [1, 3], rtol=1e-6)
    double = sg.minimizer(lambda x: (x**2 - a) ** 2, 0.1)  # it begins beside a maximum
    np.testing.assert_allclose(
        evaluate([double, sg.grad(double, a)], {a: 4.0}), [2, 0.25], rtol=1e-6
    )


def test_float32_and_named_sizes():
    n = sg.placeholder("n", ("N",), "float32")
    x = sg.root(lambda x: sg.exp(x) - n, sg.zeros_like(n))
    program = sg.compile([n], [x, sg.grad(sg.sum(x), n)])
    for size in (1, 4):
        at = np.linspace(1, 2, size, dtype="float32")
        found, slope = program(at)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, np.log(at), atol=1e-4)
        np.testing.assert_allclose(slope, 1 / at, rtol=1e-4)


def test_it_works_in_a_loop_and_is_saved(tmp_path):
    last, _ = sg.scan(lambda c, row: (sg.root(lambda x: x**3 + x - c - row, c), None), a, v)
    at = np.array([1.0, 2.0, 3.0])
    outputs = [last, *sg.grad(last, [a, v])]
    found = programs([a, v], outputs)(0.5, at)
    h = 1e-5
    program = sg.compile([a, v], last)
    np.testing.assert_allclose(
        found[1], (program(0.5 + h, at) - program(0.5 - h, at)) / 2 / h, rtol=1e-6
    )
    graph = sg.Graph(outputs)
    graph.save(tmp_path / "graph.json")
    assert sg.Graph.load(tmp_path / "graph.json") == graph
    assert sg.Graph.parse(graph.text(full=True)) == graph


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_converge_is_an_error_at_the_line(name):
    bad = {
        "root": lambda: sg.root(lambda x: x * x + a, 0.7),
        "fixed_point": lambda: sg.fixed_point(lambda x: -x + a * 0, 1.0, max_steps=20),
        "minimizer": lambda: sg.minimizer(lambda x: -sg.exp(x) * a, 1.0, max_steps=20),
    }[name]()
    for program in (sg.compile([a], bad), sg.compile([a], bad, backend="reference")):
        with pytest.raises(sg.KernelError, match=rf"(?s){name} did not converge.*test_roots.py"):
            program(1.0)
    with pytest.raises(sg.KernelError, match="did not converge"):
        evaluate([bad], {a: np.nan})


def refused(error, *parts):
    return pytest.raises(error, match="(?s)" + ".*".join(parts))


def test_misuse():
    with refused(sg.ShapeError, "root: x is", r"float64\[3\]", "test_roots"):
        sg.root(lambda x: x * v, 1.0)
    with refused(sg.GraphError, "fixed_point|f", "sequence of 2"):
        sg.fixed_point(lambda x: (x[0],), (1.0, 2.0))
    with refused(sg.DtypeError, "complex", "one real float dtype"):
        sg.root(lambda x: x, sg.constant(1j))
    with refused(sg.ShapeError, "minimizer: f gives one real number", "test_roots"):
        sg.minimizer(lambda x: x * 2, np.zeros(3))
    with refused(sg.GraphError, "nothing to solve for"):
        sg.root(lambda x: x, ())
    w = sg.variable("w", 1.0)

    def sets(x):
        w.value = 2.0
        return x

    with refused(sg.UnsupportedError, "root", "side effects", "test_roots"):
        sg.root(sets, 1.0)


def test_what_a_file_may_not_say():
    x = sg.vmap(CASES["root"])(v)
    node = next(n for n in sg.Graph(x).nodes if n.op.name == "implicit")
    attrs, types = dict(node.attrs), tuple(n.type for n in node.inputs)
    node.op.check(types, attrs)
    ((size, flags),) = attrs["levels"]
    residual = attrs["residual"]
    for wrong in (
        {"levels": ()}, {"levels": ((2, flags),)}, {"levels": ((size, flags[:1]),)},
        {"levels": ((size, (False, *flags[1:])),)}, {"residual": 3},
        {"residual": sg.Graph([residual.outputs[0][:0]], residual.inputs)},
    ):  # fmt: skip
        with pytest.raises(sg.SymgradError):
            node.op.check(types, attrs | wrong)
    with pytest.raises(sg.SymgradError):
        node.op.check(types[1:], attrs)


@pytest.mark.parametrize("start", [2.5, 3.0, 3.3, 4.0])
def test_a_minimizer_that_begins_where_f_curves_down_goes_to_a_minimum_nearby(start):
    p = sg.placeholder("p", ())
    for tol in (None, 1e-3):
        found = sg.minimizer(lambda c: -sg.cos(c) * p, start, tol=tol)
        at, slope = sg.compile([p], [found, sg.grad(found, p)])(1.0)
        assert min(abs(at), abs(at - 2 * np.pi)) < 2e-3
        assert abs(slope) < 1e-3
