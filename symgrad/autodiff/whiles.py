"""While loops: their derivatives, and how they work on a batch.

Once the loop has run, the number of its steps is known: its derivatives are those of a loop of that
length, whose graph runs again with it (`sized`). The derivative of such a graph is another, so that
there are all orders, in both modes.

On a batch it runs until the last row has ended. A row that has ended is not updated any more: each
step selects by row, which is a choice (`autodiff/choices.py`), so that a body which would not end
for such a row does not run for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count as counting

from symgrad.autodiff.batching import batched
from symgrad.autodiff.dynamic_shapes import Sized
from symgrad.autodiff.locking import Lock
from symgrad.autodiff.reverse import active_nodes
from symgrad.ir.dims import Dim, Size
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.op import Cotangent
from symgrad.ops.batch import batch_size
from symgrad.ops.leaves import placeholder, zeros
from symgrad.ops.loops.cond import chosen_of
from symgrad.ops.loops.loop import looped, substituted
from symgrad.ops.loops.while_loop import Limit, own_name, whiled
from symgrad.ops.reduce import any as any_
from symgrad.ops.shape import broadcast_to


def _as_loop(y: Node) -> Sized:
    """A while loop as a loop of as many steps as it took."""
    test, step = y.attr("test"), y.attr("step")
    name, carries = own_name(test, step), len(step.outputs)
    inputs = [placeholder(f"k{i}", x.shape, x.dtype) for i, x in enumerate(y.inputs)]
    results = looped(step, inputs[:carries], [], inputs[carries:], Dim.of(name))
    return Sized(y[0], name, results, inputs, y.inputs)


def vjp(flows: Sequence[Cotangent], y: Node, active: Sequence[bool]) -> tuple[Cotangent, ...]:
    """A cotangent for each operand of a while loop, from those of its results."""
    return tuple(_as_loop(y).vjp(flows[1:], active))


def jvp(tangents: Sequence[Cotangent], y: Node) -> tuple[Cotangent, ...]:
    """A tangent for each result of a while loop, from those of its operands."""
    return (None, *_as_loop(y).jvp(tangents))


def locked(lock: Lock, y: Node) -> list[Node]:
    """The results of a while loop whose step is locked, which carries its tangents beside."""
    step, test = y.attr("step"), y.attr("test")
    (goes,) = substituted(test.outputs, dict(zip(test.inputs, step.inputs, strict=True)))
    given, count = dict(zip(step.inputs, y.inputs, strict=True)), len(step.outputs)
    states, taken = step.inputs[:count], {x.name for x in step.inputs}
    names = (name for i in counting() if (name := f"p{i}") not in taken)
    found = {x for x, o in given.items() if any(t is not None for t in lock.tangents(o))}
    while True:
        reached = active_nodes(step.nodes, [*found])
        if not (
            fresh := {x for x, z in zip(states, step.outputs, strict=True) if z in reached} - found
        ):
            break
        found |= fresh
    rows = lock.rows(step.inputs, found, lambda x: placeholder(next(names), x.shape, x.dtype))
    outputs, moves = lock.body(step.outputs, rows)
    parts = [lock.beside(xs, rows, [given[x] for x in xs]) for xs in (states, step.inputs[count:])]
    made = [*outputs]
    for x, t in zip(states, moves, strict=True):
        made += lock.filled(t, x) if x in rows else []
    inputs, operands = ([v for part in parts for v in part[i]] for i in (0, 1))
    limit = y.attr("most"), y.attr("what")
    steps, *results = whiled(goes, made, inputs, operands, limit)
    rest = iter(results[count:])
    for x, carry in zip(states, results, strict=False):
        if x in rows:
            lock.know(carry, rest)
    return [steps, *results[:count]]


def batch(inputs: Sequence[Node], flags: Sequence[bool], y: Node) -> tuple[Node, ...]:
    """The results of a while loop, each for the whole batch."""
    step, size = y.attr("step"), batch_size(inputs, flags)
    becomes = dict(zip(y.attr("test").inputs, step.inputs, strict=True))
    (test,) = substituted(y.attr("test").outputs, becomes)
    states, limit = step.inputs[: len(step.outputs)], (y.attr("most"), y.attr("what"))
    found = {x for x, flag in zip(step.inputs, flags, strict=True) if flag}
    while True:
        reached = set(found)
        for node in Graph([test, *step.outputs], step.inputs).nodes:
            if any(x in reached for x in node.inputs):
                reached.add(node)
        by_row = test in reached  # each row ends when it does
        fresh = {
            x for x, z in zip(states, step.outputs, strict=True)
            if x not in found and (by_row or z in reached)
        }  # fmt: skip
        if not fresh:
            break
        found |= fresh
    taken = {x.name for x in step.inputs}
    names = (name for i in counting() if (name := f"p{i}") not in taken)
    given = [
        broadcast_to(x, (size, *x.shape)) if own in found and not flag else x
        for x, own, flag in zip(inputs, step.inputs, flags, strict=True)
    ]
    if by_row:
        return _by_row(test, step, given, found, limit, size, names)
    many = {
        x: placeholder(next(names), (size, *x.shape), x.dtype) for x in step.inputs if x in found
    }
    inside = [many.get(x, x) for x in step.inputs]
    nexts = [
        batched([z], many, size)[0] if x in found else z
        for x, z in zip(states, step.outputs, strict=True)
    ]
    steps, *ends = whiled(test, nexts, inside, given, limit)
    rows = (
        r if x in found else broadcast_to(r, (size, *r.shape))
        for r, x in zip(ends, states, strict=True)
    )
    return (broadcast_to(steps, (size,)), *rows)


def _by_row(
    test: Node,
    step: Graph,
    given: Sequence[Node],
    found: set[Node],
    limit: Limit,
    size: Size,
    names: Iterator[str],
) -> tuple[Node, ...]:
    """The results where each row ends when it does: whether it goes on is carried, and counted."""
    states = step.inputs[: len(step.outputs)]
    on, steps = placeholder(next(names), (), "bool"), placeholder(next(names), (), "int64")
    (after,) = substituted([test], dict(zip(states, step.outputs, strict=True)))
    own = [on, steps, *step.inputs]
    goes, stays = [after, steps + 1, *step.outputs], [on, steps, *states]
    row = chosen_of(on, goes, stays, own, own)
    moved = {on, steps, *found}
    many = {
        x: placeholder(next(names), (size, *x.shape), x.dtype)
        for x in own if x in moved
    }  # fmt: skip
    operands = dict(zip(step.inputs, given, strict=True))
    alone = {x: o for x, o in operands.items() if x not in found}
    rows = {x: o for x, o in operands.items() if x in found}
    (begins,) = batched(substituted([test], alone), rows, size)
    _, _, count, *ends = whiled(
        any_(many[on]),
        batched(row, many, size),
        [many.get(x, x) for x in own],
        [begins, zeros((size,), dtype="int64"), *given],
        limit,
    )
    return (count, *ends)
