"""Determinants.

Derivatives after Giles, Collected matrix derivative results for forward and reverse mode
algorithmic differentiation, 2008; that of det by the adjugate, which a singular matrix has too.
"""

# ruff: noqa: PIE790  (the body of a primitive is `...`)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symgrad.ir.node import Node
from symgrad.ir.op import REGISTRY, Cotangent, case
from symgrad.ir.types import TensorType
from symgrad.ops import linalg_kernels
from symgrad.ops.batch import in_front
from symgrad.ops.complexes import conj, imag, part_dtype, real
from symgrad.ops.declare import NodeLike, composite, op
from symgrad.ops.linalg import _matmul as matmul
from symgrad.ops.reduce import as_float, sum
from symgrad.ops.shape import matrix_transpose, reshape
from symgrad.ops.solve import _diagonal as diagonal
from symgrad.ops.solve import _inv as inv
from symgrad.ops.solve import _solve as solve
from symgrad.ops.solve import require_square
from symgrad.ops.triangular import adjoint, square_infer

NAMESPACE = "linalg"
SQUARES = (case((3, 3)), case((2, 2, 2)), case((1, 1)), case((0, 0)))


def _factors(x: Node) -> Node:
    """A number for each matrix, to multiply the matrix by."""
    return reshape(x, (*x.shape, 1, 1))


def _det_infer(t: TensorType) -> TensorType:
    require_square(t)
    return t.with_shape(t.shape[:-2])


def _det_vjp(g: Node, y: Node, x: Node) -> tuple[Cotangent, ...]:
    return (_factors(g) * matrix_transpose(_adjugate(x)),)


def _det_jvp(t: tuple[Cotangent, ...], y: Node, x: Node) -> Cotangent:
    return None if t[0] is None else sum(matrix_transpose(_adjugate(x)) * t[0], axis=(-2, -1))


@op(
    infer=_det_infer,
    kernel=np.linalg.det,
    source="np.linalg.det",
    vjp=_det_vjp,
    jvp=_det_jvp,
    flops=lambda t: 2 * t.size * t.shape[-1] // 3,
    expensive=True,
    cases=SQUARES,
    batch=in_front,
)
def _det(x: NodeLike, /) -> Node:
    """The determinant of a square matrix."""
    ...


def _adjugate_vjp(g: Node, y: Node, x: Node) -> tuple[Cotangent, ...]:
    back = matrix_transpose(inv(x))
    total = _factors(sum(g * y, axis=(-2, -1)))
    return (total * back - matmul(matmul(back, g), matrix_transpose(y)),)


def _adjugate_jvp(t: tuple[Cotangent, ...], y: Node, x: Node) -> Cotangent:
    if t[0] is None:
        return None
    moved = solve(x, t[0])
    trace = _factors(sum(diagonal(moved, offset=0), axis=-1))
    tangent: Node = trace * y - matmul(moved, y)
    return tangent


@op(
    infer=square_infer,
    kernel=linalg_kernels.adjugate,
    vjp=_adjugate_vjp,
    jvp=_adjugate_jvp,
    flops=lambda t: 20 * t.size * t.shape[-1],
    expensive=True,
    singular=True,
    cases=SQUARES,
    batch=in_front,
)
def _adjugate(x: NodeLike, /) -> Node:
    """det(x) * inv(x), which a singular matrix has too, but not the derivatives of this."""
    ...


@composite(numpy=(np.linalg.det,))
def det(x: NodeLike, /) -> Node:
    """The determinant of a square matrix, over the last two axes; integers become float64.

    A singular matrix has a gradient, but no second one: that raises when the program runs. Raises
    `ShapeError` for a matrix that is not square.

    >>> det(placeholder("x", (2, 3, 3))).type
    float64[2]
    """
    return _det(as_float(x))


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Node
    logabsdet: Node


def _slogdet_infer(t: TensorType) -> tuple[TensorType, ...]:
    found = _det_infer(t)
    return found, found.with_dtype(part_dtype(t.dtype))


def _slogdet_vjp(g: tuple[Cotangent, Cotangent], y: Node, x: Node) -> tuple[Cotangent, ...]:
    scale = g[1]
    if g[0] is not None and g[0].tensor.is_complex:
        turn = imag(conj(g[0]) * y[0]) * -1j
        scale = turn if scale is None else scale + turn
    return (None if scale is None else _factors(scale) * adjoint(inv(x)),)


def _slogdet_jvp(t: tuple[Cotangent, ...], y: Node, x: Node) -> tuple[Cotangent, Cotangent] | None:
    if t[0] is None:
        return None
    along = sum(diagonal(solve(x, t[0]), offset=0), axis=-1)
    return (y[0] * imag(along) * 1j if x.tensor.is_complex else None), real(along)


@op(
    infer=_slogdet_infer,
    kernel=np.linalg.slogdet,
    source="np.linalg.slogdet",
    vjp=_slogdet_vjp,
    jvp=_slogdet_jvp,
    flops=lambda t: 2 * t.size * t.shape[-1] // 3,
    holomorphic=False,
    expensive=True,
    singular=True,
    cases=SQUARES,
    batch=in_front,
)
def _slogdet(x: NodeLike, /) -> Node:
    """The sign of the determinant, and the logarithm of its absolute value."""
    ...


@composite(numpy=(np.linalg.slogdet,))
def slogdet(x: NodeLike, /) -> SlogdetResult:
    """The sign of the determinant, and the logarithm of its absolute value, which overflows not.

    Of a singular matrix they are 0 and -inf, and the gradient raises when the program runs. The
    sign of a complex determinant is a number of absolute value 1, and has a gradient too. Integers
    become float64. Raises `ShapeError` for a matrix that is not square.

    >>> slogdet(placeholder("x", (2, 3, 3))).logabsdet.type
    float64[2]
    """
    y = _slogdet(as_float(x))
    return SlogdetResult(y[0], y[1])


@composite()
def logdet(x: NodeLike, /) -> Node:
    """The logarithm of the absolute value of the determinant: `slogdet(x).logabsdet`.

    >>> logdet(placeholder("x", (2, 3, 3))).type
    float64[2]
    """
    return slogdet(x).logabsdet


__all__ = REGISTRY.public(__name__)
