"""Polynomials as vectors of coefficients, that of the highest power first, as NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.errors import ShapeError, UnsupportedError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import whole
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.elementwise import divide, negative, sqrt
from symgrad.ops.leaves import ones, zeros
from symgrad.ops.linalg.matrices import outer
from symgrad.ops.linalg.products import matmul
from symgrad.ops.linalg.systems import inv
from symgrad.ops.numpy.least_squares import lstsq
from symgrad.ops.numpy.products import convolve, vander
from symgrad.ops.padding import zeros_around
from symgrad.ops.reduce import as_float, sum
from symgrad.ops.shape import astype, concat, expand_dims, matrix_transpose, reshape


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
    for _ in range(whole(m, "how often a derivative is taken", 0, ShapeError)):
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
    if whole(m, "how often an integral is taken", 0, ShapeError):
        node = as_float(node)
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
    x: NodeLike,
    y: NodeLike,
    deg: int,
    /,
    rcond: float | None = None,
    full: bool = False,
    w: NodeLike = None,
    cov: bool | str = False,
) -> Any:
    """The coefficients of the polynomial of a degree that is nearest to points, by least squares.

    x has shape (N,), y (N,) or (N, K); w weighs the points. With `full` it is NumPy's tuple: the
    coefficients, the residuals, the rank, the singular values and `rcond`; with `cov` a pair: the
    coefficients and their covariances, which "unscaled" leaves as the weights have them. Raises
    `ShapeError` for other shapes, and for a degree that is no int from 0 on.

    >>> polyfit(placeholder("x", "N"), placeholder("y", "N"), 2).type
    float64[3]
    """
    at, values = as_float(x), as_float(y)
    order = whole(deg, "the degree of a polynomial", 0, ShapeError) + 1
    if at.ndim != 1 or values.ndim not in (1, 2) or at.shape[0] != values.shape[0]:
        raise ShapeError(f"points {at.type!r}, {values.type!r}: vectors of one size are wanted")

    def down(rows: Node) -> Node:
        return rows if values.ndim == 1 else reshape(rows, (-1, 1))

    powers = vander(at, N=order)
    if w is not None:
        weights = as_float(w)
        powers, values = powers * reshape(weights, (-1, 1)), values * down(weights)
    scale = sqrt(sum(powers * powers, axis=0))
    scaled = powers / scale
    count = at.shape[0]
    if rcond is None and isinstance(count, int):
        rcond = count * np.finfo(at.dtype).eps  # a float of this dtype
    fitted = lstsq(scaled, values, rcond)
    found = divide(fitted.x, down(scale))
    if full:
        return found, *fitted[1:], rcond
    if cov is False:
        return found
    spread = inv(matmul(matrix_transpose(scaled), scaled)) / outer(scale, scale)
    factor: Any = 1.0
    if cov != "unscaled":
        if isinstance(count, int) and count <= order:
            raise ShapeError(f"{count} points are too few to scale the covariances; see 'unscaled'")
        factor = fitted.residuals / (as_node(count) - order)
        factor = reshape(factor, ()) if values.ndim == 1 else factor
    return found, (spread if values.ndim == 1 else expand_dims(spread, axis=-1)) * factor


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
