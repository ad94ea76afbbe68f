"""Splitting a graph into what is computed once and what every call computes."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.graph import Graph
from symgrad.passes import DEFAULT, HOIST, run_passes, run_split
from symgrad.passes.hoist import hoist_invariants, joined
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace

ROWS = np.random.default_rng(0).standard_normal((64, 100))


def regression():
    data, w = sg.variable("data", ROWS), sg.variable("w", np.zeros(100))
    x = sg.placeholder("x", 64)
    error = sg.exp(data) @ w - x
    return Graph([sg.sum(error * error), w - error @ sg.exp(data)], [x, data, w]), data, w


def test_a_prologue_has_what_only_variables_that_stay_are_needed_for():
    graph, data, w = regression()
    split = hoist_invariants(run_passes(graph, DEFAULT[:-2], Exact.ROUNDING, Trace()), [w])
    (part,) = split.kept
    assert [n.op.name for n in part.body.nodes] == ["variable", "exp"]
    assert part.body.inputs == part.graph.inputs == (data,)
    assert (part.names, part.again) == (("kept",), "again when data changes")
    assert "exp" not in {n.op.name for n in split.body.nodes}
    assert [n.name for n in split.body.inputs] == ["x", "data", "w", "kept"]
    assert part.raw is part.graph
    whole = joined([(part.names, part.body, Trace())], split.body, split.graph.inputs)
    assert whole.graph == split.graph


def test_nothing_is_split_that_every_call_changes():
    graph, data, w = regression()
    assert hoist_invariants(graph, [data, w]) is None


def test_hoisting_leaves_the_whole_as_it_is_and_is_no_stage():
    graph, _, w = regression()
    trace = Trace()
    assert run_passes(graph, [HOIST], Exact.ROUNDING, trace) is graph
    assert trace.stages == []
    found, split = run_split(graph, [HOIST], [w], Exact.ROUNDING, trace)
    assert found is split.graph is graph
    assert trace.stages == []


def test_a_pass_by_part_runs_on_both_and_is_one_stage_of_the_whole():
    graph, _, w = regression()
    trace = Trace()
    found, split = run_split(graph, DEFAULT[-2:], [w], Exact.ROUNDING, trace)
    (stage,) = trace.stages
    assert (stage.name, stage.before, stage.after) == ("fusion", graph, found)
    assert found is split.graph
    (part,) = split.kept
    (own,) = part.trace.stages
    assert own.before is part.raw
    assert own.after is part.graph


@pytest.mark.parametrize("last", [(), (HOIST,), (DEFAULT[0],)])
def test_only_passes_by_part_may_come_after(last):
    graph, _, w = regression()
    found, split = run_split(graph, [HOIST, *last], [w], Exact.ROUNDING, Trace())
    assert (split is None) == bool(last)
    assert found == graph
