"""The page of NumPy's functions says what they are on nodes."""

import difflib

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import each
from tools import numpy_table


def test_the_page_is_that_of_the_functions():
    for path, text in numpy_table.texts().items():
        kept, wanted = path.read_text(encoding="utf-8").splitlines(), text.splitlines()
        stale = [*difflib.unified_diff(kept, wanted, "as it is", "as they are", n=0, lineterm="")]
        assert not stale, "\n".join([*stale[:20], "run: python -m tools.numpy_table"])


def test_what_has_a_reason_is_a_function_that_is_not_answered():
    found = {n: f for s in numpy_table.SPACES.values() for n, f in numpy_table.functions(s).items()}
    listed = [n for names in numpy_table.REASONS.values() for n in names.split()]
    assert len(listed) == len({*listed})
    assert {*listed} <= found.keys()
    assert [n for n in listed if numpy_table.ours(found[n])] == []


UNARY = [
    (n, f)
    for n, f in numpy_table.functions(np).items()
    if numpy_table.ours(f) is None and n not in ("test", "show_config", "show_runtime")
]

# What no array is given to, or none of whose values are asked.
OTHERS = {
    n
    for why, names in numpy_table.REASONS.items()
    if why.startswith(("it reads", "it asks", "it takes no", "it is"))
    for n in names.split()
}


@each(("name", "function"), UNARY)
def test_what_is_not_answered_raises_nothing_raw(name, function):
    """On a node it is refused by an error of ours, or NumPy's own says what the arguments are."""
    if name in OTHERS:
        return
    x = sg.placeholder("x", (4,))
    refused = []
    for count in range(1, 5):
        with pytest.raises((sg.SymgradError, TypeError)) as told:
            function(*(x,) * count)
        refused.append(told.value)
    ours = [e for e in refused if isinstance(e, sg.SymgradError)]
    assert ours
    assert all("argument" in str(e) for e in refused if e not in ours)
