"""Offsets in the arena: no two values that live at one step overlap."""

from hypothesis import given
from hypothesis import strategies as st

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
