"""Tensors as matrices: their inverse and systems of them; the condition of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.dims import product
from symgrad.ir.errors import ArgumentError, ShapeError
from symgrad.ir.node import Node
from symgrad.ir.types import require_equal, whole
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.linalg.decompositions import svdvals
from symgrad.ops.linalg.norms import matrix_norm
from symgrad.ops.linalg.solve import require_square
from symgrad.ops.linalg.systems import inv, solve
from symgrad.ops.reduce import as_float
from symgrad.ops.shape import moveaxis, reshape

NAMESPACE = "linalg"


@composite(numpy=(np.linalg.cond,))
def cond(x: NodeLike, /, p: Any = None) -> Node:
    """The condition number of matrices: the norm of x times that of its inverse.

    `p` is a norm of `matrix_norm`; None and 2 give the quotient of the largest and the smallest
    singular value, and -2 its inverse. A singular matrix has the condition inf for these, and
    raises when the program runs for the others.

    >>> float(sg.linalg.cond(np.diag([4.0, 2.0])))
    2.0
    """
    node = as_float(x)
    if p is None or p in (2, -2):
        s = svdvals(node)
        largest, least = s[..., 0], s[..., -1]
        found: Node = least / largest if p == -2 else largest / least
        return found
    require_square(node.tensor)
    both: Node = matrix_norm(node, ord=p) * matrix_norm(inv(node), ord=p)
    return both


@composite(numpy=(np.linalg.tensorinv,))
def tensorinv(x: NodeLike, /, *, ind: int = 2) -> Node:
    """The inverse of x for `tensordot` over `ind` axes: the first `ind` axes count as rows.

    >>> sg.linalg.tensorinv(sg.placeholder("x", (4, 6, 8, 3))).type
    float64[8, 3, 4, 6]
    """
    node = as_float(x)
    count = whole(ind, "ind", 1, ArgumentError)
    if count > node.ndim:
        raise ShapeError(f"{node.type!r} has no {count} axes for rows")
    rows, columns = node.shape[:count], node.shape[count:]
    require_equal(product(rows), product(columns))
    found = inv(reshape(node, (product(rows), product(rows))))
    return reshape(found, (*columns, *rows))


@composite(numpy=(np.linalg.tensorsolve,))
def tensorsolve(a: NodeLike, b: NodeLike, /, *, axes: Any = None) -> Node:
    """The x with tensordot(a, x, x.ndim) = b, for which a is reshaped to a square matrix.

    The first axes of a are those of b, the others those of x; `axes` of a are moved to the end
    first. Raises `ShapeError` unless the matrix is square.

    >>> sg.linalg.tensorsolve(eye(6).reshape((2, 3, 6)), ones((2, 3))).type
    float64[6]
    """
    node, right = as_float(a), as_float(b)
    if axes is not None:
        listed = list(axes) if isinstance(axes, (tuple, list)) else [axes]
        for axis in listed:
            node = moveaxis(node, axis, -1)
    shape = node.shape[right.ndim :]
    rows = product(right.shape)
    require_equal(rows, product(shape))
    found = solve(reshape(node, (rows, rows)), reshape(right, (rows, 1)))
    return reshape(found, shape)
