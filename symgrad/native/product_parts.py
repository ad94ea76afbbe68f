"""How a part of a product is computed, by BLAS or by machine code: functions `(job, number)`."""

from __future__ import annotations

from collections.abc import Iterator

from symgrad.native.blas import Blas
from symgrad.native.gemm import SPACE
from symgrad.native.vectors import LLVM

# Of one call, as 64-bit numbers: where arrays lie, sizes, the distance of their rows in elements,
# whether they are transposed; of how many matrices, and how they are cut.
FIELDS = (
    "a", "b", "c", "m", "n", "k", "lda", "ldb", "ldc", "ta", "tb",
    "stepa", "stepb", "stepc", "splits", "piece", "rows",
)  # fmt: skip


def blas_arguments(kind: str, blas: Blas) -> list[tuple[str, str]]:
    """The arguments of a product of BLAS's for a part, with their types."""
    size, real = blas.integer, LLVM[kind]
    return [
        ("i32", "101"), ("i32", "%transa"), ("i32", "%transb"),
        (size, "%rows1"), (size, "%columns1"), (size, "%k1"),
        (real, "1.0"), ("ptr", "%pa"), (size, "%lda1"), ("ptr", "%pb"), (size, "%ldb1"),
        (real, "0.0"), ("ptr", "%pc"), (size, "%ldc1"),
    ]  # fmt: skip


def by_blas(kind: str, blas: Blas) -> Iterator[str]:
    """Lines that have BLAS compute a part."""
    yield "  %transa = select i1 %flata, i32 111, i32 112"
    yield "  %transb = select i1 %flatb, i32 111, i32 112"
    for name in ("rows0", "columns0", "k", "lda", "ldb", "ldc"):
        new = name.replace("0", "") + "1"
        how = f"trunc i64 %{name} to i32" if blas.integer == "i32" else f"or i64 %{name}, 0"
        yield f"  %{new} = {how}"
    given = ", ".join(f"{t} {v}" for t, v in blas_arguments(kind, blas))
    yield f"  call void @blas({given})"


# The arguments of a product in machine code for a part, with their types.
GEMM_ARGUMENTS = (
    ("i64", "%rows0"), ("i64", "%columns0"), ("i64", "%k"),
    ("ptr", "%pa"), ("i64", "%arow"), ("i64", "%acol"),
    ("ptr", "%pb"), ("i64", "%brow"), ("i64", "%bcol"), ("ptr", "%pc"), ("i64", "%crow"),
    ("ptr", "%space"),
)  # fmt: skip


def by_gemm(kind: str) -> Iterator[str]:
    """Lines that compute a part by machine code, or by BLAS where there is no room for it."""
    item = int(kind[1])
    yield f"  %room = call ptr @malloc(i64 {SPACE + 64})"
    yield "  %none = icmp eq ptr %room, null"
    yield "  br i1 %none, label %other, label %multiply"
    yield "other:"
    yield "  call void @blas_part(ptr %job, i64 %i)"
    yield "  ret void"
    yield "multiply:"
    yield "  %place = ptrtoint ptr %room to i64"
    yield "  %after = add i64 %place, 63"
    yield "  %line = and i64 %after, -64"
    yield "  %space = inttoptr i64 %line to ptr"
    yield "  %columna = select i1 %flata, i64 1, i64 %lda"
    yield "  %rowb = select i1 %flatb, i64 %ldb, i64 1"
    for name, count in (
        ("arow", "stridea"), ("acol", "columna"), ("brow", "rowb"), ("bcol", "strideb"),
        ("crow", "ldc"),
    ):  # fmt: skip
        yield f"  %{name} = mul i64 %{count}, {item}"
    yield f"  call void @gemm({', '.join(f'{t} {v}' for t, v in GEMM_ARGUMENTS)})"
    yield "  call void @free(ptr %room)"


def part(name: str, kind: str, multiply: Iterator[str]) -> Iterator[str]:
    """Lines of the function that computes one part of a product."""
    item = int(kind[1])
    yield f"define internal void @{name}(ptr %job, i64 %i) #1 {{"
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
    yield from multiply
    yield "  ret void"
    yield "}"
