"""Nets and other programs of some size learn by pieces what they learn whole."""

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import close, generator

ROWS = 20


class Attends(sg.nn.Module):
    """Attention over the 6 places of each row."""

    def __init__(self, key):
        self.attention = sg.nn.MultiHeadAttention(8, 2, key=key)
        self.last = sg.nn.Linear(8, 3, key=key)

    def forward(self, x):
        return self.last(sg.mean(self.attention(x), axis=1))


class Remembers(sg.nn.Module):
    """An LSTM over the 6 steps of each row."""

    def __init__(self, key):
        self.cell = sg.nn.LSTMCell(8, 5, key=key)
        self.last = sg.nn.Linear(5, 3, key=key)

    def forward(self, x):
        _, (h, _) = self.cell.unroll(x)
        return self.last(h)


def dense(key):
    return sg.nn.Sequential(
        sg.nn.Linear(8, 9, key=key), sg.nn.BatchNorm(9), sg.relu, sg.nn.Dropout(0.2, key=key),
        sg.nn.Linear(9, 3, key=key),
    )  # fmt: skip


def lenet(key):
    return sg.nn.Sequential(
        sg.nn.Conv2d(1, 4, 3, key=key), sg.nn.BatchNorm(4), sg.relu, sg.nn.MaxPool(2),
        sg.nn.Conv2d(4, 5, 2, key=key), sg.tanh, sg.nn.AvgPool(2), sg.nn.Flatten(),
        sg.nn.Linear(5, 3, key=key),
    )  # fmt: skip


NETS = {
    "dense": (dense, (8,)),
    "lenet": (lenet, (1, 8, 8)),
    "attention": (Attends, (6, 8)),
    "lstm": (Remembers, (6, 8)),
}


@pytest.mark.parametrize("name", NETS)
def test_a_net_learns_the_same(name):
    make, shape = NETS[name]
    rng = generator(name)
    x, t = sg.placeholder("x", ("N", *shape)), sg.placeholder("t", "N", "int64")
    net = make(sg.random.key(4))
    loss = sg.nn.cross_entropy(net(x), t)
    updates = sg.optim.Adam(net, lr=1e-2, clip_norm=1.0).updates(loss)
    whole = sg.compile([x, t], loss, updates)
    step = sg.map_reduce([x, t], loss, updates, over="N")
    X, T = rng.standard_normal((ROWS, *shape)), rng.integers(0, 3, ROWS)
    found = []
    state = [(v, v.value) for v in whole.store.updated]
    for call in (lambda: whole(X, T), lambda: step(sg.chunks(x=X, t=T, rows=7))):
        for v, start in state:
            v.value = start
        losses = [float(call()) for _ in range(3)]
        found.append((losses, [v.value for v, _ in state]))
    close(*(losses for losses, _ in found), 1e-9)
    for a, b in zip(found[0][1], found[1][1], strict=True):
        close(b, a, 1e-8)
    assert len(step.rounds) <= 6


def test_newton_and_k_means():
    rng = generator("k means")
    X = rng.standard_normal((ROWS, 3))
    Y = (X[:, 0] > 0).astype(float)
    x, y = sg.placeholder("x", ("N", 3)), sg.placeholder("y", "N")
    w = sg.variable("w", np.zeros(3))
    z = x @ w
    loss = sg.sum(sg.nn.softplus(z) - y * z) + 0.05 * sg.sum(w * w)
    move = sg.linalg.solve(sg.hessian(loss, w), sg.grad(loss, w))
    newton = sg.map_reduce([x, y], loss, {w: w - move}, over="N")
    assert len(newton.rounds) == 1
    losses = [newton(sg.chunks(x=X, y=Y, rows=6)) for _ in range(8)]
    assert losses[-1] == pytest.approx(losses[-2])
    z = X @ w.value
    slope = X.T @ (1 / (1 + np.exp(-z)) - Y) + 0.1 * w.value
    close(slope, np.zeros(3), 1e-8)

    centres = sg.variable("centres", X[:2])
    far = sg.sum((x[:, None, :] - centres) ** 2, axis=2)
    member = sg.one_hot(sg.argmin(far, axis=1), 2)
    nearer = (member.T @ x) / sg.sum(member, axis=0)[:, None]
    step = sg.map_reduce([x], sg.sum(sg.min(far, axis=1)), {centres: nearer}, over="N")
    losses = [step(sg.chunks(x=X, rows=6)) for _ in range(6)]
    assert losses == sorted(losses, reverse=True)
    labels = np.argmin(((X[:, None] - centres.value) ** 2).sum(2), axis=1)
    for k in range(2):
        close(centres.value[k], X[labels == k].mean(0))
