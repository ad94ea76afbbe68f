"""The arrays that a plan works in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.lowering.plan import ALIGNMENT, Plan

Array = np.ndarray[Any, np.dtype[Any]]
PAGE = 4096


class _Memory(np.ndarray[Any, np.dtype[Any]]):
    """Bytes in which an array lies: of another class, or NumPy would let views hold these."""


def paged(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array that begins a page of memory, and is held by what is seen of it."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.ndarray.__new__(_Memory, size + PAGE, np.uint8)
    return np.ndarray(shape, dtype, memory, -memory.ctypes.data % PAGE)


def allocate(plan: Plan) -> list[Array]:
    """One arena, and the arrays in it, in the order of `plan.arrays_in_arena()`."""
    memory = np.empty(plan.arena_bytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    arrays = []
    for slot in plan.arrays_in_arena():
        piece = memory[start + slot.offset : start + slot.offset + slot.nbytes]
        arrays.append(piece.view(slot.dtype).reshape(slot.shape))
    return arrays
