"""Programs with loops: tiles and threads in bodies, updates, what is kept, errors, budgets."""

import numpy as np
import pytest

import symgrad as sg

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 2}, {"backend": "reference"}])
def test_large_bodies_run_in_tiles(options):
    x = sg.placeholder("x", (3, 1500, 500))
    w = sg.placeholder("w", (500,))

    def step(c, row):
        c = sg.exp(sg.tanh(c * row) + w) * row * 0.1
        return c, sg.sum(c, axis=1)

    last, ys = sg.scan(step, x[0], x)
    outputs = [last, ys, *sg.grad(sg.sum(last) + sg.sum(ys**2), [x, w])]
    arrays = RNG.standard_normal(x.shape), RNG.standard_normal(w.shape)
    program = sg.compile([x, w], outputs, **options)
    inside = [s for step in program.plan.steps if step.inner for s in step.inner.steps]
    assert any(s.name == "tiled" for s in inside)
    expected = sg.compile([x, w], outputs, passes=())(*arrays)
    for a, b in zip(program(*arrays), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_updates_are_computed_in_loops(length):
    """A carry changes places with the array of a variable's next value."""
    start = RNG.standard_normal((3, 3))
    w, n = sg.variable("w", start), sg.variable("n", np.array(0))
    x = sg.placeholder("x", ("T", 3))
    after, _ = sg.scan(lambda c, row: (sg.tanh(c @ c) * row, None), w, x)
    count = sg.fori("T", lambda i, c: c + i, n)
    program = sg.compile([x], sg.sum(w), updates={w: after, n: count})
    expected, total = start, 0
    for _ in range(3):
        rows = RNG.standard_normal((length, 3))
        program(rows)
        for i, row in enumerate(rows):
            expected, total = np.tanh(expected @ expected) * row, total + i
        np.testing.assert_allclose(w.value, expected, rtol=1e-12, atol=1e-15)
        assert n.value == total


def test_an_error_in_a_step_leaves_variables_whole():
    w = sg.variable("w", np.eye(2))
    x = sg.placeholder("x", ("T", 2, 2))
    after, _ = sg.scan(lambda c, m: (c @ sg.linalg.inv(m), None), w, x)
    for backend in ("numpy", "reference"):
        program = sg.compile([x], [], updates={w: after}, backend=backend)
        with pytest.raises(sg.LinAlgError, match=r"(?s)inv.*test_programs\.py"):
            program(np.stack([np.eye(2) * 2, np.zeros((2, 2))]))
        np.testing.assert_array_equal(w.value, np.eye(2))
    program(np.eye(2)[None] * 2)
    np.testing.assert_array_equal(w.value, np.eye(2) / 2)


def test_what_depends_on_variables_only_is_kept():
    w = sg.variable("w", RNG.standard_normal((4, 4)))
    x = sg.placeholder("x", (4,))
    program = sg.compile([x], sg.fori(5, lambda i, m: m @ w, sg.eye(4)) @ x)
    expected = np.linalg.matrix_power(w.value, 5) @ np.ones(4)
    for _ in range(2):
        np.testing.assert_allclose(program(np.ones(4)), expected, rtol=1e-12, atol=1e-13)


def test_a_budget_that_loops_do_not_fit_is_refused():
    x = sg.placeholder("x", (50, 100))
    _, ys = sg.scan(lambda c, row: (sg.tanh(c * row), c), x[0], x)
    grad = sg.grad(sg.sum(ys**2), x)
    roomy = sg.compile([x], grad, memory_budget=10**7)
    array = RNG.standard_normal(x.shape)
    np.testing.assert_allclose(roomy(array), sg.compile([x], grad)(array), rtol=1e-12)
    with pytest.raises(sg.GraphError, match="memory_budget"):
        sg.compile([x], grad, memory_budget=1000)
