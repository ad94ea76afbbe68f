"""Products of matrices that the team shares out: `matmul` of NumPy's, called with three arrays.

Each thread multiplies some rows, or some columns, of the result: by machine code where that is
faster (`gemm.py`), else it has NumPy's BLAS do so. That takes less time than BLAS's own
threads do for it, which hand parts of their operands to each other, and none of these is left
spinning where our loops are to run next. Where a matrix is cut decides by which of its kernels BLAS
computes an element, so that its last digits depend on the number of threads, as they do with its
own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from symgrad.native.blas import LIMIT, openblas
from symgrad.native.builtin import ALIGNED, WRAPPER, Fallback, Layout, imports, layout
from symgrad.native.engine import Library, Unavailable, host
from symgrad.native.gemm import is_fast, micro_tile, write_gemm
from symgrad.native.product_parts import (
    FIELDS,
    GEMM_ARGUMENTS,
    blas_arguments,
    by_blas,
    by_gemm,
    part,
)
from symgrad.native.team import SHARE_PARTS, team
from symgrad.native.vectors import Module
from symgrad.ops.linalg.products import (
    LEAST_COLUMNS,
    LEAST_PACKED,
    LEAST_ROWS,
    LEAST_SHARED,
    MOST_PACKED,
)

WRITEABLE = 0x400
GRAIN = 16  # rows or columns, of which BLAS's kernels take so many at once


class ProductCode:
    """`np.matmul(a, b, out)`, for large products of a kind of floats: `call`, its IR and assembly.

    On how many threads is told when it is made; they are no more than BLAS may take. Where BLAS
    multiplies, it is held to one in each of them meanwhile. How a product is cut depends on both
    numbers alone: where the team is busy, one thread computes all parts. What else it is called
    with, `np.matmul` gets. Raises `Unavailable`.
    """

    def __init__(self, threads: int, kind: str) -> None:
        blas, shared = openblas(), team()
        if blas is None:
            raise Unavailable("NumPy's BLAS is no OpenBLAS that can be asked")
        module = Module()
        state = ctypes.addressof(blas.state)
        signature = ", ".join(t for t, _ in blas_arguments(kind, blas))
        known = {
            "holders": ("@holders = external global i64", state),
            "limit": ("@limit = external global i64", state + 8 * LIMIT),
            SHARE_PARTS: (f"declare void @{SHARE_PARTS}(ptr, ptr, i64, i64)", shared.parts),
            "blas_threads": ("declare i32 @blas_threads()", blas.threads),
            "set_blas_threads": ("declare void @set_blas_threads(i32)", blas.set_threads),
            "dtype": ("@dtype = external global i8", id(np.dtype(kind))),
            "blas": (f"declare void @blas({signature})", blas.products[kind]),
        }
        module.definitions["@blas_part"] = "\n".join(part("blas_part", kind, by_blas(kind, blas)))
        self._gemm = gemm(kind) if is_fast(host()) else None
        if self._gemm is not None:
            known["malloc"] = "declare ptr @malloc(i64)", _of_system("malloc")
            known["free"] = "declare void @free(ptr)", _of_system("free")
            types = ", ".join(t for t, _ in GEMM_ARGUMENTS)
            known["gemm"] = f"declare void @gemm({types})", self._gemm.code["gemm"]
            lines = part("gemm_part", kind, by_gemm(kind))
            module.definitions["@gemm_part"] = "\n".join(lines)
        lines = _wrapper(layout(), threads, kind, self._gemm is not None)
        module.definitions[f"@{WRAPPER}"] = "\n".join(lines)
        found = imports(module, known)
        self._text = str(module)
        self.call = _Shared(host().loaded(self._text, (WRAPPER,), found)).function()

    @property
    def ir(self) -> str:
        """LLVM IR: of the products, if machine code makes them, and of the call."""
        return "\n".join(self._texts)

    @property
    def assembly(self) -> str:
        """Assembly of the same."""
        return "\n".join(map(host().assembly, self._texts))

    @property
    def _texts(self) -> list[str]:
        return [self._text] if self._gemm is None else [self._gemm.text, self._text]


@lru_cache
def product(threads: int, kind: str) -> ProductCode:
    """The code for a kind of floats and so many threads. Raises `Unavailable`."""
    return ProductCode(threads, kind)


class Gemm(NamedTuple):
    """Machine code of products of a kind, which is the same for all programs, and its IR."""

    code: Library
    text: str


@lru_cache
def gemm(kind: str) -> Gemm:
    """The machine code of products of a kind. Raises `Unavailable`."""
    module = Module()
    write_gemm(module, kind, micro_tile(host(), kind), "gemm")
    text = str(module)
    return Gemm(host().loaded(text, ("gemm",), {}), text)


def _of_system(name: str) -> int:
    """The address of a function of the system's."""
    return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0


class _Shared(Fallback):
    """Multiplies by NumPy."""

    def __call__(self, *args: Any) -> Any:
        return np.matmul(*args)


def _wrapper(at: Layout, threads: int, kind: str, has_gemm: bool) -> Iterator[str]:
    """Lines of the function that Python calls: it looks at the arrays, and shares out the parts."""
    item = int(kind[1])
    yield f"define ptr @{WRAPPER}(ptr %self, ptr %args, i64 %count) #1 {{"
    yield f"  %job = alloca [{len(FIELDS)} x i64]"
    yield "  %three = icmp eq i64 %count, 3"
    yield "  br i1 %three, label %looka, label %other"
    for i, (x, after) in enumerate((("a", "lookb"), ("b", "lookc"), ("c", "kinds"))):
        yield from _looked_at(at, x, i, after, WRITEABLE if x == "c" else 0)
    yield "kinds:"
    conditions = [f"%kind{x}" for x in "abc"]
    for x in "abc":
        yield f"  %kind{x} = icmp eq ptr %dtype{x}, @dtype"

    def holds(test: str) -> None:
        conditions.append(f"%is{len(conditions)}")
        lines.append(f"  {conditions[-1]} = {test}")

    lines: list[str] = []
    for x, y in (("0a", "0c"), ("1b", "1c"), ("1a", "0b")):
        holds(f"icmp eq i64 %n{x}, %n{y}")
    # One matrix is for all of the others.
    for x in "ab":
        lines += [
            f"  %one{x} = icmp eq i64 %nbatch{x}, 1",
            f"  %each{x} = icmp eq i64 %nbatch{x}, %nbatchc",
            f"  %stays{x} = select i1 %one{x}, i64 0, i64 %sbatch{x}",
            f"  %batched{x} = or i1 %one{x}, %each{x}",
        ]
    conditions += ["%batcheda", "%batchedb"]
    for size in ("n0a", "n1a", "n1b"):
        holds(f"icmp sge i64 %{size}, 2")
    # A matrix by its own transpose is another product of BLAS's.
    holds("icmp ne ptr %dataa, %datab")
    lines += ["  %mn = mul i64 %n0a, %n1b", "  %mnk = mul i64 %mn, %n1a"]
    holds(f"icmp sge i64 %mnk, {LEAST_SHARED}")
    for x in "abc":
        for axis in "01":
            lines.append(f"  %rest{axis}{x} = srem i64 %s{axis}{x}, {item}")
            holds(f"icmp eq i64 %rest{axis}{x}, 0")
        lines += [
            f"  %flat{x}1 = icmp eq i64 %s1{x}, {item}",
            f"  %row{x} = mul i64 %n1{x}, {item}",
            f"  %wide{x} = icmp sge i64 %s0{x}, %row{x}",
            f"  %flat{x} = and i1 %flat{x}1, %wide{x}",
            f"  %turned{x}1 = icmp eq i64 %s0{x}, {item}",
            f"  %column{x} = mul i64 %n0{x}, {item}",
            f"  %tall{x} = icmp sge i64 %s1{x}, %column{x}",
            f"  %turned{x} = and i1 %turned{x}1, %tall{x}",
            f"  %either{x} = or i1 %flat{x}, %turned{x}",
            f"  %far{x} = select i1 %flat{x}, i64 %s0{x}, i64 %s1{x}",
            f"  %ld{x} = sdiv i64 %far{x}, {item}",
            f"  %t{x} = select i1 %flat{x}, i64 0, i64 1",
        ]
    conditions += ["%eithera", "%eitherb", "%flatc"]
    # What is written is no part of what is read, nor of another matrix.
    for x in "abc":
        lines += [
            f"  %begin{x} = ptrtoint ptr %data{x} to i64",
            f"  %lastm{x} = sub i64 %nbatch{x}, 1",
            f"  %endm{x} = mul i64 %lastm{x}, %sbatch{x}",
            f"  %long{x} = select i1 %flat{x}, i64 %n0{x}, i64 %n1{x}",
            f"  %short{x} = select i1 %flat{x}, i64 %row{x}, i64 %column{x}",
            f"  %last{x}1 = sub i64 %long{x}, 1",
            f"  %steps{x} = mul i64 %last{x}1, %far{x}",
            f"  %all{x} = add i64 %steps{x}, %short{x}",
            f"  %span{x} = add i64 %endm{x}, %all{x}",
            f"  %end{x} = add i64 %begin{x}, %span{x}",
        ]
        holds(f"icmp sge i64 %sbatch{x}, 0")
    for x in "ab":
        lines += [
            f"  %below{x} = icmp sle i64 %end{x}, %beginc",
            f"  %above{x} = icmp sle i64 %endc, %begin{x}",
            f"  %apart{x} = or i1 %below{x}, %above{x}",
        ]
        conditions.append(f"%apart{x}")
    lines += [
        "  %single = icmp eq i64 %nbatchc, 1",
        "  %behind = icmp sge i64 %sbatchc, %allc",
        "  %disjoint = or i1 %single, %behind",
    ]
    conditions.append("%disjoint")
    yield from lines
    yield f"  %all0 = and i1 {conditions[0]}, {conditions[1]}"
    for i, condition in enumerate(conditions[2:]):
        yield f"  %all{i + 1} = and i1 %all{i}, {condition}"
    yield f"  br i1 %all{len(conditions) - 2}, label %fits, label %other"
    # As many threads as BLAS may take when nobody holds it to one.
    yield "fits:"
    yield "  %held = load i64, ptr @holders"
    yield "  %others = icmp sgt i64 %held, 0"
    yield "  %known = load i64, ptr @limit"
    yield "  %before = trunc i64 %known to i32"
    yield "  %asked = call i32 @blas_threads()"
    yield "  %given = select i1 %others, i32 %before, i32 %asked"
    yield f"  %fewer = call i32 @llvm.smin.i32(i32 %given, i32 {threads})"
    yield "  %threads = sext i32 %fewer to i64"
    yield "  %several = icmp sge i64 %threads, 2"
    if has_gemm:
        yield f"  %large = icmp sge i64 %mnk, {LEAST_PACKED}"
        yield f"  %small = icmp slt i64 %mnk, {MOST_PACKED}"
        yield "  %medium = and i1 %large, %small"
        yield f"  %high = icmp sge i64 %n0a, {LEAST_ROWS}"
        yield f"  %broad = icmp sge i64 %n1b, {LEAST_COLUMNS}"
        yield "  %square = and i1 %high, %broad"
        yield "  %packs = and i1 %medium, %square"
    yield f"  %cuts = or i1 %several, {'%packs' if has_gemm else 'false'}"
    yield "  br i1 %cuts, label %cut, label %other"
    # Matrices of their own are parts enough; else each is cut along its longer side.
    yield "cut:"
    yield "  %rows1 = icmp sge i64 %n0a, %n1b"
    yield "  %longer = select i1 %rows1, i64 %n0a, i64 %n1b"
    yield "  %twice = mul i64 %threads, 2"
    yield "  %many = icmp sge i64 %nbatchc, %twice"
    yield "  %wanted = select i1 %many, i64 1, i64 %threads"
    yield "  %less = sub i64 %wanted, 1"
    yield "  %up = add i64 %longer, %less"
    yield "  %even = sdiv i64 %up, %wanted"
    yield f"  %over = add i64 %even, {GRAIN - 1}"
    yield f"  %piece = and i64 %over, {-GRAIN}"
    yield "  %lessp = sub i64 %piece, 1"
    yield "  %upp = add i64 %longer, %lessp"
    yield "  %splits = sdiv i64 %upp, %piece"
    yield "  %parts = mul i64 %splits, %nbatchc"
    yield "  %rows = zext i1 %rows1 to i64"
    for x in "abc":
        yield f"  %{x} = or i64 %begin{x}, 0"
    values = {"m": "n0a", "n": "n1b", "k": "n1a"}
    values |= {"stepa": "staysa", "stepb": "staysb", "stepc": "sbatchc"}
    for number, name in enumerate(FIELDS):
        yield f"  %to{name} = getelementptr i64, ptr %job, i64 {number}"
        yield f"  store i64 %{values.get(name, name)}, ptr %to{name}"
    work = f"call void @{SHARE_PARTS}(ptr {{}}, ptr %job, i64 %parts, i64 %threads)"
    if has_gemm:
        yield "  br i1 %packs, label %work, label %hold"
        yield "work:"
        yield "  %state1 = call ptr @PyEval_SaveThread()"
        yield f"  {work.format('@gemm_part')}"
        yield "  call void @PyEval_RestoreThread(ptr %state1)"
        yield "  br label %done"
    else:
        yield "  br label %hold"
    yield "hold:"
    yield "  %free = sext i32 %given to i64"
    yield "  store i64 %free, ptr @limit"
    yield "  %more = add i64 %held, 1"
    yield "  store i64 %more, ptr @holders"
    yield "  call void @set_blas_threads(i32 1)"
    yield "  %state = call ptr @PyEval_SaveThread()"
    yield f"  {work.format('@blas_part')}"
    yield "  call void @PyEval_RestoreThread(ptr %state)"
    yield "  %holding = load i64, ptr @holders"
    yield "  %fewer1 = sub i64 %holding, 1"
    yield "  store i64 %fewer1, ptr @holders"
    # The last one gives it back, unless somebody else has set it meanwhile.
    yield "  %now = call i32 @blas_threads()"
    yield "  %still = icmp eq i32 %now, 1"
    yield "  %last = icmp eq i64 %fewer1, 0"
    yield "  %alone = and i1 %still, %last"
    yield "  br i1 %alone, label %back, label %done"
    yield "back:"
    yield "  call void @set_blas_threads(i32 %given)"
    yield "  br label %done"
    yield "done:"
    yield "  call void @Py_IncRef(ptr @_Py_NoneStruct)"
    yield "  ret ptr @_Py_NoneStruct"
    yield "other:"
    yield "  %made = call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %count, ptr null)"
    yield "  ret ptr %made"
    yield "}"
    yield "declare i64 @llvm.smin.i64(i64, i64)"
    yield "declare i32 @llvm.smin.i32(i32, i32)"


def _looked_at(at: Layout, x: str, i: int, after: str, also: int) -> Iterator[str]:
    """Lines that read an array: its data, element type, the sizes and strides of two axes.

    It has to be aligned, and to have what flag is wanted `also`. Of three axes the first is one of
    matrices; of a single matrix that has one element.
    """
    yield f"look{x}:"
    yield f"  %p{x} = getelementptr ptr, ptr %args, i64 {i}"
    yield f"  %o{x} = load ptr, ptr %p{x}"
    yield f"  %tp{x} = getelementptr i8, ptr %o{x}, i64 {at.type}"
    yield f"  %type{x} = load ptr, ptr %tp{x}"
    yield f"  %array{x} = icmp eq ptr %type{x}, @PyArray_Type"
    yield f"  br i1 %array{x}, label %axes{x}, label %other"
    yield f"axes{x}:"
    yield f"  %np{x} = getelementptr i8, ptr %o{x}, i64 {at.ndim}"
    yield f"  %ndim{x} = load i32, ptr %np{x}"
    yield f"  %fp{x} = getelementptr i8, ptr %o{x}, i64 {at.flags}"
    yield f"  %flags{x} = load i32, ptr %fp{x}"
    yield f"  %masked{x} = and i32 %flags{x}, {ALIGNED | also}"
    yield f"  %aligned{x} = icmp eq i32 %masked{x}, {ALIGNED | also}"
    yield f"  %two{x} = icmp eq i32 %ndim{x}, 2"
    yield f"  %three{x} = icmp eq i32 %ndim{x}, 3"
    yield f"  %known{x} = or i1 %two{x}, %three{x}"
    yield f"  %plain{x} = and i1 %known{x}, %aligned{x}"
    yield f"  br i1 %plain{x}, label %read{x}, label %other"
    yield f"read{x}:"
    yield f"  %lp{x} = getelementptr i8, ptr %o{x}, i64 {at.data}"
    yield f"  %data{x} = load ptr, ptr %lp{x}"
    yield f"  %dp{x} = getelementptr i8, ptr %o{x}, i64 {at.dtype}"
    yield f"  %dtype{x} = load ptr, ptr %dp{x}"
    yield f"  %last{x} = select i1 %three{x}, i64 1, i64 0"
    for name, place, alone in (("n", at.shape, 1), ("s", at.strides, 0)):
        yield f"  %{name}p{x}1 = getelementptr i8, ptr %o{x}, i64 {place}"
        yield f"  %{name}all{x} = load ptr, ptr %{name}p{x}1"
        yield f"  %{name}at{x} = getelementptr i64, ptr %{name}all{x}, i64 %last{x}"
        yield f"  %{name}0{x} = load i64, ptr %{name}at{x}"
        yield f"  %{name}next{x} = getelementptr i64, ptr %{name}at{x}, i64 1"
        yield f"  %{name}1{x} = load i64, ptr %{name}next{x}"
        yield f"  %{name}first{x} = load i64, ptr %{name}all{x}"
        yield f"  %{name}batch{x} = select i1 %three{x}, i64 %{name}first{x}, i64 {alone}"
    yield f"  br label %{after}"
