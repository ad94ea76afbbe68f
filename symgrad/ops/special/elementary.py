"""Special functions that need no SciPy: entropies, Lambert's W, orthogonal polynomials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.ir.errors import ArgumentError, GraphError
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import POSITIVE, UNIT, case
from symgrad.ir.types import TensorType
from symgrad.ops.activations import xlogy
from symgrad.ops.declare import NodeLike, as_floats, composite, elementwise, require_order
from symgrad.ops.elementwise import exp, log, negative
from symgrad.ops.flows import Partial
from symgrad.ops.logic import equal, less, logical_and
from symgrad.ops.select import where
from symgrad.ops.special import elementary_kernels as kernels
from symgrad.ops.special.normal import at_least_single

NAMESPACE = "special"

# ---- entropies ------------------------------------------------------------------------------


@composite()
def entr(x: NodeLike, /) -> Node:
    """-x * log(x), 0 at 0 and -inf below: what a probability adds to an entropy.

    >>> float(sg.special.entr(0.0))
    0.0

    d = -1 - log(x) dx, which is inf at 0.
    """
    return where(less(x, 0), -np.inf, xlogy(negative(x), x))


def _over(a: Node, b: Node) -> Node:
    """a / b, and 0 where a is 0."""
    return a / where(equal(a, 0), 1, b)


def _log_ratio(a: Node, b: Node) -> Node:
    """log(a / b), and 0 where both are 0."""
    return where(logical_and(equal(a, 0), equal(b, 0)), 0, log(a / b))


def _rel_entr_partials(y: Node, a: Node, b: Node) -> tuple[Partial, ...]:
    return _log_ratio(a, b) + 1, -_over(a, b)


@elementwise(
    kernels.rel_entr,
    partials=_rel_entr_partials,
    promote=as_floats,
    domain=(POSITIVE, POSITIVE),
    expensive=True,
    unbounded_slope=True,
)
def rel_entr(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 * log(x1 / x2), 0 where x1 is 0 and x2 is not negative, inf where one is negative.

    The sum over two laws is the divergence of Kullback and Leibler.
    d = (log(x1 / x2) + 1) dx1 - x1 / x2 dx2.
    """
    ...


def _kl_div_partials(y: Node, a: Node, b: Node) -> tuple[Partial, ...]:
    return _log_ratio(a, b), 1 - _over(a, b)


@elementwise(
    kernels.kl_div,
    partials=_kl_div_partials,
    promote=as_floats,
    domain=(POSITIVE, POSITIVE),
    expensive=True,
    unbounded_slope=True,
)
def kl_div_p(x1: NodeLike, x2: NodeLike, /) -> Node:
    """rel_entr(x1, x2) - x1 + x2."""
    ...


# ---- Lambert's W ----------------------------------------------------------------------------


def _lambertw_attrs(t: TensorType, k: Any) -> dict[str, Any]:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k not in (0, -1):
        raise ArgumentError(f"the branch k of lambertw is 0 or -1, the real ones, not {k!r}")
    return {"k": int(k)}


def _lambertw_infer(t: TensorType, *, k: int) -> TensorType:
    if k not in (0, -1):
        raise GraphError(f"lambertw has the branches 0 and -1, and no {k}")
    return t


def _lambertw_partials(y: Node, x: Node, k: int) -> tuple[Partial, ...]:
    # y / (x * (1 + y)) in a form that has a value at 0.
    return (1 / (x + exp(y)),)


@elementwise(
    kernels.lambertw,
    partials=_lambertw_partials,
    infer=_lambertw_infer,
    promote=at_least_single,
    normalize=_lambertw_attrs,
    expensive=True,
    unbounded_slope=True,
    domain=((-0.33, -0.05),),
    cases=(case((3, 4), k=0), case((), k=-1), case((5,), k=-1), case((0,), k=0)),
)
def lambertw(x: NodeLike, /, k: int = 0) -> Node:
    """Lambert's W, the real y with y * exp(y) = x, for x >= -1 / e; NaN below, where it is complex.

    The branch k = 0 is -1 and more; that of k = -1 is -1 and less, for x from -1 / e to 0. SciPy's
    function gives complex numbers, of which these are the real ones.

    >>> float(lambertw(0.0)), float(lambertw(-0.1, k=-1))
    (0.0, -3.577152063957297)

    d = 1 / (x + exp(y)) dx, which is 1 at 0. Raises `ArgumentError` for another k.
    """
    ...


# ---- orthogonal polynomials -----------------------------------------------------------------


def _gegenbauer_infer(t: TensorType, *, n: int, alpha: float) -> TensorType:
    require_order(n)
    if not 0 < alpha < math.inf:
        raise ArgumentError(f"alpha is a positive number, not {alpha}")
    return t


def _gegenbauer_attrs(t: TensorType, n: Any, alpha: Any) -> dict[str, Any]:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise ArgumentError(f"the degree of a polynomial is an int from 0 on, not {n!r}")
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float, np.number)):
        raise ArgumentError(f"alpha is a number, not {alpha!r}: no gradient flows to it")
    return {"n": int(n), "alpha": float(alpha)}


def _gegenbauer_partials(y: Node, x: Node, n: int, alpha: float) -> tuple[Partial, ...]:
    return (2 * alpha * gegenbauer(x, n=n - 1, alpha=alpha + 1) if n else None,)


@elementwise(
    kernels.gegenbauer,
    partials=_gegenbauer_partials,
    infer=_gegenbauer_infer,
    promote=at_least_single,
    normalize=_gegenbauer_attrs,
    expensive=True,
    domain=(UNIT,),
    cases=(
        case((3, 4), n=5, alpha=0.5),
        case((), n=3, alpha=1.0),
        case((5,), n=1, alpha=2.5),
        case((0,), n=2, alpha=0.5),
    ),
    public=False,
)
def gegenbauer(x: NodeLike, /, n: int, alpha: float) -> Node:
    """Gegenbauer's polynomial of a degree n."""
    ...


@composite()
def eval_gegenbauer(n: int, alpha: float, x: NodeLike, /) -> Node:
    """Gegenbauer's polynomial of degree n at x, for alpha > 0; n and alpha are numbers.

    d = 2 * alpha * eval_gegenbauer(n - 1, alpha + 1, x) dx (DLMF 18.9.19). Raises `ArgumentError`
    for what is no degree, or no number.
    """
    return gegenbauer(as_node(x), n=n, alpha=alpha)


@composite()
def eval_legendre(n: int, x: NodeLike, /) -> Node:
    """Legendre's polynomial of degree n at x.

    >>> np.asarray(sg.special.eval_legendre(2, [0.0, 1.0]))
    array([-0.5,  1. ])

    It is Gegenbauer's for alpha = 1/2, and so are its derivatives, at -1 and 1 too. Raises
    `ArgumentError` unless n is an int from 0 on.
    """
    return gegenbauer(as_node(x), n=n, alpha=0.5)
