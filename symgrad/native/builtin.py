"""The call: a function that Python calls directly, whose wrapper is in the same module of IR.

CPython hands it its arguments as an array of objects (`METH_FASTCALL`). It checks of each array
what costs next to nothing to check, reads the pointers to the data, lets other threads run where
the work is long, and calls the kernel: 0.2 µs. If an argument is no plain array (a NumPy scalar, a
subclass, one that is strided or not aligned), it calls a Python function with the same arguments,
which makes them plain and comes back.
"""

from __future__ import annotations

import ctypes
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from symgrad.native.engine import Engine, Library, Unavailable
from symgrad.native.team import SHARE_ROWS, SHARE_ROWS_DECLARED, team
from symgrad.native.vectors import LLVM, Module

METH_FASTCALL = 0x80
ALIGNED = 0x100
PLAIN = 0x1 | ALIGNED  # C_CONTIGUOUS, too
WRAPPER = "call_from_python"


# The bytes from one element to the next along each axis; None for an axis of one.
Strides: TypeAlias = "tuple[int | None, ...]"


class Layout(NamedTuple):
    """Where NumPy and CPython keep what the wrapper reads, in bytes from an object's start."""

    type: int
    data: int
    ndim: int
    shape: int
    strides: int
    dtype: int
    flags: int


@lru_cache(maxsize=1)
def layout() -> Layout:
    """The layout of this interpreter's arrays, found by looking. Raises `Unavailable`."""
    if sys.implementation.name != "cpython":
        raise Unavailable("only CPython's objects are known")
    data = np.empty(3, np.uint8)
    size = data.__sizeof__()
    held = ctypes.string_at(id(data), min(size, 96))

    def place(value: int, width: int, after: int = 0) -> int:
        return held.find(value.to_bytes(width, sys.byteorder), after)

    at_type, at_data = place(id(np.ndarray), 8), place(data.ctypes.data, 8)
    # After the data: the number of axes, the shape, the strides, the base, the dtype, the flags.
    found = Layout(at_type, at_data, *(at_data + n for n in (8, 16, 24, 40, 48)))

    def integer(at: int, width: int) -> int:
        return int.from_bytes(held[at : at + width], sys.byteorder)

    fits = integer(found.ndim, 4) == 1 and integer(found.dtype, 8) == id(data.dtype)
    if min(at_type, at_data) < 0 or not fits or integer(found.flags, 4) != data.flags.num:
        raise Unavailable("the arrays of this NumPy are laid out otherwise than is known")
    return found


def write_wrapper(
    module: Module,
    kernel: str,
    kinds: Sequence[str | None],
    integers: int,
    *,
    long: bool = True,
    shared: bool = False,
    strided: Mapping[int, Strides] | None = None,
) -> None:
    """Add the wrapper of a kernel that takes a table of pointers, and integers.

    It is called with what stands in the table, then so many Python ints. In the table are arrays
    (None) or single numbers, whose kind is told: a NumPy scalar or a number of Python's becomes one
    of this kind. `long` work runs without the GIL. If it is `shared`, its integers are the first
    row and the last one's end, and two more may follow them: the team then has so many rows in a
    piece computed by so many threads. Arrays that are `strided` have these strides.
    """
    at, count = layout(), len(kinds)
    forms = {} if strided is None else strided
    lines = [
        f"define ptr @{WRAPPER}(ptr %self, ptr %args, i64 %count) #1 {{",
        "entry:",
        f"  %table = alloca [{max(count, 1)} x ptr], align 16",
        f"  %numbers = alloca [{max(count, 1)} x i64], align 16",
        f"  %alone = icmp eq i64 %count, {count + integers}",
        f"  %cut = icmp eq i64 %count, {count + integers + 2 * shared}",
        "  %right = or i1 %alone, %cut",
        "  br i1 %right, label %a0, label %other",
    ]
    for i, kind in enumerate(kinds):
        lines += [
            f"a{i}:",
            f"  %p{i} = getelementptr ptr, ptr %args, i64 {i}",
            f"  %o{i} = load ptr, ptr %p{i}",
            *(_array(i, at, forms.get(i)) if kind is None else _number(i, kind)),
            f"  %s{i} = getelementptr ptr, ptr %table, i64 {i}",
            f"  store ptr %x{i}, ptr %s{i}",
            f"  br label %a{i + 1}",
        ]
    lines.append(f"a{count}:")
    given = ["ptr %table"]
    for k in range(count, count + integers):
        lines += _integer(k)
        given.append(f"i64 %n{k}")
    if shared:
        size, threads = count + integers, count + integers + 1
        lines += [
            f"  %rows = sub i64 %n{count + 1}, %n{count}",
            "  br i1 %alone, label %whole, label %pieces",
            "pieces:",
            *_integer(size),
            *_integer(threads),
            "  br label %whole",
            "whole:",
            f"  %size = phi i64 [ %rows, %a{count} ], [ %n{size}, %pieces ]",
            f"  %threads = phi i64 [ 1, %a{count} ], [ %n{threads}, %pieces ]",
        ]
        given += ["i64 %size", "i64 %threads"]
    if integers or any(kinds):
        lines += [
            "  %error = call ptr @PyErr_Occurred()",
            "  %failed = icmp ne ptr %error, null",
            "  br i1 %failed, label %raise, label %work",
            "raise:",
            "  ret ptr null",
            "work:",
        ]
    if long:
        lines.append("  %state = call ptr @PyEval_SaveThread()")
    work = f"@{SHARE_ROWS}(ptr @{kernel}, " if shared else f"@{kernel}("
    lines.append(f"  call void {work}{', '.join(given)})")
    if long:
        lines.append("  call void @PyEval_RestoreThread(ptr %state)")
    lines += [
        "  call void @Py_IncRef(ptr @_Py_NoneStruct)",
        "  ret ptr @_Py_NoneStruct",
        "other:",
        "  %made = call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %count, ptr null)",
        "  ret ptr %made",
        "}",
    ]
    module.definitions[f"@{WRAPPER}"] = "\n".join(lines)
    if shared:
        module.declarations[f"@{SHARE_ROWS}"] = SHARE_ROWS_DECLARED
    imports(module)


def _integer(k: int) -> list[str]:
    """Lines that read a Python int."""
    return [
        f"  %q{k} = getelementptr ptr, ptr %args, i64 {k}",
        f"  %r{k} = load ptr, ptr %q{k}",
        f"  %n{k} = call i64 @PyLong_AsSsize_t(ptr %r{k})",
    ]


def _array(i: int, at: Layout, strides: Strides | None) -> list[str]:
    """Lines that find the data of a plain array, or of one that has these strides."""
    wanted = PLAIN if strides is None else ALIGNED
    return [
        f"  %tp{i} = getelementptr i8, ptr %o{i}, i64 {at.type}",
        f"  %t{i} = load ptr, ptr %tp{i}",
        f"  %k{i} = icmp eq ptr %t{i}, @PyArray_Type",
        f"  br i1 %k{i}, label %b{i}, label %other",
        f"b{i}:",
        f"  %fp{i} = getelementptr i8, ptr %o{i}, i64 {at.flags}",
        f"  %f{i} = load i32, ptr %fp{i}",
        f"  %m{i} = and i32 %f{i}, {wanted}",
        f"  %c{i} = icmp eq i32 %m{i}, {wanted}",
        f"  br i1 %c{i}, label %d{i}, label %other",
        f"d{i}:",
        *([] if strides is None else _strides(i, at, strides)),
        f"  %dp{i} = getelementptr i8, ptr %o{i}, i64 {at.data}",
        f"  %x{i} = load ptr, ptr %dp{i}",
    ]


def _strides(i: int, at: Layout, strides: Strides) -> list[str]:
    """Lines that check the strides of an array."""
    lines = [
        f"  %np{i} = getelementptr i8, ptr %o{i}, i64 {at.ndim}",
        f"  %na{i} = load i32, ptr %np{i}",
        f"  %nc{i} = icmp eq i32 %na{i}, {len(strides)}",
        f"  br i1 %nc{i}, label %e{i}, label %other",
        f"e{i}:",
        f"  %sp{i} = getelementptr i8, ptr %o{i}, i64 {at.strides}",
        f"  %ss{i} = load ptr, ptr %sp{i}",
    ]
    for k, stride in enumerate(strides):
        if stride is not None:
            lines += [
                f"  %sq{i}.{k} = getelementptr i64, ptr %ss{i}, i64 {k}",
                f"  %sv{i}.{k} = load i64, ptr %sq{i}.{k}",
                f"  %sc{i}.{k} = icmp eq i64 %sv{i}.{k}, {stride}",
                f"  br i1 %sc{i}.{k}, label %e{i}.{k}, label %other",
                f"e{i}.{k}:",
            ]
    return lines


def _number(i: int, kind: str) -> list[str]:
    """Lines that put a number into memory."""
    type_ = "i8" if kind == "b1" else LLVM[kind]
    if kind == "f8":
        how = [f"  %v{i} = call double @PyFloat_AsDouble(ptr %o{i})"]
    elif kind == "f4":
        how = [f"  %w{i} = call double @PyFloat_AsDouble(ptr %o{i})"]
        how += [f"  %v{i} = fptrunc double %w{i} to float"]
    elif kind == "f2":
        how = [f"  %w{i} = call double @PyFloat_AsDouble(ptr %o{i})"]
        how += [f"  %n{i} = fptrunc double %w{i} to float"]  # which loses nothing of a float16
        how += [f"  %h{i} = fptrunc float %n{i} to half", f"  %v{i} = bitcast half %h{i} to i16"]
    elif kind == "b1":
        how = [f"  %w{i} = call i32 @PyObject_IsTrue(ptr %o{i})"]
        how += [f"  %v{i} = trunc i32 %w{i} to i8"]
    else:
        how = [f"  %w{i} = call i64 @PyLong_AsUnsignedLongLongMask(ptr %o{i})"]
        how += [f"  %v{i} = {'trunc' if type_ != 'i64' else 'or'} i64 %w{i}"]
        how[-1] += f" to {type_}" if type_ != "i64" else ", 0"
    place = f"  %x{i} = getelementptr i64, ptr %numbers, i64 {i}"
    return [*how, place, f"  store {type_} %v{i}, ptr %x{i}"]


# What a wrapper uses of CPython and NumPy.
PYTHON = (
    "declare i64 @PyLong_AsSsize_t(ptr)",
    "declare i64 @PyLong_AsUnsignedLongLongMask(ptr)",
    "declare double @PyFloat_AsDouble(ptr)",
    "declare i32 @PyObject_IsTrue(ptr)",
    "declare ptr @PyErr_Occurred()",
    "declare ptr @PyEval_SaveThread()",
    "declare void @PyEval_RestoreThread(ptr)",
    "declare void @Py_IncRef(ptr)",
    "declare void @Py_DecRef(ptr)",
    "declare ptr @PyTuple_New(i64)",
    "declare i32 @PyTuple_SetItem(ptr, i64, ptr)",
    "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
)


def imports(
    module: Module, more: Mapping[str, tuple[str, int]] = MappingProxyType({})
) -> dict[str, int]:
    """The addresses of what a module's wrapper uses, and all of `more`, declared in the module.

    `more` has declarations and addresses, by name, beside those of CPython.
    """
    used = set(re.findall(r"@(\w+)", module.definitions[f"@{WRAPPER}"])) | more.keys()
    known = {name: (f"@{name} = external global i8", id(x)) for name, x in OBJECTS.items()}
    for line in PYTHON:
        name = line[line.index("@") + 1 : line.index("(")]
        if name in used:
            address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
            known[name] = (line, address or 0)
    known.update(more)
    found = {name: known[name] for name in sorted(used & known.keys())}
    module.declarations.update((f"@{name}", line) for name, (line, _) in found.items())
    return {name: address for name, (_, address) in found.items()}


OBJECTS: Mapping[str, object] = {
    "_Py_NoneStruct": None,
    "PyArray_Type": np.ndarray,
    "PyFloat_Type": float,
}


class _Definition(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def builtin(
    engine: Engine,
    module: Module,
    dtypes: Sequence[np.dtype[Any] | None],
    results: int,
    strided: Mapping[int, Strides] | None = None,
) -> Callable[..., None]:
    """A kernel in memory: `call(*arrays, *numbers)` runs it and returns None.

    The arrays are operands, then results; `dtypes` are theirs, None that of a number. Operands that
    are no plain arrays are copied, as are those that are to be `strided` and have other strides; a
    result that is none is a `ValueError`. What else could be
    wrong with an array (its shape, its dtype) is for the caller to know, who planned the call.
    Raises `Unavailable`.
    """
    shared = f"@{SHARE_ROWS}" in module.declarations
    more = {SHARE_ROWS: (SHARE_ROWS_DECLARED, team().rows)} if shared else {}
    found = imports(module, more)
    library = engine.loaded(str(module), (WRAPPER,), found)
    return Plainly(library, dtypes, len(dtypes) - results, strided or {}).function()


class Fallback(ABC):
    """The `self` of a builtin, which it calls with the same arguments if they are not plain.

    It lives as long as the builtin, and the code and the definition with it.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._definition = _Definition(b"native", library[WRAPPER], METH_FASTCALL, None)

    def function(self, fallback: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """The builtin, with another fallback if one is given."""
        new = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
        )(("PyCFunction_NewEx", ctypes.pythonapi))
        made: Callable[..., Any] = new(ctypes.addressof(self._definition), fallback or self, None)
        return made

    @abstractmethod
    def __call__(self, *args: Any) -> Any: ...


class Plainly(Fallback):
    """Makes arguments plain and calls the kernel again."""

    def __init__(
        self,
        library: Library,
        dtypes: Sequence[np.dtype[Any] | None],
        first_result: int,
        strided: Mapping[int, Strides] = MappingProxyType({}),
    ) -> None:
        super().__init__(library)
        self._dtypes, self._first_result = tuple(dtypes), first_result
        self._strided = strided

    def __call__(self, *args: Any) -> Any:
        count = len(self._dtypes)
        if len(args) < count:
            raise TypeError(f"a kernel of {count} arrays was called with {len(args)}")
        plain = list(args)
        for i, (x, dtype) in enumerate(zip(args, self._dtypes, strict=False)):
            is_plain = type(x) is np.ndarray and x.flags.num & PLAIN == PLAIN
            if i >= self._first_result and not is_plain:
                raise ValueError("a result is to be a plain array")
            if dtype is not None and i in self._strided:
                plain[i] = _laid_out(np.asarray(x, dtype), self._strided[i])
            elif dtype is not None and i >= self._first_result:
                plain[i] = x.view(dtype) if x.dtype == dtype else x
            elif dtype is not None:
                made = x if is_plain and x.dtype == dtype else np.array(x, dtype, order="C")
                # The same dtype may be another object: a C long long, one with metadata.
                plain[i] = made if made.dtype is dtype else made.view(dtype)
        return self.function(_refuse)(*plain)


def _laid_out(x: Any, strides: Strides) -> Any:
    """A copy with these strides; where one is 0, all elements along the axis are the same."""
    steps = [0 if s is None else s for s in strides]
    if x.ndim != len(steps) or not x.size:
        return x
    ends = [s * (n - 1) for s, n in zip(steps, x.shape, strict=True)]
    low = sum(e for e in ends if e < 0)
    memory = np.empty(sum(map(abs, ends)) + x.itemsize, np.uint8)
    made = np.ndarray(x.shape, x.dtype, memory, -low, steps)
    made[...] = x
    return made


class Nothing(Fallback):
    """Gives None for what is not plain."""

    def __call__(self, *args: Any) -> None:
        return None


def _refuse(*args: Any) -> None:
    raise TypeError(f"a kernel was called with {len(args)} arguments, and takes others")
