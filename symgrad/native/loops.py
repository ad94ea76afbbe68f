"""Loops: the IR of a group, with its tails, its partial sums and what is kept between passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node
from symgrad.native.ends import copy_elements, gather, load_masked, store_masked
from symgrad.native.groups import MOST_STACK, End, Group
from symgrad.native.operations import constant, emitted, kind_in
from symgrad.native.philox import drawn, is_drawn, room
from symgrad.native.placed import RowPart, part_of_row, with_part
from symgrad.native.rows import ADD, PICK, SCANS, added, scan_start, scanned, within
from symgrad.native.space import NotNative
from symgrad.native.streams import Streams
from symgrad.native.sums import Sums
from symgrad.native.vectors import Code, Module, Value

KERNEL = "kernel"


def write_group(group: Group, masked: bool = False) -> Module:
    """A module with the kernel of a group: `kernel(table of pointers, first row, end)`.

    The first row is that of a block. The ends of rows are read and written through masks if they
    are to be `masked`, where the processor has such instructions, else by way of a buffer.
    """
    module = Module()
    _Writer(group, module, masked).write()
    return module


class _Writer:
    def __init__(self, group: Group, module: Module, masked: bool) -> None:
        self.group, self.space = group, group.space
        self.code = Code(module, group.lanes)
        self.one = self.code.of_lanes(1)
        self.arrays = (*group.graph.inputs, *group.graph.outputs)
        self.first_result = len(group.graph.inputs)
        self.number = {x: k for k, x in enumerate(group.graph.inputs)}
        ops = (n for n in group.graph.nodes if n.inputs and not n.op.view)
        self.order: dict[Node | None, int] = {n: k for k, n in enumerate(ops)}
        self.scalars: dict[Node, Value] = {}
        self.pointers: list[str] = []
        self.bases: list[str] = []
        self.buffers: dict[int, str] = {}
        self.kept: dict[Node, str] = {}
        self.sums = Sums(group, self.code)
        self.streams = Streams(group, self.code)
        self.carries: dict[Node, str] = {}
        self.drawn: dict[Node, str] = {}
        self.tails = group.flat or group.columns % group.lanes != 0
        self.masked = masked and self.tails and not group.flat
        self.stack = 0
        self.parts: dict[Node, RowPart] = {}
        if group.space.parts and not masked:
            raise NotNative("what is placed is read through masks, which the processor has not")
        self.gathered: dict[Node, str] = {}

    # ---- the function -----------------------------------------------------------------------

    def write(self) -> None:
        """Write the whole kernel."""
        code, group = self.code, self.group
        code.label("entry")
        for i in range(len(self.arrays)):
            at = code.scalar(f"getelementptr ptr, ptr %table, i64 {i}")
            self.pointers.append(code.scalar(f"load ptr, ptr {at}"))
        self.bases = list(self.pointers)
        self.streams.begin(self.pointers)
        self._reserve()
        for node in group.graph.nodes:
            if not any(self.space.strides[node]) and node not in group.ends:
                self._write_scalar(node)
        code.do("br label %block")
        code.label("block")
        code.do("%b = phi i64 [ %start, %entry ], [ %b_end, %block_last ]")
        code.do("%left = icmp ult i64 %b, %stop")
        code.do("br i1 %left, label %block_first, label %done")
        code.label("block_first")
        code.do(f"%b_full = add i64 %b, {group.block}")
        code.do("%b_short = icmp ult i64 %b_full, %stop")
        code.do("%b_end = select i1 %b_short, i64 %b_full, i64 %stop")
        for node in group.ends:
            self.sums.start_block(node)
        if group.flat:
            self._gather()
            self._point_to_parts(())
            self.draws = {n: self._draw(n, "%b", "%b_end") for n in self.drawn}
            self._write_pass(0, "%b", "%b_end")
        else:
            self._write_rows()
        for node, end in group.ends.items():
            self._write_part(node, end)
        code.do("br label %block_last")
        code.label("block_last")
        code.do("br label %block")
        code.label("done")
        self.streams.end()
        code.do("ret void")
        head = f"define internal void @{KERNEL}(ptr %table, i64 %start, i64 %stop) #0 {{"
        code.module.definitions[f"@{KERNEL}"] = "\n".join((head, *code.lines.text, "}"))
        if self.stack > MOST_STACK:
            raise NotNative("its rows are too long to be kept between passes")

    def _note(self, node: Node | None = None) -> None:
        """Say in a comment which op the next lines compute: by its number, and not by a name."""
        self.code.do(f"; op {self.order.get(node, '-')}")

    def _alloca(self, kind: str, count: int) -> str:
        size = count if kind == "b1" else int(kind[1:]) * count
        self.stack += size
        return self.code.scalar(f"alloca [{size} x i8], align 64")

    def _reserve(self) -> None:
        """Memory for tails, for what is kept, and for sums."""
        group, lanes = self.group, self.group.lanes
        aside = {*group.ends, *self.space.scattered}
        if self.tails:
            for i, node in enumerate(self.arrays):
                through_mask = self.masked and self._step(i) == node.tensor.dtype.itemsize
                buffered = self.space.is_inner(node) and node not in aside
                if buffered and not through_mask:
                    self.buffers[i] = self._alloca(kind_in(node), lanes)
                    kind = "u1" if kind_in(node) == "b1" else kind_in(node)
                    self.code.store(self.code.constant(kind, 0), self.buffers[i])
        padded = -(-group.columns // lanes) * lanes
        for node in group.kept:
            self.kept[node] = self._alloca(kind_in(node), padded)
        self.sums.reserve(self._alloca)
        for node in self.space.scattered:
            self.gathered[node] = self._alloca(kind_in(node), padded + lanes)
        for node in group.graph.nodes:
            if is_drawn(node):
                most = min(group.block, group.columns) if group.flat else group.columns
                self.drawn[node] = self._alloca(kind_in(node), room(kind_in(node), most))
            if node.op in SCANS:
                self.carries[node] = self._alloca(kind_in(node), lanes)

    def _write_rows(self) -> None:
        code = self.code
        before = code.block
        code.do("br label %row")
        code.label("row")
        code.do(f"%r = phi i64 [ %b, %{before} ], [ %r_next, %row_last ]")
        self._point_to_row()
        self._gather()
        for stage in range(self.group.passes + 1):
            for node in self.group.graph.nodes:
                if not self.space.is_row(node) or node in self.group.ends:
                    continue
                if self.group.stage[node] == stage:
                    self._write_row_value(node)
            if stage < self.group.passes:
                self._write_pass(stage, "0", str(self.group.columns))
        for node in self.group.ends:
            inner = self.space.is_inner(node.inputs[0])
            self.sums.end_row(node, [] if inner else [self.scalars[x] for x in node.inputs])
        code.do("br label %row_last")
        code.label("row_last")
        code.do("%r_next = add i64 %r, 1")
        code.do("%r_more = icmp ult i64 %r_next, %b_end")
        code.do("br i1 %r_more, label %row, label %rows_done")
        code.label("rows_done")

    def _point_to_row(self) -> None:
        """Where the elements of this row begin in each array."""
        code, sizes = self.code, self.space.sizes[:-1]
        turns = ["%r"]
        for size in reversed(sizes[1:]):
            whole = turns.pop(0)
            turns[:0] = [
                code.scalar(f"udiv i64 {whole}, {size}"),
                code.scalar(f"urem i64 {whole}, {size}"),
            ]

        def place(node: Node, size: int) -> str:
            found = "0"
            for turn, stride in zip(turns, self.space.strides[node], strict=False):
                if stride:
                    step = code.scalar(f"mul i64 {turn}, {stride * size}")
                    found = step if found == "0" else code.scalar(f"add i64 {found}, {step}")
            return found

        for k, node in enumerate(self.arrays):
            if node not in self.group.ends:
                at = place(node, node.tensor.dtype.itemsize)
                self.bases[k] = code.scalar(f"getelementptr i8, ptr {self.pointers[k]}, i64 {at}")
        for node in self.group.ends:
            self.sums.start_row(node, turns)
        self._point_to_parts(turns)
        columns = str(self.group.columns)
        self.draws = {n: self._draw(n, place(n, 1), columns, "0") for n in self.drawn}

    def _point_to_parts(self, turns: Sequence[str]) -> None:
        """Where the parts lie in this row."""
        for node, loops in self.space.parts.items():
            pointer = self.pointers[self.number[node.inputs[-1]]]
            self.parts[node] = part_of_row(self.code, node, pointer, loops, turns)

    def _gather(self) -> None:
        """Lay the elements of a row side by side that lie scattered."""
        for node, memory in self.gathered.items():
            base, size = self.bases[self.number[node]], node.tensor.dtype.itemsize
            gather(self.code, size, memory, base, self.space.scattered[node])

    def _draw(self, node: Node, first: str, end: str, begin: str = "") -> str:
        """Draw what a pass reads; where the element lies that it has at 0."""
        code, kind = self.code, kind_in(node)
        count = code.scalar(f"sub i64 {end}, {begin or first}")
        key = self.pointers[self.number[node.inputs[0]]]
        found = drawn(code, kind, self.drawn[node], key, first, count)
        back = code.scalar(f"mul i64 {begin or first}, -{kind[1:]}")
        return code.scalar(f"getelementptr i8, ptr {found}, i64 {back}")

    # ---- values that are one number ---------------------------------------------------------

    def _write_scalar(self, node: Node) -> None:
        """A value that is the same for all rows."""
        self._note(node)
        if node.op is CONSTANT:
            self.scalars[node] = constant(self.one, node)
        elif not node.inputs:
            self.scalars[node] = self.one.load(kind_in(node), self.pointers[self.number[node]])
        else:
            self.scalars[node] = emitted(node, [self.scalars[x] for x in node.inputs])

    def _write_row_value(self, node: Node) -> None:
        """A value that is one number for this row, and its place among the results."""
        self._note(node)
        if not node.inputs:
            base = self.bases[self.number[node]]
            self.scalars[node] = self.one.load(kind_in(node), base)
        elif node.op is PICK:
            index = within(self.scalars[node.inputs[1]], self.group.columns)
            self.scalars[node] = self._picked(node, index)
        elif node in self.space.reduced:
            self.scalars[node] = self.sums.total(node)
        else:
            self.scalars[node] = emitted(node, [self.scalars[x] for x in node.inputs])
        for k, y in enumerate(self.group.graph.outputs, self.first_result):
            if y is node:
                self.one.store(self.scalars[node], self.bases[k])

    def _picked(self, pick: Node, index: Value) -> Value:
        """One element of an inner value of this row, computed alone."""
        found = dict(self.scalars)
        for node in self.group.chain(pick):
            if not node.inputs:
                k = self.number[node]
                found[node] = self.one.load(kind_in(node), self._place(k, index.text))
            elif is_drawn(node):
                place = self._in_row(node, self.draws[node], index.text)
                found[node] = self.one.load(kind_in(node), place)
            elif node.op is ADD:
                x, u, at = (found[y] for y in node.inputs)
                here = within(at, self.group.columns).equals(index)
                found[node] = self.one.select(here, x + u, x)
            else:
                found[node] = emitted(node, [found[x] for x in node.inputs])
        return found[pick.inputs[0]]

    # ---- a pass along the inner loop --------------------------------------------------------

    def _write_pass(self, stage: int, begin: str, end: str) -> None:
        code, group, lanes = self.code, self.group, self.group.lanes
        made = group.made_in(stage)
        if not made:
            return
        wanted = frozenset(made)
        fresh = {n for n in made if group.stage[n] == stage}
        read = [k for k, p in enumerate(group.graph.inputs) if p in wanted]
        results = [
            k
            for k, y in enumerate(group.graph.outputs, self.first_result)
            if y in fresh and y not in group.ends
        ]
        reading = (n for n in made if not is_drawn(n))
        known = {x: self._spread(x) for n in reading for x in n.inputs if x in self.scalars}
        reductions = [
            n
            for n in self.space.reduced
            if self.space.is_inner(n.inputs[0]) and max(group.stage[x] for x in n.inputs) == stage
        ]
        scans = [n for n in made if n in fresh and n in self.carries]
        for node in scans:
            start = code.constant(kind_in(node), scan_start(node, kind_in(node)))
            code.store(start, self.carries[node])
        for node in reductions:
            if node not in group.ends:
                self.sums.start(node)
        count = code.scalar(f"sub i64 {end}, {begin}")
        whole = code.scalar(f"and i64 {count}, {-lanes}")
        full = code.scalar(f"add i64 {begin}, {whole}")
        rest = code.scalar(f"sub i64 {count}, {whole}")
        for k in (k for k in read if k in self.buffers):
            self._copy(self.buffers[k], self._place(k, full), rest, k, self._step(k))
        loop, after, before = code.new_label("loop"), code.new_label("after"), code.block
        code.do(f"br label %{loop}")
        code.label(loop)
        i, step = code.new(), code.new()
        hole, turn = len(code.lines.text), i
        code.do("")
        if group.turned.get(stage):
            i = code.scalar(f"sub i64 {(group.columns - 1) // lanes * lanes}, {i}")
        last = code.scalar(f"icmp eq i64 {i}, {full}") if self.tails else "false"
        values = dict(known)
        wants_mask = self.tails and (reductions or scans or self.masked)
        inside = self._inside(last, rest) if wants_mask else None

        def place(k: int) -> str:
            found = self._place(k, i)
            if k not in self.buffers:
                return found
            return code.scalar(f"select i1 {last}, ptr {self.buffers[k]}, ptr {found}")

        for node in made:
            self._note(node)
            if node in self.gathered:
                values[node] = code.load(kind_in(node), self._in_row(node, self.gathered[node], i))
            elif not node.inputs:
                values[node] = self._loaded(self.number[node], place, last, inside)
            elif is_drawn(node):
                values[node] = code.load(kind_in(node), self._in_row(node, self.draws[node], i))
            elif node in self.kept and node not in fresh:
                values[node] = code.load(kind_in(node), self._in_row(node, self.kept[node], i))
            else:
                operands = [values[x] for x in node.inputs]
                if node in self.carries:
                    values[node] = scanned(node, operands, self.carries[node], inside)
                elif node in self.parts:
                    first = self.space.parts[node][-1].first
                    values[node] = with_part(node, first, self.parts[node], i, operands)
                elif node.op is ADD:
                    index = within(self.scalars[node.inputs[2]], group.columns)
                    values[node] = added(operands[0], operands[1], index, i)
                else:
                    values[node] = emitted(node, operands)
                if node in self.kept:
                    code.store(values[node], self._in_row(node, self.kept[node], i))
        for node in reductions:
            self._note(node)
            self.sums.add(node, [values[x] for x in node.inputs], i, inside)
        self._note()
        # Results come last: LLVM moves a masked load to where it is selected from by its mask, also
        # past a store to the same memory, as where a result lies in place of an operand.
        made_here = [(k, values[self.arrays[k]]) for k in results]
        if self.masked and inside is not None:
            for k, x in made_here:
                store_masked(x, place(k), inside)
        else:
            self.streams.store(made_here, place, last)
        self._note()
        code.do(f"{step} = add i64 {turn}, {lanes}")
        more = code.scalar(f"icmp ult i64 {step}, {end}")
        ways = f"[ {begin}, %{before} ], [ {step}, %{code.block} ]"
        code.lines.text[hole] = f"  {turn} = phi i64 {ways}"
        code.do(f"br i1 {more}, label %{loop}, label %{after}")
        code.label(after)
        for k in (k for k in results if k in self.buffers):
            self._copy(self._place(k, full), self.buffers[k], rest, k)

    def _place(self, k: int, i: str) -> str:
        offset = self.code.scalar(f"mul i64 {i}, {self._step(k)}")
        return self.code.scalar(f"getelementptr i8, ptr {self.bases[k]}, i64 {offset}")

    def _loaded(
        self, k: int, place: Callable[[int], str], last: str, inside: Value | None
    ) -> Value:
        """The next elements of an array; the last ones lie one after the other."""
        kind, step = kind_in(self.arrays[k]), self._step(k)
        size = self.arrays[k].tensor.dtype.itemsize
        if step == size and self.masked and inside is not None:
            return load_masked(kind, place(k), inside)
        if step == size:
            return self.code.load(kind, place(k))
        apart = self.code.scalar(f"select i1 {last}, i64 {size}, i64 {step}")
        return self.code.load_apart(kind, place(k), apart)

    def _step(self, k: int) -> int:
        """The bytes from one element of an array to the next, along the inner loop."""
        node = self.arrays[k]
        return node.tensor.dtype.itemsize * self.space.strides[node][-1]

    def _in_row(self, node: Node, memory: str, i: str) -> str:
        offset = self.code.scalar(f"mul i64 {i}, {node.tensor.dtype.itemsize}")
        return self.code.scalar(f"getelementptr i8, ptr {memory}, i64 {offset}")

    def _spread(self, node: Node) -> Value:
        found = self.scalars[node]
        if not found.text.startswith("%"):
            return Value(self.code, found.kind, f"splat ({self.one.type(found.kind)} {found.text})")
        return self.code.splat(found.kind, found.text)

    def _inside(self, last: str, rest: str) -> Value:
        """The mask of the lanes that are elements of the row: all, or the rest of the last ones."""
        lanes = range(self.group.lanes)
        left = self.code.scalar(f"select i1 {last}, i64 {rest}, i64 {len(lanes)}")
        narrow = self.code.scalar(f"trunc i64 {left} to i32")
        numbers = ", ".join(f"i32 {j}" for j in lanes)
        return Value(self.code, "i4", f"<{numbers}>") < self.code.splat("i4", narrow)

    def _copy(self, to: str, source: str, count: str, k: int, step: int = 0) -> None:
        """Copy fewer elements than a vector has, of which the next is a `step` on."""
        copy_elements(self.code, self.arrays[k].tensor.dtype.itemsize, to, source, count, step)

    def _write_part(self, node: Node, end: End) -> None:
        """The part of a reduction that is of this block, at its place among the parts."""
        code, size = self.code, node.tensor.dtype.itemsize
        k = next(i for i, y in enumerate(self.arrays) if i >= self.first_result and y is node)
        number = code.scalar(f"udiv i64 %b, {self.group.block}")
        count = end.count * (self.group.columns if end.is_column else 1)
        offset = code.scalar(f"mul i64 {number}, {size * count}")
        place = code.scalar(f"getelementptr i8, ptr {self.pointers[k]}, i64 {offset}")
        self.sums.write_part(node, place)
