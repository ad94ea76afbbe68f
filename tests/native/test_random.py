"""Random graphs as machine code: what NumPy gives, to the grade. See `campaign` for many more."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.testing import assert_equivalent, random_feeds

pytest.importorskip("llvmlite")

from tests.helpers import each
from tests.native import campaign, gates, placed


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed):
    campaign.check(seed)


@pytest.mark.parametrize("seed", [30292, 40057, 50030])
def test_graphs_that_once_failed(seed):
    """A sum in a narrow dtype; inf beside terms that overflow; 1 of 7,254 that noise left alone."""
    campaign.check(seed)


@each("seed", range(20))
def test_random_graphs_within_tiles(seed):
    inputs, outputs, rng = campaign.some_graph(seed + 100)
    with campaign.everything(tile=200):
        assert_equivalent(inputs, outputs, random_feeds(rng, inputs), backend=None)


@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_parts_that_are_placed_in_arrays(seed):
    placed.check_placed(seed)


@each("seed", range(40))
def test_gates_that_are_slices_of_one_sum(seed):
    gates.check_gates(seed)


def test_what_flows_back_through_slices_is_one_pass():
    """As that of a stencil, whose parts overlap: no step of its own adds them up."""
    x, k = (sg.placeholder(name, (40, 70), "float32") for name in "xk")
    inner = sg.square(x[1:-1, 1:-1]) * k[1:-1, 1:-1]
    y = inner * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] - x[1:-1, :-2])
    gradients = [g * 2 for g in sg.grad(sg.sum(y), [x, k])]
    with campaign.everything():
        program = sg.compile([x, k], gradients, backend="native", exact="rounding")
    assert not any(s.name == "put" for s in program.plan.steps)
    arrays = [np.random.default_rng(3).standard_normal((40, 70), np.float32) for _ in "xk"]
    plain = sg.compile([x, k], gradients, exact="rounding", backend="numpy")
    for a, b in zip(program(*arrays), plain(*arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_random_graphs_do_run_as_machine_code():
    found = []
    with campaign.everything():
        for seed in range(30):
            inputs, outputs, _ = campaign.some_graph(seed)
            found += sg.compile(inputs, outputs, backend=None).native
            if len(found) > 20:
                return
    pytest.fail(f"{len(found)} kernels of 30 graphs")


@pytest.mark.parametrize("seed", [20, 136, *range(400, 412)])
def test_reductions_over_any_axes(seed):
    campaign.check_axes(seed)
