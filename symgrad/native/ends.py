"""Elements that do not fill a vector, or lie scattered: the ends of rows, and short axes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from symgrad.native.vectors import LLVM, Code, Value

AT_ONCE = 4  # turns of a loop that are written out


class Scattered(NamedTuple):
    """Two axes that are one loop: their sizes, and the elements from one to the next of each."""

    rows: int
    columns: int
    outer: int
    inner: int


def load_masked(kind: str, pointer: str, mask: Value) -> Value:
    """The elements at a pointer where a mask is set, 0 elsewhere, where nothing is read."""
    code, stored = mask.code, "u1" if kind == "b1" else kind
    t, name = _masked(code, "load", stored)
    code.module.declarations[name] = f"declare {t} {name}(ptr, i32, {code.type('b1')}, {t})"
    given = f"ptr {pointer}, i32 {_bytes(stored)}, {code.type('b1')} {mask.text}"
    found = code.line(stored, f"call {t} {name}({given}, {t} zeroinitializer)")
    return found.differs(0) if kind == "b1" else found


def store_masked(x: Value, pointer: str, mask: Value) -> None:
    """Write the lanes in which a mask is set."""
    code, stored = x.code, x.converted("u1") if x.kind == "b1" else x
    t, name = _masked(code, "store", stored.kind)
    code.module.declarations[name] = f"declare void {name}({t}, ptr, i32, {code.type('b1')})"
    given = f"{t} {stored.text}, ptr {pointer}, i32 {_bytes(stored.kind)}"
    code.do(f"call void {name}({given}, {code.type('b1')} {mask.text})")


def gather(code: Code, size: int, to: str, base: str, lies: Scattered) -> None:
    """Lay elements of so many bytes side by side, and up to 7 bytes of no meaning behind them.

    What lies together is moved as one word, which may be longer. The memory behind it is that of
    the next, but for the one that lies last.
    """
    rows, columns, outer, inner = lies
    word = 1 << (columns * size - 1).bit_length()
    fits = inner == 1 and word <= min(8, columns * size + abs(outer) * size)

    def move(row: str, whole: bool) -> None:
        away = code.scalar(f"mul i64 {row}, {outer * size}")
        source = code.scalar(f"getelementptr i8, ptr {base}, i64 {away}")
        on = code.scalar(f"mul i64 {row}, {columns * size}")
        target = code.scalar(f"getelementptr i8, ptr {to}, i64 {on}")
        bits = 8 * (word if whole else size)
        for k in range(1 if whole else columns):
            x = code.scalar(f"getelementptr i8, ptr {source}, i64 {k * inner * size}")
            y = code.scalar(f"getelementptr i8, ptr {target}, i64 {k * size}")
            found = code.scalar(f"load i{bits}, ptr {x}, align 1")
            code.do(f"store i{bits} {found}, ptr {y}, align 1")

    first = int(outer < 0)
    if fits and first:
        move("0", False)
    count = rows - fits
    if count >= AT_ONCE:
        with counted(code, count // AT_ONCE) as turn:
            start = code.scalar(f"mul i64 {turn}, {AT_ONCE}")
            for k in range(AT_ONCE):
                move(code.scalar(f"add i64 {start}, {k + fits * first}"), fits)
    for k in range(count - count % AT_ONCE, count):
        move(str(k + fits * first), fits)
    if fits and not first:
        move(str(rows - 1), False)


def _masked(code: Code, word: str, kind: str) -> tuple[str, str]:
    """The type of a vector of a kind, and the intrinsic that moves it under a mask."""
    suffix = LLVM[kind].replace("float", "f32").replace("double", "f64")
    return code.type(kind), f"@llvm.masked.{word}.v{code.lanes}{suffix}.p0"


def _bytes(kind: str) -> int:
    return int(kind[1:])


@contextmanager
def counted(code: Code, count: int) -> Iterator[str]:
    """A loop around what is written in it, of so many turns; the name of the number of the turn."""
    loop, after, before = code.new_label("loop"), code.new_label("after"), code.block
    code.do(f"br label %{loop}")
    code.label(loop)
    i, step, hole = code.new(), code.new(), len(code.lines.text)
    code.do("")
    yield i
    code.do(f"{step} = add i64 {i}, 1")
    code.lines.text[hole] = f"  {i} = phi i64 [ 0, %{before} ], [ {step}, %{code.block} ]"
    more = code.scalar(f"icmp ult i64 {step}, {count}")
    code.do(f"br i1 {more}, label %{loop}, label %{after}")
    code.label(after)


def copy_elements(code: Code, size: int, to: str, source: str, count: str, step: int = 0) -> None:
    """Copy elements of so many bytes, of which the next is a `step` on, to lie side by side."""
    name = f"@copy{size}"
    code.module.definitions[name] = COPY.format(name=name, bits=8 * size)
    code.do(f"call void {name}(ptr {to}, ptr {source}, i64 {count}, i64 {step or size})")


COPY = """\
define internal void {name}(ptr %to, ptr %from, i64 %count, i64 %step) #0 {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %o = mul i64 %i, %step
  %p = getelementptr i8, ptr %from, i64 %o
  %q = getelementptr i{bits}, ptr %to, i64 %i
  %x = load i{bits}, ptr %p, align 1
  store i{bits} %x, ptr %q, align 1
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}}"""
