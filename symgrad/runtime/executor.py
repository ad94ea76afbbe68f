"""The executor: walks a plan, calling one kernel after the other. The reference for codegen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.ir.errors import KernelError
from symgrad.lowering.plan import Plan, Ref, Step
from symgrad.lowering.tiling import TILED, Tiling
from symgrad.runtime.workspace import seen


class StepFailed(Exception):
    """A kernel raised `error` in this step."""

    def __init__(self, step: Step, error: Exception) -> None:
        super().__init__(step, error)
        self.step = step
        self.error = error


def execute(
    plan: Plan,
    inputs: Sequence[Any],
    variables: Sequence[Any],
    nexts: Sequence[Any],
    workspace: Sequence[Any],
) -> list[Any]:
    """Run a plan on arrays: the outputs, and the next values of updated 0-d variables.

    `nexts` are the spare arrays of those updated variables that are not 0-d, `workspace` what
    `allocate` made. Nothing is checked; `Program` does that. Raises `StepFailed`.
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
        try:
            run_step(plan, step, values)
        except (KernelError, StepFailed):
            raise
        except Exception as error:
            raise StepFailed(step, error) from error
    scalars = [r for r, n in zip(plan.updates, plan.nexts, strict=True) if n < 0]
    return [_result(values, r) for r in (*plan.outputs, *scalars)]


def run_step(plan: Plan, step: Step, values: dict[int, Any]) -> None:
    """Call the kernel of one step; its results are left in `values`."""
    if step.op is TILED:
        run_tiles(plan, step, values)
        return
    operands = [seen(values[r.slot], r) for r in step.operands]
    attrs = dict(step.attrs)
    if writes_itself(plan, step):
        targets = tuple(seen(values[r.slot], r) for r in step.results)
        extra = {"scratch": values[step.scratch[0].slot]} if step.scratch else {}
        out = targets[0] if len(targets) == 1 else targets
        step.op.kernel(*operands, out=out, **extra, **attrs)
        return
    made = step.op.kernel(*operands, **attrs)
    for ref, value in zip(step.results, made if len(step.results) > 1 else (made,), strict=True):
        if plan.slots[ref.slot].kind == "scalar":
            values[ref.slot] = value
        else:
            np.copyto(seen(values[ref.slot], ref), value)


def run_tiles(plan: Plan, step: Step, values: dict[int, Any]) -> None:
    """Run the plan of a group for one tile of rows after the other, and join what they give."""
    tiling: Tiling = dict(step.attrs)["tiling"]
    operands = [seen(values[r.slot], r) for r in step.operands]
    results = [seen(values[r.slot], r) for r in step.results if plan.slots[r.slot].kind != "scalar"]
    arrays = [values[r.slot] for r in step.scratch]
    (whole, *_), remainder, parts = tiling.shared_out(arrays)
    for number, (first, end, inner) in enumerate(tiling.spans()):
        workspace = whole if inner is tiling.plan else remainder
        given = [_cut(x, a, first, end) for x, a in zip(operands, tiling.operands, strict=True)]
        left, joined = iter(results), iter(parts)
        nexts, scalars = [], []
        for axis, y in zip(tiling.results, inner.graph.outputs, strict=True):
            if axis is not None:
                nexts.append(_cut(next(left), axis, first, end))
            elif y.ndim:
                next(left)
                nexts.append(next(joined)[number])
            else:
                scalars.append(next(joined))
        for part, value in zip(scalars, execute(inner, given, [], nexts, workspace), strict=True):
            part[number] = value
    joined = iter(zip(parts, tiling.combiners, strict=True))
    for ref, axis in zip(step.results, tiling.results, strict=True):
        if axis is None:
            part, (ufunc, options) = next(joined)
            if plan.slots[ref.slot].kind == "scalar":
                values[ref.slot] = ufunc.reduce(part, **options)
            else:
                ufunc.reduce(part, axis=0, out=seen(values[ref.slot], ref), **options)


def _cut(array: Any, axis: int | None, first: int, end: int) -> Any:
    """The rows of an array from one to another; the whole array if it has no rows."""
    return array if axis is None else array[(slice(None),) * axis + (slice(first, end),)]


def writes_itself(plan: Plan, step: Step) -> bool:
    """Whether the kernel is handed the arrays for its results."""
    return step.op.out and all(plan.slots[r.slot].kind != "scalar" for r in step.results)


def _result(values: dict[int, Any], ref: Ref) -> Any:
    found = seen(values[ref.slot], ref)
    return found[()] if np.ndim(found) == 0 else found
