"""Products of matrices in tiles: with thin ones, and stack by stack."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.lowering import tiling
from symgrad.lowering.tiling import TileLoop


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Tiles of small arrays too."""
    monkeypatch.setattr(tiling, "LEAST_BYTES", 0)
    monkeypatch.setattr(tiling, "TILE_BYTES", 4096)


def logistic(n, m):
    x, y = sg.placeholder("x", (n, m)), sg.placeholder("y", (n,))
    w, b = sg.placeholder("w", (m,)), sg.placeholder("b", ())
    z = x @ w + b
    loss = sg.mean(sg.softplus(z) - y * z)
    return [x, y, w, b], [loss, *sg.grad(loss, [w, b])]


def attention(heads, n, m):
    q, k, v, c = (sg.placeholder(name, (heads, n, m)) for name in "qkvc")
    p = sg.softmax(q @ sg.matrix_transpose(k) / m**0.5, axis=-1)
    loss = sg.sum(p @ v * c)
    return [q, k, v, c], [loss, *sg.grad(loss, [q, k, v])]


@pytest.mark.parametrize(
    ("inputs", "outputs"), [logistic(1000, 5), logistic(1000, 1000 // 4), attention(6, 16, 4)]
)
@pytest.mark.parametrize("threads", [1, 3])
def test_one_group_with_its_products(inputs, outputs, threads):
    program = sg.compile(inputs, outputs, threads=threads)
    (step,) = [s for s in program.plan.steps if isinstance(s, TileLoop)]
    inner = [s.name for s in step.inner.steps]
    assert {"matmul", "matmul_tn"} & {*inner}
    assert not {"matmul", "matmul_tn"} & {s.name for s in program.plan.steps}
    rng = np.random.default_rng(0)
    fed = [rng.standard_normal(x.shape) for x in inputs]
    expected = sg.compile(inputs, outputs, passes=())(*fed)
    for a, b in zip(program(*fed), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("inputs", "outputs"), [logistic(1000, 5), attention(6, 16, 4)])
def test_threads_do_not_change_a_bit(inputs, outputs):
    rng = np.random.default_rng(0)
    fed = [rng.standard_normal(x.shape) for x in inputs]
    found = [sg.compile(inputs, outputs, threads=n)(*fed) for n in (1, 2, 8)]
    assert len({tuple(y.tobytes() for y in results) for results in found}) == 1


def test_as_many_rows_as_columns():
    """Rows are no columns, even if there are as many."""
    inputs, outputs = logistic(300, 300)
    rng = np.random.default_rng(0)
    fed = [rng.standard_normal(x.shape) for x in inputs]
    expected = sg.compile(inputs, outputs, passes=())(*fed)
    for a, b in zip(sg.compile(inputs, outputs)(*fed), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_bytes_are_kept_where_they_are_asked_for():
    """BLAS may round another number of rows otherwise."""
    inputs, outputs = logistic(1000, 5)
    program = sg.compile(inputs, outputs, exact="bits")
    names = {s.name for s in program.plan.steps}
    assert {"matmul"} <= names


STACKS = [
    ((7, 1, 3), (3, 2)), ((1, 5, 5), (5, 2)), ((1, 5, 5), (3, 5, 2)), ((5, 5), (5, 5)),
    ((5, 5), (3, 5, 2)), ((2, 3, 4, 5), (5, 2)), ((2, 3, 4, 5), (3, 5, 2)),
    ((2, 3, 4, 5), (2, 1, 5, 2)), ((300, 5), (2, 5, 3)), ((4, 300, 5), (5, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "other"), STACKS)
def test_stacks_that_broadcast(shape, other):
    x, w = sg.placeholder("x", shape), sg.placeholder("w", other)
    y = sg.tanh(sg.exp(x) @ w) * 2
    outputs = [y, *sg.grad(sg.sum(y * y), [x, w])]
    rng = np.random.default_rng(0)
    fed = [rng.standard_normal(v.shape) for v in (x, w)]
    expected = sg.compile([x, w], outputs, passes=())(*fed)
    for a, b in zip(sg.compile([x, w], outputs)(*fed), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
