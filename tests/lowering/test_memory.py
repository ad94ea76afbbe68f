"""Offsets in the arena: no two values that live at one step overlap."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.analysis import memory_order
from symgrad.lowering.memory import assign_offsets
from symgrad.lowering.plan import ALIGNMENT

SIZES = st.integers(0, 1000) | st.just(2**16)
LIFETIME = st.tuples(st.integers(0, 30), st.integers(0, 10), SIZES).map(
    lambda t: (t[0], t[0] + t[1], t[2])
)


def busiest(lifetimes):
    """The most bytes that are alive at one step: no plan needs less."""
    rounded = [(a, b, max(1, -(-n // ALIGNMENT)) * ALIGNMENT) for a, b, n in lifetimes]
    return max((sum(n for a, b, n in rounded if a <= t <= b) for t in range(50)), default=0)


@given(st.lists(LIFETIME, max_size=40))
def test_no_two_live_values_overlap(lifetimes):
    offsets, top = assign_offsets(lifetimes)
    placed = list(zip(lifetimes, offsets, strict=True))
    for i, ((first, last, size), at) in enumerate(placed):
        assert at % ALIGNMENT == 0
        assert at >= 0
        assert at + size <= top
        for (other_first, other_last, other_size), other in placed[:i]:
            apart = at + size <= other or other + other_size <= at
            assert apart or last < other_first or other_last < first
    assert busiest(lifetimes) <= top


@given(st.integers(1, 40), st.integers(1, 1000))
def test_a_chain_needs_two_places(length, size):
    _, top = assign_offsets([(i, i + 1, size) for i in range(length)])
    assert top == busiest([(i, i + 1, size) for i in range(length)])


def test_neighbours_that_are_free_are_joined():
    offsets, top = assign_offsets([(0, 1, 64), (0, 1, 64), (2, 3, 128)])
    assert (offsets[2], top) == (0, 128)


def test_the_last_block_grows_and_the_best_fit_is_taken():
    assert assign_offsets([(0, 0, 64), (1, 1, 256)]) == ([0, 0], 256)
    lives = [(0, 1, 256), (0, 9, 64), (0, 1, 128), (0, 9, 64), (2, 9, 128)]
    offsets, _ = assign_offsets(lives)
    assert offsets[4] == offsets[2]


def test_small_values_leave_room_for_large_ones():
    _, top = assign_offsets([(0, 1, 1 << 20), (2, 9, 64), (3, 4, 1 << 20)])
    assert top == (1 << 20) + 64


def test_nothing_needs_nothing():
    assert assign_offsets([]) == ([], 0)


def test_what_reaches_the_top_is_placed_earlier():
    """The largest first leave gaps into which nothing fits: a walk from there finds a way."""
    lives = [(0, 5, 8), (1, 9, 4), (2, 3, 6), (4, 8, 6), (6, 11, 8), (9, 12, 6), (10, 13, 4)]
    lives = [(a, b, n << 16) for a, b, n in lives]
    for shift in range(4):
        some = [(a, b + (i == shift), n) for i, (a, b, n) in enumerate(lives)]
        _, top = assign_offsets(some)
        assert top == busiest(some)


def relu_net(rows):
    """Two layers of which the gradient by the second weights needs what the mask is of."""
    x, y = sg.placeholder("x", (rows, 8)), sg.placeholder("y", (rows, 4))
    w1, w2 = sg.placeholder("w1", (8, 64)), sg.placeholder("w2", (64, 4))
    loss = sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2)
    return [x, y, w1, w2], [loss, *sg.grad(loss, [w1, w2])]


def test_a_mask_of_its_own_is_made_where_it_saves_memory():
    rng, peaks = np.random.default_rng(0), []
    for rows in (16, 1024):
        inputs, outputs = relu_net(rows)
        program = sg.compile(inputs, outputs, backend="numpy")
        names = [s.name for s in program.plan.steps]
        assert ("greater" in names, "keep_where_positive" in names) == (rows > 16, rows == 16)
        graphs = [program.graph, *filter(None, (n.inner_graph for n in program.graph.nodes))]
        own = {id(n) for graph in graphs for n in graph.nodes}
        assert all(id(s.node) in own for s in program.plan.steps)
        feeds = [rng.standard_normal(x.shape) for x in inputs]
        raw = sg.compile(inputs, outputs, passes=(), backend="numpy")
        for a, b in zip(program(*feeds), raw(*feeds), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
        peaks.append((program.plan.peak_bytes, raw.plan.peak_bytes))
        assert program.why(outputs[1])
    assert peaks[1][0] <= peaks[1][1]


def test_a_mask_is_made_when_it_is_read_or_nobody_else_reads_its_operand():
    x, w = sg.placeholder("x", (1024, 64)), sg.placeholder("w", (64, 64))
    for product in (False, True):
        h, other = sg.exp(x), sg.tanh(x)
        mask, sine = h > 1, sg.sin(other @ w)
        outputs = [sg.where(mask, sine, 0), h.T @ other if product else h]
        place = {id(n): i for i, n in enumerate(memory_order(sg.Graph(outputs)))}
        assert (place[id(mask)] < place[id(sine)]) == product
        assert not product or place[id(outputs[1])] < place[id(sine)]
