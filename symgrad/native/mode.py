"""The mode in which a thread computes with floats: whether subnormal numbers are taken for 0.

Each thread has it in a register of the processor: `MXCSR` on x86, `FPCR` on ARM.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from symgrad.native.engine import Library, Unavailable, host
from symgrad.native.vectors import FEATURES

GET_MODE, SET_MODE = "symgrad_get_mode", "symgrad_set_mode"
# Of MXCSR the six lowest bits tell what has happened, which is no mode.
X86 = f"""
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define i64 @{GET_MODE}() #1 {{
  %at = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %all = load i32, ptr %at
  %mode = and i32 %all, 65472
  %m = zext i32 %mode to i64
  ret i64 %m
}}
define void @{SET_MODE}(i64 %m) #1 {{
  %at = alloca i32
  %mode = trunc i64 %m to i32
  store i32 %mode, ptr %at
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void
}}
"""
ARM = f"""
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define i64 @{GET_MODE}() #1 {{
  %m = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %m
}}
define void @{SET_MODE}(i64 %m) #1 {{
  call void @llvm.aarch64.set.fpcr(i64 %m)
  ret void
}}
"""


class Register(NamedTuple):
    """The functions in IR that read and write it, and the bits that flush results and operands."""

    functions: str
    flush: int


ARM_REGISTER = Register(ARM, 1 << 24)
REGISTERS: Mapping[str, Register] = MappingProxyType(
    {"x86_64": Register(X86, 1 << 15 | 1 << 6), "aarch64": ARM_REGISTER, "arm64": ARM_REGISTER}
)


def register(triple: str) -> Register:
    """The register of a kind of processor. Raises `Unavailable`."""
    found = next((r for arch, r in REGISTERS.items() if triple.startswith(arch)), None)
    if found is None:
        raise Unavailable(f"it is not known how {triple} computes with subnormal numbers")
    return found


class Mode(NamedTuple):
    """Read and write the mode of this thread; `flush` is what is added to it to flush."""

    get: Callable[[], int]
    set: Callable[[int], None]
    flush: int
    code: Library  # in memory as long as this is


@lru_cache(maxsize=1)
def mode() -> Mode:
    """The mode of this machine's threads. Raises `Unavailable`."""
    engine = host()
    functions, flush = register(engine.triple)
    library = engine.loaded(FEATURES + functions, (GET_MODE, SET_MODE), {})
    read = ctypes.PYFUNCTYPE(ctypes.c_uint64)(library[GET_MODE])
    write = ctypes.PYFUNCTYPE(None, ctypes.c_uint64)(library[SET_MODE])
    return Mode(read, write, flush, library)
