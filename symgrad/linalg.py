"""`sg.linalg`: the linear algebra of the array API standard, over the last two axes, and more.

What a function of symmetric (Hermitian) matrices gives flows back as a symmetric gradient: that of
`cholesky`, `eigh`, `eigvalsh`. Vectors of equal eigenvalues or singular values have no derivative;
what stands for it is said by `degenerate=` (see `eigh`). A singular matrix, where a regular one is
wanted, raises `KernelError` when the program runs, and names the user's line.

>>> sg.linalg.solve(a, b)
"""

from __future__ import annotations

from typing import Any

from symgrad.ir.node import Node
from symgrad.ops.declare import NodeLike, explaining
from symgrad.ops.linalg.decompositions import QRResult, SVDResult, qr, svd, svdvals
from symgrad.ops.linalg.determinants import SlogdetResult, det, logdet, slogdet
from symgrad.ops.linalg.eigenvalues import EighResult, EigResult, eig, eigh, eigvals, eigvalsh
from symgrad.ops.linalg.matrices import (
    block_diag,
    cross,
    expm,
    kron,
    matrix_power,
    matrix_rank,
    outer,
    pinv,
)
from symgrad.ops.linalg.norms import matrix_norm, norm, vector_norm
from symgrad.ops.linalg.products import matmul, multi_dot, tensordot, vecdot
from symgrad.ops.linalg.solve import diagonal as _diagonal
from symgrad.ops.linalg.solve import inv, solve
from symgrad.ops.linalg.solve import trace as _trace
from symgrad.ops.linalg.tensors import cond, tensorinv, tensorsolve
from symgrad.ops.linalg.triangular import cho_solve, cholesky, solve_triangular
from symgrad.ops.numpy.least_squares import LstsqResult, lstsq
from symgrad.ops.shape import matrix_transpose


@explaining
def diagonal(x: NodeLike, /, *, offset: int = 0) -> Node:
    """A diagonal of a matrix; `offset` counts upwards from the main one."""
    return _diagonal(x, offset=offset, axis1=-2, axis2=-1)


@explaining
def trace(x: NodeLike, /, *, offset: int = 0, dtype: Any = None) -> Node:
    """The sum of a diagonal of a matrix."""
    return _trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


__all__ = [
    "EigResult",
    "EighResult",
    "LstsqResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "block_diag",
    "cho_solve",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "kron",
    "logdet",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return __all__
