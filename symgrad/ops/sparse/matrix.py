"""Sparse matrices as users have them: a record of a pattern and a node of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from symgrad.ir.errors import DtypeError, ShapeError, UnsupportedError
from symgrad.ir.forms import Form
from symgrad.ir.node import Node, as_node, constant_node
from symgrad.ir.types import DType, require_equal
from symgrad.ir.values import ArrayData
from symgrad.ops.declare import NodeLike, in_single, require
from symgrad.ops.index.gather import gather, scatter
from symgrad.ops.leaves import zeros
from symgrad.ops.reduce import as_float
from symgrad.ops.shape import concat, matrix_transpose, on_columns, reshape
from symgrad.ops.sparse import kernels
from symgrad.ops.sparse.products import require_pattern, rows_of, sparse_matmul_p, sparse_solve_p

Numbers: TypeAlias = np.ndarray[Any, DType]

OPERATORS: Mapping[Any, str] = MappingProxyType(
    {
        np.matmul: "matmul",
        np.add: "add",
        np.subtract: "sub",
        np.multiply: "mul",
        np.divide: "truediv",
        np.negative: "neg",
    }
)


@dataclass(frozen=True, eq=False, repr=False)
class Matrix:
    """A sparse matrix: places of entries that are known, and a node of their values.

    `A @ x`, `x @ A` and `A.T @ x` are products with arrays and nodes, in time and memory that grow
    with the entries; `A @ B`, `A + B`, `A - B` are sparse again, and so are `-A`, `2 * A`, `A / 2`.
    All have gradients by the values, which are a node like any other; `grad(loss, A)` is a sparse
    matrix with those by each entry. A program that has a sparse matrix among its outputs returns a
    `scipy.sparse.csr_array`, or the `csc_array` of a transpose, in float32 if it is of float16.

    `indices` and `indptr` are those of compressed rows, of the matrix or, if it is `transposed`, of
    its transpose; each row has its columns in order, and each once. Entries may be 0.

    >>> A = sg.sparse.matrix(scipy.sparse.eye_array(3))
    >>> (A @ placeholder("x", 3)).type, A.values.type
    (float64[3], float64[3])
    """

    values: Node
    indices: ArrayData
    indptr: ArrayData
    shape: tuple[int, int]
    transposed: bool = False

    def __post_init__(self) -> None:
        rows, columns = self.shape[::-1] if self.transposed else self.shape
        require_equal(self.indptr.array.size, rows + 1)
        require_pattern(self.indices, self.indptr, columns)
        require("iufc", self.values.tensor)
        if self.values.shape != self.indices.array.shape:
            raise ShapeError(f"{self.nnz} values are wanted, in a row, not {self.values.type!r}")

    @property
    def nnz(self) -> int:
        """The number of its entries."""
        return self.indices.array.size

    @property
    def dtype(self) -> DType:
        """The dtype of its values."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        return 2

    @property
    def rows(self) -> Numbers:
        """The row of each entry, in the order of the values."""
        return self.indices.array if self.transposed else rows_of(self.indptr)

    @property
    def columns(self) -> Numbers:
        """The column of each entry, in the order of the values."""
        return rows_of(self.indptr) if self.transposed else self.indices.array

    @property
    def T(self) -> Matrix:
        """The transpose, with the same values."""
        return replace(self, shape=self.shape[::-1], transposed=not self.transposed)

    def with_values(self, values: NodeLike) -> Matrix:
        """The matrix with other values at the same places, in the order of its own."""
        return replace(self, values=as_node(values))

    def todense(self) -> Node:
        """The matrix as a dense node."""
        whole = zeros(self.shape, dtype=self.dtype)
        places = (constant_node(ArrayData(a)) for a in (self.rows, self.columns))
        return scatter(whole, self.values, *places, axis=0, mode="set")

    def __matmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return _product(self, matrix(other))
        return on_columns(self._times, as_node(other))

    def __rmatmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return _product(matrix(other), self)
        x = as_node(other)
        if x.ndim < 2:
            return self.T @ x
        return matrix_transpose(self.T @ matrix_transpose(x))

    def _times(self, x: Node) -> Node:
        return in_single(sparse_matmul_p)(
            self._row,
            x,
            indices=self.indices,
            indptr=self.indptr,
            columns=self.shape[not self.transposed],
            transposed=self.transposed,
        )

    @property
    def _row(self) -> Node:
        return reshape(self.values, (1, self.nnz))

    def solve(self, b: NodeLike) -> Node:
        """The y with A @ y = b; see `sg.sparse.solve`."""
        rows, columns = self.shape
        if rows != columns:
            raise ShapeError(f"a system wants a square matrix, not one of {rows} × {columns}")
        solution = partial(
            in_single(sparse_solve_p),
            as_float(self._row),
            indices=self.indices,
            indptr=self.indptr,
            transposed=self.transposed,
        )
        return on_columns(solution, as_float(b))

    def __mul__(self, other: Any) -> Matrix:
        return self.with_values(self.values * _scalar(other, "*"))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Matrix:
        return self.with_values(self.values / _scalar(other, "/"))

    def __neg__(self) -> Matrix:
        return self.with_values(-self.values)

    def __add__(self, other: Any) -> Matrix:
        if not is_sparse(other):
            raise ShapeError("to a sparse matrix a sparse one is added; A.todense() is a dense one")
        right = matrix(other)
        if self.shape != right.shape:
            raise ShapeError(f"sparse matrices of the shapes {self.shape} and {right.shape}")
        same = self.transposed == right.transposed and self.indices == right.indices
        if same and self.indptr == right.indptr:
            return self.with_values(self.values + right.values)
        return from_entries(
            concat([self.values, right.values]),
            np.concatenate([self.rows, right.rows]),
            np.concatenate([self.columns, right.columns]),
            self.shape,
        )

    __radd__ = __add__

    def __sub__(self, other: Any) -> Matrix:
        return self.__add__(-matrix(other) if is_sparse(other) else other)

    def __rsub__(self, other: Any) -> Matrix:
        return self.__sub__(other).__neg__()

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        """NumPy's arithmetic, which its arrays call for the operators too, by those here."""
        name = OPERATORS.get(ufunc)
        if name is None or method != "__call__" or options:
            called = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            raise UnsupportedError(
                f"np.{called} is not of sparse matrices; A.with_values(…) has other entries, and "
                "A.todense() is a dense node"
            )
        if operands[0] is self or isinstance(operands[0], Matrix):
            return getattr(operands[0], f"__{name}__")(*operands[1:])
        turned = getattr(operands[1], f"__r{name}__", None)
        if turned is None:
            raise ShapeError("nothing is divided by a sparse matrix; sg.sparse.solve(A, b) solves")
        return turned(operands[0])

    def __getitem__(self, key: Any) -> Node:
        raise UnsupportedError(
            "a sparse matrix is not indexed: A.todense()[…] is, A.T @ v takes rows together, and "
            "A.rows, A.columns and A.values are its entries"
        )

    def __symgrad_parts__(self) -> tuple[Node, Form]:
        return self.values, _Formed(self.indices, self.indptr, self.shape, self.transposed)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<sparse {rows} × {columns} {self.dtype.name}: {self.nnz} entries>"


@dataclass(frozen=True)
class _Formed:
    """Gives a matrix for a node, a SciPy array for an array, and what is neither as it is."""

    indices: ArrayData
    indptr: ArrayData
    shape: tuple[int, int]
    transposed: bool

    def __call__(self, results: Iterable[Any]) -> Any:
        values = next(iter(results))
        if isinstance(values, Node):
            return Matrix(values, self.indices, self.indptr, self.shape, self.transposed)
        if not isinstance(values, np.ndarray):
            return values
        made = copy(self.pattern)
        # SciPy computes with no float16.
        made.data = values.astype(np.float32) if values.dtype == np.float16 else values
        made.indices, made.indptr = made.indices.copy(), made.indptr.copy()
        return made

    @cached_property
    def pattern(self) -> Any:
        """SciPy's array, without values: its checks of a pattern take longer than a small call."""
        module = kernels.sparse_module()
        kind = module.csc_array if self.transposed else module.csr_array
        indices, indptr = self.indices.array, self.indptr.array
        return kind((np.zeros(len(indices), bool), indices, indptr), shape=self.shape)


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse matrix, of ours or SciPy's."""
    return isinstance(value, Matrix) or hasattr(type(value), "tocsr")


def matrix(a: Any, /) -> Matrix:
    """A sparse matrix of `scipy.sparse`, of any format, as one whose values are a constant node.

    Entries that stand at one place are added up; those that are 0 stay, and have gradients. What
    is a sparse matrix of symgrad's already is returned. Raises `DtypeError` for what is neither,
    and for booleans, `ShapeError` for what has not two axes.

    >>> sg.sparse.matrix(scipy.sparse.eye_array(3)) @ placeholder("x", 3)
    <sparse_matmul float64[3]>
    """
    if isinstance(a, Matrix):
        return a
    if not is_sparse(a):
        raise DtypeError(
            f"a matrix of scipy.sparse is wanted, not {type(a).__name__}; of a dense one "
            "scipy.sparse.csr_array(array) keeps what is not 0"
        )
    if len(a.shape) != 2:
        kind = type(a).__name__
        raise ShapeError(f"a sparse matrix has two axes, and this {kind} has {len(a.shape)}")
    rows = a.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    values = constant_node(ArrayData(rows.data))
    shape = (int(a.shape[0]), int(a.shape[1]))
    return Matrix(values, ArrayData(rows.indices), ArrayData(rows.indptr), shape)


def from_entries(values: NodeLike, rows: Any, columns: Any, shape: Any) -> Matrix:
    """The sparse matrix with values, which may be a node, at these rows and columns.

    The values are a vector, and the others as many integers that are known now, each counted from
    0. Values at one place are added up. Raises `ShapeError` for what does not fit.

    >>> v = placeholder("v", 3)
    >>> A = sg.sparse.from_entries(v, [0, 1, 1], [2, 0, 0], (2, 3))
    >>> A
    <sparse 2 × 3 float64: 2 entries>
    """
    node = as_node(values)
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        raise ShapeError(f"the shape of a sparse matrix is two ints, each known now, not {shape!r}")
    height, width = shape
    at, to = _places(rows, node, height, "row"), _places(columns, node, width, "column")
    order = np.lexsort((to, at))
    at, to = at[order], to[order]
    first = np.ones(len(at), bool)
    first[1:] = (np.diff(at) != 0) | (np.diff(to) != 0)
    if not first.all():
        starts = np.append(np.flatnonzero(first), len(at))
        ones = constant_node(ArrayData(np.ones(len(at), node.dtype)))
        node = Matrix(ones, _ints(order), _ints(starts), (len(starts) - 1, len(at))) @ node
    elif (np.diff(order) < 0).any():
        node = gather(node, order, axis=0)
    ends = np.searchsorted(at[first], np.arange(height + 1))
    return Matrix(node, _ints(to[first]), _ints(ends), (int(height), int(width)))


def _ints(numbers: Any) -> ArrayData:
    """Integers in as few bytes as SciPy takes."""
    small = not numbers.size or numbers.max() < 2**31
    return ArrayData(np.asarray(numbers, np.int32 if small else np.int64))


def _places(given: Any, values: Node, size: Any, what: str) -> Numbers:
    found = np.asarray(given)
    if not found.size:
        found = found.astype(np.int64)
    if values.ndim != 1 or found.shape != values.shape or found.dtype.kind not in "iu":
        raise ShapeError(
            f"a {what} for each value is an int: {values.type!r} has not {found.dtype}"
            f"{list(found.shape)}"
        )
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
        raise ShapeError(f"the shape of a sparse matrix is two ints, each known now, not {size!r}")
    if found.size and not 0 <= found.min() <= found.max() < size:
        raise ShapeError(f"a {what} of {found.min()} to {found.max()}, of {size} {what}s")
    return found.astype(np.int64, copy=False)


def _scalar(value: Any, sign: str) -> Any:
    if is_sparse(value) or as_node(value).ndim:
        raise ShapeError(f"a sparse matrix {sign} what is no scalar; A.with_values(…) has others")
    return value


def _product(a: Matrix, b: Matrix) -> Matrix:
    """The sparse product: for each entry of a all in the row of b that it meets."""
    if a.shape[1] != b.shape[0]:
        raise ShapeError(f"matrices of the shapes {a.shape} and {b.shape} have no product")
    by_rows = np.argsort(b.rows, kind="stable")
    ends = np.searchsorted(b.rows[by_rows], np.arange(b.shape[0] + 1))
    starts, counts = ends[a.columns], np.diff(ends)[a.columns]
    left = np.repeat(np.arange(a.nnz), counts)
    within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    right = by_rows[starts[left] + within]
    values = gather(a.values, left, axis=0) * gather(b.values, right, axis=0)
    return from_entries(values, a.rows[left], b.columns[right], (a.shape[0], b.shape[1]))
