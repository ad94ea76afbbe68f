"""Normal forms: one function is differentiated as one function, however it is spelled.

These rules are not a pass of the compiler. Before a gradient is derived, the graph is brought to
normal form; the derivative is taken there, and then refers to the values that the graph as written
computes. So what the forward computes stays as written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, constant_value
from symgrad.ir.walk import topological
from symgrad.ops.activations import leaky_relu, log_softmax, logsumexp, sigmoid, softplus
from symgrad.ops.elementwise import abs, exp, hypot, log, log1p, logaddexp, negative, sqrt, square
from symgrad.ops.identity import _hold as hold
from symgrad.ops.logic import (
    bitwise_invert,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_not,
)
from symgrad.ops.norms import _norm2 as norm2
from symgrad.ops.reduce import sum
from symgrad.ops.select import maximum, relu, select, where
from symgrad.passes import algebra, masks
from symgrad.passes.cse import merge
from symgrad.rewrite.driver import rebuild, settle
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, Rule, rule

# ---- comparisons with a constant: the constant on the right ---------------------------------


@rule(exact=Exact.BITS, when=lambda x: constant_value(x) is None)
def less_from_constant(x: Var, c: Const) -> Rewrite:
    """c < x is x > c."""
    return Rewrite(before=less(c, x), after=greater(x, c))


@rule(exact=Exact.BITS, when=lambda x: constant_value(x) is None)
def less_equal_from_constant(x: Var, c: Const) -> Rewrite:
    """c <= x is x >= c."""
    return Rewrite(before=less_equal(c, x), after=greater_equal(x, c))


@rule(exact=Exact.BITS, when=lambda x: constant_value(x) is None)
def greater_from_constant(x: Var, c: Const) -> Rewrite:
    """c > x is x < c."""
    return Rewrite(before=greater(c, x), after=less(x, c))


@rule(exact=Exact.BITS, when=lambda x: constant_value(x) is None)
def greater_equal_from_constant(x: Var, c: Const) -> Rewrite:
    """c >= x is x <= c."""
    return Rewrite(before=greater_equal(c, x), after=less_equal(x, c))


@rule(exact=Exact.BITS, kinds="b")
def invert_is_not(mask: Var) -> Rewrite:
    """To invert a boolean is to negate it."""
    return Rewrite(before=bitwise_invert(mask), after=logical_not(mask))


# ---- relu -----------------------------------------------------------------------------------


@rule(exact=Exact.VALUES, kinds="f")
def maximum_is_relu(x: Var) -> Rewrite:
    """The larger of x and 0 is relu."""
    return Rewrite(before=maximum(x, 0), after=relu(x))


@rule(exact=Exact.REALS, kinds="f")
def select_positive_is_relu(x: Var) -> Rewrite:
    """x where it is positive, else 0, is relu, but for NaN."""
    return Rewrite(before=select(greater(x, 0), x), after=relu(x))


@rule(exact=Exact.REALS, kinds="f")
def select_not_negative_is_relu(x: Var) -> Rewrite:
    """x where it is not negative, else 0, is relu, but for NaN."""
    return Rewrite(before=select(greater_equal(x, 0), x), after=relu(x))


@rule(exact=Exact.REALS, kinds="f")
def select_not_less_is_relu(x: Var) -> Rewrite:
    """0 where x is negative, else x, is relu."""
    return Rewrite(before=select(logical_not(less(x, 0)), x), after=relu(x))


@rule(exact=Exact.REALS, kinds="f")
def select_not_less_equal_is_relu(x: Var) -> Rewrite:
    """0 where x is not positive, else x, is relu."""
    return Rewrite(before=select(logical_not(less_equal(x, 0)), x), after=relu(x))


@rule(exact=Exact.REALS, kinds="f")
def half_of_sum_is_relu(x: Var) -> Rewrite:
    """(x + |x|) / 2 is relu."""
    return Rewrite(before=(x + abs(x)) / 2, after=relu(x))


@rule(exact=Exact.REALS, kinds="f")
def half_times_sum_is_relu(x: Var) -> Rewrite:
    """(x + |x|) * 0.5 is relu."""
    return Rewrite(before=(x + abs(x)) * 0.5, after=relu(x))


def _is_slope(c: Node) -> bool:
    value = constant_value(c)
    return value is not None and bool((value > 0).all()) and bool((value < 1).all())


@rule(exact=Exact.REALS, kinds="f", when=_is_slope)
def maximum_is_leaky_relu(x: Var, c: Const) -> Rewrite:
    """The larger of x and c * x is leaky relu, for a slope c between 0 and 1."""
    return Rewrite(before=maximum(x, x * c), after=lambda x, c: leaky(x, c))


@rule(exact=Exact.REALS, kinds="f")
def where_is_leaky_relu(x: Var, c: Const) -> Rewrite:
    """x where it is positive, else c * x, is leaky relu."""
    return Rewrite(before=where(greater(x, 0), x, x * c), after=lambda x, c: leaky(x, c))


@rule(exact=Exact.REALS, kinds="f")
def where_not_negative_is_leaky_relu(x: Var, c: Const) -> Rewrite:
    """x where it is not negative, else c * x, is leaky relu."""
    return Rewrite(before=where(greater_equal(x, 0), x, x * c), after=lambda x, c: leaky(x, c))


def leaky(x: Node, c: Node) -> Node | None:
    """leaky_relu, for a slope that is an ordinary number."""
    value = constant_value(c)
    assert value is not None
    slope = float(value.item())
    return leaky_relu(x, slope=slope) if math.isfinite(slope) else None


# ---- the absolute value and norms -----------------------------------------------------------


@rule(exact=Exact.REALS, kinds="f")
def root_of_square_is_abs(x: Var) -> Rewrite:
    """The root of a square is the absolute value."""
    return Rewrite(before=sqrt(square(x)), after=abs(x))


@rule(exact=Exact.REALS, kinds="f")
def maximum_is_abs(x: Var) -> Rewrite:
    """The larger of x and -x is the absolute value."""
    return Rewrite(before=maximum(x, negative(x)), after=abs(x))


@rule(exact=Exact.REALS, kinds="f")
def where_is_abs(x: Var) -> Rewrite:
    """x where it is positive, else -x, is the absolute value."""
    return Rewrite(before=where(greater(x, 0), x, negative(x)), after=abs(x))


@rule(exact=Exact.REALS, kinds="f")
def where_not_negative_is_abs(x: Var) -> Rewrite:
    """x where it is not negative, else -x, is the absolute value."""
    return Rewrite(before=where(greater_equal(x, 0), x, negative(x)), after=abs(x))


@rule(exact=Exact.REALS, kinds="f")
def where_negative_is_abs(x: Var) -> Rewrite:
    """-x where it is negative, else x, is the absolute value."""
    return Rewrite(before=where(less(x, 0), negative(x), x), after=abs(x))


@rule(exact=Exact.REALS, kinds="f")
def where_not_positive_is_abs(x: Var) -> Rewrite:
    """-x where it is not positive, else x, is the absolute value."""
    return Rewrite(before=where(less_equal(x, 0), negative(x), x), after=abs(x))


@rule(exact=Exact.REALS, kinds="f")
def root_of_squares_is_hypot(x: Var, y: Var) -> Rewrite:
    """The root of a sum of two squares is hypot."""
    return Rewrite(before=sqrt(square(x) + square(y)), after=hypot(x, y))


@rule(exact=Exact.REALS, kinds="f", tries=({"x": (2, 3), "axis": (1,), "k": False},))
def root_of_sum_is_norm(x: Var, axis: Attr, k: Attr) -> Rewrite:
    """The root of a sum of squares is a norm, whose gradient at 0 is 0."""
    return Rewrite(
        before=sqrt(sum(square(x), axis=axis, dtype=None, keepdims=k)),
        after=lambda x, axis, k: norm2(x, axis=axis, keepdims=k),
    )


@rule(
    exact=Exact.REALS,
    kinds="f",
    tries=({"x": (2, 3), "axis": (1,), "k": False, "n": ()},),
    when=lambda n: n.ndim == 0,
)
def root_of_mean_is_norm(x: Var, n: Var, axis: Attr, k: Attr) -> Rewrite:
    """The root of a mean of squares is a norm over a root; so is a standard deviation."""
    return Rewrite(
        before=sqrt(sum(square(x), axis=axis, dtype=None, keepdims=k) / n),
        after=lambda x, n, axis, k: norm2(x, axis=axis, keepdims=k) / sqrt(n),
    )


@rule(exact=Exact.REALS, kinds="f")
def square_of_root(x: Var) -> Rewrite:
    """The square of a root is the value."""
    return Rewrite(before=square(sqrt(x)), after=x)


@rule(exact=Exact.REALS, kinds="f", tries=({"x": (2, 3), "axis": (1,), "k": False},))
def square_of_norm(x: Var, axis: Attr, k: Attr) -> Rewrite:
    """The square of a norm is a sum of squares, which has no kink."""
    return Rewrite(
        before=square(norm2(x, axis=axis, keepdims=k)),
        after=lambda x, axis, k: sum(square(x), axis=axis, keepdims=k),
    )


@rule(
    exact=Exact.REALS,
    kinds="f",
    tries=({"x": (2, 3), "axis": (1,), "k": False, "n": ()},),
    when=lambda n: n.ndim == 0,
)
def square_of_mean_norm(x: Var, n: Var, axis: Attr, k: Attr) -> Rewrite:
    """The square of a standard deviation is a variance, which has no kink."""
    return Rewrite(
        before=square(norm2(x, axis=axis, keepdims=k) / n),
        after=lambda x, n, axis, k: sum(square(x), axis=axis, keepdims=k) / square(n),
    )


@rule(exact=Exact.REALS, kinds="f")
def square_of_hypot(x: Var, y: Var) -> Rewrite:
    """The square of hypot is a sum of two squares, which has no kink."""
    return Rewrite(before=square(hypot(x, y)), after=square(x) + square(y))


@rule(exact=Exact.VALUES, kinds="f")
def square_of_abs_value(x: Var) -> Rewrite:
    """A square does not see the sign, and has no kink."""
    return Rewrite(before=square(abs(x)), after=square(x))


# ---- exponentials, in forms that do not overflow --------------------------------------------


@rule(exact=Exact.REALS, kinds="f")
def log_of_exp(x: Var) -> Rewrite:
    """The logarithm undoes the exponential."""
    return Rewrite(before=log(exp(x)), after=x)


@rule(exact=Exact.REALS, kinds="f")
def log_is_softplus(x: Var) -> Rewrite:
    """log(1 + exp(x)) is softplus."""
    return Rewrite(before=log(1 + exp(x)), after=softplus(x))


@rule(exact=Exact.REALS, kinds="f")
def log1p_is_softplus(x: Var) -> Rewrite:
    """log1p(exp(x)) is softplus."""
    return Rewrite(before=log1p(exp(x)), after=softplus(x))


@rule(exact=Exact.ROUNDING, kinds="f")
def logaddexp_is_softplus(x: Var) -> Rewrite:
    """logaddexp(x, 0) is softplus."""
    return Rewrite(before=logaddexp(x, 0), after=softplus(x))


@rule(exact=Exact.REALS, kinds="f")
def inverse_is_sigmoid(x: Var) -> Rewrite:
    """1 / (1 + exp(-x)) is the sigmoid."""
    return Rewrite(before=1 / (1 + exp(-x)), after=sigmoid(x))


@rule(exact=Exact.REALS, kinds="f")
def quotient_is_sigmoid(x: Var) -> Rewrite:
    """exp(x) / (1 + exp(x)) is the sigmoid."""
    return Rewrite(before=exp(x) / (1 + exp(x)), after=sigmoid(x))


@rule(exact=Exact.REALS, kinds="f", tries=({"x": (2, 3), "axis": (1,), "k": False},))
def log_is_logsumexp(x: Var, axis: Attr, k: Attr) -> Rewrite:
    """log(sum(exp(x))) is logsumexp."""
    return Rewrite(
        before=log(sum(exp(x), axis=axis, dtype=None, keepdims=k)),
        after=lambda x, axis, k: logsumexp(x, axis=axis, keepdims=k),
    )


@rule(exact=Exact.REALS, kinds="f", tries=({"x": (2, 3), "axis": (1,)},))
def quotient_is_softmax(x: Var, axis: Attr) -> Rewrite:
    """exp(x) / sum(exp(x)) is softmax."""
    return Rewrite(
        before=exp(x) / sum(exp(x), axis=axis, dtype=None, keepdims=True),
        after=exp(log_softmax(x, axis=axis)),
    )


# Where these act, the forward as written may overflow: the gradient does not use its values.
STABLE: frozenset[str] = frozenset(
    {
        "log_of_exp",
        "log_is_softplus",
        "log1p_is_softplus",
        "inverse_is_sigmoid",
        "quotient_is_sigmoid",
        "log_is_logsumexp",
        "quotient_is_softmax",
    }
)

# With those of the compiler that bring more spellings to the forms above.
RULES: tuple[Rule, ...] = (
    algebra.power_one,
    algebra.power_two,
    algebra.product_with_itself,
    masks.mask_multiply,
    masks.where_of_not,
    masks.where_zero_first_is_select,
    masks.where_zero_is_select,
    *(r for r in list(globals().values()) if isinstance(r, Rule)),
)


@dataclass(frozen=True)
class NormalForm:
    """A graph in normal form: what stands for some outputs and for what they are derived by."""

    ys: list[Node]
    xs: list[Node]
    written: Mapping[Node, Node]

    def as_written(self, nodes: Sequence[Node]) -> list[Node]:
        """Nodes built on the normal form, referring to the graph as written wherever they can."""
        if not self.written:
            return list(nodes)
        becomes: dict[Node, Node] = {}
        for node in topological(nodes):
            if node in self.written:
                becomes[node] = self.written[node]
                continue
            inputs = tuple(becomes[x] for x in node.inputs)
            same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
            becomes[node] = node if same else rebuild(node, inputs)
        return [becomes[n] for n in nodes]


def normal_form(ys: Sequence[Node], xs: Sequence[Node]) -> NormalForm:
    """The outputs `ys` in normal form, and the nodes in it that stand for `xs`."""
    order = topological(ys)
    inside = {x for x in xs if x.inputs}
    merged = merge(order, Exact.BITS, lambda n: n if n in inside else n.origin.kinks)
    held = _hold(order, merged, {merged.get(x, x) for x in inside})
    settled, fired = settle(Graph([held[y] for y in ys]), RULES, "normal form")
    if not fired:
        return NormalForm(list(ys), list(xs), {})

    def image(node: Node) -> Node:
        there = held.get(node, node)
        return settled.get(there, there)

    unstable = {settled.get(f.after, f.after) for f in fired if f.rule.name in STABLE}
    unsafe: set[Node] = set()
    written: dict[Node, Node] = {}
    for node in order:
        if image(node) in unstable or any(x in unsafe for x in node.inputs):
            unsafe.add(node)
        else:
            written.setdefault(image(node), node)
    return NormalForm([image(y) for y in ys], [image(x) for x in xs], written)


def _hold(
    order: Sequence[Node], merged: Mapping[Node, Node], inside: set[Node]
) -> dict[Node, Node]:
    """The merged graph with the nodes `inside` it held fast, so that no rule takes them away."""
    if not inside:
        return dict(merged)
    becomes: dict[Node, Node] = {}
    for node in order:
        kept = merged[node]
        if kept not in becomes:
            inputs = tuple(becomes[x] for x in kept.inputs)
            same = all(a is b for a, b in zip(inputs, kept.inputs, strict=True))
            there = kept if same else rebuild(kept, inputs)
            becomes[kept] = hold(there) if kept in inside else there
        becomes[node] = becomes[kept]
    return becomes
