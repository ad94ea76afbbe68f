"""Activations and their kin: sigmoid, softplus, softmax, logsumexp, xlogy, sinc.

All are stable: no intermediate value overflows, and no difference cancels, where the result is
well within range. The ones that shift by the largest element follow Blanchard, Higham and Higham,
Accurately computing the log-sum-exp and softmax functions, IMA J. Numer. Anal. 41 (2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.along import Along, AlongRule, Cuts, Spelling
from symgrad.ir.errors import DtypeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import POSITIVE, REAL, Builder, case
from symgrad.ir.operators import call
from symgrad.ir.types import TensorType, normalize_axes
from symgrad.ops import along, batch, kernels
from symgrad.ops.declare import (
    NodeLike,
    P,
    as_floats,
    composite,
    elementwise,
    in_single,
    op,
    require_order,
)
from symgrad.ops.elementwise import exp, expm1, log, log1p, negative
from symgrad.ops.flows import Masked, Partial
from symgrad.ops.logic import equal, isnan, logical_and, logical_not
from symgrad.ops.reduce import CASES, kept, normalize_over, reduced, sum, sum_along
from symgrad.ops.select import clip, extremum, where
from symgrad.ops.sides import held

# ---- sigmoids and hinges --------------------------------------------------------------------


@elementwise(
    kernels.sigmoid, partials=lambda y, x: (y * (1 - y),), promote=as_floats, expensive=True
)
def sigmoid(x: NodeLike, /) -> Node:
    """1 / (1 + exp(-x)), without overflow. d = y * (1 - y) dx."""
    ...


@elementwise(
    kernels.softplus,
    partials=lambda y, x: (sigmoid(x),),
    promote=as_floats,
    expensive=True,
    scratch=lambda t: (t,),
)
def softplus(x: NodeLike, /) -> Node:
    """log(1 + exp(x)), without overflow. d = sigmoid(x) dx."""
    ...


@composite()
def log_sigmoid(x: NodeLike, /) -> Node:
    """log(sigmoid(x)), without underflow."""
    return negative(softplus(negative(x)))


@elementwise(
    kernels.log1mexp,
    partials=lambda y, x: (-1 / expm1(negative(x)),),
    promote=as_floats,
    domain=((-3.0, -0.2),),
    expensive=True,
    unbounded_slope=True,
)
def log1mexp(x: NodeLike, /) -> Node:
    """log(1 - exp(x)), accurate for small and for large -x; NaN for x > 0."""
    ...


def _slope(t: TensorType, slope: Any) -> dict[str, Any]:
    is_number = isinstance(slope, (int, float, np.integer, np.floating))
    if not is_number or not math.isfinite(slope):
        raise DtypeError(f"the slope is a finite number, not {slope!r}")
    return {"slope": float(slope)}


def _leaky_relu_partials(y: Node, x: Node, slope: float) -> tuple[Partial, ...]:
    # Where x is not below it is above, or NaN: as in an extremum, a gradient flows to that.
    here = min(max(slope, 0), 1)  # the slope nearest to 0
    above = logical_not(x < 0 if here == 1 else x <= 0)
    below = x <= 0 if here == slope != 1 else x < 0
    between = () if here in (slope, 1) else ((equal(x, 0), here),)
    return (Masked(((above, 1), (below, slope), *between)),)


def _leaky_relu_infer(t: TensorType, *, slope: float) -> TensorType:
    return t


@elementwise(
    kernels.leaky_relu,
    partials=_leaky_relu_partials,
    infer=_leaky_relu_infer,
    promote=as_floats,
    normalize=_slope,
    preserves_zero=True,
    kinks="at 0, from slope to 1",
    locked=lambda side, y, x, slope: side.choose(side.lead(x), x, x * slope, isnan(held(x))),
    cases=(case((3, 4), slope=0.01), case((), slope=0.5), case((5,), slope=-2)),
)
def leaky_relu(x: NodeLike, /, slope: float = 0.01) -> Node:
    """x where it is positive, slope * x elsewhere. Its derivative at 0 is that nearest to 0."""
    ...


@composite()
def relu6(x: NodeLike, /) -> Node:
    """relu, but at most 6. Its derivative at 0 and at 6 is 0."""
    return clip(x, 0, 6)


@composite()
def hard_tanh(x: NodeLike, /) -> Node:
    """x, but at least -1 and at most 1. Its derivative at -1 and at 1 is 0."""
    node = as_node(x)
    # A number without a sign is at least 0, and has no -1 to be compared with.
    return clip(node, None if node.dtype.kind == "u" else -1, 1)


# ---- logsumexp and softmax ------------------------------------------------------------------


@op(
    infer=reduced,
    kernel=kernels.logsumexp,
    scratch=lambda t, **attrs: (t,),
    promote=as_floats,
    normalize=normalize_over,
    pullback=lambda g, y, x, axis, keepdims: kept(g, x, axis) * call("softmax", x, axis=axis),
    pushforward=lambda t, y, x, axis, keepdims: sum_along(
        t, call("softmax", x, axis=axis), axis, keepdims
    ),
    flops=lambda t, **attrs: 4 * t.size,
    batch=batch.over_axes,
    along=along.reducing("logaddexp"),
    out=True,
    expensive=True,
    cases=CASES,
)
def logsumexp(x: NodeLike, /, *, axis: Any = None, keepdims: bool = False) -> Node:
    """log(sum(exp(x))) over axes, without overflow; of no elements it is -inf.

    d = sum(softmax(x) dx).
    """
    ...


@in_single
def _softmax_flow(flow: Node, y: Node, x: Node, axis: tuple[int, ...]) -> Node:
    return y * (flow - sum_along(flow, y, axis, True))


def _softmax_infer(t: TensorType, *, axis: tuple[int, ...]) -> TensorType:
    return t


def _over_axes(**facts: Any) -> Callable[[Callable[P, Node]], Builder[P]]:
    return op(
        infer=_softmax_infer,
        promote=as_floats,
        normalize=lambda t, axis: {"axis": normalize_axes(axis, t.ndim)},
        batch=batch.over_axes,
        out=True,
        expensive=True,
        flops=lambda t, **attrs: 5 * t.size,
        cases=(case((3, 4), axis=-1), case((2, 3, 4), axis=(0, 2)), case((2, 0), axis=1)),
        **facts,
    )


def _softmax_along(spelling: Spelling) -> AlongRule:
    """Along its axes it is spelled with what is joined, which gives a number to every row."""
    rule = along.reducing("")

    def of_parts(types: tuple[TensorType, ...], cuts: Cuts, axis: Any) -> Along:
        return rule(types, cuts, axis=axis) or spelling

    return of_parts


@in_single
def _softmax_terms(x: Node, axis: tuple[int, ...]) -> Node:
    return exp(_minus_total(x, axis))


@in_single
def _minus_total(x: Node, axis: tuple[int, ...]) -> Node:
    return x - logsumexp(x, axis=axis, keepdims=True)


@_over_axes(
    kernel=kernels.softmax,
    along=_softmax_along(_softmax_terms),
    pullback=_softmax_flow,
    pushforward=_softmax_flow,
)
def softmax(x: NodeLike, /, *, axis: Any = -1) -> Node:
    """exp(x) / sum(exp(x)) over axes, without overflow; `axis` is one, several or None (all).

    At infinities it is what the formula gives: NaN for inf, and where all elements are -inf.
    d = softmax(x) * (dx - sum(softmax(x) dx)).
    """
    ...


@in_single
def _log_softmax_back(g: Node, y: Node, x: Node, axis: tuple[int, ...]) -> Node:
    return g - exp(y) * sum(g, axis=axis, keepdims=True)


@_over_axes(
    kernel=kernels.log_softmax,
    along=_softmax_along(_minus_total),
    pullback=_log_softmax_back,
    pushforward=lambda t, y, x, axis: t - sum_along(t, exp(y), axis, True),
    scratch=lambda t, **attrs: (t,),
)
def log_softmax(x: NodeLike, /, *, axis: Any = -1) -> Node:
    """log(softmax(x)), exact to rounding however large x is; `axis` is one, several or None (all).

    At infinities it is what the formula gives: NaN for inf, and where all elements are -inf.
    d = dx - sum(softmax(x) dx).
    """
    ...


# ---- extrema that pass over NaN -------------------------------------------------------------


@extremum(np.fmax, dual="fmin", largest=True, passes_nan=True)
def fmax(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The larger one; if one is NaN, the other. At a tie each gets half of the gradient."""
    ...


@extremum(np.fmin, dual="fmax", largest=False, passes_nan=True)
def fmin(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The smaller one; if one is NaN, the other. At a tie each gets half of the gradient."""
    ...


# ---- products with a logarithm, sinc --------------------------------------------------------


def _xlogy_partials(y: Node, a: Node, b: Node) -> tuple[Partial, ...]:
    # Only where both are 0 does the quotient have no value; 0 is its limit from x1 = 0.
    safe = where(logical_and(equal(a, 0), equal(b, 0)), 1, b)
    return log(b), a / safe


@elementwise(
    kernels.xlogy,
    partials=_xlogy_partials,
    promote=as_floats,
    domain=(REAL, POSITIVE),
    expensive=True,
    unbounded_slope=True,
)
def xlogy(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 * log(x2), and 0 where x1 is 0, unless x2 is NaN. d = log(x2) dx1 + x1 / x2 dx2."""
    ...


def _xlog1py_partials(y: Node, a: Node, b: Node) -> tuple[Partial, ...]:
    safe = where(logical_and(equal(a, 0), equal(b, -1)), 0, b)
    return log1p(b), a / (1 + safe)


@elementwise(
    kernels.xlog1py,
    partials=_xlog1py_partials,
    promote=as_floats,
    domain=(REAL, POSITIVE),
    preserves_zero=True,
    expensive=True,
    unbounded_slope=True,
)
def xlog1py(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 * log(1 + x2), and 0 where x1 is 0, unless x2 is NaN; accurate for small x2."""
    ...


def _sinc_partials(y: Node, x: Node, order: int) -> tuple[Partial, ...]:
    return (sinc_p(x, order=order + 1),)


def order_infer(t: TensorType, *, order: int) -> TensorType:
    """The type of a derivative of an order, element by element."""
    require_order(order)
    return t


@elementwise(
    kernels.sinc,
    partials=_sinc_partials,
    infer=order_infer,
    promote=as_floats,
    in_place=(),
    expensive=True,
    cases=(case((3, 4), order=0), case((), order=1), case((50,), order=2), case((50,), order=3)),
)
def sinc_p(x: NodeLike, /, order: int) -> Node:
    """A derivative of sin(pi * x) / (pi * x), of any order."""
    ...


@composite(numpy=(np.sinc,))
def sinc(x: NodeLike, /) -> Node:
    """sin(pi * x) / (pi * x), and 1 at 0: NumPy's sinc."""
    node = as_node(x)
    return sinc_p(call("astype", node, "float64") if node.dtype.kind in "iu" else node, order=0)
