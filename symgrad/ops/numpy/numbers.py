"""Floats taken apart and put together, bits, spacings, numbers spaced as powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.errors import ShapeError, UnsupportedError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import broadcast_shapes
from symgrad.ops.creation import asarray, linspace
from symgrad.ops.declare import NodeLike, as_floats, composite, elementwise, require
from symgrad.ops.dtypes import result_type
from symgrad.ops.elementwise import multiply, pow, trunc
from symgrad.ops.leaves import full
from symgrad.ops.manipulate import broadcast_arrays
from symgrad.ops.numpy import kernels
from symgrad.ops.numpy.arithmetic import exp2, floats
from symgrad.ops.reduce import all
from symgrad.ops.select import clip, where
from symgrad.ops.shape import astype, moveaxis, reshape


@elementwise(np.bitwise_count, dtypes="int64 uint8")
def bitwise_count(x: NodeLike, /) -> Node:
    """How many bits of the magnitude of an integer are set."""
    ...


@elementwise(np.spacing, piecewise_constant=True)
def spacing(x: NodeLike, /) -> Node:
    """The distance from x to the next float away from 0."""
    ...


@composite(numpy=(np.ldexp,))
def ldexp(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 times 2 to the power of the integer x2."""
    mantissa, power = floats(x1), as_node(x2)
    require("biu", power.tensor)
    # In steps, so that a power that no float holds is reached where the product is a float. The
    # largest comes last, so that what becomes less than normal is rounded once.
    rest, most = astype(power, np.int64), int(np.finfo(mantissa.dtype).maxexp) - 2
    steps = []
    for _ in range(3):
        steps.append(clip(rest, -most, most))
        rest = rest - steps[-1]
    for step in reversed(steps):
        mantissa = multiply(mantissa, exp2(astype(step, mantissa.dtype)))
    return mantissa


@elementwise(
    kernels.binary_exponent,
    numpy=(),
    piecewise_constant=True,
    promote=lambda t: as_floats(t, kinds="biuf"),
    result=lambda t: np.dtype(np.int32),
    in_place=(),
    public=False,
)
def binary_exponent(x: NodeLike, /) -> Node:
    """The power of 2 of a float: x is a number from 0.5 to 1 times it, or its negative."""
    ...


@composite(numpy=(np.frexp,))
def frexp(x: NodeLike, /) -> tuple[Node, Node]:
    """A mantissa with a magnitude from 0.5 to 1, and the power of 2 that it is to be scaled by.

    >>> [y.item() for y in frexp(12.0)]
    [0.75, 4]
    """
    node = floats(x)
    power = binary_exponent(node)
    return ldexp(node, -power), power


@composite(numpy=(np.fix,))
def fix(x: NodeLike, /) -> Node:
    """x rounded towards 0."""
    return trunc(x)


@composite(numpy=(np.array_equiv,))
def array_equiv(a1: NodeLike, a2: NodeLike, /) -> Node:
    """Whether two arrays broadcast to one shape and have the same elements there."""
    a, b = as_node(a1), as_node(a2)
    try:
        broadcast_shapes(a.shape, b.shape)
    except ShapeError:
        return full((), False, dtype="bool")
    return all(a == b)


@composite(numpy=(np.real_if_close,))
def real_if_close(x: NodeLike, /, tol: float = 100) -> Node:
    """Real numbers as they are. Raises `UnsupportedError` for complex ones: take `real`.

    NumPy's dtype would depend on the values.
    """
    node = as_node(x)
    if node.tensor.is_complex:
        raise UnsupportedError(
            "whether the result is real depends on the values; write sg.real(x), or "
            "sg.where(sg.isclose(sg.imag(x), 0), sg.real(x), x)"
        )
    return node


@composite(numpy=(np.copy,))
def copy(x: NodeLike, /) -> Node:
    """x itself: nothing can be written into a node, so that a copy is the same."""
    return asarray(x)


@composite(numpy=(np.logspace,))
def logspace(
    start: NodeLike,
    stop: NodeLike,
    /,
    num: int = 50,
    endpoint: bool = True,
    base: NodeLike = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Node:
    """`num` numbers from base**start to base**stop, whose logarithms are evenly spaced.

    They are along a new axis of what start, stop and the base broadcast to.
    """
    number = isinstance(base, (int, float))
    bases = [] if number else [as_node(base)]
    if bases and bases[0].ndim:
        start, stop, _ = broadcast_arrays(start, stop, *bases)
    found = pow(base if number else bases[0], linspace(start, stop, num, endpoint=endpoint))
    return _placed(found, axis, dtype)


def _placed(found: Node, axis: int, dtype: Any) -> Node:
    found = moveaxis(found, 0, axis)
    return found if dtype is None else astype(found, dtype)


@composite(numpy=(np.geomspace,))
def geomspace(
    start: NodeLike,
    stop: NodeLike,
    /,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Node:
    """`num` numbers from `start` to `stop`, each the same multiple of the one before.

    They are along a new axis. The ends are to have one sign.

    >>> np.asarray(geomspace(1.0, 8.0, 4))
    array([1., 2., 4., 8.])
    """
    first, last = as_node(start), as_node(stop)
    wide = result_type(first, last, np.float64)
    first, last = astype(first, wide), astype(last, wide)
    part = linspace(0.0, 1.0, num, endpoint=endpoint)
    ndim = np.maximum(first.ndim, last.ndim).item()
    part = reshape(part, (-1, *(1,) * ndim))
    return _placed(where(part == 1, last, first * pow(last / first, part)), axis, dtype)
