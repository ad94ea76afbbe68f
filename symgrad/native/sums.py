"""Reductions: what holds their lanes on the way, within a row or over the rows of a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symgrad.ir.node import Node
from symgrad.native.ends import copy_elements, counted
from symgrad.native.groups import MOST_STACK, End, Group
from symgrad.native.operations import JOINS, kind_in
from symgrad.native.rows import NOWHERE, PLACES, identity, place_of, place_start, placed
from symgrad.native.space import NotNative
from symgrad.native.vectors import Code, Value

LONG_ROW = 2**13  # in longer rows sums are made of sums of so many elements


class Sums:
    """The memory of a group's reductions, and how it is used.

    Of one in lanes it is a vector and, of sums of sums, another; of the place of an extremum the
    other is the place. Of one over the rows that keeps some of their loops it is besides a table
    (`tables`) of vectors, or of rows if it keeps the columns.
    """

    def __init__(self, group: Group, code: Code) -> None:
        self.group, self.code, self.one = group, code, code.of_lanes(1)
        self.lanes: dict[Node, tuple[str, str]] = {}
        self.tables: dict[Node, str] = {}
        self.places: dict[Node, str] = {}
        self.once: dict[Node, str] = {}

    def reserve(self, alloca: Callable[[str, int], str]) -> None:
        """Get the memory from `alloca(kind, count)`. Raises `NotNative` for rows too long."""
        group, lanes = self.group, self.group.lanes
        for node in group.space.reduced:
            end = group.ends.get(node)
            if end is not None and (end.kept or end.is_column):
                count = end.count * self._width(end)
                if count * node.tensor.dtype.itemsize > MOST_STACK:
                    raise NotNative("its rows are too long, or too many, to be summed up")
                self.tables[node] = alloca(kind_in(node), count)
            if end is None or not end.is_column:
                kinds = _kinds(node)
                self.lanes[node] = alloca(kinds[0], lanes), alloca(kinds[1], lanes)

    def _width(self, end: End) -> int:
        """How many elements of the table belong together: whole vectors."""
        lanes = self.group.lanes
        return -(-self.group.columns // lanes) * lanes if end.is_column else lanes

    def start_block(self, node: Node) -> None:
        """Begin a reduction over rows."""
        if node not in self.tables:
            self.start(node)
            return
        code, end, kind = self.code, self.group.ends[node], kind_in(node)
        empty = code.constant(kind, identity(end.join, kind))
        count = end.count * self._width(end) // code.lanes
        with counted(code, count) as i:
            code.store(empty, self._at(node, i, code.lanes))

    def start_row(self, node: Node, turns: Sequence[str]) -> None:
        """Begin the next row of one over rows, of the loops that are at these turns."""
        code, end = self.code, self.group.ends[node]
        strides = zip(turns, self.group.space.strides[node.inputs[0]], strict=False)
        for turn in (turn for turn, stride in strides if not stride):
            first, so_far = code.scalar(f"icmp eq i64 {turn}, 0"), self.once.get(node, "true")
            self.once[node] = code.scalar(f"and i1 {so_far}, {first}")
        if node not in self.tables:
            return
        index = "0"
        for i, size in end.kept.items():
            scaled = code.scalar(f"mul i64 {index}, {size}")
            index = code.scalar(f"add i64 {scaled}, {turns[i]}")
        self.places[node] = self._at(node, index, self._width(end))
        if not end.is_column and self.group.space.is_inner(node.inputs[0]):
            self.start(node)

    def end_row(self, node: Node, values: Sequence[Value]) -> None:
        """Join a row's lanes, or its one number, which is of these values, to what is above it."""
        if not self.group.space.is_inner(node.inputs[0]):
            self._add_row(node, values)
        elif node in self.tables and node in self.lanes:
            code, kind, join = self.code, kind_in(node), JOINS[_join_of(node)]
            own, whole, held = (code.load(kind, p) for p in (*self.lanes[node], self.places[node]))
            code.store(join(held, join(whole, own)), self.places[node])

    def write_part(self, node: Node, place: str) -> None:
        """Write what a block has made."""
        if node not in self.tables:
            self.one.store(self.total(node), place)
            return
        code, end, kind, size = (
            self.code,
            self.group.ends[node],
            kind_in(node),
            node.tensor.dtype.itemsize,
        )
        columns = self.group.columns if end.is_column else 1
        with counted(code, end.count) as i:
            offset = code.scalar(f"mul i64 {i}, {columns * size}")
            to = code.scalar(f"getelementptr i8, ptr {place}, i64 {offset}")
            source = self._at(node, i, self._width(end))
            if end.is_column:
                copy_elements(code, size, to, source, str(columns))
            else:
                x = code.folded(code.load(kind, source), JOINS[end.join])
                self.one.store(Value(self.one, kind, code.lane(x, 0)), to)

    def _at(self, node: Node, index: str, width: int) -> str:
        """Where so many elements times an index lie in a table."""
        offset = self.code.scalar(f"mul i64 {index}, {width * node.tensor.dtype.itemsize}")
        return self.code.scalar(f"getelementptr i8, ptr {self.tables[node]}, i64 {offset}")

    def start(self, node: Node) -> None:
        """Begin a reduction in lanes."""
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
        x, t = self._once(node, x), code.type(kind)
        if node not in self.lanes:
            offset = code.scalar(f"mul i64 {at}, {node.tensor.dtype.itemsize}")
            place = code.scalar(f"getelementptr i8, ptr {self.places[node]}, i64 {offset}")
            code.store(JOINS[join](code.load(kind, place), x), place)
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

    def _add_row(self, node: Node, values: Sequence[Value]) -> None:
        """Join a row's one number to a sum over rows: its first lane."""
        kind = kind_in(node)
        x = values[0].converted(kind)
        if len(values) > 1:
            x = x * values[1].converted(kind)
        x = self._once(node, x)
        place = self.places.get(node) or self.lanes[node][0]
        self.one.store(JOINS[_join_of(node)](self.one.load(kind, place), x), place)

    def _once(self, node: Node, x: Value) -> Value:
        """A value, but an identity if an earlier row has had the same one."""
        if node not in self.once:
            return x
        empty = x.code.constant(x.kind, identity(_join_of(node), x.kind))
        t = x.code.type(x.kind)
        text = f"select i1 {self.once[node]}, {t} {x.text}, {t} {empty.text}"
        return x.code.line(x.kind, text)

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
