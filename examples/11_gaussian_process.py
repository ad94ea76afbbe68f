"""A Gaussian process in plain NumPy, which symgrad fits: the function is written for arrays.

Run it with `python examples/11_gaussian_process.py`.
"""

import numpy as np

import symgrad as sg


def kernel(log_length, log_height, x, y):
    gaps = (x[:, None] - y[None, :]) / np.exp(log_length)
    return np.exp(2 * log_height - 0.5 * gaps**2)


def misfit(log_length, log_height, log_noise, x, y):
    """Minus the logarithm of the marginal likelihood: NumPy and nothing else."""
    noisy = kernel(log_length, log_height, x, x) + np.exp(2 * log_noise) * np.eye(len(x))
    chol = np.linalg.cholesky(noisy)
    z = np.linalg.solve(chol, y)
    return 0.5 * np.dot(z, z) + np.sum(np.log(np.diag(chol))) + 0.5 * len(x) * np.log(2 * np.pi)


def predict(log_length, log_height, log_noise, x, y, where):
    """The mean and the standard deviation at other places."""
    noisy = kernel(log_length, log_height, x, x) + np.exp(2 * log_noise) * np.eye(len(x))
    across = kernel(log_length, log_height, where, x)
    mean = across @ np.linalg.solve(noisy, y)
    spread = np.exp(2 * log_height) - np.sum(across * np.linalg.solve(noisy, across.T).T, axis=1)
    return mean, np.sqrt(spread)


def main():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, 40))
    y = np.sin(2 * x) + 0.1 * rng.standard_normal(40)

    # The same function, of nodes: what it computes becomes a graph, and that has a gradient.
    hyper = [sg.variable(name, 0.0) for name in ("log_length", "log_height", "log_noise")]
    loss = misfit(*hyper, x, y)
    step = sg.compile([], loss, updates=sg.optim.Adam(hyper, lr=0.05).updates(loss))
    losses = [float(step()) for _ in range(300)]

    found = [h.value for h in hyper]
    print(f"the misfit goes from {losses[0]:.3f} to {losses[-1]:.3f}")
    for h in hyper:
        print(f"  {h.name.removeprefix('log_'):7} {np.exp(h.value):.3f}")
    print(f"on arrays the function gives {misfit(*found, x, y):.3f}, and needs no symgrad")

    places = np.linspace(-2.5, 2.5, 6)
    mean, spread = predict(*found, x, y, places)
    for at, m, s in zip(places, mean, spread, strict=True):
        print(f"  at {at:5.2f}: {m:6.3f} +- {s:.3f}, the truth is {np.sin(2 * at):6.3f}")
    np.testing.assert_allclose(mean, np.sin(2 * places), atol=0.2)
    return losses, np.exp(found)


if __name__ == "__main__":
    main()
