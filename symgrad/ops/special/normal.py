"""The error function and the normal distribution, with their inverses; logit.

None needs SciPy. float32 stays float32, float64 stays float64, and what is less precise becomes
float32; the results are right to nine units in the last place, in the tails too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.node import Node
from symgrad.ir.op import REAL, Builder, Interval, case
from symgrad.ir.types import DType, TensorType
from symgrad.ops.declare import NodeLike, P, elementwise, require
from symgrad.ops.elementwise import exp, square
from symgrad.ops.flows import Partial
from symgrad.ops.special import kernels

UNARY = (case((3, 4)), case(()), case((2, 0, 3)))


def at_least_single(*types: TensorType) -> tuple[DType, ...]:
    """The dtype to compute in: float32, or float64 if an operand needs it, as in SciPy."""
    require("iuf", *types)
    return (np.result_type(np.float32, *(t.dtype for t in types)),) * len(types)


def _work(t: TensorType) -> tuple[TensorType, ...]:
    return (t.with_shape((4, min(t.size, 16384) if isinstance(t.size, int) else 16384)),)


def _special(
    kernel: Callable[..., Any],
    partial: Callable[[Node, Node], Partial],
    domain: Interval = REAL,
    in_chunks: bool = True,
    **facts: Any,
) -> Callable[[Callable[P, Node]], Builder[P]]:
    """Declare a function of one variable by its kernel and `partial(y, x)`, its derivative."""
    if in_chunks:
        facts["scratch"] = _work
    return elementwise(
        kernel,
        partials=lambda y, x: (partial(y, x),),
        promote=at_least_single,
        domain=(domain,),
        expensive=True,
        cases=UNARY,
        **facts,
    )


@_special(
    kernels.erf,
    lambda y, x: exp(-square(x)) * (2 / math.sqrt(math.pi)),
    preserves_zero=True,
)
def erf(x: NodeLike, /) -> Node:
    """The error function.

    >>> np.asarray(erf([0.0, 1.0])).round(4)
    array([0.    , 0.8427])

    d = 2 / sqrt(pi) * exp(-x**2) dx.
    """
    ...


@_special(kernels.erfc, lambda y, x: exp(-square(x)) * (-2 / math.sqrt(math.pi)))
def erfc(x: NodeLike, /) -> Node:
    """1 - erf(x), exact to rounding where it is small."""
    ...


def _erfcx_partial(y: Node, x: Node) -> Node:
    return erfcx_slope(x)


@_special(kernels.erfcx, _erfcx_partial, unbounded_slope=True)
def erfcx(x: NodeLike, /) -> Node:
    """exp(x**2) * erfc(x), without overflow and underflow for x > 0."""
    ...


@_special(
    kernels.erfcx_slope, lambda y, x: 2 * (erfcx(x) + x * y), unbounded_slope=True, public=False
)
def erfcx_slope(x: NodeLike, /) -> Node:
    """The derivative of erfcx, 2 * x * erfcx(x) - 2 / sqrt(pi), exact for large x too."""
    ...


@_special(kernels.ndtr, lambda y, x: exp(-0.5 * square(x)) * (1 / math.sqrt(2 * math.pi)))
def ndtr(x: NodeLike, /) -> Node:
    """The normal distribution function: the area under the bell curve up to x.

    >>> np.asarray(ndtr([0.0, 1.96])).round(4)
    array([0.5  , 0.975])

    d = exp(-x**2 / 2) / sqrt(2 * pi) dx.
    """
    ...


@_special(kernels.log_ndtr, lambda y, x: math.sqrt(2 / math.pi) / erfcx(x * -math.sqrt(0.5)))
def log_ndtr(x: NodeLike, /) -> Node:
    """log(ndtr(x)), exact to rounding however small it is. d = exp(-x**2 / 2 - y) / sqrt(2 pi)."""
    ...


@_special(
    kernels.ndtri,
    lambda y, x: exp(0.5 * square(y)) * math.sqrt(2 * math.pi),
    domain=(0.05, 0.95),
    unbounded_slope=True,
)
def ndtri(x: NodeLike, /) -> Node:
    """The y with ndtr(y) = x, for x from 0 (-inf) to 1 (inf); NaN elsewhere.

    d = sqrt(2 * pi) * exp(y**2 / 2) dx.
    """
    ...


@_special(
    kernels.erfinv,
    lambda y, x: exp(square(y)) * (math.sqrt(math.pi) / 2),
    domain=(-0.9, 0.9),
    unbounded_slope=True,
    preserves_zero=True,
)
def erfinv(x: NodeLike, /) -> Node:
    """The y with erf(y) = x, for x from -1 (-inf) to 1 (inf); NaN elsewhere."""
    ...


@_special(
    kernels.erfcinv,
    lambda y, x: exp(square(y)) * (-math.sqrt(math.pi) / 2),
    domain=(0.1, 1.9),
    unbounded_slope=True,
)
def erfcinv(x: NodeLike, /) -> Node:
    """The y with erfc(y) = x, for x from 0 (inf) to 2 (-inf); NaN elsewhere."""
    ...


@_special(
    kernels.logit,
    lambda y, x: 1 / (x * (1 - x)),
    domain=(0.05, 0.95),
    in_chunks=False,
    unbounded_slope=True,
)
def logit(x: NodeLike, /) -> Node:
    """log(x / (1 - x)), for x from 0 (-inf) to 1 (inf), also near 1/2; sigmoid inverts it."""
    ...
