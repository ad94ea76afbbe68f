"""Exponential, trigonometric and elliptic integrals, and Gauss's hypergeometric function.

Their values are SciPy's.
"""

from __future__ import annotations

import math
from typing import Any

from symgrad.ir.errors import GraphError
from symgrad.ir.node import Node
from symgrad.ir.op import POSITIVE, case
from symgrad.ir.types import TensorType
from symgrad.ops.activations import sinc
from symgrad.ops.declare import NodeLike, composite, elementwise
from symgrad.ops.elementwise import exp
from symgrad.ops.flows import Partial
from symgrad.ops.special.normal import UNARY
from symgrad.ops.special.scipys import from_scipy, needs_scipy, scipys
from symgrad.ops.trigonometry import cos

NAMESPACE = "special"


@from_scipy("expi", lambda y, x: (exp(x) / x,), (POSITIVE,), UNARY, unbounded_slope=True)
def expi(x: NodeLike, /) -> Node:
    """The exponential integral Ei(x), the principal value of that of exp(t) / t from -inf to x.

    d = exp(x) / x dx; at 0 it is -inf.
    """
    ...


@from_scipy("exp1", lambda y, x: (-exp(-x) / x,), (POSITIVE,), UNARY, unbounded_slope=True)
def exp1(x: NodeLike, /) -> Node:
    """The exponential integral E1(x), that of exp(-t) / t from x to inf, for x >= 0.

    d = -exp(-x) / x dx; at 0 it is inf.
    """
    ...


# ---- sine and cosine integrals --------------------------------------------------------------


def _sici_kernel(x: Any, part: int, out: Any = None) -> Any:
    return scipys("sici")(x, out=(None, out) if part else (out, None))[part]


def _sici_source(here: bool, part: int) -> str:
    place = range(2).index(part)  # a plain int: what a file says is not written into source
    outs = "None, {out}" if place else "{out}, None"
    return f"scipy.special.sici({{0}}, out=({outs}))[{place}]"


def _sici_infer(t: TensorType, *, part: int) -> TensorType:
    if part not in (0, 1):
        raise GraphError(f"sici has the parts 0 and 1, and no {part}")
    return t


def _sici_partials(y: Node, x: Node, part: int) -> tuple[Partial, ...]:
    return (cos(x) / x if part else sinc(x / math.pi),)


@elementwise(
    _sici_kernel,
    partials=_sici_partials,
    infer=_sici_infer,
    promote=needs_scipy("sici"),
    source=_sici_source,
    expensive=True,
    unbounded_slope=True,
    domain=(POSITIVE,),
    cases=(case((3, 4), part=0), case((), part=1), case((0,), part=0)),
)
def sici_p(x: NodeLike, /, part: int) -> Node:
    """The sine integral, or the cosine integral."""
    ...


@composite()
def sici(x: NodeLike, /) -> tuple[Node, Node]:
    """The sine and the cosine integral: Si(x) and Ci(x), the latter of abs(x).

    d = sin(x) / x dx and cos(x) / x dx.

    >>> si, ci = sg.special.sici(1.0)
    >>> round(float(si), 12), round(float(ci), 12)
    (0.946083070367, 0.337403922901)
    """
    return sici_p(x, part=0), sici_p(x, part=1)


# ---- elliptic integrals ---------------------------------------------------------------------


def _ellipk_partials(y: Node, m: Node) -> tuple[Partial, ...]:
    return (hyp2f1(1.5, 1.5, 2.0, m) * (math.pi / 8),)


@from_scipy("ellipk", _ellipk_partials, ((-3.0, 0.9),), UNARY, unbounded_slope=True)
def ellipk(m: NodeLike, /) -> Node:
    """The complete elliptic integral of the first kind, of a parameter m <= 1 (not a modulus).

    It is pi / 2 * hyp2f1(1/2, 1/2, 1, m) (DLMF 19.5.1), which gives the derivative, without
    cancellation near 0.
    """
    ...


def _ellipe_partials(y: Node, m: Node) -> tuple[Partial, ...]:
    return (hyp2f1(0.5, 1.5, 2.0, m) * (-math.pi / 8),)


@from_scipy("ellipe", _ellipe_partials, ((-3.0, 0.9),), UNARY, unbounded_slope=True)
def ellipe(m: NodeLike, /) -> Node:
    """The complete elliptic integral of the second kind, of a parameter m <= 1 (not a modulus).

    It is pi / 2 * hyp2f1(-1/2, 1/2, 1, m) (DLMF 19.5.2), which gives the derivative, without
    cancellation near 0.
    """
    ...


def _hyp2f1_partials(y: Node, a: Node, b: Node, c: Node, x: Node) -> tuple[Partial, ...]:
    return None, None, None, a * b / c * hyp2f1(a + 1, b + 1, c + 1, x)


@from_scipy(
    "hyp2f1",
    _hyp2f1_partials,
    (POSITIVE, POSITIVE, POSITIVE, (-0.9, 0.9)),
    (case((3, 4), (3, 4), (3, 4), (3, 4)), case((), (3, 1), (), (4,)), case((), (), (), ())),
    unbounded_slope=True,
    no_slope=(0, 1, 2),
)
def hyp2f1(a: NodeLike, b: NodeLike, c: NodeLike, x: NodeLike, /) -> Node:
    """Gauss's hypergeometric function of x <= 1.

    d = a * b / c * hyp2f1(a + 1, b + 1, c + 1, x) dx (DLMF 15.5.1); to ask for a gradient by a, b
    or c is a `GradientError`.
    """
    ...
