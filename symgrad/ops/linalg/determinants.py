"""Determinants.

Derivatives after Giles, Collected matrix derivative results for forward and reverse mode
algorithmic differentiation, 2008; that of det by the adjugate, which a singular matrix has too.
"""

from __future__ import annotations

import numpy as np

from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node
from symgrad.ir.op import Cotangent, case
from symgrad.ir.types import TensorType
from symgrad.ops.batch import repeated
from symgrad.ops.complexes import conj, imag, part_dtype, real
from symgrad.ops.declare import NodeLike, common_dtype, op
from symgrad.ops.flows import total
from symgrad.ops.linalg import kernels
from symgrad.ops.linalg.products import matmul_p, matrix_op
from symgrad.ops.linalg.solve import diagonal_p, inv_p, require_square, solve_p, square_infer
from symgrad.ops.linalg.triangular import adjoint
from symgrad.ops.reduce import sum
from symgrad.ops.shape import matrix_transpose, reshape

NAMESPACE = "linalg"
SQUARES = (case((3, 3)), case((2, 2, 2)), case((1, 1)), case((0, 0)))


def _factors(x: Node) -> Node:
    """A number for each matrix, to multiply the matrix by."""
    return reshape(x, (*x.shape, 1, 1))


def _det_infer(t: TensorType) -> TensorType:
    require_square(t)
    return t.with_shape(t.shape[:-2])


def _slope(x: Node) -> Node:
    """The gradient of the determinant."""
    return matrix_transpose(adjugate(x))


@matrix_op(
    infer=_det_infer,
    kernel=np.linalg.det,
    source="np.linalg.det",
    pullback=lambda g, y, x: _factors(g) * _slope(x),
    pushforward=lambda t, y, x: sum(_slope(x) * t, axis=(-2, -1)),
    flops=lambda t: 2 * t.size * t.shape[-1] // 3,
    cases=SQUARES,
)
def det_p(x: NodeLike, /) -> Node:
    """The determinant of a square matrix."""
    ...


def _adjugate_bend(x: Node, s: Node, t: Node) -> Node:
    """The second derivative of the adjugate of a regular matrix along two others."""
    y, a, b = adjugate(x), solve_p(x, s), solve_p(x, t)
    both = matmul_p(a, b)
    of_a, of_b, of_both = (_factors(sum(diagonal_p(m, offset=0), axis=-1)) for m in (a, b, both))
    inner = both + matmul_p(b, a) - of_a * b - of_b * a
    return (of_a * of_b - of_both) * y + matmul_p(inner, y)


def _adjugate_slope_vjp(g: Node, y: Node, x: Node, t: Node) -> tuple[Cotangent, ...]:
    # The derivatives of the determinant are the same in whatever order their directions stand.
    turned = matrix_transpose(g)
    bend = _adjugate_bend(x, t, turned)
    return matrix_transpose(bend), matrix_transpose(adjugate_slope(x, turned))


def _adjugate_slope_jvp(t: tuple[Cotangent, ...], y: Node, x: Node, along: Node) -> Cotangent:
    first = None if t[0] is None else _adjugate_bend(x, along, t[0])
    return total(first, None if t[1] is None else adjugate_slope(x, t[1]))


def _adjugate_slope_infer(x: TensorType, t: TensorType) -> TensorType:
    require_square(x)
    if x.shape != t.shape:
        raise ShapeError(f"{t!r} is no direction for {x!r}")
    return x


@op(
    infer=_adjugate_slope_infer,
    kernel=kernels.adjugate_slope,
    promote=common_dtype,
    vjp=_adjugate_slope_vjp,
    jvp=_adjugate_slope_jvp,
    flops=lambda x, t: 30 * x.size * x.shape[-1],
    expensive=True,
    unbounded_slope=True,
    cases=(case((3, 3), (3, 3)), case((2, 2, 2), (2, 2, 2)), case((1, 1), (1, 1))),
    batch=repeated,
    public=False,
)
def adjugate_slope(x: NodeLike, along: NodeLike, /) -> Node:
    """The derivative of the adjugate along a matrix, which a singular matrix has too."""
    ...


@matrix_op(
    infer=square_infer,
    kernel=kernels.adjugate,
    pullback=lambda g, y, x: matrix_transpose(adjugate_slope(x, matrix_transpose(g))),
    pushforward=lambda t, y, x: adjugate_slope(x, t),
    flops=lambda t: 20 * t.size * t.shape[-1],
    unbounded_slope=True,
    cases=SQUARES,
    public=False,
)
def adjugate(x: NodeLike, /) -> Node:
    """det(x) * inv(x), which a singular matrix has too."""
    ...


def _slogdet_infer(t: TensorType) -> tuple[TensorType, ...]:
    found = _det_infer(t)
    return found, found.with_dtype(part_dtype(t.dtype))


def _slogdet_pullback(g: tuple[Cotangent, Cotangent], y: Node, x: Node) -> Cotangent:
    scale = g[1]
    if g[0] is not None and g[0].tensor.is_complex:
        turn = imag(conj(g[0]) * y[0]) * -1j
        scale = turn if scale is None else scale + turn
    return None if scale is None else _factors(scale) * adjoint(inv_p(x))


def _slogdet_pushforward(t: Node, y: Node, x: Node) -> tuple[Cotangent, Cotangent]:
    along = sum(diagonal_p(solve_p(x, t), offset=0), axis=-1)
    return (y[0] * imag(along) * 1j if x.tensor.is_complex else None), real(along)


@matrix_op(
    infer=_slogdet_infer,
    kernel=np.linalg.slogdet,
    source="np.linalg.slogdet",
    pullback=_slogdet_pullback,
    pushforward=_slogdet_pushforward,
    flops=lambda t: 2 * t.size * t.shape[-1] // 3,
    holomorphic=False,
    unbounded_slope=True,
    cases=SQUARES,
)
def slogdet_p(x: NodeLike, /) -> Node:
    """The sign of the determinant, and the logarithm of its absolute value."""
    ...
