"""Extrema and norms of what was negated, scaled or mapped: done once, after the reduction."""

from __future__ import annotations

from symgrad.ir.node import Node, apply
from symgrad.ir.op import REGISTRY
from symgrad.ops import reduce
from symgrad.ops.activations import log_softmax, softmax
from symgrad.ops.conv.pooling import window_max
from symgrad.ops.elementwise import abs, exp, negative
from symgrad.ops.linalg.norms import norm2
from symgrad.ops.logic import logical_not
from symgrad.ops.order import argmax_p, argmin_p
from symgrad.ops.select import relu
from symgrad.rewrite.family import DE_MORGAN, DUAL, instead
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule
from symgrad.rules.masks import grows, is_finite, is_scalar, value_of


@rule(exact=Exact.VALUES, single_use=True)
def largest_of_relu(x: Var, a: Attr, n: Attr, s: Attr, d: Attr) -> Rewrite:
    """relu keeps the order, so that it may wait until the largest is found: there are fewer."""
    return Rewrite(
        before=window_max(relu(x), axis=a, size=n, stride=s, dilation=d),
        after=relu(window_max(x, axis=a, size=n, stride=s, dilation=d)),
    )


@rule(exact=Exact.VALUES, kinds="f", single_use=True, family=(DUAL,))
def max_of_negative(x: Var, axis: Attr, keepdims: Attr) -> Rewrite:
    """The largest of what was negated is the smallest, negated once."""
    return Rewrite(
        before=reduce.max(negative(x), axis=axis, keepdims=keepdims),
        after=negative(reduce.min(x, axis=axis, keepdims=keepdims)),
    )


def _scaled(node: Node, x: Node, c: Node) -> Node:
    """An extremum of numbers that are scaled when it is found, or if c < 0 the other extremum."""
    op = node.op if value_of(c) > 0 else REGISTRY.find(node.op.dual)
    found: Node = apply(op, [x], dict(node.attrs)) * c
    return found


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    when=lambda c: is_finite(c) and c.ndim == 0,
    family=(DUAL,),
    reasons={
        "min_of_scaled": (
            "A scalar factor is multiplied once, after the smallest was found, or for c < 0 the "
            "largest.\n\n"
            "The value is the same to the bit; elements that scaling rounds to one share the "
            "gradient."
        )
    },
)
def max_of_scaled(x: Var, c: Const, axis: Attr, keepdims: Attr) -> Rewrite:
    """A scalar factor is multiplied once, after the largest was found, or for c < 0 the smallest.

    The value is the same to the bit; elements that scaling rounds to one share the gradient.
    """
    return Rewrite(
        before=reduce.max(x * c, axis=axis, keepdims=keepdims),
        after=_scaled,
    )


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True)
def max_of_exp(x: Var, axis: Attr, keepdims: Attr) -> Rewrite:
    """The exponential grows, so that it is taken of the largest alone."""
    return Rewrite(
        before=reduce.max(exp(x), axis=axis, keepdims=keepdims),
        after=exp(reduce.max(x, axis=axis, keepdims=keepdims)),
    )


@rule(
    exact=Exact.BITS,
    single_use=True,
    family=(DE_MORGAN,),
    reasons={"all_of_not": "Whether all are false is whether not any is true: one negation."},
)
def any_of_not(x: Var, axis: Attr, keepdims: Attr) -> Rewrite:
    """Whether any is false is whether not all are true: one negation."""
    return Rewrite(
        before=reduce.any(logical_not(x), axis=axis, keepdims=keepdims),
        after=logical_not(reduce.all(x, axis=axis, keepdims=keepdims)),
    )


@rule(exact=Exact.BITS)
def norm_of_negative(x: Var, axis: Attr, keepdims: Attr) -> Rewrite:
    """A norm does not see the sign."""
    return Rewrite(
        before=norm2(negative(x), axis=axis, keepdims=keepdims),
        after=norm2(x, axis=axis, keepdims=keepdims),
    )


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=lambda c: is_scalar(c) and grows(c))
def norm_of_scaled(x: Var, c: Const, axis: Attr, keepdims: Attr) -> Rewrite:
    """A scalar factor leaves a norm, as its magnitude."""
    return Rewrite(
        before=norm2(x * c, axis=axis, keepdims=keepdims),
        after=norm2(x, axis=axis, keepdims=keepdims) * abs(c),
    )


# ---- where the largest is -------------------------------------------------------------------


@rule(exact=Exact.BITS, when=lambda x: x.dtype.kind == "f", family=(DUAL,))
def argmax_of_negative(x: Var, axis: Attr) -> Rewrite:
    """The largest of what was negated is where the smallest is."""
    return Rewrite(before=argmax_p(negative(x), axis=axis), after=argmin_p(x, axis=axis))


@rule(exact=Exact.REALS)
def argmax_of_exp(x: Var, axis: Attr) -> Rewrite:
    """The exponential grows; but where it rounds or overflows, different numbers become one."""
    return Rewrite(before=argmax_p(exp(x), axis=axis), after=argmax_p(x, axis=axis))


LOG_SOFTMAX = instead("softmax/log_softmax", (softmax.op, log_softmax.op))


@rule(
    exact=Exact.REALS,
    when=lambda axis, over: axis in over,
    examples=({"x": (2, 3), "axis": 1, "over": (1,)},),
    family=(LOG_SOFTMAX,),
)
def argmax_of_softmax(x: Var, axis: Attr, over: Attr) -> Rewrite:
    """The most probable is the largest; but where it rounds, different numbers become one."""
    return Rewrite(before=argmax_p(softmax(x, axis=over), axis=axis), after=argmax_p(x, axis=axis))
