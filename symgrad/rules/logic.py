"""Logic: and, or, not, xor; booleans and 0/1 masks in arithmetic."""

from __future__ import annotations

import numpy as np

from symgrad.ir.node import Node
from symgrad.ir.op import Op
from symgrad.ops.elementwise import negative
from symgrad.ops.logic import (
    bitwise_and,
    bitwise_invert,
    bitwise_xor,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
)
from symgrad.ops.shape import astype_p
from symgrad.rewrite.family import DE_MORGAN, instead
from symgrad.rewrite.pattern import Attr, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule, rule_for
from symgrad.rules.masks import is_as_wide, is_mask

# ---- arithmetic and bits of booleans --------------------------------------------------------


@rule(exact=Exact.BITS, kinds="b")
def invert_is_not(mask: Var) -> Rewrite:
    """To invert a boolean is to negate it."""
    return Rewrite(before=bitwise_invert(mask), after=logical_not(mask))


XOR = instead("and/xor", (bitwise_and.op, bitwise_xor.op), (logical_and.op, logical_xor.op))


@rule(
    exact=Exact.BITS,
    kinds="b",
    family=(DE_MORGAN, XOR),
    reasons={
        "bitwise_or_is_or": "A boolean is one bit: it is set in one where one is true.",
        "bitwise_xor_is_xor": (
            "A boolean is one bit: it is set in just one where just one is true."
        ),
    },
)
def bitwise_and_is_and(mask: Var, other: Var) -> Rewrite:
    """A boolean is one bit: it is set in both where both are true."""
    return Rewrite(before=bitwise_and(mask, other), after=logical_and(mask, other))


@rule(exact=Exact.BITS, kinds="b")
def product_of_booleans(mask: Var, other: Var) -> Rewrite:
    """The product of booleans says whether both are true."""
    return Rewrite(before=mask * other, after=logical_and(mask, other))


@rule(exact=Exact.BITS, kinds="b")
def sum_of_booleans(mask: Var, other: Var) -> Rewrite:
    """The sum of booleans says whether one of them is true."""
    return Rewrite(before=mask + other, after=logical_or(mask, other))


def _are_masks(mask: Node, other: Node) -> bool:
    return is_mask(mask) and is_mask(other)


@rule(exact=Exact.BITS, kinds="iuf", single_use=True, when=_are_masks)
def product_of_masks(mask: Var, other: Var, p: Attr) -> Rewrite:
    """The product of 0/1 masks is one mask: booleans are smaller than numbers."""
    return Rewrite(
        before=astype_p(mask, dtype=p) * astype_p(other, dtype=p),
        after=astype_p(logical_and(mask, other), dtype=p),
    )


@rule(exact=Exact.BITS, kinds="iuf", single_use=True, when=_are_masks)
def mask_factors_combine(x: Var, mask: Var, other: Var, p: Attr) -> Rewrite:
    """Two 0/1 masks multiplied in are one: a pass less over the data."""
    return Rewrite(
        before=(x * astype_p(mask, dtype=p)) * astype_p(other, dtype=p),
        after=x * astype_p(logical_and(mask, other), dtype=p),
    )


@rule(exact=Exact.BITS, kinds="iuf", single_use=True, when=is_mask)
def one_minus_mask(mask: Var, p: Attr) -> Rewrite:
    """1 less a 0/1 mask is the opposite mask."""
    return Rewrite(before=1 - astype_p(mask, dtype=p), after=astype_p(logical_not(mask), dtype=p))


@rule(
    exact=Exact.BITS,
    when=lambda x, p: p.kind == "b" and x.dtype.kind in "iuf",
    examples=({"x": (2, 3), "p": np.dtype("bool")},),
)
def boolean_of_negative(x: Var, p: Attr) -> Rewrite:
    """Whether a number is 0 does not depend on its sign."""
    return Rewrite(before=astype_p(negative(x), dtype=p), after=astype_p(x, dtype=p))


# ---- and, or, xor, not ----------------------------------------------------------------------


@rule(exact=Exact.BITS)
def not_not(x: Var) -> Rewrite:
    """Two negations cancel."""
    return Rewrite(
        before=logical_not(logical_not(x)), after=lambda x: x if x.dtype.kind == "b" else None
    )


@rule(
    exact=Exact.BITS,
    when=is_mask,
    family=(DE_MORGAN,),
    reasons={"or_of_same": "One of them is true where the one is."},
)
def and_of_same(mask: Var) -> Rewrite:
    """Both are true where the one is."""
    return Rewrite(before=logical_and(mask, mask), after=mask)


@rule(exact=Exact.BITS)
def xor_of_same(x: Var) -> Rewrite:
    """Never is just one of two true that are the same."""
    return Rewrite(before=logical_xor(x, x), after=False)


@rule(exact=Exact.BITS, when=is_mask, family=(DE_MORGAN,))
def and_true(mask: Var) -> Rewrite:
    """True is neutral in a conjunction."""
    return Rewrite(before=logical_and(mask, True), after=mask)


@rule(
    exact=Exact.BITS,
    family=(DE_MORGAN,),
    reasons={"or_true": "Always is one of them true if one is."},
)
def and_false(x: Var) -> Rewrite:
    """Never are both true if one is false."""
    return Rewrite(before=logical_and(x, False), after=False)


@rule(exact=Exact.BITS)
def xor_true(x: Var) -> Rewrite:
    """Just one is true, beside one that always is, where the other is not."""
    return Rewrite(before=logical_xor(x, True), after=logical_not(x))


@rule(exact=Exact.BITS, when=is_mask)
def xor_false(mask: Var) -> Rewrite:
    """False is neutral in an exclusive disjunction."""
    return Rewrite(before=logical_xor(mask, False), after=mask)


@rule(
    exact=Exact.BITS,
    family=(DE_MORGAN,),
    reasons={"or_of_opposites": "Always is something true or its opposite."},
)
def and_of_opposites(x: Var) -> Rewrite:
    """Never are something and its opposite both true."""
    return Rewrite(before=logical_and(x, logical_not(x)), after=False)


def _three_conditions(x: Node, y: Node) -> Node:
    a = x > 1.5
    return logical_and(logical_and(a, y < 0.5), a)


def _is_and_or_or(op: Op) -> bool:
    return op in (logical_and.op, logical_or.op)


@rule_for(
    _is_and_or_or,
    exact=Exact.BITS,
    operands=lambda operands: any(map(_is_and_or_or, operands)),
    examples=(_three_conditions,),
)
def condition_repeated(node: Node) -> Node | None:
    """A condition that was asked for once need not be asked for again."""
    for x, inner in (node.inputs, node.inputs[::-1]):
        repeated = any(x is y for y in inner.inputs)
        if inner.op is node.op and repeated and inner.shape == node.shape:
            return inner
    return None


@rule(exact=Exact.BITS, when=is_mask, family=(DE_MORGAN,))
def and_absorbs(mask: Var, y: Var) -> Rewrite:
    """What is true makes a disjunction with it true."""
    return Rewrite(before=logical_and(mask, logical_or(mask, y)), after=mask)


@rule(
    exact=Exact.BITS,
    family=(DE_MORGAN,),
    reasons={"or_of_excluded": "Where x is false, both of `not x` and y are true if y is."},
)
def and_of_implied(x: Var, y: Var) -> Rewrite:
    """Where x is true, one of `not x` and y is true if y is."""
    return Rewrite(before=logical_and(x, logical_or(logical_not(x), y)), after=logical_and(x, y))


def _no_wider(x: Node, y: Node) -> bool:
    return is_mask(x) and is_mask(y) and (is_as_wide(x, y) or is_as_wide(y, x))


@rule(
    exact=Exact.BITS,
    single_use=True,
    when=_no_wider,
    family=(DE_MORGAN,),
    reasons={"not_both": "One is false where not both are true (De Morgan): one negation."},
)
def neither(x: Var, y: Var) -> Rewrite:
    """Both are false where none is true (De Morgan): one negation."""
    return Rewrite(
        before=logical_and(logical_not(x), logical_not(y)), after=logical_not(logical_or(x, y))
    )
