"""Some of the random loops of a campaign: see `tests/loops/campaign.py`."""

import pytest

from tests.loops.campaign import Drawn, check


@pytest.mark.parametrize("seed", [*range(20), 30110, 30169])
def test_random_loops(seed):
    check(seed)


def test_they_are_of_all_kinds():
    drawn = [Drawn(seed) for seed in range(24)]
    for name, count in {"dtype": 3, "length": 4, "named": 2, "reverse": 2, "depth": 3}.items():
        assert len({getattr(one, name) for one in drawn}) == count
