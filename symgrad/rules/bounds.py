"""Bounds: of which of two one counts, and conditions on what was bounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from symgrad.ir.node import Node, apply, constant_value
from symgrad.ir.op import Op
from symgrad.ops.activations import leaky_relu
from symgrad.ops.logic import (
    equal,
    greater,
    less,
    less_equal,
    logical_and,
    not_equal,
)
from symgrad.ops.select import maximum, minimum, relu
from symgrad.rewrite.family import DUAL
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule, rule_for
from symgrad.rules.comparisons import is_comparison

# ---- of two, one counts ---------------------------------------------------------------------


@rule(exact=Exact.BITS, single_use=True, family=(DUAL,))
def upper_bounds_combine(x: Var, c: Const, d: Const) -> Rewrite:
    """What is less than two constants is less than the smaller one."""
    return Rewrite(before=logical_and(less(x, c), less(x, d)), after=less(x, minimum(c, d)))


_BOUNDED = tuple(
    {"x": (9,), "y": (9,), "c": c, "d": d} for c, d in ((3.0, 1.0), (-0.0, 0.0), (1.0, np.nan))
)


@rule(exact=Exact.BITS, single_use=True, examples=_BOUNDED, family=(DUAL,))
def upper_bounds_meet(x: Var, y: Var, c: Const, d: Const) -> Rewrite:
    """What is less than two constants, among other conditions, is less than the smaller one."""
    return Rewrite(
        before=logical_and(less(x, c), logical_and(y, less(x, d))),
        after=logical_and(y, less(x, minimum(c, d))),
    )


# ---- conditions on what was bounded ---------------------------------------------------------

# An extremum with a constant c, and the far end of the values that become c.
FAR_END: Mapping[Op, float] = {maximum.op: -np.inf, minimum.op: np.inf, relu.op: -np.inf}


Extremum: TypeAlias = "tuple[Callable[[Any, Any], Any], Node, Any]"


def _bounded(y: Node) -> Extremum | None:
    """Of an extremum of x and a number c: maximum or minimum, the x, and the c."""
    if y.op is relu.op:
        return np.maximum, y.inputs[0], np.zeros((), y.dtype)
    if y.op not in FAR_END:
        return None
    c = constant_value(y.inputs[1])
    if c is None or np.isnan(c).any() or y.inputs[0].shape != y.shape:
        return None
    return y.op.kernel, y.inputs[0], c


def _bounds_in_vain(x: Node, y: Node) -> Node:
    one, other = minimum(x, 2) >= -1.5, maximum(x, -1.5) < 2
    return logical_and(logical_and(one, other), logical_and(relu(y) < 2, relu(y) != 1.5))


@rule_for(
    lambda op: op is logical_and.op,
    exact=Exact.BITS,
    operands=lambda ops: any(map(is_comparison, ops)),
    examples=(_bounds_in_vain,),
)
def condition_on_bounded(node: Node) -> Node | None:
    """A bound that makes no difference to a condition need not be waited for.

    Only among others, as in the backward of `clip`: alone it may tell that a choice is a bound.
    """
    conditions = [_unbounded(x) for x in node.inputs]
    changed = any(a is not b for a, b in zip(conditions, node.inputs, strict=True))
    return logical_and(*conditions) if changed else None


def _unbounded(node: Node) -> Node:
    """A condition, but of an operand instead of its extremum with a constant, if it is the same."""
    if not (node.op.converse or node.op is not_equal.op):
        return node
    y, d = node.inputs
    found, value = _bounded(y), constant_value(d)
    if found is None or value is None:
        return node
    extremum, x, bound = found
    if (bound == value).any():
        return node  # compared with its bound, an extremum tells as much as its operand
    if node.op is not_equal.op:
        same = extremum(bound, value) == value
    else:
        same = node.op.kernel(bound, value) == node.op.kernel(FAR_END[y.op], value)
    return apply(node.op, [x, d]) if bool(np.all(same)) else node


def _reached(node: Node) -> Extremum | None:
    """Of `maximum(x, c) != c`, as the backward of an extremum asks: maximum, the x, and the c.

    That is where x is greater than c, or NaN. Bounds of x in between make no difference to it.
    """
    found = _bounded(node.inputs[0]) if node.op is not_equal.op else None
    value = constant_value(node.inputs[1]) if found is not None else None
    if found is None or value is None or not np.array_equal(found[2], value):
        return None
    extremum, x, bound = found
    while (inner := _bounded(x)) is not None:
        kind, further, other = inner
        nearer = extremum(other, bound)
        is_in_vain = nearer == bound if kind is extremum else (nearer == other) & (other != bound)
        if not np.all(is_in_vain):
            break
        x = further
    return extremum, x, bound


def _implies(one: Node, other: Node) -> bool:
    """Whether what one bound does not hold back, another, which is farther, does not."""
    a, b = _reached(one), _reached(other)
    if a is None or b is None or a[0] is not b[0] or a[1] is not b[1]:
        return False
    return bool(np.all(a[0](a[2], b[2]) == a[2]))


def _bounds_twice(x: Node, y: Node) -> Node:
    a = maximum(x, -3)
    b = minimum(a, 3)
    c = maximum(b, -1)
    near = logical_and(not_equal(c, -1), not_equal(minimum(c, 2), 2))
    return logical_and(logical_and(not_equal(b, 3), near), logical_and(not_equal(a, -3), y > 0))


@rule_for(
    lambda op: op is logical_and.op,
    exact=Exact.BITS,
    operands=lambda ops: not_equal.op in ops,
    examples=(
        _bounds_twice,
        lambda x: logical_and(maximum(x, 1) != 1, maximum(minimum(x, 1.5), 1.25) != 1.25),
        lambda x: logical_and(relu(x) != 0, maximum(relu(x), 1) != 1),
    ),
)
def nearer_bound_implies(node: Node) -> Node | None:
    """What a bound does not hold back, one farther out does not: as where a clip is clipped."""
    for p, q in (node.inputs, node.inputs[::-1]):
        others = q.inputs if q.op is node.op else (q,)
        if q.shape == node.shape and any(_implies(r, p) for r in others):
            return q
        for r, rest in (others, others[::-1]) if len(others) == 2 else ():
            if _implies(p, r):
                return logical_and(p, rest)
    return None


@rule(exact=Exact.BITS)
def positive_and_bounded(x: Var, c: Const) -> Rewrite:
    """Where the operand of relu is compared anyway, its sign is taken from there too."""
    return Rewrite(
        before=logical_and(greater(relu(x), 0), less(x, c)),
        after=logical_and(greater(x, 0), less(x, c)),
    )


@rule(exact=Exact.BITS, single_use=True)
def relu_is_zero(x: Var) -> Rewrite:
    """Where relu is 0 its operand is not positive; nobody else needs the output."""
    return Rewrite(before=equal(relu(x), 0), after=less_equal(x, 0))


@rule(exact=Exact.BITS, single_use=True, when=lambda slope: slope > 0)
def mask_of_leaky_relu(x: Var, slope: Attr) -> Rewrite:
    """Where leaky relu is positive its operand is; nobody else needs the output."""
    return Rewrite(before=greater(leaky_relu(x, slope=slope), 0), after=greater(x, 0))
