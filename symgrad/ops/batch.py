"""How ops that are not elementwise work on a batch: the rules that several of them share.

A rule is given the operands, of which those flagged have a leading batch axis, and the node that is
batched; it returns that node with a leading batch axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symgrad.ir.dims import Size
from symgrad.ir.node import Node, apply
from symgrad.ir.operators import call


def aligned(originals: Sequence[Node], inputs: Sequence[Node], flags: Sequence[bool]) -> list[Node]:
    """Operands that broadcast as they did before: size 1 axes put behind the batch axis."""
    rank = max(x.ndim for x in originals)
    return [
        _padded(many, x, rank) if flag else many
        for x, many, flag in zip(originals, inputs, flags, strict=True)
    ]


def _padded(many: Node, original: Node, rank: int) -> Node:
    if original.ndim == rank:
        return many
    shape = (many.shape[0], *(1,) * (rank - original.ndim), *original.shape)
    return call("reshape", many, shape)


def batch_size(inputs: Sequence[Node], flags: Sequence[bool]) -> Size:
    """The size of the batch."""
    return next(x.shape[0] for x, flag in zip(inputs, flags, strict=True) if flag)


def over_axes(inputs: Sequence[Node], flags: Sequence[bool], node: Node, **attrs: Any) -> Node:
    """For ops with an attribute `axis` counted from the front: an int or a tuple of ints."""
    axis = attrs.pop("axis")
    moved = tuple(a + 1 for a in axis) if isinstance(axis, tuple) else axis + 1
    return apply(node.op, inputs, {**attrs, "axis": moved})


def of_all(inputs: Sequence[Node], flags: Sequence[bool]) -> list[Node]:
    """Every operand with a batch axis; those without one are repeated."""
    size = batch_size(inputs, flags)
    return [
        x if flag else call("broadcast_to", x, (size, *x.shape))
        for x, flag in zip(inputs, flags, strict=True)
    ]


def repeated(inputs: Sequence[Node], flags: Sequence[bool], node: Node, **attrs: Any) -> Node:
    """For ops whose operands all have as many leading axes."""
    return apply(node.op, of_all(inputs, flags), attrs)


def reshaped(inputs: Sequence[Node], flags: Sequence[bool], node: Node, shape: Any) -> Node:
    """For reshape: the batch axis stays in front."""
    return apply(node.op, inputs, {"shape": (inputs[0].shape[0], *shape)})


def permuted(inputs: Sequence[Node], flags: Sequence[bool], node: Node, axes: Any) -> Node:
    """For permute_dims."""
    return apply(node.op, inputs, {"axes": (0, *(a + 1 for a in axes))})


def broadcast(inputs: Sequence[Node], flags: Sequence[bool], node: Node, shape: Any) -> Node:
    """For broadcast_to."""
    padded = _padded(inputs[0], node.inputs[0], len(shape))
    return apply(node.op, [padded], {"shape": (inputs[0].shape[0], *shape)})


def sliced(inputs: Sequence[Node], flags: Sequence[bool], node: Node, index: Any) -> Node:
    """For slices."""
    return apply(node.op, inputs, {"index": (_whole(inputs[0].shape[0]), *index)})


def placed(
    inputs: Sequence[Node], flags: Sequence[bool], node: Node, shape: Any, index: Any
) -> Node:
    """For slices, transposed."""
    size = inputs[0].shape[0]
    attrs = {"shape": (size, *shape), "index": (_whole(size), *index)}
    return apply(node.op, inputs, attrs)


def _whole(size: Size) -> tuple[Any, Any, int]:
    return (0, size, 1) if isinstance(size, int) else (None, None, 1)


def joined(inputs: Sequence[Node], flags: Sequence[bool], node: Node, axis: int) -> Node:
    """For concat."""
    return apply(node.op, of_all(inputs, flags), {"axis": axis + 1})


def multiplied(inputs: Sequence[Node], flags: Sequence[bool], node: Node) -> Node:
    """For matmul: a batch on one side of a plain matrix is one larger product."""
    a, b = inputs
    plain = node.inputs[0].ndim == node.inputs[1].ndim == 2
    if plain and flags == (True, False):
        size, rows, inner = a.shape
        flat = apply(node.op, [call("reshape", a, (size * rows, inner)), b])
        return call("reshape", flat, (size, rows, b.shape[1]))
    if plain and flags == (False, True):
        size, inner, columns = b.shape
        moved = call("reshape", call("permute_dims", b, (0, 2, 1)), (size * columns, inner))
        flat = apply(node.op, [moved, call("permute_dims", a, (1, 0))])
        back = call("reshape", flat, (size, columns, a.shape[0]))
        return call("permute_dims", back, (0, 2, 1))
    return apply(node.op, aligned(node.inputs, inputs, flags))


def dotted(inputs: Sequence[Node], flags: Sequence[bool], node: Node) -> Node:
    """For vdot: the sum of products over all axes but the batch."""
    a, b = inputs
    products = call("multiply", a, b)
    return call("sum", products, axis=tuple(range(1, products.ndim)))


def together(inputs: Sequence[Node], flags: Sequence[bool], node: Node, **attrs: Any) -> Node:
    """For ops with an attribute `axis` and operands of one shape."""
    return over_axes(of_all(inputs, flags), flags, node, **attrs)


def in_front(inputs: Sequence[Node], flags: Sequence[bool], node: Node, **attrs: Any) -> Node:
    """For ops on matrices, over the last axes, that broadcast over the others."""
    return apply(node.op, aligned(node.inputs, inputs, flags), attrs)
