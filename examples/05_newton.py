"""Newton's method with exact Hessians: on Rosenbrock's function and on a logistic regression.

Run it with `python examples/05_newton.py`.
"""

import numpy as np

import symgrad as sg


def newton(program, w, steps):
    """Iterates `w - H^-1 g` and prints the loss; the program gives loss, gradient and Hessian."""
    for step in range(steps):
        loss, gradient, hessian = program(w)
        print(f"  step {step:2d}  loss {loss:.12f}  |gradient| {np.linalg.norm(gradient):.2e}")
        if np.linalg.norm(gradient) < 1e-10:
            break
        w = w - np.linalg.solve(hessian, gradient)
    return w


def rosenbrock():
    """The banana valley in four variables, whose minimum is at (1, 1, 1, 1)."""
    x = sg.placeholder("x", 4)
    loss = sg.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    return sg.compile([x], [loss, sg.grad(loss, x), sg.hessian(loss, x)])


def logistic_regression():
    """Two overlapping clouds of points, with a small ridge; labels are -1 and 1."""
    rng = np.random.default_rng(0)
    labels = np.repeat([-1.0, 1.0], 200)
    points = rng.standard_normal((400, 3)) + 0.8 * labels[:, None]
    features = np.column_stack([points, np.ones(400)])
    w = sg.placeholder("w", 4)
    margins = labels * (features @ w)
    loss = sg.mean(sg.log(1 + sg.exp(-margins))) + 1e-3 * sg.sum(w**2)
    return sg.compile([w], [loss, sg.grad(loss, w), sg.hessian(loss, w)])


def main():
    print("Rosenbrock:")
    minimum = newton(rosenbrock(), np.array([1.3, 0.7, 0.8, 1.2]), 20)
    print(f"  minimum at {minimum}")
    np.testing.assert_allclose(minimum, 1, atol=1e-8)

    print("Logistic regression:")
    program = logistic_regression()
    w = newton(program, np.zeros(4), 20)
    print(f"  weights {w}")
    assert np.linalg.norm(program(w)[1]) < 1e-10
    return minimum, w


if __name__ == "__main__":
    main()
