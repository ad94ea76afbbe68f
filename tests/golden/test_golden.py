"""Graphs before and after each pass, and generated source, are as they were reviewed."""

import difflib
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from tests.golden.stories import STORIES, texts

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def now():
    return texts()


def test_every_file_is_told_by_a_story(now):
    assert {p.name for p in FOLDER.glob("*.txt")} == {*now}


@pytest.mark.parametrize("kind", ["", "_source"])
@pytest.mark.parametrize("story", STORIES, ids=lambda s: s.__name__)
def test_as_reviewed(story, kind, now):
    name = f"{story.__name__}{kind}.txt"
    kept = (FOLDER / name).read_text(encoding="utf-8")
    difference = "".join(
        difflib.unified_diff(
            kept.splitlines(keepends=True), now[name].splitlines(keepends=True),
            f"{name} as reviewed", f"{name} now",
        )
    )  # fmt: skip
    assert not difference, f"{difference}\nif that is right: python -m tests.golden.update"


@pytest.mark.parametrize("story", STORIES, ids=lambda s: s.__name__)
def test_the_stories_compute_what_was_written(story):
    """Text is not enough: optimised and raw give the same numbers."""
    inputs, outputs, _ = story()
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal([8 if isinstance(s, sg.Dim) else s for s in x.shape]).astype(x.dtype)
        for x in inputs
    ]
    outputs = outputs if isinstance(outputs, list) else [outputs]
    found = sg.compile(inputs, outputs)(*arrays)
    raw = sg.compile(inputs, outputs, passes=())(*arrays)
    for a, b in zip(found, raw, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
