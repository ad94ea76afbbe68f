"""Polynomials as vectors of coefficients, that of the highest power first, as NumPy has them."""

from __future__ import annotations

import numpy as np

from symgrad.ir.errors import ShapeError, UnsupportedError
from symgrad.ir.node import Node, as_node
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.elementwise import divide, negative, sqrt
from symgrad.ops.leaves import ones, zeros
from symgrad.ops.numpy.least_squares import lstsq
from symgrad.ops.numpy.products import convolve, vander
from symgrad.ops.padding import zeros_around
from symgrad.ops.reduce import as_float, sum
from symgrad.ops.shape import astype, concat, reshape


def _coefficients(p: NodeLike) -> tuple[Node, int]:
    node = as_node(p)
    node = reshape(node, (1,)) if not node.ndim else node
    if node.ndim != 1 or not isinstance(node.shape[0], int):
        raise ShapeError(f"coefficients are a vector of known size, not {node.type!r}")
    return node, node.shape[0]


def _aligned(p: NodeLike, q: NodeLike) -> tuple[Node, Node]:
    (a, m), (b, n) = _coefficients(p), _coefficients(q)
    size = m if m > n else n
    return zeros_around(a, [(size - m, 0)]), zeros_around(b, [(size - n, 0)])


@composite(numpy=(np.polyadd,))
def polyadd(p: NodeLike, q: NodeLike, /) -> Node:
    """The coefficients of the sum of two polynomials."""
    a, b = _aligned(p, q)
    return a + b


@composite(numpy=(np.polysub,))
def polysub(p: NodeLike, q: NodeLike, /) -> Node:
    """The coefficients of the difference of two polynomials."""
    a, b = _aligned(p, q)
    return a - b


@composite(numpy=(np.polymul,))
def polymul(p: NodeLike, q: NodeLike, /) -> Node:
    """The coefficients of the product of two polynomials; zeros at the beginning stay.

    >>> np.asarray(polymul([1, 1], [1, -1]))
    array([ 1,  0, -1])
    """
    return convolve(_coefficients(p)[0], _coefficients(q)[0])


@composite(numpy=(np.polyder,))
def polyder(p: NodeLike, /, m: int = 1) -> Node:
    """The coefficients of the m-th derivative of a polynomial.

    >>> np.asarray(polyder([1, 1, 1]))
    array([2, 1])
    """
    node, size = _coefficients(p)
    if m < 0:
        raise ShapeError(f"a derivative is taken m times, and {m} is negative")
    for _ in range(m):
        if size == 0:
            break
        node, size = node[:-1] * np.arange(size - 1, 0, -1), size - 1
    return node


@composite(numpy=(np.polyint,))
def polyint(p: NodeLike, /, m: int = 1, k: NodeLike = None) -> Node:
    """The coefficients of the m-th integral of a polynomial, with k as the constants.

    >>> np.asarray(polyint([2.0, 1.0]))
    array([1., 1., 0.])
    """
    node, size = _coefficients(p)
    node = as_float(node)
    if m < 0:
        raise ShapeError(f"an integral is taken m times, and {m} is negative")
    given = zeros(m) if k is None else as_node(k)
    if not given.ndim:
        given = reshape(given, (1,))
    if m > 1 and given.shape == (1,):
        given = given * ones(m)
    if m and given.shape != (m,):
        raise ShapeError(f"there are {m} constants of integration, not {given.type!r}")
    for i in range(m):
        raised = divide(node, np.arange(size, 0, -1))
        node, size = concat([raised, reshape(given[i], (1,))], axis=0), size + 1
    return node


@composite(numpy=(np.polyfit,))
def polyfit(
    x: NodeLike, y: NodeLike, deg: int, /, rcond: float | None = None, *, w: NodeLike = None
) -> Node:
    """The coefficients of the polynomial of a degree that is nearest to points, by least squares.

    x has shape (N,), y (N,) or (N, K); w weighs the points. Raises `ShapeError` for others, and for
    a degree that is no int from 0 on.

    >>> polyfit(placeholder("x", "N"), placeholder("y", "N"), 2).type
    float64[3]
    """
    at, values = as_float(x), as_float(y)
    if deg < 0:
        raise ShapeError(f"the degree of a polynomial is an int from 0 on, not {deg!r}")
    if at.ndim != 1 or values.ndim not in (1, 2) or at.shape[0] != values.shape[0]:
        raise ShapeError(f"points {at.type!r}, {values.type!r}: vectors of one size are wanted")
    powers = vander(astype(at, np.result_type(at.dtype, np.float64)), N=int(deg) + 1)
    if w is not None:
        weights = as_float(w)
        powers = powers * reshape(weights, (-1, 1))
        values = values * (weights if values.ndim == 1 else reshape(weights, (-1, 1)))
    scale = sqrt(sum(powers * powers, axis=0))
    found = lstsq(powers / scale, values, rcond)[0]
    return divide(found, scale if values.ndim == 1 else reshape(scale, (-1, 1)))


@composite(numpy=(np.poly,))
def poly(roots: NodeLike, /) -> Node:
    """The coefficients of the polynomial with these roots. Raises `UnsupportedError` for a matrix.

    >>> np.asarray(poly([1.0, 2.0]))
    array([ 1., -3.,  2.])
    """
    node = as_float(roots)
    if node.ndim == 2:
        raise UnsupportedError(
            "whether the coefficients of a matrix are real depends on its values; "
            "write sg.poly(sg.linalg.eigvals(x)), which are complex"
        )
    zeros_at, size = _coefficients(node)
    found = ones(1, dtype=node.dtype)
    for i in range(size):
        factor = concat([ones(1, dtype=node.dtype), reshape(negative(zeros_at[i]), (1,))], axis=0)
        found = convolve(found, factor)
    return astype(found, node.dtype)
