"""Memory: an offset in one arena for every value that is neither given nor kept by the caller."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from symgrad.lowering.plan import ALIGNMENT

SMALL = 16  # a value is small if that many are no larger than the largest


def assign_offsets(lifetimes: Sequence[tuple[int, int, int]]) -> tuple[list[int], int]:
    """Offsets for values given as (first step, last step, bytes), and the size of the arena.

    Two values that live at the same step never overlap. Best fit: a value takes the smallest free
    block that holds it; neighbouring free blocks are joined. A small value in a large block leaves
    no room for the next large one: if all take less so, the small ones have an arena of their own.
    O(n log n) in the number of values.
    """
    sizes = [_rounded(nbytes) for _, _, nbytes in lifetimes]
    ordered = sorted(range(len(sizes)), key=lambda i: lifetimes[i][0])
    mixed, top = _best_fit(lifetimes, sizes, ordered)
    most = max(sizes, default=0)
    large, large_top = _best_fit(lifetimes, sizes, [i for i in ordered if sizes[i] * SMALL > most])
    small, small_top = _best_fit(lifetimes, sizes, [i for i in ordered if i not in large])
    apart = large | {i: large_top + offset for i, offset in small.items()}
    if large_top + small_top < top:
        mixed, top = apart, large_top + small_top
    return [mixed[i] for i in range(len(sizes))], top


def _best_fit(
    lifetimes: Sequence[tuple[int, int, int]], sizes: Sequence[int], ordered: Sequence[int]
) -> tuple[dict[int, int], int]:
    """An offset for some of the values, ordered by their first steps, and the bytes they take."""
    arena, offsets, ended = _Arena(), dict[int, int](), 0
    by_end = sorted(ordered, key=lambda i: lifetimes[i][1])
    for i in ordered:
        while ended < len(by_end) and lifetimes[by_end[ended]][1] < lifetimes[i][0]:
            done = by_end[ended]
            arena.free(offsets[done], sizes[done])
            ended += 1
        offsets[i] = arena.take(sizes[i])
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
