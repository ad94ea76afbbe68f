"""Reductions: as dot products, of other reductions, and of what was repeated, moved or joined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.dims import Shape, Size, product
from symgrad.ir.node import Node, apply
from symgrad.ir.op import REGISTRY, Op
from symgrad.ir.types import DType
from symgrad.ops import reduce
from symgrad.ops.elementwise import multiply, square
from symgrad.ops.index.slices import Index, place
from symgrad.ops.linalg.products import vdot_p
from symgrad.ops.reduce import reduced_shape, sum
from symgrad.ops.shape import astype, broadcast_to, concat_p, permute_dims, reshape, reshaped
from symgrad.rewrite.family import DE_MORGAN, DUAL
from symgrad.rewrite.pattern import Attr, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule, rule_for
from symgrad.rules.masks import every, is_finite, is_modest

# ---- to dot products ------------------------------------------------------------------------


def _spans_all(x: Node, axis: tuple[int, ...]) -> bool:
    return len(axis) == x.ndim


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    when=lambda x, y, axis: x.shape == y.shape and _spans_all(x, axis) and x.ndim > 0,
)
def sum_of_products(x: Var, y: Var, axis: Attr) -> Rewrite:
    """The sum of all products is a dot product: no array of products is made."""
    return Rewrite(before=sum(x * y, axis=axis, dtype=None, keepdims=False), after=vdot_p(x, y))


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    when=lambda x, axis: _spans_all(x, axis) and x.ndim > 0,
)
def sum_of_squares(x: Var, axis: Attr) -> Rewrite:
    """The sum of all squares is a dot product: no array of squares is made."""
    return Rewrite(before=sum(square(x), axis=axis, dtype=None, keepdims=False), after=vdot_p(x, x))


def _is_square(x: Node) -> bool:
    """Whether a node is a positive multiple of a square."""
    if x.op is multiply.op:
        x, c = x.inputs
        if not (is_modest(c) and every(c, lambda v: v > 0)):
            return False
    return x.op is square.op


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    when=lambda x, y, axis: (
        _is_square(x)
        and _is_square(y)
        and x.shape == y.shape
        and _spans_all(x, axis)
        and x.ndim > 0
    ),
    examples=(lambda x, y: sum(square(x) * 3.0 + square(y)),),
)
def sum_of_two_squares(x: Var, y: Var, axis: Attr) -> Rewrite:
    """Squares are summed on their own, as dot products; none is negative, so nothing cancels."""
    return Rewrite(
        before=sum(x + y, axis=axis, dtype=None, keepdims=False),
        after=lambda x, y, axis: sum(x, axis=axis) + sum(y, axis=axis),
    )


# ---- of reductions --------------------------------------------------------------------------


def _of_both(
    found: Callable[..., Node],
    x: Node,
    p: tuple[int, ...],
    j: bool,
    q: tuple[int, ...],
    k: bool,
    **attrs: Any,
) -> Node:
    """One reduction in place of two: over the axes p, then over q of those that are left."""
    left = range(x.ndim) if j else [a for a in range(x.ndim) if a not in p]
    over = {*p, *(left[a] for a in q)}
    y = found(x, axis=tuple(over), keepdims=j and k, **attrs)
    between = x.tensor.with_shape(reduced_shape(x.tensor, p, j))
    return reshaped(y, reduced_shape(between, q, k))


def _of_all(node: Node, x: Node, p: tuple[int, ...], j: bool, q: tuple[int, ...], k: bool) -> Node:
    return _of_both(lambda x, **attrs: apply(node.op, [x], attrs), x, p, j, q, k)


TWO = (
    {"x": (2, 3, 4), "p": (1,), "j": False, "q": (0, 1), "k": False},
    {"x": (2, 3, 4), "p": (0,), "j": True, "q": (0, 1), "k": False},
    {"x": (2, 3, 4), "p": (0,), "j": False, "q": (0,), "k": True},
)
SUMS = tuple({**t, "d": d} for t in TWO for d in (None, np.dtype("float32")))


def _is_as_wide(d: DType | None) -> bool:
    return d is None or d.kind in "fc"  # of narrow integers, the second sum would be wider


@rule(exact=Exact.ROUNDING, single_use=True, when=_is_as_wide, examples=SUMS)
def sum_of_sum(x: Var, p: Attr, j: Attr, q: Attr, k: Attr, d: Attr) -> Rewrite:
    """Two sums, over some axes and over others, are one over both."""
    return Rewrite(
        before=sum(sum(x, axis=p, dtype=d, keepdims=j), axis=q, dtype=None, keepdims=k),
        after=lambda x, p, j, q, k, d: _of_both(sum, x, p, j, q, k, dtype=d),
    )


@rule(exact=Exact.REALS, single_use=True, when=_is_as_wide, examples=SUMS)
def prod_of_prod(x: Var, p: Attr, j: Attr, q: Attr, k: Attr, d: Attr) -> Rewrite:
    """Two products, over some axes and over others, are one; but another order may overflow."""
    prod = reduce.prod
    return Rewrite(
        before=prod(prod(x, axis=p, dtype=d, keepdims=j), axis=q, dtype=None, keepdims=k),
        after=lambda x, p, j, q, k, d: _of_both(prod, x, p, j, q, k, dtype=d),
    )


@rule(exact=Exact.REALS, single_use=True, examples=TWO, family=(DUAL,))
def max_of_max(x: Var, p: Attr, j: Attr, q: Attr, k: Attr) -> Rewrite:
    """The largest of the largest; but elements that tie share the gradient in another way."""
    return Rewrite(
        before=reduce.max(reduce.max(x, axis=p, keepdims=j), axis=q, keepdims=k),
        after=_of_all,
    )


@rule(
    exact=Exact.BITS,
    single_use=True,
    examples=TWO,
    family=(DE_MORGAN,),
    reasons={"all_of_all": "Whether all hold everywhere is asked once."},
)
def any_of_any(x: Var, p: Attr, j: Attr, q: Attr, k: Attr) -> Rewrite:
    """Whether any holds anywhere is asked once."""
    return Rewrite(
        before=reduce.any(reduce.any(x, axis=p, keepdims=j), axis=q, keepdims=k),
        after=_of_all,
    )


# ---- of what was repeated, moved or joined --------------------------------------------------


def _reduces(op: Op) -> bool:
    return bool(op.combiner) and str(op.storage.source).endswith(".reduce")


def _counts_once(op: Op) -> bool:
    """Whether an element counts no more for being there twice."""
    return _reduces(op) and (op.piecewise_constant or REGISTRY.ops[op.combiner].idempotent)


def _of_source(node: Node) -> tuple[Node, Size]:
    """The reduction of what was repeated before it was, and how often each element had counted."""
    wide, x = node.inputs[0], node.inputs[0].inputs[0]
    attrs = dict(node.attrs)
    lead = wide.ndim - x.ndim
    over = tuple(a - lead for a in attrs["axis"])
    own = [a for a in over if a >= 0 and x.shape[a] == wide.shape[a + lead]]
    axis = tuple(a for a in over if a >= 0) if own else ()
    y = apply(node.op, [x], {**attrs, "axis": axis, "keepdims": False})
    shape = reduced_shape(x.tensor, over, attrs["keepdims"])
    return reshaped(y, shape), product(wide.shape[a + lead] for a in over if a not in own)


@rule_for(
    _counts_once,
    exact=Exact.ROUNDING,
    operands=lambda operands: operands[0] is broadcast_to.op,
    examples=(
        lambda x: reduce.max(broadcast_to(x, (2, 3, 4)), axis=0),
        lambda x: reduce.any(broadcast_to(x, (2, 3, 4)), axis=(0, 1), keepdims=True),
    ),
)
def extremum_of_broadcast(node: Node) -> Node | None:
    """The largest of what was repeated is that of what was there; so are any and all."""
    y, count = _of_source(node)
    return y if isinstance(count, int) and count > 0 else None


@rule_for(
    lambda op: _reduces(op) and op.combiner == "add",
    exact=Exact.ROUNDING,
    operands=lambda operands: operands[0] is broadcast_to.op,
    examples=(
        lambda x: sum(broadcast_to(x, (2, 3, 4)), axis=0),
        lambda x: sum(broadcast_to(x[:, :1], (2, 3, 4)), axis=(0, 1, 2), keepdims=True),
        lambda x: sum(broadcast_to(x, (0, 3, 4)), axis=(0, 1)),
    ),
)
def sum_of_broadcast(node: Node) -> Node | None:
    """A sum over what was only repeated is a multiplication by how often."""
    if node.dtype == bool:  # whether any is true
        return None
    y, count = _of_source(node)
    # 0 times inf would be NaN, where the sum of nothing is 0.
    some = is_finite(y) or node.dtype.kind in "iu" or (isinstance(count, int) and count > 0)
    if not some:
        return None
    repeated: Node = y if count == 1 else y * count
    return repeated


@rule_for(_reduces, exact=Exact.ROUNDING, examples=(lambda x: sum(x[:1], axis=0),))
def reduction_over_one(node: Node) -> Node | None:
    """A reduction over axes of size 1, or over none, has nothing to reduce."""
    x = node.inputs[0]
    if any(x.shape[a] != 1 for a in node.attr("axis")):
        return None
    return reshaped(astype(x, node.dtype), node.shape)


@rule_for(
    _reduces,
    exact=Exact.ROUNDING,
    operands=lambda operands: operands[0].view,
    examples=(lambda x: sum(x.T), lambda x: reduce.max(reshape(x, (-1,)))),
)
def reduction_of_rearranged(node: Node) -> Node | None:
    """Over all axes it does not matter in which order the elements lie, but for rounding."""
    moved, x = node.inputs[0], node.inputs[0].inputs[0]
    attrs = dict(node.attrs)
    if len(attrs["axis"]) < moved.ndim or moved.size != x.size:
        return None
    y = apply(node.op, [x], {**attrs, "axis": tuple(range(x.ndim)), "keepdims": False})
    return reshaped(y, node.shape)


@rule_for(
    _reduces,
    exact=Exact.ROUNDING,
    operands=lambda operands: operands[0] is permute_dims.op,
    examples=(lambda x: sum(x.T, axis=0),),
)
def reduction_of_permuted(node: Node) -> Node | None:
    """To reduce axes that were moved is to reduce them where they were."""
    attrs, moves = dict(node.attrs), node.inputs[0].attr("axes")
    left = [m for a, m in enumerate(moves) if a not in attrs["axis"]]
    if attrs["keepdims"] or left != sorted(left):
        return None
    return apply(
        node.op, node.inputs[0].inputs, {**attrs, "axis": tuple(moves[a] for a in attrs["axis"])}
    )


@rule(
    exact=Exact.ROUNDING,
    # Sums of float16 may overflow on the way to one that does not.
    when=lambda x, a, axis, dtype: a in axis and (dtype or x.dtype).itemsize > 2,
    examples=({"x": (2, 3), "y": (4, 3), "a": 0, "axis": (0,), "dtype": None, "keepdims": False},),
)
def sum_of_concat(x: Var, y: Var, a: Attr, axis: Attr, dtype: Attr, keepdims: Attr) -> Rewrite:
    """The sum over what was joined is the sum of the sums: the join is not made."""
    return Rewrite(
        before=sum(concat_p(x, y, axis=a), axis=axis, dtype=dtype, keepdims=keepdims),
        after=sum(x, axis=axis, dtype=dtype, keepdims=keepdims)
        + sum(y, axis=axis, dtype=dtype, keepdims=keepdims),
    )


def _is_full_elsewhere(x: Node, shape: Shape, index: Index, axis: tuple[int, ...]) -> bool:
    return all(
        a in axis or (x.shape[a] == shape[a] and index[a][2] == 1) for a in range(len(shape))
    )


@rule(
    exact=Exact.ROUNDING,
    when=_is_full_elsewhere,
    examples=(
        {
            "x": (2, 3),
            "shape": (4, 3),
            "index": ((1, 3, 1), (0, 3, 1)),
            "axis": (0,),
            "dtype": None,
            "keepdims": False,
        },
    ),
)
def sum_of_place(
    x: Var, shape: Attr, index: Attr, axis: Attr, dtype: Attr, keepdims: Attr
) -> Rewrite:
    """Zeros around what is summed add nothing."""
    return Rewrite(
        before=sum(place(x, shape=shape, index=index), axis=axis, dtype=dtype, keepdims=keepdims),
        after=sum(x, axis=axis, dtype=dtype, keepdims=keepdims),
    )
