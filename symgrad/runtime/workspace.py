"""The arrays that a plan works in."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.lowering.plan import ALIGNMENT, Plan

Array = np.ndarray[Any, np.dtype[Any]]


def allocate(plan: Plan) -> list[Array]:
    """One arena, and the arrays in it, in the order of `plan.arrays_in_arena()`."""
    memory = np.empty(plan.arena_bytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    arrays = []
    for slot in plan.arrays_in_arena():
        piece = memory[start + slot.offset : start + slot.offset + slot.nbytes]
        arrays.append(piece.view(slot.dtype).reshape(slot.shape))
    return arrays
