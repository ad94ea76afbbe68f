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
from symgrad.ops.decompositions import QRResult as QRResult
from symgrad.ops.decompositions import SVDResult as SVDResult
from symgrad.ops.decompositions import qr as qr
from symgrad.ops.decompositions import svd as svd
from symgrad.ops.decompositions import svdvals as svdvals
from symgrad.ops.determinants import SlogdetResult as SlogdetResult
from symgrad.ops.determinants import det as det
from symgrad.ops.determinants import logdet as logdet
from symgrad.ops.determinants import slogdet as slogdet
from symgrad.ops.eigenvalues import EighResult as EighResult
from symgrad.ops.eigenvalues import EigResult as EigResult
from symgrad.ops.eigenvalues import eig as eig
from symgrad.ops.eigenvalues import eigh as eigh
from symgrad.ops.eigenvalues import eigvals as eigvals
from symgrad.ops.eigenvalues import eigvalsh as eigvalsh
from symgrad.ops.linalg import matmul as matmul
from symgrad.ops.linalg import multi_dot as multi_dot
from symgrad.ops.linalg import tensordot as tensordot
from symgrad.ops.linalg import vecdot as vecdot
from symgrad.ops.matrices import block_diag as block_diag
from symgrad.ops.matrices import cross as cross
from symgrad.ops.matrices import expm as expm
from symgrad.ops.matrices import kron as kron
from symgrad.ops.matrices import matrix_power as matrix_power
from symgrad.ops.matrices import matrix_rank as matrix_rank
from symgrad.ops.matrices import outer as outer
from symgrad.ops.matrices import pinv as pinv
from symgrad.ops.norms import matrix_norm as matrix_norm
from symgrad.ops.norms import norm as norm
from symgrad.ops.norms import vector_norm as vector_norm
from symgrad.ops.shape import matrix_transpose as matrix_transpose
from symgrad.ops.solve import diagonal as _diagonal
from symgrad.ops.solve import inv as inv
from symgrad.ops.solve import solve as solve
from symgrad.ops.solve import trace as _trace
from symgrad.ops.triangular import cho_solve as cho_solve
from symgrad.ops.triangular import cholesky as cholesky
from symgrad.ops.triangular import solve_triangular as solve_triangular


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
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "block_diag",
    "cho_solve",
    "cholesky",
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
    "trace",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return __all__
