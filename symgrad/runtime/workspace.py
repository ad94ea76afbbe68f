"""The arrays that a plan works in."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from symgrad.lowering.plan import ALIGNMENT, Plan

Array = np.ndarray[Any, np.dtype[Any]]
PAGE = 4096
MOST_KEPT = 2**28  # bytes of results; memory for more is given back to the system


class _Bytes(np.ndarray[Any, np.dtype[Any]]):
    """Memory of its own: of another class, or NumPy would let what lies in it hold this."""


class _Lent(_Bytes):
    """Such memory as it is lent: when nobody holds this any more, it is given back to `kept`."""

    kept: deque[Array] | None = None

    def __del__(self) -> None:
        if self.kept is not None and self.base is not None:
            self.kept.append(self.base)


class Pages:
    """Memory for large results that begin a page. What nobody holds any more is taken again.

    To be given fresh memory by the system, page by page, and cleared, can take longer than to
    compute a result. No more than `most` arrays are kept. What was let go of last is taken first:
    it may still lie in a cache.
    """

    def __init__(self, most: int) -> None:
        self.kept: deque[Array] = deque(maxlen=most)

    def paged(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array that begins a page of memory, and is held by what is seen of it."""
        size = math.prod(shape) * np.dtype(dtype).itemsize + PAGE
        memory = self._taken(size)
        lent = _Lent(size, np.uint8, _Bytes(size, np.uint8) if memory is None else memory)
        lent.kept = self.kept
        return np.ndarray(shape, dtype, lent, -lent.ctypes.data % PAGE)

    def _taken(self, size: int) -> Array | None:
        for _ in range(len(self.kept)):
            try:
                found = self.kept.pop()
            except IndexError:  # another thread was faster
                return None
            if len(found) == size:
                return found
            self.kept.appendleft(found)
        return None


def paged(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array that begins a page of memory, and is held by what is seen of it."""
    return Pages(0).paged(shape, dtype)


def allocate(plan: Plan) -> list[Array]:
    """One arena, and the arrays in it, in the order of `plan.arrays_in_arena()`."""
    memory = np.empty(plan.arena_bytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    arrays = []
    for slot in plan.arrays_in_arena():
        piece = memory[start + slot.offset : start + slot.offset + slot.nbytes]
        arrays.append(piece.view(slot.dtype).reshape(slot.shape))
    return arrays
