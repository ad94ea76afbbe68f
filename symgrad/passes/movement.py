"""Movement and contraction: views composed, broadcasts dropped, reductions and products joined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symgrad.ir.dims import Shape, guess, product
from symgrad.ir.node import Node, apply
from symgrad.ir.op import Op
from symgrad.ir.types import broadcast_shapes
from symgrad.ops.elementwise import negative, square
from symgrad.ops.linalg import _matmul as matmul
from symgrad.ops.linalg import _vdot as vdot
from symgrad.ops.reduce import sum
from symgrad.ops.shape import _astype as astype
from symgrad.ops.shape import broadcast_to, permute_dims, reshape
from symgrad.passes.masks import is_finite, product_is_largest
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, Rule, rule, rule_for

# ---- views ----------------------------------------------------------------------------------


@rule_for(lambda op: op.view, exact=Exact.BITS)
def view_of_same_shape(node: Node) -> Node | None:
    """A reshape, broadcast or permutation that changes nothing is left out."""
    x = node.inputs[0]
    if x.shape != node.shape:
        return None
    attrs = dict(node.attrs)
    if "axes" in attrs:
        return x if attrs["axes"] == tuple(range(x.ndim)) else None
    return x if "shape" in attrs else None


@rule_for(lambda op: op.name == "permute_dims", exact=Exact.BITS)
def permute_of_ones(node: Node) -> Node | None:
    """To move axes of size 1 about is to reshape, which other rules see through."""
    x = node.inputs[0]
    moved = [a for a in dict(node.attrs)["axes"] if x.shape[a] != 1]
    return reshape(x, node.shape) if moved == sorted(moved) else None


@rule(
    exact=Exact.BITS,
    tries=(
        {"x": (2, 3, 4), "p": (2, 0, 1), "q": (1, 0, 2)},
        {"x": (2, 3), "p": (1, 0), "q": (1, 0)},
    ),
)
def permute_of_permute(x: Var, p: Attr, q: Attr) -> Rewrite:
    """Two permutations of the axes are one."""
    return Rewrite(
        before=permute_dims(permute_dims(x, axes=p), axes=q),
        after=lambda x, p, q: permute_dims(x, tuple(p[i] for i in q)),
    )


@rule(exact=Exact.ROUNDING, tries=({"x": (2, 6), "p": (3, 4), "q": (12,)},))
def reshape_of_reshape(x: Var, p: Attr, q: Attr) -> Rewrite:
    """Of two reshapes the last one counts.

    It may be a view where the two made a copy, so that sums of it may round differently.
    """
    return Rewrite(before=reshape(reshape(x, shape=p), shape=q), after=reshape(x, shape=q))


@rule(exact=Exact.BITS, tries=({"x": (3,), "p": (2, 3), "q": (4, 2, 3)},))
def broadcast_of_broadcast(x: Var, p: Attr, q: Attr) -> Rewrite:
    """Of two broadcasts the last one counts."""
    return Rewrite(
        before=broadcast_to(broadcast_to(x, shape=p), shape=q), after=broadcast_to(x, shape=q)
    )


@rule(
    exact=Exact.BITS,
    when=lambda x: x.ndim == 0,
    tries=({"x": (), "p": (6,), "q": (6, 1)}, {"x": (), "p": (2, 3), "q": (3, 2)}),
)
def reshape_of_repeated(x: Var, p: Attr, q: Attr) -> Rewrite:
    """One number repeated is the same in every shape."""
    return Rewrite(
        before=reshape(broadcast_to(x, shape=p), shape=q), after=broadcast_to(x, shape=q)
    )


def _only_adds_axes(x: Node, p: tuple[object, ...]) -> bool:
    return p[len(p) - x.ndim :] == x.shape and all(s == 1 for s in p[: len(p) - x.ndim])


@rule(
    exact=Exact.BITS,
    when=_only_adds_axes,
    tries=({"x": (3,), "p": (1, 3), "q": (2, 3)}, {"x": (), "p": (1, 1), "q": (2, 3)}),
)
def broadcast_of_new_axes(x: Var, p: Attr, q: Attr) -> Rewrite:
    """Broadcasting adds leading axes by itself."""
    return Rewrite(
        before=broadcast_to(reshape(x, shape=p), shape=q), after=broadcast_to(x, shape=q)
    )


_BROADCAST = broadcast_to(0.0, (2,)).op


def _some_broadcast(operands: Sequence[Op]) -> bool:
    return _BROADCAST in operands


def _sources(node: Node) -> list[Node]:
    return [x.inputs[0] if x.op is _BROADCAST else x for x in node.inputs]


@rule_for(
    lambda op: op.elementwise and not op.projections,
    exact=Exact.BITS,
    operands=_some_broadcast,
    tries=(lambda x, y: broadcast_to(x, (2, *x.shape)) * broadcast_to(y, (2, *x.shape)),),
)
def broadcast_operand(node: Node) -> Node | None:
    """An elementwise op broadcasts its operands by itself."""
    inputs = list(node.inputs)
    for i, x in enumerate(_sources(node)):
        if x is not inputs[i] and _broadcast(x, *inputs[:i], *inputs[i + 1 :]) == node.shape:
            inputs[i] = x
    same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
    return None if same else apply(node.op, inputs, dict(node.attrs))


def _broadcast(*nodes: Node) -> Shape:
    return broadcast_shapes(*(n.shape for n in nodes))


@rule_for(
    lambda op: op.elementwise and not op.projections,
    exact=Exact.ROUNDING,
    operands=_some_broadcast,
)
def op_of_broadcasts(node: Node) -> Node | None:
    """Of operands that were all repeated, an op is computed once and then repeated: less work.

    The result is a view instead of an array, so that sums and products of it, though not the op
    itself, may go in another order.
    """
    if node.size == 0:  # what is computed no times cannot fail, as 0 ** -1 does on integers
        return None
    return apply(node.op, _sources(node), dict(node.attrs))


# ---- casts ----------------------------------------------------------------------------------


@rule(
    exact=Exact.BITS,
    when=lambda x, p, q: x.dtype == q and np.can_cast(x.dtype, p, "safe"),
    tries=({"x": (3,), "p": np.dtype("float64"), "q": np.dtype("float32")},),
)
def cast_there_and_back(x: Var, p: Attr, q: Attr) -> Rewrite:
    """A cast to a wider dtype and back changes nothing."""
    return Rewrite(before=astype(astype(x, dtype=p), dtype=q), after=x)


# ---- reductions -----------------------------------------------------------------------------


@rule(
    exact=Exact.VALUES,
    kinds="f",
    once=True,
    tries=({"x": (2, 3), "axis": (0,), "dtype": None, "keepdims": False},),
)
def sum_of_negative(x: Var, axis: Attr, dtype: Attr, keepdims: Attr) -> Rewrite:
    """The sign changes once, after the sum, instead of at every element."""
    return Rewrite(
        before=sum(negative(x), axis=axis, dtype=dtype, keepdims=keepdims),
        after=negative(sum(x, axis=axis, dtype=dtype, keepdims=keepdims)),
    )


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    once=True,
    when=lambda c: is_finite(c) and c.ndim == 0,
    tries=({"x": (2, 3), "c": 3.0, "axis": (0,), "dtype": None, "keepdims": False},),
)
def sum_of_scaled(x: Var, c: Const, axis: Attr, dtype: Attr, keepdims: Attr) -> Rewrite:
    """A scalar factor is multiplied once, after the sum, instead of at every element."""
    return Rewrite(
        before=sum(x * c, axis=axis, dtype=dtype, keepdims=keepdims),
        after=sum(x, axis=axis, dtype=dtype, keepdims=keepdims) * c,
    )


@rule(exact=Exact.ROUNDING, once=True, tries=({"x": (2, 3, 4), "p": (1,), "q": (0, 1), "d": None},))
def sum_of_sum(x: Var, p: Attr, q: Attr, d: Attr) -> Rewrite:
    """Two sums over different axes are one over both."""
    return Rewrite(
        before=sum(sum(x, axis=p, dtype=d, keepdims=False), axis=q, dtype=None, keepdims=False),
        after=lambda x, p, q, d: sum(x, axis=_joined_axes(x.ndim, p, q), dtype=d),
    )


def _joined_axes(ndim: int, p: tuple[int, ...], q: tuple[int, ...]) -> tuple[int, ...]:
    left = [a for a in range(ndim) if a not in p]
    return (*p, *(left[a] for a in q))


def _spans_all(x: Node, axis: tuple[int, ...]) -> bool:
    return len(axis) == x.ndim


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    once=True,
    when=lambda x, y, axis: x.shape == y.shape and _spans_all(x, axis) and x.ndim > 0,
    tries=({"x": (2, 3), "y": (2, 3), "axis": (0, 1)},),
)
def sum_of_products(x: Var, y: Var, axis: Attr) -> Rewrite:
    """The sum of all products is a dot product: no array of products is made."""
    return Rewrite(before=sum(x * y, axis=axis, dtype=None, keepdims=False), after=vdot(x, y))


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    once=True,
    when=lambda x, axis: _spans_all(x, axis) and x.ndim > 0,
    tries=({"x": (2, 3), "axis": (0, 1)},),
)
def sum_of_squares(x: Var, axis: Attr) -> Rewrite:
    """The sum of all squares is a dot product: no array of squares is made."""
    return Rewrite(before=sum(square(x), axis=axis, dtype=None, keepdims=False), after=vdot(x, x))


def _repeated(x: Node, p: Shape, axis: tuple[int, ...]) -> Node | None:
    count = product(p[a] for a in axis)
    # 0 times inf would be NaN, where the sum of nothing is 0.
    some = is_finite(x) or (isinstance(count, int) and count > 0)
    if any(a >= len(p) - x.ndim for a in axis) or not some:
        return None
    repeated: Node = x * count
    return repeated


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    tries=(
        {"x": (3,), "p": (2, 3), "axis": (0,)},
        {"x": (3,), "p": (0, 3), "axis": (0,)},
        {"x": (), "p": (4, 2, 3), "axis": (0, 2)},
    ),
)
def sum_of_broadcast(x: Var, p: Attr, axis: Attr) -> Rewrite:
    """A sum over what was only repeated is a multiplication by how often."""
    return Rewrite(
        before=sum(broadcast_to(x, shape=p), axis=axis, dtype=None, keepdims=False),
        after=_repeated,
    )


# ---- matrix products ------------------------------------------------------------------------


def _into_left(a: Node, b: Node, c: Node) -> bool:
    return (
        is_finite(c) and c.ndim == 0 and product_is_largest(a, b) and guess(a.size) <= guess(b.size)
    )


def _into_right(a: Node, b: Node, c: Node) -> bool:
    return (
        is_finite(c) and c.ndim == 0 and product_is_largest(a, b) and guess(b.size) < guess(a.size)
    )


MATRICES = ({"a": (4, 2), "b": (2, 5), "c": 3.0}, {"a": (5, 2), "b": (2, 4), "c": 0.5})


@rule(exact=Exact.ROUNDING, kinds="f", once=True, when=_into_left, tries=MATRICES)
def scalar_through_matmul(a: Var, b: Var, c: Const) -> Rewrite:
    """A scalar factor of a matrix product moves to the smaller operand: fewer multiplications."""
    return Rewrite(before=matmul(a, b) * c, after=matmul(a * c, b))


@rule(exact=Exact.ROUNDING, kinds="f", once=True, when=_into_right, tries=MATRICES)
def scalar_through_matmul_right(a: Var, b: Var, c: Const) -> Rewrite:
    """A scalar factor of a matrix product moves to the smaller operand: fewer multiplications."""
    return Rewrite(before=matmul(a, b) * c, after=matmul(a, b * c))


def _shrinks(x: Node, other: Node, c: Node, rows: Node, columns: Node) -> bool:
    result = guess(rows.shape[-2]) * guess(columns.shape[-1])
    return is_finite(c) and c.ndim == 0 and result < guess(x.size) and result <= guess(other.size)


WIDE = ({"a": (2, 5), "b": (5, 3), "c": 3.0},)


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    once=True,
    tries=WIDE,
    when=lambda a, b, c: _shrinks(a, b, c, a, b),
)
def scalar_out_of_left(a: Var, b: Var, c: Const) -> Rewrite:
    """A scalar factor moves out of an operand that is larger than the product."""
    return Rewrite(before=matmul(a * c, b), after=matmul(a, b) * c)


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    once=True,
    tries=WIDE,
    when=lambda a, b, c: _shrinks(b, a, c, a, b),
)
def scalar_out_of_right(a: Var, b: Var, c: Const) -> Rewrite:
    """A scalar factor moves out of an operand that is larger than the product."""
    return Rewrite(before=matmul(a, b * c), after=matmul(a, b) * c)


RULES: tuple[Rule, ...] = tuple(r for r in globals().values() if isinstance(r, Rule))
