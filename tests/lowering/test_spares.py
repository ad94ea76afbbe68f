"""Temporaries that lie in the spare array of a next value, until that is written."""

import numpy as np
import pytest

import symgrad as sg
from benchmarks.workloads import WORKLOADS
from symgrad.lowering import lower as lowering
from symgrad.runtime.executor import execute
from symgrad.runtime.workspace import allocate


def made(name, monkeypatch, apart=False, **options):
    """The program of a workload, and its inputs and variables."""
    found, compiled = [], sg.compile
    with monkeypatch.context() as patched:
        if apart:
            patched.setattr(lowering, "in_spares", lambda in_place, own: {})
        patched.setattr(sg, "compile", lambda *a, **k: found.append(compiled(*a, **k)) or found[0])
        workload = WORKLOADS[name](scale=0.2)
        arrays = workload.inputs()
        workload.symgrad(*arrays, **options)
    (program,) = found
    return program, arrays[: workload.data], [v.value for v in program.store.variables]


def check(plan):
    """Run a plan with marks in place of numbers: each element tells which place was written."""
    places = {ref: number for number, ref in enumerate(plan.inside.values(), 1)}
    hosts = {ref.slot for ref in places}
    owner = {i: np.zeros(plan.slots[i].shape, int) for i in hosts}

    def mark(ref):
        return next((n for p, n in places.items() if p == (ref[0], ref.views[: len(p.views)])), 0)

    for number, step in enumerate(plan.steps):
        for ref in step.operands:
            assert ref.slot not in hosts or (ref.seen(owner[ref.slot]) == mark(ref)).all(), number
        for ref in (*step.scratch, *step.results):
            if ref.slot in hosts:
                ref.seen(owner[ref.slot])[...] = mark(ref)
    assert not any(marks.any() for marks in owner.values()), "a next value is not all written"


@pytest.mark.parametrize("name", ["two_layer_64", "mlp_adam"])
def test_temporaries_lie_in_what_is_written_after_they_were_read(name, monkeypatch):
    program, inputs, variables = made(name, monkeypatch)
    plan = program.plan
    assert plan.inside
    check(plan)
    other = made(name, monkeypatch, apart=True)[0].plan
    assert not other.inside
    assert plan.peak_bytes < other.peak_bytes - plan.next_bytes / 32
    for key in plan.inside:
        assert f"{key} lies in " in str(plan)
        assert f"    {key} = " in program.source
    results = []
    for p, byte in ((other, 0), (plan, 0), (plan, 0xFF), (plan, 0x3F)):
        nexts = [np.empty(p.slots[i].shape, p.slots[i].dtype) for i in p.nexts if i >= 0]
        workspace = allocate(p)
        for array in (*nexts, *workspace):
            array.view(np.uint8).fill(byte)
        results.append([*execute(p, inputs, variables, nexts, workspace), *nexts])
    expected, *found = [[np.asarray(a).tobytes() for a in of] for of in results]
    assert all(f == expected for f in found)
    program(*inputs)
    assert [v.value.tobytes() for v in program.store.updated if v.ndim] == expected[-len(nexts) :]


def test_a_place_that_is_written_over_is_seen(monkeypatch):
    plan = made("two_layer_64", monkeypatch)[0].plan
    written = [i for i, s in enumerate(plan.steps) if s.results[0] == (plan.inside["a"].slot, ())]
    late = next(s for s in plan.steps if plan.inside["a"] in s.operands)
    late.operands, kept = plan.steps[written[0]].operands, late.operands
    plan.steps[written[-1]].operands = kept
    with pytest.raises(AssertionError):
        check(plan)
