"""`sg.linalg`: the linear algebra of the array API standard, over the last two axes.

>>> sg.linalg.solve(a, b)
"""

from __future__ import annotations

from typing import Any

from symgrad.ir.node import Node
from symgrad.ops.declare import NodeLike
from symgrad.ops.linalg import matmul as matmul
from symgrad.ops.linalg import multi_dot as multi_dot
from symgrad.ops.linalg import tensordot as tensordot
from symgrad.ops.linalg import vecdot as vecdot
from symgrad.ops.norms import norm as norm
from symgrad.ops.norms import vector_norm as vector_norm
from symgrad.ops.shape import matrix_transpose as matrix_transpose
from symgrad.ops.solve import diagonal as _diagonal
from symgrad.ops.solve import inv as inv
from symgrad.ops.solve import solve as solve
from symgrad.ops.solve import trace as _trace


def diagonal(x: NodeLike, /, *, offset: int = 0) -> Node:
    """A diagonal of a matrix; `offset` counts upwards from the main one."""
    return _diagonal(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: NodeLike, /, *, offset: int = 0, dtype: Any = None) -> Node:
    """The sum of a diagonal of a matrix."""
    return _trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


__all__ = [
    "diagonal",
    "inv",
    "matmul",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "solve",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
