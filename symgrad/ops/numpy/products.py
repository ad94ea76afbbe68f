"""NumPy's products beyond matmul, polynomials and convolutions of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.errors import ArgumentError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import whole
from symgrad.ops.complexes import conj
from symgrad.ops.conv.convolution import conv1d
from symgrad.ops.conv.windows import sliding_window_view
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.elementwise import multiply
from symgrad.ops.leaves import arange, zeros_like
from symgrad.ops.linalg.products import matmul, tensordot
from symgrad.ops.numpy.joins import atleast_1d
from symgrad.ops.padding import zeros_around
from symgrad.ops.shape import astype, expand_dims, flip, reshape, squeeze


@composite(numpy=(np.dot,))
def dot(x1: NodeLike, x2: NodeLike, /) -> Node:
    """NumPy's dot: a product with a scalar, of matrices and vectors `x1 @ x2`.

    Else it sums over the last axis of x1 and the last but one of x2, or its only one.
    """
    a, b = as_node(x1), as_node(x2)
    if a.ndim == 0 or b.ndim == 0:
        return multiply(a, b)
    if a.ndim <= 2 and b.ndim <= 2:
        return matmul(a, b)
    return tensordot(a, b, axes=((a.ndim - 1,), (max(b.ndim - 2, 0),)))


@composite(numpy=(np.inner,))
def inner(x1: NodeLike, x2: NodeLike, /) -> Node:
    """Sums over the last axes of both; a product with a scalar."""
    a, b = as_node(x1), as_node(x2)
    if a.ndim == 0 or b.ndim == 0:
        return multiply(a, b)
    return tensordot(a, b, axes=((a.ndim - 1,), (b.ndim - 1,)))


@composite(numpy=(np.vdot,))
def vdot(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The sum of conj(x1) * x2 over all elements, of arrays of as many of them."""
    a, b = as_node(x1), as_node(x2)
    if a.tensor.is_complex:
        a = conj(a)
    return matmul(reshape(a, (-1,)), reshape(b, (-1,)))


@composite(numpy=(np.vecmat,))
def vecmat(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The vectors x1 times the matrices x2, conjugated if they are complex."""
    a = as_node(x1)
    if a.ndim == 0:
        raise ShapeError(f"vecmat takes vectors, not {a.type!r}")
    row = expand_dims(conj(a) if a.tensor.is_complex else a, axis=-2)
    return squeeze(matmul(row, x2), axis=-2)


@composite(numpy=(np.matvec,))
def matvec(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The matrices x1 times the vectors x2."""
    b = as_node(x2)
    if b.ndim == 0:
        raise ShapeError(f"matvec takes vectors, not {b.type!r}")
    return squeeze(matmul(x1, expand_dims(b, axis=-1)), axis=-1)


@composite(numpy=(np.polyval,))
def polyval(p: NodeLike, x: NodeLike, /) -> Node:
    """The polynomial with the coefficients p, that of the highest power first, at x.

    >>> float(polyval([1.0, 2.0, 3.0], 2.0))
    11.0
    """
    coefficients, at = as_node(p), as_node(x)
    if coefficients.ndim != 1 or not isinstance(coefficients.shape[0], int):
        raise ShapeError(f"the coefficients are a vector of known size, not {coefficients.type!r}")
    found: Node = zeros_like(at)
    for i in range(coefficients.shape[0]):
        found = found * at + coefficients[i]
    return found


@composite(numpy=(np.vander,))
def vander(x: NodeLike, /, *, N: int | None = None, increasing: bool = False) -> Node:
    """The powers of the elements of a vector, a row for each: from x**(N - 1) down to 1.

    `N` is the size of the vector if it is not given; with `increasing` the powers rise.
    """
    node = as_node(x)
    if node.ndim != 1:
        raise ShapeError(f"vander takes a vector, not {node.type!r}")
    count = node.shape[0] if N is None else whole(N, "N", 0, ArgumentError)
    wide = astype(node, np.promote_types(node.dtype, np.int64))
    powers = arange(count, dtype=np.int64)
    found: Node = expand_dims(wide, axis=-1) ** (powers if increasing else flip(powers))
    return found


# ---- convolutions ---------------------------------------------------------------------------


def _slid(a: Node, v: Node, mode: Any) -> Node:
    """The sums of products of v, where it lies within a, in NumPy's modes."""
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"mode is 'full', 'same' or 'valid', not {mode!r}")
    if a.ndim != 1 or v.ndim != 1:
        raise ShapeError(f"vectors are taken, not {a.type!r} and {v.type!r}")
    size = v.shape[0]
    if not isinstance(size, int) or size == 0:
        raise ShapeError(f"the kernel has a size that is known and not 0, and not {size}")
    padding: Any = (size - 1, size - 1) if mode == "full" else (0, 0)
    if mode == "same":
        padding = ((size - 1) - (size - 1) // 2, (size - 1) // 2)
    if not (a.tensor.is_inexact or v.tensor.is_inexact):
        return matmul(sliding_window_view(zeros_around(a, [padding]), size), v)
    found = conv1d(reshape(a, (1, 1, -1)), reshape(v, (1, 1, -1)), padding=[padding])
    return reshape(found, (-1,))


def _longer_first(a: Node, v: Node) -> bool:
    sizes = (*a.shape[:1], *v.shape[:1])
    known = len(sizes) == 2 and all(isinstance(s, int) for s in sizes)
    return not known or sizes[0] >= sizes[1]


@composite(numpy=(np.convolve,))
def convolve(a: NodeLike, v: NodeLike, /, *, mode: str = "full") -> Node:
    """The convolution of two vectors: the coefficients of the product of two polynomials.

    `mode` is "full", "same" (as long as the longer one) or "valid" (where both overlap whole).

    >>> np.asarray(convolve([1.0, 2.0], [1.0, 3.0]))
    array([1., 5., 6.])
    """
    long, short = atleast_1d(a, v)
    if not _longer_first(long, short):
        long, short = short, long
    return _slid(long, flip(short), mode)


@composite(numpy=(np.correlate,))
def correlate(a: NodeLike, v: NodeLike, /, *, mode: str = "valid") -> Node:
    """The sums of a[k + n] * conj(v[n]) for each shift k; `mode` is as for `convolve`."""
    long, short = atleast_1d(a, v)
    if short.tensor.is_complex:
        short = conj(short)
    if _longer_first(long, short):
        return _slid(long, short, mode)
    return flip(_slid(short, long, mode))
