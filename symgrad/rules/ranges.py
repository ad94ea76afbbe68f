"""Rules for what ranges decide: comparisons, magnitudes, extrema of what is known to lie apart.

A range follows from what placeholders were declared to lie within, and from ops themselves: exp is
not negative. See `symgrad.ops.ranges.inference`.
"""

from __future__ import annotations

from symgrad.ir.node import Node
from symgrad.ir.op import Op
from symgrad.ir.ranges import Range
from symgrad.ops.activations import leaky_relu, sigmoid, softmax
from symgrad.ops.elementwise import abs, exp
from symgrad.ops.leaves import full, zeros
from symgrad.ops.logic import equal, greater, greater_equal, less, less_equal, not_equal
from symgrad.ops.ranges.inference import MOST_NODES, ranges_of
from symgrad.ops.select import maximum, minimum, relu
from symgrad.ops.shape import astype, broadcast_to
from symgrad.rewrite.rule import Exact, rule_for

ORDERED = frozenset(f.op for f in (greater, greater_equal, less, less_equal))
COMPARISONS = ORDERED | {equal.op, not_equal.op}
EXTREMA = frozenset((maximum.op, minimum.op))


def _ranges(node: Node) -> list[Range]:
    found = ranges_of(node.inputs, most=MOST_NODES)
    return [found[x] for x in node.inputs]


def _decided(op: Op, a: Range, b: Range) -> bool | None:
    """The answer of a comparison, None if the ranges meet; NaN makes all false but not_equal."""
    if op in (less.op, less_equal.op):
        a, b = b, a
        op = greater.op if op is less.op else greater_equal.op
    ordered = not (a.nan or b.nan)
    if op is greater.op:
        return False if a.high <= b.low else True if ordered and a.low > b.high else None
    if op is greater_equal.op:
        return False if a.high < b.low else True if ordered and a.low >= b.high else None
    apart = a.high < b.low or b.high < a.low
    return (op is not_equal.op) if apart else None


@rule_for(
    lambda op: op in COMPARISONS,
    exact=Exact.ROUNDING,  # as the layout is another: one number stands for all
    examples=(
        lambda x: sigmoid(x) > 1.5,
        lambda x: astype(x > 0, "float32") < 2,
        lambda x: exp(x) < 0,
        lambda x: equal(softmax(x, axis=-1), 2.0),
    ),
)
def comparison_decided_by_range(node: Node) -> Node | None:
    """All of the one lies on one side of all of the other."""
    answer = _decided(node.op, *_ranges(node))
    return None if answer is None else full(node.shape, answer, dtype="bool")


@rule_for(
    lambda op: op in (abs.op, relu.op, leaky_relu.op),
    exact=Exact.VALUES,
    examples=(
        lambda x: abs(sigmoid(x)),
        lambda x: relu(softmax(x, axis=-1)),
        lambda x: leaky_relu(exp(x)),
        lambda x: abs(-sigmoid(x)),
        lambda x: relu(-relu(sigmoid(x) + 1)),
    ),
)
def magnitude_of_known_sign(node: Node) -> Node | None:
    """What is not negative is its own magnitude, and is not cut; else it is what was negated."""
    (x,) = node.inputs
    (found,) = _ranges(node)
    if x.dtype.kind != "f" or node.dtype != x.dtype:
        return None
    if found.low >= 0:
        return x
    if found.high <= 0 and node.op is abs.op:
        return -x
    if found.high <= 0 and node.op is relu.op and not found.nan:
        return zeros(node.shape, dtype=node.dtype)
    return None


@rule_for(
    lambda op: op in EXTREMA,
    exact=Exact.ROUNDING,
    examples=(
        lambda x: maximum(astype(x > 0, "float64"), 2.0),
        lambda x, y: minimum(astype(x > 0, y.dtype), astype(y > 0, y.dtype) + 1),
    ),
)
def extremum_decided_by_range(node: Node) -> Node | None:
    """All of the one is as large as the other or larger, and neither has a NaN."""
    x, y = node.inputs
    a, b = _ranges(node)
    if node.dtype.kind not in "fiu" or a.nan or b.nan:
        return None
    larger = x if a.low >= b.high else y if b.low >= a.high else None
    if larger is None:
        return None
    smaller = y if larger is x else x
    chosen = larger if node.op is maximum.op else smaller
    return broadcast_to(chosen, node.shape) if chosen.dtype == node.dtype else None
