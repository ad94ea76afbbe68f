"""Sums of what was negated, scaled or shifted: done once, after the sum."""

from __future__ import annotations

import numpy as np

from symgrad.ir.dims import product
from symgrad.ir.node import Node, constant_value
from symgrad.ir.types import DType
from symgrad.ops.elementwise import negative
from symgrad.ops.reduce import sum
from symgrad.rewrite.family import QUOTIENT
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule
from symgrad.rules.masks import grows, is_finite, is_scalar


@rule(exact=Exact.VALUES, kinds="f", single_use=True)
def sum_of_negative(x: Var, axis: Attr, dtype: Attr, keepdims: Attr) -> Rewrite:
    """The sign changes once, after the sum, instead of at every element."""
    return Rewrite(
        before=sum(negative(x), axis=axis, dtype=dtype, keepdims=keepdims),
        after=negative(sum(x, axis=axis, dtype=dtype, keepdims=keepdims)),
    )


def _may_leave_sum(x: Node, c: Node, dtype: DType | None) -> bool:
    """Whether a factor may leave a sum, the dtype of which holds all that the terms are made of."""
    # A sum in a narrower dtype rounds its terms, and may lose them if they are not scaled.
    held = dtype is None or np.can_cast(np.result_type(x.dtype, c.dtype), dtype)
    return held and is_scalar(c) and grows(c)


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=_may_leave_sum)
def sum_of_scaled(x: Var, c: Const, axis: Attr, dtype: Attr, keepdims: Attr) -> Rewrite:
    """A scalar factor is multiplied once, after the sum, instead of at every element."""
    return Rewrite(
        before=sum(x * c, axis=axis, dtype=dtype, keepdims=keepdims),
        after=sum(x, axis=axis, dtype=dtype, keepdims=keepdims) * c,
    )


def _is_scalar(s: Node, x: Node) -> bool:
    return s.ndim == 0 and x.ndim > 0 and constant_value(x) is None


@rule(
    exact=Exact.REALS,
    kinds="f",
    single_use=True,
    when=_is_scalar,
    examples=({"x": (2, 3), "s": (), "axis": (0,), "keepdims": False},),
    family=(QUOTIENT,),
    reasons={
        "sum_of_over_scalar": (
            "A number that all terms are divided by divides once; if it is 0, that differs."
        )
    },
)
def sum_of_times_scalar(x: Var, s: Var, axis: Attr, keepdims: Attr) -> Rewrite:
    """A number that all terms have for a factor is multiplied once; if it is inf, that differs."""
    return Rewrite(
        before=sum(x * s, axis=axis, dtype=None, keepdims=keepdims),
        after=sum(x, axis=axis, dtype=None, keepdims=keepdims) * s,
    )


@rule(exact=Exact.REALS, kinds="f", single_use=True, when=lambda c: is_finite(c) and c.ndim == 0)
def sum_of_shifted(x: Var, c: Const, axis: Attr, keepdims: Attr) -> Rewrite:
    """A constant term is added once, as often as it occurs; large ones that cancel round more."""
    return Rewrite(
        before=sum(x + c, axis=axis, dtype=None, keepdims=keepdims),
        after=lambda x, c, axis, keepdims: (
            sum(x, axis=axis, keepdims=keepdims) + c * product(x.shape[a] for a in axis)
        ),
    )
