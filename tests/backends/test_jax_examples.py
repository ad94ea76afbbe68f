"""Programs of the examples by JAX and by the reference, from the same variables."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("jax")

from tests.backends.examples import faults_of, twins
from tests.backends.ops import QUICK


@pytest.mark.parametrize("number", ["02", "04", "05", "08", "11"])
def test_programs_of_examples_give_what_the_reference_gives(number, monkeypatch):
    """`python -m tests.backends.examples` has the other examples, too."""
    import jax

    monkeypatch.setattr(jax, "jit", partial(jax.jit, compiler_options=QUICK))
    made = twins(number)
    assert made
    assert any(twin.calls for twin in made)
    assert [words for twin in made for words in twin.faults] == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (np.array([1, 2.1]), ["is away by 0.1, where the largest element is 2"]),
        (np.array([1, np.nan]), ["has NaN in other places"]),
        (np.array([1, 2], "f4"), ["is float32(2,), not float64(2,)"]),
        (np.array([1, 2]) + 1e-12, []),
    ],
)
def test_what_differs_is_told(found, words):
    assert list(faults_of(found, np.array([1.0, 2.0]))) == words
