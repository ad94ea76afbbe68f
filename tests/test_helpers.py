"""One test of many cases goes through all of them, and names those that fail."""

import inspect

import pytest

from tests.helpers import each


def test_all_cases_are_tried_and_those_that_fail_are_named():
    seen = []

    @each("kind", ["raw", "optimised"])
    @each(("a", "b"), [(1, 2), (3, 4), (5, 6)])
    def check(a, b, kind, folder):
        seen.append((a, b, kind, folder))
        if a == 1:
            pytest.skip("says nothing")
        assert (a, kind) != (3, "raw")

    assert [*inspect.signature(check).parameters] == ["folder"]
    with pytest.raises(AssertionError, match=r"1 of 2 failed\ncheck\[raw\]") as failure:
        check(folder="here")
    assert "1 of 3 failed\ncheck[3-4]" in str(failure.value)
    assert [(a, kind) for a, _, kind, _ in seen] == [
        (a, kind) for kind in ("raw", "optimised") for a in (1, 3, 5)
    ]


def test_parts_are_all_of_the_cases():
    seen = []

    @each("kind", ["raw", "optimised"])
    @each("number", (n for n in range(10)), parts=3)
    def check(number, kind):
        seen.append((number, kind))

    for part in range(3):
        check(part=part)
    assert sorted(seen) == [(n, kind) for n in range(10) for kind in ("optimised", "raw")]


def test_what_was_meant_for_parametrize_is_refused():
    with pytest.raises(AssertionError, match="give tuples"):
        each("x", [pytest.param(1)])(lambda x: None)()
    with pytest.raises(AssertionError, match="no cases"):
        each("x", [])(lambda x: None)()
