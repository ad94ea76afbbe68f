"""What was not taken contributes nothing: through sums, products, casts, slices and sorts."""

import numpy as np

import symgrad as sg
from tests.helpers import each

NEVER = np.zeros(2, bool)


@each(
    ("function", "at", "expected"),
    [
        (lambda r: sg.where(np.ones((3, 1), bool) & (r > 0), sg.sqrt(r), 0), [0.0, 4], [0, 0.75]),
        (lambda r: sg.where(r[:, None] > np.zeros((1, 2)), sg.sqrt(r)[:, None], 0),
         [0.0, 4], [0, 0.5]),
        (lambda s: sg.where(NEVER, sg.sqrt(s), 1.0), 0.0, 0.0),
        (lambda x: sg.where(x[:1] > 0, sg.sqrt(x) @ np.ones((2, 1)), 0), [-1.0, 0.0], [0, 0]),
        (lambda x: sg.where(x > 0, sg.mean(sg.log(x), keepdims=True), 0), [0.0, 0.0], [0, 0]),
        (lambda x: sg.astype(sg.where(x > 0, sg.astype(sg.sqrt(x), "float32"), 0), "float64"),
         [0.0, 4], [0, 0.25]),
        (lambda r: sg.sqrt(r)[1:], [0.0, 4], [0, 0.25]),
        (lambda r: sg.sort(sg.sqrt(r))[-1], [0.0, 4], [0, 0.25]),
        (lambda r: sg.median(sg.sqrt(r)), [0.0, 4, 9], [0, 0.25, 0]),
        (lambda r: sg.where(r > 0, 1.0, 0.0) * sg.sqrt(r), [0.0, 4], [0, 0.25]),
        (lambda r: sg.concat([sg.sqrt(r), r])[1:], [0.0, 4], [1, 1.25]),
    ],
)  # fmt: skip
@each("passes", [(), None], ids=["raw", "optimised"])
def test_untaken_branches_contribute_nothing(function, at, expected, passes):
    x = sg.placeholder("x", np.shape(at))
    y = function(x)
    gradient = sg.grad(sg.sum(y), x)
    rows = sg.sum(sg.jacobian(y, x, mode="forward"), axis=tuple(range(y.ndim)))
    for found in sg.compile([x], [gradient, rows], passes=passes)(at):
        np.testing.assert_allclose(found, expected)


def test_zeros_that_are_given_meet_no_infinite_slope():
    x = sg.placeholder("x", 2)
    y = sg.sqrt(x)
    zero_one = np.array([0.0, 1.0])
    found = [sg.vjp(y, x, zero_one), sg.jvp(y, x, zero_one)]
    for value in sg.compile([x], found)([0.0, 4.0]):
        np.testing.assert_array_equal(value, [0, 0.25])
    (infinite,) = sg.compile([x], [sg.grad(sg.sum(y), x)])([0.0, 4.0])
    np.testing.assert_array_equal(infinite, [np.inf, 0.25])
