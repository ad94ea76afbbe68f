"""Reductions: what holds their lanes on the way, within a row or over the rows of a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symgrad.ir.node import Node
from symgrad.native.groups import MOST_STACK, Group
from symgrad.native.operations import JOINS, kind_in
from symgrad.native.rows import NOWHERE, PLACES, identity, place_of, place_start, placed
from symgrad.native.space import NotNative
from symgrad.native.vectors import Code, Value

LONG_ROW = 2**13  # in longer rows sums are made of sums of so many elements


class Sums:
    """The memory of a group's reductions, which `alloca(kind, count)` gives, and how it is used.

    Of one in lanes it is a vector and, of sums of sums, another; of the place of an extremum the
    other is the place. Of one over the rows that keeps the columns it is a row (`columns`).
    """

    def __init__(self, group: Group, code: Code, alloca: Callable[[str, int], str]) -> None:
        self.group, self.code, self.one = group, code, code.of_lanes(1)
        self.alloca = alloca
        self.lanes: dict[Node, tuple[str, str]] = {}
        self.columns: dict[Node, str] = {}

    def reserve(self) -> None:
        """Get the memory. Raises `NotNative` for rows that are too long."""
        group, lanes = self.group, self.group.lanes
        padded = -(-group.columns // lanes) * lanes
        for node in group.space.reduced:
            if node in group.ends and group.ends[node].is_column:
                if padded * node.tensor.dtype.itemsize > MOST_STACK:
                    raise NotNative("its rows are too long to be summed up")
                self.columns[node] = self.alloca(kind_in(node), padded)
            else:
                kinds = _kinds(node)
                self.lanes[node] = self.alloca(kinds[0], lanes), self.alloca(kinds[1], lanes)

    def start(self, node: Node) -> None:
        """Begin a reduction. One of columns begins with the first row of a block."""
        if node in self.columns:
            return
        kinds, start = _kinds(node), (identity(_join_of(node), kind_in(node)),) * 2
        if node.op in PLACES:
            start = place_start(node, kinds[0]), NOWHERE
        for place, kind, number in zip(self.lanes[node], kinds, start, strict=True):
            self.code.store(self.code.constant(kind, number), place)

    def add(self, node: Node, values: Sequence[Value], at: str, inside: Value | None) -> None:
        """Join the values of some lanes to a sum, the first of which is `at` so many."""
        if node.op in PLACES:
            placed(node, values[0], at, *self.lanes[node], inside)
            return
        code, kind, join = self.code, kind_in(node), _join_of(node)
        x = values[0].converted(kind)
        if len(values) > 1:
            x = x * values[1].converted(kind)
        empty = code.constant(kind, identity(join, kind))
        t = code.type(kind)
        if node in self.columns:
            offset = code.scalar(f"mul i64 {at}, {node.tensor.dtype.itemsize}")
            place = code.scalar(f"getelementptr i8, ptr {self.columns[node]}, i64 {offset}")
            first = code.scalar("icmp eq i64 %r, %b")
            old = code.load(kind, place)
            held = code.line(kind, f"select i1 {first}, {t} {empty.text}, {t} {old.text}")
            code.store(JOINS[join](held, x), place)
            return
        if inside is not None:
            x = code.select(inside, x, empty)
        own, whole = self.lanes[node]
        total = JOINS[join](code.load(kind, own), x)
        if not self.group.flat and self.group.columns > LONG_ROW and join == "add":
            turned = code.scalar(f"and i64 {at}, {LONG_ROW - 1}")
            due = code.scalar(f"icmp eq i64 {turned}, {LONG_ROW - self.group.lanes}")
            more = code.line(kind, f"select i1 {due}, {t} {total.text}, {t} {empty.text}")
            total = code.line(kind, f"select i1 {due}, {t} {empty.text}, {t} {total.text}")
            code.store(code.load(kind, whole) + more, whole)
        code.store(total, own)

    def add_row(self, node: Node, values: Sequence[Value]) -> None:
        """Join a row's one number to a sum over rows: its first lane."""
        kind = kind_in(node)
        x = values[0].converted(kind)
        if len(values) > 1:
            x = x * values[1].converted(kind)
        place = self.lanes[node][0]
        self.one.store(JOINS[_join_of(node)](self.one.load(kind, place), x), place)

    def total(self, node: Node) -> Value:
        """The one number that all lanes make."""
        if node.op in PLACES:
            return place_of(node, self.code, kind_in(node.inputs[0]), *self.lanes[node])
        kind, join = kind_in(node), JOINS[_join_of(node)]
        own, whole = (self.code.load(kind, place) for place in self.lanes[node])
        return Value(self.one, kind, self.code.lane(self.code.folded(join(whole, own), join), 0))


def _kinds(node: Node) -> tuple[str, str]:
    if node.op in PLACES:
        return kind_in(node.inputs[0]), "i4"
    return kind_in(node), kind_in(node)


def _join_of(node: Node) -> str:
    return node.op.combiner or "add"
