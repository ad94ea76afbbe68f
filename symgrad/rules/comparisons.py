"""Comparisons: with constants, with themselves, of what was negated or shifted; several at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node, apply, constant_value
from symgrad.ir.op import Op
from symgrad.ops.elementwise import negative
from symgrad.ops.leaves import constant
from symgrad.ops.logic import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from symgrad.ops.shape import astype
from symgrad.rewrite.family import DUAL, OR_EQUAL, dual_of, instead
from symgrad.rewrite.pattern import Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule, rule_for
from symgrad.rules.masks import every, is_mask

# ---- with a constant: it stands on the right ------------------------------------------------


@rule(exact=Exact.BITS, when=lambda x: constant_value(x) is None, family=(OR_EQUAL, DUAL))
def less_from_constant(x: Var, c: Const) -> Rewrite:
    """c < x is x > c."""
    return Rewrite(before=less(c, x), after=greater(x, c))


NOT_EQUAL = instead("equal/not_equal", (equal.op, not_equal.op))


@rule(
    exact=Exact.BITS,
    family=(NOT_EQUAL,),
    reasons={"equal_of_not_equal": "Not unequal is equal: one comparison."},
)
def not_equal_of_equal(x: Var, y: Var) -> Rewrite:
    """Not equal is one comparison; for the others NaN forbids it."""
    return Rewrite(before=logical_not(equal(x, y)), after=not_equal(x, y))


# ---- of values with themselves, negated, shifted --------------------------------------------

# Which of x < y, x == y, x > y and `x or y is NaN` makes a comparison true, as bits.
LESS, EQUAL, GREATER, UNORDERED = 1, 2, 4, 8
ALL = LESS | EQUAL | GREATER | UNORDERED
TRUE_WHERE: Mapping[Op, int] = {
    less.op: LESS,
    less_equal.op: LESS | EQUAL,
    greater.op: GREATER,
    greater_equal.op: GREATER | EQUAL,
    equal.op: EQUAL,
    not_equal.op: LESS | GREATER | UNORDERED,
}


def _swapped(cases: int) -> int:
    return cases & (EQUAL | UNORDERED) | (cases & LESS) * 4 | (cases & GREATER) // 4


def is_comparison(op: Op) -> bool:
    """Whether an op compares two values."""
    return bool(op.complement)


def _has_nan(x: Node) -> bool:
    """Whether NaN may be among the values."""
    return x.dtype.kind not in "biu" and not every(x, lambda v: v == v)


def _same(a: Node, b: Node) -> bool:
    return a is b or (constant_value(a) is not None and a.op is b.op and a.attrs == b.attrs)


@rule_for(
    is_comparison,
    exact=Exact.BITS,
    operands=lambda ops: ops[0] is ops[1],
    examples=(lambda x: less(x, x), lambda x: x <= x, lambda x: x == x),
)
def compared_with_itself(node: Node) -> Node | None:
    """Nothing is less than itself, and all but NaN is equal to itself."""
    x, y = node.inputs
    if not _same(x, y):
        return None
    cases = TRUE_WHERE[node.op] & (EQUAL | UNORDERED)
    if cases == 0 or not _has_nan(x):
        return constant(bool(cases & EQUAL))
    return equal(x, x) if cases == EQUAL and node.op is not equal.op else None


@rule(exact=Exact.REALS, when=lambda x: _has_nan(x))
def number_equals_itself(x: Var) -> Rewrite:
    """All is equal to itself, but for NaN."""
    return Rewrite(before=equal(x, x), after=True)


@rule_for(
    is_comparison,
    exact=Exact.BITS,
    operands=lambda ops: ops[0] is negative.op and ops[1] in (negative.op, CONSTANT),
    examples=(lambda x, y: less(-x, -y), lambda x: -x >= 1.5),
)
def comparison_of_negatives(node: Node) -> Node | None:
    """What was negated compares the other way round; only floats always have a negative."""
    x, y = node.inputs
    if x.dtype.kind != "f":
        return None
    other = y.inputs[0] if y.op is x.op else negative(y)
    return apply(dual_of(node.op), [x.inputs[0], other])


@rule(exact=Exact.BITS, single_use=True, when=lambda x: x.dtype.kind == "f", family=(DUAL,))
def difference_is_positive(x: Var, y: Var) -> Rewrite:
    """x - y is positive where x is greater, since differences underflow gradually."""
    return Rewrite(before=greater(x - y, 0), after=greater(x, y))


# ---- of masks with numbers ------------------------------------------------------------------


@rule_for(
    is_comparison,
    exact=Exact.BITS,
    operands=lambda ops: CONSTANT in ops,
    examples=(lambda x: astype(x > 0, "float32") > 0.5, lambda x: equal(x < 1, False)),
)
def comparison_of_mask(node: Node) -> Node | None:
    """What a 0/1 mask compares like is told by 0 and by 1: it is the mask, or its opposite."""
    is_first = constant_value(node.inputs[1]) is not None
    x, c = node.inputs if is_first else node.inputs[::-1]
    value, mask = constant_value(c), x.inputs[0] if x.op.cast else x
    if value is None or value.size != 1 or not is_mask(mask):
        return None
    both = np.array([0, 1], x.dtype)
    operands = (both, value.reshape(1)) if is_first else (value.reshape(1), both)
    off, on = node.op.kernel(*operands).tolist()
    if off == on:
        return constant(on)
    return mask if on else logical_not(mask)


# ---- several at once ------------------------------------------------------------------------


def _cases(node: Node) -> tuple[int, Node, Node] | None:
    """In which cases a comparison, or the negation of one, is true, and of what it is one."""
    is_not = node.op is logical_not.op
    inner = node.inputs[0] if is_not else node
    if not is_comparison(inner.op):
        return None
    cases, (x, y) = TRUE_WHERE[inner.op], inner.inputs
    return ALL - cases if is_not else cases, x, y


COMBINED: Mapping[Op, Callable[[int, int], int]] = {
    logical_and.op: int.__and__,
    logical_or.op: int.__or__,
    logical_xor.op: int.__xor__,
}


@rule_for(
    lambda op: op in COMBINED,
    exact=Exact.BITS,
    operands=lambda ops: all(is_comparison(op) or op is logical_not.op for op in ops),
    examples=(
        lambda x, y: logical_or(x > y, x == y),
        lambda x, y: logical_and(x >= y, y >= x),
        lambda x: logical_or(x > 1.5, x <= 1.5),
        lambda x, y: logical_and(x < y, logical_not(x > y)),
    ),
)
def comparisons_combine(node: Node) -> Node | None:
    """Two comparisons of the same values are one: `x < y or x == y` is `x <= y`."""
    first, second = map(_cases, node.inputs)
    if first is None or second is None:
        return None
    (a, x, y), (b, u, v) = first, second
    if _same(x, v) and _same(y, u):
        b = _swapped(b)
    elif not (_same(x, u) and _same(y, v)):
        return None
    cases, possible = COMBINED[node.op](a, b), ALL
    if not (_has_nan(x) or _has_nan(y)):
        possible -= UNORDERED
    for operand, known in zip(node.inputs, (a, b), strict=True):
        if (cases ^ known) & possible == 0 and operand.shape == node.shape:
            return operand
    if cases & possible in (0, possible):
        return constant(bool(cases & possible))
    if cases == ALL - UNORDERED and not _has_nan(y):
        return equal(x, x)
    found = [op for op, c in TRUE_WHERE.items() if (c ^ cases) & possible == 0]
    return apply(found[0], [x, y]) if found else None


def _are_integers(x: Node) -> bool:
    return x.dtype.kind in "biu"


@rule(exact=Exact.BITS, single_use=True, when=_are_integers, family=(OR_EQUAL, DUAL))
def not_less(x: Var, y: Var) -> Rewrite:
    """What is not less is greater or equal, where there is no NaN: one operation."""
    return Rewrite(before=logical_not(less(x, y)), after=greater_equal(x, y))
