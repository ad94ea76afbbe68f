"""Stable forms: functions that are written so that they overflow or cancel, in forms that do not.

They are held to the truth, not to what was computed: see `symgrad.rule` for what `stable` means.
In normal form gradients are derived from most of them, see `normal/smooth.py`.
"""

from __future__ import annotations

import numpy as np

from symgrad.ir.dims import product
from symgrad.ir.node import Node, apply, constant_value
from symgrad.ops.activations import log1mexp, sigmoid, softplus
from symgrad.ops.elementwise import (
    abs,
    add,
    divide,
    exp,
    expm1,
    log,
    log1p,
    logaddexp,
    multiply,
    negative,
    reciprocal,
    sqrt,
    square,
    subtract,
)
from symgrad.ops.leaves import size_of
from symgrad.ops.linalg.norms import norm2
from symgrad.ops.linalg.products import vdot_p
from symgrad.ops.ranges.inference import MOST_NODES, ranges_of
from symgrad.ops.reduce import kept, sum
from symgrad.ops.select import relu, where
from symgrad.ops.trigonometry import cos, cosh, sin, sinh, tanh
from symgrad.rewrite.pattern import Attr, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule, rule_for
from symgrad.rules.softmax import Axes

# ---- softplus, sigmoid and their logarithms -------------------------------------------------


def _may_overflow(x: Node) -> bool:
    """Whether the exponential of a node can be large: not that of -abs(x), a stable form itself."""
    return not (x.op is negative.op and x.inputs[0].op is abs.op)


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, stable=True, when=_may_overflow)
def log_is_softplus(x: Var) -> Rewrite:
    """log(1 + exp(x)) is softplus, which does not overflow."""
    return Rewrite(before=log(1 + exp(x)), after=softplus(x))


@rule(exact=Exact.ROUNDING, kinds="f", stable=True, when=_may_overflow)
def log1p_is_softplus(x: Var) -> Rewrite:
    """log1p(exp(x)) is softplus, which does not overflow."""
    return Rewrite(before=log1p(exp(x)), after=softplus(x))


@rule(exact=Exact.ROUNDING, kinds="f", stable=True)
def logaddexp_is_softplus(x: Var) -> Rewrite:
    """logaddexp(x, 0) is softplus: one operand to read."""
    return Rewrite(before=logaddexp(x, 0), after=softplus(x))


@rule(exact=Exact.ROUNDING, kinds="f", stable=True)
def relu_and_log1p_is_softplus(x: Var) -> Rewrite:
    """relu(x) + log1p(exp(-abs(x))) is what softplus computes, in one step."""
    return Rewrite(before=relu(x) + log1p(exp(-abs(x))), after=softplus(x))


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, stable=True)
def one_minus_cos(x: Var) -> Rewrite:
    """1 - cos(x) is 2 * sin(x / 2)**2, which does not cancel where x is small."""
    return Rewrite(before=1 - cos(x), after=2 * square(sin(x / 2)))


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, stable=True)
def cos_minus_one(x: Var) -> Rewrite:
    """cos(x) - 1 is -2 * sin(x / 2)**2, which does not cancel where x is small."""
    return Rewrite(before=cos(x) - 1, after=-2 * square(sin(x / 2)))


@rule(exact=Exact.ROUNDING, kinds="f", stable=True)
def inverse_is_sigmoid(x: Var) -> Rewrite:
    """1 / (1 + exp(x)) is the sigmoid of -x."""
    return Rewrite(before=1 / (1 + exp(x)), after=sigmoid(-x))


@rule(exact=Exact.ROUNDING, kinds="f", stable=True)
def reciprocal_is_sigmoid(x: Var) -> Rewrite:
    """The reciprocal of 1 + exp(x) is the sigmoid of -x."""
    return Rewrite(before=reciprocal(1 + exp(x)), after=sigmoid(-x))


@rule(exact=Exact.REALS, kinds="f")
def quotient_is_sigmoid(x: Var) -> Rewrite:
    """exp(x) / (1 + exp(x)) is the sigmoid, where the quotient may be inf / inf."""
    return Rewrite(before=exp(x) / (1 + exp(x)), after=sigmoid(x))


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, stable=True)
def one_less_sigmoid(x: Var) -> Rewrite:
    """1 - sigmoid(x) is sigmoid(-x), of which no digits cancel."""
    return Rewrite(before=1 - sigmoid(x), after=sigmoid(-x))


@rule(exact=Exact.ROUNDING, kinds="f", stable=True)
def log_of_sigmoid(x: Var) -> Rewrite:
    """log(sigmoid(x)) is -softplus(-x), where the sigmoid may be 0."""
    return Rewrite(before=log(sigmoid(x)), after=-softplus(-x))


@rule(exact=Exact.ROUNDING, kinds="f", stable=True)
def log1p_of_sigmoid(x: Var) -> Rewrite:
    """log1p(-sigmoid(x)) is -softplus(x), where the sigmoid may be 1."""
    return Rewrite(before=log1p(-sigmoid(x)), after=-softplus(x))


# ---- log1p, expm1, log1mexp, logaddexp ------------------------------------------------------


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, stable=True)
def log_is_log1p(x: Var) -> Rewrite:
    """log(1 + x) is log1p(x), in which a small x keeps its digits."""
    return Rewrite(before=log(1 + x), after=log1p(x))


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, stable=True)
def log_is_log1p_of_negative(x: Var) -> Rewrite:
    """log(1 - x) is log1p(-x), in which a small x keeps its digits."""
    return Rewrite(before=log(1 - x), after=log1p(-x))


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, stable=True)
def difference_is_expm1(x: Var) -> Rewrite:
    """exp(x) - 1 is expm1(x), in which a small x keeps its digits."""
    return Rewrite(before=exp(x) - 1, after=expm1(x))


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, stable=True)
def difference_is_negative_expm1(x: Var) -> Rewrite:
    """1 - exp(x) is -expm1(x), in which a small x keeps its digits."""
    return Rewrite(before=1 - exp(x), after=-expm1(x))


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, stable=True)
def log_of_expm1_is_log1mexp(x: Var) -> Rewrite:
    """log(1 - exp(x)), which expm1 makes accurate for small x, log1mexp makes so for all."""
    return Rewrite(before=log(-expm1(x)), after=log1mexp(x))


@rule(exact=Exact.ROUNDING, kinds="f", stable=True)
def log1p_is_log1mexp(x: Var) -> Rewrite:
    """log(1 - exp(x)), which log1p makes accurate for large -x, log1mexp makes so for all."""
    return Rewrite(before=log1p(-exp(x)), after=log1mexp(x))


@rule(exact=Exact.ROUNDING, kinds="f", stable=True)
def log_is_logaddexp(x: Var, y: Var) -> Rewrite:
    """log(exp(x) + exp(y)) is logaddexp, which does not overflow."""
    return Rewrite(before=log(exp(x) + exp(y)), after=logaddexp(x, y))


# ---- hyperbolic functions -------------------------------------------------------------------


def _scaled(x: Node, c: float) -> Node:
    """c * x for a power of two, less a constant factor with which it would cancel."""
    factor = constant_value(x.inputs[1]) if x.op is multiply.op else None
    if factor is not None and factor.ndim == 0 and factor * c == 1:
        return x.inputs[0]
    scaled: Node = x * c
    return scaled


def _opposite(x: Node, y: Node) -> bool:
    """Whether y is spelled as -x."""
    if x.op is multiply.op and y.op is multiply.op and x.inputs[0] is y.inputs[0]:
        c, d = constant_value(x.inputs[1]), constant_value(y.inputs[1])
        return c is not None and d is not None and c.size == 1 and bool((c == -d).all())
    return (y.op is negative.op and y.inputs[0] is x) or (x.op is negative.op and x.inputs[0] is y)


@rule(
    exact=Exact.REALS,
    kinds="f",
    when=_opposite,
    examples=(
        {"x": (2, 3), "y": (2, 3)},
        lambda x: (exp(x) - exp(y := -x)) / (exp(x) + exp(y)),
        lambda x: (exp(z := x * 0.3) - exp(y := x * -0.3)) / (exp(z) + exp(y)),
    ),
)
def quotient_is_tanh(x: Var, y: Var) -> Rewrite:
    """(exp(x) - exp(-x)) / (exp(x) + exp(-x)) is tanh, where the quotient may be inf / inf."""
    return Rewrite(
        before=(exp(x) - exp(y)) / (exp(x) + exp(y)),
        after=lambda x: tanh(x),
    )


@rule(
    exact=Exact.REALS,
    kinds="f",
    examples=({"x": (2, 3)}, lambda x: (exp(2 * x) - 1) / (exp(2 * x) + 1)),
)
def quotient_with_one_is_tanh(x: Var) -> Rewrite:
    """(exp(2 * x) - 1) / (exp(2 * x) + 1) is tanh, where the quotient may be inf / inf."""
    return Rewrite(before=(exp(x) - 1) / (exp(x) + 1), after=lambda x: tanh(_scaled(x, 0.5)))


@rule(
    exact=Exact.REALS,
    kinds="f",
    examples=({"x": (2, 3)}, lambda x: (1 - exp(-2 * x)) / (1 + exp(-2 * x))),
)
def quotient_less_one_is_tanh(x: Var) -> Rewrite:
    """(1 - exp(-2 * x)) / (1 + exp(-2 * x)) is tanh, where the quotient may be inf / inf."""
    return Rewrite(before=(1 - exp(x)) / (1 + exp(x)), after=lambda x: tanh(_scaled(x, -0.5)))


@rule(
    exact=Exact.REALS,
    kinds="f",
    single_use=True,
    examples=({"x": (2, 3)}, lambda x: 2 * sigmoid(2 * x) - 1),
)
def sigmoid_is_tanh(x: Var) -> Rewrite:
    """2 * sigmoid(2 * x) - 1 is tanh, in which a small x keeps its digits."""
    return Rewrite(before=sigmoid(x) * 2 - 1, after=lambda x: tanh(_scaled(x, 0.5)))


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    stable=True,
    when=_opposite,
    examples=(
        {"x": (2, 3), "y": (2, 3)},
        lambda x: (exp(x) - exp(-x)) * 0.5,
        lambda x: (exp(x * 0.3) - exp(x * -0.3)) * 0.5,
    ),
)
def half_difference_is_sinh(x: Var, y: Var) -> Rewrite:
    """(exp(x) - exp(-x)) / 2 is sinh, in which a small x keeps its digits."""
    return Rewrite(before=(exp(x) - exp(y)) * 0.5, after=lambda x: sinh(x))


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    stable=True,
    when=_opposite,
    examples=({"x": (2, 3), "y": (2, 3)}, lambda x: (exp(x) + exp(-x)) * 0.5),
)
def half_sum_is_cosh(x: Var, y: Var) -> Rewrite:
    """(exp(x) + exp(-x)) / 2 is cosh: one function instead of two."""
    return Rewrite(before=(exp(x) + exp(y)) * 0.5, after=lambda x: cosh(x))


# ---- roots that cancel ----------------------------------------------------------------------


@rule_for(
    lambda op: op in (add.op, subtract.op),
    exact=Exact.REALS,
    operands=lambda operands: sqrt.op in operands,
    after_grad=True,  # where it chooses there is a kink in what it is made of
    examples=(
        lambda x, y: sqrt(square(x) + y) - x,
        lambda x, y: sqrt(y + square(x)) + x,
        lambda x, y: x - sqrt(square(x) - y),
        lambda x, y: -x - sqrt(square(x) - y),
    ),
)
def root_and_base(node: Node) -> Node | None:
    """sqrt(b**2 + c) less b is c over the sum of both where b > 0: no digits cancel.

    IEEE 754 defines each rounding in it, so that it may be meant: it needs the reals.
    """
    x, y = node.inputs
    root, b = (x, y) if x.op is sqrt.op else (y, x)
    adds = (node.op is add.op) != (b.op is negative.op)
    b = b.inputs[0] if b.op is negative.op else b
    inside = root.inputs[0] if root.op is sqrt.op else root
    if inside.op not in (add.op, subtract.op) or node.dtype.kind != "f":
        return None
    first, c = inside.inputs
    if inside.op is add.op and c.op is square.op and c.inputs[0] is b:
        first, c = c, first
    if first.op is not square.op or first.inputs[0] is not b:
        return None
    low, high, _ = ranges_of([b], most=MOST_NODES)[b]
    if low >= 0 if adds else high <= 0:
        return None
    both = root + abs(b)
    cancels = b < 0 if adds else b > 0
    found = where(cancels, (c if inside.op is add.op else -c) / both, both)
    return -found if node.op is subtract.op and root is y else found


# ---- norms and variances --------------------------------------------------------------------


@rule(exact=Exact.ROUNDING, kinds="f", stable=True)
def root_of_sum_is_norm(x: Var, axis: Attr, k: Attr) -> Rewrite:
    """The root of a sum of squares is a norm, which does not overflow on the way."""
    return Rewrite(
        before=sqrt(sum(square(x), axis=axis, dtype=None, keepdims=k)),
        after=lambda x, axis, k: norm2(x, axis=axis, keepdims=k),
    )


@rule(exact=Exact.ROUNDING, kinds="f", stable=True)
def root_of_dot_is_norm(x: Var) -> Rewrite:
    """The root of a product of a vector with itself is its norm, which does not overflow."""
    return Rewrite(before=sqrt(vdot_p(x, x)), after=lambda x: norm2(x))


def _is_count(n: Node, x: Node, axis: Axes, inverse: bool) -> bool:
    """Whether a node is the number of elements along some axes, or its inverse, rounded."""
    count, value = product(x.shape[a] for a in axis), constant_value(n)
    if value is None:
        return not inverse and n.op is size_of.op and n.attr("dim") == count
    if value.ndim or not isinstance(count, int):
        return False
    return bool(
        np.abs(value * count - 1) <= np.finfo(value.dtype).eps if inverse else value == count
    )


def _variance(a: Node, m: Node) -> Node | None:
    """The variance, if `a` is the mean of the squares of that of which `m` is the mean."""
    if m.op not in (multiply.op, divide.op) or a.op is not m.op or m.inputs[0].op is not sum.op:
        return None
    (squares, other), (total, n) = a.inputs, m.inputs
    x, over = total.inputs[0], dict(total.attrs)
    axis, keepdims = over["axis"], over["keepdims"]
    if squares.op is sum.op and squares.inputs[0].op is square.op:
        same = squares.inputs[0].inputs[0] is x and squares.attrs == total.attrs
    else:
        same = squares.op is vdot_p.op and all(y is x for y in squares.inputs) and m.ndim == 0
    same &= other is n or (other.op is n.op and other.attrs == n.attrs)
    if not (same and over["dtype"] is None and _is_count(n, x, axis, m.op is multiply.op)):
        return None
    away = square(x - (m if m.ndim == 0 else kept(m, x, axis)))
    return apply(m.op, [sum(away, axis=axis, keepdims=keepdims), n], {})


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    stable=True,
    examples=(
        lambda x: sum(square(x), axis=1) / 4 - square(sum(x, axis=1) / 4),
        lambda x: sum(square(x), axis=1) * 0.25 - square(sum(x, axis=1) * 0.25),
        lambda x: vdot_p(x, x) / 12 - square(sum(x) / 12),
    ),
)
def moments_are_variance(a: Var, m: Var) -> Rewrite:
    """The mean square less the squared mean cancels; the mean squared difference does not."""
    return Rewrite(before=a - square(m), after=_variance)
