"""Eigenvalues.

Where values are equal their vectors are any basis of a space, and have no derivative. `degenerate`
says what then stands for 1 / (a - b): NaN ("nan", the default), 0 ("mask"), or an error when the
program runs ("error"). The mask is right for what depends on the space alone, such as v @ v.mT, and
not for functions of the matrix, such as v @ diag(f(w)) @ v.mT. Where exactly 0 flows through such a
pair, 0 flows on under all three, also if it is a sum that cancels. Values count as equal if they
differ by no more than LAPACK's error, n * eps * the largest.

Vectors are known up to a sign, or a phase if they are complex: a loss must not depend on phases.
Derivatives after Giles, Collected matrix derivative results for forward and reverse mode
algorithmic differentiation, 2008, and Seeger et al., Auto-differentiating linear algebra, 2017.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from symgrad.ir.errors import UnsupportedError
from symgrad.ir.node import Node
from symgrad.ir.op import POSITIVE, Cotangent, case
from symgrad.ir.types import TensorType, broadcast_shapes
from symgrad.ops.batch import in_front
from symgrad.ops.complexes import conj, part_dtype, real
from symgrad.ops.declare import NodeLike, composite, op, require
from symgrad.ops.flows import total
from symgrad.ops.linalg import kernels
from symgrad.ops.linalg.products import matmul_p, matrix_op
from symgrad.ops.linalg.solve import diagonal_p, on_diagonal, require_square, solve_p
from symgrad.ops.linalg.triangular import adjoint, hermitian
from symgrad.ops.reduce import as_float, sum
from symgrad.ops.shape import astype, expand_dims, matrix_transpose

NAMESPACE = "linalg"
Degenerate: TypeAlias = Literal["nan", "mask", "error"]
Flows: TypeAlias = tuple[Cotangent, ...]


def policy(degenerate: str) -> str:
    """The policy for equal values. Raises `UnsupportedError` for what is none."""
    if degenerate not in ("nan", "mask", "error"):
        raise UnsupportedError(f"degenerate is 'nan', 'mask' or 'error', not {degenerate!r}")
    return degenerate


def row(x: Node) -> Node:
    """A vector as a row, to scale columns by."""
    return expand_dims(x, axis=-2)


def placed(x: Node, like: Node) -> Node:
    """The matrix with a vector on its diagonal, of the dtype of another."""
    n = x.shape[-1]
    return astype(on_diagonal(x, shape=(n, n), offset=0), like.dtype)


# ---- gaps -----------------------------------------------------------------------------------


def _over_gaps_infer(
    x: TensorType, w: TensorType, *, squared: bool, degenerate: Degenerate
) -> TensorType:
    require("fc", x, w)
    return x.with_shape((*broadcast_shapes(x.shape[:-2], w.shape[:-2]), *x.shape[-2:]))


def _over_gaps_vjp(g: Node, y: Node, x: Node, w: Node, **attrs: Any) -> Flows:
    moved = -g * over_gaps(y, w, **attrs)
    apart = sum(moved, axis=-2, keepdims=True) - matrix_transpose(
        sum(moved, axis=-1, keepdims=True)
    )
    return over_gaps(g, w, **attrs), apart * 2 * w if attrs["squared"] else apart


def _over_gaps_jvp(t: Flows, y: Node, x: Node, w: Node, **attrs: Any) -> Cotangent:
    first = None if t[0] is None else over_gaps(t[0], w, **attrs)
    if t[1] is None:
        return first
    moved = 2 * w * t[1] if attrs["squared"] else t[1]
    return total(first, -over_gaps(y, w, **attrs) * (moved - matrix_transpose(moved)))


@op(
    infer=_over_gaps_infer,
    kernel=kernels.over_gaps,
    vjp=_over_gaps_vjp,
    jvp=_over_gaps_jvp,
    flops=lambda x, w, **attrs: 4 * x.size,
    ill_conditioned=True,
    unbounded_slope=True,
    cases=(
        case((3, 3), (1, 3), squared=False, degenerate="nan"),
        case((2, 3, 3), (2, 1, 3), squared=True, degenerate="mask"),
    ),
    batch=in_front,
    public=False,
)
def over_gaps(x: NodeLike, w: NodeLike, /, squared: bool, degenerate: str) -> Node:
    """x[i, j] / (w[j] - w[i]), or of the squares of a row w; 0 on the diagonal."""
    ...


# ---- eigenvalues ----------------------------------------------------------------------------


class EighResult(NamedTuple):
    """The result of `eigh`: real eigenvalues in rising order, eigenvectors as columns."""

    eigenvalues: Node
    eigenvectors: Node


def _values_infer(t: TensorType, *, degenerate: Degenerate) -> TensorType:
    require_square(t)
    return TensorType(t.shape[:-1], part_dtype(t.dtype))


def _eigh_pullback(g: Flows, y: Node, x: Node, degenerate: str) -> Cotangent:
    w, v = y[0], y[1]
    if g[1] is None:
        return None if g[0] is None else matmul_p(v * row(g[0]), adjoint(v))
    turned = matmul_p(adjoint(v), g[1])
    inner = over_gaps(turned, row(w), squared=False, degenerate=degenerate)
    whole = total(inner, None if g[0] is None else placed(g[0], v))
    assert whole is not None
    return hermitian(matmul_p(matmul_p(v, whole), adjoint(v)))


def _eigh_pushforward(t: Node, y: Node, x: Node, degenerate: str) -> Flows:
    w, v = y[0], y[1]
    inner = matmul_p(matmul_p(adjoint(v), hermitian(t)), v)
    turned = over_gaps(inner, row(w), squared=False, degenerate=degenerate)
    return real(diagonal_p(inner, offset=0)), matmul_p(v, turned)


def _eigh_infer(t: TensorType, *, degenerate: Degenerate) -> tuple[TensorType, ...]:
    return _values_infer(t, degenerate=degenerate), t


@matrix_op(
    infer=_eigh_infer,
    kernel=kernels.eigh,
    source="np.linalg.eigh({0})",
    pullback=_eigh_pullback,
    pushforward=_eigh_pushforward,
    flops=lambda t, **attrs: 9 * t.size * t.shape[-1],
    holomorphic=False,
    symmetric=True,
    ill_conditioned=True,
    projections=("eigvalsh", ""),
    unbounded_slope=True,
    cases=(case((3, 3), degenerate="nan"), case((2, 2, 2), degenerate="mask")),
)
def eigh_p(x: NodeLike, /, degenerate: str) -> Node:
    """The eigenvalues, ascending, and eigenvectors of a Hermitian matrix."""
    ...


@matrix_op(
    infer=_values_infer,
    kernel=kernels.eigvalsh,
    source="np.linalg.eigvalsh({0})",
    flops=lambda t, **attrs: 4 * t.size * t.shape[-1] // 3,
    symmetric=True,
    cases=(case((3, 3), degenerate="nan"),),
)
def eigvalsh_p(x: NodeLike, /, degenerate: str) -> Node:
    """The eigenvalues of `eigh` where nothing else is read; it has no derivative of its own."""
    ...


@composite(numpy=(np.linalg.eigh,))
def eigh(x: NodeLike, /, *, degenerate: Degenerate = "nan") -> EighResult:
    """The eigenvalues, ascending, and the eigenvectors, as columns, of a Hermitian matrix.

    x is taken for symmetric (Hermitian) over its last two axes: its lower triangle is read, and its
    gradient is symmetric too. Where eigenvalues are equal what flows through a pair of their
    vectors is divided by 0: it becomes NaN, or raises when the program runs with
    `degenerate="error"`, or becomes 0 with "mask", which is right for what depends on the space of
    these vectors alone. Of 0 / 0 it is 0 under all three: so it is where nothing flows to the
    vectors, which is right, and where what flows cancels exactly, which is as right as the mask:
    of v @ diag(w) @ v.mT at the zero matrix what is off the diagonal is lost. Those of sums of all
    equal eigenvalues are right. Integers become float64. Raises `ShapeError` for a matrix that is
    not square, `UnsupportedError` for another `degenerate`.

    >>> eigh(placeholder("x", (3, 3))).eigenvalues.type
    float64[3]
    """
    y = eigh_p(as_float(x), degenerate=policy(degenerate))
    return EighResult(y[0], y[1])


@composite(numpy=(np.linalg.eigvalsh,))
def eigvalsh(x: NodeLike, /) -> Node:
    """The eigenvalues of `eigh`, ascending.

    >>> eigvalsh(placeholder("x", (3, 3))).type
    float64[3]
    """
    return eigh(x).eigenvalues


class EigResult(NamedTuple):
    """The result of `eig`: complex eigenvalues, eigenvectors as columns in the same order."""

    eigenvalues: Node
    eigenvectors: Node


def _complex_values(t: TensorType, *, degenerate: Degenerate) -> TensorType:
    require_square(t)
    return TensorType(t.shape[:-1], np.result_type(t.dtype, np.complex64))


def _eig_pullback(g: Flows, y: Node, x: Node, degenerate: str) -> Cotangent:
    w, v = y[0], y[1]
    inner = None if g[0] is None else placed(g[0], v)
    if g[1] is not None:
        turned = matmul_p(adjoint(v), g[1])
        along = astype(real(diagonal_p(turned, offset=0)), v.dtype)
        turned = turned - matmul_p(adjoint(v), v * row(along))
        turned = over_gaps(turned, row(conj(w)), squared=False, degenerate=degenerate)
        inner = total(inner, turned)
    return None if inner is None else solve_p(adjoint(v), matmul_p(inner, adjoint(v)))


def _eig_pushforward(t: Node, y: Node, x: Node, degenerate: str) -> Flows:
    w, v = y[0], y[1]
    inner = solve_p(v, matmul_p(t, v))
    turned = matmul_p(v, over_gaps(inner, row(w), squared=False, degenerate=degenerate))
    along = astype(real(sum(conj(v) * turned, axis=-2)), v.dtype)
    return diagonal_p(inner, offset=0), turned - v * row(along)


def _eig_infer(t: TensorType, *, degenerate: Degenerate) -> tuple[TensorType, ...]:
    values = _complex_values(t, degenerate=degenerate)
    return values, t.with_dtype(values.dtype)


@matrix_op(
    infer=_eig_infer,
    kernel=kernels.eig,
    pullback=_eig_pullback,
    pushforward=_eig_pushforward,
    flops=lambda t, **attrs: 25 * t.size * t.shape[-1],
    holomorphic=False,
    ill_conditioned=True,
    projections=("eigvals", ""),
    unbounded_slope=True,
    domain=(POSITIVE,),
    cases=(case((2, 2), degenerate="nan"), case((3, 2, 2), degenerate="mask")),
)
def eig_p(x: NodeLike, /, degenerate: str) -> Node:
    """The eigenvalues and eigenvectors of a square matrix, complex."""
    ...


@matrix_op(
    infer=_complex_values,
    kernel=kernels.eigvals,
    flops=lambda t, **attrs: 10 * t.size * t.shape[-1],
    domain=(POSITIVE,),
    cases=(case((2, 2), degenerate="nan"),),
)
def eigvals_p(x: NodeLike, /, degenerate: str) -> Node:
    """The eigenvalues of `eig` where nothing else is read; it has no derivative of its own."""
    ...


@composite(numpy=(np.linalg.eig,))
def eig(x: NodeLike, /, *, degenerate: Degenerate = "nan") -> EigResult:
    """The eigenvalues, in no order, and the eigenvectors, as columns of length 1, of any matrix.

    They are complex, whatever x is. Where eigenvalues are equal the derivatives of their vectors
    are as `degenerate` says (see `eigh`); a matrix without a basis of eigenvectors has no
    derivative, which raises when the program runs. Integers become float64. Raises `ShapeError` for
    a matrix that is not square, `UnsupportedError` for another `degenerate`.

    >>> eig(placeholder("x", (3, 3))).eigenvalues.type
    complex128[3]
    """
    y = eig_p(as_float(x), degenerate=policy(degenerate))
    return EigResult(y[0], y[1])


@composite(numpy=(np.linalg.eigvals,))
def eigvals(x: NodeLike, /) -> Node:
    """The eigenvalues of `eig`, in no order.

    >>> eigvals(placeholder("x", (3, 3))).type
    complex128[3]
    """
    return eig(x).eigenvalues
