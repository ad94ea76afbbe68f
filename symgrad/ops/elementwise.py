"""Arithmetic, powers, exponentials and trigonometry, element by element."""

from __future__ import annotations

import math
from functools import partial
from operator import index

import numpy as np

from symgrad.ir.kinks import Choice
from symgrad.ir.node import Node, as_node, constant_value
from symgrad.ir.op import POSITIVE, REAL
from symgrad.ir.operators import call
from symgrad.ir.types import broadcast_shapes
from symgrad.ops import kernels
from symgrad.ops.complexes import complex_sign
from symgrad.ops.declare import NodeLike, as_floats, composite, elementwise
from symgrad.ops.flows import Partial, total
from symgrad.ops.leaves import ones_like
from symgrad.ops.logic import logical_or
from symgrad.ops.select import where

# ---- arithmetic ----------------------------------------------------------------------------


@elementwise(np.add, partials=lambda y, a, b: (1, 1), commutative=True, preserves_zero=True)
def add(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 + x2."""
    ...


@elementwise(np.subtract, partials=lambda y, a, b: (1, -1), preserves_zero=True)
def subtract(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 - x2."""
    ...


@elementwise(np.multiply, partials=lambda y, a, b: (b, a), commutative=True, annihilators=(0, 1))
def multiply(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 * x2."""
    ...


@elementwise(
    np.divide,
    partials=lambda y, a, b: (1 / b, -(y / b)),
    domain=(REAL, POSITIVE),
    unbounded_slope=True,
    annihilators=(0,),
)
def divide(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 / x2; integers are divided as float64."""
    ...


@elementwise(
    kernels.floor_of_quotient,
    like=np.floor_divide,
    piecewise_constant=True,
    domain=(REAL, POSITIVE),
)
def floor_divide(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 / x2 rounded down. Its derivative is 0.

    Where one of them is infinite it is x1 / x2, as the array API standard prefers; NumPy's is NaN
    for an infinite x1, and -1 for an infinite x2 of the other sign.
    """
    ...


@elementwise(
    np.floor_divide, numpy=(), piecewise_constant=True, domain=(REAL, POSITIVE), public=False
)
def times(x1: NodeLike, x2: NodeLike, /) -> Node:
    """How often x2 is taken from x1 to leave the remainder: (x1 - remainder(x1, x2)) / x2.

    It is floor_divide(x1, x2) but at infinities, where the remainder may be x2 itself.
    """
    ...


def _remainder_partials(y: Node, a: Node, b: Node) -> tuple[Partial, ...]:
    return 1, -times(a, b)


@elementwise(np.remainder, partials=_remainder_partials, domain=(REAL, POSITIVE))
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
    domain=(REAL, POSITIVE),
    projections=("floor_divide", "remainder"),
    in_place=(),
)
def divmod(x1: NodeLike, x2: NodeLike, /) -> Node:
    """floor_divide(x1, x2) and remainder(x1, x2), as a node with two results."""
    ...


@elementwise(np.negative, partials=lambda y, x: (-1,), preserves_zero=True)
def negative(x: NodeLike, /) -> Node:
    """-x."""
    ...


@elementwise(np.positive, partials=lambda y, x: (1,), preserves_zero=True)
def positive(x: NodeLike, /) -> Node:
    """+x, which is x."""
    ...


def _abs_partials(y: Node, x: Node, kinks: Choice) -> tuple[Partial, ...]:
    slope = kinks.pick(-1, 1)
    signs = sign(x)
    if slope == 0 or x.tensor.is_complex:
        return (signs,)
    return (call("where", x == 0, slope, signs),)


@elementwise(
    np.absolute,
    partials=_abs_partials,
    preserves_zero=True,
    idempotent=True,
    holomorphic=False,
    kinks="at 0, from -1 to 1",
    one_sided=True,
)
def abs(x: NodeLike, /) -> Node:
    """The absolute value, of a complex number too. Its gradient is sign(x), 0 at 0."""
    ...


@elementwise(
    np.sign, real=True, piecewise_constant=True, preserves_zero=True, idempotent=True, public=False
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


@elementwise(
    np.copysign,
    partials=lambda y, a, b: (sign(a) * call("copysign", ones_like(b), b), None),
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


@elementwise(np.ceil, piecewise_constant=True, preserves_zero=True, idempotent=True, dual="floor")
def ceil(x: NodeLike, /) -> Node:
    """x rounded up."""
    ...


@elementwise(np.floor, piecewise_constant=True, preserves_zero=True, idempotent=True, dual="ceil")
def floor(x: NodeLike, /) -> Node:
    """x rounded down."""
    ...


@elementwise(np.trunc, piecewise_constant=True, preserves_zero=True, idempotent=True)
def trunc(x: NodeLike, /) -> Node:
    """x rounded towards 0."""
    ...


@elementwise(np.rint, piecewise_constant=True, preserves_zero=True, idempotent=True)
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


@elementwise(
    np.sqrt,
    partials=lambda y, x: (0.5 / y,),
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
    # At b = 0 the power is 1 wherever a is; at a = 0 it is 0 for every b > 0.
    by_base = call("select", b != 0, b * pow(a, b - 1))
    base = where(a == 0, ones_like(a), a)
    taken = logical_or(a != 0, call("real", b) <= 0)
    return by_base, call("select", taken, y * log(base))


@elementwise(
    np.power, partials=_pow_partials, domain=(POSITIVE, REAL), expensive=True, unbounded_slope=True
)
def pow(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 to the power of x2. d = x2 * x1**(x2 - 1) dx1 + x1**x2 * log(x1) dx2."""
    ...


def _hypot_partials(y: Node, a: Node, b: Node) -> tuple[Partial, ...]:
    # At the origin any point of the unit disc is a subgradient; this takes its middle.
    safe = where(y == 0, ones_like(y), y)
    return a / safe, b / safe


@elementwise(
    np.hypot, partials=_hypot_partials, commutative=True, kinks="at (0, 0)", expensive=True
)
def hypot(x1: NodeLike, x2: NodeLike, /) -> Node:
    """sqrt(x1**2 + x2**2) without overflow on the way."""
    ...


# ---- exponentials and logarithms ------------------------------------------------------------


_steep = partial(elementwise, expensive=True, unbounded_slope=True)
_logarithm = partial(_steep, domain=(POSITIVE,))


@_steep(np.exp, partials=lambda y, x: (y,))
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
