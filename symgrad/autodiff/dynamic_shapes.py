"""Graphs with a dimension whose size is computed: the derivatives and the batches of `sized`.

The size has no derivative. Those of the graph are graphs with the same dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from symgrad.autodiff.batching import batched
from symgrad.autodiff.choices import row_by_row
from symgrad.autodiff.forward import push_forward
from symgrad.autodiff.locking import Lock, refuse_kinks
from symgrad.autodiff.reverse import is_differentiable, pull_back
from symgrad.ir.dims import Size
from symgrad.ir.node import Node
from symgrad.ir.op import Cotangent
from symgrad.ops.batch import batch_size
from symgrad.ops.leaves import placeholder
from symgrad.ops.loops.while_loop import sized_of
from symgrad.ops.shape import broadcast_to


class Sized:
    """Nodes in which a dimension has a size that is computed: made of inputs, given operands."""

    def __init__(
        self,
        size: Node,
        name: str,
        outputs: Sequence[Node],
        inputs: Sequence[Node],
        operands: Sequence[Node],
    ) -> None:
        self.size, self.name, self.outputs = size, name, outputs
        self.inputs, self.operands = inputs, operands
        taken = {x.name for x in inputs}
        self.names = (name for i in count() if (name := f"p{i}") not in taken)

    def like(self, x: Node, *axes: Size) -> Node:
        """A new input of the type of a node, with axes in front."""
        return placeholder(next(self.names), (*axes, *x.shape), x.dtype)

    def of(
        self, made: Mapping[int, Node], most: int, fresh: Mapping[Node, Node]
    ) -> list[Cotangent]:
        """Nodes by their numbers, computed with the dimension's size; None for the others."""
        if not made:
            return [None] * most
        inputs, operands = [*self.inputs, *fresh], [*self.operands, *fresh.values()]
        found = sized_of(self.size, self.name, [*made.values()], inputs, operands)
        results = dict(zip(made, found, strict=True))
        return [results.get(i) for i in range(most)]

    def vjp(self, flows: Sequence[Cotangent], active: Sequence[bool]) -> list[Cotangent]:
        """A cotangent for each operand, from those of the outputs."""
        seeds = {
            self.like(y): (y, f) for y, f in zip(self.outputs, flows, strict=True) if f is not None
        }
        xs = [x for x, on in zip(self.inputs, active, strict=True) if on and is_differentiable(x)]
        ys = [y for y, _ in seeds.values()]
        pulled = pull_back(ys, [*seeds], xs, sparse=True)
        made = {i: pulled[x] for i, x in enumerate(self.inputs) if x in pulled}
        return self.of(made, len(self.inputs), {s: f for s, (_, f) in seeds.items()})

    def jvp(self, tangents: Sequence[Cotangent]) -> list[Cotangent]:
        """A tangent for each output, from those of the operands."""
        given = {x: t for x, t in zip(self.inputs, tangents, strict=True) if t is not None}
        seeds = {x: self.like(x) for x in given}
        pushed = push_forward(self.outputs, [*given], [*seeds.values()])
        made = {i: pushed[y] for i, y in enumerate(self.outputs) if y in pushed}
        return self.of(made, len(self.outputs), {seeds[x]: t for x, t in given.items()})


def _as_sized(y: Node) -> Sized:
    graph = y.attr("graph")
    return Sized(y.inputs[0], y.attr("name"), graph.outputs, graph.inputs, y.inputs[1:])


def vjp(flows: Sequence[Cotangent], y: Node, active: Sequence[bool]) -> tuple[Cotangent, ...]:
    """A cotangent for each operand, from those of the results."""
    return (None, *_as_sized(y).vjp(flows, active[1:]))


def jvp(tangents: Sequence[Cotangent], y: Node) -> tuple[Cotangent, ...]:
    """A tangent for each result, from those of the operands."""
    return tuple(_as_sized(y).jvp(tangents[1:]))


def locked(lock: Lock, y: Node) -> list[Node]:
    """Refused."""
    refuse_kinks(y, "the derivative of a while loop")


def batch(inputs: Sequence[Node], flags: Sequence[bool], y: Node) -> tuple[Node, ...]:
    """The results, each for the whole batch."""
    own, size = _as_sized(y), batch_size(inputs, flags)
    steps = inputs[0]
    if flags[0]:
        if steps.op is not broadcast_to.op or steps.inputs[0].ndim:
            return row_by_row(inputs, flags, y, size)
        steps = steps.inputs[0]
    many = {x: own.like(x, size) for x, flag in zip(own.inputs, flags[1:], strict=True) if flag}
    outputs = batched(own.outputs, many, size)
    stands = [many.get(x, x) for x in own.inputs]
    return tuple(sized_of(steps, own.name, outputs, stands, inputs[1:]))
