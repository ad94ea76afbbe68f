"""Every kink at which systems differ, under every choice: one row a function, one test a choice."""

from functools import cache

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate

INF = np.inf


def squared_norm(v):
    return sg.vector_norm(v) ** 2


def of_norm_squared(v):
    """The gradient of the squared norm, so that a row of it is of the Hessian."""
    return sg.grad(squared_norm(v), v, disconnected="zero")[0]


# Where the function is taken, and its gradients by "zero", from the left and from the right. What
# +1 for every element leaves tied goes by a second direction: of two nodes the first grows more,
# of two elements of one node the second.
ROWS = {
    "relu": (sg.relu, [0.0], 0, 0, 1),
    "maximum(x, 0)": (lambda x: sg.maximum(x, 0), [0.0], 0, 0, 1),
    "maximum(0, x)": (lambda x: sg.maximum(0, x), [0.0], 0, 0, 1),
    "maximum(x, y)": (sg.maximum, [1.0, 1.0], [0.5, 0.5], [0, 1], [1, 0]),
    "fmax(x, y)": (sg.fmax, [1.0, 1.0], [0.5, 0.5], [0, 1], [1, 0]),
    "where(x > 0, x, 0)": (lambda x: sg.where(x > 0, x, 0), [0.0], 0, 0, 1),
    "clip at 0": (lambda x: sg.clip(x, 0, 1), [0.0], 0, 0, 1),
    "clip at 1": (lambda x: sg.clip(x, 0, 1), [1.0], 0, 1, 0),
    "relu6 at 0": (sg.relu6, [0.0], 0, 0, 1),
    "relu6 at 6": (sg.relu6, [6.0], 0, 1, 0),
    "hard_tanh at -1": (sg.hard_tanh, [-1.0], 0, 0, 1),
    "hard_tanh at 1": (sg.hard_tanh, [1.0], 0, 1, 0),
    "leaky_relu": (lambda x: sg.leaky_relu(x, 0.1), [0.0], 0.1, 0.1, 1),
    "x * (x > 0)": (lambda x: x * (x > 0), [0.0], 0, 0, 1),
    "(x + |x|) / 2": (lambda x: (x + abs(x)) / 2, [0.0], 0, 0, 1),
    "abs": (sg.abs, [0.0], 0, -1, 1),
    "norm1": (lambda v: sg.vector_norm(v, ord=1), [[0.0, -2.0]], [0, -1], [-1, -1], [1, -1]),
    "norm2": (sg.vector_norm, [[0.0] * 4], [0] * 4, [-0.5] * 4, [0.5] * 4),
    "sqrt(sum(x * x))": (lambda v: sg.sqrt(sg.sum(v * v)), [[0.0] * 4], [0] * 4, [-0.5] * 4,
        [0.5] * 4),
    "norm2 squared": (squared_norm, [[0.0, 0.0]], [0, 0], [0, 0], [0, 0]),
    "its Hessian": (of_norm_squared, [[0.0, 0.0]], [2, 0], [2, 0], [2, 0]),
    "norm_inf": (lambda v: sg.vector_norm(v, ord=INF), [[2.0, -2.0]], [0.5, -0.5], [0, -1],
        [1, 0]),
    "max": (sg.max, [[2.0, 2.0]], [0.5, 0.5], [1, 0], [0, 1]),
    "max, which tie": (lambda v: sg.max(v * [1, 2]), [[0.0, 0.0]], [0.5, 1], [1, 0], [0, 2]),
    "sort": (lambda v: sg.sum(sg.sort(v) * [1, 2]), [[1.0, 1.0]], [1.5, 1.5], [2, 1], [1, 2]),
    "median": (sg.median, [[1.0, 1.0, 2.0]], [0.5, 0.5, 0], [1, 0, 0], [0, 1, 0]),
    "where(x > 0, sqrt(x), 0)": (lambda x: sg.where(x > 0, sg.sqrt(x), 0), [0.0], 0, 0, INF),
    "sqrt": (sg.sqrt, [0.0], INF, INF, INF),
    "x**0": (lambda x: x**0, [0.0], 0, 0, 0),
    "prod": (sg.prod, [[0.0, 2.0, 3.0]], [6, 0, 0], [6, 0, 0], [6, 0, 0]),
    "cumprod": (lambda v: sg.sum(sg.cumulative_prod(v)), [[0.0, 2.0, 0.0]], *([[3, 0, 0]] * 3)),
    "hypot": (lambda x, y: sg.hypot(3 * x, 4 * y), [0.0, 0.0], [0, 0], [-1.8, -3.2], [1.8, 3.2]),
    "atan2": (sg.atan2, [0.0, 0.0], [0, 0], [0, 0], [0, 0]),
    "xlogy": (sg.xlogy, [0.0, 0.0], [-INF, 0], [-INF, 0], [-INF, 0]),
    "std": (sg.std, [[1.0, 1.0]], [0, 0], [0.5, -0.5], [-0.5, 0.5]),
    "sinc": (sg.sinc, [0.0], 0, 0, 0),
    "softplus": (sg.softplus, [0.0], 0.5, 0.5, 0.5),
    "-minimum(-x, 0)": (lambda x: -sg.minimum(-x, 0), [0.0], 0, 0, 1),
    "relu(x) + relu(-x)": (lambda x: sg.relu(x) + sg.relu(-x), [0.0], 0, -1, 1),
    "sign(x) * x": (lambda x: sg.sign(x) * x, [0.0], 0, -1, 1),
    "relu(x) - .1 relu(-x)": (lambda x: sg.relu(x) - 0.1 * sg.relu(-x), [0.0], 0.1, 0.1, 1),
    "maximum(x, 2x)": (lambda x: sg.maximum(x, 2 * x), [0.0], 1.5, 1, 2),
    "relu of relus": (lambda x: sg.relu(sg.relu(x) - sg.relu(-x)), [0.0], 0, 0, 1),
    "abs(abs(x) - relu(x))": (lambda x: abs(abs(x) - sg.relu(x)), [0.0], 0, -1, 0),
    "sort([x, -2x])[1]": (lambda x: sg.sort(sg.stack([x, -2 * x]))[1], [0.0], -0.5, -2, 1),
    "relu(x) - relu(-x)": (lambda x: sg.relu(x) - sg.relu(-x), [0.0], 1, 1, 1),
    "maximum + minimum": (lambda x: sg.maximum(x, 0) + sg.minimum(x, 0), [0.0], 1, 1, 1),
}  # fmt: skip


@cache
def built():
    """For each row its inputs, its output and what is fed."""
    rows = {}
    for name, (function, at, *_) in ROWS.items():
        xs = [sg.placeholder(f"x{i}", np.shape(a)) for i, a in enumerate(at)]
        rows[name] = xs, function(*xs)
    return rows


def wanted(name, place):
    zero, left, right = (np.ravel(np.asarray(g, float)) for g in ROWS[name][2:])
    if place is None:
        return zero
    return right if place == 1 else left if place == 0 else (1 - place) * left + place * right


def along(xs, sign):
    """A direction by hand, and what decides the ties that it leaves."""
    return {x: sign * np.ones(x.shape) for x in xs}, "right" if sign > 0 else "left"


CHOICES = {
    "zero": (lambda xs: "zero", None),
    "left": (lambda xs: "left", 0),
    "right": (lambda xs: "right", 1),
    "split": (lambda xs: "split", 0.5),
    "a quarter": (lambda xs: 0.25, 0.25),
    "a direction": (lambda xs: along(xs, 1), 1),
    "and back": (lambda xs: along(xs, -1), 0),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_every_kink_under_every_choice(choice):
    kinks, place = CHOICES[choice]
    nodes, feeds = [], {}
    for name, (xs, y) in built().items():
        options = {"kinks": kinks(xs), "disconnected": "zero"}
        feeds |= {x: np.asarray(a) for x, a in zip(xs, ROWS[name][1], strict=True)}
        nodes += [sg.grad(y, xs, **options), sg.jacobian(y, xs, mode="forward", **options)]
    found = iter(evaluate([n for g in nodes for n in g], feeds))
    for name, (xs, _) in built().items():
        for mode in ("reverse", "forward"):
            g = np.concatenate([np.ravel(next(found)) for _ in xs])
            np.testing.assert_allclose(g, wanted(name, place), atol=1e-12, err_msg=f"{name} {mode}")


@pytest.mark.parametrize("choice", ["zero", "left", "right", "split"])
def test_what_flows_to_a_closed_branch_is_dropped_though_it_is_infinite(choice):
    x = sg.placeholder("x", ())
    closed = [sg.relu(x), sg.maximum(x, 0), sg.clip(x, 0, 1), x * (x > 0)]
    gradients = [sg.vjp(y, x, np.array(INF), kinks=choice) for y in closed]
    assert evaluate(gradients, {x: -1.0}) == [0, 0, 0, 0]
