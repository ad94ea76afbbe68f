"""`odeint`: Lotka-Volterra against SciPy, its gradients against differences."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import symgrad as sg
from symgrad.ir.evaluate import evaluate

k = sg.placeholder("k", (4,))
y0 = sg.placeholder("y0", (2,))
ts = sg.placeholder("ts", ("T",))
K, Y, T = np.array([1.5, 1.0, 3.0, 1.0]), np.array([10.0, 5.0]), np.linspace(0, 2, 5)


def field(y, t):
    u, v = y[0], y[1]
    return sg.stack([k[0] * u - k[1] * u * v, -k[2] * v + k[3] * u * v])


def test_lotka_volterra():
    ys = sg.odeint(field, y0, ts, rtol=1e-10, atol=1e-10)
    loss = sg.sum(ys**2)
    outputs = [ys, loss, *sg.grad(loss, [k, y0, ts])]
    program = sg.compile([k, y0, ts], outputs)
    found = program(K, Y, T)
    plain = solve_ivp(
        lambda t, y: [K[0] * y[0] - K[1] * y[0] * y[1], -K[2] * y[1] + K[3] * y[0] * y[1]],
        (0, 2), Y, t_eval=T, rtol=1e-12, atol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(found[0], plain.y.T, rtol=1e-7)
    for i, at in enumerate((K, Y, T)):
        for j in range(len(at)):
            near = [K, Y, T]
            values = []
            for h in (1e-5, -1e-5):
                near[i] = at + h * np.eye(len(at))[j]
                values.append(program(*near)[1])
            slope = (values[0] - values[1]) / 2e-5
            np.testing.assert_allclose(found[2 + i][j], slope, rtol=1e-4, atol=1e-3)
    (forward,) = sg.jvp([loss], [k], [sg.ones(4)])
    np.testing.assert_allclose(evaluate([forward], {k: K, y0: Y, ts: T})[0], found[2].sum())


def test_forms_time_backwards_and_second_order():
    a = sg.placeholder("a", ())
    ys = sg.odeint(
        lambda y, t: {"p": -a * y["p"], "q": sg.cos(t) * np.ones(2)},
        {"p": 1.0, "q": np.zeros(2)},
        ts,
    )
    end = ys["p"][-1]
    outputs = [ys["p"], ys["q"], sg.grad(end, a), sg.grad(sg.grad(end, a), a)]
    program = sg.compile([a, ts], outputs)
    for sign in (1, -1):
        t = T * sign
        p, q, first, second = program(0.7, t)
        np.testing.assert_allclose(p, np.exp(-0.7 * t), rtol=1e-6)
        np.testing.assert_allclose(q, np.stack([np.sin(t)] * 2, 1), atol=1e-6)
        np.testing.assert_allclose(first, -t[-1] * p[-1], rtol=1e-5)
        np.testing.assert_allclose(second, t[-1] ** 2 * p[-1], rtol=1e-4)


def test_refused():
    a = sg.placeholder("a", ())
    with pytest.raises(sg.ShapeError, match=r"(?s)odeint: ts is a vector"):
        sg.odeint(lambda y, t: y, a, a)
    with pytest.raises(sg.ShapeError, match=r"(?s)odeint: x is.*test_ode"):
        sg.odeint(lambda y, t: y0 * y, a, ts)
    burst = sg.odeint(lambda y, t: y**2, a, ts, max_steps=200)
    with pytest.raises(sg.KernelError, match=r"(?s)odeint takes more than 200 steps.*test_ode"):
        sg.compile([a, ts], burst)(2.0, T)
