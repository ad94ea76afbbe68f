"""Scatters: what is added at indices into zeros, as the gradient of a gather is.

It is added right onto what it meets, so that a table of which few rows were read is not gone
through for the zeros of the others.
"""

from __future__ import annotations

from symgrad.ir.dims import guess
from symgrad.ir.node import Node, constant_value
from symgrad.ops.elementwise import negative
from symgrad.ops.index.gather import scatter
from symgrad.ops.leaves import constant, full
from symgrad.ops.shape import broadcast_to
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule
from symgrad.rules.masks import is_scalar, may_enter


def _onto_zeros(u: Node) -> Node:
    at = constant([4, 0, 4])
    return scatter(full((5, *u.shape[1:]), 0, dtype=u.dtype), u, at, axis=0, mode="add")


def _is_zero(z: Node) -> bool:
    """Whether a node is zeros, which many may read: they cost nothing."""
    value = constant_value(z.inputs[0] if z.op is broadcast_to.op else z)
    return value is not None and value.size == 1 and not value.any()


def _fills(x: Node, z: Node) -> bool:
    return x.shape == z.shape and _is_zero(z)


def _is_less(z: Node, u: Node, c: Node) -> bool:
    return is_scalar(c) and may_enter(c) and guess(u.size) <= guess(z.size) and _is_zero(z)


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    when=_is_less,
    examples=(lambda u: _onto_zeros(u) * 0.3,),
)
def scalar_into_scattered(z: Var, u: Var, i: Var, a: Attr, c: Const) -> Rewrite:
    """A scalar factor need not be multiplied to the zeros around."""
    return Rewrite(
        before=scatter(z, u, i, axis=a, mode="add") * c,
        after=scatter(z, u * c, i, axis=a, mode="add"),
    )


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    when=_fills,
    examples=(lambda x, u: x[[0, 1, 2, 0, 1]] + _onto_zeros(u),),
    last=True,
)
def sum_with_scattered(x: Var, z: Var, u: Var, i: Var, a: Attr) -> Rewrite:
    """What is added at indices is added there at once: elsewhere there is nothing to do."""
    return Rewrite(
        before=x + scatter(z, u, i, axis=a, mode="add"),
        after=scatter(x, u, i, axis=a, mode="add"),
    )


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    when=_fills,
    examples=(lambda x, u: x[[0, 1, 2, 0, 1]] - _onto_zeros(u),),
    last=True,
)
def less_scattered(x: Var, z: Var, u: Var, i: Var, a: Attr) -> Rewrite:
    """What is subtracted at indices is subtracted there at once."""
    return Rewrite(
        before=x - scatter(z, u, i, axis=a, mode="add"),
        after=scatter(x, negative(u), i, axis=a, mode="add"),
    )
