"""Random graphs as machine code: what NumPy gives, to the grade. See `campaign` for many more."""

import pytest

import symgrad as sg
from symgrad.testing import assert_equivalent, random_feeds

pytest.importorskip("llvmlite")

from tests.native import campaign


@pytest.mark.parametrize("seed", range(90))
def test_random_graphs(seed):
    campaign.check(seed)


@pytest.mark.parametrize("seed", [30292, 40057, 50030])
def test_graphs_that_once_failed(seed):
    """A sum in a narrow dtype; inf beside terms that overflow; 1 of 7,254 that noise left alone."""
    campaign.check(seed)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_within_tiles(seed):
    inputs, outputs, rng = campaign.some_graph(seed + 100)
    with campaign.everything(tile=200):
        assert_equivalent(inputs, outputs, random_feeds(rng, inputs), backend=None)


def test_random_graphs_do_run_as_machine_code():
    found = []
    with campaign.everything():
        for seed in range(30):
            inputs, outputs, _ = campaign.some_graph(seed)
            found += sg.compile(inputs, outputs, backend=None).native
    assert len(found) > 20


@pytest.mark.parametrize("seed", [20, 136, *range(400, 412)])
def test_reductions_over_any_axes(seed):
    campaign.check_axes(seed)
