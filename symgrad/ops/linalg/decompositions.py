"""Singular values, and orthogonal factors.

What holds of equal eigenvalues (see `eigenvalues.py`) holds of equal singular values. Derivatives
after Townsend, Differentiating the singular value decomposition, 2016; Wan and Zhang, Automatic
differentiation for complex valued SVD, 2019; Walter and Lehmann, Algorithmic differentiation of
linear algebra functions, 2010; Seeger et al., Auto-differentiating linear algebra, 2017.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from symgrad.ir.dims import least
from symgrad.ir.errors import GradientError, ShapeError, UnsupportedError
from symgrad.ir.node import Node
from symgrad.ir.op import Cotangent, case
from symgrad.ir.types import TensorType
from symgrad.ops.complexes import imag, part_dtype, real
from symgrad.ops.creation import tril
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.flows import total
from symgrad.ops.linalg import kernels
from symgrad.ops.linalg.eigenvalues import Degenerate, Flows, over_gaps, placed, policy, row
from symgrad.ops.linalg.products import matmul_p, matrix_op, require_matrix
from symgrad.ops.linalg.solve import diagonal_p, require_lapack
from symgrad.ops.linalg.triangular import adjoint, from_lower, solve_triangular_p, triangle
from symgrad.ops.reduce import as_float
from symgrad.ops.select import where
from symgrad.ops.shape import concat, matrix_transpose

NAMESPACE = "linalg"


def _no_completion(completes: bool) -> None:
    if completes:
        raise GradientError(
            "vectors that are added to complete a basis have no derivative; write "
            "svd(x, full_matrices=False), qr(x, mode='reduced')"
        )


# ---- singular values ------------------------------------------------------------------------


class SVDResult(NamedTuple):
    """The result of `svd`: x = U @ diag(S) @ Vh, the singular values in S, largest first."""

    U: Node
    S: Node
    Vh: Node


def _svd_infer(
    t: TensorType, *, full_matrices: bool, degenerate: Degenerate
) -> tuple[TensorType, ...]:
    values = _svdvals_infer(t, full_matrices=full_matrices, degenerate=degenerate)
    *batch, m, n = t.shape
    k = values.shape[-1]
    u, v = ((m, m), (n, n)) if full_matrices else ((m, k), (k, n))
    return t.with_shape((*batch, *u)), values, t.with_shape((*batch, *v))


def _svdvals_infer(t: TensorType, *, full_matrices: bool, degenerate: Degenerate) -> TensorType:
    require_lapack(t)
    require_matrix(t)
    k = least(t.shape[-2], t.shape[-1])
    return TensorType((*t.shape[:-2], k), part_dtype(t.dtype))


def _svd_normalize(t: TensorType, full_matrices: Any, degenerate: str) -> dict[str, Any]:
    full = bool(full_matrices) and t.ndim >= 2 and t.shape[-2] != t.shape[-1]
    return {"full_matrices": full, "degenerate": policy(degenerate)}


def _over(x: Node, s: Node) -> Node:
    """x / s, for a row s; 0 where x is."""
    return where(x == 0, 0, x / s)


def _phases(x: Node, s: Node) -> Node:
    """The imaginary part of the diagonal, over s, on a diagonal."""
    return placed(imag(diagonal_p(x, offset=0)) / s, x) * 1j


def _svd_pullback(g: Flows, y: Node, x: Node, full_matrices: bool, degenerate: str) -> Cotangent:
    gu, gs, gvh = g
    if gu is None and gvh is None:
        if gs is None:
            return None
        # Of the values alone, which need no other vectors.
        u, vh = (svd(x, full_matrices=False)[i] if full_matrices else y[i] for i in (0, 2))
        return matmul_p(u * row(gs), vh)
    _no_completion(full_matrices)
    u, s, vh = y[0], row(y[1]), y[2]
    rule: dict[str, Any] = {"squared": True, "degenerate": degenerate}
    inner: Cotangent = None if gs is None else placed(gs, u)
    beside: Cotangent = None
    if gu is not None:
        turned = matmul_p(adjoint(u), gu)
        inner = total(inner, over_gaps(turned - adjoint(turned), s, **rule) * s)
        if u.tensor.is_complex:
            inner = total(inner, _phases(turned, y[1]))
        if u.shape[-2] != u.shape[-1]:
            beside = matmul_p(_over(gu - matmul_p(u, turned), s), vh)
    if gvh is not None:
        turned = matmul_p(vh, adjoint(gvh))
        gaps = over_gaps(turned - adjoint(turned), s, **rule)
        inner = total(inner, matrix_transpose(s) * gaps)
        if vh.shape[-2] != vh.shape[-1]:
            rest = _over(adjoint(gvh - matmul_p(adjoint(turned), vh)), s)
            beside = total(beside, matmul_p(u, adjoint(rest)))
    assert inner is not None
    return total(matmul_p(matmul_p(u, inner), vh), beside)


def _svd_pushforward(t: Node, y: Node, x: Node, full_matrices: bool, degenerate: str) -> Flows:
    _no_completion(full_matrices)
    u, s, vh = y[0], row(y[1]), y[2]
    rule: dict[str, Any] = {"squared": True, "degenerate": degenerate}
    left, right = matmul_p(adjoint(u), t), matmul_p(t, adjoint(vh))
    inner = matmul_p(left, adjoint(vh))
    one, two = inner * s, matrix_transpose(s) * inner
    turn = over_gaps(one + adjoint(one), s, **rule)
    if u.tensor.is_complex:
        turn = turn + _phases(inner, y[1])
    du = matmul_p(u, turn)
    dv = matmul_p(adjoint(vh), over_gaps(two + adjoint(two), s, **rule))
    if u.shape[-2] != u.shape[-1]:
        du = du + _over(right - matmul_p(u, inner), s)
    if vh.shape[-2] != vh.shape[-1]:
        dv = dv + _over(adjoint(left - matmul_p(inner, vh)), s)
    return du, real(diagonal_p(inner, offset=0)), adjoint(dv)


@matrix_op(
    infer=_svd_infer,
    kernel=kernels.svd,
    normalize=_svd_normalize,
    pullback=_svd_pullback,
    pushforward=_svd_pushforward,
    flops=lambda t, **attrs: 20 * t.size * min(t.shape[-2:]),
    holomorphic=False,
    ill_conditioned=True,
    projections=("", "svdvals", ""),
    unbounded_slope=True,
    cases=(
        case((3, 3), full_matrices=False, degenerate="nan"),
        case((4, 2), full_matrices=False, degenerate="mask"),
        case((2, 2, 3), full_matrices=False, degenerate="error"),
    ),
)
def svd_p(x: NodeLike, /, full_matrices: bool, degenerate: str) -> Node:
    """The singular vectors and values of a matrix."""
    ...


@matrix_op(
    infer=_svdvals_infer,
    kernel=kernels.svdvals,
    source="np.linalg.svdvals({0})",
    normalize=_svd_normalize,
    flops=lambda t, **attrs: 4 * t.size * min(t.shape[-2:]),
    cases=(case((4, 2), full_matrices=False, degenerate="nan"),),
)
def svdvals_p(x: NodeLike, /, full_matrices: bool, degenerate: str) -> Node:
    """The values of `svd` where nothing else is read; it has no derivative of its own."""
    ...


@composite(numpy=(np.linalg.svd,))
def svd(x: NodeLike, /, *, full_matrices: bool = True, degenerate: Degenerate = "nan") -> SVDResult:
    """The singular value decomposition x = U @ diag(S) @ Vh, S descending, over the last two axes.

    With `full_matrices` U and Vh are square, and unless x is too they have no derivative, and S has
    one in reverse mode only (raises `GradientError`). Where singular values are equal the
    derivatives of their vectors are NaN, or as `degenerate` says (see `eigh`). Integers become
    float64. Raises `ShapeError` for what is no matrix, and for named dimensions of which it is not
    known which is less.

    >>> svd(placeholder("x", (5, 3)), full_matrices=False).U.type
    float64[5, 3]
    """
    y = svd_p(as_float(x), full_matrices=full_matrices, degenerate=degenerate)
    return SVDResult(y[0], y[1], y[2])


@composite(numpy=(np.linalg.svdvals,))
def svdvals(x: NodeLike, /) -> Node:
    """The singular values of a matrix, descending.

    >>> svdvals(placeholder("x", (5, 3))).type
    float64[3]
    """
    return svd(x, full_matrices=False).S


# ---- orthogonal factors ---------------------------------------------------------------------


class QRResult(NamedTuple):
    """The result of `qr`: x = Q @ R, with orthonormal columns in Q, and R upper triangular."""

    Q: Node
    R: Node


def _qr_infer(t: TensorType, *, complete: bool) -> tuple[TensorType, ...]:
    require_lapack(t)
    require_matrix(t)
    *batch, m, n = t.shape
    if least(m, n) != n:
        raise ShapeError(f"{m} rows are fewer than {n} columns")
    k = m if complete else n
    return t.with_shape((*batch, m, k)), t.with_shape((*batch, k, n))


def _qr_pullback(g: Flows, y: Node, x: Node, complete: bool) -> Cotangent:
    _no_completion(complete)
    q, r = y[0], y[1]
    inner = total(
        None if g[1] is None else matmul_p(r, adjoint(g[1])),
        None if g[0] is None else -matmul_p(adjoint(g[0]), q),
    )
    if inner is None:
        return None
    whole = total(g[0], matmul_p(q, from_lower(inner)))
    assert whole is not None
    return adjoint(solve_triangular_p(r, adjoint(whole), lower=False))


def _qr_pushforward(t: Node, y: Node, x: Node, complete: bool) -> Flows:
    _no_completion(complete)
    q, r = y[0], y[1]
    back = solve_triangular_p(matrix_transpose(r), matrix_transpose(t), lower=True)
    moved = matrix_transpose(back)
    inner = matmul_p(adjoint(q), moved)
    below = tril(inner, k=-1)
    turn = below - adjoint(below)
    if inner.tensor.is_complex:
        turn = turn + placed(imag(diagonal_p(inner, offset=0)), inner) * 1j
    upper = inner - turn
    return moved - matmul_p(q, upper), matmul_p(triangle(upper, False), r)


@matrix_op(
    infer=_qr_infer,
    kernel=kernels.qr,
    pullback=_qr_pullback,
    pushforward=_qr_pushforward,
    flops=lambda t, **attrs: 4 * t.size * t.shape[-1],
    holomorphic=False,
    ill_conditioned=True,
    unbounded_slope=True,
    cases=tuple(case(s, complete=False) for s in ((3, 3), (4, 2), (2, 3, 2))),
)
def qr_p(x: NodeLike, /, complete: bool) -> Node:
    """The orthogonal and the upper triangular factor of a matrix that is not wider than high."""
    ...


@composite(numpy=(np.linalg.qr,))
def qr(x: NodeLike, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """The factors of x = Q @ R, Q with orthonormal columns, R upper triangular.

    With `mode="complete"` Q is square, and of a matrix that is higher than wide the result has no
    derivative (raises `GradientError`). Where the first columns of x, as many as fit a square, are
    linearly dependent, the derivative raises when the program runs. Integers become float64. Raises
    `ShapeError` for what is no matrix, `UnsupportedError` for another mode.

    >>> qr(placeholder("x", (5, 3))).R.type
    float64[3, 3]
    """
    if mode not in ("reduced", "complete"):
        raise UnsupportedError(f"mode is 'reduced' or 'complete', not {mode!r}")
    node = as_float(x)
    require_matrix(node.tensor)
    m, n = node.shape[-2:]
    k = least(m, n)
    if k == n:
        y = qr_p(node, complete=mode == "complete" and m != n)
        return QRResult(y[0], y[1])
    y = qr_p(node[..., :k], complete=mode == "complete" and m != k)
    return QRResult(y[0], concat([y[1], matmul_p(adjoint(y[0]), node[..., k:])], axis=-1))
