"""What differentiation builds is told as the gradient of the op whose it is."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.origin import Maker

THROUGH = {
    "a bias": lambda x: x + 1,
    "a factor": lambda x: x * sg.constant(np.arange(4.0)),
    "a view": lambda x: x.T,
    "several": lambda x: -x.reshape((4, 3)),
    "two branches": lambda x: sg.sin(x) + sg.exp(x),
}


@pytest.mark.parametrize("through", THROUGH.values(), ids=THROUGH)
@pytest.mark.parametrize("mode", ["vjp", "jvp"])
def test_a_selection_is_of_relu_whatever_it_goes_through(mode, through):
    """It is made anew behind each op, and is not of that one."""
    x = sg.placeholder("x", (3, 4))
    before, after = (through, sg.sum) if mode == "vjp" else (sg.positive, through)
    given = before(x)
    with sg.scope("activation"):
        h = sg.relu(given)
    y = after(h)
    made = sg.grad(y, x) if mode == "vjp" else sg.jvp(y, [x], [sg.constant(np.ones((3, 4)))])
    selections = [n for n in sg.Graph(made).nodes if n.op.selection]
    assert selections
    for node in selections:
        assert node.origin.made_by == (Maker(mode, "relu"),)
        assert node.origin.frames == h.origin.frames
        assert node.origin.scope == ("activation",)
