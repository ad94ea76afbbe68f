"""Movement: views composed, broadcasts dropped, casts joined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symgrad.ir.dims import Shape
from symgrad.ir.node import Node, apply
from symgrad.ir.op import Op
from symgrad.ir.types import DType, broadcast_shapes
from symgrad.ops import batch
from symgrad.ops.activations import softmax
from symgrad.ops.shape import astype_p, broadcast_to, permute_dims, reshape
from symgrad.rewrite.pattern import Attr, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule, rule_for

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


@rule_for(lambda op: op is permute_dims.op, exact=Exact.BITS)
def permute_of_ones(node: Node) -> Node | None:
    """To move axes of size 1 about is to reshape, which other rules see through."""
    x = node.inputs[0]
    moved = [a for a in node.attr("axes") if x.shape[a] != 1]
    return reshape(x, node.shape) if moved == sorted(moved) else None


@rule(
    exact=Exact.BITS,
    examples=(
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


@rule(exact=Exact.ROUNDING, examples=({"x": (2, 6), "p": (3, 4), "q": (12,)},))
def reshape_of_reshape(x: Var, p: Attr, q: Attr) -> Rewrite:
    """Of two reshapes the last one counts.

    It may be a view where the two made a copy, so that sums of it may round differently.
    """
    return Rewrite(before=reshape(reshape(x, shape=p), shape=q), after=reshape(x, shape=q))


def _longer(shape: Shape) -> Shape:
    return tuple(s for s in shape if s != 1)


@rule(
    exact=Exact.BITS,
    when=lambda x, p, q: _longer(p) in (_longer(x.shape), _longer(q)),
    examples=({"x": (2, 3), "p": (2, 1, 3), "q": (6,)}, {"x": (6,), "p": (2, 3), "q": (2, 1, 3)}),
)
def reshape_of_new_axes(x: Var, p: Attr, q: Attr) -> Rewrite:
    """Axes of size 1 that come or go before or after a reshape are part of it."""
    return Rewrite(before=reshape(reshape(x, shape=p), shape=q), after=reshape(x, shape=q))


def _permuted_source(x: Node, p: Shape, q: tuple[int, ...]) -> Node:
    lead = len(p) - x.ndim
    own = tuple(a - lead for a in q if a >= lead)
    y = x if own == tuple(range(x.ndim)) else permute_dims(x, own)
    y = reshape(y, tuple(x.shape[a - lead] if a >= lead else 1 for a in q))
    return broadcast_to(y, tuple(p[a] for a in q))


@rule(
    exact=Exact.BITS,
    examples=(
        {"x": (3,), "p": (2, 3), "q": (1, 0)},
        {"x": (2, 1), "p": (3, 2, 4), "q": (2, 0, 1)},
        {"x": (), "p": (2, 3), "q": (1, 0)},
    ),
)
def permute_of_broadcast(x: Var, p: Attr, q: Attr) -> Rewrite:
    """What was repeated is moved before: repeating comes last, where an op can do it by itself."""
    return Rewrite(before=permute_dims(broadcast_to(x, shape=p), axes=q), after=_permuted_source)


@rule(exact=Exact.BITS, examples=({"x": (3,), "p": (2, 3), "q": (4, 2, 3)},))
def broadcast_of_broadcast(x: Var, p: Attr, q: Attr) -> Rewrite:
    """Of two broadcasts the last one counts."""
    return Rewrite(
        before=broadcast_to(broadcast_to(x, shape=p), shape=q), after=broadcast_to(x, shape=q)
    )


def _only_repeats(x: Node, p: Shape, q: Shape) -> bool:
    return p[len(p) - x.ndim :] == x.shape == q[max(len(q) - x.ndim, 0) :]


@rule(
    exact=Exact.BITS,
    when=_only_repeats,
    examples=(
        {"x": (), "p": (6,), "q": (6, 1)},
        {"x": (), "p": (2, 3), "q": (3, 2)},
        {"x": (3,), "p": (4, 3), "q": (2, 2, 3)},
    ),
)
def reshape_of_repeated(x: Var, p: Attr, q: Attr) -> Rewrite:
    """What is repeated whole is so in every arrangement."""
    return Rewrite(
        before=reshape(broadcast_to(x, shape=p), shape=q), after=broadcast_to(x, shape=q)
    )


def _only_adds_axes(x: Node, p: tuple[object, ...]) -> bool:
    return p[len(p) - x.ndim :] == x.shape and all(s == 1 for s in p[: len(p) - x.ndim])


@rule(
    exact=Exact.BITS,
    when=_only_adds_axes,
    examples=({"x": (3,), "p": (1, 3), "q": (2, 3)}, {"x": (), "p": (1, 1), "q": (2, 3)}),
)
def broadcast_of_new_axes(x: Var, p: Attr, q: Attr) -> Rewrite:
    """Broadcasting adds leading axes by itself."""
    return Rewrite(
        before=broadcast_to(reshape(x, shape=p), shape=q), after=broadcast_to(x, shape=q)
    )


def _some_broadcast(operands: Sequence[Op]) -> bool:
    return broadcast_to.op in operands


def _sources(node: Node) -> list[Node]:
    return [x.inputs[0] if x.op is broadcast_to.op else x for x in node.inputs]


@rule_for(
    lambda op: op.elementwise and not op.projections,
    exact=Exact.BITS,
    operands=_some_broadcast,
    examples=(lambda x, y: broadcast_to(x, (2, *x.shape)) * broadcast_to(y, (2, *x.shape)),),
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


@rule_for(
    lambda op: op.elementwise and not op.projections,
    exact=Exact.ROUNDING,
    operands=lambda operands: permute_dims.op in operands,
    examples=(lambda x, y: x.T * y.T, lambda x: abs(x.T)),
)
def op_of_permuted(node: Node) -> Node | None:
    """Of operands with their axes moved alike, an op is computed before: in the order of memory.

    The result is a view instead of an array, so that sums of it may go in another order.
    """
    moved = [x for x in node.inputs if x.ndim]
    axes = moved[0].attrs
    if any(x.op is not permute_dims.op or x.attrs != axes for x in moved):
        return None
    sources = [x.inputs[0] if x.ndim else x for x in node.inputs]
    return permute_dims(apply(node.op, sources, dict(node.attrs)), dict(axes)["axes"])


@rule_for(
    lambda op: op.batch in (batch.over_axes, batch.together) and not op.view,
    exact=Exact.ROUNDING,
    operands=lambda operands: 2 * operands.count(permute_dims.op) > len(operands),
    examples=(lambda x: softmax(x.T, axis=0),),
)
def op_along_permuted(node: Node) -> Node | None:
    """An op along one axis works on operands with their axes moved before: in the order of memory.

    That may make copies where there were views, so that products of the result may round otherwise.
    """
    attrs = dict(node.attrs)
    axes = next(x.attr("axes") for x in node.inputs if x.op is permute_dims.op)
    over = attrs["axis"]
    if isinstance(node.type, tuple) or any(x.ndim != node.ndim for x in node.inputs):
        return None
    back = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    sources = [
        x.inputs[0] if x.op is permute_dims.op and x.attr("axes") == axes else permute_dims(x, back)
        for x in node.inputs
    ]
    moved = tuple(sorted(axes[a] for a in over)) if isinstance(over, tuple) else axes[over]
    return permute_dims(apply(node.op, sources, {**attrs, "axis": moved}), axes)


# ---- casts ----------------------------------------------------------------------------------

DTYPE = np.dtype


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether every number of one dtype is one of another."""
    if narrow.kind in "iu" and wide.kind in "fc":
        return 8 * narrow.itemsize <= np.finfo(wide).nmant + 1
    return np.can_cast(narrow, wide, "safe")


@rule(exact=Exact.BITS, when=lambda x, p: x.dtype == p)
def cast_to_same(x: Var, p: Attr) -> Rewrite:
    """A cast to the dtype that is there changes nothing."""
    return Rewrite(before=astype_p(x, dtype=p), after=x)


@rule(
    exact=Exact.BITS,
    when=lambda x, p, q: x.dtype == q and _holds(p, x.dtype),
    examples=(
        {"x": (3,), "p": DTYPE("float64"), "q": DTYPE("float32")},
        {"x": (3,), "p": DTYPE("float64"), "q": DTYPE("int32")},
        {"x": (3,), "p": DTYPE("float64"), "q": DTYPE("int64")},
    ),
)
def cast_there_and_back(x: Var, p: Attr, q: Attr) -> Rewrite:
    """A cast to a wider dtype and back changes nothing."""
    return Rewrite(before=astype_p(astype_p(x, dtype=p), dtype=q), after=x)


def _passes_through(x: Node, p: DType, q: DType) -> bool:
    # To an integer that cannot hold it, NumPy converts each float in its own way.
    return _holds(p, x.dtype) and (q.kind not in "iu" or p.kind not in "fc")


@rule(
    exact=Exact.BITS,
    when=_passes_through,
    examples=tuple(
        {"x": (3,), "p": DTYPE(p), "q": DTYPE(q)}
        for p, q in (("float64", "float32"), ("int64", "uint8"), ("int32", "bool"))
    ),
)
def cast_of_cast(x: Var, p: Attr, q: Attr) -> Rewrite:
    """A cast by way of a dtype that holds every number is made at once."""
    return Rewrite(before=astype_p(astype_p(x, dtype=p), dtype=q), after=astype_p(x, dtype=q))
