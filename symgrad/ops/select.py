"""Choosing between values: where, masks, relu, maximum, minimum, clip."""

# ruff: noqa: PIE790  (the body of a primitive is `...`)

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.node import Node, as_node
from symgrad.ir.op import REGISTRY, Cotangent
from symgrad.ir.operators import call
from symgrad.ir.types import DType, TensorType, broadcast_shapes
from symgrad.ops import kernels
from symgrad.ops.declare import NodeLike, composite, elementwise, require


def bits_like(t: TensorType, *masks: TensorType) -> tuple[TensorType, ...]:
    """A temporary for a mask as wide as the values it selects."""
    if t.dtype.itemsize not in (1, 2, 4, 8):
        return ()
    shape = broadcast_shapes(*(m.shape for m in masks))
    return (TensorType(shape, np.dtype(f"i{t.dtype.itemsize}")),)


def _mask_promote(mask: TensorType, *types: TensorType) -> tuple[DType | None, ...]:
    require("b", mask)
    return None, *(np.result_type(*(t.dtype for t in types)),) * len(types)


@elementwise(
    kernels.select,
    partials=lambda y, mask, x: (None, mask),
    promote=_mask_promote,
    result=lambda mask, x: x.dtype,
    weak=(1,),
    in_place=(1,),
    scratch=lambda mask, x: bits_like(x, mask),
)
def select(mask: NodeLike, x: NodeLike, /) -> Node:
    """x where the boolean mask holds, 0 elsewhere: a mask multiplied in, exact for inf and NaN."""
    ...


@elementwise(
    kernels.where,
    partials=lambda y, c, a, b: (None, c, call("logical_not", c)),
    promote=_mask_promote,
    result=lambda c, a, b: a.dtype,
    weak=(1, 2),
    in_place=(1,),
    scratch=lambda c, a, b: bits_like(a, c, a, b),
    numpy=(np.where,),
)
def where(condition: NodeLike, x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 where the boolean condition holds, x2 elsewhere."""
    ...


def relu_kernel(x: Any, out: Any = None) -> Any:
    return np.maximum(x, 0, out=out)


def _relu_dtype(t: TensorType) -> DType:
    require("iuf", t)
    return t.dtype


@elementwise(
    relu_kernel,
    partials=lambda y, x: (y > 0,),
    result=_relu_dtype,
    source="np.maximum({0}, 0, {out})",
    preserves_zero=True,
    idempotent=True,
    kinks="at 0, from 0 to 1",
)
def relu(x: NodeLike, /) -> Node:
    """max(x, 0). Its derivative at 0 is 0."""
    ...


@elementwise(
    kernels.keep_where_positive,
    partials=lambda y, m, x: (None, m > 0),
    promote=lambda m, x: (None, None),
    result=lambda m, x: x.dtype,
    weak=(1,),
    in_place=(1,),
    scratch=lambda m, x: bits_like(x, m),
)
def keep_where_positive(m: NodeLike, x: NodeLike, /) -> Node:
    """select(m > 0, x) in one step: what relu's backward becomes."""
    ...


def _extremum_flow(flow: Cotangent, taken: Node, tie: Node) -> Cotangent:
    if flow is None:
        return None
    total: Node = select(taken, flow) + select(tie, 0.5 * flow)
    return total


def _maximum_vjp(g: Node, y: Node, a: Node, b: Node) -> tuple[Cotangent, ...]:
    tie = a == b
    return _extremum_flow(g, a > b, tie), _extremum_flow(g, b > a, tie)


def _maximum_jvp(t: tuple[Cotangent, ...], y: Node, a: Node, b: Node) -> Cotangent:
    tie = a == b
    flows = [_extremum_flow(t[0], a > b, tie), _extremum_flow(t[1], b > a, tie)]
    some = [f for f in flows if f is not None]
    return None if not some else some[0] if len(some) == 1 else some[0] + some[1]


@elementwise(
    np.maximum,
    vjp=_maximum_vjp,
    jvp=_maximum_jvp,
    commutative=True,
    associative=True,
    idempotent=True,
    kinks="at ties, which share the gradient",
)
def maximum(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The larger one; NaN if either is NaN. At a tie each gets half of the gradient."""
    ...


def _minimum_vjp(g: Node, y: Node, a: Node, b: Node) -> tuple[Cotangent, ...]:
    return _maximum_vjp(g, y, -a, -b)


def _minimum_jvp(t: tuple[Cotangent, ...], y: Node, a: Node, b: Node) -> Cotangent:
    return _maximum_jvp(t, y, -a, -b)


@elementwise(
    np.minimum,
    vjp=_minimum_vjp,
    jvp=_minimum_jvp,
    commutative=True,
    associative=True,
    idempotent=True,
    kinks="at ties, which share the gradient",
)
def minimum(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The smaller one; NaN if either is NaN. At a tie each gets half of the gradient."""
    ...


@composite(numpy=(np.clip,))
def clip(x: NodeLike, /, min: NodeLike = None, max: NodeLike = None) -> Node:
    """x, but at least `min` and at most `max`; None is no bound."""
    y = as_node(x)
    if min is not None:
        y = maximum(y, min)
    return y if max is None else minimum(y, max)


__all__ = REGISTRY.public(__name__)
