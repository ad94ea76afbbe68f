"""Memory: an offset in one arena for every value that is neither given nor kept by the caller."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

from symgrad.lowering.plan import ALIGNMENT

SMALL = 16  # a value is small if that many are no larger than the largest
WORTH, MOST = 2**16, 256  # bytes of an arena, and values, with which other ways are tried
Lifetimes: TypeAlias = "Sequence[tuple[int, int, int]]"


def assign_offsets(lifetimes: Lifetimes) -> tuple[list[int], int]:
    """Offsets for values given as (first step, last step, bytes), and the size of the arena.

    Two values that live at the same step never overlap. Best fit: a value takes the smallest free
    block that holds it; neighbouring free blocks are joined. A small value in a large block leaves
    no room for the next large one: if all take less so, the small ones have an arena of their own.
    O(n log n) in the number of values. Where that takes more than what is alive at once, values
    are also placed the largest first, and those first that are large for long (Pisarchyk and Lee,
    Efficient memory management for deep neural net inference, 2020).
    """
    sizes = [_rounded(nbytes) for _, _, nbytes in lifetimes]
    ordered = sorted(range(len(sizes)), key=lambda i: lifetimes[i][0])
    best, top = _best_fit(lifetimes, sizes, ordered)
    most = max(sizes, default=0)
    large, large_top = _best_fit(lifetimes, sizes, [i for i in ordered if sizes[i] * SMALL > most])
    small, small_top = _best_fit(lifetimes, sizes, [i for i in ordered if i not in large])
    if large_top + small_top < top:
        best = large | {i: large_top + offset for i, offset in small.items()}
        top = large_top + small_top
    if top >= WORTH and len(sizes) <= MOST and top > _alive(lifetimes, sizes):
        steps = [last - first + 1 for first, last, _ in lifetimes]
        for weight in (sizes, [s * n for s, n in zip(sizes, steps, strict=True)]):
            order = sorted(ordered, key=lambda i: -weight[i])
            found, found_top = _in_gaps(lifetimes, sizes, order)
            if found_top < top:
                best, top = found, found_top
    return [best[i] for i in range(len(sizes))], top


def _alive(lifetimes: Lifetimes, sizes: Sequence[int]) -> int:
    """The bytes of the values that live at the fullest step: no arena is smaller."""
    change = Counter[int]()
    for (first, last, _), size in zip(lifetimes, sizes, strict=True):
        change[first] += size
        change[last + 1] -= size
    return max(accumulate(change[step] for step in sorted(change)))


def _in_gaps(
    lifetimes: Lifetimes, sizes: Sequence[int], ordered: Sequence[int]
) -> tuple[dict[int, int], int]:
    """Offsets for values in an order, each in the smallest gap that there is while it lives."""
    offsets, top = dict[int, int](), 0
    for i in ordered:
        first, last, _ = lifetimes[i]
        beside = (j for j in offsets if lifetimes[j][0] <= last and first <= lifetimes[j][1])
        end, gaps = 0, list[tuple[int, int]]()
        for start, size in sorted((offsets[j], sizes[j]) for j in beside):
            if start - end >= sizes[i]:
                gaps.append((start - end, end))
            end = max(end, start + size)
        offsets[i] = min(gaps)[1] if gaps else end
        top = max(top, offsets[i] + sizes[i])
    return offsets, top


def _best_fit(
    lifetimes: Lifetimes, sizes: Sequence[int], ordered: Sequence[int]
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
