"""Minimum cuts are networkx's, on the sink's side of which the fewest vertices are."""

import subprocess
import sys
from math import inf
from time import perf_counter

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.ir.flow import Network

MOST = 8
EDGES = st.tuples(st.integers(0, MOST), st.integers(0, MOST), st.sampled_from([0, 1, 2, 3, 7, inf]))


def both(edges):
    """A network of ours and one of networkx's; of edges between the same ends the first counts."""
    ours, theirs = Network(), nx.DiGraph()
    ours.add(0, 1, 0)
    theirs.add_edge(0, 1, capacity=0)
    for start, end, capacity in edges:
        if start != end and not theirs.has_edge(start, end):
            ours.add(start, end, capacity)
            theirs.add_edge(start, end, capacity=capacity)
    return ours, theirs


@given(st.lists(EDGES, max_size=40))
def test_a_minimum_cut_is_that_of_networkx(edges):
    ours, theirs = both(edges)
    try:
        _, (_, behind) = nx.minimum_cut(theirs, 0, 1)
    except nx.NetworkXUnbounded:
        with pytest.raises(ValueError, match="infinite"):
            ours.behind(0, 1)
    else:
        assert ours.behind(0, 1) == behind


def test_a_long_chain_is_cut_at_its_least_edge():
    network, length = Network(), 5000
    for v in range(length):
        network.add(v, v + 1, 1 if v == 4000 else 2)
    assert network.behind(0, length) == set(range(4001, length + 1))


def test_a_chain_that_is_fed_everywhere_takes_little_time():
    """A path at a time, it takes minutes."""
    network, length = Network(), 20_000
    for v in range(2, length):
        network.add(v, v + 1)
        network.add(0, v, 1 + v % 3)
    network.add(length, 1, 5)
    begun = perf_counter()
    assert network.behind(0, 1) == {1}
    assert perf_counter() - begun < 20


def test_capacities_may_be_fractions():
    network = Network()
    for start, end, capacity in ((0, 2, 0.1), (0, 3, 0.2), (2, 1, inf), (3, 1, 0.7), (3, 2, 0.1)):
        network.add(start, end, capacity)
    assert network.behind(0, 1) == {1, 2, 3}


def test_networkx_is_not_imported_to_compile():
    code = """
import sys
import numpy as np
import symgrad as sg
x, w = sg.placeholder("x", (9, 3)), sg.variable("w", np.eye(3))
last, _ = sg.scan(lambda h, r: (sg.tanh(r + h @ w), h), sg.zeros(3), x)
loss = sg.sum(last)
sg.compile(x, [loss, sg.grad(loss, w)], memory_budget=2000)(np.ones((9, 3)))
assert "networkx" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
