"""The patterns of Jacobians: of no op is anything missing, and known zeros are left out."""

import numpy as np
import pytest
import scipy.sparse

import symgrad as sg
from symgrad.autodiff.colouring import coloured
from symgrad.autodiff.reverse import is_differentiable
from symgrad.autodiff.sparsity import sparsity
from symgrad.ir.errors import GradientError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.walk import topological
from tests.sparse.campaign import check
from tests.test_every_op import OPS, trials

DIFFERENTIABLE = [op for op in OPS if op.vjp is not None and not op.piecewise_constant]


def compared(trial):
    """Hold the pattern by each operand to the Jacobian that is computed."""
    for y in trial.smooth_results:
        for x in filter(is_differentiable, trial.xs):
            if x in {*trial.held} or y.size * x.size > 400:
                continue
            pattern = sparsity(y, x).toarray()
            try:
                dense = sg.jacobian(y, x, disconnected="zero")
            except GradientError:
                continue
            feeds = dict(zip(trial.xs, trial.arrays, strict=True))
            (found,) = evaluate([dense], feeds)
            missing = (np.reshape(found, pattern.shape) != 0) & ~pattern
            assert not missing.any(), f"{trial.node.op.name} {trial.attrs}"


@pytest.mark.parametrize("part", range(8))
def test_a_pattern_has_every_element_that_is_not_zero(part):
    for op in DIFFERENTIABLE[part::8]:
        for trial in trials(op, "float64"):
            compared(trial)


X = sg.placeholder("x", 6)
GRID = sg.placeholder("grid", (3, 4))
CROSS = np.array([[0, 1.0, 0], [1, -4, 1], [0, 1, 0]])[None, None]
STENCIL = sg.nn.conv2d(sg.reshape(GRID, (1, 1, 3, 4)), CROSS, padding=1)
B = scipy.sparse.diags_array([1.0, 2.0], offsets=[0, 1], shape=(5, 6))


@pytest.mark.parametrize(
    ("y", "entries"),
    [
        (X[1:] * X[:-1], 10),
        (sg.roll(X, 2) * X, 12),
        (X[[0, 0, 5]], 3),
        (sg.pad(X, 2), 6),
        (sg.zeros(4).at[[1, 2, 1]].add(X[:3]), 3),
        (X.at[1:3].set(0), 4),
        (sg.concat([X, X[:2] ** 2]), 8),
        (sg.sum(sg.reshape(X, (2, 3)) ** 2, axis=1), 6),
        (sg.cumulative_sum(sg.reshape(X, (3, 2)), axis=0), 18),
        (np.array([0.0, 1, 0, 2, 0, 3]) * X, 3),
        (B @ X, 10),
        (B.toarray() @ X, 10),
        (sg.reshape(X, (3, 2)) @ np.ones((2, 2)), 12),
        (sg.reshape(X, (3, 2)) @ np.eye(2), 6),
        (sg.stop_gradient(X) * X[::-1], 6),
        (sg.sum(np.lib.stride_tricks.sliding_window_view(X, 3), axis=1), 12),
        (sg.linalg.inv(sg.reshape(X[:4], (1, 2, 2))), 16),
        (sg.floor(X) + 0.0, 0),
        (X / sg.sum(X), 36),
        (np.convolve(X, [1.0, 0, 2], "valid"), 8),
        (STENCIL, 5 * 12 - 2 * (3 + 4)),
        (sg.grad(sg.sum(sg.sin(STENCIL)), GRID), 90),
    ],
)
def test_elements_are_followed(y, entries):
    x = next(n for n in topological([y]) if n.name)
    assert sparsity(y, x).nnz == entries


def test_columns_of_one_colour_share_no_row():
    rng = np.random.default_rng(0)
    for density in (0.02, 0.1, 0.5):
        pattern = scipy.sparse.random_array((30, 40), density=density, rng=rng).tocsr() != 0
        colours = coloured(pattern.tocsr())
        dense = pattern.toarray()
        assert (colours >= 0).tolist() == dense.any(0).tolist()
        for colour in range(colours.max() + 1):
            assert (dense[:, colours == colour].sum(1) <= 1).all()
    band = scipy.sparse.diags_array(np.ones((3, 50)), offsets=[-1, 0, 1], shape=(50, 50)) != 0
    assert coloured(band.tocsr()).max() == 2


@pytest.mark.parametrize("part", range(4))
def test_random_graphs_have_the_derivatives_that_dense_ones_are(part):
    for seed in range(part, 40, 4):
        check(seed)


def test_a_size_that_is_a_name_is_refused():
    x = sg.placeholder("x", "N")
    with pytest.raises(GradientError, match=r"the size of N is not known yet.*write ints"):
        sg.jacobian(x * x, x, sparse=True)


def test_a_dense_pattern_of_many_elements_is_refused_with_its_line():
    x = sg.placeholder("x", 20_000)
    with pytest.raises(GradientError, match=r"divide.*test_patterns.*little is sparse"):
        sg.jacobian(x / sg.sum(x), x, sparse=True)


def test_what_is_disconnected_is_refused_or_zero():
    x, y = sg.placeholder("x", 3), sg.placeholder("y", 3)
    with pytest.raises(GradientError, match="does not depend"):
        sg.jacobian(y * y, x, sparse=True)
    j = sg.jacobian(y * y, x, sparse=True, disconnected="zero")
    assert (j.nnz, j.shape) == (0, (3, 3))
    assert sg.compile([y], j)(np.ones(3)).nnz == 0


def test_what_has_a_column_for_itself_needs_no_row():
    x = sg.placeholder("x", 40)
    arrow = sg.sum(sg.exp(x[1:] * x[0]) + x[1:] ** 4) + sg.sum(sg.sin(x[1:-1] * x[2:])) * x[0]
    h = sg.hessian(arrow, x, sparse=True)
    assert h.nnz == 40 * 2 - 1 + 39 + 38 * 2
    nodes = sg.Graph([h.values], [x]).nodes
    assert (4, 40) in {n.shape for n in nodes}  # one vector is for the first variable
    at = np.linspace(0.2, 0.9, 40)
    found, dense = sg.compile([x], [h, sg.hessian(arrow, x)])(at)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-12)
    held = sg.sum(sg.stop_gradient(x[0]) * x**3)  # no symmetric matrix
    found, dense = sg.compile([x], [sg.hessian(held, x, sparse=kind) for kind in (True, False)])(at)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-12)


@pytest.mark.parametrize("kinks", ["zero", "left", "right", "split"])
def test_hessians_at_kinks_are_those_of_dense_ones(kinks):
    x, y = sg.placeholder("x", 5), sg.placeholder("y", 3)
    loss = sg.sum(sg.relu(x) ** 2 * sg.roll(x, 1)) + sg.sum(abs(y) ** 3 * x[:3] + y * sg.roll(y, 1))
    pair = [sg.hessian(loss, {"x": x, "y": y}, kinks=kinks, sparse=kind) for kind in (False, True)]
    dense, found = sg.compile([x, y], pair)(np.array([0.0, 1, -1, 0, 2]), np.array([0.0, 1, 0]))
    for i, j in ("xx", "xy", "yx", "yy"):
        np.testing.assert_allclose(found[i][j].toarray(), dense[i][j], rtol=1e-12)


def test_a_hessian_by_complex_numbers_is_refused_as_the_dense_one_is():
    z = sg.placeholder("z", 3, "complex128")
    for sparse in (False, True):
        with pytest.raises(GradientError, match="has no complex derivative"):
            sg.hessian(sg.sum(abs(z) ** 4), z, sparse=sparse)
