"""Calls of kernels, with the constants with which NumPy's are fastest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.ir.types import TensorType
from symgrad.lowering.schedule import Task
from symgrad.lowering.steps import Call, Ref, RowSums, SlotBuilder, add_slot
from symgrad.ops.linalg.products import matmul_p, row_sums
from symgrad.ops.select import maximum, relu

EXTREMA = (np.maximum, np.minimum)
# With a row of numbers NumPy's extrema are two to three times as fast as with one number, if there
# are enough of them.
LEAST_ROW, LEAST_SIZE = 64, 2**15
MOST_KEPT = 2**24  # elements; a program of a graph that was read is made in little memory


class Calls:
    """Makes the steps that call kernels.

    An extremum of an array and a number reads a row of that number, a sum of rows a row of 1.
    `plain` calls have no such constants.
    """

    def __init__(self, builders: list[SlotBuilder], plain: bool) -> None:
        self.builders, self.plain = builders, plain
        self.uniform: dict[Any, Ref] = {}

    def step(
        self, task: Task, operands: tuple[Ref, ...], results: tuple[Ref, ...], scratch: Any
    ) -> Call:
        """The call of a task's kernel."""
        kind, op, attrs = Call, task.node.op, task.attrs
        known = not self.plain and (op in (row_sums.op, relu.op) or op.kernel in EXTREMA)
        if known and max((s for r in operands for s in self._shape(r)), default=0) <= MOST_KEPT:
            t = self.builders[results[0].slot].type
            shape: Any = t.shape
            is_large = math.prod(shape) >= LEAST_SIZE and shape[-1] >= LEAST_ROW
            is_large &= t.dtype.kind == "f"
            if op is row_sums.op:
                ones = (self._shape(operands[0])[-1], *(1,) * task.node.attr("keepdims"))
                kind, op, attrs = RowSums, matmul_p.op, ()
                operands = (*operands, self._filled(t.dtype.type(1), ones))
            elif is_large and op is relu.op:
                op, attrs = maximum.op, ()
                operands = (*operands, self._filled(t.dtype.type(0), shape[-1:]))
            elif is_large and op.kernel in EXTREMA:
                operands = tuple([self._as_row(r, shape[-1:]) for r in operands])
        return kind(task.node, operands, results, task.group, scratch, op=op, attrs=attrs)

    def _shape(self, ref: Ref) -> Any:
        return ref.shape(self.builders[ref.slot].type)

    def _as_row(self, ref: Ref, shape: tuple[int, ...]) -> Ref:
        """A number that is a constant as a row of it; any other value as it is."""
        d = self.builders[ref.slot]
        is_number = d.kind == "constant" and not d.type.shape
        return self._filled(d.value, shape) if is_number else ref

    def _filled(self, value: Any, shape: tuple[int, ...]) -> Ref:
        """A constant that is one number throughout."""
        key = value.tobytes(), value.dtype, shape
        if key not in self.uniform:
            array = np.full(shape, value)
            array.flags.writeable = False
            t = TensorType(shape, array.dtype)
            self.uniform[key] = add_slot(self.builders, "constant", t, array)
        return self.uniform[key]
