"""Masks: what the backward of relu and its kin give rise to.

A mask multiplied in is a selection; selections merge; scalars move out of them; and the mask of a
relu is taken from its output, which is alive anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.dims import guess, product
from symgrad.ir.node import Node, constant_value
from symgrad.ir.types import broadcast_shapes
from symgrad.ops.elementwise import negative
from symgrad.ops.linalg.products import matmul_p
from symgrad.ops.logic import greater, logical_and
from symgrad.ops.select import keep_where_positive, relu, select
from symgrad.ops.shape import astype_p
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule


def every(c: Node, holds: Callable[[Any], Any]) -> bool:
    """Whether a node is a constant, of whose every element something holds."""
    value = constant_value(c)
    return value is not None and bool(holds(value).all())


def value_of(c: Node) -> Any:
    """The value of a node that is a constant, as what a `Const` stands for is."""
    value = constant_value(c)
    assert value is not None
    return value


def is_finite(c: Node) -> bool:
    """Whether a constant is an ordinary number: scaling by it makes no inf or NaN by itself."""
    value = constant_value(c)  # asked at every scaling: no array of conditions is made
    return value is not None and bool(value.all()) and bool(np.isfinite(value).all())


def is_positive(c: Node) -> bool:
    """Whether a constant is an ordinary number above 0."""
    return is_finite(c) and every(c, lambda v: v > 0)


# ---- where a factor may stand ---------------------------------------------------------------
#
# A factor may be what keeps a sum or a product from overflow, and then stays where it was written:
# after a sum or a product stands one that makes numbers larger, before it one that makes them
# smaller. So what a rule puts in place is never larger on its way than what it replaces. It may be
# smaller, by 2**24 at most: float32 has room for that, float16 has not.


def grows(c: Node) -> bool:
    """Whether no number becomes smaller by a constant factor.

    It may leave a sum, which does not overflow then if it did not before, and sums of small
    numbers are exact.
    """
    return is_finite(c) and every(c, lambda v: np.abs(v) >= 1)


def is_modest(c: Node) -> bool:
    """Whether a constant factor is between 2**-24 and 2**24, of a dtype that has room for it."""
    if not is_finite(c) or value_of(c).dtype.itemsize <= 2:
        return False
    return every(c, lambda v: np.abs(np.frexp(v)[1]) <= 24)


def may_leave(c: Node) -> bool:
    """Whether a factor of an operand may be one of the product: it grows, and is modest."""
    return grows(c) and is_modest(c)


def may_leave_right_side(c: Node) -> bool:
    """Whether a factor of a right side may be one of the solution: 1/2 at least, and modest.

    A half does not grow. But 0.5 * b @ inv(a) @ b, the energy of a Gaussian process, and its
    gradient solve one system if it leaves, and two if not; it costs the last factor of two of the
    range.
    """
    return is_modest(c) and every(c, lambda v: np.abs(v) >= 0.5)


def may_enter(c: Node) -> bool:
    """Whether a factor of a product may be one of an operand: it shrinks, and is modest."""
    return is_modest(c) and every(c, lambda v: np.abs(v) <= 1)


def is_scalar(c: Node) -> bool:
    """Whether a node is a single number, which can be multiplied in anywhere."""
    return c.ndim == 0


def is_as_wide(x: Node, *others: Node) -> bool:
    """Whether x, combined with the others, has no more elements than before."""
    return broadcast_shapes(x.shape, *(o.shape for o in others)) == x.shape


def is_mask(mask: Node) -> bool:
    """Whether a node is boolean."""
    return mask.dtype.kind == "b"


@rule(exact=Exact.REALS, kinds="f", when=is_mask, examples=(lambda g, x: g * (x > 0),))
def mask_multiply(g: Var, mask: Var, dtype: Attr) -> Rewrite:
    """A 0/1 mask multiplied in is a selection: one pass over the data, and inf * 0 is 0."""
    return Rewrite(before=g * astype_p(mask, dtype=dtype), after=select(mask, g))


@rule(exact=Exact.BITS)
def select_of_same_select(mask: Var, x: Var) -> Rewrite:
    """Selecting twice by one mask is selecting once."""
    return Rewrite(before=select(mask, select(mask, x)), after=select(mask, x))


@rule(
    exact=Exact.BITS,
    single_use=True,
    when=lambda x, m1, m2: is_as_wide(x, m1) or is_as_wide(m2, m1),
)
def select_of_select(m1: Var, m2: Var, x: Var) -> Rewrite:
    """Two selections are one by both masks: masks are smaller than what they select."""
    return Rewrite(before=select(m1, select(m2, x)), after=select(logical_and(m1, m2), x))


@rule(
    exact=Exact.VALUES,
    kinds="f",
    single_use=True,
    when=lambda mask, x, c: is_finite(c) and is_as_wide(x, mask, c) and x.op is not matmul_p.op,
)
def scalar_out_of_select(mask: Var, x: Var, c: Const) -> Rewrite:
    """A scalar factor moves out of a selection, to where it may meet another or a product."""
    return Rewrite(before=select(mask, x * c), after=select(mask, x) * c)


@rule(exact=Exact.VALUES, kinds="f", single_use=True, when=lambda mask, x: is_as_wide(x, mask))
def sign_out_of_select(mask: Var, x: Var) -> Rewrite:
    """A change of sign moves out of a selection, to where it may be absorbed."""
    return Rewrite(before=select(mask, negative(x)), after=negative(select(mask, x)))


@rule(
    exact=Exact.VALUES,
    kinds="f",
    single_use=True,
    when=lambda c, a, b: is_finite(c) and product_is_largest(a, b),
    examples=({"mask": (4, 5), "a": (4, 2), "b": (2, 5), "c": 3.0},),
)
def scalar_through_select(mask: Var, a: Var, b: Var, c: Const) -> Rewrite:
    """A scalar factor moves into a selection from a matrix product, on its way to an operand."""
    return Rewrite(before=select(mask, matmul_p(a, b)) * c, after=select(mask, matmul_p(a, b) * c))


def product_is_largest(a: Node, b: Node) -> bool:
    """Whether a matrix product has more elements than one of its operands."""
    return min(guess(a.size), guess(b.size)) < product_size(a, b)


def product_size(a: Node, b: Node) -> int:
    """How many elements a matrix product has, or may have."""
    stack = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return guess(product((*stack, a.shape[-2], b.shape[-1])))


@rule(exact=Exact.BITS, single_use=True, last=True)
def mask_of_relu(x: Var) -> Rewrite:
    """The sign of relu's output is that of its input; nobody else needs the output."""
    return Rewrite(before=greater(relu(x), 0), after=greater(x, 0))


@rule(exact=Exact.BITS, single_use=True, last=True)
def positive_select(y: Var, g: Var) -> Rewrite:
    """relu's backward in one step: the mask is made where it is used, as bits."""
    return Rewrite(before=select(greater(y, 0), g), after=keep_where_positive(y, g))


@rule(
    exact=Exact.BITS,
    kinds="f",
    when=lambda mask, c: every(c, lambda v: v == 1) and is_as_wide(mask, c),
    examples=(lambda x, y: select(logical_and(x > 0, y > 0), 1.0),),
    last=True,
)
def select_one(mask: Var, c: Const) -> Rewrite:
    """A mask that selects from ones is the mask as numbers."""
    return Rewrite(before=select(mask, c), after=lambda mask, c: astype_p(mask, dtype=c.dtype))
