"""The emitter: LLVM IR over vectors of a fixed number of lanes, written as if it were arithmetic.

A `Value` is what one line of IR gives; its operators write the next lines. All lanes are explicit,
and every order of rounding is the one that is written: the bits are the same on every processor
with fused multiply-add. With one lane the same functions write scalar code.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

# Kinds are NumPy's: f4 f8 floats, i and u integers of so many bytes; b1 is a mask, a bit a lane.
# Nothing is computed in f2, the bits of a float16: what reads it reads f4. `half` is on the way.
LLVM: Mapping[str, str] = {
    "f4": "float", "f8": "double", "b1": "i1", "f2": "i16", "half": "half",
    "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64",
    "u1": "i8", "u2": "i16", "u4": "i32", "u8": "i64",
}  # fmt: skip
Number: TypeAlias = "bool | int | float"
Operand: TypeAlias = "Value | Number"


class Module:
    """The text of one module: what its functions declare, and its functions, once each."""

    def __init__(self) -> None:
        self.declarations: dict[str, str] = {}
        self.definitions: dict[str, str] = {}

    def __str__(self) -> str:
        return "\n".join((*self.declarations.values(), *self.definitions.values(), FEATURES))


# Processors that slow down for wide vectors are told that these are meant.
WIDE = 'nounwind "min-legal-vector-width"="512"'  # what runs once a call, #1, is compiled fast
FEATURES = f"attributes #0 = {{{WIDE}}}\nattributes #1 = {{{WIDE} noinline optnone}}\n"


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """The result of a line of IR: of a kind, in every lane."""

    code: Code
    kind: str
    text: str

    @property
    def is_float(self) -> bool:
        """Whether its lanes are floats."""
        return self.kind[0] == "f"

    @property
    def bits(self) -> int:
        """How many bits a lane has."""
        return 1 if self.kind == "b1" else 8 * _size(self.kind)

    def _with(self, opcode: str, other: Operand, flipped: bool = False) -> Value:
        t, two = self.code.type(self.kind), self.code.as_value(other, self.kind)
        first, second = (two, self) if flipped else (self, two)
        return self.code.line(self.kind, f"{opcode} {t} {first.text}, {second.text}")

    def _compare(self, word: str, other: Operand) -> Value:
        two = self.code.as_value(other, self.kind)
        if self.is_float:
            opcode = f"fcmp {'une' if word == 'ne' else 'o' + word}"
        else:
            sign = "" if word in ("eq", "ne") else "s" if self.kind[0] == "i" else "u"
            opcode = f"icmp {sign}{word}"
        return self.code.line("b1", f"{opcode} {self.code.type(self.kind)} {self.text}, {two.text}")

    def _opcode(self, word: str) -> str:
        """The instruction of an operation; a sum of masks is true if one of them is."""
        alone = {"add": "or", "mul": "and"}[word] if self.kind == "b1" else word
        return f"{'f' * self.is_float}{alone}"

    def __add__(self, other: Operand) -> Value:
        return self._with(self._opcode("add"), other)

    def __radd__(self, other: Number) -> Value:
        return self._with(self._opcode("add"), other, True)

    def __sub__(self, other: Operand) -> Value:
        return self._with(self._opcode("sub"), other)

    def __rsub__(self, other: Number) -> Value:
        return self._with(self._opcode("sub"), other, True)

    def __mul__(self, other: Operand) -> Value:
        return self._with(self._opcode("mul"), other)

    def __rmul__(self, other: Number) -> Value:
        return self._with(self._opcode("mul"), other, True)

    def __truediv__(self, other: Operand) -> Value:
        return self._with("fdiv", other)

    def __rtruediv__(self, other: Number) -> Value:
        return self._with("fdiv", other, True)

    def quotient(self, other: Operand) -> Value:
        """A quotient of integers, towards 0."""
        return self._with("sdiv" if self.kind[0] == "i" else "udiv", other)

    def __and__(self, other: Operand) -> Value:
        return self._with("and", other)

    def __or__(self, other: Operand) -> Value:
        return self._with("or", other)

    def __xor__(self, other: Operand) -> Value:
        return self._with("xor", other)

    def __lshift__(self, other: Operand) -> Value:
        return self._with("shl", other)

    def __rshift__(self, other: Operand) -> Value:
        return self._with("ashr" if self.kind[0] == "i" else "lshr", other)

    def __invert__(self) -> Value:
        return self._with("xor", True if self.kind == "b1" else -1)

    def __neg__(self) -> Value:
        if not self.is_float:
            return self._with("sub", 0, True)
        return self.code.line(self.kind, f"fneg {self.code.type(self.kind)} {self.text}")

    def __lt__(self, other: Operand) -> Value:
        return self._compare("lt", other)

    def __le__(self, other: Operand) -> Value:
        return self._compare("le", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compare("gt", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compare("ge", other)

    def equals(self, other: Operand) -> Value:
        """The mask of the lanes in which two values are equal; a NaN equals nothing."""
        return self._compare("eq", other)

    def differs(self, other: Operand) -> Value:
        """The mask of the lanes in which two values are not equal."""
        return self._compare("ne", other)

    def is_nan(self) -> Value:
        """The mask of the lanes that are NaN."""
        return self.differs(self)

    def reinterpreted(self, kind: str) -> Value:
        """The same bits as another kind of the same size."""
        if LLVM[kind] == LLVM[self.kind]:
            return Value(self.code, kind, self.text)
        return self.code.convert("bitcast", self, kind)

    def converted(self, kind: str) -> Value:
        """The value in another kind, as NumPy's `astype` has it."""
        return _converted(self, kind)


class Lines:
    """The text of a function, the block that is being written, and how many names there are."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.block = "entry"
        self.names = 0


class Code:
    """The lines of one function, over vectors of `lanes` (1 is plain scalars)."""

    def __init__(self, module: Module, lanes: int, lines: Lines | None = None) -> None:
        self.module = module
        self.lanes = lanes
        self.lines = Lines() if lines is None else lines

    def of_lanes(self, lanes: int) -> Code:
        """The same function, written on with vectors of another length."""
        return self if lanes == self.lanes else Code(self.module, lanes, self.lines)

    # ---- text -------------------------------------------------------------------------------

    def type(self, kind: str, lanes: int | None = None) -> str:
        """A kind as LLVM spells the vector of it."""
        lanes = self.lanes if lanes is None else lanes
        return LLVM[kind] if lanes == 1 else f"<{lanes} x {LLVM[kind]}>"

    def new(self) -> str:
        """A name that nothing has yet."""
        self.lines.names += 1
        return f"%v{self.lines.names}"

    def line(self, kind: str, text: str) -> Value:
        """The value that a line of IR gives."""
        return Value(self, kind, self.scalar(text))

    def do(self, text: str) -> None:
        """Write a line that gives nothing."""
        self.lines.text.append(f"  {text}")

    def label(self, name: str) -> None:
        """Start a block, to which the lines before have jumped."""
        self.lines.text.append(f"{name}:")
        self.lines.block = name

    @property
    def block(self) -> str:
        """The block that is being written."""
        return self.lines.block

    def new_label(self, stem: str) -> str:
        """A name for a block that no other has."""
        return f"{stem}{self.new()[2:]}"

    def scalar(self, text: str) -> str:
        """The name of what a line of IR gives, of whatever type the line says."""
        name = self.new()
        self.lines.text.append(f"  {name} = {text}")
        return name

    # ---- values -----------------------------------------------------------------------------

    def constant(self, kind: str, number: Number) -> Value:
        """A number in every lane."""
        text = literal(kind, number)
        return Value(self, kind, text if self.lanes == 1 else f"splat ({LLVM[kind]} {text})")

    def constants(self, kind: str, numbers: Sequence[Number]) -> Value:
        """A number for each lane."""
        text = ", ".join(f"{LLVM[kind]} {literal(kind, n)}" for n in numbers)
        return (
            self.constant(kind, numbers[0]) if self.lanes == 1 else Value(self, kind, f"<{text}>")
        )

    def as_value(self, x: Operand, kind: str) -> Value:
        """A value, or a number as one of this kind."""
        return x if isinstance(x, Value) else self.constant(kind, x)

    def splat(self, kind: str, scalar: str) -> Value:
        """A scalar, by its name, in every lane."""
        if self.lanes == 1:
            return Value(self, kind, scalar)
        t, v = LLVM[kind], self.type(kind)
        one = self.scalar(f"insertelement {v} poison, {t} {scalar}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.line(kind, f"shufflevector {v} {one}, {v} poison, {zeros}")

    def select(self, mask: Value, x: Operand, y: Operand) -> Value:
        """x where a mask is set, else y. One of the two is a value."""
        kind = x.kind if isinstance(x, Value) else y.kind  # type: ignore[union-attr]
        a, b = self.as_value(x, kind), self.as_value(y, kind)
        t = self.type(kind)
        return self.line(kind, f"select {self.type('b1')} {mask.text}, {t} {a.text}, {t} {b.text}")

    def call(self, name: str, *operands: Value) -> Value:
        """An intrinsic whose result is of the kind of its operands."""
        kind = operands[0].kind
        t = self.type(kind)
        suffix = LLVM[kind].replace("float", "f32").replace("double", "f64")
        full = f"@llvm.{name}.{suffix if self.lanes == 1 else f'v{self.lanes}{suffix}'}"
        types = ", ".join([t] * len(operands))
        self.module.declarations[full] = f"declare {t} {full}({types})"
        return self.line(kind, f"call {t} {full}({', '.join(f'{t} {x.text}' for x in operands)})")

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """a * b + c, rounded once."""
        kind = next(x.kind for x in (a, b, c) if isinstance(x, Value))
        return self.call("fma", *(self.as_value(x, kind) for x in (a, b, c)))

    def convert(self, opcode: str, x: Value, kind: str) -> Value:
        """A value of another kind, by one of LLVM's conversions."""
        return self.line(kind, f"{opcode} {self.type(x.kind)} {x.text} to {self.type(kind)}")

    def any(self, mask: Value) -> str:
        """The name of a bit: whether a mask is set in any lane."""
        if self.lanes == 1:
            return mask.text
        bits = self.scalar(f"bitcast {self.type('b1')} {mask.text} to i{self.lanes}")
        return self.scalar(f"icmp ne i{self.lanes} {bits}, 0")

    def lane(self, x: Value, i: int) -> str:
        """The name of the scalar in a lane."""
        if self.lanes == 1:
            return x.text
        return self.scalar(f"extractelement {self.type(x.kind)} {x.text}, i64 {i}")

    def vector(self, kind: str, scalars: Sequence[str]) -> Value:
        """The value that has these scalars for lanes."""
        t, found = self.type(kind), scalars[0] if self.lanes == 1 else "poison"
        for i, name in enumerate(scalars if self.lanes > 1 else ()):
            found = self.scalar(f"insertelement {t} {found}, {LLVM[kind]} {name}, i64 {i}")
        return Value(self, kind, found)

    def gathered(self, values: Sequence[Value], order: Sequence[int]) -> Value:
        """Lanes of some values, of any numbers of lanes: they count from 1 on, and 0 is a zero."""
        first, kind = values[0], values[0].kind
        if len(values) == 1 and list(order) == list(range(1, first.code.lanes + 1)):
            return first
        if len(values) == 1 and first.code.lanes > 1 and self.lanes > 1:
            t, zero = first.code.type(kind), first.code.constant(kind, 0)
            mask = ", ".join(f"i32 {i - 1 if i else first.code.lanes}" for i in order)
            text = f"shufflevector {t} {first.text}, {t} {zero.text}, <{self.lanes} x i32> <{mask}>"
            return self.line(kind, text)
        if len(values) == 1 and set(order) == {1}:
            return self.splat(kind, first.code.lane(first, 0))
        places = [(v, i) for v in values for i in range(v.code.lanes)]
        lanes = {n: places[n - 1][0].code.lane(*places[n - 1]) for n in dict.fromkeys(order) if n}
        return self.vector(kind, [lanes.get(n, literal(kind, 0)) for n in order])

    # ---- memory -----------------------------------------------------------------------------

    def load(self, kind: str, pointer: str) -> Value:
        """The elements that lie at a pointer, of any alignment; booleans are bytes there."""
        stored = "u1" if kind == "b1" else kind
        found = self.line(stored, f"load {self.type(stored)}, ptr {pointer}, align {_size(stored)}")
        return found.differs(0) if kind == "b1" else found

    def load_apart(self, kind: str, pointer: str, step: str) -> Value:
        """The elements that lie so many bytes from each other, the first at a pointer."""
        stored = "u1" if kind == "b1" else kind
        names = []
        for j in range(self.lanes):
            offset = self.scalar(f"mul i64 {step}, {j}")
            place = self.scalar(f"getelementptr i8, ptr {pointer}, i64 {offset}")
            names.append(self.scalar(f"load {LLVM[stored]}, ptr {place}, align {_size(stored)}"))
        found = self.vector(stored, names)
        return found.differs(0) if kind == "b1" else found

    def store(self, x: Value, pointer: str, streamed: bool = False) -> None:
        """Write the lanes to a pointer; `streamed` past the caches, to memory that is aligned."""
        stored = x.converted("u1") if x.kind == "b1" else x
        t, size = self.type(stored.kind), _size(stored.kind)
        to = f"store {t} {stored.text}, ptr {pointer}, align"
        aligned = f"{min(64, size * self.lanes)}, !nontemporal !{{i32 1}}"
        self.do(f"{to} {aligned if streamed else size}")

    # ---- along the lanes --------------------------------------------------------------------

    def folded(self, x: Value, join: Callable[[Value, Value], Value]) -> Value:
        """The lanes joined, halves with each other: always in one order; in every lane."""
        width = self.lanes
        while width > 1:
            width //= 2
            x = join(x, self.permuted(x, [i ^ width for i in range(self.lanes)]))
        return x

    def permuted(self, x: Value, order: Sequence[int]) -> Value:
        """The lanes of a vector in another order."""
        t, lanes = self.type(x.kind), ", ".join(f"i32 {i}" for i in order)
        mask = f"<{self.lanes} x i32> <{lanes}>"
        return self.line(x.kind, f"shufflevector {t} {x.text}, {t} poison, {mask}")

    def numbered(self, kind: str) -> Value:
        """0, 1, 2 …: the number of each lane."""
        return self.constants(kind, range(self.lanes))


def literal(kind: str, number: Number) -> str:
    """A number as LLVM writes it, to the bit."""
    if kind == "b1":
        return "true" if number else "false"
    if kind == "f2":
        return str(int.from_bytes(struct.pack("<e", number), "little"))
    if kind[0] != "f":
        return str(int(number))
    value = float(number)
    if kind == "f4":
        value = ctypes.c_float(value).value  # beyond the largest one it is infinite
    return f"0x{struct.unpack('Q', struct.pack('d', value))[0]:016X}"


def _size(kind: str) -> int:
    return int(kind[1:])


def _converted(x: Value, kind: str) -> Value:
    code, own = x.code, x.kind
    if own == kind:
        return x
    if own == "f2":
        return code.convert("fpext", code.convert("bitcast", x, "half"), "f4").converted(kind)
    if kind == "f2":
        half = code.convert("fptrunc", x.converted("f4"), "half")
        return code.convert("bitcast", half, "f2")
    if kind == "b1":
        return x.differs(0)
    wanted = 8 * _size(kind)
    if own == "b1":
        return code.select(x, code.constant(kind, 1), 0)
    if x.is_float and kind[0] == "f":
        return code.convert("fpext" if wanted > x.bits else "fptrunc", x, kind)
    if kind[0] == "f":
        return code.convert("sitofp" if own[0] == "i" else "uitofp", x, kind)
    if x.is_float:
        return _to_integer(x, kind)
    if wanted == x.bits:
        return Value(code, kind, x.text)
    if wanted < x.bits:
        return code.convert("trunc", x, kind)
    return code.convert("sext" if own[0] == "i" else "zext", x, kind)


def _to_integer(x: Value, kind: str) -> Value:
    """A float towards 0; what does not fit is the least integer, as x86 has it."""
    code = x.code
    if kind == "u8":
        high = x >= 2.0**63
        low = _to_integer(code.select(high, x - 2.0**63, x), "i8")
        return code.select(high, low ^ -(2**63), low).reinterpreted("u8")
    wide = "i4" if kind in ("i1", "i2", "i4", "u1", "u2") else "i8"
    least = -(2.0 ** (8 * _size(wide) - 1))
    fits = (x >= least) & (x < -least)
    found = code.convert("fptosi", code.select(fits, x, 0.0), wide)
    return code.select(fits, found, int(least)).converted(kind)
