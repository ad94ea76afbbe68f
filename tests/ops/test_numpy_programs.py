"""Well-known programs in plain NumPy, written for arrays: the same code on nodes, unedited."""

import numpy as np

import symgrad as sg
from tests.helpers import each, generator


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


def black_box_svi(mean, log_std, noise, x, y):
    samples = mean + np.exp(log_std) * noise
    residuals = y - np.einsum("sd,nd->sn", samples, x)
    log_joint = -0.5 * (residuals**2).sum(axis=1) - 0.5 * np.linalg.norm(samples, axis=1) ** 2
    entropy = 0.5 * len(mean) * (1 + np.log(2 * np.pi)) + log_std.sum()
    return -(entropy + np.mean(log_joint))


def bayesian_neural_net(weights, x, y):
    sizes = [(2, 4), (4, 1)]
    outputs, start = x, 0
    for m, n in sizes:
        w = np.reshape(weights[start : start + m * n], (m, n))
        b = weights[start + m * n : start + (m + 1) * n]
        outputs = np.exp(-((outputs @ w + b) ** 2))
        start += (m + 1) * n
    prior = -0.5 * np.dot(weights, weights)
    return prior - np.sum(np.square(y - outputs[:, 0])) / 0.02


def softmax_classifier(params, x, labels):
    logits = x
    for w, b in params:
        logits = np.tanh(logits @ w + b)
    logs = logits - logsumexp(logits, 1)[:, None]
    return -np.mean(logs[np.arange(len(labels)), labels])


def k_means(centres, x):
    gaps = x[:, None, :] - centres[None, :, :]
    return np.min(np.sum(gaps * gaps, axis=-1), axis=1).mean()


def kalman_filter(steps, noise, readings):
    mean, spread, likelihood = np.zeros(2), np.eye(2), 0.0
    watch = np.array([[1.0, 0.0]])
    for reading in readings:
        mean, spread = steps @ mean, steps @ spread @ steps.T + np.exp(noise) * np.identity(2)
        total = watch @ spread @ watch.T + 0.1
        gain = np.linalg.solve(total, watch @ spread).T
        past = reading - watch @ mean
        likelihood = likelihood - 0.5 * (past @ np.linalg.inv(total) @ past)
        likelihood = likelihood - 0.5 * np.linalg.slogdet(total)[1]
        mean, spread = mean + gain @ past, (np.eye(2) - gain @ watch) @ spread
    return likelihood


def page_rank(links):
    weights = np.exp(links)
    moves = weights / np.sum(weights, axis=0, keepdims=True)
    ranks = np.full(len(moves), 1 / len(moves))
    for _ in range(20):
        ranks = 0.85 * moves.dot(ranks) + 0.15 / len(ranks)
    return np.max(ranks) + np.var(ranks)


def power_iteration(a):
    matrix = (a + np.transpose(a)) / 2 + 3 * np.eye(a.shape[0])
    v = np.ones(a.shape[0])
    for _ in range(30):
        v = matrix @ v
        v = v / np.linalg.norm(v)
    return np.inner(v, matrix @ v)


def heat_equation(start, conductivity):
    u = start
    for _ in range(8):
        flow = conductivity * np.diff(u)
        u = u + 0.1 * np.diff(np.concatenate([[0.0], flow, [0.0]]))
    return np.sum((u - np.mean(u)) ** 2) + np.max(np.abs(np.gradient(u)))


def n_body(positions, velocities, masses):
    def forces(x):
        gaps = x[np.newaxis, :, :] - x[:, np.newaxis, :]
        cubes = (np.sum(gaps**2, axis=-1) + 0.1) ** -1.5
        return np.einsum("ij,ijk,j->ik", cubes, gaps, masses)

    x, v = positions, velocities
    for _ in range(5):
        v = v + 0.05 * forces(x)
        x = x + 0.1 * v
        v = v + 0.05 * forces(x)
    return 0.5 * np.sum(masses[:, None] * v**2) + np.hypot(x[0, 0], x[0, 1])


def american_option(price, volatility, rate):
    steps, dt = 12, 1 / 12
    up = np.exp(volatility * np.sqrt(dt))
    p = (np.exp(rate * dt) - 1 / up) / (up - 1 / up)
    prices = price * up ** (steps - 2.0 * np.arange(steps + 1))
    value = np.maximum(1.05 - prices, 0)
    for _ in range(steps):
        prices = prices[:-1] / up
        kept = np.exp(-rate * dt) * (p * value[:-1] + (1 - p) * value[1:])
        value = np.where(1.05 - prices > kept, 1.05 - prices, kept)
    return value[0]


def cubic_spline(knots, x):
    n = len(knots)
    bands = 4 * np.eye(n - 2) + np.eye(n - 2, k=1) + np.eye(n - 2, k=-1)
    inner = np.linalg.solve(bands, 6 * (knots[:-2] - 2 * knots[1:-1] + knots[2:]))
    bends = np.pad(inner, 1)
    i = np.clip(np.floor(x), 0, n - 2).astype(int)
    t = x - i
    s = 1 - t
    chords = s * knots[i] + t * knots[i + 1]
    return np.sum((chords + ((s**3 - s) * bends[i] + (t**3 - t) * bends[i + 1]) / 6) ** 2)


def spring_network(nodes):
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
    lengths = np.sqrt(((nodes[edges[:, 0]] - nodes[edges[:, 1]]) ** 2).sum(-1))
    x, y = nodes.T
    area = 0.5 * (np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
    return np.sum((lengths - 1) ** 2) + (area - 1) ** 2 + 0.1 * nodes[:, 1].sum()


def pressure_projection(vx, vy):
    h = 1 / vx.shape[0]
    slope_x = np.roll(vx, -1, axis=0) - np.roll(vx, 1, axis=0)
    slope_y = np.roll(vy, -1, axis=1) - np.roll(vy, 1, axis=1)
    divergence = -0.5 * h * (slope_x + slope_y)
    p = np.zeros_like(vx)
    for _ in range(6):
        beside = sum(np.roll(p, s, axis=a) for s in (-1, 1) for a in (0, 1))
        p = (divergence + beside) / 4
    vx = vx - 0.5 * (np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0)) / h
    return np.sum(vx**2) + np.std(p)


def fourier_filter(signal, kernel):
    smooth = np.convolve(signal, kernel, mode="same")
    spectrum = np.fft.rfft(smooth)
    cut = np.where(np.arange(len(spectrum)) < 4, spectrum, 0)
    return np.sum(np.abs(cut) ** 2) + np.fft.irfft(cut, len(signal)).max()


def neural_ode(w, b, start):
    def field(y):
        return np.tanh(np.matmul(y, w) + b)

    y, h = start, 0.2
    for _ in range(5):
        k1 = field(y)
        k2 = field(y + h / 2 * k1)
        k3 = field(y + h / 2 * k2)
        k4 = field(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.mean(np.linalg.norm(y, axis=-1))


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
    black_box_svi: [
        draw("bm", 2),
        draw("bs", 2),
        draw("bn", 7, 2),
        draw("bx", 5, 2),
        draw("by", 5),
    ],
    bayesian_neural_net: [draw("bw", 17), draw("bi", 6, 2), draw("bo", 6)],
    softmax_classifier: [
        [(draw("w1", 3, 4), draw("b1", 4)), (draw("w2", 4, 5), draw("b2", 5))],
        draw("sx", 6, 3),
        np.array([0, 4, 2, 2, 1, 3]),
    ],
    k_means: [draw("kc", 3, 2), draw("kx", 9, 2)],
    kalman_filter: [np.eye(2) + draw("ka", 2, 2), np.asarray(-1.0), draw("kr", 5, 1)],
    page_rank: [draw("pl", 5, 5)],
    power_iteration: [draw("pi", 4, 4)],
    heat_equation: [draw("hu", 9), np.exp(draw("hk", 8))],
    n_body: [draw("np", 3, 2), draw("nv", 3, 2), np.exp(draw("nm", 3))],
    american_option: [np.asarray(1.0), np.asarray(0.3), np.asarray(0.04)],
    cubic_spline: [draw("ck", 7), np.array([0.3, 1.7, 4.0, 5.9])],
    spring_network: [np.array([[0.0, 0], [1.1, 0.1], [0.9, 1.2], [-0.1, 0.8]])],
    pressure_projection: [draw("vx", 5, 5), draw("vy", 5, 5)],
    fourier_filter: [draw("fs", 12), draw("fk", 3)],
    neural_ode: [draw("ow", 3, 3), draw("ob", 3), draw("os", 4, 3)],
}


def flat(value):
    """The arrays in lists and tuples."""
    return [a for v in value for a in flat(v)] if isinstance(value, (list, tuple)) else [value]


def filled(value, arrays):
    """The same lists and tuples, with other arrays, from an iterator."""
    if isinstance(value, (list, tuple)):
        return type(value)(filled(v, arrays) for v in value)
    return next(arrays)


@each("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_program_for_arrays_runs_on_nodes_unedited(program):
    given = PROGRAMS[program]
    arrays = flat(given)
    nodes = [sg.placeholder(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
    compiled = sg.compile(nodes, program(*filled(given, iter(nodes))))
    np.testing.assert_allclose(compiled(*arrays), program(*given), 1e-12)
    moving = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]

    def of_floats(*floats):
        merged = list(arrays)
        for i, x in zip(moving, floats, strict=True):
            merged[i] = x
        return program(*filled(given, iter(merged)))

    sg.testing.check_grads(of_floats, *(arrays[i] for i in moving), order=1)
