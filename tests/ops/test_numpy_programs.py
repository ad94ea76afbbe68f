"""Well-known programs in plain NumPy, written for arrays: the same code on nodes, unedited."""

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import generator


def draw(name, *shape):
    return generator(name).normal(0, 0.5, shape)


def logsumexp(x, axis):
    top = x.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.sum(np.exp(x - top), axis=axis))


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def logistic_regression(w, b, x, labels):
    scores = np.dot(x, w) + b
    return np.mean(np.logaddexp(0, scores) - labels * scores) + 0.1 * np.dot(w, w)


def gaussian_mixture(weights, means, spreads, x):
    past = (x[:, np.newaxis, :] - means) / np.exp(spreads)
    logs = -0.5 * np.sum(past**2, axis=-1) - np.sum(spreads, axis=-1)
    mixed = weights - logsumexp(weights, 0)
    return -np.mean(logsumexp(logs + mixed, 1))


def recurrent_network(w, u, b, inputs):
    state = np.zeros(3)
    total = 0.0
    for x in inputs:
        state = np.tanh(np.dot(w, state) + np.dot(u, x) + b)
        total = total + np.sum(state**2)
    return total


def lstm(w, b, inputs):
    hidden = cell = np.zeros(2)
    for x in inputs:
        gates = np.hstack([x, hidden]).dot(w) + b
        take, leave, give, new = np.split(gates, 4)
        cell = cell / (1 + np.exp(-leave)) + np.tanh(new) / (1 + np.exp(-take))
        hidden = np.tanh(cell) / (1 + np.exp(-give))
    return hidden.sum()


def gaussian_process(log_length, log_noise, x, y):
    gaps = np.subtract.outer(x, x) if isinstance(x, np.ndarray) else x[:, None] - x[None, :]
    kernel = np.exp(-0.5 * (gaps / np.exp(log_length)) ** 2)
    chol = np.linalg.cholesky(kernel + np.exp(log_noise) * np.eye(len(y)))
    z = np.linalg.solve(chol, y)
    return 0.5 * np.dot(z, z) + np.sum(np.log(np.diagonal(chol)))


def hidden_markov_model(start, steps, emissions):
    alpha = start + emissions[0]
    for logs in emissions[1:]:
        alpha = logsumexp(alpha[:, None] + steps, 0) + logs
    return logsumexp(alpha, 0)


def variational_autoencoder(encoder, decoder, noise, x):
    mean, log_var = np.array_split(x.dot(encoder), 2, axis=1)
    z = mean + np.exp(log_var / 2) * noise
    logits = z.dot(decoder)
    likelihood = np.sum(x * logits - np.logaddexp(0, logits), axis=1)
    divergence = 0.5 * np.sum(np.exp(log_var) + mean**2 - 1 - log_var, axis=1)
    return -(likelihood - divergence).mean()


def independent_components(w, x):
    signals = np.dot(w, x - np.average(x, axis=1)[:, None])
    return np.sum(np.mean(np.log(np.cosh(signals)), axis=1)) - np.log(np.abs(np.linalg.det(w)))


def fluid_step(velocity, dye):
    back = np.arange(dye.shape[0]) - velocity
    moved = np.interp(back, np.arange(dye.shape[0]), dye)
    slope = np.gradient(moved)
    return np.trapezoid(moved * slope**2) + np.ptp(moved)


def principal_components(x):
    values = np.linalg.eigvalsh(np.cov(x, rowvar=False))
    return values[-1] / np.sum(values) + np.linalg.cond(np.corrcoef(x, rowvar=False))


PROGRAMS = {
    rosenbrock: [draw("rosen", 5)],
    logistic_regression: [draw("w", 3), np.asarray(0.2), draw("x", 6, 3), draw("y", 6) > 0],
    gaussian_mixture: [draw("k", 2), draw("m", 2, 3), draw("s", 2, 3), draw("data", 5, 3)],
    recurrent_network: [draw("w3", 3, 3), draw("u3", 3, 2), draw("b3", 3), draw("in", 4, 2)],
    lstm: [draw("lw", 5, 8), draw("lb", 8), draw("lx", 4, 3)],
    gaussian_process: [np.asarray(0.1), np.asarray(-1.0), draw("gx", 5), draw("gy", 5)],
    hidden_markov_model: [draw("h0", 3), draw("h1", 3, 3), draw("h2", 4, 3)],
    variational_autoencoder: [draw("e", 4, 4), draw("d", 2, 4), draw("n", 5, 2), draw("v", 5, 4)],
    independent_components: [np.eye(3) + draw("ic", 3, 3), draw("ix", 3, 8)],
    fluid_step: [draw("fv", 8), draw("fd", 8)],
    principal_components: [draw("pc", 9, 3)],
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_program_for_arrays_runs_on_nodes_unedited(program):
    arrays = PROGRAMS[program]
    nodes = [sg.placeholder(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
    compiled = sg.compile(nodes, program(*nodes))
    np.testing.assert_allclose(compiled(*arrays), program(*arrays), 1e-12)
    moving = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]

    def of_floats(*given):
        merged = list(arrays)
        for i, x in zip(moving, given, strict=True):
            merged[i] = x
        return program(*merged)

    sg.testing.check_grads(of_floats, *(arrays[i] for i in moving), order=1)
