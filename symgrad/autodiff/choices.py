"""Choices: the derivatives of `cond`, and how it works on a batch.

Each derivative of a choice is a choice between the derivatives of its two graphs, by the same
boolean. It computes again what it reads of the forward, so that nothing is kept of a graph that did
not run. Where the boolean differs by row, both graphs are computed and selected from, as long as
they are made of what always ends and never fails; else each row runs the one that is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from symgrad.autodiff.batching import batched
from symgrad.autodiff.forward import push_forward
from symgrad.autodiff.locking import Lock
from symgrad.autodiff.normal import normal_form
from symgrad.autodiff.reverse import is_differentiable, pull_back
from symgrad.ir.dims import Size
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.op import Cotangent
from symgrad.ops.batch import batch_size
from symgrad.ops.leaves import placeholder, zeros
from symgrad.ops.loops.cond import chosen_of
from symgrad.ops.loops.loop import looped, never_fails, substituted
from symgrad.ops.select import where
from symgrad.ops.shape import reshape


class _Choice:
    """A choice with its parts by name; both graphs are made of the same inputs."""

    def __init__(self, node: Node) -> None:
        true, false = node.attr("true"), node.attr("false")
        assert isinstance(true, Graph)
        self.inputs = true.inputs
        self.p, self.operands = node.inputs[0], node.inputs[1:]
        becomes = dict(zip(false.inputs, true.inputs, strict=True))
        self.sides = [[*true.outputs], substituted(false.outputs, becomes)]
        taken = {x.name for x in self.inputs}
        self.names = (name for i in count() if (name := f"p{i}") not in taken)

    def like(self, x: Node) -> Node:
        """A new input of the type of a node."""
        return placeholder(next(self.names), x.shape, x.dtype)

    def of(
        self, found: Sequence[dict[int, Node]], like: Sequence[Node], fresh: dict[Node, Node]
    ) -> list[Cotangent]:
        """The choice between results by number: 0 where a side has none, None if both have none.

        `fresh` says what new inputs are given.
        """
        wanted = sorted({*found[0], *found[1]})
        if not wanted:
            return [None] * len(like)
        true, false = [
            [of[i] if i in of else zeros(like[i].shape, dtype=like[i].dtype) for i in wanted]
            for of in found
        ]
        inputs, operands = [*self.inputs, *fresh], [*self.operands, *fresh.values()]
        made = dict(zip(wanted, chosen_of(self.p, true, false, inputs, operands), strict=True))
        return [made.get(i) for i in range(len(like))]


def vjp(flows: Sequence[Cotangent], y: Node, active: Sequence[bool]) -> tuple[Cotangent, ...]:
    """A cotangent for each operand of a choice, from those of its results."""
    choice = _Choice(y)
    inputs = [
        x for x, on in zip(choice.inputs, active[1:], strict=True)
        if on and is_differentiable(x)
    ]  # fmt: skip
    place = {x: i for i, x in enumerate(choice.inputs)}
    seeds = {i: choice.like(choice.sides[0][i]) for i, f in enumerate(flows) if f is not None}
    found = []
    for outputs in choice.sides:
        form = normal_form(outputs, inputs)
        ys = [form.ys[i] for i in seeds]
        pulled = pull_back(ys, [*seeds.values()], form.xs, sparse=True)
        reached = [(x, z) for x, z in zip(inputs, form.xs, strict=True) if z in pulled]
        written = form.as_written([pulled[z] for _, z in reached])
        found.append({place[x]: g for (x, _), g in zip(reached, written, strict=True)})
    fresh = {s: f for i, s in seeds.items() if (f := flows[i]) is not None}
    return (None, *choice.of(found, choice.inputs, fresh))


def jvp(tangents: Sequence[Cotangent], y: Node) -> tuple[Cotangent, ...]:
    """A tangent for each result of a choice, from those of its operands."""
    choice = _Choice(y)
    given = {x: t for x, t in zip(choice.inputs, tangents[1:], strict=True) if t is not None}
    seeds = {x: choice.like(x) for x in given}
    found = []
    for outputs in choice.sides:
        form = normal_form(outputs, [*given])
        pushed = push_forward(form.ys, form.xs, [*seeds.values()])
        ends = [i for i, z in enumerate(form.ys) if z in pushed]
        written = form.as_written([pushed[form.ys[i]] for i in ends])
        found.append(dict(zip(ends, written, strict=True)))
    fresh = {seeds[x]: t for x, t in given.items()}
    return tuple(choice.of(found, choice.sides[0], fresh))


def locked(lock: Lock, y: Node) -> list[Node]:
    """The results of a choice between graphs that are locked, which are given the tangents too."""
    choice = _Choice(y)
    operands = dict(zip(choice.inputs, choice.operands, strict=True))
    found = {x for x, o in operands.items() if any(t is not None for t in lock.tangents(o))}
    rows = lock.rows(choice.inputs, found, choice.like)
    true, false = (lock.body(outputs, rows)[0] for outputs in choice.sides)
    here, there = lock.beside(choice.inputs, rows, choice.operands)
    return chosen_of(choice.p, true, false, here, there)


def batch(inputs: Sequence[Node], flags: Sequence[bool], y: Node) -> tuple[Node, ...]:
    """The results of a choice, each for the whole batch."""
    choice, size = _Choice(y), batch_size(inputs, flags)
    many = {x for x, flag in zip(choice.inputs, flags[1:], strict=True) if flag}
    given = dict(zip(choice.inputs, inputs[1:], strict=True))
    if flags[0]:
        if not all(map(never_fails, [n for side in choice.sides for n in Graph(side).nodes])):
            return row_by_row(inputs, flags, y, size)
        alone = {x: o for x, o in given.items() if x not in many}
        rows = {x: given[x] for x in many}
        true, false = (batched(substituted(ys, alone), rows, size) for ys in choice.sides)
        return tuple(
            where(reshape(inputs[0], (size, *(1,) * (a.ndim - 1))), a, b)
            for a, b in zip(true, false, strict=True)
        )
    stands = {x: placeholder(next(choice.names), (size, *x.shape), x.dtype) for x in many}
    true, false = (batched(ys, stands, size) for ys in choice.sides)
    own = [stands.get(x, x) for x in choice.inputs]
    return tuple(chosen_of(inputs[0], true, false, own, [given[x] for x in choice.inputs]))


def row_by_row(
    inputs: Sequence[Node], flags: Sequence[bool], y: Node, size: Size
) -> tuple[Node, ...]:
    """The results of a node with graphs, for one row of the operands after the other."""
    rows = [placeholder(f"x{i}", x.shape, x.dtype) for i, x in enumerate(y.inputs)]
    one = Node(y.op, tuple(rows), y.attrs, y.type, y.origin)
    slices, whole = ([i for i, f in enumerate(flags) if f is flag] for flag in (True, False))
    body = Graph([*one], [*(rows[i] for i in slices), *(rows[i] for i in whole)])
    given = [inputs[i] for i in slices], [inputs[i] for i in whole]
    return tuple(looped(body, [], *given, size))
