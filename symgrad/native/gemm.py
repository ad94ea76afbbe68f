"""Products of matrices in machine code, after Goto and van de Geijn.

A block of `b` is packed into panels of as many columns as a row of registers holds, so that it lies
in the second cache; each few rows of `a` are multiplied by one panel after the other, and the sums
stay in registers. Rows of `a` are packed only if its columns lie side by side. The terms of an
element are added up in one order, whatever its place and the processor: its bits depend on no cut,
no number of threads and no width of vectors.

K. Goto, R. van de Geijn, Anatomy of high-performance matrix multiplication, ACM Transactions on
Mathematical Software 34 (2008). In the names of BLIS, `DEPTH` is KC, `ROWS` is MR, the columns of a
panel are NR, those of a block NC.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from symgrad.native.engine import Engine
from symgrad.native.vectors import Code, Module, Value

DEPTH = 256  # the most terms that are added up in registers
ROWS = 6  # of `a` at once
WIDTH = 2048  # bytes of a row of `b`
ROOM = DEPTH + 8  # terms of a row of `a` that there is room for
BLOCK = DEPTH * WIDTH  # bytes of `b` that are packed, into the second cache
# How LLVM calls Intel's processors that may have AVX-512.
INTEL = ("-avx512", "lake", "lake-server", "lake-client", "rapids")
LINES = 192  # bytes of a column of `a` that are packed at once: whole lines of the cache
SPACE = BLOCK + (ROOM + 1) * LINES


class MicroTile(NamedTuple):
    """The part of a result that is in registers: some rows of `vectors` of `lanes` elements.

    Both are powers of two.
    """

    lanes: int
    vectors: int


def micro_tile(engine: Engine, kind: str) -> MicroTile:
    """The largest micro-tile that the registers of a processor hold beside its operands."""
    if engine.has_masks:
        size, registers = 64, 32
    elif engine.triple.startswith("x86_64"):
        size, registers = 32, 16
    else:
        size, registers = 16, 32
    return MicroTile(size // int(kind[1]), registers // 8)


def is_fast(engine: Engine) -> bool:
    """Whether such products take less time than those of OpenBLAS.

    They do on Intel's processors with AVX-512. With narrower vectors they take as long or longer,
    and on AMD's nobody has measured it.
    """
    return engine.has_masks and engine.cpu.endswith(INTEL)


def write_gemm(module: Module, kind: str, shape: MicroTile, name: str) -> None:
    """Add `name(m, n, k, A, arow, acol, B, brow, bcol, C, crow, Block)`: c = a @ b.

    `A`, `B` and `C` are where the matrices lie, `arow` is the bytes from a row of `a` to the next,
    `acol` those from a column. The elements of a row of `c` lie side by side, those of `a` and `b`
    along one of both axes. `Space` is room for `SPACE` bytes, best at a multiple of 64.
    """
    for vectors in range(1, shape.vectors + 1):
        _write_kernel(module, kind, MicroTile(shape.lanes, vectors))
    _write_packing_of_a(module, kind, shape)
    _write_packing_of_b(module, kind, shape)
    _write_blocks(module, kind, shape, name)


def _write_blocks(module: Module, kind: str, shape: MicroTile, name: str) -> None:
    """Add the loops over blocks of terms and columns, over rows, and over panels."""
    parameters = "m n k A arow acol B brow bcol C crow Space"
    f = _Function(module, name, shape.lanes, parameters)
    size, panel = int(kind[1]), shape.lanes * shape.vectors
    group, most = LINES // size, WIDTH // size
    packed = f.at("%Space", f.integer(BLOCK))
    by_columns = f["acol"].differs(size)
    # Blocks are equally deep, and equally wide.
    depths = (f["k"] - 1).quotient(DEPTH) + 1
    depth = (f["k"] + (depths - 1)).quotient(depths)
    blocks = (f["n"] + (most - 1)).quotient(most)
    panels = (f["n"] + (blocks * panel - 1)).quotient(blocks * panel)
    block = panels * panel
    with f.loop(depths) as turn, f.loop(blocks) as number:
        p, j = turn * depth, number * block
        terms, columns = f.least(f["k"] - p, depth), f.least(f["n"] - j, block)
        with f.loop(columns, panel) as q:
            b = f.at("%B", p * f["brow"], (j + q) * f["bcol"])
            to = f.at("%Space", q * (DEPTH * size))
            f.call(f"pack_b_{kind}", terms, columns - q, b, f["brow"], f["bcol"], to)
        with f.loop(f["m"], group) as g:
            height = f.least(f["m"] - g, group)
            first = f.at("%A", g * f["arow"], p * f["acol"])
            with f.where(by_columns):
                f.call(f"pack_a_{kind}", terms, height, first, f["acol"], packed)
            with f.loop(height, ROWS) as i:
                rows = f.least(height - i, ROWS)
                near, far = f.at(packed, i * (ROOM * size)), f.at(first, i * f["arow"])
                a = f.code.scalar(f"select i1 {by_columns.text}, ptr {near}, ptr {far}")
                arow = f.code.select(by_columns, f.integer(size), f["arow"])
                acol = f.code.select(by_columns, f.integer(ROWS * size), f["acol"])
                with f.loop(columns, panel) as q:
                    width = f.least(columns - q, panel)
                    vectors = (width + (shape.lanes - 1)).quotient(shape.lanes)
                    b = f.at("%Space", q * (DEPTH * size))
                    c = f.at("%C", (g + i) * f["crow"], (j + q) * size)
                    given = terms, a, arow, acol, b, c, f["crow"], rows, width, p
                    for count in range(1, shape.vectors + 1):
                        with f.where(vectors.equals(count)):
                            f.call(f"kernel_{kind}_{count}", *given)
    f.end("", "#1")


def _write_packing_of_a(module: Module, kind: str, shape: MicroTile) -> None:
    """Add what packs rows of `a` whose columns lie side by side: every few rows by themselves."""
    size, group = int(kind[1]), LINES // int(kind[1])
    f = _Function(module, f"pack_a_{kind}", shape.lanes, "terms height A acol Packed")
    # Rows by where they begin, and where they are packed.
    pieces = [
        (i + j, i * ROOM + j) for i in range(0, group, ROWS) for j in range(0, ROWS, shape.lanes)
    ]
    masks = [f.first_lanes(f["height"] - i) for i, _ in pieces]
    with f.loop(f["terms"]) as k:
        for (i, to), mask in zip(pieces, masks, strict=True):
            # What is too much is written over by what comes next, or in the room behind it.
            x = f.load(kind, f.at("%A", k * f["acol"], f.integer(i * size)), mask)
            f.vectors.store(x, f.at("%Packed", k * (ROWS * size), f.integer(to * size)))
    f.end()


def _write_packing_of_b(module: Module, kind: str, shape: MicroTile) -> None:
    """Add what packs rows of a panel, of no more vectors than hold the columns that are left."""
    lanes, size = shape.lanes, int(kind[1])
    f = _Function(module, f"pack_b_{kind}", lanes, "terms left B brow bcol Panel")
    code, width = f.vectors, f.least(f["left"], lanes * shape.vectors)
    step = (width + (lanes - 1)).quotient(lanes) * (lanes * size)
    by_rows = f["bcol"].equals(size)
    with f.where(by_rows):
        firsts = range(0, lanes * shape.vectors, lanes)
        masks = [f.first_lanes(width - first) for first in firsts]
        with f.loop(f["terms"]) as k:
            row, to = f.at("%B", k * f["brow"]), f.at("%Panel", k * step)
            for first, mask in zip(firsts, masks, strict=True):
                # What is too much is written over by the next row, or lies behind the panel.
                place = f.integer(first * size)
                code.store(f.load(kind, f.at(row, place), mask), f.at(to, place))
    with f.where(~by_rows), f.loop(width, lanes) as j:
        # Columns that are not there are the last one again.
        numbers = [f.least(j + i, width - 1) for i in range(lanes)]
        columns = [f.at("%B", i * f["bcol"]) for i in numbers]
        with f.loop(f["terms"], lanes) as k:
            mask = f.first_lanes(f["terms"] - k)
            given = [f.load(kind, f.at(c, k * size), mask) for c in columns]
            for i, x in enumerate(_transposed(code, given)):
                code.store(x, f.at("%Panel", (k + i) * step, j * size))
    f.end()


def _transposed(code: Code, vectors: Sequence[Value]) -> list[Value]:
    """The columns of the square matrix that has these rows.

    For each bit of the numbers of rows and lanes, what has it set in one of both only changes
    places with what has it set in the other.
    """
    found, lanes, bit = list(vectors), code.lanes, 1
    low, t = range(lanes), code.type(vectors[0].kind)

    def shuffled(x: Value, y: Value, order: Sequence[int]) -> Value:
        mask = ", ".join(f"i32 {i}" for i in order)
        text = f"shufflevector {t} {x.text}, {t} {y.text}, <{lanes} x i32> <{mask}>"
        return code.line(x.kind, text)

    while bit < lanes:
        first = [lanes + n - bit if n & bit else n for n in low]
        second = [lanes + n if n & bit else n + bit for n in low]
        for i in (i for i in range(lanes) if not i & bit):
            x, y = found[i], found[i | bit]
            found[i], found[i | bit] = shuffled(x, y, first), shuffled(x, y, second)
        bit *= 2
    return found


def _write_kernel(module: Module, kind: str, shape: MicroTile) -> None:
    """Add a product of a few rows of `a` by a panel, which is added to `c` but for the first."""
    lanes, vectors = shape
    size = int(kind[1])
    parameters = "terms A arow acol Panel C crow rows width before"
    f = _Function(module, f"kernel_{kind}_{vectors}", lanes, parameters)
    code = f.vectors
    # Rows that are not there are the last one again.
    numbers = [f.least(f.integer(i), f["rows"] - 1) for i in range(ROWS)]
    rows = [f.at("%A", i * f["arow"]) for i in numbers]
    places = [(i, j) for i in range(ROWS) for j in range(vectors)]
    begin = [f.integer(0), *(code.constant(kind, 0) for _ in places)]
    with f.loop_with(f["terms"], begin) as turn:
        k, (column, *sums) = turn.counter, turn.carried
        panel = f.at("%Panel", k * (vectors * lanes * size))
        b = [code.load(kind, f.at(panel, f.integer(j * lanes * size))) for j in range(vectors)]
        a = [code.splat(kind, f.code.load(kind, f.at(row, column)).text) for row in rows]
        found = [code.fma(a[i], b[j], s) for (i, j), s in zip(places, sums, strict=True)]
        turn.next = [column + f["acol"], *found]
    masks = [f.first_lanes(f["width"] - j * lanes) for j in range(vectors)]
    begun = code.splat("b1", (f["before"] > 0).text)
    for i in range(ROWS):
        with f.where(f["rows"] > i):
            row = f.at("%C", f["crow"] * i)
            for j, mask in enumerate(masks):
                place = f.at(row, f.integer(j * lanes * size))
                # To the first sums a zero is added.
                c = f.load(kind, place, mask & begun)
                f.store(turn.carried[1 + i * vectors + j] + c, place, mask)
    f.end()


class _Turn:
    """One turn of a loop: its number, what the one before has left, and what it leaves."""

    def __init__(self, counter: Value, carried: Sequence[Value]) -> None:
        self.counter, self.carried, self.next = counter, list(carried), list(carried)


class _Function:
    """A function that is written line by line: capital parameters are pointers, others integers."""

    def __init__(self, module: Module, name: str, lanes: int, parameters: str) -> None:
        self.vectors, self.module, self.name = Code(module, lanes), module, name
        self.code = self.vectors.of_lanes(1)
        self.parameters = parameters.split()

    def __getitem__(self, name: str) -> Value:
        return Value(self.code, "i8", f"%{name}")

    def integer(self, number: int) -> Value:
        return self.code.constant("i8", number)

    def least(self, x: Value, y: Value | int) -> Value:
        return self.code.select(x < y, x, y)

    def at(self, pointer: str, *steps: Value) -> str:
        """The address so many bytes on."""
        for step in steps:
            pointer = self.code.scalar(f"getelementptr i8, ptr {pointer}, i64 {step.text}")
        return pointer

    @contextmanager
    def loop(self, end: Value, step: int = 1) -> Iterator[Value]:
        """A loop over the numbers from 0 on that are below the end; gives the number."""
        with self.loop_with(end, (), step) as turn:
            yield turn.counter

    @contextmanager
    def loop_with(self, end: Value, begin: Sequence[Value], step: int = 1) -> Iterator[_Turn]:
        """A loop of which each turn leaves values to the next, the last one to what follows."""
        code = self.code
        head, body, after = (code.new_label(s) for s in ("head", "body", "after"))
        before = code.block
        counter, *carried = (Value(x.code, x.kind, code.new()) for x in (end, *begin))
        code.do(f"br label %{head}")
        code.label(head)
        place = len(code.lines.text)
        code.do(f"br i1 {(counter < end).text}, label %{body}, label %{after}")
        code.label(body)
        turn = _Turn(counter, carried)
        yield turn
        more = counter + step
        code.lines.text[place:place] = [
            f"  {x.text} = phi {x.code.type(x.kind)}"
            f" [ {first.text}, %{before} ], [ {then.text}, %{code.block} ]"
            for x, first, then in zip(
                (counter, *carried), (self.integer(0), *begin), (more, *turn.next), strict=True
            )
        ]
        code.do(f"br label %{head}")
        code.label(after)

    @contextmanager
    def where(self, holds: Value) -> Iterator[None]:
        """Run what is written within only if something holds."""
        code = self.code
        yes, after = code.new_label("yes"), code.new_label("after")
        code.do(f"br i1 {holds.text}, label %{yes}, label %{after}")
        code.label(yes)
        yield
        code.do(f"br label %{after}")
        code.label(after)

    def call(self, name: str, *arguments: Value | str) -> None:
        """Call a function of the module with integers and pointers."""
        given = (f"ptr {x}" if isinstance(x, str) else f"i64 {x.text}" for x in arguments)
        self.code.do(f"call void @{name}({', '.join(given)})")

    def first_lanes(self, count: Value) -> Value:
        """The mask of so many lanes."""
        code = self.vectors
        return code.numbered("i8") < code.splat("i8", count.text)

    def load(self, kind: str, pointer: str, mask: Value) -> Value:
        """The elements at a pointer in the lanes of a mask; the others are 0, and are not read."""
        code, name, t, bits = self._masked("load", kind)
        self.module.declarations[name] = f"declare {t} {name}(ptr, i32, {bits}, {t})"
        given = f"ptr {pointer}, i32 {kind[1]}, {bits} {mask.text}, {t} zeroinitializer"
        return code.line(kind, f"call {t} {name}({given})")

    def store(self, x: Value, pointer: str, mask: Value) -> None:
        """Write the lanes of a mask."""
        code, name, t, bits = self._masked("store", x.kind)
        self.module.declarations[name] = f"declare void {name}({t}, ptr, i32, {bits})"
        given = f"{t} {x.text}, ptr {pointer}, i32 {x.kind[1]}, {bits} {mask.text}"
        code.do(f"call void {name}({given})")

    def _masked(self, verb: str, kind: str) -> tuple[Code, str, str, str]:
        code = self.vectors
        name = f"@llvm.masked.{verb}.v{code.lanes}f{8 * int(kind[1])}.p0"
        return code, name, code.type(kind), code.type("b1")

    def end(self, linkage: str = "internal ", attributes: str = "#0") -> None:
        """Add the function to the module."""
        given = (f"{'ptr' if p[0].isupper() else 'i64'} %{p}" for p in self.parameters)
        head = f"define {linkage}void @{self.name}({', '.join(given)}) {attributes} {{"
        text = (head, "entry:", *self.code.lines.text, "  ret void", "}")
        self.module.definitions[f"@{self.name}"] = "\n".join(text)
