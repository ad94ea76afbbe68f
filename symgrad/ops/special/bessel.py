"""Bessel functions, and Airy's: their values are SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, sub
from typing import Any

import numpy as np

from symgrad.ir.errors import GraphError
from symgrad.ir.node import Node
from symgrad.ir.op import POSITIVE, REAL, Builder, case
from symgrad.ir.operators import call
from symgrad.ir.types import TensorType
from symgrad.ops.declare import NodeLike, P, composite, elementwise
from symgrad.ops.elementwise import abs, exp, negative, sign, square
from symgrad.ops.flows import Partial
from symgrad.ops.logic import isinf
from symgrad.ops.select import where
from symgrad.ops.sides import held
from symgrad.ops.special.gamma import BINARY, PAIR
from symgrad.ops.special.normal import UNARY
from symgrad.ops.special.scipys import from_scipy, needs_scipy, scipys

NAMESPACE = "special"
MOST_TERMS = 12


def _of_order(
    name: str, joined: Callable[[Node, Node], Node], divisor: int = 2
) -> Callable[[Callable[P, Node]], Builder[P]]:
    """Declare a function of an order whose slope is made of those of the orders beside it."""

    def partials(y: Node, v: Node, x: Node) -> tuple[Partial, ...]:
        slope = joined(*(call(name, order, x) / divisor for order in (v - 1, v + 1)))
        # A difference of infinities, near 0, where the function leaves its own.
        return None, where(isinf(y), negative(y), slope) if joined is sub else slope

    return from_scipy(name, partials, PAIR, BINARY, unbounded_slope=True, no_slope=(0,))


@_of_order("jv", sub)
def jv(v: NodeLike, x: NodeLike, /) -> Node:
    """The Bessel function of the first kind, of a real order v; NaN where it is complex.

    d = (jv(v - 1, x) - jv(v + 1, x)) / 2 dx (DLMF 10.6.1); to ask for a gradient by v is a
    `GradientError`.
    """
    ...


@_of_order("yv", sub)
def yv(v: NodeLike, x: NodeLike, /) -> Node:
    """The Bessel function of the second kind, of a real order v, for x > 0.

    d = (yv(v - 1, x) - yv(v + 1, x)) / 2 dx (DLMF 10.6.1); to ask for a gradient by v is a
    `GradientError`.
    """
    ...


@_of_order("iv", add)
def iv(v: NodeLike, x: NodeLike, /) -> Node:
    """The modified Bessel function of the first kind, of a real order v; NaN where it is complex.

    d = (iv(v - 1, x) + iv(v + 1, x)) / 2 dx (DLMF 10.29.1); to ask for a gradient by v is a
    `GradientError`.
    """
    ...


@_of_order("kv", add, -2)
def kv(v: NodeLike, x: NodeLike, /) -> Node:
    """The modified Bessel function of the second kind, of a real order v, for x > 0.

    d = -(kv(v - 1, x) + kv(v + 1, x)) / 2 dx (DLMF 10.29.1); to ask for a gradient by v is a
    `GradientError`.
    """
    ...


# ---- of order 0 and 1 -----------------------------------------------------------------------


def _over(y: Node, x: Node, sign: int, scaled: float | Node = 1) -> Node:
    """y / x, of y = j1(x) or, with the sign 1, i1(x), scaled.

    Near 0 it is the power series (DLMF 10.2.2), whose derivatives lose no digits.
    """
    near = abs(x) < 1
    part = square(where(near, x, 0)) * (sign / 4)
    series: Any = 0.5
    for k in range(MOST_TERMS, 0, -1):
        series = 0.5 + series * part / (k * (k + 1))
    return where(near, series * scaled, y / where(near, 1, x))


@from_scipy("i0", lambda y, x: (call("i1", x),), (REAL,), UNARY, numpy=(np.i0,))
def i0(x: NodeLike, /) -> Node:
    """The modified Bessel function of the first kind, of order 0. d = i1(x) dx."""
    ...


def _i1_partials(y: Node, x: Node) -> tuple[Partial, ...]:
    return (where(isinf(y), abs(y), i0(x) - _over(y, x, 1)),)


@from_scipy("i1", _i1_partials, (REAL,), UNARY, preserves_zero=True)
def i1(x: NodeLike, /) -> Node:
    """The modified Bessel function of the first kind, of order 1. d = i0(x) - y / x dx."""
    ...


def bessel_gap(x: Node) -> Node:
    """1 - i1(x) / i0(x) for x > 0; for large x by its series."""
    series: Any = 0.0
    for c in (375733 / 32768, 103 / 32, 1073 / 1024, 13 / 32, 25 / 128, 1 / 8, 1 / 8, 1 / 2):
        series = (series + c) / x
    return where(x > 60, series, 1 - call("i1e", x) / i0e(x))


@from_scipy(
    "i0e",
    lambda y, x: (-sign(x) * y * bessel_gap(abs(x)),),
    (POSITIVE,),
    UNARY,
    locked=lambda side, y, x: where(held(x) == 0, 1 - x * sign(side.lead(x)), y),
    kinks="at 0",
)
def i0e(x: NodeLike, /) -> Node:
    """exp(-abs(x)) * i0(x), without overflow. Its derivative at 0 is 0."""
    ...


@from_scipy(
    "i1e",
    lambda y, x: (i0e(x) * bessel_gap(abs(x)) - _over(y, x, 1, exp(-abs(x))),),
    (POSITIVE,),
    UNARY,
    preserves_zero=True,
)
def i1e(x: NodeLike, /) -> Node:
    """exp(-abs(x)) * i1(x), without overflow."""
    ...


@from_scipy("j0", lambda y, x: (-call("j1", x),), (REAL,), UNARY)
def j0(x: NodeLike, /) -> Node:
    """The Bessel function of the first kind, of order 0. d = -j1(x) dx."""
    ...


@from_scipy("j1", lambda y, x: (j0(x) - _over(y, x, -1),), (REAL,), UNARY, preserves_zero=True)
def j1(x: NodeLike, /) -> Node:
    """The Bessel function of the first kind, of order 1. d = j0(x) - y / x dx."""
    ...


# ---- Airy -----------------------------------------------------------------------------------


def _airy_kernel(x: Any, part: int, out: Any = None) -> Any:
    outs = tuple(out if i == part else None for i in range(4))
    return scipys("airy")(x, out=outs)[part]


def _airy_source(here: bool, part: int) -> str:
    place = range(4).index(part)  # a plain int: what a file says is not written into source
    outs = ", ".join("{out}" if i == place else "None" for i in range(4))
    return f"scipy.special.airy({{0}}, out=({outs}))[{place}]"


def _airy_infer(t: TensorType, *, part: int) -> TensorType:
    if not 0 <= part < 4:
        raise GraphError(f"airy has the parts 0 to 3, and no {part}")
    return t


def _airy_partials(y: Node, x: Node, part: int) -> tuple[Partial, ...]:
    return (x * airy_p(x, part=part - 1) if part % 2 else airy_p(x, part=part + 1),)


@elementwise(
    _airy_kernel,
    partials=_airy_partials,
    infer=_airy_infer,
    promote=needs_scipy("airy"),
    source=_airy_source,
    expensive=True,
    domain=(REAL,),
    cases=(case((3, 4), part=0), case((), part=1), case((5,), part=2), case((0,), part=3)),
)
def airy_p(x: NodeLike, /, part: int) -> Node:
    """Ai(x), its derivative, Bi(x) or its derivative."""
    ...


@composite()
def airy(x: NodeLike, /) -> tuple[Node, Node, Node, Node]:
    """Airy's functions and their derivatives: Ai(x), Ai'(x), Bi(x), Bi'(x).

    Both solve y'' = x * y, which gives derivatives of every order (DLMF 9.2).

    >>> ai, slope, bi, other_slope = sg.special.airy(0.0)
    >>> round(float(ai), 12)
    0.355028053888
    """
    ai, ai_slope, bi, bi_slope = (airy_p(x, part=part) for part in range(4))
    return ai, ai_slope, bi, bi_slope
