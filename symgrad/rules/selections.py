"""Choices: where, selections and extrema combined with each other and with what they choose from.

See `masks.py` for what the backward of relu needs of these.
"""

from __future__ import annotations

from symgrad.ir.dims import guess, product
from symgrad.ir.node import Node
from symgrad.ir.types import broadcast_shapes
from symgrad.ops.elementwise import add, exp, log, multiply, negative, sqrt, square, subtract
from symgrad.ops.index.slices import place
from symgrad.ops.leaves import zeros_like
from symgrad.ops.logic import logical_and, logical_not, logical_or
from symgrad.ops.reduce import sum
from symgrad.ops.select import select, where
from symgrad.ops.shape import astype_p, reshape
from symgrad.rewrite.family import DIFFERENCE, PRODUCT, instead
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule, rule_for
from symgrad.rules.masks import is_finite, is_mask

WHERE = (
    {"mask": (2, 3), "x": (2, 3), "y": (3,), "z": (2, 3)},
    {"mask": (8,), "x": (8,), "y": (8,), "z": (8,)},
    {"mask": (), "x": (), "y": (), "z": ()},
)

# ---- masks that are known -------------------------------------------------------------------


@rule(exact=Exact.BITS)
def select_always(x: Var) -> Rewrite:
    """A selection of everything is what it selects from."""
    return Rewrite(before=select(True, x), after=x)


@rule(exact=Exact.BITS)
def select_never(x: Var) -> Rewrite:
    """A selection of nothing is 0."""
    return Rewrite(before=select(False, x), after=lambda x: zeros_like(x))


@rule(exact=Exact.BITS)
def select_of_zero(mask: Var) -> Rewrite:
    """0 is selected or put in its place: it is 0."""
    return Rewrite(before=select(mask, 0), after=0)


@rule(exact=Exact.BITS)
def where_always(x: Var, y: Var) -> Rewrite:
    """A choice that is always the same is what it chooses."""
    return Rewrite(before=where(True, x, y), after=x)


@rule(exact=Exact.BITS)
def where_never(x: Var, y: Var) -> Rewrite:
    """A choice that is always the same is what it chooses."""
    return Rewrite(before=where(False, x, y), after=y)


@rule(exact=Exact.BITS)
def where_of_same(mask: Var, x: Var) -> Rewrite:
    """A choice between a value and itself is no choice."""
    return Rewrite(before=where(mask, x, x), after=x)


@rule(exact=Exact.BITS)
def where_zero_is_select(mask: Var, x: Var) -> Rewrite:
    """A choice between a value and 0 is a selection: no second operand to read."""
    return Rewrite(before=where(mask, x, 0), after=select(mask, x))


@rule(exact=Exact.BITS)
def where_zero_first_is_select(mask: Var, x: Var) -> Rewrite:
    """A choice between 0 and a value is a selection by the opposite mask."""
    return Rewrite(before=where(mask, 0, x), after=select(logical_not(mask), x))


@rule(exact=Exact.BITS, when=is_mask)
def where_of_not(mask: Var, x: Var, y: Var) -> Rewrite:
    """Instead of negating a mask, swap what it chooses between."""
    return Rewrite(before=where(logical_not(mask), x, y), after=where(mask, y, x))


@rule(exact=Exact.BITS, kinds="b")
def select_of_boolean(mask: Var, x: Var) -> Rewrite:
    """A boolean, or False where a mask does not hold, says whether both are true."""
    return Rewrite(before=select(mask, x), after=logical_and(mask, x))


# ---- choices within choices by the same mask ------------------------------------------------


@rule(exact=Exact.BITS, examples=WHERE)
def where_of_where(mask: Var, x: Var, y: Var, z: Var) -> Rewrite:
    """Where a mask holds, a choice by it is known."""
    return Rewrite(before=where(mask, where(mask, x, y), z), after=where(mask, x, z))


@rule(exact=Exact.BITS, examples=WHERE)
def where_of_other_where(mask: Var, x: Var, y: Var, z: Var) -> Rewrite:
    """Where a mask does not hold, a choice by it is known."""
    return Rewrite(before=where(mask, x, where(mask, y, z)), after=where(mask, x, z))


@rule(exact=Exact.BITS)
def select_of_where(mask: Var, x: Var, y: Var) -> Rewrite:
    """Where a mask holds, a choice by it is known."""
    return Rewrite(before=select(mask, where(mask, x, y)), after=select(mask, x))


@rule(exact=Exact.BITS, when=is_mask)
def select_of_other_choice(mask: Var, x: Var, y: Var) -> Rewrite:
    """Where a mask does not hold, a choice by it is known."""
    return Rewrite(
        before=select(logical_not(mask), where(mask, x, y)), after=select(logical_not(mask), y)
    )


@rule(exact=Exact.BITS)
def where_of_select(mask: Var, x: Var, y: Var) -> Rewrite:
    """Where a mask holds, a selection by it is what it selects from."""
    return Rewrite(before=where(mask, select(mask, x), y), after=where(mask, x, y))


@rule(exact=Exact.BITS)
def where_of_nothing_selected(mask: Var, x: Var, y: Var) -> Rewrite:
    """Where a mask does not hold, a selection by it is 0."""
    return Rewrite(before=where(mask, x, select(mask, y)), after=select(mask, x))


@rule(exact=Exact.BITS, single_use=True, kinds="iuf", family=(PRODUCT,))
def select_of_product(mask: Var, x: Var, y: Var) -> Rewrite:
    """Of a product that is selected, no factor need be."""
    return Rewrite(before=select(mask, select(mask, x) * y), after=select(mask, x * y))


@rule(exact=Exact.BITS, kinds="iuf")
def select_of_masked(mask: Var, x: Var, p: Attr) -> Rewrite:
    """Where a mask holds it is a factor of 1."""
    return Rewrite(before=select(mask, x * astype_p(mask, dtype=p)), after=select(mask, x))


@rule(exact=Exact.BITS, kinds="iuf", when=is_mask)
def select_of_masked_too(mask: Var, other: Var, x: Var, p: Attr) -> Rewrite:
    """Where a mask holds, among others, it is a factor of 1."""
    return Rewrite(
        before=select(logical_and(mask, other), x * astype_p(mask, dtype=p)),
        after=select(logical_and(mask, other), x),
    )


def _square_of_selection(x: Node) -> Node:
    mask = x > 1.5
    return select(mask, square(select(mask, x)))


@rule_for(
    lambda op: op.selection,
    exact=Exact.VALUES,
    operands=lambda ops: ops[1].elementwise and ops[1].preserves_zero,
    examples=(_square_of_selection,),
)
def select_of_what_keeps_zeros(node: Node) -> Node | None:
    """A function that is 0 at 0 leaves the zeros of a selection where they are."""
    mask, y = node.inputs
    inner = y.inputs[0]
    if len(y.inputs) == 1 and inner.op is node.op and inner.inputs[0] is mask:
        return y
    return None


# ---- choices side by side -------------------------------------------------------------------


@rule(exact=Exact.BITS, single_use=True, kinds="iuf", family=(DIFFERENCE, PRODUCT))
def sum_of_selections(mask: Var, x: Var, y: Var) -> Rewrite:
    """Of two terms selected alike, the sum is selected."""
    return Rewrite(before=select(mask, x) + select(mask, y), after=select(mask, x + y))


@rule(exact=Exact.VALUES, kinds="iuf")
def sum_of_opposite_selections(mask: Var, x: Var, y: Var) -> Rewrite:
    """One where a mask holds, plus another where it does not, is a choice."""
    return Rewrite(
        before=select(mask, x) + select(logical_not(mask), y),
        after=lambda mask, x, y: where(mask, x, y) if is_mask(mask) else None,
    )


@rule(exact=Exact.VALUES, kinds="f", single_use=True, when=is_mask)
def difference_of_opposite_selections(mask: Var, x: Var, y: Var) -> Rewrite:
    """One where a mask holds, less another where it does not, is a choice."""
    return Rewrite(before=select(mask, x) - select(logical_not(mask), y), after=where(mask, x, -y))


@rule(exact=Exact.VALUES, kinds="f", single_use=True, when=is_mask)
def opposite_selections_less(mask: Var, x: Var, y: Var) -> Rewrite:
    """One where a mask does not hold, less another where it does, is a choice."""
    return Rewrite(before=select(logical_not(mask), y) - select(mask, x), after=where(mask, -x, y))


SCALED = tuple({**shapes, "c": c, "d": 0.1} for shapes in WHERE for c in (3.0, -0.5))


def _scales(mask: Node, c: Node) -> bool:
    return is_mask(mask) and is_finite(c)


@rule(exact=Exact.VALUES, kinds="f", single_use=True, when=_scales, examples=SCALED)
def opposite_selections_scaled(mask: Var, x: Var, y: Var, c: Const) -> Rewrite:
    """Two opposite selections scaled alike are a choice, scaled once."""
    return Rewrite(
        before=select(mask, x) * c + select(logical_not(mask), y) * c, after=where(mask, x, y) * c
    )


@rule(
    exact=Exact.VALUES,
    kinds="f",
    single_use=True,
    when=lambda mask, c, d: _scales(mask, c) and is_finite(d),
    examples=SCALED,
)
def opposite_selections_both_scaled(mask: Var, x: Var, y: Var, c: Const, d: Const) -> Rewrite:
    """Two opposite selections, each scaled, are a choice of what is scaled."""
    return Rewrite(
        before=select(mask, x) * c + select(logical_not(mask), y) * d,
        after=where(mask, x * c, y * d),
    )


@rule(exact=Exact.VALUES, kinds="f", single_use=True, when=_scales, examples=SCALED)
def opposite_selections_first_scaled(mask: Var, x: Var, y: Var, c: Const) -> Rewrite:
    """Two opposite selections, one scaled, are a choice of what is scaled."""
    return Rewrite(
        before=select(mask, x) * c + select(logical_not(mask), y), after=where(mask, x * c, y)
    )


@rule(exact=Exact.VALUES, kinds="f", single_use=True, when=_scales, examples=SCALED)
def opposite_selections_second_scaled(mask: Var, x: Var, y: Var, c: Const) -> Rewrite:
    """Two opposite selections, one scaled, are a choice of what is scaled."""
    return Rewrite(
        before=select(mask, x) + select(logical_not(mask), y) * c, after=where(mask, x, y * c)
    )


def _vanishes(x: Node, mask: Node, depth: int = 4) -> bool:
    """Whether a value is 0 wherever a mask does not hold, as its last few operations tell."""
    if x.op.selection and x.inputs[0] is mask:
        return True
    if not depth:
        return False
    if x.op is negative.op:
        return _vanishes(x.inputs[0], mask, depth - 1)
    if x.op is multiply.op and is_finite(x.inputs[1]):
        return _vanishes(x.inputs[0], mask, depth - 1)
    if x.op in (add.op, subtract.op) and mask.op is logical_or.op:
        (a, b), (m, n) = x.inputs, mask.inputs
        return (_vanishes(a, m, depth - 1) and _vanishes(b, n, depth - 1)) or (
            _vanishes(a, n, depth - 1) and _vanishes(b, m, depth - 1)
        )
    return False


def _two_cotangents(x: Node, y: Node) -> Node:
    m, n = x > 1.5, y < 0.5
    total: Node = select(m, y) - select(n, x) * 3
    return select(logical_or(m, n), total)


@rule_for(
    lambda op: op.selection,
    exact=Exact.VALUES,
    operands=lambda ops: ops[1] in (add.op, subtract.op),
    examples=(_two_cotangents,),
)
def select_of_what_vanishes(node: Node) -> Node | None:
    """What is 0 wherever the mask does not hold, as the sum of two cotangents is, needs none."""
    mask, x = node.inputs
    return x if node.dtype.kind == "f" and _vanishes(x, mask) else None


# ---- what choices have in common ------------------------------------------------------------


def _no_wider(mask: Node, x: Node, y: Node) -> bool:
    """Whether what is chosen has no more elements than what it is chosen from."""
    chosen = product(broadcast_shapes(mask.shape, x.shape, y.shape))
    return guess(chosen) <= guess(x.size) + guess(y.size)


LOGARITHM = instead("exponentials/logarithms, exponential/logarithm", (exp.op, log.op))
ROOT = instead("exponentials/roots, exponential/root", (exp.op, sqrt.op))
NEGATIVE = instead("exponentials/negatives, exponential/negative", (exp.op, negative.op))


@rule(
    exact=Exact.BITS,
    single_use=True,
    when=_no_wider,
    family=(LOGARITHM, ROOT, NEGATIVE),
    reasons={"where_of_negatives": "What is negated in either case is negated once."},
)
def where_of_exponentials(mask: Var, x: Var, y: Var) -> Rewrite:
    """The exponential that is taken in either case is taken once."""
    return Rewrite(before=where(mask, exp(x), exp(y)), after=exp(where(mask, x, y)))


def _no_wider_than_common(mask: Node, x: Node, y: Node, z: Node) -> bool:
    """Whether the choice of x or y has no more elements than it has together with z."""
    return guess(product(broadcast_shapes(mask.shape, x.shape, y.shape))) <= guess(z.size)


@rule(
    exact=Exact.BITS,
    single_use=True,
    when=_no_wider_than_common,
    kinds="iuf",
    examples=WHERE,
    family=(PRODUCT,),
)
def where_of_products(mask: Var, x: Var, y: Var, z: Var) -> Rewrite:
    """A factor of either case is multiplied in once."""
    return Rewrite(before=where(mask, x * z, y * z), after=where(mask, x, y) * z)


@rule(
    exact=Exact.BITS,
    single_use=True,
    kinds="f",
    when=lambda c: is_finite(c),
    examples=tuple({**shapes, "c": c} for shapes in WHERE for c in (3.0, -0.5)),
)
def where_of_scaled(mask: Var, x: Var, y: Var, c: Const) -> Rewrite:
    """A constant factor of either case is multiplied in once."""
    return Rewrite(before=where(mask, x * c, y * c), after=where(mask, x, y) * c)


def _is_constant_over(mask: Node, x: Node, axis: tuple[int, ...]) -> bool:
    """Whether a mask is the same all along some axes of what it selects from."""
    shape = (1,) * (x.ndim - mask.ndim) + mask.shape
    return broadcast_shapes(shape, x.shape) == x.shape and all(shape[a] == 1 for a in axis)


def _selected_sum(
    mask: Node, x: Node, axis: tuple[int, ...], dtype: object, keepdims: bool
) -> Node:
    shape = (1,) * (x.ndim - mask.ndim) + mask.shape
    left = shape if keepdims else tuple(s for a, s in enumerate(shape) if a not in axis)
    return select(reshape(mask, left), sum(x, axis=axis, dtype=dtype, keepdims=keepdims))


@rule(
    exact=Exact.BITS,
    single_use=True,
    when=_is_constant_over,
    kinds="iuf",
    examples=(
        {"mask": (2, 1), "x": (2, 3), "axis": (1,), "dtype": None, "keepdims": False},
        {"mask": (3,), "x": (2, 3), "axis": (0,), "dtype": None, "keepdims": True},
    ),
)
def sum_of_select(mask: Var, x: Var, axis: Attr, dtype: Attr, keepdims: Attr) -> Rewrite:
    """Where a mask is the same all along a sum, it selects the sum instead of its terms."""
    return Rewrite(
        before=sum(select(mask, x), axis=axis, dtype=dtype, keepdims=keepdims), after=_selected_sum
    )


@rule(exact=Exact.BITS, single_use=True)
def select_of_placed(mask: Var, x: Var, i: Attr, s: Attr) -> Rewrite:
    """Where mask and values are put among zeros, only what is put there need be selected."""
    return Rewrite(
        before=select(place(mask, index=i, shape=s), place(x, index=i, shape=s)),
        after=lambda mask, x, i, s: place(select(mask, x), index=i, shape=s),
    )
