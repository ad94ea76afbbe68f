"""The page of functions says what they are."""

import difflib

import pytest

from tests.helpers import each
from tools import ops_table

FUNCTIONS = ops_table.loaded()


@pytest.fixture(scope="module")
def pages():
    return ops_table.texts()


@pytest.mark.parametrize("path", [ops_table.MAP, ops_table.WHOLE], ids=["map", "whole"])
def test_the_page_is_that_of_the_functions(path, pages):
    kept = path.read_text(encoding="utf-8").splitlines()
    wanted = pages[path].splitlines()
    stale = [*difflib.unified_diff(kept, wanted, "as it is", "as they are", n=0, lineterm="")]
    assert not stale, "\n".join([*stale[:20], "run: python -m tools.ops_table"])


@each("name", FUNCTIONS)
def test_a_function_is_called_to_see_what_it_does(name):
    """One that no call fits is given one in `ops_table.CALLS`."""
    assert ops_table.tried(name, FUNCTIONS[name]), ops_table.called(name, FUNCTIONS[name], "f8")


def test_what_the_page_finds_out_is_true_of_some_that_are_known():
    rows = {
        cells[0].strip(" `"): [c.strip() for c in cells[1:]]
        for cells in (line.strip("| ").split(" | ") for line in ops_table.listed() if "`" in line)
    }
    for slope, names in {
        "yes": ("tanh", "sort", "full", "linalg.diagonal", "random.normal", "fft.rfft"),
        "0": ("floor", "stop_gradient", "ceil"),
        "–": ("equal", "argmax", "nextafter", "isdtype", "random.key"),
    }.items():
        assert [(n, rows[n][2]) for n in names] == [(n, slope) for n in names]
    assert rows["bitwise_and"][4] == "biu"
    assert rows["astype"][4] == rows["item"][4] == "biufc"
    assert rows["nn.elu"][3] == rows["nn.selu"][3] == "`leaky_relu`"
    assert not {"nn.initial", "nn.parameter"} & rows.keys()
    assert rows["sum"][5] == "`np.sum`"
    assert "`maximum`" in rows["clip"][3]
