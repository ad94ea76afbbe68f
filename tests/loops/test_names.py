"""Names of inputs of bodies: no clash with those that a user gives."""

import numpy as np
import pytest

import symgrad as sg


@pytest.mark.parametrize("name", ["carry0", "x0", "k0", "p0", "carry0_1"])
def test_an_input_may_have_any_name(name):
    a, rows = sg.placeholder(name, 3), sg.placeholder("rows", (2, 3))

    def step(c, row):
        slope = sg.grad(sg.sum(sg.sin(c * a) + row * c * c), c)
        inner = sg.fori(2, lambda i, d: d + sg.grad(sg.sum(sg.cos(d * a)), d), c)
        return slope + 0.1 * inner, c

    found = sg.scan(step, 0.5 * a, rows)[0]
    expected = 0.5 * a
    for t in range(2):
        expected = step(expected, rows[t])[0]
    x, xs = np.array([0.3, -0.5, 0.8]), np.arange(6.0).reshape(2, 3) / 6
    for y, z in zip(
        sg.compile([a, rows], found)(x, xs), sg.compile([a, rows], expected)(x, xs), strict=True
    ):
        assert y == pytest.approx(z, rel=1e-12)


def test_a_value_of_a_step_is_told_where_it_is_missing():
    x, leaked = sg.placeholder("x", ()), []

    def step(i, c):
        leaked.append(2 * c)
        return c + 1

    sg.fori(3, step, x)
    with pytest.raises(sg.GraphError, match="let the step return it") as caught:
        sg.compile(x, leaked[0])
    assert "carry0 of a step" in str(caught.value)
