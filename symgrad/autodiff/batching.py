"""Batching: a graph for one value becomes a graph for many, by a new leading axis.

No loop: every op knows how it works on a batch (`Op.batch`). Elementwise ops need no rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symgrad.ir.dims import Size
from symgrad.ir.errors import GradientError
from symgrad.ir.node import Node, apply, describe
from symgrad.ir.origin import built_as
from symgrad.ir.walk import topological
from symgrad.ops.batch import aligned
from symgrad.ops.shape import broadcast_to


def batched(ys: Sequence[Node], given: Mapping[Node, Node], size: Size) -> list[Node]:
    """The nodes `ys` for a whole batch: each with a leading axis of `size`.

    `given` says for some nodes what stands in their place: the same with a leading axis. Raises
    `GradientError` for an op that does not know how to work on a batch.
    """
    many: dict[Node, Node] = dict(given)
    for node in topological(ys):
        if node not in many and any(x in many for x in node.inputs):
            with built_as(node.origin):
                many[node] = _batched(node, many)
    return [many[y] if y in many else broadcast_to(y, (size, *y.shape)) for y in ys]


def _batched(node: Node, many: Mapping[Node, Node]) -> Node:
    flags = tuple(x in many for x in node.inputs)
    inputs = tuple(many.get(x, x) for x in node.inputs)
    attrs = dict(node.attrs)
    if node.op.elementwise:
        return apply(node.op, aligned(node.inputs, inputs, flags), attrs)
    if node.op.name == "item":
        return apply(node.op, inputs, attrs)
    if node.op.batch is None:
        raise GradientError(
            f"{node.op.name} does not know how to work on a batch: {describe(node)}; "
            "compute this derivative one vector at a time, with vjp"
        )
    return node.op.batch(inputs, flags, node, **attrs)
