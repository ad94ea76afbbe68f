"""Division with a remainder, element by element."""

from __future__ import annotations

import numpy as np

from symgrad.ir.node import Node
from symgrad.ir.op import POSITIVE, REAL
from symgrad.ops import kernels
from symgrad.ops.declare import NodeLike, elementwise
from symgrad.ops.elementwise import multiply, subtract
from symgrad.ops.flows import Partial, total
from symgrad.ops.logic import equal, logical_and
from symgrad.ops.select import where
from symgrad.ops.sides import Side, held


def _falls(side: Side, a: Node, b: Node) -> Node:
    """Where x2 is about to be taken once less from x1, of which it leaves nothing."""
    left = subtract(a, multiply(held(times(a, b)), b))
    falls = multiply(side.motion(left), held(b)) < 0
    return logical_and(equal(remainder(held(a), held(b)), 0), falls)


def _both_locked(side: Side, y: Node, a: Node, b: Node) -> list[Node]:
    falls = _falls(side, a, b)
    return [where(falls, y[0] - 1, y[0]), where(falls, y[1] + b, y[1])]


def _once_less(side: Side, y: Node, a: Node, b: Node) -> Node:
    return where(_falls(side, a, b), y - 1, y)


@elementwise(
    kernels.floor_of_quotient,
    like=np.floor_divide,
    piecewise_constant=True,
    locked=_once_less,
    jumps=True,
    domain=(REAL, POSITIVE),
)
def floor_divide(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 / x2 rounded down. Its derivative is 0.

    Where one of them is infinite it is x1 / x2, as the array API standard prefers; NumPy's is NaN
    for an infinite x1, and -1 for an infinite x2 of the other sign.
    """
    ...


@elementwise(
    np.floor_divide,
    numpy=(),
    piecewise_constant=True,
    locked=_once_less,
    jumps=True,
    domain=(REAL, POSITIVE),
    public=False,
)
def times(x1: NodeLike, x2: NodeLike, /) -> Node:
    """How often x2 is taken from x1 to leave the remainder: (x1 - remainder(x1, x2)) / x2.

    It is floor_divide(x1, x2) but at infinities, where the remainder may be x2 itself.
    """
    ...


def _remainder_partials(y: Node, a: Node, b: Node) -> tuple[Partial, ...]:
    return 1, -times(a, b)


@elementwise(
    np.remainder,
    partials=_remainder_partials,
    locked=lambda side, y, a, b: where(_falls(side, a, b), y + b, y),
    jumps=True,
    domain=(REAL, POSITIVE),
)
def remainder(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 - x2 * floor(x1 / x2): the remainder, with the sign of x2."""
    ...


def _divmod_vjp(g: tuple[Node | None, ...], y: Node, a: Node, b: Node) -> tuple[Node | None, ...]:
    return (None, None) if g[1] is None else (g[1], -(g[1] * times(a, b)))


def _divmod_jvp(t: tuple[Node | None, ...], y: Node, a: Node, b: Node) -> tuple[Node | None, ...]:
    return None, total(t[0], None if t[1] is None else -(t[1] * times(a, b)))


@elementwise(
    kernels.quotient_and_remainder,
    like=np.divmod,
    vjp=_divmod_vjp,
    jvp=_divmod_jvp,
    locked=_both_locked,
    jumps=True,
    domain=(REAL, POSITIVE),
    projections=("floor_divide", "remainder"),
    in_place=(),
)
def divmod(x1: NodeLike, x2: NodeLike, /) -> Node:
    """floor_divide(x1, x2) and remainder(x1, x2), as a node with two results."""
    ...
