"""Sums of rows as BLAS does them: dot products and products with ones, not sums of an array.

These are kernels: no other rule knows them.
"""

from __future__ import annotations

from symgrad.ir.node import Node
from symgrad.ops.elementwise import add, multiply, negative, sqrt, square
from symgrad.ops.linalg.products import row_sums, vecdot_p
from symgrad.ops.reduce import sum
from symgrad.ops.shape import reshaped
from symgrad.rewrite.pattern import Attr, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule
from symgrad.rules.masks import every, is_as_wide

# Longer rows are summed pairwise.
LONGEST_ROW = 8192


def _is_last(x: Node, axis: tuple[int, ...]) -> bool:
    """Whether an axis is the last of several, and not too long."""
    length = x.shape[-1] if x.shape else 0
    short = isinstance(length, int) and length <= LONGEST_ROW
    return short and x.ndim > 1 and axis == (x.ndim - 1,)


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    when=lambda x, y, axis: (
        _is_last(x if x.ndim >= y.ndim else y, axis) and x.shape[-1:] == y.shape[-1:]
    ),
    last=True,
)
def sum_of_products_in_rows(x: Var, y: Var, axis: Attr, keepdims: Attr) -> Rewrite:
    """Row by row the sum of all products is a dot product: no array of products is made."""
    return Rewrite(
        before=sum(x * y, axis=axis, dtype=None, keepdims=keepdims),
        after=vecdot_p(x, y, keepdims=keepdims),
    )


def _is_column(y: Node, c: Node) -> bool:
    return y.ndim == c.ndim and y.shape[:-1] == c.shape[:-1] and c.shape[-1] == 1 != y.shape[-1]


def _over_deviation(x: Node, y: Node) -> Node:
    deviation = sqrt(vecdot_p(x, x, keepdims=True) + 1e-5)
    return vecdot_p(x, y / deviation, keepdims=False)


def _is_never_negative(x: Node) -> bool:
    """Whether a node is a square, or a positive multiple of one, or a sum of squares."""
    if x.op is multiply.op:
        x, c = x.inputs
        if not every(c, lambda v: v > 0):
            return False
    return x.op is square.op or (x.op is vecdot_p.op and x.inputs[0] is x.inputs[1])


def _is_never_zero(x: Node) -> bool:
    """Whether a node is the root of what is never negative and a positive number."""
    if x.op is not sqrt.op or x.inputs[0].op is not add.op:
        return False
    a, b = x.inputs[0].inputs
    return every(b, lambda v: v > 0) and _is_never_negative(a)


@rule(
    exact=Exact.REALS,
    kinds="f",
    single_use=True,
    when=lambda x, y, c: x.shape == y.shape and _is_column(y, c) and _is_never_zero(c),
    examples=(_over_deviation,),
    last=True,
)
def divisor_out_of_rows(x: Var, y: Var, c: Var, keepdims: Attr) -> Rewrite:
    """What divides each row of a dot product of rows divides the result, unless that overflows."""
    return Rewrite(
        before=vecdot_p(x, y / c, keepdims=keepdims),
        after=lambda x, y, c, keepdims: reshaped(
            vecdot_p(x, y, keepdims=True) / c, c.shape if keepdims else c.shape[:-1]
        ),
    )


@rule(exact=Exact.VALUES, kinds="f", single_use=True, when=lambda x, y: is_as_wide(y, x), last=True)
def sign_out_of_rows(x: Var, y: Var, k: Attr) -> Rewrite:
    """A change of sign is made to the result of a dot product of rows."""
    return Rewrite(
        before=vecdot_p(x, negative(y), keepdims=k), after=negative(vecdot_p(x, y, keepdims=k))
    )


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=_is_last, last=True)
def sum_of_squares_in_rows(x: Var, axis: Attr, keepdims: Attr) -> Rewrite:
    """Row by row the sum of all squares is a dot product: no array of squares is made."""
    return Rewrite(
        before=sum(square(x), axis=axis, dtype=None, keepdims=keepdims),
        after=vecdot_p(x, x, keepdims=keepdims),
    )


def _has_rows(x: Node, axis: tuple[int, ...]) -> bool:
    """Whether BLAS sums along an axis: of a matrix, or of large ones, and of a dtype it knows."""
    large = x.ndim == 2 or (x.ndim > 2 and isinstance(x.shape[-2], int) and x.shape[-2] >= 64)
    return large and _is_last(x, axis) and x.dtype.itemsize in (4, 8)


@rule(exact=Exact.ROUNDING, kinds="f", when=_has_rows, last=True)
def sum_in_rows(x: Var, axis: Attr, keepdims: Attr) -> Rewrite:
    """The sums of rows are a product with ones, which BLAS does many times as fast as a sum."""
    return Rewrite(
        before=sum(x, axis=axis, dtype=None, keepdims=keepdims),
        after=row_sums(x, keepdims=keepdims),
    )
