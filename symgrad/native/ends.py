"""The ends of rows: parts of vectors, which some processors read and write by an instruction."""

from __future__ import annotations

from symgrad.native.vectors import LLVM, Code, Value


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


def _masked(code: Code, word: str, kind: str) -> tuple[str, str]:
    """The type of a vector of a kind, and the intrinsic that moves it under a mask."""
    suffix = LLVM[kind].replace("float", "f32").replace("double", "f64")
    return code.type(kind), f"@llvm.masked.{word}.v{code.lanes}{suffix}.p0"


def _bytes(kind: str) -> int:
    return int(kind[1:])
