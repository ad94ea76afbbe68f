"""Functions of matrices, and matrices made of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.dims import Size
from symgrad.ir.errors import DtypeError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import REAL, Former, case
from symgrad.ir.types import TensorType, broadcast_shapes
from symgrad.ops.batch import repeated
from symgrad.ops.declare import NodeLike, composite, op, require
from symgrad.ops.elementwise import multiply
from symgrad.ops.leaves import eye, zeros, zeros_like
from symgrad.ops.linalg import kernels
from symgrad.ops.linalg.decompositions import svdvals
from symgrad.ops.linalg.products import matmul, matrix_op, require_matrix
from symgrad.ops.linalg.solve import require_lapack, square_infer
from symgrad.ops.linalg.systems import inv
from symgrad.ops.linalg.triangular import adjoint
from symgrad.ops.reduce import as_float, sum
from symgrad.ops.select import maximum
from symgrad.ops.shape import astype, broadcast_to, concat, matrix_transpose, moveaxis, reshape

NAMESPACE = "linalg"

# ---- products -------------------------------------------------------------------------------


@composite(numpy=(np.outer, np.linalg.outer))
def outer(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The products of the elements of two vectors. Raises `ShapeError` for what is no vector.

    >>> outer(placeholder("a", 3), placeholder("b", 4)).type
    float64[3, 4]
    """
    a, b = as_node(x1), as_node(x2)
    if (a.ndim, b.ndim) != (1, 1):
        raise ShapeError(f"outer({a.type!r}, {b.type!r}): write reshape(x, -1) to make vectors")
    return reshape(a, (*a.shape, 1)) * b


@composite(numpy=(np.cross, np.linalg.cross))
def cross(x1: NodeLike, x2: NodeLike, /, *, axis: int = -1) -> Node:
    """The cross product of vectors of three elements, along an axis; the other axes broadcast.

    Raises `ShapeError` if there are not three.

    >>> cross(placeholder("a", 3), placeholder("b", (2, 3))).type
    float64[2, 3]
    """
    a, b = (moveaxis(x, axis, -1) for x in (x1, x2))
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ShapeError(f"a cross product is of 3 elements, not {a.shape[-1]} and {b.shape[-1]}")

    def turned(x: Node, by: int) -> Node:
        return concat([x[..., by:], x[..., :by]], axis=-1)

    y = turned(a, 1) * turned(b, 2) - turned(a, 2) * turned(b, 1)
    return moveaxis(y, -1, axis)


@composite(numpy=(np.kron,))
def kron(x1: NodeLike, x2: NodeLike, /) -> Node:
    """Kronecker's product: a copy of x2 for each element of x1, times that element.

    >>> kron(placeholder("a", (2, 3)), placeholder("b", (4, 5))).type
    float64[8, 15]
    """
    a, b = as_node(x1), as_node(x2)
    n = max(a.ndim, b.ndim)
    p, q = ((*(1,) * (n - x.ndim), *x.shape) for x in (a, b))
    outer_shape: tuple[Size, ...] = tuple(s for i in p for s in (i, 1))
    inner_shape: tuple[Size, ...] = tuple(s for j in q for s in (1, j))
    products = reshape(a, outer_shape) * reshape(b, inner_shape)
    return reshape(products, tuple(i * j for i, j in zip(p, q, strict=True)))


@composite()
def block_diag(*arrays: NodeLike) -> Node:
    """The matrix with matrices along its diagonal, and zeros. A vector counts as a row.

    Raises `ShapeError` for what has more than two axes, and for no arrays.

    >>> block_diag(placeholder("a", (2, 3)), placeholder("b", (4, 5))).type
    float64[6, 8]
    """
    nodes = [as_node(x) for x in arrays]
    if not nodes or any(x.ndim > 2 for x in nodes):
        listed = ", ".join(repr(x.type) for x in nodes)
        raise ShapeError(f"block_diag takes matrices, not [{listed}]")
    blocks = [reshape(x, (*(1,) * (2 - x.ndim), *x.shape)) for x in nodes]
    dtype = np.result_type(*(x.dtype for x in blocks))

    def beside(row: Node, x: Node) -> Node:
        return row if x is row else zeros((row.shape[0], x.shape[1]), dtype=dtype)

    rows = [concat([beside(row, x) for x in blocks], axis=1) for row in blocks]
    return concat(rows, axis=0)


# ---- functions ------------------------------------------------------------------------------


@composite(numpy=(np.linalg.matrix_power,))
def matrix_power(x: NodeLike, n: int, /) -> Node:
    """The product of n times a square matrix; of its inverse, if n is negative.

    Of n = 0 it is the identity. Negative powers of integers are float64. Raises `ShapeError` for a
    matrix that is not square, `DtypeError` for an n that is not an integer.

    >>> matrix_power(placeholder("x", (3, 3)), 5).type
    float64[3, 3]
    """
    node = as_node(x)
    try:
        count = n.__index__()
    except AttributeError:
        raise DtypeError(f"a matrix is taken to the power of an integer, not {n!r}") from None
    require_matrix(node.tensor)
    if node.shape[-2] != node.shape[-1]:
        raise ShapeError(f"{node.type!r} is not square")
    if not count:
        return broadcast_to(eye(node.shape[-1], dtype=node.dtype), node.shape)
    square, power = inv(node) if count < 0 else node, None
    count = abs(count)
    while count:
        if count & 1:
            power = square if power is None else matmul(power, square)
        count >>= 1
        square = matmul(square, square) if count else square
    assert power is not None
    return power


def _tolerance(x: Node, rtol: Any) -> Node:
    """The fraction of the largest singular value to exceed, for each matrix of a batch.

    Without `rtol` it is the larger size of x, times the eps of its dtype.
    """
    if rtol is None:
        dtype = np.finfo(x.dtype).dtype
        size = astype(maximum(as_node(x.shape[-2]), as_node(x.shape[-1])), dtype)
        return multiply(size, float(np.finfo(dtype).eps))
    given = as_node(rtol)
    if given.dtype.kind not in "iuf":
        raise DtypeError(f"rtol is a real number, or one for each matrix, not {given.type!r}")
    return given


@composite(numpy=(np.linalg.matrix_rank,))
def matrix_rank(x: NodeLike, /, *, rtol: NodeLike | None = None) -> Node:
    """How many singular values exceed `rtol` times the largest; no gradient flows through it.

    `rtol` is a number, or an array that broadcasts with the axes before the last two; if it is not
    given, the larger size of x, times the dtype's eps.

    >>> matrix_rank(placeholder("x", (4, 5, 3)), rtol=np.array([1e-3, 1e-6, 1e-9, 0])).type
    int64[4]
    """
    node = as_float(x)
    require_matrix(node.tensor)
    s, limit = svdvals(node), _tolerance(node, rtol)
    least = reshape(limit, (*limit.shape, 1)) * s[..., :1]
    return sum(astype(s > least, "int64"), axis=-1)


def _pinv_infer(t: TensorType, r: TensorType) -> TensorType:
    require_lapack(t)
    require_matrix(t)
    require("iuf", r)
    if r.shape != t.shape[:-2]:
        raise ShapeError(f"there is one rtol for each matrix of {t!r}, not {r!r}")
    return t.with_shape((*t.shape[:-2], t.shape[-1], t.shape[-2]))


def _pinv_pullback(g: Node, y: Node, x: Node, rtol: Node) -> Node:
    p, back = adjoint(y), adjoint(g)
    left = matmul(matmul(back, y), p)
    right = matmul(matmul(p, y), back)
    beside = left - matmul(x, matmul(y, left)) + right - matmul(matmul(right, y), x)
    return beside - matmul(matmul(p, g), p)


def _pinv_pushforward(t: Node, y: Node, x: Node, rtol: Node) -> Node:
    p, back = adjoint(y), adjoint(t)
    left = matmul(matmul(y, p), back)
    right = matmul(matmul(back, p), y)
    beside = left - matmul(matmul(left, x), y) + right - matmul(y, matmul(x, right))
    return beside - matmul(matmul(y, t), y)


def _with_number(operands: list[Node], attrs: dict[str, Any]) -> Former:
    """`rtol` was one number for all matrices, or None, and an attribute."""
    rtol = attrs.get("rtol", ())
    if len(operands) != 1 or not (rtol is None or isinstance(rtol, float)):
        return operands, attrs
    (x,) = operands
    require_matrix(x.tensor)
    require_lapack(x.tensor)
    limit = broadcast_to(_tolerance(x, rtol), x.shape[:-2])
    return [x, limit], {k: v for k, v in attrs.items() if k != "rtol"}


@op(
    infer=_pinv_infer,
    kernel=kernels.pinv,
    former=_with_number,
    pullback=_pinv_pullback,
    pushforward=_pinv_pushforward,
    flops=lambda t, r: 20 * t.size * min(t.shape[-2:]),
    holomorphic=False,
    ill_conditioned=True,
    expensive=True,
    unbounded_slope=True,
    domain=(REAL, (1e-9, 1e-6)),
    cases=(case((4, 2), ()), case((2, 2, 3), (2,)), case((3, 3), ())),
    batch=repeated,
)
def pinv_p(x: NodeLike, rtol: NodeLike, /) -> Node:
    """The pseudoinverse of a matrix."""
    ...


@composite(numpy=(np.linalg.pinv,))
def pinv(x: NodeLike, /, *, rtol: NodeLike | None = None) -> Node:
    """The pseudoinverse of Moore and Penrose of a matrix, over the last two axes.

    Singular values below `rtol` times the largest count as 0. It is a number, or an array that
    broadcasts with the axes before the last two; if it is not given, the larger size of x, times
    the dtype's eps. The derivative is that along matrices of the same rank (Golub and Pereyra,
    1973); none flows to `rtol`. Integers become float64. Raises `DtypeError` for an `rtol` that is
    no real number.

    >>> pinv(placeholder("x", (5, 3))).type
    float64[3, 5]
    """
    node = as_float(x)
    require_matrix(node.tensor)
    limit = _tolerance(node, rtol)
    batch = broadcast_shapes(node.shape[:-2], limit.shape)
    if batch != node.shape[:-2]:
        node = broadcast_to(node, (*batch, *node.shape[-2:]))
    return pinv_p(node, limit if batch == limit.shape else broadcast_to(limit, batch))


def _frechet(x: Node, t: Node) -> Node:
    """The derivative of expm along t: a block of the exponential of a matrix of both."""
    n = x.shape[-1]
    if x.shape != t.shape:
        x, t = broadcast_to(x, (x + t).shape), broadcast_to(t, (x + t).shape)
    above, below = concat([x, t], axis=-1), concat([zeros_like(x), x], axis=-1)
    return expm_p(concat([above, below], axis=-2))[..., :n, n:]


@matrix_op(
    infer=square_infer,
    kernel=kernels.expm,
    pullback=lambda g, y, x: _frechet(matrix_transpose(x), g),
    pushforward=lambda t, y, x: _frechet(x, t),
    flops=lambda t: 20 * t.size * t.shape[-1],
    cases=(case((3, 3)), case((2, 2, 2)), case((0, 0))),
)
def expm_p(x: NodeLike, /) -> Node:
    """The exponential of a square matrix."""
    ...


@composite()
def expm(x: NodeLike, /) -> Node:
    """The exponential of a square matrix, over the last two axes; integers become float64.

    By a Padé approximation, scaled and squared (Higham, 2005); its derivative is a block of the
    exponential of a matrix twice as large (Van Loan, 1978). Raises `ShapeError` for a matrix that
    is not square.

    >>> expm(placeholder("x", (3, 3))).type
    float64[3, 3]
    """
    return expm_p(as_float(x))
