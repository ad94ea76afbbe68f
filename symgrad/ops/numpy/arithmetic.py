"""NumPy's functions element by element beyond the array API standard: cbrt, exp2, deg2rad, …."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.ir.node import Node, apply, as_node
from symgrad.ir.op import POSITIVE, REAL
from symgrad.ops.complexes import imag, real
from symgrad.ops.declare import NodeLike, as_floats, composite, elementwise
from symgrad.ops.elementwise import abs as abs_
from symgrad.ops.elementwise import copysign, sign, square, subtract, trunc
from symgrad.ops.leaves import zeros_like
from symgrad.ops.logic import equal, isfinite, isinf, isnan, logical_and, logical_not, signbit
from symgrad.ops.reduce import all as all_
from symgrad.ops.select import where
from symgrad.ops.shape import astype
from symgrad.ops.sides import Side, held


def floats(x: NodeLike) -> Node:
    """x in the floats that NumPy computes with: float16 for int8, float64 for int64."""
    node = as_node(x)
    (dtype,) = as_floats(node.tensor, kinds="biuf")
    return astype(node, dtype)


@elementwise(
    np.cbrt,
    partials=lambda y, x: (1 / (3 * square(y)),),
    domain=(POSITIVE,),
    preserves_zero=True,
    expensive=True,
    unbounded_slope=True,
)
def cbrt(x: NodeLike, /) -> Node:
    """The cube root, also of negative numbers. d = 1 / (3 * y**2) dx."""
    ...


@elementwise(np.exp2, partials=lambda y, x: (y * math.log(2),), expensive=True)
def exp2(x: NodeLike, /) -> Node:
    """2**x. d = y * log(2) dx."""
    ...


@elementwise(
    np.deg2rad,
    partials=lambda y, x: (math.pi / 180,),
    numpy=(np.deg2rad, np.radians),
    preserves_zero=True,
)
def deg2rad(x: NodeLike, /) -> Node:
    """Degrees as radians."""
    ...


@elementwise(
    np.rad2deg,
    partials=lambda y, x: (180 / math.pi,),
    numpy=(np.rad2deg, np.degrees),
    preserves_zero=True,
)
def rad2deg(x: NodeLike, /) -> Node:
    """Radians as degrees."""
    ...


@elementwise(
    np.logaddexp2,
    partials=lambda y, a, b: (exp2(a - y), exp2(b - y)),
    commutative=True,
    expensive=True,
)
def logaddexp2(x1: NodeLike, x2: NodeLike, /) -> Node:
    """log2(2**x1 + 2**x2), without overflow."""
    ...


def _fmod_locked(side: Side, y: Node, a: Node, b: Node) -> Node:
    times, way = trunc(held(a) / held(b)), sign(held(a))
    back = (held(y) == 0) & (side.motion(a - times * b) * way < 0)
    return where(back, y + b * sign(times), y)


@elementwise(
    np.fmod,
    partials=lambda y, a, b: (1, -trunc(a / b)),
    locked=_fmod_locked,
    jumps=True,
    domain=(REAL, POSITIVE),
)
def fmod(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 - x2 * trunc(x1 / x2): the remainder, with the sign of x1."""
    ...


@elementwise(
    np.heaviside,
    partials=lambda y, x, h: (None, equal(x, 0)),
    locked=lambda side, y, x, h: apply(y.op, (side.lead(x), h)),
    jumps=True,
)
def heaviside(x1: NodeLike, x2: NodeLike, /) -> Node:
    """0 below 0, 1 above it, and x2 at 0; its derivative by x1 is 0."""
    ...


@elementwise(np.gcd, dtypes="int32 int64", commutative=True)
def gcd(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The greatest common divisor of integers."""
    ...


@elementwise(np.lcm, dtypes="int32 int64", commutative=True)
def lcm(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The least common multiple of integers."""
    ...


@composite(numpy=(np.fabs,))
def fabs(x: NodeLike, /) -> Node:
    """The absolute value, as a float."""
    return abs_(floats(x))


@composite(numpy=(np.float_power,))
def float_power(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1**x2, computed in float64, or complex128."""
    a, b = as_node(x1), as_node(x2)
    wide = np.result_type(a.dtype, b.dtype, np.float64)
    found: Node = astype(a, wide) ** astype(b, wide)
    return found


@composite(numpy=(np.modf,))
def modf(x: NodeLike, /) -> tuple[Node, Node]:
    """The fraction of x and its whole part, both with the sign of x."""
    node = floats(x)
    whole = trunc(node)
    rest = where(isinf(node), 0, subtract(node, where(isinf(node), 0, whole)))
    return copysign(rest, node), copysign(whole, node)


@composite(numpy=(np.nan_to_num,))
def nan_to_num(
    x: NodeLike,
    /,
    *,
    copy: bool = True,
    nan: NodeLike = 0.0,
    posinf: NodeLike = None,
    neginf: NodeLike = None,
) -> Node:
    """x with other numbers for NaN and the infinities: the largest and least if none are given.

    Of complex numbers both parts are. No gradient flows through what was replaced. `copy` changes
    nothing.
    """
    node = as_node(x)
    if node.dtype.kind in "biu":
        return node
    if node.tensor.is_complex:
        parts = [
            nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf)
            for part in (real(node), imag(node))
        ]
        return astype(parts[0] + parts[1] * 1j, node.dtype)
    limits = np.finfo(node.dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    least, most, other = (astype(as_node(v), node.dtype) for v in (low, high, nan))
    found = where(isinf(node), where(signbit(node), least, most), node)
    return where(isnan(node), other, found)


# ---- questions ------------------------------------------------------------------------------


@composite(numpy=(np.isposinf,))
def isposinf(x: NodeLike, /) -> Node:
    """Whether it is inf."""
    return logical_and(isinf(x), logical_not(signbit(x)))


@composite(numpy=(np.isneginf,))
def isneginf(x: NodeLike, /) -> Node:
    """Whether it is -inf."""
    return logical_and(isinf(x), signbit(x))


@composite(numpy=(np.iscomplex,))
def iscomplex(x: NodeLike, /) -> Node:
    """Whether the imaginary part is not 0."""
    node = as_node(x)
    if not node.tensor.is_complex:
        return astype(zeros_like(node), "bool")
    found: Node = imag(node) != 0
    return found


@composite(numpy=(np.isreal,))
def isreal(x: NodeLike, /) -> Node:
    """Whether the imaginary part is 0."""
    return logical_not(iscomplex(x))


@composite(numpy=(np.isclose,))
def isclose(
    x1: NodeLike, x2: NodeLike, /, *, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Node:
    """Whether abs(x1 - x2) <= atol + rtol * abs(x2), or both are the same infinity.

    With `equal_nan` a NaN is close to a NaN.
    """
    a, b = as_node(x1), as_node(x2)
    b = b if b.tensor.is_inexact else astype(b, np.result_type(b.dtype, np.float64))
    near = abs_(a - b) <= abs_(b) * rtol + atol
    found: Node = (near & isfinite(b)) | equal(a, b)
    return found | (isnan(a) & isnan(b)) if equal_nan else found


@composite(numpy=(np.allclose,))
def allclose(
    x1: NodeLike, x2: NodeLike, /, *, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Node:
    """Whether all elements are close, see isclose: a boolean in the graph."""
    return all_(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan))


@composite(numpy=(np.array_equal,))
def array_equal(x1: NodeLike, x2: NodeLike, /, equal_nan: bool = False) -> Node:
    """Whether the shapes are the same and all elements: a boolean in the graph.

    With `equal_nan` NaNs are the same.
    """
    a, b = as_node(x1), as_node(x2)
    if a.ndim != b.ndim or any(str(m) != str(n) for m, n in zip(a.shape, b.shape, strict=True)):
        return as_node(False)
    alike = equal(a, b)
    if equal_nan and a.tensor.is_inexact and b.tensor.is_inexact:
        alike = alike | (isnan(a) & isnan(b))
    return all_(alike)
