"""Complex numbers: their parts, their conjugates and their angles.

None of these has a complex derivative. What they are is linear over the reals, and so each gives
its adjoint for the pairing Re(conj(a) * b); see `symgrad.autodiff.reverse`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from symgrad.ir.errors import DtypeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.operators import call
from symgrad.ir.types import DType, TensorType
from symgrad.ops import complex_kernels, kernels
from symgrad.ops.declare import NodeLike, apply_again, composite, elementwise, require
from symgrad.ops.leaves import zeros_like

COMPLEX = "complex64 complex128"


def part_dtype(dtype: DType) -> DType:
    """The dtype of the real and imaginary parts; any other dtype as it is."""
    return np.empty(0, dtype).real.dtype


def keep_imaginary(t: TensorType, dtype: DType) -> None:
    """Refuse to convert complex numbers to real ones."""
    if t.is_complex and dtype.kind != "c":
        raise DtypeError(f"{t.dtype.name} to {dtype.name} drops the imaginary part; use real(x)")


def _part(t: TensorType) -> DType:
    require("c", t)
    return part_dtype(t.dtype)


def _as_it_is(t: TensorType) -> DType:
    require("c", t)
    return t.dtype


_real_linear = partial(
    elementwise,
    pushforward=lambda t, y, x: apply_again(y, t),
    holomorphic=False,
    preserves_zero=True,
    dtypes=COMPLEX,
)


@_real_linear(kernels.real, pullback=lambda g, y, x: g, result=_part, in_place=())
def real_p(x: NodeLike, /) -> Node:
    """The real part of a complex x."""
    ...


@_real_linear(kernels.imag, pullback=lambda g, y, x: g * 1j, result=_part, in_place=())
def imag_p(x: NodeLike, /) -> Node:
    """The imaginary part of a complex x."""
    ...


@_real_linear(np.conjugate, pullback=lambda g, y, x: call("conj", g))
def conj_p(x: NodeLike, /) -> Node:
    """The complex conjugate of a complex x."""
    ...


def _across(flow: Node, y: Node, x: Node) -> Node:
    """The part of what flows that is at right angles to x, over abs(x); 0 where x is."""
    is_zero = x == 0
    away = flow - y * real(conj(y) * flow)
    scaled: Node = away / call("where", is_zero, 1, call("abs", x))
    return call("where", is_zero, 0, scaled)


@elementwise(
    complex_kernels.complex_sign,
    result=_as_it_is,
    pullback=_across,
    pushforward=_across,
    holomorphic=False,
    preserves_zero=True,
    locked=lambda side, y, x: call("where", y == 0, side.unit(x, partial(call, "abs")), y),
    jumps=True,
    kinks="at 0, where it is 0",
    dtypes=COMPLEX,
    public=False,
)
def complex_sign(x: NodeLike, /) -> Node:
    """x / abs(x) of a complex x, and 0 at 0."""
    ...


@elementwise(
    complex_kernels.complex_expm1,
    result=_as_it_is,
    partials=lambda y, x: (call("exp", x),),
    preserves_zero=True,
    expensive=True,
    unbounded_slope=True,
    dtypes=COMPLEX,
    public=False,
)
def complex_expm1(x: NodeLike, /) -> Node:
    """exp(x) - 1 of a complex x, accurate for small x."""
    ...


@elementwise(
    complex_kernels.complex_tanh,
    result=_as_it_is,
    partials=lambda y, x: (1 - y * y,),
    preserves_zero=True,
    expensive=True,
    dtypes=COMPLEX,
    public=False,
)
def complex_tanh(x: NodeLike, /) -> Node:
    """The hyperbolic tangent of a complex x."""
    ...


@composite(numpy=(np.real,))
def real(x: NodeLike, /) -> Node:
    """The real part; a real x as it is.

    >>> real(placeholder("z", 3, "complex64")).type
    float32[3]
    """
    node = as_node(x)
    return real_p(node) if node.tensor.is_complex else node


@composite(numpy=(np.imag,))
def imag(x: NodeLike, /) -> Node:
    """The imaginary part; zeros for a real x.

    >>> imag(placeholder("z", 3, "complex64")).type
    float32[3]
    """
    node = as_node(x)
    return imag_p(node) if node.tensor.is_complex else zeros_like(node)


@composite(numpy=(np.conjugate,))
def conj(x: NodeLike, /) -> Node:
    """The complex conjugate; a real x as it is, but booleans as int8, as in NumPy.

    >>> conj(placeholder("z", 3, "complex64")).type
    complex64[3]
    """
    node = as_node(x)
    return node if node.dtype.kind in "iuf" else conj_p(node)


@composite(numpy=(np.angle,))
def angle(x: NodeLike, /, *, deg: bool = False) -> Node:
    """The angle of a complex number in radians, from -pi to pi, or in degrees.

    Its derivative at 0 is 0.

    >>> angle(placeholder("z", 3, "complex64")).type
    float32[3]
    """
    node = as_node(x)
    node = call("astype", node, np.float64) if node.dtype.kind == "b" else node
    found = call("atan2", imag(node), real(node))
    return found * (180 / np.pi) if deg else found
