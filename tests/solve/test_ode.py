"""`odeint`: Lotka-Volterra against SciPy, its gradients against differences."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import symgrad as sg

k = sg.placeholder("k", (4,))
y0 = sg.placeholder("y0", (2,))
ts = sg.placeholder("ts", ("T",))
K, Y, T = np.array([1.5, 1.0, 3.0, 1.0]), np.array([10.0, 5.0]), np.array([0.0, 0.4, 1.0])


def field(y, t):
    u, v = y[0], y[1]
    return sg.stack([k[0] * u - k[1] * u * v, -k[2] * v + k[3] * u * v])


WAYS = pytest.mark.parametrize("way", ["steps", "adjoint"])


@WAYS
def test_lotka_volterra(way):
    """The values of SciPy; gradients of differences, of forward mode, and of second order."""
    ys = sg.odeint(field, y0, ts, rtol=1e-9, atol=1e-9, gradient=way)
    loss, wrt = sg.sum(ys**2), [k, y0, ts]
    first = sg.grad(loss, wrt)
    tangents = [sg.placeholder(f"d{x.name}", x.shape) for x in wrt]
    towards = np.array([1.0, -2.0, 0.5, 1.0]), np.array([1.0, 0.5]), np.array([0.2, -1.0, 0.5])
    (forward,) = sg.jvp([loss], wrt, tangents)
    program = sg.compile([*wrt, *tangents], [ys, loss, *first, forward])
    found = program(K, Y, T, *towards)
    plain = solve_ivp(
        lambda t, y: [K[0] * y[0] - K[1] * y[0] * y[1], -K[2] * y[1] + K[3] * y[0] * y[1]],
        (0, 1), Y, t_eval=T, rtol=1e-12, atol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(found[0], plain.y.T, rtol=1e-7)
    for i, at in enumerate((K, Y, T)):
        values = []
        for h in (1e-5, -1e-5):
            near = [K, Y, T]
            near[i] = at + h * towards[i]
            values.append(program(*near, *towards)[1])
        slope = (values[0] - values[1]) / 2e-5
        assert found[2 + i] @ towards[i] == pytest.approx(slope, rel=1e-5)
    whole = sum(g @ t for g, t in zip(found[2:5], towards, strict=True))
    assert found[5] == pytest.approx(whole, rel=1e-6)


@WAYS
def test_second_order(way):
    """Reverse over reverse, and forward over reverse."""
    end = sg.odeint(lambda y, t: -k[0] * y * y, 1.0, ts, gradient=way)[-1]
    slope = sg.grad(end, k, disconnected="zero")[0]
    (mixed,) = sg.jvp([slope], [k], [sg.ones(4)])
    program = sg.compile([k, ts], [end, slope, sg.grad(slope, k)[0], mixed])
    rate, t = K[0], T[-1]
    wanted = [(-t) ** n / (1 + rate * t) ** (n + 1) * (1, 1, 2)[n] for n in range(3)]
    found = program(K, T)
    np.testing.assert_allclose(found, [*wanted, wanted[2]], rtol=1e-6)


def test_refused():
    a = sg.placeholder("a", ())
    refusals = [
        (sg.ShapeError, r"odeint: ts is a vector.*test_ode", lambda: sg.odeint(still, a, a)),
        (sg.ShapeError, r"one or more", lambda: sg.odeint(still, a, np.zeros(0))),
        (sg.ShapeError, r"odeint: x is.*test_ode", lambda: sg.odeint(lambda y, t: y0 * y, a, ts)),
        (sg.GraphError, r"'steps' or 'adjoint'", lambda: sg.odeint(still, a, ts, gradient="no")),
        (sg.GraphError, r"rtol is a number", lambda: sg.odeint(still, a, ts, rtol=-1)),
        (sg.GraphError, r"atol is a number", lambda: sg.odeint(still, a, ts, atol=np.nan)),
        (sg.GraphError, r"not both 0", lambda: sg.odeint(still, a, ts, rtol=0, atol=0)),
        (sg.GraphError, r"max_steps is an int", lambda: sg.odeint(still, a, ts, max_steps=0.5)),
        (sg.DtypeError, r"one real float dtype", lambda: sg.odeint(still, 1j * a, ts)),
        (sg.DtypeError, r"take its real.*test_ode", lambda: complex_rate("adjoint")),
    ]
    for kind, text, build in refusals:
        with pytest.raises(kind, match=f"(?s){text}"):
            build()
    complex_rate("steps")


def still(y, t):
    return y


def complex_rate(way):
    rate = sg.placeholder("rate", (), "complex128")
    return sg.odeint(lambda y, t: y * sg.real(rate * t), y0, ts, gradient=way)


@WAYS
def test_no_end_is_told(way):
    """A solution that grows without bound, a slope that is no number, times that are none."""
    a = sg.placeholder("a", ())
    burst = sg.odeint(lambda y, t: sg.sqrt(y) ** 4, a, ts, max_steps=200, gradient=way)
    program = sg.compile([a, ts], burst)
    said = r"(?s)odeint takes more than 200 steps.*smaller than rounding.*built at test_ode"
    for start, times in ((2.0, T), (-1.0, T), (0.1, np.array([0, np.nan]))):
        with pytest.raises(sg.KernelError, match=said):
            program(start, times)
    np.testing.assert_allclose(program(0.5, T)[-1], 1.0, rtol=1e-6)


@WAYS
def test_a_batch_of_equations(way):
    """Each row of a batch is solved as alone, with its gradient."""
    rates, starts = sg.placeholder("rates", ("N",)), sg.placeholder("starts", ("N",))

    def end(rate, start):
        return sg.odeint(lambda y, t: -rate * y * sg.cos(t), start, ts, gradient=way)[-1]

    ends = sg.vmap(end)(rates, starts)
    program = sg.compile([rates, starts, ts], [ends, *sg.grad(sg.sum(ends), [rates, starts])])
    rate, start = np.array([0.1, 1.0, 30.0]), np.array([1.0, 2.0, -1.0])
    found = program(rate, start, T)
    factor = np.exp(-rate * np.sin(T[-1]))
    np.testing.assert_allclose(found[0], start * factor, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(found[1], -start * factor * np.sin(T[-1]), rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(found[2], factor, rtol=1e-4, atol=1e-8)


@WAYS
def test_forms_and_sizes(way):
    """Nested unknowns, one time, times downwards, float32 with the tolerances that it has."""
    a = sg.placeholder("a", ())
    n = sg.placeholder("n", (), "int32")

    def f(y, t):
        return {"p": -a * y["p"] * sg.astype(n, "float64"), "q": [sg.cos(t) * np.ones((1, 2))]}

    ys = sg.odeint(f, {"p": 1.0, "q": [np.zeros((1, 2))]}, ts, gradient=way)
    loss = ys["p"][-1] + sg.sum(ys["q"][0])
    program = sg.compile([a, n, ts], [ys["p"], ys["q"][0], sg.grad(loss, a)])
    for t in (T[:1], T[::-1]):
        p, q, slope = program(0.5, 1, t)
        np.testing.assert_allclose(p, np.exp(-0.5 * (t - t[0])), rtol=1e-6)
        np.testing.assert_allclose(q[:, 0, 1], np.sin(t) - np.sin(t[0]), atol=1e-6)
        np.testing.assert_allclose(slope, -(t[-1] - t[0]) * p[-1], rtol=1e-5)
    half = sg.placeholder("half", (2,), "float32")
    end = sg.odeint(lambda y, t: -y * 0.5, half, np.array([0.0, 2.0]), gradient=way)[-1]
    assert end.dtype == "float32"
    found = sg.compile(half, [end, sg.grad(sg.sum(end), half)])(np.ones(2, "float32"))
    np.testing.assert_allclose(found, np.full((2, 2), np.exp(-1)), rtol=1e-4)


@WAYS
def test_saved_and_loaded(way, tmp_path):
    """A graph with an equation and its gradient is what it was."""
    ys = sg.odeint(lambda y, t: -k[:2] * y, y0, ts, gradient=way)
    program = sg.compile([k, y0, ts], [ys, sg.grad(sg.sum(ys), k)])
    path = tmp_path / "ode.sg"
    program.graph.save(path)
    loaded = sg.Graph.load(path)
    again = sg.compile(list(loaded.inputs), list(loaded.outputs))
    for a, b in zip(program(K, Y, T), again(K, Y, T), strict=True):
        np.testing.assert_array_equal(a, b)
