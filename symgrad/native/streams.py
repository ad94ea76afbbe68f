"""Streams: results that are too large to stay in the caches are written past them.

An ordinary store first reads the line that it is going to write. A streamed one does not, and
leaves in the caches what lies there, but wants memory that is aligned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from symgrad.native.groups import Group
from symgrad.native.vectors import Code, Value

LEAST_BYTES = 2**24  # of results: about the half of a last cache
LINE, PAGE, NEAR = 64, 2**12, 512  # bytes


def streamed(group: Group) -> tuple[bool, ...]:
    """Of each result whether it may be streamed: with the others it is large, and lies so.

    Each of its vectors begins a line, or a part of one, if the array does.
    """
    sizes, fitting, total = group.space.sizes, list[bool](), 0
    # Elements at which a call may begin, and a block within it.
    begins = (group.grain, group.block) if group.flat else ()
    for y in group.graph.outputs:
        *outer, inner = group.space.strides[y]
        fits = (
            y not in group.ends
            and inner == 1
            and not any(s % group.lanes for s in (*outer, *begins))
        )
        fitting.append(fits)
        loops = zip(sizes, (*outer, inner), strict=True)
        count = math.prod(n for n, stride in loops if stride) if fits else 0
        total += count * y.tensor.dtype.itemsize
    return tuple(fits and total >= LEAST_BYTES for fits in fitting)


class Streams:
    """The results of a group that may be streamed, by their numbers among its arrays."""

    def __init__(self, group: Group, code: Code) -> None:
        self.group, self.code = group, code
        found = enumerate(streamed(group), len(group.graph.inputs))
        self.results = frozenset(k for k, is_streamed in found if is_streamed)
        self.may = "false"

    def begin(self, pointers: Sequence[str]) -> None:
        """Ask whether these results are aligned, and far enough from what is read meanwhile.

        A line that is to be read, and lies shortly after one that is still to be written as the
        processor compares them, by its place in a page, waits for it.
        """
        code, bad = self.code, "false"
        read = [k for k, x in enumerate(self.group.graph.inputs) if self.group.space.is_inner(x)]
        place = {
            k: code.scalar(f"ptrtoint ptr {pointers[k]} to i64") for k in (*read, *self.results)
        }
        for k in sorted(self.results):
            tests = [(code.scalar(f"and i64 {place[k]}, {LINE - 1}"), "ne", 0)]
            for x in read:
                apart = code.scalar(f"sub i64 {place[k]}, {place[x]}")
                tests.append((apart, "eq", 0))
                less = code.scalar(f"sub i64 {apart}, 1")
                tests.append((code.scalar(f"and i64 {less}, {PAGE - 1}"), "ult", NEAR - 1))
            for value, test, number in tests:
                found = code.scalar(f"icmp {test} i64 {value}, {number}")
                bad = code.scalar(f"or i1 {bad}, {found}")
        self.may = code.scalar(f"xor i1 {bad}, true")

    def store(
        self, values: Sequence[tuple[int, Value]], place: Callable[[int], str], last: str
    ) -> None:
        """Write the next elements of results; the last ones, which are fewer, as they are."""
        code, places = self.code, {k: place(k) for k, _ in values}
        if not any(k in self.results for k, _ in values):
            for k, x in values:
                code.store(x, places[k])
            return
        inner = code.scalar(f"xor i1 {last}, true")
        now = code.scalar(f"and i1 {self.may}, {inner}")
        stream, plain, after = (code.new_label(stem) for stem in ("stream", "plain", "stored"))
        code.do(f"br i1 {now}, label %{stream}, label %{plain}")
        for label in (stream, plain):
            code.label(label)
            for k, x in values:
                code.store(x, places[k], streamed=label == stream and k in self.results)
            code.do(f"br label %{after}")
        code.label(after)

    def end(self) -> None:
        """Let what was streamed be seen by all before anything that comes later."""
        if self.results:
            self.code.do("fence seq_cst")
