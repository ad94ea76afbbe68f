"""Locking: a graph with one branch at each of its kinks, that to which its operands move.

Before a derivative is taken along a side, each op with a kink or jump that depends on what is
differentiated by becomes what it is on that side (`Op.locked`), decided by the tangents of its
operands along some directions, which are taken of the locked graph itself. What is locked is smooth
at the point, and its values are those of the graph as written, but at jumps, where they are the
limits from the side. So both modes, and derivatives of every order, are those of one function. (K.
A. Khan, Branch-locking AD techniques, 2018. S. M. Kakade and J. D. Lee, Provably correct automatic
subdifferentiation for qualified programs, 2018.)

With +1 or -1 for every element, some ties stay: `relu(x - y)` at x = y. A second direction follows:
for element (i, j, …) of the n-th node, counted from 1 and from 0, it is s(1 + n sqrt(2)) s(i
sqrt(11)) s(j sqrt(13)) …, with s(t) = 2 + sin(t) and a prime for each axis. No sum of these with
algebraic weights is 0, by the theorem of Lindemann and Weierstrass, so that what it leaves tied
does not move at all. Its rows are multiples of each other, and no element is below 1, so that
products with it are products with a vector. On the left it is turned around, as the first is, so
that two that tie share alike in the mean of both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from typing import Any, NoReturn

from symgrad.autodiff.forward import tangent_of
from symgrad.autodiff.normal import NormalForm, normal_form
from symgrad.autodiff.reverse import is_differentiable, sources
from symgrad.ir.errors import GradientError
from symgrad.ir.forms import flatten
from symgrad.ir.kinks import Kinks, Policy
from symgrad.ir.node import Node, describe
from symgrad.ir.op import Cotangent
from symgrad.ir.origin import Maker, built_as
from symgrad.ir.types import types_of
from symgrad.ir.walk import topological, with_bodies
from symgrad.ops.elementwise import add, multiply
from symgrad.ops.flows import total
from symgrad.ops.identity import checkpointed, stop_gradient
from symgrad.ops.leaves import arange, full, zeros_like
from symgrad.ops.ranges.inference import MOST_NODES, ranges_of
from symgrad.ops.shape import astype, broadcast_to, reshape
from symgrad.ops.sides import Side, held
from symgrad.ops.trigonometry import sin
from symgrad.rewrite.driver import rebuild

LOCKED = Maker("rewrite", "branch_of_the_side")
Tangents = tuple[Any, ...]


def lockings(form: NormalForm, xs: Sequence[Node], policy: Kinks) -> list[tuple[float, NormalForm]]:
    """A normal form locked on each side that is asked for, and how much its derivatives weigh.

    `xs` are the nodes as the user gave them, which stand for those of the form.
    """
    known = set(xs)
    for direction in policy.along:
        for node, _ in () if isinstance(direction, str) else direction:
            if node not in known:
                raise GradientError(
                    f"kinks gives a direction to {describe(node)}, by which is not differentiated; "
                    "give one for nodes of wrt"
                )
    if not is_sided(form.ys, policy):
        return [(1.0, form)]
    asked = {k for n in moving(form.ys, form.xs) for k in _asked(n, policy)}
    if asked <= {Kinks()}:
        return [(1.0, form)]
    places = sorted({p for k in asked if (p := k.place) is not None and 0 < p < 1})
    found = []
    for low, high in pairwise([0.0, *places, 1.0]):
        lock = Lock(policy, (low + high) / 2, asked, form.xs, xs)
        found.append((high - low, lock.form(form)))
    return found


def is_sided(ys: Sequence[Node], policy: Kinks) -> bool:
    """Whether a side is asked for, or may be in some region."""
    if policy != Kinks():
        return True
    order = topological(ys)
    inner = (n for node in order for body in node.bodies for n in with_bodies(body))
    return any(n.origin.kinks not in (None, Kinks()) for n in chain(order, inner))


def weighted(parts: Sequence[tuple[float, Cotangent]]) -> Cotangent:
    """The mean of derivatives, of which None is 0."""
    if len(parts) == 1:
        return parts[0][1]
    return total(*(None if g is None else multiply(g, w) for w, g in parts))


def on_each_side(kinks: Policy, derivative: Callable[[Kinks], Any]) -> Any:
    """Second derivatives on a side; between left and right the mean, each of its own branches."""
    policy = Kinks.of(kinks)
    t = policy.place
    if t is None or t in (0, 1):
        return derivative(policy)
    left, form = flatten(derivative(Kinks("left")), "a derivative")
    right, _ = flatten(derivative(Kinks("right")), "a derivative")
    pairs = zip(left, right, strict=True)
    return form([weighted([(1 - t, a.value), (t, b.value)]) for a, b in pairs])


def is_locked(node: Node) -> bool:
    """Whether a node has a kink or jump where its operands tie; a choice by a mask has not."""
    op = node.op
    return op.locked is not None and not node.bodies and is_differentiable(node.inputs[0])


def _asked(node: Node, policy: Kinks) -> Iterator[Kinks]:
    """The choices for the kinks of a node, and for those in the graphs that it runs."""
    if is_locked(node):
        yield policy if node.origin.kinks is None else node.origin.kinks
    for body in node.bodies:
        for inner in moving([y for y in body.outputs if is_differentiable(y)], body.inputs):
            yield from _asked(inner, policy)


def moving(ys: Sequence[Node], xs: Iterable[Node]) -> set[Node]:
    """The nodes that `xs` change, in whatever way, and that change what is differentiated."""
    live, stack = set(ys), list(ys)
    while stack:
        node = stack.pop()
        inputs = node.value_inputs if node.op is checkpointed.op else sources(node)
        fresh = [x for x in inputs if x not in live]
        live.update(fresh)
        stack += fresh
    moved = set(xs)
    for node in topological(ys):
        if node.op is not stop_gradient.op and any(x in moved for x in node.inputs):
            moved.add(node)
    return moved & live


class Lock:
    """A walk that locks nodes; `inside` a body another one goes on with the same directions."""

    def __init__(
        self,
        policy: Kinks,
        place: float,
        asked: set[Kinks],
        inner: Sequence[Node],
        xs: Sequence[Node],
    ) -> None:
        self.policy, self.place = policy, place
        self.spans: dict[str, slice] = {}
        self.complete: dict[str, bool] = {}
        rows: list[list[Cotangent]] = []
        for side in sorted({s for k in asked if (s := self._side(k)) is not None}):
            given = policy.along if side == "along" else (side,)
            found = [_moved(xs, direction) for direction in given]
            self.complete[side] = any(isinstance(d, str) for d in given)
            if self.complete[side] and not (len(xs) == 1 and xs[0].size == 1):
                found.append([_generic(x, i, "left" in given) for i, x in enumerate(xs)])
            self.spans[side] = slice(len(rows), len(rows) + len(found))
            rows += found
        self.count = len(rows)
        self.seeds: dict[Node, Tangents] = dict(zip(inner, zip(*rows, strict=True), strict=True))
        self.known: dict[Node, Tangents] = {}
        self.there: dict[Node, Node] = {}
        self.written: dict[Node, Node] = {}
        self.several: dict[Node, Sequence[Node]] = {}

    def inside(self, seeds: Mapping[Node, Tangents]) -> Lock:
        """A lock for a body whose inputs have these tangents."""
        inner = object.__new__(Lock)
        inner.__dict__.update(self.__dict__)
        inner.seeds = dict(seeds)
        inner.known, inner.there, inner.written, inner.several = {}, {}, {}, {}
        return inner

    def _side(self, asked: Kinks) -> str | None:
        """The side that a choice is in this lock; None for "zero"."""
        if asked.place is None:
            return "along" if asked.along else None
        return "right" if asked.place > self.place else "left"

    # ---- bodies -----------------------------------------------------------------------------

    def rows(
        self, inputs: Sequence[Node], moved: Collection[Node], like: Callable[[Node], Node]
    ) -> dict[Node, Tangents]:
        """New inputs of a body for the tangents of those that move."""
        return {x: tuple(like(x) for _ in range(self.count)) for x in inputs if x in moved}

    def body(
        self, outputs: Sequence[Node], rows: Mapping[Node, Tangents]
    ) -> tuple[list[Node], list[Tangents | None]]:
        """Outputs of a body, locked, and their tangents; None of what does not move."""
        form = normal_form(outputs, [*rows])
        inner = self.inside(dict(zip(form.xs, rows.values(), strict=True)))
        inner.walk(form.ys, form.xs)
        made = [inner.there[y] for y in form.ys]
        moves = [inner.tangents(y) if is_differentiable(y) else None for y in made]
        return made, [t if t and any(x is not None for x in t) else None for t in moves]

    def beside(
        self, inputs: Sequence[Node], rows: Mapping[Node, Tangents], given: Sequence[Node]
    ) -> tuple[list[Node], list[Node]]:
        """Inputs of a body with those for their tangents behind them, and what they are given."""
        here, there = [*inputs], [*given]
        for x, operand in zip(inputs, given, strict=True):
            if x in rows:
                here += rows[x]
                there += self.filled(self.tangents(operand), operand)
        return here, there

    def filled(self, tangents: Tangents | None, like: Node) -> list[Node]:
        """Tangents, held; zeros where there is none."""
        some = tangents or (None,) * self.count
        return [zeros_like(like) if t is None else held(t) for t in some]

    def know(self, node: Node, tangents: Iterator[Node]) -> None:
        """Take the next of some nodes as the tangents of a node."""
        self.known[node] = tuple(islice(tangents, self.count))

    # ---- the walk ---------------------------------------------------------------------------

    def form(self, form: NormalForm) -> NormalForm:
        """A normal form, locked."""
        exact = self.walk(form.ys, form.xs)
        original = dict(form.original)
        for node in exact:
            if not form.original or node in form.original:
                original.setdefault(self.there[node], form.original.get(node, node))
        ys, xs = [self.there[y] for y in form.ys], [self.there.get(x, x) for x in form.xs]
        return NormalForm(ys, xs, original)

    def walk(self, ys: Sequence[Node], xs: Iterable[Node]) -> dict[Node, None]:
        """Lock what `ys` are made of, as far as `xs` move it; the nodes that keep their values."""
        moved = moving(ys, xs)
        exact: dict[Node, None] = {}
        for node in topological(ys):
            found = self._locked(node) if node in moved else self._rebuilt(node)
            self.there[node] = found
            self.written.setdefault(found, node)
            if node in self.seeds and node.inputs:
                pairs = zip(self.tangents(found), self.seeds[node], strict=True)
                self.known[found] = tuple(total(t, s) for t, s in pairs)
            if all(x in exact for x in node.inputs) and not (node in moved and _jumps(node)):
                exact[node] = None
        return exact

    def _locked(self, node: Node) -> Node:
        if node.op.of_several and node.inputs[0] in self.several:
            item: Node = self.several[node.inputs[0]][node.attr("index")]
            return item
        found = self._rebuilt(node)
        if node.op.locked is None:
            return found
        sides = {s for k in _asked(node, self.policy) if (s := self._side(k)) is not None}
        attrs = dict(node.attrs)
        with built_as(node.origin.then(LOCKED)):
            if node.bodies:
                if sides:
                    self.several[node] = node.op.locked(self, found, *found.inputs, **attrs)
                return found
            if is_locked(node) and not sides:
                return found
            # A choice by a mask is not decided here, but by what its mask became.
            side = min(sides or self.spans)
            span = self.spans[side]
            own = Side(lambda x: self.tangents(x)[span], self._written, _least, self.complete[side])
            made = node.op.locked(own, found, *found.inputs, **attrs)
            if isinstance(node.type, tuple):
                self.several[node] = made
                return found
            return _fitted(made, node)

    def _rebuilt(self, node: Node) -> Node:
        return rebuild(node, tuple(self.there[x] for x in node.inputs))

    def _written(self, node: Node) -> Node:
        return self.written.get(node, node)

    def tangents(self, x: Node) -> Tangents:
        """The tangents of a locked node along all directions, of any side."""
        if x not in self.known:
            for node in topological([x], known=self.known):
                self.known[node] = self._pushed(node)
        return self.known[x]

    def _pushed(self, node: Node) -> Tangents:
        if not node.inputs:
            return self.seeds.get(node, (None,) * self.count)
        given = [self.known[x] for x in node.inputs]
        if node.op is stop_gradient.op or all(t is None for row in given for t in row):
            return (None,) * self.count
        active = tuple(any(t is not None for t in row) for row in given)
        found = []
        try:
            for k in range(self.count):
                tangents = [row[k] for row in given]
                moves = any(t is not None for t in tangents)
                found.append(tangent_of(node, tangents, active) if moves else None)
        except GradientError as error:
            raise GradientError(
                f"a kink is made of {describe(node)}, and which side it is on is told by forward "
                f"mode: {error}. Choose kinks='zero', which needs none"
            ) from None
        return tuple(found)


def refuse_kinks(node: Node, where: str) -> NoReturn:
    """Raise for kinks in a graph for which it is not known how they are chosen along a side."""
    raise GradientError(
        f"{where} may have kinks, where the side is not known: {describe(node)}. Choose with "
        "kinks='zero', or build it in `with sg.kinks('zero'):`"
    )


def _jumps(node: Node) -> bool:
    """Whether what is locked of a node may have another value."""
    inner = (n for body in node.bodies for n in with_bodies(body))
    return node.op.jumps or any(n.op.jumps for n in inner)


def _least(node: Node) -> float:
    return ranges_of([node], finite=True, most=MOST_NODES)[node].low


def _fitted(made: Node, node: Node) -> Node:
    if made.shape != node.shape:
        made = broadcast_to(made, node.shape)
    (wanted,) = types_of(node.type)
    return astype(made, wanted.dtype)


# ---- directions -----------------------------------------------------------------------------


def _moved(xs: Sequence[Node], direction: Any) -> list[Cotangent]:
    """A tangent for each node along a direction, held; None where it does not move."""
    if isinstance(direction, str):
        sign = 1 if direction == "right" else -1
        steps = [sign * (1 + 1j if x.tensor.is_complex else 1) for x in xs]
        return [full(x.shape, s, dtype=x.dtype) for x, s in zip(xs, steps, strict=True)]
    given = dict(direction)
    return [
        held(astype(broadcast_to(given[x], x.shape), x.dtype)) if x in given else None for x in xs
    ]


def _generic(x: Node, number: int, back: bool) -> Node:
    """A direction in which nothing stays tied that moves at all; see the top of the file."""
    size = 2 + math.sin(1 + number * math.sqrt(2))
    found: Node = full((), -size if back else size, dtype=x.dtype)
    for i, count in enumerate(x.shape):
        steps = multiply(add(arange(count, dtype="float64"), 1), math.sqrt(_prime(i)))
        row = reshape(astype(add(sin(steps), 2), x.dtype), (count, *(1,) * (x.ndim - 1 - i)))
        found = multiply(found, row)
    if x.tensor.is_complex:
        found = multiply(found, 1 + math.sqrt(math.pi) * 1j)
    return astype(found, x.dtype)


def _prime(number: int) -> int:
    """A prime above 10 for each axis: 11, 13, 17, …"""
    found, n = 11, 0
    while n < number:
        found += 2
        n += all(found % k for k in range(3, found, 2))
    return found
