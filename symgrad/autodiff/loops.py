"""Loops: their derivatives, and how they work on a batch. Each is a loop again.

Reverse: a loop runs the other way, whose body is the pull-back of the body. It carries the
cotangents of the carries, and the sums of those of what every step reads whole. What the pull-back
reads of the forward is stacked by a copy of the loop, which `passes/loops.py` makes one with the
loop itself: which values, a minimum cut tells, of what is read and what is cheap to compute again.
Forward: the tangents of the carries are carried beside them. A batch: the body's.

Which carries have a cotangent, a tangent or a batch axis is the least fixed point: a carry has one
if it begins with one, or if a step gives it one. The bodies are differentiated in normal form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from symgrad.analysis import cheapest_cut, nbytes
from symgrad.autodiff.batching import batched
from symgrad.autodiff.custom.checkpoint import checkpoint as checkpoint
from symgrad.autodiff.custom.traced import replaced
from symgrad.autodiff.forward import push_forward
from symgrad.autodiff.locking import Lock
from symgrad.autodiff.normal import normal_form
from symgrad.autodiff.reverse import active_nodes, is_differentiable, pull_back
from symgrad.ir.dims import Size
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.op import Cotangent
from symgrad.ir.walk import topological
from symgrad.ops.batch import batch_size
from symgrad.ops.flows import added
from symgrad.ops.leaves import placeholder, zeros
from symgrad.ops.loops.loop import looped
from symgrad.ops.shape import broadcast_to, permute_dims


class _Loop:
    """A loop node with its parts by name; `like` makes inputs of bodies made of its own."""

    def __init__(self, node: Node) -> None:
        body = node.attr("body")
        assert isinstance(body, Graph)
        self.node, self.body = node, body
        self.length: Size = node.attr("length")
        self.reverse: bool = node.attr("reverse")
        self.carries: int = node.attr("carries")
        first_fixed = self.carries + node.attr("sequences")
        self.states = body.inputs[: self.carries]
        self.slices = body.inputs[self.carries : first_fixed]
        self.fixed = body.inputs[first_fixed:]
        self.given = dict(zip(body.inputs, node.inputs, strict=True))
        taken = {x.name for x in body.inputs}
        self.names = (name for i in count() if (name := f"p{i}") not in taken)

    def like(self, x: Node, *axes: Size) -> Node:
        """A new input of the type of a node, with axes in front."""
        return placeholder(next(self.names), (*axes, *x.shape), x.dtype)

    def closed(self, found: set[Node], reached: set[Node]) -> bool:
        """Whether `found` has all the carries that become what is reached; else it gets them."""
        pairs = zip(self.states, self.body.outputs, strict=False)
        fresh = {x for x, y in pairs if y in reached and x not in found}
        found |= fresh
        return not fresh


# ---- reverse mode ---------------------------------------------------------------------------


def vjp(flows: Sequence[Cotangent], y: Node, active: Sequence[bool]) -> tuple[Cotangent, ...]:
    """A cotangent for each operand of a loop, from those of its results."""
    loop = _Loop(y)
    outputs = loop.body.outputs
    seeds = [loop.like(y) for y in outputs]
    flowing = {i for i, f in enumerate(flows) if f is not None}
    pulled = _pulled_back(loop, seeds, flowing, active)
    states, slices, fixed = (
        [x for x in xs if x in pulled] for xs in (loop.states, loop.slices, loop.fixed)
    )
    place = {x: i for i, x in enumerate(loop.states)}
    pairs = list(zip(seeds, flows, strict=True))[loop.carries :]
    stacks = [(s, f) for s, f in pairs if f is not None]
    sums = [loop.like(k) for k in fixed]
    made = [pulled[x] for x in states]
    made += [added(s, pulled[k]) for s, k in zip(sums, fixed, strict=True)]
    made += [pulled[x] for x in slices]
    if not made:
        return (None,) * len(loop.body.inputs)
    steps, whole = _reads(loop, made, {*seeds, *sums})
    stands_for = {node: p for reads in (steps, whole) for node, (p, _) in reads.items()}
    inputs = [seeds[place[x]] for x in states] + sums + [s for s, _ in stacks]
    inputs += [p for reads in (steps, whole) for p, _ in reads.values()]
    first = [flows[place[x]] for x in states]
    results = looped(
        Graph(replaced(made, stands_for), inputs),
        [_zeros(x) if f is None else f for x, f in zip(states, first, strict=True)]
        + [_zeros(k) for k in fixed],
        [f for _, f in stacks] + [given for _, given in steps.values()],
        [given for _, given in whole.values()],
        loop.length,
        not loop.reverse,
    )
    found = dict(zip((*states, *fixed, *slices), results, strict=True))
    return tuple(found.get(x) for x in loop.body.inputs)


def _zeros(x: Node) -> Node:
    return zeros(x.shape, dtype=x.dtype)


def _pulled_back(
    loop: _Loop, seeds: Sequence[Node], flowing: set[int], active: Sequence[bool]
) -> dict[Node, Node]:
    """The cotangents of the body's inputs, of those carries, too, that always have none."""
    inputs, outputs = loop.body.inputs, loop.body.outputs
    xs = {x for x, on in zip(inputs, active, strict=True) if on and is_differentiable(x)}
    while not loop.closed(xs, active_nodes(loop.body.nodes, [*xs])):
        pass
    varying = [x for x in inputs if x in xs]
    form = normal_form(outputs, varying)
    while True:
        some = sorted(i for i in flowing if is_differentiable(outputs[i]))
        # The cotangent of a carry may be 0 in some steps, through which nothing is to flow.
        found = pull_back(
            [form.ys[i] for i in some],
            [seeds[i] for i in some],
            form.xs,
            sparse=True,
        )
        pulled = {x: found[z] for x, z in zip(varying, form.xs, strict=True) if z in found}
        fresh = {i for i, x in enumerate(loop.states) if x in pulled} - flowing
        if not fresh:
            break
        flowing |= fresh
    written = form.as_written(list(pulled.values()))
    nothing = {x: _zeros(x) for i, x in enumerate(loop.states) if i in flowing and x in xs}
    return nothing | dict(zip(pulled, written, strict=True))


# What stands for a node in another body, and what the loop is given for it.
_Reads = dict[Node, tuple[Node, Node]]


def _reads(loop: _Loop, made: Sequence[Node], late: set[Node]) -> tuple[_Reads, _Reads]:
    """The forward values that a backward body reads, by steps and whole. `late` are its own inputs.

    What no step changes is computed before the loop.
    """
    order = topological(made)
    late, varying, steady = set(late), {*loop.states, *loop.slices}, set(loop.fixed)
    for node in order:
        for kind in (late, varying, steady):
            if any(x in kind for x in node.inputs):
                kind.add(node)
                break
    ends = [n for n in made if n not in late]
    ends += [x for n in order if n in late for x in n.inputs if x not in late]
    kept = _cheapest(loop, dict.fromkeys(n for n in ends if n in varying), varying)
    steps: dict[Node, None] = {}
    whole: dict[Node, None] = {}
    seen: set[Node] = set()
    while ends:
        node = ends.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in kept:
            steps[node] = None
        elif node in varying:
            ends += node.inputs
        elif node in steady:
            whole[node] = None
    before = replaced(list(whole), loop.given)
    return _stacked(loop, list(steps)), {
        n: (loop.like(n), given) for n, given in zip(whole, before, strict=True)
    }


def _cheapest(loop: _Loop, targets: Mapping[Node, None], varying: set[Node]) -> set[Node]:
    """The nodes of which the fewest bytes are kept, so that the rest is cheap to compute again."""
    there = {*loop.slices, *loop.body.outputs[loop.carries :]}

    def operands(node: Node) -> list[Node] | None:
        op = node.op
        if not node.inputs or op.expensive or not (op.elementwise or op.view):
            return None
        return [x for x in node.inputs if x in varying]

    def cost(node: Node) -> int:  # rather a value than a view of it
        return 0 if node in there else nbytes(node) + node.op.view

    return cheapest_cut(targets, operands, cost)


def _stacked(loop: _Loop, nodes: Sequence[Node]) -> _Reads:
    """Nodes of the body as sequences: those that the loop is given or gives, and new stacks."""
    found = {x: loop.given[x] for x in loop.slices}
    results = list(loop.node)
    pairs = list(zip(loop.body.outputs, results, strict=True))[loop.carries :]
    for node, stack in pairs:
        found.setdefault(node, stack)
    new = [n for n in nodes if n not in found]
    if new:
        body = Graph((*loop.body.outputs[: loop.carries], *new), loop.body.inputs)
        init, xs, fixed = (
            [loop.given[x] for x in part] for part in (loop.states, loop.slices, loop.fixed)
        )
        again = looped(body, init, xs, fixed, loop.length, loop.reverse)
        found.update(zip(new, again[loop.carries :], strict=True))
    return {n: (loop.like(n), found[n]) for n in nodes}


# ---- forward mode ---------------------------------------------------------------------------


def jvp(tangents: Sequence[Cotangent], y: Node) -> tuple[Cotangent, ...]:
    """A tangent for each result of a loop, from those of its operands."""
    loop = _Loop(y)
    inputs, outputs = loop.body.inputs, loop.body.outputs
    given = {x: t for x, t in zip(inputs, tangents, strict=True) if t is not None}
    found = set(given)
    while not loop.closed(found, active_nodes(loop.body.nodes, [*found])):
        pass
    moving = [x for x in inputs if x in found]
    form = normal_form(outputs, moving)
    stands = {x: loop.like(x) for x in moving}
    flows = push_forward(form.ys, form.xs, list(stands.values()))
    ends = [i for i, y in enumerate(form.ys) if y in flows]
    written = dict(zip(ends, form.as_written([flows[form.ys[i]] for i in ends]), strict=True))
    states = [(i, x) for i, x in enumerate(loop.states) if x in found]
    stacks = [i for i in ends if i >= loop.carries]
    made = [*outputs[: loop.carries]]
    made += [written[i] if i in written else _zeros(x) for i, x in states]
    made += [written[i] for i in stacks]
    if not made:
        return (None,) * len(outputs)

    def both(xs: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        """Inputs of the body with their stand-ins for tangents, and what the loop is given."""
        moved = [x for x in xs if x in found]
        here = [*xs, *(stands[x] for x in moved)]
        starts = [given[x] if x in given else _zeros(x) for x in moved]
        return here, [*(loop.given[x] for x in xs), *starts]

    parts = [both(xs) for xs in (loop.states, loop.slices, loop.fixed)]
    body = Graph(made, [x for here, _ in parts for x in here])
    init, xs, fixed = (there for _, there in parts)
    results = looped(body, init, xs, fixed, loop.length, loop.reverse)
    places = [*(i for i, _ in states), *stacks]
    moves = dict(zip(places, results[loop.carries :], strict=True))
    return tuple(moves.get(i) for i in range(len(outputs)))


# ---- on a side of kinks ---------------------------------------------------------------------


def locked(lock: Lock, y: Node) -> list[Node]:
    """The results of a loop whose body is locked, which carries its tangents beside the carries."""
    loop = _Loop(y)
    found = {x for x, o in loop.given.items() if any(t is not None for t in lock.tangents(o))}
    while not loop.closed(found, active_nodes(loop.body.nodes, [*found])):
        pass
    rows = lock.rows(loop.body.inputs, found, loop.like)
    outputs, moves = lock.body(loop.body.outputs, rows)
    ends = [i for i, y in enumerate(outputs) if i >= loop.carries and moves[i] is not None]
    parts = [
        lock.beside(xs, rows, [loop.given[x] for x in xs])
        for xs in (loop.states, loop.slices, loop.fixed)
    ]
    made = [*outputs[: loop.carries]]
    for i, x in enumerate(loop.states):
        made += lock.filled(moves[i], x) if x in rows else []
    made += outputs[loop.carries :]
    for i in ends:
        made += lock.filled(moves[i], outputs[i])
    init, xs, fixed = (there for _, there in parts)
    body = Graph(made, [x for here, _ in parts for x in here])
    results = iter(looped(body, init, xs, fixed, loop.length, loop.reverse))
    carries = [next(results) for _ in loop.states]
    for x, carry in zip(loop.states, carries, strict=True):
        if x in rows:
            lock.know(carry, results)
    stacks = [next(results) for _ in outputs[loop.carries :]]
    for i in ends:
        lock.know(stacks[i - loop.carries], results)
    return [*carries, *stacks]


# ---- batches --------------------------------------------------------------------------------


def batch(inputs: Sequence[Node], flags: Sequence[bool], y: Node) -> tuple[Node, ...]:
    """The results of a loop, each for the whole batch."""
    loop, size = _Loop(y), batch_size(inputs, flags)
    outputs = loop.body.outputs
    found = {x for x, flag in zip(loop.body.inputs, flags, strict=True) if flag}
    while not loop.closed(found, reached := _reached(loop.body, found)):
        pass
    many = {x: loop.like(x, size) for x in found}
    ends = [
        i for i, y in enumerate(outputs)
        if (loop.states[i] in found if i < loop.carries else y in reached)
    ]  # fmt: skip
    some = batched([outputs[i] for i in ends], many, size) if ends else []
    rows = dict(zip(ends, some, strict=True))
    operands = dict(zip(loop.body.inputs, inputs, strict=True))
    is_many = dict(zip(loop.body.inputs, flags, strict=True))
    init = [
        broadcast_to(operands[x], (size, *x.shape)) if x in found and not is_many[x]
        else operands[x]
        for x in loop.states
    ]  # fmt: skip
    results = looped(
        Graph(
            [rows.get(i, y) for i, y in enumerate(outputs)],
            [many.get(x, x) for x in loop.body.inputs],
        ),
        init,
        [_swapped(operands[x]) if x in found else operands[x] for x in loop.slices],
        [operands[x] for x in loop.fixed],
        loop.length,
        loop.reverse,
    )
    return tuple(
        (r if i < loop.carries else _swapped(r)) if i in rows
        else broadcast_to(r, (size, *r.shape))
        for i, r in enumerate(results)
    )  # fmt: skip


def _reached(graph: Graph, xs: set[Node]) -> set[Node]:
    """The nodes that are computed from some."""
    found = set(xs)
    for node in graph.nodes:
        if any(x in found for x in node.inputs):
            found.add(node)
    return found


def _swapped(x: Node) -> Node:
    """The first two axes exchanged: that of the steps, and that of the batch."""
    return permute_dims(x, (1, 0, *range(2, x.ndim)))
