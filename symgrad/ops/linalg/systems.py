"""Systems, inverses and determinants, by the factorisation that suits what is known of a matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symgrad.ir.node import Node, apply
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.elementwise import abs, divide, exp, log, multiply, sign
from symgrad.ops.leaves import eye_p, ones
from symgrad.ops.linalg.assume import Facts, declared_facts
from symgrad.ops.linalg.determinants import det_p, slogdet_p
from symgrad.ops.linalg.products import matmul_p
from symgrad.ops.linalg.solve import diagonal_p, inv_p, on_diagonal, solve_p
from symgrad.ops.linalg.triangular import (
    inv_definite,
    inv_triangular,
    logdet_definite,
    pivots,
    solve_definite,
    solve_triangular_p,
)
from symgrad.ops.reduce import as_float, prod, sum
from symgrad.ops.shape import expand_dims, matrix_transpose, on_columns, permute_dims

NAMESPACE = "linalg"
TRIANGLES = Facts.LOWER | Facts.UPPER


@composite(numpy=(np.linalg.inv,))
def inv(x: NodeLike, /) -> Node:
    """The inverse of a square matrix, over the last two axes; integers become float64.

    d inv(x) = -inv(x) @ dx @ inv(x). A singular matrix raises when the program runs.
    """
    a = as_float(x)
    found = inverse(a, declared_of(a))
    return inv_p(a) if found is None else found


@composite(numpy=(np.linalg.solve,))
def solve(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The y with x1 @ y = x2, of a square x1, and a vector or matrix x2; integers become float64.

    The other axes broadcast. A singular x1 raises when the program runs.
    """
    a = as_float(x1)
    facts = declared_of(a)

    def solution(b: Node) -> Node:
        found = system(a, b, facts)
        return solve_p(a, b) if found is None else found

    return on_columns(solution, as_float(x2))


@composite(numpy=(np.linalg.det,))
def det(x: NodeLike, /) -> Node:
    """The determinant of a square matrix, over the last two axes; integers become float64.

    A singular matrix has a gradient and a Hessian; derivatives of order 3 raise `LinAlgError` there
    when the program runs. Raises `ShapeError` for a matrix that is not square.

    >>> det(placeholder("x", (2, 3, 3))).type
    float64[2]
    """
    a = as_float(x)
    found = determinant(a, declared_of(a))
    return det_p(a) if found is None else found


class SlogdetResult(NamedTuple):
    """The result of `slogdet`: the determinant is sign * exp(logabsdet)."""

    sign: Node
    logabsdet: Node


@composite(numpy=(np.linalg.slogdet,))
def slogdet(x: NodeLike, /) -> SlogdetResult:
    """The sign of the determinant, and the logarithm of its absolute value, which overflows not.

    Of a singular matrix they are 0 and -inf, and the gradient raises when the program runs. The
    sign of a complex determinant is a number of absolute value 1, and has a gradient too. Integers
    become float64. Raises `ShapeError` for a matrix that is not square.

    >>> slogdet(placeholder("x", (2, 3, 3))).logabsdet.type
    float64[2]
    """
    a = as_float(x)
    parts = [logarithm(a, declared_of(a), i) for i in range(2)]
    if parts[0] is not None and parts[1] is not None:
        return SlogdetResult(parts[0], parts[1])
    y = slogdet_p(a)
    # Of reals it is 1, -1 or 0, as its own sign is, which tells why no gradient flows.
    return SlogdetResult(y[0] if y[0].tensor.is_complex else sign(y[0]), y[1])


@composite()
def logdet(x: NodeLike, /) -> Node:
    """The logarithm of the absolute value of the determinant: `slogdet(x).logabsdet`.

    >>> logdet(placeholder("x", (2, 3, 3))).type
    float64[2]
    """
    return slogdet(x).logabsdet


# ---- by facts -------------------------------------------------------------------------------


def declared_of(a: Node) -> Facts:
    """The facts declared of a matrix, or of that of which it is the transpose."""
    if a.op is permute_dims.op and a.attr("axes")[-2:] == (a.ndim - 1, a.ndim - 2):
        return declared_facts(a.inputs[0]).transposed()
    return declared_facts(a)


def system(a: Node, b: Node, facts: Facts) -> Node | None:
    """The y with a @ y = b by quotients, a product, a substitution or Cholesky factors."""
    if Facts.DIAGONAL in facts:
        return b / expand_dims(pivots(diagonal_of(a)), axis=-1)
    if Facts.ORTHOGONAL in facts:
        return matmul_p(matrix_transpose(a), b)
    if facts & TRIANGLES:
        return solve_triangular_p(a, b, lower=Facts.LOWER in facts)
    return solve_definite(a, b) if Facts.DEFINITE in facts else None


def inverse(a: Node, facts: Facts) -> Node | None:
    """The inverse by reciprocals, as the transpose, by substitution or Cholesky factors."""
    if Facts.DIAGONAL in facts:
        return on_diagonal(1 / pivots(diagonal_of(a)), shape=a.shape[-2:], offset=0)
    if Facts.ORTHOGONAL in facts:
        return matrix_transpose(a)
    if facts & TRIANGLES:
        return inv_triangular(a, lower=Facts.LOWER in facts)
    if Facts.DEFINITE in facts:
        return inv_definite(a)
    return None


def logarithm(a: Node, facts: Facts, index: int) -> Node | None:
    """The sign of the determinant (0), or the logarithm of its absolute value (1)."""
    if facts & TRIANGLES:
        numbers = diagonal_of(a)
        return sum(log(abs(numbers)), axis=-1) if index else prod(sign(numbers), axis=-1)
    if Facts.DEFINITE in facts:
        return logdet_definite(a) if index else ones(a.shape[:-2], dtype=a.dtype)
    return None


def determinant(a: Node, facts: Facts) -> Node | None:
    """The determinant by the diagonal, or by the Cholesky factor."""
    if facts & TRIANGLES:
        return prod(diagonal_of(a), axis=-1)
    return exp(logdet_definite(a)) if Facts.DEFINITE in facts else None


def diagonal_of(a: Node) -> Node:
    """The diagonal, without the matrix where it is seen in what that is made of."""
    if a.op is on_diagonal.op and a.attr("offset") == 0:
        return a.inputs[0]
    if a.op is eye_p.op:
        return ones(a.shape[-1:], dtype=a.dtype)
    if a.op in (multiply.op, divide.op) and a.ndim == 2:
        first, second = a.inputs
        if second.ndim == 0:
            return apply(a.op, (diagonal_of(first), second))
        if first.ndim == 0 and a.op is multiply.op:
            return diagonal_of(second) * first
    return diagonal_p(a, offset=0)
