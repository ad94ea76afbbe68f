"""The loops of these tests are short: threads share them all the same."""

import pytest

from symgrad.lowering import native


@pytest.fixture(autouse=True)
def short_loops_are_shared(monkeypatch):
    monkeypatch.setattr(native, "LEAST_WOKEN", 0)
