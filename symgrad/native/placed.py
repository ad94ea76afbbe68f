"""Parts that are placed somewhere in an array, or added there: read through a mask where they lie.

In NumPy each such op is a pass over the array. In a loop over the whole of it, each element is that
of the part, or is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from symgrad.ir.evaluate import resolve
from symgrad.ir.node import Node
from symgrad.native.ends import load_masked
from symgrad.native.operations import kind_in
from symgrad.native.vectors import Code, Value
from symgrad.ops.index.slices import place, put

PLACED = (place.op, put.op)


class Along(NamedTuple):
    """A part along a loop: its first turn, how many, and the elements from one to the next."""

    first: int
    length: int
    stride: int


class RowPart(NamedTuple):
    """A part in a row: where it would lie at the first column, and in how many columns it is."""

    base: str
    columns: str


def bounds(node: Node, shape: Sequence[int], sizes: Mapping[str, int]) -> list[tuple[int, int]]:
    """The first index and the number of them along each axis; none for one that has a step."""
    index = resolve(node.attr("index"), sizes)
    found = [slice(*i).indices(n) for i, n in zip(index, shape, strict=True)]
    if any(step != 1 for _, _, step in found):
        return []
    return [(start, max(stop - start, 0)) for start, stop, _ in found]


def part_of_row(
    code: Code, node: Node, pointer: str, loops: Sequence[Along], turns: Sequence[str]
) -> RowPart:
    """The part of the row in which the outer loops are at these turns."""
    size, base, columns = node.tensor.dtype.itemsize, pointer, str(loops[-1].length)
    for along, turn in zip(loops, turns, strict=False):
        inside = code.scalar(f"sub i64 {turn}, {along.first}")
        if along.stride or along.first:
            away = code.scalar(f"mul i64 {inside}, {along.stride * size}")
            base = code.scalar(f"getelementptr i8, ptr {base}, i64 {away}")
        fits = code.scalar(f"icmp ult i64 {inside}, {along.length}")
        columns = code.scalar(f"select i1 {fits}, i32 {columns}, i32 0")
    back = -loops[-1].first * size
    return RowPart(code.scalar(f"getelementptr i8, ptr {base}, i64 {back}"), columns)


def with_part(node: Node, first: int, part: RowPart, i: str, operands: Sequence[Value]) -> Value:
    """The lanes from column i on: of a part that begins at a `first` one, else of an operand."""
    kind, code = kind_in(node), operands[-1].code
    narrow = code.scalar(f"trunc i64 {i} to i32")
    start = code.scalar(f"sub i32 {narrow}, {first}")
    mask = code.numbered("u4") + code.splat("u4", start) < code.splat("u4", part.columns)
    away = code.scalar(f"mul i64 {i}, {node.tensor.dtype.itemsize}")
    found = load_masked(kind, code.scalar(f"getelementptr i8, ptr {part.base}, i64 {away}"), mask)
    if node.op is place.op:
        return found
    old = operands[0]
    return code.select(mask, old + found if node.attr("mode") == "add" else found, old)
