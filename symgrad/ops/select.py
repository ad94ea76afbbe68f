"""Choosing between values: where, masks, relu, maximum, minimum, clip."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from symgrad.ir.errors import DtypeError
from symgrad.ir.node import Node, apply, as_node, constant_value
from symgrad.ir.op import Builder, case
from symgrad.ir.types import DType, TensorType, broadcast_shapes
from symgrad.ops import kernels
from symgrad.ops.declare import NodeLike, P, composite, elementwise, require
from symgrad.ops.flows import Masked, Partial
from symgrad.ops.logic import isfinite, isnan, logical_and, logical_not, logical_or
from symgrad.ops.sides import Side, held

MOST_FACTORS = 6


def bits_like(t: TensorType, *masks: TensorType) -> tuple[TensorType, ...]:
    """A temporary for a mask with all bits of a byte set, which is widened as it selects values."""
    if t.dtype.itemsize not in (1, 2, 4, 8):
        return ()
    return (TensorType(broadcast_shapes(*(m.shape for m in masks)), np.dtype("i1")),)


def _mask_promote(mask: TensorType, *types: TensorType) -> tuple[DType | None, ...]:
    require("b", mask)
    return None, *(np.result_type(*(t.dtype for t in types)),) * len(types)


# The second operand where the first says so, 0 elsewhere.
_kept = partial(
    elementwise,
    result=lambda condition, x: x.dtype,
    weak=(1,),
    in_place=(1,),
    flops=lambda *types: 0,
    annihilators=(1,),
    public=False,
)


def _chosen(side: Side, y: Node, mask: Node, *operands: Node) -> Node:
    # What is guarded against, such as 1 / x where x > 0, is not taken from the side.
    written = side.written(mask)
    if written is mask or not y.tensor.is_inexact:
        return y
    taken = where(isfinite(held(y)), mask, written)
    return apply(y.op, (taken, *operands))


def _through(mask: Node, x: Node) -> Node:
    """The mask of what flows through a selection.

    A flow that is selected where it is not 0 keeps a 0 from meeting an infinite slope. Where its
    product with the slope is finite, nothing was kept from anything: there the product is what it
    is, and has its derivative, though the flow may happen to be 0 at this point.
    """
    if mask.op is logical_and.op:  # selected twice, for a reason each
        parts = [_through(part, x) for part in mask.inputs]
        same = all(a is b for a, b in zip(parts, mask.inputs, strict=True))
        return mask if same else logical_and(*parts)
    flows = _flows_of(mask)
    if flows and _vanishes(x, flows):
        return logical_or(mask, isfinite(x))
    return mask


def _flows_of(mask: Node) -> tuple[Node, ...]:
    """The flows of which one is not 0 where a mask holds; none if it is another mask."""
    if mask.op is logical_or.op:  # of a sum of flows
        first, second = map(_flows_of, mask.inputs)
        return (*first, *second) if first and second else ()
    return mask.inputs if mask.op.cast and mask.inputs[0].tensor.is_inexact else ()


def _vanishes(x: Node, flows: tuple[Node, ...], most: int = MOST_FACTORS) -> bool:
    """Whether x is made of flows in such a way that it is 0 where they are, as a product is.

    The derivative of one op is so deep; further down nothing is sought.
    """
    op = x.op
    if not most or any(x is flow for flow in flows):
        return most > 0
    if op.annihilators:
        return any(_vanishes(x.inputs[i], flows, most - 1) for i in op.annihilators)
    if op.linear or op.view or op.cast or op.identity:
        return _vanishes(x.inputs[0], flows, most - 1)
    if op.preserves_zero and x.inputs:
        return all(_vanishes(n, flows, most - 1) for n in x.inputs)
    return False


@_kept(
    kernels.select,
    partials=lambda y, mask, x: (None, _through(mask, x)),
    locked=_chosen,
    promote=_mask_promote,
    scratch=lambda mask, x: bits_like(x, mask),
    zero_filled=True,
    selection=True,
)
def select(mask: NodeLike, x: NodeLike, /) -> Node:
    """x where the boolean mask holds, 0 elsewhere: a mask multiplied in, exact for inf and NaN."""
    ...


def _bits_promote(bits: TensorType, *types: TensorType) -> tuple[DType | None, ...]:
    require("i", bits)
    require("f", *types)
    if any(t.dtype.itemsize != bits.dtype.itemsize for t in types):
        raise DtypeError(f"{bits!r} is not as wide as {', '.join(map(repr, types))}")
    return (None,) * (1 + len(types))


@_kept(
    kernels.keep_bits,
    partials=lambda y, bits, x: (None, bits != 0),
    promote=_bits_promote,
    dtypes="",  # its first operand is no number
)
def keep_bits(bits: NodeLike, x: NodeLike, /) -> Node:
    """x where all bits are set, 0 where none is: a selection by a mask that has been widened."""
    ...


def _mask_bits_infer(t: TensorType, *, dtype: DType) -> TensorType:
    require("b", t)
    if dtype.itemsize > 8:
        raise DtypeError(f"{dtype.name} has no integers of its size; convert it with astype")
    return t.with_dtype(np.dtype(f"i{dtype.itemsize}"))


@elementwise(
    kernels.mask_bits,
    infer=_mask_bits_infer,
    in_place=(),
    flops=lambda t, dtype: 0,
    dtypes="bool",
    cases=(case((3, 4), dtype=np.dtype("float32")), case((2, 0), dtype=np.dtype("float64"))),
    public=False,
)
def mask_bits(mask: NodeLike, /, dtype: Any) -> Node:
    """All bits set where a mask holds, none elsewhere: integers as wide as a float dtype."""
    ...


def keep_by_bits(mask: Node, x: Node) -> Node:
    """select(mask, x), in two parts: the first, the mask as bits, is the same for each x."""
    return keep_bits(mask_bits(mask, dtype=x.dtype), x)


@elementwise(
    kernels.where,
    partials=lambda y, c, a, b: (None, c, logical_not(c)),
    locked=_chosen,
    promote=_mask_promote,
    result=lambda c, a, b: a.dtype,
    weak=(1, 2),
    in_place=(1,),
    scratch=lambda c, a, b: bits_like(a, c, a, b),
    flops=lambda *types: 0,
    numpy=(np.where,),
)
def where(condition: NodeLike, x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 where the boolean condition holds, x2 elsewhere."""
    ...


def relu_kernel(x: Any, out: Any = None) -> Any:
    """x where it is positive, 0 elsewhere; NaN stays."""
    return np.maximum(x, 0, out=out)


def _relu_dtype(t: TensorType) -> DType:
    require("iuf", t)
    return t.dtype


@elementwise(
    relu_kernel,
    # The mask is taken from the output, which is alive anyway.
    partials=lambda y, x: (y > 0,),
    locked=lambda side, y, x: side.choose(side.lead(x), x, 0),
    result=_relu_dtype,
    source="np.maximum({0}, 0, out={out})",
    preserves_zero=True,
    idempotent=True,
    kinks="at 0, from 0 to 1",
)
def relu(x: NodeLike, /) -> Node:
    """max(x, 0), NaN where x is NaN. Its derivative at 0 is 0, unless `kinks` says otherwise.

    The derivative is the mask y > 0, so that it is 0 at a NaN, where that of other extrema is 1. So
    it is for all that is relu: `maximum(x, 0)`, `clip(x, 0, 6)`, `relu6`.

    >>> float(compile([x := placeholder("x", ())], grad(relu(x), x))(float("nan")))
    0.0
    """
    ...


def _keep_promote(m: TensorType, x: TensorType) -> tuple[DType | None, ...]:
    require("biuf", m)
    return None, None


@_kept(
    kernels.keep_where_positive,
    partials=lambda y, m, x: (None, m > 0),
    promote=_keep_promote,
    scratch=lambda m, x: bits_like(x, m),
)
def keep_where_positive(m: NodeLike, x: NodeLike, /) -> Node:
    """select(m > 0, x) in one step: what relu's backward becomes."""
    ...


def is_result(x: Node, y: Node) -> Node:
    """Where x is the result y of an extremum: what flows to y goes to such elements alone.

    A NaN is the result where the result is NaN, so that it is known whose NaN it was.
    """
    found: Node = x == y
    if x.tensor.is_inexact:
        found = found | (isnan(x) & isnan(y))
    return found


def extremum_on(side: Side, a: Node, b: Node, *, largest: bool, passes_nan: bool = False) -> Node:
    """The larger or smaller of two, on the side to which they move; a NaN, or what is beside it."""
    lead = side.lead(a, b)
    known = isnan(held(b if passes_nan else a)) if a.tensor.is_inexact else None
    return side.choose(lead if largest else -lead, a, b, known)


def extremum(
    ufunc: np.ufunc, *, dual: str, largest: bool, passes_nan: bool = False
) -> Callable[[Callable[P, Node]], Builder[P]]:
    """Declare an extremum of two, of which one is the result, or both.

    A tie of two that vary is shared; at a tie with what does not vary the slope is 0.
    """

    def partials(y: Node, a: Node, b: Node, active: tuple[bool, ...]) -> tuple[Partial, ...]:
        slope = 0.5 if all(active) else 0
        masks = [_or_other(y, x, other) for x, other in ((a, b), (b, a))]
        return tuple(
            Masked(((mask, 1), (tie, slope))) if varies else None
            for (mask, tie), varies in zip(masks, active, strict=True)
        )

    return elementwise(
        ufunc,
        real=True,
        partials=partials,
        locked=lambda side, y, a, b: extremum_on(
            side, a, b, largest=largest, passes_nan=passes_nan
        ),
        commutative=True,
        idempotent=True,
        dual=dual,
        kinks=f"at ties: shared by two that vary, else from {1 - largest} to {int(largest)}",
        by_activity=True,
    )


def _or_other(y: Node, x: Node, other: Node) -> tuple[Node, Node]:
    """Where x is the extremum y on its own, that is where the other is not; where both are."""
    bound = constant_value(other)
    if bound is not None and not np.isnan(bound).any():
        return y != other, x == other
    is_other = is_result(other, y)
    return logical_not(is_other), is_other & is_result(x, y)


@extremum(np.maximum, dual="minimum", largest=True)
def maximum(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The larger one; NaN if either is NaN. At a tie each gets half of the gradient."""
    ...


@extremum(np.minimum, dual="maximum", largest=False)
def minimum(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The smaller one; NaN if either is NaN. At a tie each gets half of the gradient."""
    ...


def _is_kept(dtype: DType, bound: Any, side: int) -> bool:
    """Whether a bound is an int that lies beyond every number of a dtype, on its side."""
    if type(bound) is not int or dtype.kind not in "iu":
        return False
    return bound < np.iinfo(dtype).min if side < 0 else bound > np.iinfo(dtype).max


@composite(numpy=(np.clip,))
def clip(x: NodeLike, /, min: NodeLike = None, max: NodeLike = None) -> Node:
    """x, but at least `min` and at most `max`; None is no bound.

    Nor is a Python int that all numbers of x's dtype keep to: `clip(x, -5, 9)` of uint8.
    """
    y = as_node(x)
    if not (min is None or _is_kept(y.dtype, min, -1)):
        y = maximum(y, min)
    return y if max is None or _is_kept(y.dtype, max, 1) else minimum(y, max)
