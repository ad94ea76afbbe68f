"""Higher derivatives where a flow happens to be 0: it varies all the same."""

import numpy as np

import symgrad as sg
from tests.helpers import each

s = sg.placeholder("s", ())
x, w = sg.placeholder("x", 3), sg.placeholder("w", 3)

# Each function of s with its derivatives at 0, from the 0th on: flows of the odd ones are 0 there.
AT_ZERO = {
    "sqrt": (sg.sqrt(4 + s * s), [2, 0, 1 / 2, 0, -3 / 8]),
    "log": (sg.log(1 + s * s), [0, 0, 2, 0, -12]),
    "pow": ((1 + s * s) ** 1.5, [1, 0, 3, 0, 9]),
    "divide": (1 / (1 + s * s), [1, 0, -2, 0, 24]),
    "tan": (sg.tan(s * s), [0, 0, 2, 0, 0]),
    "cbrt": (sg.cbrt(8 + s * s), [2, 0, 1 / 6, 0, -1 / 12]),
    "hypot": (sg.hypot(s * s, 3.0), [3, 0, 0, 0, 4]),
    "xlogy": (sg.xlogy(s * s, 2 + s * s), [0, 0, 2 * np.log(2), 0, 12]),
    "asin": (sg.asin(s * s / 2), [0, 0, 1, 0, 0]),
    "norm": (sg.linalg.vector_norm(sg.stack([s * s, s, 1 + 0 * s])), [1, 0, 1, 0, 9]),
}
PARTS = {
    "gather": (lambda z: z[np.array([0, 1, 1])], [1, 2, 0]),
    "slice": (lambda z: z[:2], [1, 1, 0]),
    "pad": (lambda z: sg.concat([z[1:], sg.zeros(2)]), [0, 1, 1]),
    "scan": (lambda z: sg.scan(lambda c, a: (c + a, c + a), 0.0, z)[1][:1], [1, 0, 0]),
}
STEEP = {
    "divide": (x / w, 1 / 4),
    "sqrt": (sg.sqrt(x + 4) - 2, 1 / 16),
    "log": (sg.log(1 + x), 1),
    "pow": ((x + 1) ** 1.5 - 1, 9 / 4),
}


@each("name", AT_ZERO)
@each("exact", ["bits", "reals"])
def test_derivatives_of_every_order_in_both_modes(name, exact):
    y, expected = AT_ZERO[name]
    forward, backward = [y], [y]
    for _ in expected[1:]:
        forward.append(sg.jvp(forward[-1], s, sg.ones(())))
        backward.append(sg.grad(backward[-1], s))
    for ds in (forward, backward):
        np.testing.assert_allclose(sg.compile(s, ds, exact=exact)(0.0), expected, atol=1e-12)


@each("part", PARTS)
@each("steep", STEEP)
def test_the_curvature_of_a_sum_of_squares_that_are_0(part, steep):
    take, taken = PARTS[part]
    y, slope = STEEP[steep]
    loss = sg.sum(take(y) ** 2)
    curvature = sg.compile([x, w], sg.hessian(loss, x))(np.zeros(3), np.full(3, 2.0))
    np.testing.assert_allclose(curvature, np.diag(2 * slope * np.array(taken)), atol=1e-12)


def test_a_zero_still_does_not_meet_an_infinite_slope():
    y = sg.sum(sg.sqrt(x)[:2] ** 3)
    first, second = sg.compile(x, [sg.grad(y, x), sg.hessian(y, x)])(np.array([1.0, 4.0, 0.0]))
    np.testing.assert_allclose(first, [1.5, 3, 0])
    np.testing.assert_allclose(second, np.diag([0.75, 0.375, 0]))
