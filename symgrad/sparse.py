"""`sg.sparse`: sparse matrices, of `scipy.sparse` or with values that are nodes.

The places of their entries are known when a graph is built; their values have gradients. SciPy,
which computes with them, is the extra `symgrad[special]`.

>>> sg.sparse.matrix(A) @ x
"""

from symgrad.ir.namespace import public_names as _public_names
from symgrad.ir.node import Node as _Node
from symgrad.ops.declare import NodeLike as _NodeLike
from symgrad.ops.declare import explaining as _explaining
from symgrad.ops.sparse.matrix import Matrix as Matrix
from symgrad.ops.sparse.matrix import from_entries as from_entries
from symgrad.ops.sparse.matrix import matrix as matrix


@_explaining
def solve(a: object, b: _NodeLike, /) -> _Node:
    """The y with a @ y = b, of a square sparse matrix a, and a vector or matrix b.

    It has gradients by b, and by the values of a. The factors, SuperLU's, are kept with the pattern
    until the values change: a solve, its gradients and the next call share them. Integers become
    float64. Raises `ShapeError` for what does not fit; a singular matrix raises `LinAlgError` when
    the program runs.

    >>> sg.sparse.solve(scipy.sparse.eye_array(3), placeholder("b", 3)).type
    float64[3]
    """
    return matrix(a).solve(b)


__all__ = _public_names(globals())


def __dir__() -> list[str]:
    return __all__
