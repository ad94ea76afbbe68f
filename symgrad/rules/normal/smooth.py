"""Normal forms of what is smooth where it looks as if it were not: norms, roots, exponentials.

See `autodiff/normal.py`. The square of a norm is a sum of squares; an exponential that overflows
on the way is a function that does not.
"""

from __future__ import annotations

import numpy as np

from symgrad.ir.node import Node, apply, constant_value
from symgrad.ir.record import replace
from symgrad.ops.activations import log1mexp, logsumexp, sigmoid
from symgrad.ops.elementwise import (
    abs,
    add,
    divide,
    exp,
    hypot,
    log,
    multiply,
    negative,
    sqrt,
    square,
)
from symgrad.ops.leaves import constant
from symgrad.ops.linalg.norms import norm2
from symgrad.ops.linalg.products import matmul_p
from symgrad.ops.reduce import sum
from symgrad.ops.select import maximum
from symgrad.ops.shape import reshape
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, Rule, rule, rule_for
from symgrad.rules import softmax, stable
from symgrad.rules.masks import is_positive

# ---- the absolute value and norms -----------------------------------------------------------


@rule(exact=Exact.REALS, kinds="f")
def power_half_is_root(x: Var) -> Rewrite:
    """x**0.5 is the root, but for -inf."""
    return Rewrite(before=x**0.5, after=sqrt(x))


def _scaled_root(x: Node, c: Node) -> Node:
    # The root is a number, so that other rules see a constant factor.
    value = constant_value(c)
    assert value is not None
    scaled: Node = sqrt(x) * np.sqrt(value)
    return scaled


@rule(exact=Exact.REALS, kinds="f", when=is_positive)
def root_of_scaled(x: Var, c: Const) -> Rewrite:
    """A positive factor leaves a root."""
    return Rewrite(before=sqrt(x * c), after=_scaled_root)


@rule(exact=Exact.REALS, kinds="f")
def root_of_square_is_abs(x: Var) -> Rewrite:
    """The root of a square is the absolute value."""
    return Rewrite(before=sqrt(square(x)), after=abs(x))


@rule(exact=Exact.REALS, kinds="f")
def maximum_is_abs(x: Var) -> Rewrite:
    """The larger of x and -x is the absolute value."""
    return Rewrite(before=maximum(x, negative(x)), after=abs(x))


@rule(
    exact=Exact.REALS,
    kinds="f",
    when=lambda x, p: x.ndim == 1 and p[0] == 1,
    examples=({"x": (3,), "p": (1, 3), "q": (3, 1), "r": ()},),
)
def product_of_vector_with_itself(x: Var, p: Attr, q: Attr, r: Attr) -> Rewrite:
    """x @ x is the sum of its squares."""
    return Rewrite(
        before=reshape(matmul_p(reshape(x, shape=p), reshape(x, shape=q)), shape=r),
        after=lambda x, r: reshape(sum(square(x)), r) if r else sum(square(x)),
    )


@rule(exact=Exact.ROUNDING, kinds="f")
def product_of_three_is_power(x: Var) -> Rewrite:
    """x * x * x is a power, whose slope is one product, not the sum of three."""
    return Rewrite(before=square(x) * x, after=x**3)


@rule(exact=Exact.REALS, kinds="f")
def root_of_three_squares_is_hypot(x: Var, y: Var, z: Var) -> Rewrite:
    """The root of a sum of three squares is hypot of hypot."""
    return Rewrite(before=sqrt((square(x) + square(y)) + square(z)), after=hypot(hypot(x, y), z))


@rule(exact=Exact.REALS, kinds="f")
def root_of_squares_is_hypot(x: Var, y: Var) -> Rewrite:
    """The root of a sum of two squares is hypot."""
    return Rewrite(before=sqrt(square(x) + square(y)), after=hypot(x, y))


@rule(exact=Exact.REALS, kinds="f", when=lambda n: n.ndim == 0)
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


@rule(exact=Exact.REALS, kinds="f")
def square_of_norm(x: Var, axis: Attr, k: Attr) -> Rewrite:
    """The square of a norm is a sum of squares, which has no kink."""
    return Rewrite(
        before=square(norm2(x, axis=axis, keepdims=k)),
        after=lambda x, axis, k: sum(square(x), axis=axis, keepdims=k),
    )


@rule(exact=Exact.REALS, kinds="f", when=lambda n: n.ndim == 0)
def square_of_mean_norm(x: Var, n: Var, axis: Attr, k: Attr) -> Rewrite:
    """The square of a standard deviation is a variance, which has no kink."""
    return Rewrite(
        before=square(norm2(x, axis=axis, keepdims=k) / n),
        after=lambda x, n, axis, k: sum(square(x), axis=axis, keepdims=k) / square(n),
    )


@rule_for(
    lambda op: op is square.op,
    exact=Exact.REALS,
    operands=lambda operands: operands[0].view,
    examples=(lambda x: square(reshape(norm2(x), (1,))),),
)
def square_of_view(node: Node) -> Node | None:
    """The square of a view of what has a kink is the view of the square, which may have none."""
    view = source = node.inputs[0]
    while source.op.view:
        source = source.inputs[0]
    if not (source.op.kinks or source.op.unbounded_slope):
        return None  # a root of the square is to find it
    return apply(view.op, [square(view.inputs[0])], dict(view.attrs))


MOST_NESTED = 8  # products and sums in a square that is told by its root


def _whose_square(z: Node, most: int = MOST_NESTED) -> Node | None:
    """The root of a square, a product or sum of them, or a view, up to its sign; None if unseen."""
    if z.op is square.op:
        return z.inputs[0]
    if not most or not (z.op.view or z.op in (add.op, multiply.op, divide.op)):
        return None
    roots = []
    for x in z.inputs:
        value = None if z.op is add.op else constant_value(x)
        root = _whose_square(x, most - 1)
        if value is not None and (value > 0).all():
            root = constant(np.sqrt(value))
        if root is None:
            return None
        roots.append(root)
    return hypot(*roots) if z.op is add.op else apply(z.op, roots, dict(z.attrs))


@rule_for(
    lambda op: op is sqrt.op,
    exact=Exact.REALS,
    operands=lambda ops: ops[0].view or ops[0] in (add.op, multiply.op, divide.op),
    examples=(
        lambda x: sqrt(reshape(square(norm2(x)), (1,))),
        lambda x, y: sqrt(square(x) / square(y)),
        lambda x: sqrt(square(x) * 9 + square(x)),
        lambda x, y: sqrt((square(x) + square(y)) + (square(x) + square(y))),
        lambda x: sqrt(reshape(square(x) / 9 * 4, (1, 2, 3))),
        lambda x, y: sqrt((square(x) + square(y)) / 9),
    ),
)
def root_of_squares_with_factors(node: Node) -> Node | None:
    """The root of a square with factors, or behind views, is an abs, that of several a hypot."""
    root = _whose_square(node.inputs[0])
    return root if root is None or root.op is hypot.op else abs(root)


@rule(exact=Exact.REALS, kinds="f")
def square_of_scaled(x: Var, c: Const) -> Rewrite:
    """A constant factor leaves a square, in which there may be no kink."""
    return Rewrite(before=square(x * c), after=square(x) * square(c))


@rule(exact=Exact.REALS, kinds="f")
def square_of_part(x: Var, c: Const) -> Rewrite:
    """A constant divisor leaves a square, in which there may be no kink."""
    return Rewrite(before=square(x / c), after=square(x) / square(c))


@rule(exact=Exact.REALS, kinds="f")
def scaled_with_itself(x: Var, c: Const) -> Rewrite:
    """(c * x) * x is c times a square, in which there may be no kink."""
    return Rewrite(before=(x * c) * x, after=square(x) * c)


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


@rule(exact=Exact.ROUNDING, kinds="f", stable=True)
def log_of_difference_is_log1mexp(x: Var) -> Rewrite:
    """log(1 - exp(x)) is log1mexp, in whose derivative no digits cancel."""
    return Rewrite(before=log(1 - exp(x)), after=log1mexp(x))


@rule(exact=Exact.REALS, kinds="f", when=lambda n: n.ndim == 0)
def log_of_part_is_logsumexp(x: Var, n: Var, axis: Attr, k: Attr) -> Rewrite:
    """log(sum(exp(x)) / n), as of a mean, is logsumexp less a logarithm."""
    return Rewrite(
        before=log(sum(exp(x), axis=axis, dtype=None, keepdims=k) / n),
        after=lambda x, n, axis, k: logsumexp(x, axis=axis, keepdims=k) - log(n),
    )


@rule(exact=Exact.REALS, kinds="f", when=lambda y: y.op is not exp.op and constant_value(y) is None)
def over_one_and_exp_is_sigmoid(x: Var, y: Var) -> Rewrite:
    """y / (1 + exp(x)) is y times the sigmoid of -x, which has a slope where exp overflows."""
    return Rewrite(before=y / (1 + exp(x)), after=y * sigmoid(-x))


def _wherever(*rules: Rule) -> tuple[Rule, ...]:
    """Rules that act even where inner nodes have other readers: nothing is computed twice here."""
    return tuple([replace(r, single_use=False) if r.single_use else r for r in rules])


# Where these act, the forward as written may overflow: the gradient does not use its values.
_OVERFLOWING: tuple[Rule, ...] = _wherever(
    stable.log_is_softplus,
    stable.log1p_is_softplus,
    stable.inverse_is_sigmoid,
    stable.reciprocal_is_sigmoid,
    stable.quotient_is_sigmoid,
    stable.log_of_sigmoid,
    stable.log1p_of_sigmoid,
    stable.log1p_is_log1mexp,
    stable.one_less_sigmoid,
    stable.log_is_logaddexp,
    stable.quotient_is_tanh,
    stable.quotient_with_one_is_tanh,
    stable.quotient_less_one_is_tanh,
    softmax.log_is_logsumexp,
    softmax.log_of_scaled_is_logsumexp,
    softmax.quotient_is_softmax,
    softmax.quotient_of_all_is_softmax,
    softmax.log_of_softmax,
    softmax.log_of_quotient,
    softmax.log_of_quotient_of_all,
)

STABLE: frozenset[Rule] = frozenset(
    (
        log_of_exp,
        over_one_and_exp_is_sigmoid,
        log_of_difference_is_log1mexp,
        log_of_part_is_logsumexp,
        *_OVERFLOWING,
    )
)

BORROWED: tuple[Rule, ...] = (
    *_OVERFLOWING,
    *_wherever(
        stable.logaddexp_is_softplus,
        stable.relu_and_log1p_is_softplus,
        stable.root_of_sum_is_norm,
        stable.root_of_dot_is_norm,
        softmax.shifted_quotient_is_softmax,
        softmax.shifted_quotient_of_all_is_softmax,
        softmax.shifted_back_is_logsumexp,
        softmax.kept_axes_of_sum,
        softmax.kept_axes_of_logsumexp,
        softmax.less_logsumexp,
        softmax.less_logsumexp_of_all,
    ),
)
