"""Least squares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node
from symgrad.ops.complexes import part_dtype
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.domains import required
from symgrad.ops.elementwise import abs, square
from symgrad.ops.index.indexing import known
from symgrad.ops.leaves import zeros
from symgrad.ops.linalg.decompositions import svdvals
from symgrad.ops.linalg.matrices import matrix_rank, pinv
from symgrad.ops.linalg.products import matmul
from symgrad.ops.reduce import as_float, sum
from symgrad.ops.shape import astype, reshape

NAMESPACE = "linalg"
FULL = "that a has full rank, else lstsq has no residuals (write sum((b - a @ x)**2, axis=0)),"


class LstsqResult(NamedTuple):
    """The results of `lstsq`."""

    x: Node
    residuals: Node
    rank: Node
    singular_values: Node


@composite(numpy=(np.linalg.lstsq,))
def lstsq(a: NodeLike, b: NodeLike, /, rcond: float | None = None) -> LstsqResult:
    """The x for which a @ x is nearest to b, the smallest one if there are several.

    With it the sums of the squares of what is left, the rank of a and its singular values. Those
    below `rcond` times the largest count as 0. The derivative is that of `pinv`. Raises
    `ShapeError` for what does not fit.

    As NumPy's the residuals are of no elements where a has no more rows than columns, and where it
    is known to have less than full rank. Residuals that are used and turn out to be of such a
    matrix are a `KernelError`; sum((b - a @ x)**2, axis=0) are there for any.

    >>> lstsq(placeholder("a", (5, 2)), placeholder("b", 5)).x.type
    float64[2]
    """
    matrix, target = as_float(a), as_float(b)
    if matrix.ndim != 2 or target.ndim not in (1, 2):
        raise ShapeError(f"least squares of {matrix.type!r} and {target.type!r}: matrices, please")
    if isinstance(rcond, (int, float)) and rcond < 0:  # NumPy's way to say: as far as floats go
        rcond = float(np.finfo(matrix.dtype).eps)
    inverse = pinv(matrix, rtol=rcond)
    x = matmul(inverse, target)
    rows, columns = matrix.shape
    width = target.shape[1] if target.ndim == 2 else 1
    many = not (isinstance(rows, int) and isinstance(columns, int)) or rows > columns
    rank = astype(matrix_rank(matrix, rtol=rcond), "int32")  # as LAPACK has it
    whole = rank == columns
    value = known(whole)
    if many and (value is None or value):
        left = square(abs(target - matmul(matrix, x)))
        full = required(astype(whole, left.dtype), "true", FULL)
        residuals = reshape(sum(left, axis=0), (width,)) * full
    else:
        residuals = zeros(0, dtype=part_dtype(x.dtype))
    return LstsqResult(x, residuals, rank, svdvals(matrix))
