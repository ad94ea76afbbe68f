"""What is computed along an axis of a few elements is computed for each of them apart."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.dims import guess
from symgrad.rewrite.rule import Exact

N, M = 150, 90


def points(k):
    return sg.placeholder("x", (N, k), "float64"), sg.placeholder("y", (M, k), "float64")


def largest(graph):
    return max(guess(n.tensor.size) for n in graph.nodes if not isinstance(n.type, tuple))


def stress(x, y):
    apart = x[:, None] - y
    return sg.sum(sg.sqrt(sg.sum(apart * apart, axis=-1) + 0.1))


def tight(x, y):
    """With a mask, a sum over all, one that keeps its axes, and numbers of the axis itself."""
    apart = sg.abs(x[:, None] - y) * np.array([1.0, 2.0, 0.5])
    near = sg.where(apart < 1, apart, 0.1)
    scaled = near / (sg.sum(near, axis=2, keepdims=True) + 1)
    return sg.sum(scaled**2) + sg.sum(sg.sum(scaled, axis=(0, 1), keepdims=True) ** 3)


@pytest.mark.parametrize("loss", [stress, tight])
@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_no_array_has_the_short_axis_and_the_numbers_are_the_same(loss, backend):
    x, y = points(3)
    value = loss(x, y)
    outputs = [value, *sg.grad(value, [x, y])]
    raw = sg.compile([x, y], outputs, passes=())
    program = sg.compile([x, y], outputs, backend=backend)
    if backend == "numpy":
        assert largest(raw.graph) == N * M * 3
        inner = [n.inner_graph for n in program.graph.nodes if n.inner_graph]
        assert max(map(largest, [program.graph, *inner])) == N * M
        assert any(fired.rule.name == "short_axis_apart" for fired in program.trace.fired)
    rng = np.random.default_rng(0)
    arrays = rng.standard_normal((N, 3)), rng.standard_normal((M, 3))
    for a, b in zip(program(*arrays), raw(*arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12 * np.abs(b).max())


def squares(x):
    return sg.sum(x * x, axis=-1)


@pytest.mark.parametrize(
    ("build", "exact"),
    [
        (lambda x, y: stress(x, y), Exact.VALUES),  # sums would round otherwise
        (lambda x, y: x[:, None] * y, Exact.ROUNDING),  # a result
        (lambda x, y: sg.max(x[:, None] * y, axis=2), Exact.ROUNDING),  # no sum
        (lambda x, y: sg.sum(sg.cumulative_sum(x[:, None] * y, axis=2)), Exact.ROUNDING),
        (lambda x, y: squares(sg.sort(x[:, None] * y, axis=0) - 1), Exact.ROUNDING),  # large
        (lambda x, y: squares(x[:20, None] - y[:20]), Exact.ROUNDING),  # small
    ],
)
def test_what_is_left_as_it_is(build, exact):
    x, y = points(3)
    program = sg.compile([x, y], build(x, y), exact=exact)
    assert not any(fired.rule.name == "short_axis_apart" for fired in program.trace.fired)


def test_longer_axes_are_left():
    x, y = points(5)
    program = sg.compile([x, y], stress(x, y))
    assert not any(fired.rule.name == "short_axis_apart" for fired in program.trace.fired)
