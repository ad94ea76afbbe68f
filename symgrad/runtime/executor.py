"""The executor: walks a plan, calling one kernel after the other. The reference for codegen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.ir.errors import KernelError
from symgrad.ir.node import Node
from symgrad.lowering.native import NativeCall, NativeLoop
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Call, Copy, Ref, Step
from symgrad.lowering.tiling import TileLoop, combiner
from symgrad.lowering.visitor import Visitor

if TYPE_CHECKING:
    from symgrad.lowering.choices import Branch
    from symgrad.lowering.loops import Loop
    from symgrad.lowering.whiles import Sized, While


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
    values.update((i, np.empty(plan.slots[i].shape, plan.slots[i].dtype)) for i in plan.allocated)
    values.update(zip(plan.inputs, inputs, strict=True))
    values.update(zip(plan.variables, variables, strict=True))
    values.update(zip((i for i in plan.nexts if i >= 0), nexts, strict=True))
    executor = _Executor(plan, values)
    for step in plan.steps:
        try:
            executor.visit(step)
        except (KernelError, StepFailed):
            raise
        except Exception as error:
            raise StepFailed(step, error) from error
    results = map(executor.value, plan.returned)
    return [found[()] if np.ndim(found) == 0 else found for found in results]


class _Executor(Visitor[None]):
    """Runs the steps of a plan; their results are left in `values`, by slot."""

    def __init__(self, plan: Plan, values: dict[int, Any]) -> None:
        self.plan, self.values = plan, values

    def value(self, ref: Ref) -> Any:
        """The value of a slot, seen through views."""
        return ref.seen(self.values[ref.slot])

    def call(self, step: Call) -> None:
        operands, attrs = list(map(self.value, step.operands)), dict(step.attrs)
        if step.takes_out(self.plan):
            targets = tuple(map(self.value, step.results))
            extra = {"scratch": self.values[step.scratch[0].slot]} if step.scratch else {}
            out = targets[0] if len(targets) == 1 else targets
            step.op.kernel(*operands, out=out, **extra, **attrs)
            return
        made = step.op.kernel(*operands, **attrs)
        made = made if len(step.results) > 1 else (made,)
        for ref, value in zip(step.results, made, strict=True):
            if self.plan.is_scalar(ref):
                self.values[ref.slot] = value
            else:
                np.copyto(self.value(ref), value)

    def copy(self, step: Copy) -> None:
        np.copyto(self.value(step.results[0]), self.value(step.operands[0]))

    def tile_loop(self, step: TileLoop) -> None:
        tiling = step.tiling
        operands = list(map(self.value, step.operands))
        arrays = [self.values[r.slot] for r in step.scratch]
        (whole, *_), remainder, parts = tiling.shared_out(arrays)
        ends = list(tiling.ends(step.results, parts))
        for number, (first, end, inner) in enumerate(tiling.spans()):
            workspace = whole if inner is tiling.plan else remainder
            given = [_cut(x, a, first, end) for x, a in zip(operands, tiling.operands, strict=True)]
            nexts, scalars = [], []
            for ref, axis, part, y in ends:
                if axis is not None:
                    nexts.append(_cut(self.value(ref), axis, first, end))
                elif y.ndim:
                    nexts.append(part[number])
                else:
                    scalars.append(part)
            made = execute(inner, given, [], nexts, workspace)
            for part, value in zip(scalars, made, strict=True):
                part[number] = value
        for ref, _, part, y in (e for e in ends if e[1] is None):
            self._join(ref, part, y)

    def native_loop(self, step: NativeLoop) -> None:
        given = list(map(self.value, step.operands))
        ends = list(step.ends([self.values[r.slot] for r in step.scratch]))
        given += [self.value(ref) if part is None else part for ref, part, _ in ends]
        step.code.call(*given, 0, step.code.rows)
        for ref, part, y in ends:
            if part is not None:
                self._join(ref, part, y)

    def native_call(self, step: NativeCall) -> None:
        slots = [ref.slot for ref in step.results]
        given = [i for i in slots if self.plan.slots[i].kind == "next"]
        made = step.code.call(*map(self.value, step.operands), *(self.values[i] for i in given))
        self.values.update(zip((i for i in slots if i not in given), made, strict=True))

    def _join(self, ref: Ref, parts: Any, y: Node) -> None:
        """A reduction over the rows, from those of their parts."""
        ufunc, options = combiner(y)
        if self.plan.is_scalar(ref):
            self.values[ref.slot] = ufunc.reduce(parts, **options)
        else:
            ufunc.reduce(parts, axis=0, out=self.value(ref), **options)

    def loop(self, step: Loop) -> None:
        turns = step.turns
        init, sequences, fixed = (list(map(self.value, refs)) for refs in step.parts())
        workspace, spares = turns.shared_out([self.values[r.slot] for r in step.scratch])
        targets, stacks = step.results[: turns.carries], step.results[turns.carries :]
        arrays = turns.arrays[turns.carries :]
        state, others = list(init), list(init)
        histories = {i: self.value(targets[i]) for i in turns.kept}
        for i, spare in enumerate(spares):
            if i in histories:
                np.copyto(histories[i][turns.first], init[i])
            elif spare is not None:
                # The arrays change places in each step, and the last one is the result.
                places = [self.value(targets[i]), spare]
                state[i], others[i] = places if len(turns.steps) % 2 == 0 else places[::-1]
                np.copyto(state[i], init[i])
        written = [self.value(r) if a else None for r, a in zip(stacks, arrays, strict=True)]
        read, write = turns.rows
        arrays_carried = turns.arrays[: turns.carries]
        for t in turns.steps:
            for i, history in histories.items():
                state[i], others[i] = history[t + read], history[t + write]
            nexts = [x for x, array in zip(others, arrays_carried, strict=True) if array]
            nexts += [stack[t] for stack in written if stack is not None]
            given = [*state, *(x[t] for x in sequences), *fixed]
            numbers = iter(execute(turns.plan, given, [], nexts, workspace))
            for i, array in enumerate(arrays_carried):
                state[i], others[i] = others[i] if array else next(numbers), state[i]
            for ref, is_array in zip(stacks, arrays, strict=True):
                if not is_array:
                    self.value(ref)[t] = next(numbers)
        for i, array in enumerate(arrays_carried):
            if not array:
                self.values[targets[i].slot] = state[i]

    def while_loop(self, step: While) -> None:
        init, fixed = (list(map(self.value, refs)) for refs in step.parts())
        looks, workspace, spares = step.shared_out([self.values[r.slot] for r in step.scratch])
        count, targets = np.int64(0), step.results[1:]
        state, others = list(init), list(init)
        for i, spare in enumerate(spares):
            if spare is not None:
                state[i], others[i] = self.value(targets[i]), spare
                np.copyto(state[i], init[i])
        while execute(step.test, [*state, *fixed], [], [], looks)[0]:
            if step.most is not None and count == step.most:
                raise RuntimeError(step.exceeded)
            nexts = [x for x, spare in zip(others, spares, strict=True) if spare is not None]
            numbers = iter(execute(step.turns.plan, [*state, *fixed], [], nexts, workspace))
            for i, spare in enumerate(spares):
                made = next(numbers) if spare is None else others[i]
                state[i], others[i] = made, state[i]
            count += 1
        self.values[step.results[0].slot] = count
        for i, spare in enumerate(spares):
            if spare is None:
                self.values[targets[i].slot] = state[i]
            else:
                np.copyto(self.value(targets[i]), state[i])

    def sized(self, step: Sized) -> None:
        count, *given = map(self.value, step.operands)
        plan = step.of(int(count))
        workspace = [np.empty(s.shape, s.dtype) for s in plan.arrays_in_arena()]
        self._run_into(step, plan, [count, *given], workspace)

    def branch(self, step: Branch) -> None:
        p, *given = map(self.value, step.operands)
        sides = list(step.sides([self.values[r.slot] for r in step.scratch]))
        plan, workspace = sides[0] if p else sides[1]
        self._run_into(step, plan, given, workspace)

    def _run_into(self, step: Step, plan: Plan, given: Sequence[Any], workspace: Any) -> None:
        """Run a plan whose results are those of a step, each written into its place."""
        pairs = list(zip(step.results, [n >= 0 for n in plan.nexts], strict=True))
        nexts = [self.value(ref) for ref, is_array in pairs if is_array]
        numbers = iter(execute(plan, given, [], nexts, workspace))
        for ref, is_array in pairs:
            if not is_array:
                self.values[ref.slot] = next(numbers)


def _cut(array: Any, axis: int | None, first: int, end: int) -> Any:
    """The rows of an array from one to another; the whole array if it has no rows."""
    return array if axis is None else array[(slice(None),) * axis + (slice(first, end),)]
