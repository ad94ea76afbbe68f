"""Classical problems in which few of many variables meet: sparse derivatives beside dense ones."""

import numpy as np
import pytest
import scipy.sparse

import symgrad as sg
from symgrad.autodiff.colouring import coloured
from symgrad.ir.evaluate import evaluate
from tests.helpers import close


def padded(u):
    """With zeros around it: the boundary."""
    return sg.pad(u, 1)


def laplacian(u):
    """Five points of a grid."""
    p = padded(u)
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u


def chain_of_masses(x):
    """Accelerations of masses between springs that grow stiffer."""
    p = padded(x[:10])
    stretch = p[1:] - p[:-1]
    force = stretch + stretch**3
    return sg.concat([x[10:], force[1:] - force[:-1] - 0.1 * x[10:]])


def broyden_banded(x):
    near = sum(sg.roll(x, k) * (1 + sg.roll(x, k)) for k in (-1, 1, 2, 3, 4, 5))
    return x * (2 + 5 * x**2) + 1 - near


def boundary_value(x):
    """Moré and Cosnard's discrete boundary value problem."""
    h = 1 / 21
    p = padded(x)
    return 2 * x - p[:-2] - p[2:] + h**2 / 2 * (x + h * np.arange(1, 21) + 1) ** 3


def brusselator(z):
    u, v = z[:10], z[10:]
    spread = [sg.roll(w, 1) - 2 * w + sg.roll(w, -1) for w in (u, v)]
    return sg.concat([1 + u**2 * v - 4 * u + spread[0], 3 * u - u**2 * v + spread[1]])


LAPLACE = scipy.sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(20, 20)).tocsr()
CAMERAS, POINTS, SEEN = 3, 4, 8
WHO, WHAT = np.arange(SEEN) % CAMERAS, np.arange(SEEN) % POINTS


def bundle_adjustment(z):
    """Where cameras, of three angles and a place, see points: two residuals each."""
    cameras = sg.reshape(z[: 6 * CAMERAS], (CAMERAS, 6))[WHO]
    points = sg.reshape(z[6 * CAMERAS :], (POINTS, 3))[WHAT]
    turned = points + sg.linalg.cross(cameras[:, :3], points, axis=1) + cameras[:, 3:]
    return turned[:, :2] / (turned[:, 2:] + 5)


def powell_singular(x):
    a, b, c, d = (x[k::4] for k in range(4))
    return sg.concat([a + 10 * b, c - d, (b - 2 * c) ** 2, (a - d) ** 2])


def collocation(z):
    """A pendulum under control, by the trapezoidal rule."""
    angle, speed, control = sg.reshape(z, (3, 8))
    rate = control - sg.sin(angle)
    return sg.concat(
        [
            angle[1:] - angle[:-1] - 0.05 * (speed[1:] + speed[:-1]),
            speed[1:] - speed[:-1] - 0.05 * (rate[1:] + rate[:-1]),
        ]
    )


FROM, TO = np.arange(12), (np.arange(12) * 5 + 1) % 12


def power_flow(angles):
    """What flows into the nodes of a network, along lines between two each."""
    flow = sg.sin(angles[FROM] - angles[TO])
    return sg.zeros(12).at[FROM].add(flow).at[TO].add(-flow)


def minimal_surface(u):
    p = padded(u)
    slopes = (p[1:, :-1] - p[:-1, :-1]) ** 2 + (p[:-1, 1:] - p[:-1, :-1]) ** 2
    return sg.sum(sg.sqrt(1 + slopes))


def finite_elements(u):
    """The energy of a bar of elements that share nodes."""
    left, right = u[np.arange(11)], u[np.arange(1, 12)]
    return sg.sum((right - left) ** 2 / 2 + (left + right) ** 4 / 16)


def state_space(z):
    """Minus the log-likelihood of states that follow each other, and are seen with noise."""
    states = sg.reshape(z, (6, 3))
    step = states[1:] - sg.tanh(states[:-1] @ np.array([[1.0, 0.2, 0], [0, 1, 0], [0.1, 0, 1]]))
    return sg.sum(step**2) + sg.sum((states - 1) ** 2)


def rosenbrock(x):
    return sg.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def burgers(u):
    return -u * (u - sg.roll(u, 1)) + 0.1 * (sg.roll(u, 1) - 2 * u + sg.roll(u, -1))


# Of each the shape of what is differentiated by, the entries and the colours.
PROBLEMS = [
    (chain_of_masses, 20, 48, 3),
    (lambda x: (3 - 2 * x) * x - padded(x)[:-2] - 2 * padded(x)[2:] + 1, 20, 58, 3),
    (broyden_banded, 20, 140, 13),
    (lambda u: u - 0.1 * (padded(u)[2:] - 2 * u + padded(u)[:-2]) ** 3, 20, 58, 3),
    (lambda u: 0.1 * laplacian(u) + u**3, (5, 4), 82, 6),
    (lambda u: laplacian(u) + 2 * sg.exp(u), (5, 4), 82, 6),
    (burgers, 20, 60, 5),
    (brusselator, 20, 80, 6),
    (lambda u: LAPLACE @ u + sg.sin(u), 20, 58, 3),
    (bundle_adjustment, 6 * CAMERAS + 3 * POINTS, 128, 6),
    (lambda x: sg.concat([x[:1] * x[1:], sg.sum(x**2, keepdims=True)]), 20, 58, 20),
    (boundary_value, 20, 58, 3),
    (powell_singular, 20, 40, 2),
    (collocation, 24, 70, 4),
    (lambda x: (sg.roll(x, -1) - sg.roll(x, 2)) * sg.roll(x, 1) - x + 8, 20, 80, 4),
    (power_flow, 12, 36, 4),
    (lambda x: 0.3 + sg.sin(sg.roll(x, 1) - x) + sg.sin(sg.roll(x, -1) - x), 20, 60, 5),
    (lambda x: sg.reshape(sg.sum(sg.reshape(x, (5, 4)) ** 2, axis=1) * x[::4], -1), 20, 20, 1),
]  # fmt: skip
ENERGIES = [
    (rosenbrock, 20, 58, 3), (minimal_surface, (4, 4), 82, 8), (finite_elements, 12, 34, 3),
    (state_space, 18, 88, 8), (lambda x: sg.sum(x[1:] * x[0] ** 2 + x[1:] ** 3), 20, 58, 20),
]  # fmt: skip


def compared(dense, sparse, x, entries, colours):
    at = np.random.default_rng(0).uniform(0.2, 1.2, x.shape)
    wanted, found = evaluate([dense, sparse.todense()], {x: at})
    np.testing.assert_allclose(found, np.reshape(wanted, found.shape), rtol=1e-10, atol=1e-12)
    ones = np.ones(sparse.nnz, bool)
    parts = (ones, sparse.indices.array, sparse.indptr.array)
    pattern = scipy.sparse.csr_array(parts, shape=sparse.shape)
    passes = min(coloured(p).max() for p in (pattern, pattern.T.tocsr())) + 1
    assert (sparse.nnz, passes) == (entries, colours)


@pytest.mark.parametrize(("f", "shape", "entries", "colours"), PROBLEMS)
def test_jacobians(f, shape, entries, colours):
    x = sg.placeholder("x", shape)
    y = f(x)
    compared(sg.jacobian(y, x), sg.jacobian(y, x, sparse=True), x, entries, colours)


@pytest.mark.parametrize(("f", "shape", "entries", "colours"), ENERGIES)
def test_hessians(f, shape, entries, colours):
    x = sg.placeholder("x", shape)
    y = f(x)
    compared(sg.hessian(y, x), sg.hessian(y, x, sparse=True), x, entries, colours)


def test_what_is_linear_is_computed_when_the_derivative_is_made():
    x = sg.placeholder("x", 10_000)
    grid = sg.reshape(x, (100, 100))
    linear, bent = (sg.reshape(f(grid), (10_000,)) for f in (laplacian, lambda u: u**3))
    at = np.random.default_rng(0).standard_normal(10_000)
    program = sg.compile([x], sg.jacobian(linear, x, sparse=True))
    found = program(at)
    assert "add(" not in program.source
    close(found @ at, evaluate([linear], {x: at})[0])
    found.data[:] = 0  # the caller's own
    close(program(at) @ at, evaluate([linear], {x: at})[0])
    both = sg.compile([x], sg.jacobian(linear + bent, x, sparse=True))
    close(both(at).data, (program(at) + scipy.sparse.diags_array(3 * at**2)).tocsr().data)
    assert both.source.split("def step")[1].count("add(") == 1
