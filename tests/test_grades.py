"""What the table of grades on the site says: each example changes at the grades that it names."""

import re
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from symgrad.passes import graph_pass
from symgrad.testing import assert_equivalent, check_rule

PAGE = Path(__file__).parents[1] / "docs" / "lookup" / "grades.md"
GRADES = ("bits", "values", "rounding", "reals")


def rows():
    text = PAGE.read_text(encoding="utf-8")
    (table,) = re.findall(r"<!-- grades: begin -->\n(.*?)<!-- grades: end -->", text, re.DOTALL)
    head, _, *lines = (
        [cell.strip().strip("`") for cell in line.strip("| ").split(" |")]
        for line in table.strip().splitlines()
    )
    assert tuple(head[3:]) == GRADES
    return lines


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[1])
def test_an_example_changes_where_the_table_says_so(row):
    _, written, at, *cells = row
    feeds = eval(f"dict({at})")
    nodes = {name: sg.placeholder(name, 3) for name in feeds}
    y = eval(written, {"sg": sg, **nodes})
    arrays = [np.full(3, value) for value in feeds.values()]
    raw = sg.compile(list(nodes.values()), y, passes=())(*arrays)
    for grade, cell in zip(GRADES, cells, strict=True):
        found = sg.compile(list(nodes.values()), y, exact=grade)(*arrays)
        same = [np.where(np.isnan(v), 7, v).tobytes() for v in (raw, found)]
        assert (same[0] != same[1]) == (cell == "yes"), (
            f"{written} at {at}: {found} at {grade}, {raw} as written"
        )


# ---- the check of rules sees it -------------------------------------------------------------


@sg.rule(exact="rounding", kinds="f", examples=({"x": (3,), "y": (3,)},))
def halves_add_up(x: sg.Var, y: sg.Var) -> sg.Rewrite:
    """False: halves are taken so that the sum does not overflow."""
    return sg.Rewrite(before=x * 0.5 + y * 0.5, after=(x + y) * 0.5)


@sg.rule(exact="rounding", kinds="f", examples=({"x": (3,), "y": (3,), "z": (3,)},))
def last_factors_first(x: sg.Var, y: sg.Var, z: sg.Var) -> sg.Rewrite:
    """False: a small x may be what keeps the product of all three finite."""
    return sg.Rewrite(before=(x * y) * z, after=x * (y * z))


@sg.rule(exact="rounding", kinds="f", examples=({"x": (3, 4), "axis": (0,)},))
def thousandths_leave_a_sum(x: sg.Var, axis: sg.Attr) -> sg.Rewrite:
    """False: what is scaled down before it is added up may be too large to be added up as it is."""
    total = sg.ops.reduce.sum
    return sg.Rewrite(
        before=total(x * 0.25, axis=axis, dtype=None, keepdims=False),
        after=total(x, axis=axis, dtype=None, keepdims=False) * 0.25,
    )


@pytest.mark.parametrize("rule", [halves_add_up, last_factors_first, thousandths_leave_a_sum])
def test_a_rule_that_makes_an_overflow_is_caught(rule):
    with pytest.raises(AssertionError, match=r"(?s)not finite, as it was.*before:.*after:"):
        check_rule(rule)


def test_a_program_that_makes_an_overflow_is_caught():
    x, y = sg.placeholder("x", 3), sg.placeholder("y", 3)
    z = x * 0.5 + y * 0.5
    ordinary, large = np.ones(3), np.full(3, 1.5e308)
    assert assert_equivalent([x, y], [z], [ordinary, ordinary], passes=[halves_add_up])
    with pytest.raises(AssertionError, match=r"(?s)not finite, as it was.*raw:.*halves_add_up"):
        assert_equivalent([x, y], [z], [large, large], passes=[halves_add_up])
    assert assert_equivalent([x, y], [z], [large, large])


def backwards(graph: sg.Graph) -> sg.Graph:
    """The same with sums in another order."""
    return sg.Graph([1 / sg.sum(sg.flip(graph.inputs[0]))], graph.inputs)


def lost(graph: sg.Graph) -> sg.Graph:
    """The same with NaN in place of a sum that is infinite."""
    return sg.Graph([1 / (sg.sum(graph.inputs[0]) * 0 + 1)], graph.inputs)


def test_infinities_stay_but_where_finite_terms_overflow_beside_them():
    """In one order the largest meet -inf one by one, in another they are inf before."""
    x, large = sg.placeholder("x", 3), np.finfo(float).max
    y = [1 / sg.sum(x)]
    assert_equivalent(x, y, [np.array([-np.inf, large, large])], passes=[graph_pass(backwards)])
    with pytest.raises(AssertionError, match="expected"):
        assert_equivalent(x, y, [np.array([1.0, 2.0, -np.inf])], passes=[graph_pass(lost)])
