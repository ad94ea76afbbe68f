"""What a pass must show: the graph that is expected, and the numbers that were there before."""

import numpy as np

import symgrad as sg
from symgrad.passes import DEFAULT
from symgrad.testing import random_feeds
from symgrad.testing.equality import assert_computes

PASSES = {step.name: step for step in DEFAULT}


def named(*names):
    """The compiler's passes of these names."""
    return tuple(PASSES[n] for n in names)


def becomes(inputs, outputs, expected, passes, exact="rounding"):
    """Assert both: the graph after the passes, and the numbers at ordinary and special feeds."""
    outputs, expected = (
        list(y) if isinstance(y, (list, tuple)) else [y] for y in (outputs, expected)
    )
    program = sg.compile(inputs, outputs, exact=exact, passes=passes)
    wanted = sg.Graph(expected, inputs)
    assert program.graph == wanted, (
        f"original:\n{program.raw}\nrewritten:\n{program.graph}\nexpected:\n{wanted}"
    )
    rng = np.random.default_rng(0)
    grade = sg.Exact.of(exact)
    assert assert_computes(program, random_feeds(rng, inputs), grade)
    if exact != "reals":
        assert_computes(program, random_feeds(rng, inputs, special=True), grade)


def stays(inputs, outputs, passes, exact="rounding"):
    """Assert that the passes leave a graph as it is."""
    becomes(inputs, outputs, outputs, passes, exact)


def ops(graph):
    """The names of a graph's ops, in order, but for leaves."""
    return [n.op.name for n in graph.nodes if n.inputs]
