"""Memory: an offset in one arena for every value that is neither given nor kept by the caller."""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

from symgrad.lowering.plan import ALIGNMENT

SMALL = 16  # a value is small if that many are no larger than the largest
WORTH, MOST = 2**16, 256  # bytes of an arena, and values, with which other ways are tried
TRIED = 2500  # values that each walk places in all
Lifetimes: TypeAlias = "Sequence[tuple[int, int, int]]"


def assign_offsets(lifetimes: Lifetimes) -> tuple[list[int], int]:
    """Offsets for values given as (first step, last step, bytes), and the size of the arena.

    Two values that live at the same step never overlap. Best fit: a value takes the smallest free
    block that holds it; neighbouring free blocks are joined. A small value in a large block leaves
    no room for the next large one: if all take less so, the small ones have an arena of their own.
    O(n log n) in the number of values. Where that takes more than what is alive at once, other
    orders are tried: see `_Gaps`.
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
    if top >= WORTH and len(sizes) <= MOST and top > (least := fullest(lifetimes)[0]):
        found, found_top = _Gaps(lifetimes, sizes).searched(least)
        if found_top < top:
            best, top = dict(enumerate(found)), found_top
    return [best[i] for i in range(len(sizes))], top


def assign_within(lifetimes: Lifetimes, most: int) -> list[int]:
    """Offsets for those values that so many bytes have room for, the first ones first; -1 for
    others. The time is quadratic in their number.
    """
    sizes = [_rounded(nbytes) for _, _, nbytes in lifetimes]
    return _Gaps(lifetimes, sizes).placed(range(len(sizes)), most)[0]


def fullest(lifetimes: Lifetimes) -> tuple[int, int]:
    """The bytes of the values that live at the fullest step, and that: no arena is smaller."""
    change = Counter[int]()
    for first, last, nbytes in lifetimes:
        change[first] += _rounded(nbytes)
        change[last + 1] -= _rounded(nbytes)
    steps = sorted(change)
    return max(zip(accumulate(map(change.__getitem__, steps)), steps, strict=True), default=(0, 0))


class _Gaps:
    """Offsets for values in an order, each in the smallest gap that there is while it lives.

    Tried are the largest first, those first that are large for long (Pisarchyk and Lee, Efficient
    memory management for deep neural net inference, 2020), and those beside which most lies. From
    each a walk goes on: what reaches the top is placed earlier.
    """

    def __init__(self, lifetimes: Lifetimes, sizes: Sequence[int]) -> None:
        self.lifetimes, self.sizes = lifetimes, sizes
        spans = list(enumerate(lifetimes))
        self.beside = [
            [j for j, (a, b, _) in spans if a <= last and first <= b and j != i]
            for i, (first, last, _) in spans
        ]

    def searched(self, least: int) -> tuple[list[int], int]:
        """The best offsets that were found, and the bytes they take: `least`, if all goes well."""
        from random import Random

        values, random = range(len(self.sizes)), Random(0)
        load = [sum([self.sizes[j] for j in (i, *self.beside[i])]) for i in values]
        steps = [last - first + 1 for first, last, _ in self.lifetimes]
        best: tuple[list[int], int] = [], sys.maxsize
        for weight in (
            self.sizes,
            [s * n for s, n in zip(self.sizes, steps, strict=True)],
            load,
        ):
            order = sorted(values, key=lambda i: -weight[i])
            for _ in range(max(1, TRIED // len(order))):
                offsets, top = self.placed(order)
                best = min(best, (offsets, top), key=lambda found: found[1])
                if top <= least:
                    return best
                at = next(k for k, i in enumerate(order) if offsets[i] + self.sizes[i] == top)
                order.insert(random.choice((0, random.randrange(at + 1))), order.pop(at))
        return best

    def placed(self, order: Sequence[int], most: int = sys.maxsize) -> tuple[list[int], int]:
        """Offsets for values in this order, and the bytes they take: `most`, or they are left."""
        sizes, top = self.sizes, 0
        offsets = [-1] * len(sizes)
        for i in order:
            size, end, room, found = sizes[i], 0, sys.maxsize, -1
            for start, stop in sorted(
                [(offsets[j], offsets[j] + sizes[j]) for j in self.beside[i] if offsets[j] >= 0]
            ):
                if size <= start - end < room:
                    room, found = start - end, end
                end = max(end, stop)
            start = end if found < 0 else found
            if start + size <= most:
                offsets[i], top = start, max(top, start + size)
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
