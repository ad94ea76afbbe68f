"""Parts of a loop that need no loop: they are computed for all steps at once, before it or after.

A carry that only sums up is one product of stacks, or one sum, after the loop: the gradient of a
weight that all steps share is the best known. What depends on no carry is computed before, what no
carry depends on after. Both are batches, whose products are one large one. They are moved where
that pays: where there is a product, or where arrays are so small that calls cost more than work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from symgrad.analysis import nbytes
from symgrad.ir.dims import Size
from symgrad.ir.graph import Graph
from symgrad.ir.late import SLOTS
from symgrad.ir.node import Node
from symgrad.ir.walk import topological
from symgrad.ops.cumulative import running_sum
from symgrad.ops.elementwise import add
from symgrad.ops.leaves import placeholder, zeros
from symgrad.ops.linalg.products import matmul_p
from symgrad.ops.loops.loop import looped, substituted
from symgrad.ops.reduce import sum as sum_over
from symgrad.ops.shape import concat, expand_dims, permute_dims, reshape, stack

MOST_STACKED = 2**18  # bytes a step, of what is kept for a product: with more, steps lose nothing
SMALL = 2**12  # bytes a step: what a call costs more than the work


@dataclass(eq=False)
class LoopBuilder:
    """A loop to be: its inputs with what they are given, the next carries, and what is stacked."""

    states: list[Node]
    init: list[Node]
    nexts: list[Node]
    slices: dict[Node, Node]
    whole: dict[Node, Node]
    rows: list[Node]
    length: Size
    reverse: bool
    carried: bool = True

    @property
    def body(self) -> Graph:
        """The body, whose outputs are the next carries and the rows."""
        return Graph((*self.nexts, *self.rows), (*self.states, *self.slices, *self.whole))

    def looped(self) -> tuple[list[Node], list[Node]]:
        """The last carries, and the stacks."""
        given = list(self.slices.values()), list(self.whole.values())
        made = looped(self.body, self.init, *given, self.length, self.reverse)
        return made[: len(self.init)], made[len(self.init) :]

    def unrolled(self) -> tuple[list[Node], list[Node]]:
        """The last carries, and the stacks, made without a loop: its few steps one by one."""
        assert isinstance(self.length, int)
        states, made = self.init, list[list[Node]]()
        for t in range(self.length)[:: -1 if self.reverse else 1]:
            given = dict(zip(self.states, states, strict=True)) | self.whole
            given |= {x: sequence[t] for x, sequence in self.slices.items()}
            found = substituted([*self.nexts, *self.rows], given)
            states = found[: len(states)]
            made.append(found[len(states) :])
        if not made:
            return states, [zeros((0, *y.shape), dtype=y.dtype) for y in self.rows]
        ordered = made[::-1] if self.reverse else made
        return states, [stack(list(each)) for each in zip(*ordered, strict=True)]

    def becomes(self, body: Graph) -> None:
        """Take over a body that computes the same, of inputs in the same order."""
        inputs = iter(body.inputs)
        self.states = [next(inputs) for _ in self.states]
        self.slices = {next(inputs): given for given in self.slices.values()}
        self.whole = {next(inputs): given for given in self.whole.values()}
        self.nexts = list(body.outputs[: len(self.nexts)])
        self.rows = list(body.outputs[len(self.nexts) :])

    def reached(self, xs: Iterable[Node]) -> set[Node]:
        """The nodes of the body that are computed from some, with those."""
        found = set(xs)
        for node in self.body.nodes:
            if any(x in found for x in node.inputs):
                found.add(node)
        return found


def new_inputs(
    prefix: str, xs: Sequence[Node], axes: tuple[int, ...] = (), beside: Iterable[Node] = ()
) -> list[Node]:
    """Inputs of a body that are like some nodes, with axes in front; others have other names."""
    taken = {x.name for x in beside}
    names = (name for i in count() if (name := f"{prefix}{i}") not in taken)
    return [placeholder(next(names), (*axes, *x.shape), x.dtype) for x in xs]


# What takes the place of a result, made of the stacks of some nodes of the body.
Late = tuple[list[Node], Callable[[Sequence[Node]], Node]]


@dataclass(eq=False)
class Hoisted:
    """Replacements of carries and of rows, by their numbers, and stacks made without a loop.

    `wanted` are the nodes whose stacks are asked for, `rows` those that the loop stacks, as
    they were when this was found out.
    """

    carries: dict[int, Late]
    late: dict[int, Late]
    stacks: dict[Node, Node]
    wanted: list[Node]
    rows: list[Node]
    whole: dict[Node, Node]

    def results(self, lasts: Sequence[Node], stacks: Sequence[Node]) -> list[list[Node]]:
        """All carries and stacks that were asked for, from those of the loop that is left."""
        there = self.stacks | dict(zip(self.rows, stacks, strict=True))
        left = iter(lasts)

        def late(found: Late) -> Node:
            nodes, function = found
            return substituted([function([there[n] for n in nodes])], self.whole)[0]

        count = len(lasts) + len(self.carries)
        carries = (late(self.carries[i]) if i in self.carries else next(left) for i in range(count))
        rows = enumerate(self.wanted)
        return [
            list(carries),
            [late(self.late[k]) if k in self.late else there[y] for k, y in rows],
        ]


def hoist(loop: LoopBuilder) -> Hoisted:
    """Leave out of a loop what needs none; the replacements of what is left out."""
    _gather(loop)
    asked, whole = loop.rows, loop.whole
    carries, late = _sums(loop)
    late |= _after(loop, late, [n for nodes, _ in carries.values() for n in nodes])
    left = [y for i, y in enumerate(loop.rows) if i not in late]
    wanted = [n for nodes, _ in (*carries.values(), *late.values()) for n in nodes]
    kept = [i for i in range(len(loop.states)) if i not in carries]
    loop.states, loop.init, loop.nexts = (
        [xs[i] for i in kept] for xs in (loop.states, loop.init, loop.nexts)
    )
    stacks = dict(loop.slices)
    loop.rows = list(dict.fromkeys(y for y in (*left, *wanted) if y not in stacks))
    stacks |= (before := _before(loop))
    rows = [y for y in loop.rows if y not in before]
    _replace(loop, before, rows)
    return Hoisted(carries, late, stacks, asked, rows, whole)


def _gather(loop: LoopBuilder) -> None:
    """Let terms that depend on no carry be summed first, in sums of three: (a + b) + c."""
    depends = loop.reached(loop.states)
    readers = Counter(x for n in loop.body.nodes for x in n.inputs)
    readers.update(loop.body.outputs)
    becomes: dict[Node, Node] = {}
    for node in loop.body.nodes:
        if node.op is not add.op or node.dtype.kind not in "fc" or node not in depends:
            continue
        for inner, c in (node.inputs, node.inputs[::-1]):
            if inner.op is not add.op or readers[inner] != 1 or c in depends:
                continue
            late = [x for x in inner.inputs if x in depends]
            free = [x for x in inner.inputs if x not in depends]
            if len(late) == 1 and late[0].type == node.type == free[0].type:
                becomes[node] = becomes.get(late[0], late[0]) + (free[0] + c)
                break
    if becomes:
        _substitute(loop, becomes)


def _substitute(loop: LoopBuilder, becomes: Mapping[Node, Node]) -> None:
    outputs = substituted([*loop.nexts, *loop.rows], becomes)
    loop.nexts, loop.rows = outputs[: len(loop.nexts)], outputs[len(loop.nexts) :]


def _replace(loop: LoopBuilder, before: Mapping[Node, Node], rows: Sequence[Node]) -> None:
    """Give the steps slices of what is computed before."""
    inputs = new_inputs("e", list(before), beside=loop.body.inputs)
    becomes = dict(zip(before, inputs, strict=True))
    loop.rows = list(rows)
    _substitute(loop, becomes)
    loop.slices |= {becomes[x]: stack for x, stack in before.items()}
    used = set(topological([*loop.nexts, *loop.rows]))
    loop.slices = {x: stack for x, stack in loop.slices.items() if x in used}
    loop.whole = {x: given for x, given in loop.whole.items() if x in used}


def _is_batchable(node: Node) -> bool:
    op = node.op
    known = op.elementwise or op.batch is not None
    return known and not (op.opaque or op.body or op.of_several or isinstance(node.type, tuple))


# ---- sums -----------------------------------------------------------------------------------


def _sums(loop: LoopBuilder) -> tuple[dict[int, Late], dict[int, Late]]:
    """The carries to which each step only adds, and the rows of them, with what they become."""
    readers = Counter(x for n in loop.body.nodes for x in n.inputs)
    ends = Counter(loop.nexts)
    moving = loop.reached([*loop.states, *loop.slices])
    depends = loop.reached(loop.states)
    carries: dict[int, Late] = {}
    rows: dict[int, Late] = {}
    stacked = {*loop.slices, *loop.rows}
    for i, (state, after) in enumerate(zip(loop.states, loop.nexts, strict=True)):
        adds = after.op is add.op and state in {*after.inputs} and state.dtype.kind in "fc"
        alone = readers[state] == 1 and not readers[after] and ends[after] == 1
        if not adds or not alone or after.inputs[0] is after.inputs[1]:
            continue
        (term,) = (x for x in after.inputs if x is not state)
        mine = {k: y is after for k, y in enumerate(loop.rows) if y is after or y is state}
        if term.type != state.type or ends[state]:
            continue
        if mine:
            if term in moving and term not in depends and _is_batchable(term):
                carries[i] = (
                    [term],
                    _running(loop, loop.init[i], 0 if loop.reverse else -1),
                )
                for k, is_after in mine.items():
                    late = is_after != loop.reverse
                    at = slice(1, None) if late else slice(None, -1)
                    rows[k] = [term], _running(loop, loop.init[i], at)
            continue
        parts = [_total(t, moving, depends, stacked) for t in _terms(term, readers)]
        if all(parts):
            carries[i] = _summed(loop.init[i], [p for p in parts if p is not None], loop.length)
            stacked |= {*carries[i][0]}
    return carries, rows


def _running(loop: LoopBuilder, init: Node, at: int | slice) -> Callable[[Sequence[Node]], Node]:
    """Some of the running sums of a stack that begin with what is carried first."""

    def sums(stacks: Sequence[Node]) -> Node:
        both = [expand_dims(init, axis=0), *stacks]
        joined = concat(both[::-1] if loop.reverse else both, axis=0)
        found: Node = running_sum(joined, axis=0, reverse=loop.reverse)[at]
        return found

    return sums


def _terms(node: Node, readers: Mapping[Node, int]) -> list[Node]:
    found: list[Node] = []
    pending = [node]
    while pending:
        x = pending.pop()
        is_sum = x.op is add.op and readers[x] == 1 and all(y.type == x.type for y in x.inputs)
        pending += reversed(x.inputs) if is_sum else ()
        found += () if is_sum else (x,)
    return found


def _total(
    term: Node, moving: set[Node], depends: set[Node], stacked: set[Node]
) -> tuple[list[Node], Callable[[Sequence[Node], Size], Node]] | None:
    """The sum of a term over all steps, of stacks of which not all are there; None if not."""
    if term.op is matmul_p.op and term.ndim == 2 and all(x in moving for x in term.inputs):
        a, b = term.inputs
        if a.ndim == b.ndim == 2 and max(nbytes(a), nbytes(b)) <= MOST_STACKED:
            turned = a.op is permute_dims.op and a.inputs[0].ndim == 2
            return [a.inputs[0] if turned else a, b], _product if turned else _product_of_turned
    if term not in moving or not _is_batchable(term):
        return None
    if term in stacked or term not in depends:
        sources = [term]
    else:
        sources = [x for x in dict.fromkeys(term.inputs) if x in moving]
        if not all(x in stacked for x in sources):
            return None

    def total(stacks: Sequence[Node], length: Size) -> Node:
        given = dict(zip(sources, stacks, strict=True))
        (found,) = SLOTS.loops("loops").batched([term], given, length)
        return sum_over(found, axis=0, dtype=term.dtype)

    return sources, total


def _product(stacks: Sequence[Node], length: Size) -> Node:
    """The sum of a.T @ b over all steps, as one product."""
    a, b = (reshape(s, (s.shape[0] * s.shape[1], s.shape[2])) for s in stacks)
    return permute_dims(a, (1, 0)) @ b


def _product_of_turned(stacks: Sequence[Node], length: Size) -> Node:
    """The sum of a @ b over all steps, as one product."""
    a, b = stacks
    return _product((permute_dims(a, (0, 2, 1)), b), length)


def _summed(
    init: Node,
    parts: Sequence[tuple[list[Node], Callable[[Sequence[Node], Size], Node]]],
    length: Size,
) -> Late:
    def late(stacks: Sequence[Node]) -> Node:
        total, left = init, list(stacks)
        for sources, part in parts:
            here, left = left[: len(sources)], left[len(sources) :]
            total = total + part(here, length)
        return total

    return [n for sources, _ in parts for n in sources], late


# ---- after the loop -------------------------------------------------------------------------


def _after(loop: LoopBuilder, taken: Mapping[int, Late], more: Sequence[Node]) -> dict[int, Late]:
    """The rows that are computed after all steps, of stacks of what they are made of."""
    moving = loop.reached([*loop.states, *loop.slices])
    needed = set(topological([*loop.nexts, *more]))
    stacked = {*loop.slices, *(y for y in loop.rows if y in needed), *more}
    found: dict[int, Late] = {}
    for k, y in enumerate(loop.rows):
        if k in taken or y in needed or y not in moving:
            continue
        cone, sources = _cone([y], lambda x: x in moving and x not in needed, moving)
        new = [x for x in sources if x not in stacked]
        cheap = sum(map(nbytes, new)) <= 2 * nbytes(y) + SMALL
        if cheap and _pays(loop, cone, moving):
            found[k] = sources, _later(y, sources, loop.length)
            stacked |= {*new}
    return found


def _later(y: Node, sources: list[Node], length: Size) -> Callable[[Sequence[Node]], Node]:
    def late(stacks: Sequence[Node]) -> Node:
        given = dict(zip(sources, stacks, strict=True))
        found: Node = SLOTS.loops("loops").batched([y], given, length)[0]
        return found

    return late


def _cone(
    ends: Sequence[Node], is_inside: Callable[[Node], bool], moving: set[Node]
) -> tuple[list[Node], list[Node]]:
    """The nodes with which the ends are computed, and the moving ones from which."""
    inside: dict[Node, None] = {}
    sources: dict[Node, None] = {}
    pending = list(ends)
    while pending:
        x = pending.pop()
        if x in inside or x in sources:
            continue
        if x.inputs and is_inside(x):
            inside[x] = None
            pending += x.inputs
        elif x in moving:
            sources[x] = None
    return list(inside), list(sources)


def _pays(loop: LoopBuilder, cone: Sequence[Node], moving: set[Node]) -> bool:
    """Whether it pays to compute these for all steps at once."""
    if not all(map(_is_batchable, cone)) or max(map(nbytes, cone), default=0) > MOST_STACKED:
        return False
    if all(x.op.view for x in cone):
        return False
    whole = topological([x for n in cone for x in n.inputs])
    if any(x.inputs and not (x.op.elementwise or x.op.view) for x in whole if x not in moving):
        return False  # it may fail, and is not to be computed where there is no step
    if sum(map(nbytes, cone)) <= SMALL:
        return True
    return loop.carried and any(x.op is matmul_p.op for x in cone)


# ---- before the loop ------------------------------------------------------------------------


def _before(loop: LoopBuilder) -> dict[Node, Node]:
    """Stacks of what depends on no carry, computed for all steps; the steps get slices of them."""
    moving = loop.reached([*loop.states, *loop.slices])
    depends = loop.reached(loop.states)
    free = {x for x in moving if x not in depends and x.inputs}
    body = loop.body
    ends = dict.fromkeys(x for n in body.nodes if n in depends for x in n.inputs if x in free)
    ends |= dict.fromkeys(y for y in body.outputs if y in free)
    found: dict[Node, Node] = {}
    for end in ends:
        cone, sources = _cone([end], lambda x: x in free, moving)
        if _pays(loop, cone, moving):
            given = {x: loop.slices[x] for x in sources}
            made = SLOTS.loops("loops").batched([end], given, loop.length)
            (found[end],) = substituted(made, loop.whole)
    return found
