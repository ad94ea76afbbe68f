"""`sg.linalg`: the linear algebra of the array API standard, over the last two axes, and more.

What a function of symmetric (Hermitian) matrices gives flows back as a symmetric gradient: that of
`cholesky`, `eigh`, `eigvalsh`. Vectors of equal eigenvalues or singular values have no derivative;
what stands for it is said by `degenerate=` (see `eigh`). A singular matrix, where a regular one is
wanted, raises `KernelError` when the program runs, and names the user's line.

>>> sg.linalg.solve(a, b)
"""

from typing import Any as _Any

from symgrad.autodiff.krylov import bicgstab as bicgstab
from symgrad.autodiff.krylov import cg as cg
from symgrad.ir.namespace import public_names as _public_names
from symgrad.ir.node import Node as _Node
from symgrad.ops.declare import NodeLike as _NodeLike
from symgrad.ops.declare import explaining as _explaining
from symgrad.ops.linalg.decompositions import QRResult as QRResult
from symgrad.ops.linalg.decompositions import SVDResult as SVDResult
from symgrad.ops.linalg.decompositions import qr as qr
from symgrad.ops.linalg.decompositions import svd as svd
from symgrad.ops.linalg.decompositions import svdvals as svdvals
from symgrad.ops.linalg.eigenvalues import EighResult as EighResult
from symgrad.ops.linalg.eigenvalues import EigResult as EigResult
from symgrad.ops.linalg.eigenvalues import eig as eig
from symgrad.ops.linalg.eigenvalues import eigh as eigh
from symgrad.ops.linalg.eigenvalues import eigvals as eigvals
from symgrad.ops.linalg.eigenvalues import eigvalsh as eigvalsh
from symgrad.ops.linalg.matrices import block_diag as block_diag
from symgrad.ops.linalg.matrices import cross as cross
from symgrad.ops.linalg.matrices import expm as expm
from symgrad.ops.linalg.matrices import kron as kron
from symgrad.ops.linalg.matrices import matrix_power as matrix_power
from symgrad.ops.linalg.matrices import matrix_rank as matrix_rank
from symgrad.ops.linalg.matrices import outer as outer
from symgrad.ops.linalg.matrices import pinv as pinv
from symgrad.ops.linalg.norms import matrix_norm as matrix_norm
from symgrad.ops.linalg.norms import norm as norm
from symgrad.ops.linalg.norms import vector_norm as vector_norm
from symgrad.ops.linalg.products import matmul as matmul
from symgrad.ops.linalg.products import multi_dot as multi_dot
from symgrad.ops.linalg.products import tensordot as tensordot
from symgrad.ops.linalg.products import vecdot as vecdot
from symgrad.ops.linalg.solve import diagonal as _diagonal
from symgrad.ops.linalg.solve import trace as _trace
from symgrad.ops.linalg.systems import SlogdetResult as SlogdetResult
from symgrad.ops.linalg.systems import det as det
from symgrad.ops.linalg.systems import inv as inv
from symgrad.ops.linalg.systems import logdet as logdet
from symgrad.ops.linalg.systems import slogdet as slogdet
from symgrad.ops.linalg.systems import solve as solve
from symgrad.ops.linalg.tensors import cond as cond
from symgrad.ops.linalg.tensors import tensorinv as tensorinv
from symgrad.ops.linalg.tensors import tensorsolve as tensorsolve
from symgrad.ops.linalg.triangular import cho_solve as cho_solve
from symgrad.ops.linalg.triangular import cholesky as cholesky
from symgrad.ops.linalg.triangular import solve_triangular as solve_triangular
from symgrad.ops.numpy.least_squares import LstsqResult as LstsqResult
from symgrad.ops.numpy.least_squares import lstsq as lstsq
from symgrad.ops.shape import matrix_transpose as matrix_transpose


@_explaining
def diagonal(x: _NodeLike, /, *, offset: int = 0) -> _Node:
    """A diagonal of a matrix; `offset` counts upwards from the main one."""
    return _diagonal(x, offset=offset, axis1=-2, axis2=-1)


@_explaining
def trace(x: _NodeLike, /, *, offset: int = 0, dtype: _Any = None) -> _Node:
    """The sum of a diagonal of a matrix."""
    return _trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


__all__ = _public_names(globals())


def __dir__() -> list[str]:
    return __all__
