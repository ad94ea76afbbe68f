"""Trigonometric and hyperbolic functions, element by element."""

from __future__ import annotations

from functools import partial

import numpy as np

from symgrad.ir.node import Node
from symgrad.ir.op import ABOVE_ONE, POSITIVE, REAL, UNIT
from symgrad.ir.operators import call
from symgrad.ops.declare import NodeLike, elementwise
from symgrad.ops.elementwise import sqrt
from symgrad.ops.flows import Partial
from symgrad.ops.leaves import ones_like
from symgrad.ops.select import where
from symgrad.ops.sides import Side, held

_steep = partial(elementwise, expensive=True, unbounded_slope=True)


@elementwise(np.sin, partials=lambda y, x: (call("cos", x),), preserves_zero=True, expensive=True)
def sin(x: NodeLike, /) -> Node:
    """The sine of x radians."""
    ...


@elementwise(np.cos, partials=lambda y, x: (-sin(x),), expensive=True)
def cos(x: NodeLike, /) -> Node:
    """The cosine of x radians."""
    ...


@_steep(np.tan, partials=lambda y, x: (1 + y * y,), domain=(UNIT,), preserves_zero=True)
def tan(x: NodeLike, /) -> Node:
    """The tangent of x radians."""
    ...


@_steep(
    np.arcsin,
    partials=lambda y, x: (1 / sqrt((1 - x) * (1 + x)),),
    domain=(UNIT,),
    preserves_zero=True,
)
def asin(x: NodeLike, /) -> Node:
    """The inverse sine, in radians."""
    ...


@_steep(np.arccos, partials=lambda y, x: (-1 / sqrt((1 - x) * (1 + x)),), domain=(UNIT,))
def acos(x: NodeLike, /) -> Node:
    """The inverse cosine, in radians."""
    ...


@elementwise(
    np.arctan, partials=lambda y, x: (1 / (1 + x * x),), preserves_zero=True, expensive=True
)
def atan(x: NodeLike, /) -> Node:
    """The inverse tangent, in radians."""
    ...


def _atan2_partials(y: Node, a: Node, b: Node) -> tuple[Partial, ...]:
    r = a * a + b * b
    safe = where(r == 0, ones_like(r), r)
    return b / safe, -(a / safe)


def _atan2_locked(side: Side, y: Node, a: Node, b: Node) -> Node:
    """The angle at which a point leaves the origin, or the negative axis: pi or -pi beside it."""
    to_a, to_b = held(a), held(b)
    for s, t in side.both(a, b):
        stays = (to_a == 0) & (to_b == 0)
        to_a, to_b = where(stays, s, to_a), where(stays, t, to_b)
    lead = side.lead(a)
    turned = (to_a == 0) & (to_b < 0) & (lead != 0)
    angle = where(turned, call("copysign", np.pi, lead), call("atan2", to_a, to_b))
    return y + (held(angle) - held(y))


@elementwise(
    np.arctan2,
    partials=_atan2_partials,
    locked=_atan2_locked,
    jumps=True,
    domain=(REAL, POSITIVE),
    expensive=True,
)
def atan2(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The angle of the point (x2, x1) in radians, from -pi to pi."""
    ...


@_steep(np.sinh, partials=lambda y, x: (call("cosh", x),), preserves_zero=True)
def sinh(x: NodeLike, /) -> Node:
    """The hyperbolic sine."""
    ...


@_steep(np.cosh, partials=lambda y, x: (sinh(x),))
def cosh(x: NodeLike, /) -> Node:
    """The hyperbolic cosine."""
    ...


@elementwise(
    np.tanh,
    of_complex="complex_tanh",
    partials=lambda y, x: (1 - y * y,),
    preserves_zero=True,
    expensive=True,
)
def tanh(x: NodeLike, /) -> Node:
    """The hyperbolic tangent. d tanh(x) = (1 - tanh(x)**2) dx.

    Of a complex number whose real part is infinite, the imaginary part is 0 with the sign of that
    of x, as the array API standard has it; NumPy's has that of sin(2 * imag(x)).
    """
    ...


@elementwise(
    np.arcsinh, partials=lambda y, x: (1 / sqrt(x * x + 1),), preserves_zero=True, expensive=True
)
def asinh(x: NodeLike, /) -> Node:
    """The inverse hyperbolic sine."""
    ...


def _acosh_partials(y: Node, x: Node) -> tuple[Partial, ...]:
    if x.tensor.is_complex:  # The root of the product has another cut than acosh.
        return (1 / (sqrt(x - 1) * sqrt(x + 1)),)
    return (1 / sqrt((x - 1) * (x + 1)),)


@_steep(np.arccosh, partials=_acosh_partials, domain=(ABOVE_ONE,))
def acosh(x: NodeLike, /) -> Node:
    """The inverse hyperbolic cosine, for x >= 1."""
    ...


@_steep(
    np.arctanh,
    partials=lambda y, x: (1 / ((1 - x) * (1 + x)),),
    domain=(UNIT,),
    preserves_zero=True,
)
def atanh(x: NodeLike, /) -> Node:
    """The inverse hyperbolic tangent, for -1 <= x <= 1."""
    ...
