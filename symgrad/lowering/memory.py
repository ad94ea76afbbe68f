"""Memory: an offset in one arena for every value that is neither given nor kept by the caller."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from symgrad.lowering.plan import ALIGNMENT


def assign_offsets(lifetimes: Sequence[tuple[int, int, int]]) -> tuple[list[int], int]:
    """Offsets for values given as (first step, last step, bytes), and the size of the arena.

    Two values that live at the same step never overlap. Best fit: a value takes the smallest free
    block that holds it; neighbouring free blocks are joined. O(n log n) in the number of values.
    """
    arena = _Arena()
    offsets = [0] * len(lifetimes)
    by_start = sorted(range(len(lifetimes)), key=lambda i: lifetimes[i][0])
    by_end = sorted(range(len(lifetimes)), key=lambda i: lifetimes[i][1])
    ended = 0
    for i in by_start:
        first, _, nbytes = lifetimes[i]
        while ended < len(by_end) and lifetimes[by_end[ended]][1] < first:
            done = by_end[ended]
            arena.free(offsets[done], _rounded(lifetimes[done][2]))
            ended += 1
        offsets[i] = arena.take(_rounded(nbytes))
    return offsets, arena.top


def _rounded(nbytes: int) -> int:
    return max(1, -(-nbytes // ALIGNMENT)) * ALIGNMENT


class _Arena:
    """Free blocks by size, by where they begin and by where they end."""

    def __init__(self) -> None:
        self.top = 0
        self.by_size: list[tuple[int, int]] = []
        self.size_at: dict[int, int] = {}
        self.start_of: dict[int, int] = {}

    def take(self, size: int) -> int:
        i = bisect_left(self.by_size, (size, 0))
        if i < len(self.by_size):
            found, start = self.by_size[i]
            self._remove(start, found)
            if found > size:
                self._insert(start + size, found - size)
            return start
        last = self.start_of.get(self.top)
        if last is None:
            start = self.top
        else:  # the last block is too small: let it grow
            start = last
            self._remove(last, self.top - last)
        self.top = start + size
        return start

    def free(self, start: int, size: int) -> None:
        before = self.start_of.get(start)
        if before is not None:
            self._remove(before, start - before)
            start, size = before, start + size - before
        after = self.size_at.get(start + size)
        if after is not None:
            self._remove(start + size, after)
            size += after
        self._insert(start, size)

    def _insert(self, start: int, size: int) -> None:
        insort(self.by_size, (size, start))
        self.size_at[start] = size
        self.start_of[start + size] = start

    def _remove(self, start: int, size: int) -> None:
        del self.by_size[bisect_left(self.by_size, (size, start))]
        del self.size_at[start]
        del self.start_of[start + size]
