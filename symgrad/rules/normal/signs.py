"""Normal forms of what has a kink and a sign, and of parts of one function put together.

See `autodiff/normal.py`. What is negated before and after an extremum is the other extremum of what
was not: its left side is at the left again. An argument alone that is negated, as in relu(-x), is
left as it is.
"""

from __future__ import annotations

from typing import Any

from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node, apply, constant_value
from symgrad.ir.op import REGISTRY, Op
from symgrad.ops.activations import fmax, fmin
from symgrad.ops.elementwise import abs, negative
from symgrad.ops.leaves import constant
from symgrad.ops.logic import greater, less
from symgrad.ops.reduce import max, min
from symgrad.ops.select import maximum, minimum, relu, select, where
from symgrad.ops.shape import concat_p, reshape, reshape_p, stack
from symgrad.rewrite.family import COMPLEMENT, OR_EQUAL
from symgrad.rewrite.pattern import Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule, rule_for
from symgrad.rules import extrema


@rule_for(
    lambda op: op is negative.op,
    exact=Exact.VALUES,
    operands=lambda ops: ops[0] is CONSTANT,
    examples=(lambda x: x * -constant(0.5, x.dtype),),
)
def negative_constant(node: Node) -> Node | None:
    """A constant negated is a constant, which other rules know; of 0 it is the 0 that they know."""
    value = constant_value(node.inputs[0])
    return None if value is None else constant(0 - value)


@rule(exact=Exact.VALUES, kinds="f")
def over_minus_one(x: Var) -> Rewrite:
    """Dividing by -1 changes the sign."""
    return Rewrite(before=x / -1, after=-x)


# ---- negated before and after ---------------------------------------------------------------


def _is_extremum(op: Op) -> bool:
    return op is relu.op or (bool(op.dual) and op.commutative)


def _bounded(y: Node) -> tuple[Op, Node, Any] | None:
    """Of an extremum of x and a constant: the x, and the extremum and constant to bound -x by."""
    if y.op is relu.op:
        return minimum.op, y.inputs[0], 0
    for x, c in (y.inputs, y.inputs[::-1]) if _is_extremum(y.op) else ():
        bound = constant_value(c)
        if bound is not None:
            return REGISTRY.find(y.op.dual), x, constant(0 - bound)
    return None


@rule_for(
    lambda op: op is negative.op,
    exact=Exact.VALUES,
    operands=lambda ops: _is_extremum(ops[0]),
    examples=(
        lambda x: -relu(-x),
        lambda x, y: -maximum(-x, -y),
        lambda x, y: -fmin(-x, -y),
        lambda x: -minimum(maximum(-x, -0.5), 1.5),
        lambda x: -relu(fmax(0.5, minimum(-x, 1.5))),
    ),
)
def extremum_turned(node: Node) -> Node | None:
    """Negatives are in the opposite order: an extremum of them, negated, is the other extremum."""
    if node.dtype.kind != "f":
        return None
    y, outer = node.inputs[0], []
    while (found := _bounded(y)) is not None:
        outer.append(found)
        y = found[1]
    negated = y.inputs if _is_extremum(y.op) else (y,)
    if any(x.op is not negative.op for x in negated):
        return None
    x, *others = [x.inputs[0] for x in negated]
    made = apply(REGISTRY.find(y.op.dual), [x, *others]) if others else x
    for op, _, bound in reversed(outer):
        made = apply(op, [made, bound])
    return made


# ---- the absolute value ---------------------------------------------------------------------


@rule(exact=Exact.VALUES, kinds="f")
def minimum_of_opposites(x: Var) -> Rewrite:
    """The smaller of x and -x has the size of x, and is not positive."""
    return Rewrite(before=minimum(x, -x), after=-abs(x))


@rule(
    exact=Exact.VALUES,
    kinds="f",
    family=(OR_EQUAL, COMPLEMENT),
    reasons={
        "choice_by_less_is_negative_abs": "x where it is negative, else -x, is -abs(x).",
        "choice_by_less_equal_is_negative_abs": "x where it is not positive, else -x, is -abs(x).",
    },
)
def choice_by_greater_is_negative_abs(x: Var) -> Rewrite:
    """-x where x is positive, else x, is -abs(x)."""
    return Rewrite(before=where(greater(x, 0), -x, x), after=-abs(x))


# ---- the negative part ----------------------------------------------------------------------


@rule(exact=Exact.REALS, kinds="f", family=(OR_EQUAL,))
def select_negative_is_minimum(x: Var) -> Rewrite:
    """x where it is negative, else 0, is the smaller of the two, but for NaN."""
    return Rewrite(before=select(less(x, 0), x), after=minimum(x, 0))


@rule(exact=Exact.VALUES, kinds="f")
def selected_negative(mask: Var, x: Var) -> Rewrite:
    """A change of sign moves out of a selection."""
    return Rewrite(before=select(mask, -x), after=-select(mask, x))


# ---- parts of one function ------------------------------------------------------------------


@rule(exact=Exact.REALS, kinds="f")
def less_its_negative_part(x: Var) -> Rewrite:
    """x less its negative part is relu."""
    return Rewrite(before=x - minimum(x, 0), after=relu(x))


@rule(exact=Exact.REALS, kinds="f")
def less_its_positive_part(x: Var) -> Rewrite:
    """x less its positive part is the smaller of x and 0."""
    return Rewrite(before=x - relu(x), after=minimum(x, 0))


@rule(exact=Exact.REALS, kinds="f")
def positive_part_less_itself(x: Var) -> Rewrite:
    """relu(x) - x is the size of x where it is negative."""
    return Rewrite(before=relu(x) - x, after=-minimum(x, 0))


@rule(exact=Exact.REALS, kinds="f")
def with_relu_of_negative(x: Var) -> Rewrite:
    """x + relu(-x) is relu."""
    return Rewrite(before=x + relu(-x), after=relu(x))


@rule(exact=Exact.REALS, kinds="f")
def both_parts(x: Var) -> Rewrite:
    """The two parts together are x, which has no kink."""
    return Rewrite(before=relu(x) + minimum(x, 0), after=x)


@rule(exact=Exact.REALS, kinds="f")
def difference_of_parts(x: Var) -> Rewrite:
    """The positive part less the negative one is the absolute value."""
    return Rewrite(before=relu(x) - minimum(x, 0), after=abs(x))


@rule(exact=Exact.REALS, kinds="f")
def relu_and_relu_of_negative(x: Var) -> Rewrite:
    """relu(x) + relu(-x) is the absolute value."""
    return Rewrite(before=relu(x) + relu(-x), after=abs(x))


@rule(exact=Exact.REALS, kinds="f")
def less_abs(x: Var) -> Rewrite:
    """x - |x| is twice the smaller of x and 0."""
    return Rewrite(before=x - abs(x), after=minimum(x, 0) * 2)


@rule(exact=Exact.REALS, kinds="f")
def abs_less_itself(x: Var) -> Rewrite:
    """|x| - x is twice the size of x where it is negative."""
    return Rewrite(before=abs(x) - x, after=minimum(x, 0) * -2)


# ---- of two side by side --------------------------------------------------------------------


@rule_for(
    lambda op: bool(op.combiner and op.dual),
    exact=Exact.BITS,
    operands=lambda ops: ops[0] is concat_p.op,
    examples=(
        lambda x, y: max(stack([x, y], axis=1), axis=1),
        lambda x: min(stack([-x, x]), axis=0),
    ),
)
def largest_of_two(node: Node) -> Node | None:
    """The larger of two arrays side by side is their maximum, element by element."""
    both = node.inputs[0]
    axis = both.attr("axis")
    if len(both.inputs) != 2 or node.attr("axis") != (axis,) or both.shape[axis] != 2:
        return None
    extremum = REGISTRY.find(node.op.combiner)
    before = [x.inputs[0] if x.op is reshape_p.op else x for x in both.inputs]
    if all(x.shape == node.shape for x in before):
        return apply(extremum, before)
    return reshape(apply(extremum, both.inputs), node.shape)


# ---- leaky relu -----------------------------------------------------------------------------


def _negatively_leaky(x: Node, c: Node) -> Node | None:
    value = constant_value(c)
    if value is None or value.size != 1 or not -1 < value.item() < 0:
        return None
    made = extrema.leaky(x, constant(-value))
    return None if made is None else -made


@rule(exact=Exact.VALUES, kinds="f", examples=({"x": (3, 4), "c": -0.25}, {"x": (1,), "c": -0.1}))
def minimum_with_part_is_leaky_relu(x: Var, c: Const) -> Rewrite:
    """The smaller of -x and -c * x is leaky relu negated, for a slope c between 0 and 1."""
    return Rewrite(before=minimum(-x, x * c), after=_negatively_leaky)


@rule(exact=Exact.REALS, kinds="f")
def parts_are_leaky_relu(x: Var, c: Const) -> Rewrite:
    """The positive part and some of the negative one are leaky relu."""
    return Rewrite(before=relu(x) + minimum(x, 0) * c, after=lambda x, c: extrema.leaky(x, c))


@rule(exact=Exact.REALS, kinds="f")
def relus_are_leaky_relu(x: Var, c: Const) -> Rewrite:
    """relu(x) - c * relu(-x) is leaky relu."""
    return Rewrite(before=relu(x) - relu(-x) * c, after=lambda x, c: extrema.leaky(x, c))
