"""Products of matrices that the team shares out: `matmul` of NumPy's, called with three arrays.

Each thread has NumPy's BLAS multiply some rows, or some columns, of the result. That takes less
time than BLAS's own threads do for it, which hand parts of their operands to each other, and none
of these is left spinning where our loops are to run next. Where a matrix is cut decides by which
of its kernels BLAS computes an element, so that last digits depend on the number of threads, as
they do with BLAS's own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from symgrad.native.blas import LETTERS, LIMIT, Blas, openblas
from symgrad.native.builtin import ALIGNED, WRAPPER, Fallback, Layout, imports, layout
from symgrad.native.engine import Unavailable, host
from symgrad.native.team import SHARE_PARTS, team
from symgrad.native.vectors import LLVM, Module

LEAST = 2**18  # multiplications: five microseconds, from which on plans ask for threads
WRITEABLE = 0x400
GRAIN = 16  # rows or columns, of which BLAS's kernels take so many at once

# Of one call, as 64-bit numbers: where arrays lie, sizes, the distance of their rows in elements,
# whether they are transposed; of how many matrices, and how they are cut.
FIELDS = (
    "a", "b", "c", "m", "n", "k", "lda", "ldb", "ldc", "ta", "tb",
    "stepa", "stepb", "stepc", "splits", "piece", "rows",
)  # fmt: skip


@lru_cache
def product(threads: int) -> Callable[..., Any]:
    """`np.matmul(a, b, out)`, large products of float32 and float64 on so many threads.

    They are no more than BLAS may take; it is held to one in each of them meanwhile. How a product
    is cut depends on both numbers alone: where the team is busy, one thread computes all parts.
    What else it is called with, `np.matmul` gets. Raises `Unavailable`.
    """
    blas, shared = openblas(), team()
    if blas is None:
        raise Unavailable("NumPy's BLAS is no OpenBLAS that can be asked")
    module = Module()
    state = ctypes.addressof(blas.state)
    known = {
        "holders": ("@holders = external global i64", state),
        "limit": ("@limit = external global i64", state + 8 * LIMIT),
        SHARE_PARTS: (f"declare void @{SHARE_PARTS}(ptr, ptr, i64, i64)", shared.parts),
        "blas_threads": ("declare i32 @blas_threads()", blas.threads),
        "set_blas_threads": ("declare void @set_blas_threads(i32)", blas.set_threads),
    }
    for kind in LETTERS:
        module.definitions[f"@part_{kind}"] = "\n".join(_part(kind, blas))
        signature, _ = _gemm(kind, blas)
        known[f"gemm_{kind}"] = (f"declare void @gemm_{kind}({signature})", blas.products[kind])
        dtype = f"@dtype_{kind} = external global i8"
        known[f"dtype_{kind}"] = dtype, id(np.dtype(kind))
    module.definitions[f"@{WRAPPER}"] = "\n".join(_wrapper(layout(), threads))
    found = imports(module, known)
    return _Shared(host().loaded(str(module), (WRAPPER,), found)).function()


class _Shared(Fallback):
    """Multiplies by NumPy."""

    def __call__(self, *args: Any) -> Any:
        return np.matmul(*args)


def _gemm(kind: str, blas: Blas) -> tuple[str, str]:
    """The parameters of a product of BLAS's, and its arguments for a part."""
    size, real = blas.integer, LLVM[kind]
    given = [
        ("i32", "101"), ("i32", "%transa"), ("i32", "%transb"),
        (size, "%rows1"), (size, "%columns1"), (size, "%k1"),
        (real, "1.0"), ("ptr", "%pa"), (size, "%lda1"), ("ptr", "%pb"), (size, "%ldb1"),
        (real, "0.0"), ("ptr", "%pc"), (size, "%ldc1"),
    ]  # fmt: skip
    return ", ".join(t for t, _ in given), ", ".join(f"{t} {v}" for t, v in given)


def _part(kind: str, blas: Blas) -> Iterator[str]:
    """Lines of the function that computes one part of a product."""
    item = int(kind[1])
    yield f"define internal void @part_{kind}(ptr %job, i64 %i) #1 {{"
    for number, name in enumerate(FIELDS):
        yield f"  %at{name} = getelementptr i64, ptr %job, i64 {number}"
        yield f"  %{name} = load i64, ptr %at{name}"
    yield "  %batch = sdiv i64 %i, %splits"
    yield "  %number = srem i64 %i, %splits"
    yield "  %first = mul i64 %number, %piece"
    yield "  %byrows = icmp ne i64 %rows, 0"
    yield "  %whole = select i1 %byrows, i64 %m, i64 %n"
    yield "  %left = sub i64 %whole, %first"
    yield "  %size = call i64 @llvm.smin.i64(i64 %left, i64 %piece)"
    yield "  %row = select i1 %byrows, i64 %first, i64 0"
    yield "  %column = select i1 %byrows, i64 0, i64 %first"
    yield "  %rows0 = select i1 %byrows, i64 %size, i64 %m"
    yield "  %columns0 = select i1 %byrows, i64 %n, i64 %size"
    # Where the part begins: of `a` by its rows, of `b` by its columns, of `c` by both.
    yield "  %flata = icmp eq i64 %ta, 0"
    yield "  %flatb = icmp eq i64 %tb, 0"
    yield "  %stridea = select i1 %flata, i64 %lda, i64 1"
    yield "  %strideb = select i1 %flatb, i64 1, i64 %ldb"
    yield "  %mova = mul i64 %row, %stridea"
    yield "  %movb = mul i64 %column, %strideb"
    yield "  %movr = mul i64 %row, %ldc"
    yield "  %movc = add i64 %movr, %column"
    for name in "abc":
        yield f"  %bytes{name} = mul i64 %mov{name}, {item}"
        yield f"  %matrix{name} = mul i64 %batch, %step{name}"
        yield f"  %begin{name} = add i64 %{name}, %matrix{name}"
        yield f"  %from{name} = add i64 %begin{name}, %bytes{name}"
        yield f"  %p{name} = inttoptr i64 %from{name} to ptr"
    yield "  %transa = select i1 %flata, i32 111, i32 112"
    yield "  %transb = select i1 %flatb, i32 111, i32 112"
    for name in ("rows0", "columns0", "k", "lda", "ldb", "ldc"):
        new = name.replace("0", "") + "1"
        how = f"trunc i64 %{name} to i32" if blas.integer == "i32" else f"or i64 %{name}, 0"
        yield f"  %{new} = {how}"
    yield f"  call void @gemm_{kind}({_gemm(kind, blas)[1]})"
    yield "  ret void"
    yield "}"


def _wrapper(at: Layout, threads: int) -> Iterator[str]:
    """Lines of the function that Python calls: it looks at the arrays, and shares out the parts."""
    yield f"define ptr @{WRAPPER}(ptr %self, ptr %args, i64 %count) #1 {{"
    yield f"  %job = alloca [{len(FIELDS)} x i64]"
    yield "  %three = icmp eq i64 %count, 3"
    yield "  br i1 %three, label %looka, label %other"
    for i, (x, after) in enumerate((("a", "lookb"), ("b", "lookc"), ("c", "kinds"))):
        yield from _looked_at(at, x, i, after, WRITEABLE if x == "c" else 0)
    # Element types: all three are one, float32 or float64.
    yield "kinds:"
    yield "  %same1 = icmp eq ptr %dtypea, %dtypeb"
    yield "  %same2 = icmp eq ptr %dtypea, %dtypec"
    yield "  %f4 = icmp eq ptr %dtypea, @dtype_f4"
    yield "  %f8 = icmp eq ptr %dtypea, @dtype_f8"
    yield "  %float = or i1 %f4, %f8"
    yield "  %item = select i1 %f4, i64 4, i64 8"
    yield "  %part = select i1 %f4, ptr @part_f4, ptr @part_f8"
    conditions = ["%same1", "%same2", "%float"]

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
    holds(f"icmp sge i64 %mnk, {LEAST}")
    for x in "abc":
        for axis in "01":
            lines.append(f"  %rest{axis}{x} = srem i64 %s{axis}{x}, %item")
            holds(f"icmp eq i64 %rest{axis}{x}, 0")
        lines += [
            f"  %flat{x}1 = icmp eq i64 %s1{x}, %item",
            f"  %row{x} = mul i64 %n1{x}, %item",
            f"  %wide{x} = icmp sge i64 %s0{x}, %row{x}",
            f"  %flat{x} = and i1 %flat{x}1, %wide{x}",
            f"  %turned{x}1 = icmp eq i64 %s0{x}, %item",
            f"  %column{x} = mul i64 %n0{x}, %item",
            f"  %tall{x} = icmp sge i64 %s1{x}, %column{x}",
            f"  %turned{x} = and i1 %turned{x}1, %tall{x}",
            f"  %either{x} = or i1 %flat{x}, %turned{x}",
            f"  %far{x} = select i1 %flat{x}, i64 %s0{x}, i64 %s1{x}",
            f"  %ld{x} = sdiv i64 %far{x}, %item",
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
            f"  %all{x} = mul i64 %long{x}, %far{x}",
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
    yield "  br i1 %several, label %cut, label %other"
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
    yield "  %free = sext i32 %given to i64"
    yield "  store i64 %free, ptr @limit"
    yield "  %more = add i64 %held, 1"
    yield "  store i64 %more, ptr @holders"
    yield "  call void @set_blas_threads(i32 1)"
    yield "  %state = call ptr @PyEval_SaveThread()"
    yield f"  call void @{SHARE_PARTS}(ptr %part, ptr %job, i64 %parts, i64 %threads)"
    yield "  call void @PyEval_RestoreThread(ptr %state)"
    yield "  %holding = load i64, ptr @holders"
    yield "  %fewer1 = sub i64 %holding, 1"
    yield "  store i64 %fewer1, ptr @holders"
    # The last one gives it back, unless somebody else has set it meanwhile.
    yield "  %now = call i32 @blas_threads()"
    yield "  %still = icmp eq i32 %now, 1"
    yield "  %last = icmp eq i64 %fewer1, 0"
    yield "  %ours = and i1 %still, %last"
    yield "  br i1 %ours, label %back, label %done"
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
