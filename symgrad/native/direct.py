"""The call of a whole program: it checks its arguments, computes, and makes the results.

It is called from Python with the very arguments of the user. Arrays of the right dtype and shape,
C-contiguous and aligned, and numbers of the right kind are read where they lie; the results are new
arrays, and NumPy's scalars, in a tuple. All of that is 0.1 µs and 0.03 µs for each of them.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir.types import TensorType
from symgrad.native.builtin import PLAIN, WRAPPER, Layout, Nothing, Plainly, imports, layout
from symgrad.native.engine import Engine, Unavailable
from symgrad.native.operations import kind_of
from symgrad.native.vectors import Module

CORE, TABLE_NAME = "numpy._core._multiarray_umath", "_ARRAY_API"
# Where NumPy's table of functions has what is used of it: these places never change.
TABLE: Mapping[str, int] = {"PyArray_Type": 2, "PyArray_Scalar": 60, "PyArray_NewFromDescr": 94}
FUNCTIONS: Mapping[str, str] = {
    "PyArray_Scalar": "declare ptr @PyArray_Scalar(ptr, ptr, ptr)",
    "PyArray_NewFromDescr": (
        "declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)"
    ),
}


class Result(NamedTuple):
    """A result: its type, and whether it is `made`; else it is written into an array if it is one.

    Numbers are always made.
    """

    type: TensorType
    made: bool

    @property
    def is_given(self) -> bool:
        """Whether the call is given an array for it."""
        return not self.made and self.type.ndim > 0


@lru_cache(maxsize=1)
def numpy_functions() -> dict[str, int]:
    """The addresses of NumPy's functions for extensions. Raises `Unavailable`."""
    capsule = getattr(sys.modules.get(CORE), TABLE_NAME, None)
    if capsule is None:
        raise Unavailable("this NumPy has no table of functions")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    found = {name: table[i] or 0 for name, i in TABLE.items()}
    if found["PyArray_Type"] != id(np.ndarray):
        raise Unavailable("the table of this NumPy's functions is another than is known")
    return found


@lru_cache(maxsize=1)
def number_offset() -> int:
    """Where a number of NumPy's, or a float of Python's, has its value. Raises `Unavailable`."""
    value = 1234.5
    numbers = [value, np.float64(value), np.float32(value), np.uint8(77), np.int64(77)]
    places = {
        ctypes.string_at(id(x), x.__sizeof__()).find(np.asarray(x).tobytes(), 16) for x in numbers
    }
    if places != {16}:
        raise Unavailable("the numbers of this NumPy are laid out otherwise than is known")
    return 16


def direct(
    engine: Engine,
    module: Module,
    kernel: str,
    inputs: Sequence[TensorType],
    results: Sequence[Result],
) -> tuple[Callable[..., tuple[Any, ...]], Callable[..., tuple[Any, ...] | None]]:
    """Two calls of a kernel that takes a table of pointers, to the inputs, then to the results.

    Both take the inputs, then arrays for the results that are not made, and give a tuple of those
    that are. Where arguments are not as they are to be, the first makes them so, or raises
    `ValueError` or `TypeError`, the second gives None. Raises `Unavailable`.
    """
    module.definitions[f"@{WRAPPER}"] = _Wrapper(kernel, inputs, results).text()
    more = {name: (line, numpy_functions()[name]) for name, line in FUNCTIONS.items()}
    for dtype in {t.dtype for t in (*inputs, *(r.type for r in results))}:
        for stem, thing in (("descr", np.dtype(kind_of(dtype))), ("type", dtype.type)):
            name = f"{stem}_{kind_of(dtype)}"
            more[name] = f"@{name} = external global i8", id(thing)
    found = imports(module, more)
    library = engine.loaded(str(module), (WRAPPER,), found)
    given = [r.type for r in results if r.is_given]
    dtypes = [np.dtype(kind_of(t.dtype)) for t in (*inputs, *given)]
    return Plainly(library, dtypes, len(inputs)).function(), Nothing(library).function()


class _Wrapper:
    """Writes the function that Python calls."""

    def __init__(
        self, kernel: str, inputs: Sequence[TensorType], results: Sequence[Result]
    ) -> None:
        self.kernel, self.inputs, self.results = kernel, inputs, results
        self.at: Layout = layout()
        self.lines: list[str] = []
        self.count = 0

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def value(self, text: str) -> str:
        """The name of what a line gives."""
        self.count += 1
        self.do(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def field(self, thing: str, offset: int, type_: str = "ptr") -> str:
        """The field of an object so many bytes from its start."""
        place = self.value(f"getelementptr i8, ptr {thing}, i64 {offset}")
        return self.value(f"load {type_}, ptr {place}")

    def unless(self, truth: str, other: str) -> None:
        """Go elsewhere if something is not so."""
        self.count += 1
        self.do(f"br i1 {truth}, label %on{self.count}, label %{other}")
        self.lines.append(f"on{self.count}:")

    def text(self) -> str:
        """The whole function."""
        given = [r.type for r in self.results if r.is_given]
        made = [r for r in self.results if not r.is_given]
        self.lines = [f"define ptr @{WRAPPER}(ptr %self, ptr %args, i64 %count) #1 {{", "entry:"]
        slots = len(self.inputs) + len(self.results)
        self.do(f"%table = alloca [{max(slots, 1)} x ptr], align 16")
        self.do(f"%numbers = alloca [{max(len(made), 1)} x i64], align 16")
        self.do(f"%dims = alloca [{max([1, *(r.type.ndim for r in made)])} x i64], align 16")
        self.unless(self.value(f"icmp eq i64 %count, {len(self.inputs) + len(given)}"), "other")
        for i, t in enumerate(self.inputs):
            self.enter(i, self.data_of(self.argument(i), t))
        places = {}
        for i, t in enumerate(given, len(self.inputs)):
            places[i] = self.data_of(self.argument(i), t)
        found = self.value(f"call ptr @PyTuple_New(i64 {len(made)})")
        self.unless(self.value(f"icmp ne ptr {found}, null"), "nothing")
        arrays, number, left = iter(places.values()), 0, []
        for i, result in enumerate(self.results, len(self.inputs)):
            if result.is_given:
                self.enter(i, next(arrays))
                continue
            if result.type.ndim:
                array = self.new_array(result.type)
                self.put(found, number, array)
                self.enter(i, self.field(array, self.at.data))
            else:
                place = self.value(f"getelementptr i64, ptr %numbers, i64 {number}")
                self.enter(i, place)
                left.append((number, place, result.type))
            number += 1
        self.do(f"call void @{self.kernel}(ptr %table)")
        for number, place, t in left:
            made_of = (
                f"call ptr @PyArray_Scalar(ptr {place}, ptr @descr_{kind_of(t.dtype)}, ptr null)"
            )
            self.put(found, number, self.value(made_of))
        self.do(f"ret ptr {found}")
        self.lines.append("failed:")
        self.do(f"call void @Py_DecRef(ptr {found})")
        self.do("br label %nothing")
        self.lines.append("nothing:")
        self.do("ret ptr null")
        self.lines.append("other:")
        self.do("%made = call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %count, ptr null)")
        self.do("ret ptr %made")
        return "\n".join([*self.lines, "}"])

    def argument(self, i: int) -> str:
        return self.value(f"load ptr, ptr {self.value(f'getelementptr ptr, ptr %args, i64 {i}')}")

    def enter(self, i: int, pointer: str) -> None:
        """Put a pointer into the table."""
        self.do(f"store ptr {pointer}, ptr {self.value(f'getelementptr ptr, ptr %table, i64 {i}')}")

    def data_of(self, thing: str, t: TensorType) -> str:
        """The data of an argument of this type; elsewhere if it is of another."""
        kind = self.field(thing, self.at.type)
        is_array = self.value(f"icmp eq ptr {kind}, @PyArray_Type")
        if t.ndim:
            self.unless(is_array, "other")
            self.check_array(thing, t)
            return self.field(thing, self.at.data)
        self.count += 1
        array, number, after = (f"{stem}{self.count}" for stem in ("array", "number", "after"))
        self.do(f"br i1 {is_array}, label %{array}, label %{number}")
        self.lines.append(f"{array}:")
        self.check_array(thing, t)
        data = self.field(thing, self.at.data)
        self.do(f"br label %{array}_end")
        self.lines.append(f"{array}_end:")
        self.do(f"br label %{after}")
        self.lines.append(f"{number}:")
        name = kind_of(t.dtype)
        fits = self.value(f"icmp eq ptr {kind}, @type_{name}")
        if name == "f8":
            plain = self.value(f"icmp eq ptr {kind}, @PyFloat_Type")
            fits = self.value(f"or i1 {fits}, {plain}")
        self.unless(fits, "other")
        own = self.value(f"getelementptr i8, ptr {thing}, i64 {number_offset()}")
        self.do(f"br label %{number}_end")
        self.lines.append(f"{number}_end:")
        self.do(f"br label %{after}")
        self.lines.append(f"{after}:")
        return self.value(f"phi ptr [ {data}, %{array}_end ], [ {own}, %{number}_end ]")

    def check_array(self, thing: str, t: TensorType) -> None:
        """Go elsewhere if an array is not plain, or of another dtype or shape."""
        flags = self.value(f"and i32 {self.field(thing, self.at.flags, 'i32')}, {PLAIN}")
        self.unless(self.value(f"icmp eq i32 {flags}, {PLAIN}"), "other")
        descr = self.field(thing, self.at.dtype)
        self.unless(self.value(f"icmp eq ptr {descr}, @descr_{kind_of(t.dtype)}"), "other")
        ndim = self.field(thing, self.at.ndim, "i32")
        self.unless(self.value(f"icmp eq i32 {ndim}, {t.ndim}"), "other")
        shape = self.field(thing, self.at.shape) if t.ndim else ""
        for i, size in enumerate(t.shape):
            own = self.field(shape, 8 * i, "i64")
            self.unless(self.value(f"icmp eq i64 {own}, {size}"), "other")

    def new_array(self, t: TensorType) -> str:
        """A new array of a type."""
        for i, size in enumerate(t.shape):
            self.do(f"store i64 {size}, ptr {self.value(f'getelementptr i64, ptr %dims, i64 {i}')}")
        descr = f"@descr_{kind_of(t.dtype)}"
        self.do(f"call void @Py_IncRef(ptr {descr})")
        return self.value(
            f"call ptr @PyArray_NewFromDescr(ptr @PyArray_Type, ptr {descr}, i32 {t.ndim}, "
            "ptr %dims, ptr null, ptr null, i32 0, ptr null)"
        )

    def put(self, found: str, number: int, thing: str) -> None:
        """Put an object into the tuple of results; give up if there is none."""
        self.unless(self.value(f"icmp ne ptr {thing}, null"), "failed")
        self.do(f"call i32 @PyTuple_SetItem(ptr {found}, i64 {number}, ptr {thing})")
