"""The gamma function and its kin.

Their values are SciPy's. polygamma and the derivatives of any order of gammainc and betainc by
their parameters need no SciPy.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.errors import DtypeError
from symgrad.ir.node import Node
from symgrad.ir.op import POSITIVE, case
from symgrad.ir.types import TensorType, broadcast_shapes
from symgrad.ops.activations import order_infer, xlog1py, xlogy
from symgrad.ops.declare import NodeLike, composite, elementwise, require_order
from symgrad.ops.elementwise import exp, log, log1p, negative, subtract
from symgrad.ops.flows import Partial
from symgrad.ops.select import select, where
from symgrad.ops.shape import astype
from symgrad.ops.special import gamma_kernels as kernels
from symgrad.ops.special import scipy_kernels
from symgrad.ops.special.elementary import kl_div_p
from symgrad.ops.special.normal import UNARY, at_least_single
from symgrad.ops.special.scipys import from_scipy, needs_scipy

BINARY = (case((3, 4), (3, 4)), case((3, 1), (4,)), case((), ()), case((0,), ()))
TERNARY = (case((3, 4), (3, 4), (3, 4)), case((3, 1), (4,), ()), case((), (), ()))
PAIR, TRIPLE = (POSITIVE, POSITIVE), (POSITIVE, POSITIVE, (0.1, 0.9))  # domains
MOST_SLOPES = 10  # the terms of their series are as many as the square of the order


# ---- gamma ----------------------------------------------------------------------------------


def _gammaln_partials(y: Node, x: Node) -> tuple[Partial, ...]:
    return (digamma(x),)


@from_scipy("gammaln", _gammaln_partials, (POSITIVE,), UNARY, unbounded_slope=True)
def gammaln(x: NodeLike, /) -> Node:
    """log(abs(gamma(x))). d = digamma(x) dx."""
    ...


def _order(x: TensorType, order: Any) -> dict[str, Any]:
    if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 0:
        raise DtypeError(f"the order of polygamma is an int from 0 on, not {order!r}")
    return {"order": int(order)}


def _polygamma_partials(y: Node, x: Node, order: int) -> tuple[Partial, ...]:
    return (polygamma_p(x, order=order + 1),)


@elementwise(
    kernels.polygamma,
    partials=_polygamma_partials,
    infer=order_infer,
    promote=at_least_single,
    normalize=_order,
    expensive=True,
    unbounded_slope=True,
    domain=(POSITIVE,),
    cases=(case((3, 4), order=0), case((), order=1), case((5,), order=2), case((0,), order=3)),
)
def polygamma_p(x: NodeLike, /, order: int) -> Node:
    """The derivative of digamma of an order."""
    ...


@composite()
def digamma(x: NodeLike, /) -> Node:
    """The derivative of gammaln; NaN at -1, -2, …. It needs no SciPy.

    >>> round(float(digamma(1.0)), 12)
    -0.577215664902
    """
    return polygamma_p(x, order=0)


@composite()
def polygamma(n: int, x: NodeLike, /) -> Node:
    """The derivative of digamma of order n; it needs no SciPy.

    At the poles it is inf for an odd n, else NaN. Raises `DtypeError` unless n is an int from 0 on.

    >>> round(float(polygamma(1, -0.5)), 12)  # pi**2 / 2 + 4
    8.934802200545
    """
    return polygamma_p(x, order=n)


def _binet_partials(y: Node, x: Node, order: int) -> tuple[Partial, ...]:
    return (binet(x, order=order + 1),)


@elementwise(
    kernels.binet,
    partials=_binet_partials,
    infer=order_infer,
    promote=at_least_single,
    expensive=True,
    unbounded_slope=True,
    domain=(POSITIVE,),
    cases=(case((3, 4), order=0), case((), order=1), case((0,), order=2)),
    public=False,
)
def binet(x: NodeLike, /, order: int) -> Node:
    """The derivative of an order of Binet's function, for x > 0, which is what Stirling's formula
    lacks: gammaln(x) - (x - 1/2) * log(x) + x - log(2 * pi) / 2.

    It is small where those are large. It needs no SciPy.
    """
    ...


def _zeta_attrs(q: TensorType, s: Any) -> dict[str, Any]:
    if isinstance(s, Node) or not isinstance(s, (int, float, np.number)):
        raise DtypeError(f"the first argument of zeta is a number, not {s!r}: no gradient flows")
    return {"s": float(s)}


def _zeta_infer(q: TensorType, *, s: float) -> TensorType:
    return q


def _zeta_partials(y: Node, q: Node, s: float) -> tuple[Partial, ...]:
    return (-s * zeta_p(q, s=s + 1),)


@elementwise(
    scipy_kernels.zeta,
    partials=_zeta_partials,
    infer=_zeta_infer,
    promote=needs_scipy("zeta"),
    normalize=_zeta_attrs,
    expensive=True,
    unbounded_slope=True,
    domain=(POSITIVE,),
    cases=(case((3, 4), s=2.0), case((), s=1.5), case((0,), s=3.0)),
)
def zeta_p(q: NodeLike, /, s: float) -> Node:
    """The sum of (k + q)**-s for k from 0 on."""
    ...


@composite()
def zeta(s: float, q: NodeLike = 1.0, /) -> Node:
    """Hurwitz's zeta function, the sum of (k + q)**-s for k from 0 on; Riemann's for q = 1.

    `s` is a number, since no gradient flows to it. Raises `DtypeError` for a node.
    """
    return zeta_p(q, s=s)


def gamma_log_density(a: Node, z: Node, leading: NodeLike) -> Node:
    """leading - z - gammaln(a), where `leading` is (a - 1) * log(z), with all digits for large a.

    There Stirling's formula cancels what is large, which leaves Binet's function; after Loader,
    Fast and accurate computation of binomial probabilities (2000).
    """
    is_large = (a >= 10) & (z > 0)
    power = where(is_large, a - 1, 1)
    spread = log(2 * math.pi * power) / 2 + binet(power, order=0)
    near = -kl_div_p(power, where(is_large, z, 1)) - spread
    return where(is_large, near, leading - z - gammaln(a))


def gamma_density(a: Node, x: Node) -> Node:
    """The derivative of gammainc by x."""
    return exp(gamma_log_density(a, x, xlogy(a - 1, x)))


def _exponential(slopes: Callable[[int, int], Node], i: int, j: int) -> Any:
    """The derivative of exp(f) over it, of an order (i, j), from the derivatives of f."""
    if i + j == 0:
        return 1
    m, n = (i - 1, j) if i else (i, j - 1)
    return builtins.sum(
        math.comb(m, p) * math.comb(n, q) * slopes(i - m + p, j - n + q)
        * _exponential(slopes, m - p, n - q)
        for p in range(m + 1) for q in range(n + 1)
    )  # fmt: skip


def _gamma_slope_partials(y: Node, a: Node, x: Node, order: int) -> tuple[Partial, ...]:
    # y is a derivative of gammainc over the density, whose logarithm has the slopes.
    def slopes(i: int, j: int) -> Node:
        return subtract(log(x), digamma(a)) if i == 1 else negative(polygamma(i - 1, a))

    by_x = _exponential(slopes, order, 0) - y * ((a - 1) / x - 1)
    return gamma_slope(a, x, order=order + 1) - y * slopes(1, 0), by_x


def _gamma_slope_infer(a: TensorType, x: TensorType, *, order: int) -> TensorType:
    require_order(order, least=1, most=MOST_SLOPES)
    return a.with_shape(broadcast_shapes(a.shape, x.shape))


@elementwise(
    kernels.gamma_slope,
    partials=_gamma_slope_partials,
    infer=_gamma_slope_infer,
    promote=at_least_single,
    expensive=True,
    unbounded_slope=True,
    domain=PAIR,
    cases=tuple(case(*c.shapes, order=1) for c in BINARY),
    public=False,
)
def gamma_slope(a: NodeLike, x: NodeLike, /, order: int) -> Node:
    """The derivative by a, of an order, of gammainc(a, x), over that by x. It needs no SciPy."""
    ...


def _gammainc_partials(sign_: int) -> Callable[..., tuple[Partial, ...]]:
    def partials(y: Node, a: Node, x: Node) -> tuple[Partial, ...]:
        density = sign_ * gamma_density(a, x)
        # At 0 the density may be infinite; the value there is the same for every a.
        return select(x != 0, density * gamma_slope(a, x, order=1)), density

    return partials


@from_scipy("gammainc", _gammainc_partials(1), PAIR, BINARY, unbounded_slope=True)
def gammainc(a: NodeLike, x: NodeLike, /) -> Node:
    """The lower incomplete gamma function, from 0 to 1; a gradient flows to a and to x.

    d = x**(a - 1) * exp(-x) / gamma(a) dx, and by a the derivative of the series DLMF 8.11.4 or of
    the continued fraction DLMF 8.9.2.
    """
    ...


@from_scipy("gammaincc", _gammainc_partials(-1), PAIR, BINARY, unbounded_slope=True)
def gammaincc(a: NodeLike, x: NodeLike, /) -> Node:
    """1 - gammainc(a, x), exact to rounding where it is small."""
    ...


# ---- beta -----------------------------------------------------------------------------------


def in_double(function: Callable[..., Node]) -> Callable[..., Node]:
    """A function of nodes of one dtype, computed in float64, for terms that cancel."""

    def wide(*nodes: Node) -> Node:
        return astype(function(*(astype(x, np.float64) for x in nodes)), nodes[0].dtype)

    return wide


@in_double
def digamma_gap(a: Node, b: Node) -> Node:
    """digamma(a) - digamma(a + b), by Binet's function where they are large and cancel.

    Where b is much less than a, by Taylor's series.
    """
    total, is_large = a + b, (a > 10) & (b > 0)
    x, y = where(is_large, a, 10), where(is_large, total, 11)
    rest = binet(x, order=1) - binet(y, order=1) - (y - x) / (2 * x * y)
    far = where(is_large, rest - log1p(b / x), digamma(a) - digamma(total))
    near = -b * (polygamma(1, a) + b * (polygamma(2, a) / 2 + b * polygamma(3, a) / 6))
    return where(abs(b) < 1e-4 * a, near, far)


def _betaln_partials(y: Node, a: Node, b: Node) -> tuple[Partial, ...]:
    return digamma_gap(a, b), digamma_gap(b, a)


@from_scipy("betaln", _betaln_partials, PAIR, BINARY, unbounded_slope=True)
def betaln(a: NodeLike, b: NodeLike, /) -> Node:
    """log(beta(a, b)), which is gammaln(a) + gammaln(b) - gammaln(a + b)."""
    ...


def _beta_slope_partials(
    y: Node, a: Node, b: Node, x: Node, order: tuple[int, int]
) -> tuple[Partial, ...]:
    def slopes(i: int, j: int) -> Node:
        found = polygamma(i + j - 1, a + b)
        if i + j == 1:
            found = found + (log(x) if i else log1p(-x))
        if j == 0:
            found = found - polygamma(i - 1, a)
        return found - polygamma(j - 1, b) if i == 0 else found

    i, j = order
    bend = (a - 1) / x - (b - 1) / (1 - x)
    return (
        beta_slope(a, b, x, order=(i + 1, j)) - y * slopes(1, 0),
        beta_slope(a, b, x, order=(i, j + 1)) - y * slopes(0, 1),
        _exponential(slopes, i, j) - y * bend,
    )


def _beta_slope_infer(
    a: TensorType, b: TensorType, x: TensorType, *, order: tuple[int, int]
) -> TensorType:
    require_order(*order, least=1, most=MOST_SLOPES)
    return a.with_shape(broadcast_shapes(a.shape, b.shape, x.shape))


@elementwise(
    kernels.beta_slope,
    partials=_beta_slope_partials,
    infer=_beta_slope_infer,
    promote=at_least_single,
    expensive=True,
    unbounded_slope=True,
    domain=TRIPLE,
    cases=tuple(case(*c.shapes, order=o) for c in TERNARY for o in ((1, 0), (0, 1))),
    public=False,
)
def beta_slope(a: NodeLike, b: NodeLike, x: NodeLike, /, order: tuple[int, int]) -> Node:
    """A derivative by a or b of betainc(a, b, x), over that by x. It needs no SciPy."""
    ...


def beta_log_density(a: Node, b: Node, x: Node) -> Node:
    """The logarithm of the derivative of betainc by x, of those of gammainc.

    It is the law of y / (y + z) for draws of gamma laws, whose sum is independent of it.
    """
    total = a + b
    logs = log(total)
    of_a = gamma_log_density(a, total * x, xlogy(a - 1, x) + (a - 1) * logs)
    of_b = gamma_log_density(b, total * (1 - x), xlog1py(b - 1, -x) + (b - 1) * logs)
    return of_a + of_b + logs - gamma_log_density(total, total, (total - 1) * logs)


def beta_density(a: Node, b: Node, x: Node) -> Node:
    """The derivative of betainc by x."""
    return exp(beta_log_density(a, b, x))


def _betainc_partials(sign_: int) -> Callable[..., tuple[Partial, ...]]:
    def partials(y: Node, a: Node, b: Node, x: Node) -> tuple[Partial, ...]:
        density = sign_ * beta_density(a, b, x)
        inside = (x != 0) & (x != 1)
        by_a, by_b = (beta_slope(a, b, x, order=order) for order in ((1, 0), (0, 1)))
        return select(inside, density * by_a), select(inside, density * by_b), density

    return partials


@from_scipy("betainc", _betainc_partials(1), TRIPLE, TERNARY, unbounded_slope=True)
def betainc(a: NodeLike, b: NodeLike, x: NodeLike, /) -> Node:
    """The incomplete beta function, from 0 to 1; a gradient flows to a, to b and to x.

    d = x**(a - 1) * (1 - x)**(b - 1) / beta(a, b) dx, and by a and b the derivatives of the series
    DLMF 8.17.8.
    """
    ...


@from_scipy("betaincc", _betainc_partials(-1), TRIPLE, TERNARY, unbounded_slope=True)
def betaincc(a: NodeLike, b: NodeLike, x: NodeLike, /) -> Node:
    """1 - betainc(a, b, x), exact to rounding where it is small."""
    ...
