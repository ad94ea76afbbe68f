"""Clusters in data, found by the gradient of a likelihood that is written in plain NumPy.

Run it with `python examples/12_gaussian_mixture.py`. The same density, as a law of `sg.stats`,
agrees to the last digits.
"""

import numpy as np

import symgrad as sg

CENTRES = np.array([[-2.0, 0.0], [2.0, 1.0], [0.0, 3.0]])


def logsumexp(x, axis):
    top = np.max(x, axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.sum(np.exp(x - top), axis=axis))


def misfit(weights, means, spreads, x):
    """Minus the mean log-density of the points, under normal laws mixed: NumPy and nothing else."""
    past = (x[:, np.newaxis, :] - means) / np.exp(spreads)
    logs = -0.5 * np.sum(past**2, axis=-1) - np.sum(spreads, axis=-1) - np.log(2 * np.pi)
    return -np.mean(logsumexp(logs + weights - logsumexp(weights, 0), 1))


def points(count):
    rng = np.random.default_rng(0)
    return CENTRES[rng.integers(0, 3, count)] + 0.5 * rng.standard_normal((count, 2))


def main():
    data = points(600)
    weights = sg.variable("weights", np.zeros(3))
    means = sg.variable("means", np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    spreads = sg.variable("spreads", np.zeros((3, 2)))
    parameters = [weights, means, spreads]

    x = sg.placeholder("x", ("N", 2))
    loss = misfit(*parameters, x)
    step = sg.compile([x], loss, updates=sg.optim.Adam(parameters, lr=0.05).updates(loss))
    losses = [float(step(data)) for _ in range(200)]
    print(f"the misfit goes from {losses[0]:.4f} to {losses[-1]:.4f}")

    found = means.value
    shares = np.exp(weights.value) / np.sum(np.exp(weights.value))
    for i in range(3):
        wide = np.exp(spreads.value[i]).round(2)
        print(f"  {shares[i]:.0%} around {found[i].round(2)}, {wide} wide")

    values = [v.value for v in parameters]
    law = sg.stats.Mixture(
        sg.stats.Categorical(logits=weights),
        sg.stats.Independent(sg.stats.Normal(means, sg.exp(spreads))),
    )
    by_law = sg.compile([x], -sg.mean(law.log_prob(x)))(data)
    print(f"on arrays {misfit(*values, data):.10f}, as a law of sg.stats {by_law:.10f}")
    np.testing.assert_allclose(misfit(*values, data), by_law, rtol=1e-12)

    gradient = sg.compile([x], sg.grad(loss, parameters))(data)
    print(f"the gradient there is {max(np.abs(g).max() for g in gradient):.1e} or less")
    return losses, found


if __name__ == "__main__":
    main()
