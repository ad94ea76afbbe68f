"""Stable forms over axes: logsumexp, softmax and its logarithm, from however they are spelled.

See `stable.py`. What is shifted by its largest element by hand is stable as it is, and left alone:
at infinities it is NaN where the plain formulas are not, so that only `reals` takes it for them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from symgrad.ir.node import Node
from symgrad.ops.activations import log_softmax, logsumexp, softmax
from symgrad.ops.elementwise import exp, log, subtract
from symgrad.ops.linalg.products import row_sums
from symgrad.ops.reduce import max, reduced_shape, sum
from symgrad.ops.select import where
from symgrad.ops.shape import reshape
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule
from symgrad.rules.masks import is_positive

Axes: TypeAlias = tuple[int, ...]


def over_rows(**more: Any) -> dict[str, Any]:
    """An example for the tests: a matrix, and its last axis."""
    return {"x": (2, 3), "axis": (1,), **more}


def over_all(**more: Any) -> dict[str, Any]:
    """An example for the tests: a matrix, and all its axes."""
    return {"x": (2, 3), "axis": (0, 1), **more}


# ---- logsumexp ------------------------------------------------------------------------------


def _shift(x: Node, axis: Axes) -> Node | None:
    """The largest element that was subtracted by hand, which makes what follows stable as it is."""
    if x.op is not subtract.op:
        return None
    top = x.inputs[1]
    for _ in range(2):
        if top.op.view or top.op.identity:
            top = top.inputs[0]
    is_top = top.op is max.op and top.inputs[0] is x.inputs[0] and top.attr("axis") == axis
    return top if is_top else None


def _is_unshifted(x: Node, axis: Axes) -> bool:
    return _shift(x, axis) is None


def _is_shifted(x: Node, axis: Axes) -> bool:
    return _shift(x, axis) is not None


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    stable=True,
    when=_is_unshifted,
    examples=(over_rows(k=False), over_all(k=True)),
)
def log_is_logsumexp(x: Var, axis: Attr, k: Attr) -> Rewrite:
    """log(sum(exp(x))) is logsumexp, which does not overflow."""
    return Rewrite(
        before=log(sum(exp(x), axis=axis, dtype=None, keepdims=k)),
        after=lambda x, axis, k: logsumexp(x, axis=axis, keepdims=k),
    )


@rule(
    exact=Exact.REALS, kinds="f", when=lambda x, c, axis: is_positive(c) and _is_unshifted(x, axis)
)
def log_of_scaled_is_logsumexp(x: Var, c: Const, axis: Attr, k: Attr) -> Rewrite:
    """log(c * sum(exp(x))), as of a mean, is logsumexp and a constant."""
    return Rewrite(
        before=log(sum(exp(x), axis=axis, dtype=None, keepdims=k) * c),
        after=lambda x, c, axis, k: logsumexp(x, axis=axis, keepdims=k) + log(c),
    )


def _is_kept(x: Node, axis: Axes, p: object) -> bool:
    return reduced_shape(x.tensor, axis, True) == p


@rule(
    exact=Exact.ROUNDING,
    single_use=True,
    when=lambda x, axis, p: x.op is exp.op and _is_kept(x, axis, p),
    examples=(lambda x: reshape(sum(exp(x), axis=1), (3, 1)), over_rows(p=(2, 1))),
)
def kept_axes_of_sum(x: Var, axis: Attr, p: Attr) -> Rewrite:
    """A sum of exponentials that is given its axes back could have kept them."""
    return Rewrite(
        before=reshape(sum(x, axis=axis, dtype=None, keepdims=False), shape=p),
        after=sum(x, axis=axis, dtype=None, keepdims=True),
    )


@rule(
    exact=Exact.ROUNDING,
    single_use=True,
    when=_is_kept,
    examples=(over_rows(p=(2, 1)),),
)
def kept_axes_of_logsumexp(x: Var, axis: Attr, p: Attr) -> Rewrite:
    """A logsumexp that is given its axes back could have kept them."""
    return Rewrite(
        before=reshape(logsumexp(x, axis=axis, keepdims=False), shape=p),
        after=logsumexp(x, axis=axis, keepdims=True),
    )


# ---- softmax and its logarithm --------------------------------------------------------------


def _quotient(x: Any, axis: Any, keepdims: bool) -> Any:
    return exp(x) / sum(exp(x), axis=axis, dtype=None, keepdims=keepdims)


def _is_of_all(x: Node, axis: Axes) -> bool:
    return len(axis) == x.ndim


@rule(exact=Exact.ROUNDING, kinds="f", stable=True, when=_is_unshifted)
def quotient_is_softmax(x: Var, axis: Attr) -> Rewrite:
    """exp(x) / sum(exp(x)) is softmax, which does not overflow."""
    return Rewrite(
        before=_quotient(x, axis, True),
        after=softmax(x, axis=axis),
    )


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    stable=True,
    when=lambda x, axis: _is_of_all(x, axis) and _is_unshifted(x, axis),
)
def quotient_of_all_is_softmax(x: Var, axis: Attr) -> Rewrite:
    """exp(x) / sum(exp(x)) over all axes is softmax, which does not overflow."""
    return Rewrite(
        before=_quotient(x, axis, False),
        after=softmax(x, axis=axis),
    )


def are_known(x: Node, axis: Axes) -> bool:
    """Whether the sizes of some axes are known, and not 0."""
    sizes = [x.shape[a] for a in axis]
    return all(isinstance(s, int) and s > 0 for s in sizes)


@rule(exact=Exact.ROUNDING, kinds="f", when=are_known)
def exp_of_log_softmax(x: Var, axis: Attr) -> Rewrite:
    """exp(log_softmax(x)) is softmax, which can share its parts with log_softmax."""
    return Rewrite(before=exp(log_softmax(x, axis=axis)), after=softmax(x, axis=axis))


@rule(exact=Exact.ROUNDING, kinds="f", stable=True)
def log_of_softmax(x: Var, axis: Attr) -> Rewrite:
    """log(softmax(x)) is log_softmax, where the softmax may be 0."""
    return Rewrite(before=log(softmax(x, axis=axis)), after=log_softmax(x, axis=axis))


def _shifted_by_hand(x: Node, axis: int | None) -> Node:
    keep = axis is not None
    e = exp(x - max(x, axis=axis, keepdims=keep))
    quotient: Node = e / sum(e, axis=axis, keepdims=keep)
    return quotient


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    stable=True,
    examples=(over_rows(), lambda x: log(_shifted_by_hand(x, 1))),
)
def log_of_quotient(x: Var, axis: Attr) -> Rewrite:
    """log(exp(x) / sum(exp(x))) is log_softmax, where the quotient may be 0."""
    return Rewrite(
        before=log(_quotient(x, axis, True)),
        after=log_softmax(x, axis=axis),
    )


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    stable=True,
    when=_is_of_all,
    examples=(over_all(), lambda x: log(_shifted_by_hand(x, None))),
)
def log_of_quotient_of_all(x: Var, axis: Attr) -> Rewrite:
    """log(exp(x) / sum(exp(x))) is log_softmax, where the quotient may be 0."""
    return Rewrite(before=log(_quotient(x, axis, False)), after=log_softmax(x, axis=axis))


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, stable=True)
def less_logsumexp(x: Var, axis: Attr) -> Rewrite:
    """x - logsumexp(x) is log_softmax, in which two large numbers do not cancel."""
    return Rewrite(
        before=x - logsumexp(x, axis=axis, keepdims=True), after=log_softmax(x, axis=axis)
    )


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, stable=True, when=_is_of_all)
def less_logsumexp_of_all(x: Var, axis: Attr) -> Rewrite:
    """x - logsumexp(x) over all axes is log_softmax, in which two large numbers do not cancel."""
    return Rewrite(
        before=x - logsumexp(x, axis=axis, keepdims=False), after=log_softmax(x, axis=axis)
    )


def _unshifted_softmax(x: Node, axis: Axes) -> Node:
    return softmax(x.inputs[0], axis=axis)


@rule(
    exact=Exact.REALS,
    kinds="f",
    when=_is_shifted,
    examples=(over_rows(), lambda x: _shifted_by_hand(x, 1)),
)
def shifted_quotient_is_softmax(x: Var, axis: Attr) -> Rewrite:
    """softmax shifts by the largest element itself; shifted by hand, one inf makes all NaN."""
    return Rewrite(
        before=_quotient(x, axis, True),
        after=_unshifted_softmax,
    )


@rule(
    exact=Exact.REALS,
    kinds="f",
    when=lambda x, axis: _is_of_all(x, axis) and _is_shifted(x, axis),
    examples=(over_all(), lambda x: _shifted_by_hand(x, None)),
)
def shifted_quotient_of_all_is_softmax(x: Var, axis: Attr) -> Rewrite:
    """softmax shifts by the largest element itself; shifted by hand, one inf makes all NaN."""
    return Rewrite(before=_quotient(x, axis, False), after=_unshifted_softmax)


def _shifted_back_by_hand(x: Node) -> Node:
    top = max(x, axis=1, keepdims=True)
    shifted: Node = log(sum(exp(x - top), axis=1, keepdims=True)) + top
    return shifted


@rule(
    exact=Exact.REALS,
    kinds="f",
    when=lambda x, m, axis: _is_shifted(x, axis) and x.inputs[1] is m,
    examples=(over_rows(m=(2, 1)), _shifted_back_by_hand),
)
def shifted_back_is_logsumexp(x: Var, m: Var, axis: Attr) -> Rewrite:
    """logsumexp shifts by the largest element itself; shifted by hand, inf becomes NaN."""
    return Rewrite(
        before=log(sum(exp(x), axis=axis, dtype=None, keepdims=True)) + m,
        after=lambda x, axis: logsumexp(x.inputs[0], axis=axis, keepdims=True),
    )


def _is_over_total(x: Node, y: Node, z: Node) -> bool:
    """Whether y is the sum of exponentials x, of which the largest is 1, over the last axis."""
    if x.op is not exp.op or y.op is not where.op or y.shape != z.shape or x.shape == y.shape:
        return False
    is_sum = y.inputs[2].op in (sum.op, row_sums.op) and y.inputs[2].inputs[0] is x
    return is_sum and _is_shifted(x.inputs[0], (x.ndim - 1,))


def _scaled_softmax(x: Node) -> Node:
    top = max(x, axis=1, keepdims=True)
    raised = exp(x - top)
    total = where(top == np.inf, 1, sum(raised, axis=1, keepdims=True))
    scaled: Node = raised / total * sum(x, axis=1, keepdims=True)
    return scaled


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    when=_is_over_total,
    examples=(_scaled_softmax,),
    last=True,
)
def softmax_meets_factor(x: Var, y: Var, z: Var) -> Rewrite:
    """What scales softmax is divided by the sum of exponentials, which is at least 1."""
    return Rewrite(before=(x / y) * z, after=x * (z / y))
