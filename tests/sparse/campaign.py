"""Random graphs, sparse derivatives beside dense: `python -m tests.sparse.campaign --count 500`.

Half of the graphs move elements about, join, sum and multiply by known matrices, whose patterns are
worth something; the others are of any ops, so that many are dense, and their Hessians are compared.
"""

import warnings

import numpy as np
import scipy.sparse

import symgrad as sg
from symgrad.ir.errors import GradientError
from symgrad.testing import random_graph
from tests.helpers import campaign

MOST = 40  # elements of a vector on the way


IMAGE = np.array([[0.0, 1.0], [2.0, 0.0]])[None, None]


def pairs(v):
    """Elements of a vector, two in a row."""
    return sg.reshape(v[: v.shape[0] // 2 * 2], (-1, 2))


def known_matrix(rng, rows, columns):
    """A matrix with many zeros, of NumPy's or SciPy's."""
    matrix = scipy.sparse.random_array((rows, columns), density=0.3, rng=rng)
    return matrix if rng.random() < 0.5 else matrix.toarray()


STEPS = (
    lambda rng, v, w: sg.sin(v) * v,
    lambda rng, v, w: sg.roll(v, int(rng.integers(1, 4))) * v,
    lambda rng, v, w: v[1:] * v[:-1],
    lambda rng, v, w: v[:: int(rng.choice([-1, 2, -2]))] ** 2,
    lambda rng, v, w: sg.concat([v[:2] * v[-2:], sg.exp(-v * v)]),
    lambda rng, v, w: sg.pad(v, 2) + 1,
    lambda rng, v, w: v[rng.integers(-v.shape[0], v.shape[0], int(rng.integers(1, 8)))],
    lambda rng, v, w: sg.zeros(v.shape[0]).at[rng.integers(0, v.shape[0], 3)].add(v[:3] * v[-3:]),
    lambda rng, v, w: v.at[: v.shape[0] // 2].set(sg.tanh(v[: v.shape[0] // 2])),
    lambda rng, v, w: known_matrix(rng, int(rng.integers(3, 9)), v.shape[0]) @ v,
    lambda rng, v, w: sg.where(rng.random(v.shape[0]) < 0.5, v * v, 0),
    lambda rng, v, w: rng.choice([0.0, 1.5], v.shape[0]) * v,
    lambda rng, v, w: sg.cumulative_sum(v[:5]) * v[:5],
    lambda rng, v, w: v * sg.flip(w[-1:]) if rng.random() < 0.3 else v + v,
    lambda rng, v, w: sg.sum(np.lib.stride_tricks.sliding_window_view(v, 3) ** 2, axis=1),
    lambda rng, v, w: sg.sum(sg.reshape(v[: v.shape[0] // 2 * 2], (-1, 2)) ** 3, axis=1),
    lambda rng, v, w: sg.ravel(sg.linalg.outer(v[:3], w[:2])),
    lambda rng, v, w: sg.stop_gradient(v) * sg.cos(v) + sg.max(v[:4]),
    lambda rng, v, w: sg.ravel(sg.diff(sg.stack([v, v * v, sg.sin(v)]), axis=0).T),
    lambda rng, v, w: np.convolve(v, rng.choice([0.0, 1.0, 2.0], 3), "valid"),
    lambda rng, v, w: sg.sort(v[:4]) * 2,
    lambda rng, v, w: v[sg.argsort(w[:3])] * v[:3],
    lambda rng, v, w: sg.zeros(4).at[sg.astype(w[:3], "int64")].add(v[:3] ** 2),
    lambda rng, v, w: sg.scan(lambda c, a: (sg.tanh(c / 2 + a), c * a), v[0], v)[1],
    lambda rng, v, w: sg.map(lambda a: sg.sin(a) * a, v),
    lambda rng, v, w: sg.where(v > 1, v * v, sg.roll(v, 1)) + sg.relu(v - 1.1),
    lambda rng, v, w: sg.maximum(v, sg.flip(v)) * sg.minimum(v, w[0]),
    lambda rng, v, w: sg.ravel(pairs(v).T @ rng.choice([0.0, 0.0, 1.0], (pairs(v).shape[0], 2))),
    lambda rng, v, w: sg.ravel(pairs(v) + pairs(v)[:1]),
    lambda rng, v, w: sg.max(pairs(v), axis=0) + sg.prod(pairs(v), axis=0),
    lambda rng, v, w: sg.ravel(sg.linalg.inv(sg.broadcast_to(pairs(v)[:2], (2, 2, 2)) + 5)),
    lambda rng, v, w: sg.linalg.qr(pairs(v)[:2] + 3 * np.eye(2))[1][0],
    lambda rng, v, w: sg.ravel(sg.nn.conv2d(sg.reshape(v[:4], (1, 1, 2, 2)), IMAGE, padding=1)),
    lambda rng, v, w: sg.astype(sg.astype(v, "float32") * 2, "float64"),
    lambda rng, v, w: sg.real(sg.fft.rfft(v[:4])) + abs(v[:3] + 1j * v[1:4]) ** 2,
)


def structured(rng):
    """A vector and a function of it, of ops that keep elements apart."""
    x = sg.placeholder("x", int(rng.integers(4, 12)))
    v = x
    for _ in range(int(rng.integers(1, 6))):
        if v.shape[0] >= 4:
            v = STEPS[rng.integers(len(STEPS))](rng, v, x)[:MOST]
    return x, v


def same(found, wanted):
    """Whether the entries are those of a dense array, and the other elements of that are 0."""
    dense = found.toarray()
    wanted = np.reshape(wanted, dense.shape)
    np.testing.assert_allclose(dense, wanted, rtol=1e-6, atol=1e-9)


def check_structured(seed):
    """A Jacobian in both modes and a Hessian, beside dense ones."""
    rng = np.random.default_rng(seed)
    x, y = structured(rng)
    at = rng.uniform(0.3, 2.0, x.shape)
    kinds = [{"sparse": True, "mode": mode} for mode in ("forward", "reverse", None)]
    wanted, *found = sg.compile(
        x, [sg.jacobian(y, x, disconnected="zero", **kind) for kind in ({}, *kinds)]
    )(at)
    for j in found:
        same(j, wanted)
    loss = sg.sum(sg.sin(y))
    pair = [sg.hessian(loss, x, disconnected="zero", sparse=sparse) for sparse in (False, True)]
    wanted, h = sg.compile(x, pair)(at)
    same(h, wanted)


def check_any(seed):
    """The Hessian of a loss of any ops."""
    rng = np.random.default_rng(seed)
    inputs, (loss, *_) = random_graph(rng, 6, ["float64"])
    x = inputs[0]
    try:
        pair = [sg.hessian(loss, x, disconnected="zero", sparse=kind) for kind in (False, True)]
    except GradientError:
        return  # an op without a second derivative
    feeds = [rng.uniform(0.3, 1.5, p.shape) for p in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted, found = sg.compile(inputs, pair)(*feeds)
    if np.isfinite(wanted).all():
        same(found, wanted)


def check(seed):
    """One random graph."""
    (check_any if seed % 2 else check_structured)(seed)


if __name__ == "__main__":
    campaign("tests.sparse.campaign", __doc__, check)
