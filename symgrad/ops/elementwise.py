"""Arithmetic, powers, exponentials and trigonometry, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any

import numpy as np

from symgrad.ir.node import Node, apply, as_node, constant_value
from symgrad.ir.op import POSITIVE, REAL, Builder, Cotangent
from symgrad.ir.operators import call
from symgrad.ir.types import broadcast_shapes
from symgrad.ops import kernels
from symgrad.ops.complexes import complex_sign
from symgrad.ops.declare import NodeLike, P, as_floats, composite, elementwise
from symgrad.ops.flows import Partial
from symgrad.ops.leaves import ones_like
from symgrad.ops.logic import logical_or
from symgrad.ops.select import where
from symgrad.ops.series import Series, exponential_series, quotient_series
from symgrad.ops.sides import Side, held

# ---- arithmetic ----------------------------------------------------------------------------


@elementwise(np.add, partials=lambda y, a, b: (1, 1), commutative=True, preserves_zero=True)
def add(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 + x2."""
    ...


@elementwise(np.subtract, partials=lambda y, a, b: (1, -1), preserves_zero=True)
def subtract(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 - x2."""
    ...


@elementwise(
    np.multiply,
    partials=lambda y, a, b: (b, a),
    bilinear=True,
    commutative=True,
    annihilators=(0, 1),
)
def multiply(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 * x2."""
    ...


def _divide_series(k: int, y: Series, a: Series, b: Series) -> Cotangent:
    return quotient_series(multiply, divide)(k, y, b, a)


@elementwise(
    np.divide,
    partials=lambda y, a, b: (1 / b, -(y / b)),
    domain=(REAL, POSITIVE),
    series=_divide_series,
    unbounded_slope=True,
    annihilators=(0,),
)
def divide(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 / x2; integers are divided as float64."""
    ...


@elementwise(np.negative, partials=lambda y, x: (-1,), preserves_zero=True)
def negative(x: NodeLike, /) -> Node:
    """-x."""
    ...


@elementwise(np.positive, partials=lambda y, x: (1,), preserves_zero=True)
def positive(x: NodeLike, /) -> Node:
    """+x, which is x."""
    ...


def _abs_partials(y: Node, x: Node) -> tuple[Partial, ...]:
    return (sign(x),)


def _abs_locked(side: Side, y: Node, x: Node) -> Node:
    if not x.tensor.is_complex:
        return multiply(x, sign_p(side.lead(x)))
    away = call("conj", side.unit(x, abs))
    return where(held(y) == 0, call("real", multiply(x, away)), y)


@elementwise(
    np.absolute,
    partials=_abs_partials,
    locked=_abs_locked,
    preserves_zero=True,
    idempotent=True,
    holomorphic=False,
    kinks="at 0, from -1 to 1",
)
def abs(x: NodeLike, /) -> Node:
    """The absolute value, of a complex number too. Its gradient is sign(x), 0 at 0."""
    ...


@elementwise(
    np.sign,
    real=True,
    piecewise_constant=True,
    locked=lambda side, y, x: apply(y.op, (side.lead(x),)),
    jumps=True,
    preserves_zero=True,
    idempotent=True,
    public=False,
)
def sign_p(x: NodeLike, /) -> Node:
    """-1, 0 or 1. Its derivative is 0."""
    ...


@composite(numpy=(np.sign,))
def sign(x: NodeLike, /) -> Node:
    """-1, 0 or 1, whose derivative is 0; of a complex number x / abs(x), and 0 at 0.

    A complex number of which a part is NaN has the sign NaN, though NumPy's is not beside an inf.

    >>> sign(placeholder("x", 3)).type
    float64[3]
    """
    node = as_node(x)
    return complex_sign(node) if node.tensor.is_complex else sign_p(node)


def _copysign_locked(side: Side, y: Node, a: Node, b: Node) -> Node:
    way = side.lead(b)
    other = call("copysign", ones_like(way), where(way == 0, held(b), way))
    return multiply(multiply(a, sign_p(side.lead(a))), other)


@elementwise(
    np.copysign,
    partials=lambda y, a, b: (sign(a) * call("copysign", ones_like(b), b), None),
    locked=_copysign_locked,
    jumps=True,
    kinks="at x1 = 0",
)
def copysign(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The magnitude of x1 with the sign of x2."""
    ...


@elementwise(np.nextafter)
def nextafter(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The next representable number after x1 towards x2. It has no derivative."""
    ...


@elementwise(
    np.reciprocal, partials=lambda y, x: (-(y * y),), domain=(POSITIVE,), unbounded_slope=True
)
def reciprocal(x: NodeLike, /) -> Node:
    """1 / x."""
    ...


# ---- rounding -------------------------------------------------------------------------------


def _rounding(
    kernel: np.ufunc, to_side: Callable[[Node, Node, Node], Node], **facts: Any
) -> Callable[[Callable[P, Node]], Builder[P]]:
    """Declare a rounding; `to_side(x, y, m)` gives it where x moves to the side of m."""
    return elementwise(
        kernel,
        piecewise_constant=True,
        locked=lambda side, y, x: to_side(held(x), held(y), side.motion(x)),
        jumps=True,
        preserves_zero=True,
        idempotent=True,
        **facts,
    )


@_rounding(np.ceil, lambda x, y, m: where((x == y) & (m > 0), y + 1, y), dual="floor")
def ceil(x: NodeLike, /) -> Node:
    """x rounded up."""
    ...


@_rounding(np.floor, lambda x, y, m: where((x == y) & (m < 0), y - 1, y), dual="ceil")
def floor(x: NodeLike, /) -> Node:
    """x rounded down."""
    ...


@_rounding(np.trunc, lambda x, y, m: where((x == y) & (m * x < 0), y - sign_p(x), y))
def trunc(x: NodeLike, /) -> Node:
    """x rounded towards 0."""
    ...


def _rint_to_side(x: Node, y: Node, m: Node) -> Node:
    half = abs(x - y) == 0.5
    return where(half & (m > 0), ceil(x), where(half & (m < 0), floor(x), y))


@_rounding(np.rint, _rint_to_side)
def rint(x: NodeLike, /) -> Node:
    """x rounded to the nearest integer, halves to the even one."""
    ...


@composite(numpy=(np.round, np.around))
def round(x: NodeLike, /, *, decimals: int = 0) -> Node:
    """x rounded to so many decimals, to tens if they are negative; halves to the even one."""
    node, decimals = as_node(x), index(decimals)
    if node.dtype.kind in "iu":
        if decimals >= 0:
            return node
        return call("astype", round(call("astype", node, "float64"), decimals=decimals), node.dtype)
    if decimals == 0:
        return rint(node)
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)
    if decimals > 0:
        return divide(rint(multiply(node, scale)), scale)
    return multiply(rint(divide(node, scale)), scale)


# ---- powers and roots -----------------------------------------------------------------------


@elementwise(np.square, partials=lambda y, x: (2 * x,), preserves_zero=True)
def square(x: NodeLike, /) -> Node:
    """x * x."""
    ...


def _sqrt_locked(side: Side, y: Node, x: Node) -> Node:
    """The root of what touches 0 is u' / sqrt(2 u'') there, as its first derivative is.

    So is the second along the direction if a third of the exponent is of what is held: of
    u = a t**2 + b t**3 they are sqrt(a) and b / sqrt(a).
    """
    if x.tensor.is_complex or side.least(x) > 0:
        return y
    touches: Any = held(x) == 0
    way: Any = 0.0
    for tangent, bend in reversed(side.bends(x)):
        flat = held(tangent) == 0
        bent = flat & (held(bend) != 0)
        third = call("cbrt", where(bent, 2 * bend, 1))
        way = where(bent, tangent / (third * held(sqrt(third))), way)
        touches = touches & flat
    return where(touches, way, sqrt(where(touches, 1, x)))


@elementwise(
    np.sqrt,
    partials=lambda y, x: (0.5 / y,),
    locked=_sqrt_locked,
    domain=(POSITIVE,),
    preserves_zero=True,
    unbounded_slope=True,
)
def sqrt(x: NodeLike, /) -> Node:
    """The square root; NaN for x < 0."""
    ...


def _pow_partials(y: Node, a: Node, b: Node) -> tuple[Partial, ...]:
    exponent = constant_value(b)
    if exponent is not None and exponent.ndim == 0:
        if exponent == 0:  # a selection of nothing: x depends on it, and 0 it is at inf, too
            return as_node(False), None
        return (1 if exponent == 1 else b * pow(a, b - 1)), None
    # At b = 0 the power is 1 wherever a is; at a = 0 it is 0 for every b > 0. Elsewhere the slope
    # at b = 0 is 0 by itself, and varies with b.
    by_base = call("select", logical_or(b != 0, abs(a) > 0), b * pow(a, b - 1))
    base = where(a == 0, ones_like(a), a)
    taken = logical_or(a != 0, call("real", b) <= 0)
    return by_base, call("select", taken, y * log(base))


@elementwise(
    np.power, partials=_pow_partials, domain=(POSITIVE, REAL), expensive=True, unbounded_slope=True
)
def pow(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 to the power of x2. d = x2 * x1**(x2 - 1) dx1 + x1**x2 * log(x1) dx2."""
    ...


def _hypot_locked(side: Side, y: Node, a: Node, b: Node) -> Node:
    both = call("stack", [call("broadcast_to", x, y.shape) for x in (a, b)])
    way = side.unit(both, lambda t: call("norm2", t, axis=0, keepdims=True))
    return where(held(y) == 0, call("sum", multiply(both, way), axis=0), y)


def _hypot_partials(y: Node, a: Node, b: Node) -> tuple[Partial, ...]:
    # At the origin any point of the unit disc is a subgradient; this takes its middle.
    safe = where(y == 0, ones_like(y), y)
    return a / safe, b / safe


@elementwise(
    np.hypot,
    partials=_hypot_partials,
    locked=_hypot_locked,
    commutative=True,
    kinks="at (0, 0)",
    expensive=True,
)
def hypot(x1: NodeLike, x2: NodeLike, /) -> Node:
    """sqrt(x1**2 + x2**2) without overflow on the way."""
    ...


# ---- exponentials and logarithms ------------------------------------------------------------


_steep = partial(elementwise, expensive=True, unbounded_slope=True)
_logarithm = partial(_steep, domain=(POSITIVE,))


@_steep(np.exp, partials=lambda y, x: (y,), series=exponential_series)
def exp(x: NodeLike, /) -> Node:
    """e to the power of x."""
    ...


@_steep(
    np.expm1,
    of_complex="complex_expm1",
    partials=lambda y, x: (exp(x),),
    preserves_zero=True,
)
def expm1(x: NodeLike, /) -> Node:
    """exp(x) - 1, accurate for small x.

    Of a complex x it is as the array API standard has it, also where NumPy's is NaN: where the real
    part is infinite or NaN. `expm1(complex(inf, 0))` is inf + 0j.
    """
    ...


@_logarithm(np.log, partials=lambda y, x: (1 / x,))
def log(x: NodeLike, /) -> Node:
    """The natural logarithm."""
    ...


@_logarithm(np.log1p, partials=lambda y, x: (1 / (1 + x),), preserves_zero=True)
def log1p(x: NodeLike, /) -> Node:
    """log(1 + x), accurate for small x."""
    ...


@_logarithm(np.log2, partials=lambda y, x: (1 / (x * math.log(2)),))
def log2(x: NodeLike, /) -> Node:
    """The logarithm to base 2."""
    ...


@_logarithm(np.log10, partials=lambda y, x: (1 / (x * math.log(10)),))
def log10(x: NodeLike, /) -> Node:
    """The logarithm to base 10."""
    ...


@elementwise(
    kernels.logaddexp,
    numpy=(np.logaddexp,),
    promote=partial(as_floats, kinds="biuf"),
    scratch=lambda a, b: (a.with_shape(broadcast_shapes(a.shape, b.shape)),),
    partials=lambda y, a, b: (exp(a - y), exp(b - y)),
    commutative=True,
    expensive=True,
)
def logaddexp(x1: NodeLike, x2: NodeLike, /) -> Node:
    """log(exp(x1) + exp(x2)) without overflow on the way."""
    ...
