"""What is only joined is written where it comes to lie; gradients of slices are joined."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate

x = sg.placeholder("x", (4, 6))
w = sg.placeholder("w", (6, 6))
FEEDS = {n: np.random.default_rng(1).uniform(0.5, 1.5, n.shape) for n in (x, w)}


def steps_of(*outputs):
    """The names of the steps of a program, which computes what the graph does, twice."""
    program = sg.compile([x, w], list(outputs), backend="numpy")
    for backend in (program, sg.compile([x, w], list(outputs), backend="reference")):
        for _ in range(2):
            found = backend(*FEEDS.values())
            for a, b in zip(found, evaluate(outputs, FEEDS), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    return [s.name for s in program.plan.steps]


def test_parts_are_written_in_place():
    a, b = sg.exp(x), sg.tanh(x @ w)
    assert steps_of(sg.concat([a, b], axis=1) @ sg.concat([w, w])).count("concat") == 1
    assert "concat" not in steps_of(sg.sum(sg.concat([a, b], axis=1) ** 2, axis=0))
    assert "copy" not in steps_of(sg.sum(sg.stack([a, b * 2, sg.sin(a)]) ** 2, axis=0))


def test_what_others_read_or_what_is_given_is_copied():
    a = sg.exp(x)
    for outputs in (
        [sg.concat([a, a], axis=1) * 2],
        [sg.concat([x, a], axis=1) * 2, a],
        [sg.concat([a, sg.sin(a)], axis=1) * 2, sg.cos(a)],
        [sg.concat([a.T, sg.cos(x).T], axis=0) * 2],
        [sg.concat([sg.reshape(a, (6, 4)), sg.reshape(sg.sin(x), (6, 4))], axis=1) * 2],
        [sg.concat([sg.exp(sg.concat([a, x])), sg.concat([sg.sin(x), sg.exp(a)])], axis=1) * 2],
        [sg.concat([a, sg.sin(x)], axis=1), sg.concat([sg.cos(x), a])],
        [sg.concat([sg.sum(a, axis=0), sg.sum(a, axis=1), sg.sum(x, axis=0)]) * 2],
        [sg.concat([sg.cumulative_sum(a, axis=1), sg.sort(a, axis=1)], axis=1) * 2],
    ):
        steps_of(*outputs)


@pytest.mark.parametrize("grade", ["values", "rounding"])
def test_gradients_of_slices_are_joined(grade):
    rows = [sg.exp(x[:, i : i + 2] * (i + 1)) for i in (2, 0, 4)]
    loss = sum(sg.sum(r**2) for r in rows)
    program = sg.compile([x], sg.grad(loss, x), exact=grade)
    assert "slices_side_by_side" in program.trace.rules()
    assert not {"place", "put"} & {s.name for s in program.plan.steps}
    np.testing.assert_allclose(program(FEEDS[x]), evaluate([sg.grad(loss, x)], FEEDS)[0])
    (unrolled,) = (sg.grad(sum(sg.sum(sg.sin(x[t]) * t) for t in range(4)), x),)
    program = sg.compile([x], unrolled)
    assert not {"place", "put", "add"} & {s.name for s in program.plan.steps}
    np.testing.assert_allclose(program(FEEDS[x]), np.cos(FEEDS[x]) * np.arange(4)[:, None])


def test_slices_with_gaps_overlaps_and_other_terms():
    a, b, c = sg.exp(x[:, :2]), sg.sin(x[:, 3:5]), sg.cos(x[:, 1:4])
    for loss in (
        sg.sum(a * 2) + sg.sum(b),
        sg.sum(a) + sg.sum(c) + sg.sum(b),
        sg.sum(a) + sg.sum(b * 2) + sg.sum(x**3),
        sg.sum(a) + sg.sum(b * 2) + sg.sum(x**3) + sg.sum(x @ w),
        sg.sum(a) + sg.sum(sg.exp(x[1])) + sg.sum(sg.exp(x[2])),
    ):
        steps_of(sg.grad(loss, x))
