"""Random graphs as machine code: what NumPy gives, to the grade."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.lowering import tiling
from symgrad.runtime import native
from symgrad.testing import assert_equivalent, random_feeds, random_graph

pytest.importorskip("llvmlite")


@pytest.fixture(autouse=True)
def everything(monkeypatch):
    """Whatever can run as machine code does so, however small it is, and though it does not pay."""
    monkeypatch.setattr(native, "LEAST_BYTES", 0)
    monkeypatch.setattr("symgrad.native.groups.Group.pays", lambda group: True)


def some_graph(seed):
    rng = np.random.default_rng([seed, 17])
    inputs, outputs = random_graph(rng, int(rng.integers(5, 40)))
    wrt = [x for x in inputs if x.dtype.kind == "f"]
    outputs = [*outputs, *sg.grad(outputs[0], wrt, disconnected="zero")] if wrt else outputs
    return inputs, outputs, rng


@pytest.mark.parametrize("exact", ["bits", "values", "rounding"])
@pytest.mark.parametrize("seed", range(20))
def test_random_graphs(seed, exact):
    inputs, outputs, rng = some_graph(seed)
    for special in (False, True):
        assert_equivalent(
            inputs, outputs, random_feeds(rng, inputs, special), exact=exact, backend=None
        )


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_within_tiles(monkeypatch, seed):
    monkeypatch.setattr(tiling, "LEAST_BYTES", 0)
    monkeypatch.setattr(tiling, "TILE_BYTES", 200)
    inputs, outputs, rng = some_graph(seed + 100)
    assert_equivalent(inputs, outputs, random_feeds(rng, inputs), backend=None)


def test_random_graphs_do_run_as_machine_code():
    found = []
    for seed in range(30):
        inputs, outputs, _ = some_graph(seed)
        found += sg.compile(inputs, outputs, backend=None).native
    assert len(found) > 20
