"""Taylor mode against derivatives of derivatives, and against mpmath."""

import mpmath
import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import GradientError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.op import POSITIVE, REGISTRY
from symgrad.ir.walk import topological
from tests.helpers import generator, sample
from tests.test_every_op import OPS, has_cases, is_smooth, trials

TOLERANCE = 1e-9
POINT = mpmath.mpf("0.3")


def nested(y, wrt, velocities, accelerations, order):
    """Derivatives along a curve, one after the other: d/dt f(x, v) = f_x v + f_v a."""
    found = [y]
    for _ in range(order):
        moves = [*velocities, *accelerations]
        found.append(sg.jvp(found[-1], [*wrt, *velocities], moves, disconnected="zero"))
    return found


def differ(found, expected):
    """Whether it differs where a finite number is expected."""
    there = np.isfinite(expected)
    scale = np.max(np.abs(expected[there]), initial=1e-3)
    return not np.allclose(found[there], expected[there], rtol=0, atol=TOLERANCE * scale)


def away(y, wrt, feeds, order=3):
    """The degrees at which Taylor mode differs from nested tangents, along a curve that bends."""
    rng = generator(y.op.name)
    velocities = [sg.placeholder(f"v{i}", x.shape, x.dtype) for i, x in enumerate(wrt)]
    first, second = ([rng.standard_normal(x.shape) for x in wrt] for _ in range(2))
    found = sg.jet(y, wrt, order, series=[velocities, second], disconnected="zero")
    expected = nested(y, wrt, velocities, second, order)
    feeds = feeds | dict(zip(velocities, first, strict=True))
    pairs = zip(evaluate(found, feeds), evaluate(expected, feeds), strict=True)
    return [k for k, (a, b) in enumerate(pairs) if differ(a, b)]


def test_every_op_has_the_derivatives_of_nested_tangents():
    wrong, tried = {}, 0
    for op in (o for o in OPS if o.jvp is not None and is_smooth(o) and o.name != "clip_gradient"):
        for trial in trials(op, "float64"):
            held = set(map(id, trial.held))
            wrt = [x for x in trial.xs if x.tensor.is_float and id(x) not in held]
            if trial.smooth_results and wrt and all(a.size for a in trial.arrays):
                feeds = dict(zip(trial.xs, trial.arrays, strict=True))
                tried += 1
                if found := away(trial.smooth_results[0], wrt, feeds):
                    wrong[op.name] = found
                break
    assert wrong == {}
    assert tried > 120


def test_ops_that_are_bilinear_are_linear_in_each_operand():
    ops = [op for op in REGISTRY.every().values() if op.bilinear]
    assert len(ops) > 6
    for op in filter(has_cases, ops):
        for trial in trials(op, "float64"):
            a, b = (np.asarray(v) for v in trial.arrays)
            once, twice = trial.run(a, b)[0], trial.run(2 * a, b)[0]
            assert not differ(trial.run(3 * a, 2 * b)[0], 2 * (once + twice))


def test_random_graphs_have_the_derivatives_of_nested_tangents():
    for seed in range(25):
        rng = np.random.default_rng(seed)
        inputs, (loss, *_) = sg.testing.random_graph(rng, 8, ["float64", "bool", "int64"])
        wrt = [x for x in inputs if x.dtype == "float64"]
        feeds = {x: sample(rng, x.shape, x.dtype, POSITIVE) for x in inputs}
        if "clip_gradient" not in {n.op.name for n in topological([loss])}:  # has no forward mode
            assert not away(loss, wrt, feeds, order=2), seed


CURVES = {
    "quotient": (
        lambda x: sg.exp(sg.sin(x) * sg.tanh(x)) / (1 + x**2),
        lambda x: mpmath.exp(mpmath.sin(x) * mpmath.tanh(x)) / (1 + x**2),
    ),
    "roots": (lambda x: sg.sqrt(1 + x) * sg.cbrt(x), lambda x: mpmath.sqrt(1 + x) * mpmath.cbrt(x)),
    "logarithm": (lambda x: sg.log(2 + sg.cos(x)), lambda x: mpmath.log(2 + mpmath.cos(x))),
    "power": (lambda x: x**2.5 + (1 + x) ** 3, lambda x: x**2.5 + (1 + x) ** 3),
    "error function": (sg.special.erf, mpmath.erf),
    "arcs": (lambda x: sg.asin(x) * sg.atan(x), lambda x: mpmath.asin(x) * mpmath.atan(x)),
}


@pytest.mark.parametrize("name", CURVES)
def test_ten_derivatives_are_those_of_mpmath(name):
    ours, theirs = CURVES[name]
    x = sg.placeholder("x", ())
    found = sg.compile([x], sg.jet(ours(x), x, 10))(float(POINT))
    with mpmath.workdps(60):
        expected = [float(mpmath.diff(theirs, mpmath.mpf(float(POINT)), k)) for k in range(11)]
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_derivatives_of_an_exponential_that_vanishes_are_0():
    for dtype, far in (("float32", 1e8), ("float64", 1e70)):
        x = sg.placeholder("x", (), dtype)
        assert not np.any(evaluate(sg.jet(sg.exp(-x * x), x, 5), {x: np.dtype(dtype).type(far)}))


def test_a_fifth_derivative_takes_a_fraction_of_the_steps_of_nested_gradients():
    x = sg.placeholder("x", ())
    y = CURVES["quotient"][0](x)
    nested_steps = y
    for _ in range(5):
        nested_steps = sg.grad(nested_steps, x)
    counts = [len(topological([d])) for d in (sg.jet(y, x, 5)[5], nested_steps)]
    assert counts[0] * 6 < counts[1]


def test_the_cost_grows_with_the_nodes_and_with_the_square_of_the_order():
    def count(nodes, order):
        x = y = sg.placeholder("x", ())
        for _ in range(nodes):
            y = sg.tanh(y * 1.1)
        return len(topological([sg.jet(y, x, order)[order]]))

    assert count(40, 4) <= 2.1 * count(20, 4)
    assert count(20, 12) <= 4.5 * count(20, 6)
    assert count(1200, 2) > 1200  # deeper than Python's stack


def test_directions_and_curves():
    x = sg.placeholder("x", 3)
    w = sg.variable("w", np.ones((3, 3)))
    y = sg.sum(sg.sin(w @ x))
    v = np.array([1.0, -2.0, 0.5])
    second = sg.jet(y, x, 2, series=[v])[2]
    expected = sg.sum(v * sg.hvp(y, x, v))
    at = {x: np.array([0.1, 0.2, 0.3])}
    np.testing.assert_allclose(*evaluate([second, expected], at), rtol=1e-12)
    both = sg.jet({"y": y, "x": x}, [w, x], 3)
    assert both["x"][0] is x
    assert [d.shape for d in both["y"]] == [()] * 4
    assert [evaluate([d], at)[0].tolist() for d in both["x"][1:]] == [[1] * 3, [0] * 3, [0] * 3]


def test_derivatives_pass_through_loops_choices_and_functions_of_ones_own():
    class Cube(sg.Function):
        def forward(self, x):
            self.save_for_backward(x)
            return x * x * x

        def backward(self, g):
            (x,) = self.saved_tensors
            return g * 3 * x * x

        def jvp(self, t):
            (x,) = self.saved_tensors
            return t * 3 * x * x

    x = sg.placeholder("x", ())
    grown = sg.fori(5, lambda i, y: y * x, x)
    chosen = sg.where(x > 0, grown, sg.exp(x))
    found = evaluate(sg.jet([chosen, Cube()(x)], x, 3)[0], {x: np.float64(1.5)})
    np.testing.assert_allclose(found, [1.5**6, 6 * 1.5**5, 30 * 1.5**4, 120 * 1.5**3])
    cube = evaluate(sg.jet(Cube()(x), x, 3), {x: np.float64(1.5)})
    np.testing.assert_allclose(cube, [1.5**3, 3 * 1.5**2, 9, 6])


def test_sides_of_a_kink():
    x = sg.placeholder("x", ())
    y = sg.relu(x) ** 3 - sg.relu(-x) ** 2
    at = {x: np.float64(0)}
    right, left = (sg.jet(y, x, 3, kinks=side) for side in ("right", "left"))
    assert evaluate(right, at) == [0, 0, 0, 6]
    assert evaluate(left, at) == [0, 0, -2, 0]


def test_derivatives_are_nodes_that_are_differentiated_again():
    x = sg.placeholder("x", ("N",))
    third = sg.jet(sg.sin(x), x, 3)[3]
    fourth = sg.compile([x], sg.grad(sg.sum(third), x))
    at = np.linspace(-1, 1, 5)
    np.testing.assert_allclose(fourth(at), np.sin(at), rtol=1e-12)


def test_what_is_wrong_is_told():
    x, y = sg.placeholder("x", 3), sg.placeholder("y", 3)
    with pytest.raises(GradientError, match="0 or more, not -1"):
        sg.jet(sg.sin(x), x, -1)
    with pytest.raises(GradientError, match="give 1 to 2"):
        sg.jet(sg.sin(x), x, 2, series=[np.ones(3)] * 3)
    with pytest.raises(GradientError, match="has its shape"):
        sg.jet(sg.sin(x), x, 2, series=[np.ones(4)])
    with pytest.raises(GradientError, match="does not depend"):
        sg.jet(sg.sin(x), y, 2)
    with pytest.raises(GradientError, match="order"):
        sg.jet(sg.sin(x), x, 1.5)
    zeros = sg.jet(sg.sin(x), y, 2, disconnected="zero")
    assert [n.shape for n in zeros] == [(3,)] * 3
