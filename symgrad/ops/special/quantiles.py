"""The gamma and beta functions, and the inverses of the incomplete ones; Student's t.

Their values are SciPy's. An inverse has the derivatives of an implicit function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.errors import ArgumentError
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import POSITIVE, REAL
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.elementwise import abs, exp, log, log1p, negative, square
from symgrad.ops.flows import Partial
from symgrad.ops.leaves import constant
from symgrad.ops.reduce import sum
from symgrad.ops.select import select, where
from symgrad.ops.shape import expand_dims
from symgrad.ops.special.gamma import (
    BINARY,
    PAIR,
    TERNARY,
    TRIPLE,
    beta_density,
    beta_slope,
    binet,
    digamma,
    digamma_gap,
    gamma_density,
    gamma_slope,
    gammaln,
    in_double,
)
from symgrad.ops.special.normal import UNARY
from symgrad.ops.special.scipys import from_scipy

NAMESPACE = "special"
UNIT_INTERVAL = (0.1, 0.9)


@from_scipy("gamma", lambda y, x: (y * digamma(x),), (POSITIVE,), UNARY, unbounded_slope=True)
def gamma_p(x: NodeLike, /) -> Node:
    """The gamma function."""
    ...


def _beta_partials(y: Node, a: Node, b: Node) -> tuple[Partial, ...]:
    return y * digamma_gap(a, b), y * digamma_gap(b, a)


@from_scipy("beta", _beta_partials, PAIR, BINARY, unbounded_slope=True)
def beta_p(a: NodeLike, b: NodeLike, /) -> Node:
    """The beta function."""
    ...


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


@composite()
def multigammaln(a: NodeLike, d: int, /) -> Node:
    """The logarithm of the multivariate gamma function of dimension d, for a > (d - 1) / 2.

    It is the sum of gammaln(a - j / 2) for j below d, and d * (d - 1) / 4 * log(pi) (DLMF 35.3.4).
    Raises `ArgumentError` unless d is an int from 1 on.
    """
    if not _is_int(d) or not 1 <= d <= 10_000:
        raise ArgumentError(f"the dimension d is an int from 1 to 10000, not {d!r}")
    x = as_node(a)
    halves = constant(np.arange(int(d)) / 2, x.dtype if x.dtype.kind == "f" else np.float64)
    terms = gammaln(expand_dims(x, axis=-1) - halves)
    return sum(terms, axis=-1) + d * (d - 1) / 4 * math.log(math.pi)


# ---- the incomplete gamma function, inverted ------------------------------------------------


def _gammaincinv_partials(sign: int) -> Callable[..., tuple[Partial, ...]]:
    def partials(x: Node, a: Node, y: Node) -> tuple[Partial, ...]:
        by_a = select(x != 0, negative(gamma_slope(a, x, order=1)))
        return by_a, sign / gamma_density(a, x)

    return partials


INVERSE_PAIR = (POSITIVE, UNIT_INTERVAL)


@from_scipy("gammaincinv", _gammaincinv_partials(1), INVERSE_PAIR, BINARY, unbounded_slope=True)
def gammaincinv(a: NodeLike, y: NodeLike, /) -> Node:
    """The x with gammainc(a, x) = y, for y from 0 (0) to 1 (inf); a gradient flows to both."""
    ...


@from_scipy("gammainccinv", _gammaincinv_partials(-1), INVERSE_PAIR, BINARY, unbounded_slope=True)
def gammainccinv(a: NodeLike, y: NodeLike, /) -> Node:
    """The x with gammaincc(a, x) = y, exact to rounding where y is small."""
    ...


# ---- the incomplete beta function, inverted -------------------------------------------------


def _betaincinv_partials(sign: int) -> Callable[..., tuple[Partial, ...]]:
    def partials(x: Node, a: Node, b: Node, y: Node) -> tuple[Partial, ...]:
        # Where x may round to 1, of 1 - x, which betainc(b, a, 1 - x) = 1 - betainc(a, b, x) gives.
        near = x < 0.5
        z = where(near, x, (betainccinv if sign > 0 else betaincinv)(b, a, y))
        p, q = where(near, a, b), where(near, b, a)
        by_p, by_q = (select(z != 0, beta_slope(p, q, z, order=o)) for o in ((1, 0), (0, 1)))
        by_a, by_b = where(near, -by_p, by_q), where(near, -by_q, by_p)
        return by_a, by_b, sign / beta_density(p, q, z)

    return partials


@from_scipy("betaincinv", _betaincinv_partials(1), TRIPLE, TERNARY, unbounded_slope=True)
def betaincinv(a: NodeLike, b: NodeLike, y: NodeLike, /) -> Node:
    """The x with betainc(a, b, x) = y, for y from 0 to 1; a gradient flows to all three."""
    ...


@from_scipy("betainccinv", _betaincinv_partials(-1), TRIPLE, TERNARY, unbounded_slope=True)
def betainccinv(a: NodeLike, b: NodeLike, y: NodeLike, /) -> Node:
    """The x with betaincc(a, b, x) = y, exact to rounding where y is small."""
    ...


# ---- Student's t ----------------------------------------------------------------------------


def student_log_density(df: Node, t: Node) -> Node:
    """The logarithm of the density of Student's t law, with digits for many degrees of freedom.

    Of -log(df) / 2 - betaln(df / 2, 1 / 2), all that grows cancels in the terms of Stirling's
    formula, which leaves Binet's function.
    """
    half = df / 2
    lacking = binet(half + 0.5, order=0) - binet(half, order=0)
    top = half * log1p(1 / df) - (1 + math.log(2 * math.pi)) / 2 + lacking
    # The square of what is far out may overflow.
    size = where(t == 0, 1, abs(t))
    far = 2 * log(size) - log(df)
    return top - (df + 1) / 2 * where(far > 40, far, log1p(square(t) / df))


@in_double
def _student_slope(df: Node, t: Node) -> Node:
    """The derivative by df of stdtr(df, t), over that by t.

    With u = t**2 / (df + t**2) it is stdtr = 1/2 + sign(t) / 2 * betainc(1/2, df/2, u). That loses
    digits as df grows; then by Fisher's expansion of the normal quantile, Abramowitz and Stegun
    26.7.8, z = t - (t**3 + t) / (4 * df) + (13 * t**5 + 8 * t**3 + 3 * t) / (96 * df**2) - ….
    At 0 it is t times the derivative of the logarithm of the density there.
    """
    ratio, square_ = square(t) / df, square(t)
    near = square_ < df  # as a comparison of the ratio, it would be a minimum, with a kink
    below, above = where(near, ratio, 1), where(near, 1, ratio)
    half, many = constant(np.asarray(0.5, df.dtype)), df / 2
    half_more = many + 0.5
    slope = where(
        near,
        beta_slope(half, many, below / (1 + below), order=(0, 1)),
        negative(beta_slope(many, half, 1 / (1 + above), order=(1, 0))),
    )
    safe = where(t == 0, 1, t)
    exact = slope * square(1 + ratio) * df / (4 * safe) - t / (2 * df)
    first = (square_ + 1) / 4
    second = ((13 * square_ + 8) * square_ + 3) / (48 * df)
    limit = t * (first - second) / square(df) / (1 - (3 * square_ + 1) / (4 * df))
    middle = (log1p(1 / df) - 1 / (df + 1) + binet(half_more, order=1) - binet(many, order=1)) / 2
    return where(t == 0, t * middle, where((df > 1e5) & (ratio < 1e-4), limit, exact))


def _stdtr_partials(y: Node, df: Node, t: Node) -> tuple[Partial, ...]:
    density = exp(student_log_density(df, t))
    return select(density > 0, density * _student_slope(df, t)), density


@from_scipy("stdtr", _stdtr_partials, (POSITIVE, REAL), BINARY, unbounded_slope=True)
def stdtr(df: NodeLike, t: NodeLike, /) -> Node:
    """Student's distribution function of df degrees of freedom; a gradient flows to both."""
    ...


def _stdtrit_partials(t: Node, df: Node, p: Node) -> tuple[Partial, ...]:
    return negative(_student_slope(df, t)), exp(negative(student_log_density(df, t)))


@from_scipy("stdtrit", _stdtrit_partials, INVERSE_PAIR, BINARY, unbounded_slope=True)
def stdtrit(df: NodeLike, p: NodeLike, /) -> Node:
    """The t with stdtr(df, t) = p; a gradient flows to both."""
    ...
