"""The optimised functions take no more operations, kernels or bytes than other compilers' do."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.golden.counts import counts
from tests.golden.functions import FUNCTIONS

FOLDER = Path(__file__).parent
PEERS = json.loads((FOLDER / "peers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found():
    return counts()


def test_the_counts_are_as_reviewed(found):
    kept = json.loads((FOLDER / "counts.json").read_text(encoding="utf-8"))
    assert found == kept, "if that is right: python -m tests.golden.update"


@pytest.mark.parametrize("figure", ["operations", "kernels", "bytes"])
@pytest.mark.parametrize("peer", ["jax", "torch"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_no_more_than_the_peers(function, peer, figure, found):
    own = found[function.__name__]["optimised"][figure]
    assert own <= PEERS["counts"][function.__name__][peer][figure]


@pytest.mark.parametrize("figure", ["operations", "bytes", "bytes_of_steps", "flops"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_no_more_than_was_written(function, figure, found):
    figures = found[function.__name__]
    assert figures["optimised"][figure] <= figures["as written"][figure]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_they_have_the_sizes_of_the_peers_and_compute_what_was_written(function):
    case = function()
    assert PEERS["sizes"][function.__name__] == {x.name: list(x.shape) for x in case.inputs}
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(x.shape).astype(x.dtype) for x in case.inputs]
    optimised, written = case.compile()(*arrays), case.compile(passes=())(*arrays)
    for a, b in zip(optimised, written, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)
