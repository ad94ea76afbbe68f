"""Higher derivatives where a factor of a slope is 0, or where a slope is a quotient of zeros."""

import numpy as np

import symgrad as sg
from symgrad.ir.evaluate import evaluate
from tests.helpers import each

t = sg.placeholder("t", 3)
STEP = 1e-3
SMOOTH = {
    "asin": (sg.asin(t), 3),
    "atanh": (sg.atanh(t), 3),
    "logit": (sg.special.logit(0.5 + t), 3),
    "a quotient by a sum of squares": (1 / (1 + t * t + sg.sin(t) ** 2), 3),
    "a root of a sum of squares": (sg.sqrt(2 + t * t - sg.cos(t)), 3),
    "a power of exponent 0": ((2 + t) ** (0.7 * t), 3),
    "a power of exponent 1": ((2 + t) ** (1 + t), 3),
    "j0": (sg.special.j0(t), 4),
    "i0": (sg.special.i0(t), 4),
    "i1": (sg.special.i1(1 - t), 2),
    "Student's at the middle": (sg.special.stdtr(3 + t, 0.7 * t), 2),
    "Student's where t is a root of df": (sg.special.stdtr(1 + t, 1 + t), 2),
    "Student's quantile": (sg.special.stdtrit(3 + t, 0.5 + 0.2 * t), 2),
}


def nested(y, order, step):
    """The derivatives up to an order, each of the one before."""
    found = [y]
    for _ in range(order):
        found.append(step(found[-1]))
    return found


@each("name", SMOOTH)
def test_derivatives_at_a_point_are_those_beside_it(name):
    y, order = SMOOTH[name]
    ways = {
        "jet": sg.jet(y, t, order),
        "tangents": nested(y, order, lambda d: sg.jvp(d, t, sg.ones(3))),
        "gradients": nested(y, order, lambda d: sg.grad(sg.sum(d), t)),
    }
    at = {t: np.array([-STEP, 0, STEP])}
    for way, derivatives in ways.items():
        for k, found in enumerate(evaluate(derivatives, at)):
            beside = (found[0] + found[2]) / 2
            scale = max(1, abs(beside), abs(found[2] - found[0]) / STEP)
            assert abs(found[1] - beside) < 1e-3 * scale, (way, k, found)


def test_the_slope_of_a_power_by_its_base_varies_with_an_exponent_of_0():
    a, b = sg.placeholder("a", ()), sg.placeholder("b", ())
    (_, mixed), (other, _) = sg.hessian(a**b, [a, b])
    at = {a: np.float64(4), b: np.float64(0)}
    assert evaluate([mixed, other], at) == [0.25, 0.25]
