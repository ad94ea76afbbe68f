"""Philox, as NumPy has it: the floats that a key draws, many counters at once.

J. K. Salmon and others, Parallel random numbers: as easy as 1, 2, 3, SC 2011: Philox4x64-10. NumPy
counts from 1 on, and makes a float32 of each half of a word, the lower one first.
"""

from __future__ import annotations

from symgrad.ir.node import Node
from symgrad.native.vectors import Code, Module, Value
from symgrad.ops.random import kernels

LANES, WORDS, ROUNDS = 16, 4, 10
FACTORS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
WEYL = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
COST, NUMPYS = 80, 300  # hundredths of a nanosecond for a float32


def is_drawn(node: Node) -> bool:
    """Whether a node draws from 0 to 1, by one key."""
    is_draw = node.op.kernel is kernels.draw
    return is_draw and node.attr("law") == "random" and node.inputs[0].ndim == 1


def in_block(kind: str) -> int:
    """How many floats a counter gives."""
    return WORDS * 8 // int(kind[1:])


def room(kind: str, count: int) -> int:
    """How many floats to have memory for, to draw so many from any one on."""
    step = in_block(kind) * LANES
    return -(-(count + in_block(kind) - 1) // step) * step


def drawn(code: Code, kind: str, memory: str, key: str, first: str, count: str) -> str:
    """Draw `count` floats from the one numbered `first` on into memory; where they begin."""
    per = in_block(kind)
    name = define(code.module, kind)
    block = code.scalar(f"udiv i64 {first}, {per}")
    before = code.scalar(f"urem i64 {first}, {per}")
    more = code.scalar(f"add i64 {before}, {count}")
    code.do(f"call void {name}(ptr {memory}, ptr {key}, i64 {block}, i64 {more})")
    offset = code.scalar(f"mul i64 {before}, {kind[1:]}")
    return code.scalar(f"getelementptr i8, ptr {memory}, i64 {offset}")


def define(module: Module, kind: str) -> str:
    """The name of the function that draws, which is added to the module."""
    name = f"@philox_{kind}"
    if name not in module.definitions:
        module.definitions[name] = _function(name, kind, Code(module, LANES))
    return name


def _function(name: str, kind: str, code: Code) -> str:
    per, one, vector = in_block(kind), code.of_lanes(1), code.type("u8")
    code.label("entry")
    second = code.scalar("getelementptr i8, ptr %key, i64 8")
    keys = [code.splat("u8", one.load("u8", p).text) for p in ("%key", second)]
    code.do("br label %chunk")
    code.label("chunk")
    code.do("%i = phi i64 [ 0, %entry ], [ %next, %done ]")
    block = code.scalar("udiv i64 %i, " + str(per))
    start = code.scalar(f"add i64 {block}, %first")
    counter = code.numbered("u8") + code.splat("u8", start) + 1
    code.do("br label %round")
    code.label("round")
    zero, begins = code.constant("u8", 0), (counter.text, *(k.text for k in keys))
    code.do("%r = phi i64 [ 0, %chunk ], [ %r_next, %round ]")
    state, ends = [], [code.new() for _ in range(6)]
    for first, end in zip((begins[0], *[zero.text] * 3, *begins[1:]), ends, strict=True):
        state.append(code.line("u8", f"phi {vector} [ {first}, %chunk ], [ {end}, %round ]"))
    c, (a, b) = state[:4], state[4:]
    high, low = _product(c[0], FACTORS[0])
    other_high, other_low = _product(c[2], FACTORS[1])
    made = [other_high ^ c[1] ^ a, other_low, high ^ c[3] ^ b, low]
    made += [a + _signed(WEYL[0]), b + _signed(WEYL[1])]
    for end, value in zip(ends, made, strict=True):
        code.do(f"{end} = or {vector} {value.text}, {zero.text}")
    code.do("%r_next = add i64 %r, 1")
    code.do(f"%r_more = icmp ult i64 %r_next, {ROUNDS}")
    code.do("br i1 %r_more, label %round, label %done")
    code.label("done")
    place = code.scalar(f"mul i64 %i, {kind[1:]}")
    floats = _floats(code, kind, made[:4])
    floats.code.store(floats, code.scalar(f"getelementptr i8, ptr %to, i64 {place}"))
    code.do(f"%next = add i64 %i, {per * LANES}")
    code.do("%more = icmp ult i64 %next, %count")
    code.do("br i1 %more, label %chunk, label %end")
    code.label("end")
    code.do("ret void")
    head = f"define internal void {name}(ptr %to, ptr %key, i64 %first, i64 %count) noinline #0 {{"
    return "\n".join((head, *code.lines.text, "}"))


def _signed(number: int) -> int:
    return number - (number >> 63 << 64)


def _product(x: Value, factor: int) -> tuple[Value, Value]:
    """The upper and the lower word of a product, the upper one by halves."""
    half = 2**32 - 1
    up, down = factor >> 32, factor & half
    x_up, x_down = x >> 32, x & half
    middle = ((x_down * down) >> 32) + x_up * down
    other = (middle & half) + x_down * up
    return x_up * up + (middle >> 32) + (other >> 32), x * _signed(factor)


def _floats(code: Code, kind: str, words: list[Value]) -> Value:
    """The words of all counters, one counter after the other, as floats from 0 to 1."""
    t, n = code.type("u8"), LANES
    both = ", ".join(f"i32 {i}" for i in range(2 * n))
    pairs = [
        code.scalar(f"shufflevector {t} {a.text}, {t} {b.text}, <{2 * n} x i32> <{both}>")
        for a, b in (words[:2], words[2:])
    ]
    order = ", ".join(f"i32 {w * n + i}" for i in range(n) for w in range(WORDS))
    wide = f"<{2 * n} x i64>"
    text = f"shufflevector {wide} {pairs[0]}, {wide} {pairs[1]}, <{4 * n} x i32> <{order}>"
    found = code.of_lanes(WORDS * n).line("u8", text)
    if kind == "f8":
        return (found >> 11).converted("f8") * 2.0**-53
    halves = code.of_lanes(2 * WORDS * n)
    found = halves.line(
        "u4", f"bitcast {found.code.type('u8')} {found.text} to {halves.type('u4')}"
    )
    return (found >> 8).reinterpreted("i4").converted("f4") * 2.0**-24
