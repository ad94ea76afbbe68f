"""What a pass may not change: the inputs, and the number and the types of the outputs."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import RewriteError
from symgrad.passes import DEFAULT

x = sg.placeholder("x", ("N", 3))
w = sg.variable("w", np.ones(3))
STRANGER = sg.placeholder("x", ("N", 3))

WRONG = {
    "shape": (
        lambda g: sg.Graph([g.outputs[0], w[:2]], g.inputs),
        r"changed output 1 from .*float64\[3\].* to .*float64\[2\]",
    ),
    "dtype": (
        lambda g: sg.Graph([sg.astype(g.outputs[0], "float32"), g.outputs[1]], g.inputs),
        r"changed output 0 from .*float64\[\(\)\].* to .*float32",
    ),
    "fewer outputs": (
        lambda g: sg.Graph(g.outputs[:1], g.inputs),
        "returned 1 outputs for 2",
    ),
    "more outputs": (
        lambda g: sg.Graph([*g.outputs, x], g.inputs),
        "returned 3 outputs for 2",
    ),
    "an input less": (
        lambda g: sg.Graph([sg.zeros(()), sg.zeros(3)]),
        r"changed the inputs from \('x', 'w'\) to \(\); keep them",
    ),
    "other order": (
        lambda g: sg.Graph(g.outputs, g.inputs[::-1]),
        r"changed the inputs from \('x', 'w'\) to \('w', 'x'\)",
    ),
    "a stranger": (
        lambda g: sg.Graph([sg.sum(STRANGER @ w), w + 1], [STRANGER, w]),
        r"changed the inputs",
    ),
}


def compiled(step):
    return sg.compile([x], sg.sum(x @ w), updates={w: w + 1}, passes=[*DEFAULT, step])


@pytest.mark.parametrize("wrong", WRONG)
def test_a_pass_that_changes_the_interface_is_refused_by_name(wrong):
    change, words = WRONG[wrong]

    @sg.graph_pass
    def my_pass(graph):
        """Wrong."""
        return change(graph)

    with pytest.raises(RewriteError, match=f"the pass my_pass {words}"):
        compiled(my_pass)


def test_a_pass_may_change_what_lies_between():
    @sg.graph_pass
    def my_pass(graph):
        """Right."""
        return sg.Graph([sg.vecdot(sg.sum(x, axis=0), w), graph.outputs[1]], graph.inputs)

    assert compiled(my_pass)(np.ones((2, 3))) == 6
