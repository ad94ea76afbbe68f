"""The executor: walks a plan, calling one kernel after the other. The reference for codegen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.lowering.plan import Plan, Ref, Step
from symgrad.runtime.workspace import seen


def execute(
    plan: Plan, inputs: Sequence[Any], variables: Sequence[Any], nexts: Sequence[Any],
    workspace: Sequence[Any],
) -> tuple[list[Any], list[Any]]:
    """Run a plan on arrays: the outputs, and the next values of the variables.

    `nexts` are the spare arrays of those updated variables that are not 0-d, `workspace` what
    `allocate` made. Nothing is checked; `Program` does that.
    """
    arena = dict(zip((s.name for s in plan.arrays_in_arena()), workspace, strict=True))
    values: dict[int, Any] = {}
    for i, slot in enumerate(plan.slots):
        if slot.kind == "arena":
            values[i] = arena[slot.name]
        elif slot.kind == "constant":
            values[i] = slot.value
        elif slot.kind == "output":
            values[i] = np.empty(slot.shape, slot.dtype)
    values.update(zip(plan.inputs, inputs, strict=True))
    values.update(zip(plan.variables, variables, strict=True))
    values.update(zip((i for i in plan.nexts if i >= 0), nexts, strict=True))
    for step in plan.steps:
        run_step(plan, step, values)
    return [_result(values, r) for r in plan.outputs], [_result(values, r) for r in plan.updates]


def run_step(plan: Plan, step: Step, values: dict[int, Any]) -> None:
    """Call the kernel of one step; its results are left in `values`."""
    operands = [seen(values[r.slot], r) for r in step.operands]
    attrs = dict(step.attrs)
    if plan.slots[step.results[0].slot].kind == "scalar":
        made = step.op.kernel(*operands, **attrs)
        parts = made if len(step.results) > 1 else (made,)
        values.update(zip((r.slot for r in step.results), parts, strict=True))
        return
    targets = [seen(values[r.slot], r) for r in step.results]
    if step.op.out:
        extra = {"bits": values[step.scratch[0].slot]} if step.scratch else {}
        out = targets[0] if len(targets) == 1 else tuple(targets)
        step.op.kernel(*operands, out=out, **extra, **attrs)
    else:
        np.copyto(targets[0], step.op.kernel(*operands, **attrs))


def _result(values: dict[int, Any], ref: Ref) -> Any:
    found = seen(values[ref.slot], ref)
    return found[()] if np.ndim(found) == 0 else found
