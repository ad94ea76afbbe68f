"""Kernels of sparse matrices, which SciPy computes.

Their source is copied into programs; a name that begins with an underscore is a part that several
of them share. A pattern is that of compressed rows, or of compressed columns of the transpose.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from typing import Any

import numpy as np


def sparse_module() -> Any:
    """The module scipy.sparse."""
    from scipy import sparse

    return sparse


def _sparse_array(values, indices, indptr, columns, transposed):
    """A matrix of SciPy's, or its transpose."""
    from scipy.sparse import csc_array, csr_array

    indices, indptr = getattr(indices, "array", indices), getattr(indptr, "array", indptr)
    if transposed:
        return csc_array((values, indices, indptr), shape=(columns, len(indptr) - 1))
    return csr_array((values, indices, indptr), shape=(len(indptr) - 1, columns))


def _for_each_matrix(function, values, x, rows):
    """A function of a row of values and a matrix, for all that is in front of both.

    One row of values for several matrices takes them side by side.
    """
    if x.ndim == 2 and values.ndim == 2:
        return function(values[0], x)
    front = np.broadcast_shapes(values.shape[:-2], x.shape[:-2])
    if values.size == values.shape[-1]:
        wide = np.moveaxis(x, -2, 0)
        flat = function(values.reshape(-1), wide.reshape(len(wide), x.size // max(len(wide), 1)))
        y = np.moveaxis(flat.reshape(rows, *wide.shape[1:]), 0, -2)
        return np.ascontiguousarray(y).reshape(*front, *y.shape[-2:])
    y = np.empty((*front, rows, x.shape[-1]), x.dtype)
    values = np.broadcast_to(values, (*front, *values.shape[-2:]))
    x = np.broadcast_to(x, (*front, *x.shape[-2:]))
    for place in np.ndindex(front):
        y[place] = function(values[place][0], x[place])
    return y


def sparse_matmul(values, x, indices, indptr, columns, transposed):
    """A sparse matrix, or its transpose, times dense ones."""

    def product(row, x):
        return _sparse_array(row, indices, indptr, columns, transposed) @ x

    rows = columns if transposed else len(getattr(indptr, "array", indptr)) - 1
    return _for_each_matrix(product, values, x, rows)


def _factors(values, indices, indptr):
    """The factors of a sparse matrix, transposed; the last ones are kept with the pattern."""
    from scipy.sparse.linalg import splu

    memo = getattr(indptr, "memo", None)
    if memo is not None and memo[0] is indices and np.array_equal(memo[1], values):
        return memo[2]
    size = len(getattr(indptr, "array", indptr)) - 1
    try:
        plain = np.ascontiguousarray(values)  # which SuperLU asks for
        found = splu(_sparse_array(plain, indices, indptr, size, True))
    except RuntimeError:
        raise np.linalg.LinAlgError("Singular matrix") from None
    if hasattr(indptr, "memo"):
        indptr.memo = (indices, values.copy(), found)
    return found


def sparse_solve(values, b, indices, indptr, transposed):
    """The y with A @ y = b, of a sparse matrix A or its transpose."""

    def solution(row, b):
        if not b.size:
            return b
        how = "N" if transposed else "T"
        return _factors(row, indices, indptr).solve(np.asfortranarray(b), trans=how)

    return _for_each_matrix(solution, values, b, b.shape[-2])
