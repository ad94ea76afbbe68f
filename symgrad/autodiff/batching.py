"""Batching: a graph for one value becomes a graph for many, by a new leading axis.

No loop: every op knows how it works on a batch (`Op.batch`); elementwise ops need no rule. A batch
of all unit vectors is not written out while it stays diagonal, so that a Jacobian does not begin
with products by an identity matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symgrad.ir.dims import Size
from symgrad.ir.errors import GradientError
from symgrad.ir.node import Node, apply, describe
from symgrad.ir.origin import built_as
from symgrad.ir.walk import topological
from symgrad.ops.batch import aligned
from symgrad.ops.elementwise import multiply
from symgrad.ops.leaves import eye, ones
from symgrad.ops.linalg.products import matmul_p
from symgrad.ops.select import select
from symgrad.ops.shape import broadcast_to, permute_dims, reshape, reshape_p


def batched(
    ys: Sequence[Node], given: Mapping[Node, Node], size: Size, units: Node | None = None
) -> list[Node]:
    """The nodes `ys` for a whole batch: each with a leading axis of `size`.

    `given` says for some nodes what stands in their place: the same with a leading axis; in the
    place of `units` stand all unit vectors of its shape. Raises `GradientError` for an op that does
    not know how to work on a batch.
    """
    walk = _Walk(dict(given), units)
    for node in topological(ys):
        if node not in walk.many and node not in walk.diagonal:
            with built_as(node.origin):
                walk.step(node)
    with built_as(ys[0].origin):
        return [
            walk.dense(y)
            if y in walk.many or y in walk.diagonal
            else broadcast_to(y, (size, *y.shape))
            for y in ys
        ]


class _Walk:
    """`many` holds batched nodes, a tuple for the results of some with several; `diagonal` the
    diagonals of batches that are 0 beside them.
    """

    def __init__(self, many: dict[Node, Node], units: Node | None) -> None:
        self.many: dict[Node, Any] = many
        self.diagonal: dict[Node, Node] = {}
        if units is not None:
            self.diagonal[units] = ones(units.shape, dtype=units.dtype)

    def step(self, node: Node) -> None:
        """Batch one node, if one of its operands is batched."""
        if any(x in self.diagonal for x in node.inputs):
            if self._stays_diagonal(node):
                inputs = [self.diagonal.get(x, x) for x in node.inputs]
                self.diagonal[node] = apply(node.op, inputs, dict(node.attrs))
                return
            product = self._scaled_matrix(node)
            if product is not None:
                self.many[node] = product
                return
        elif not any(x in self.many for x in node.inputs):
            return
        self.many[node] = self._batched(node)

    def dense(self, node: Node) -> Node:
        """A batch written out; on a diagonal the zeros beside it are selected, not multiplied."""
        if node not in self.many:
            d = self.diagonal[node]
            mask = reshape(eye(d.size, dtype="bool"), (d.size, *d.shape))
            self.many[node] = select(mask, broadcast_to(d, (d.size, *d.shape)))
        found: Node = self.many[node]
        return found

    def _stays_diagonal(self, node: Node) -> bool:
        """Whether a zero in the diagonal operands makes a zero of the result, at the same place."""
        if any(x in self.many for x in node.inputs):
            return False
        where = [i for i, x in enumerate(node.inputs) if x in self.diagonal]
        if node.op is reshape_p.op:
            return True
        if not node.op.elementwise or any(node.inputs[i].shape != node.shape for i in where):
            return False
        every = len(where) == len(node.inputs)
        return (every and node.op.preserves_zero) or any(i in node.op.annihilators for i in where)

    def _scaled_matrix(self, node: Node) -> Node | None:
        """A matrix times all unit columns, or unit rows times a matrix: the matrix, scaled."""
        if node.op is not matmul_p.op or any(x in self.many for x in node.inputs):
            return None
        a, b = node.inputs
        if b in self.diagonal and a not in self.diagonal and a.ndim == 2 and b.shape[1] == 1:
            scaled = multiply(a, reshape(self.diagonal[b], (1, b.shape[0])))
            return reshape(permute_dims(scaled, (1, 0)), (b.shape[0], a.shape[0], 1))
        if a in self.diagonal and b not in self.diagonal and b.ndim == 2 and a.shape[0] == 1:
            scaled = multiply(b, reshape(self.diagonal[a], (a.shape[1], 1)))
            return reshape(scaled, (a.shape[1], 1, b.shape[1]))
        return None

    def _batched(self, node: Node) -> Any:
        flags = tuple(x in self.many or x in self.diagonal for x in node.inputs)
        inputs: tuple[Any, ...] = tuple(
            self.dense(x) if flag else x for x, flag in zip(node.inputs, flags, strict=True)
        )
        attrs = dict(node.attrs)
        if node.op.elementwise:
            return apply(node.op, aligned(node.inputs, inputs, flags), attrs)
        if node.op.of_several:
            results = self.many[node.inputs[0]]
            if isinstance(results, tuple):
                return results[node.attr("index")]
            return apply(node.op, inputs, attrs)
        if node.op.batch is None:
            raise GradientError(
                f"{node.op.name} does not know how to work on a batch: {describe(node)}; "
                "compute this derivative one vector at a time, with vjp"
            )
        return node.op.batch(inputs, flags, node, **attrs)
