"""Where every node of a graph stands along a named dimension.

A node is *whole*, the same beside every piece, or *cut* along the dimension; a *join* makes
something whole of what is cut, and is computed by all pieces together. The *level* of a node is the
number of joins on the way to it: what is cut at level r is computed in round r, and what is whole
between the rounds r - 1 and r.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np

from symgrad.ir.along import Along, Cut, Cuts, Joined, Local, Piecewise
from symgrad.ir.dims import Dim, Size, divide_exactly
from symgrad.ir.errors import UnsupportedError
from symgrad.ir.graph import is_leaf
from symgrad.ir.node import Node, describe
from symgrad.ir.op import REGISTRY
from symgrad.ir.origin import built_as
from symgrad.ir.types import TensorType, names_in, types_of
from symgrad.ir.walk import GraphLike, topological
from symgrad.ops.along import along
from symgrad.ops.elementwise import add
from symgrad.ops.leaves import arange_p, size_of, zeros_like
from symgrad.ops.loops.cond import branch
from symgrad.ops.loops.loop import loop
from symgrad.ops.loops.while_loop import while_loop_p
from symgrad.rewrite.driver import rebuild
from symgrad.rewrite.rule import Exact


@dataclass(frozen=True, slots=True)
class Place:
    """The level of a value, and where it is cut; None if it is whole."""

    level: int
    cut: Cut | None = None


# Of a node with several results a place for each; None for one that is whole beside cut ones.
Places: TypeAlias = Place | tuple[Place | None, ...]


class Analysis:
    """The places of nodes, which are added one after the other: `enter` after their operands.

    What is entered may be spelled in other nodes; `enter` returns the node that stands for it.
    `joined` tells of each join how its pieces become one, `local` of which operand the numbers
    count from the first row of a piece.
    """

    def __init__(self, over: str, exact: Exact) -> None:
        self.over, self.exact = over, exact
        self.places: dict[Node, Places] = {}
        self.joined: dict[Node, Joined] = {}
        self.local: dict[Node, int] = {}
        # Of a loop the carries to which every step adds what is joined, with what they begin with.
        self.sums: dict[Node, dict[int, Node]] = {}

    def enter(self, node: Node) -> Node:
        """Find the place of a node whose operands have one. Raises `UnsupportedError`."""
        if node in self.places:
            return node
        if is_leaf(node):
            self.places[node] = self._leaf(node)
        elif node.op is size_of.op:
            self.places[node] = Place(0)
        elif node.op.of_several and node.attr("index") in self.sums.get(node.inputs[0], {}):
            return self._summed(node)
        elif node.op.of_several:
            of = self.places[node.inputs[0]]
            assert isinstance(of, tuple)
            place = of[node.attr("index")]
            if place is None:
                self._refuse(
                    node, "it is whole, and computed beside what is cut; compute it outside"
                )
            self.places[node] = place
        elif node.op.barrier:
            return self._barrier(node)
        else:
            return self._computed(node)
        return node

    def place(self, node: Node) -> Place:
        """The place of a node with one result."""
        found = self.places[node]
        assert isinstance(found, Place)
        return found

    def _leaf(self, node: Node) -> Place:
        named = [i for i, s in enumerate(node.shape) if self._mentions(s)]
        if not named:
            return Place(0)
        if len(named) > 1 or node.shape[named[0]] != Dim.of(self.over):
            self._refuse(node, f"an input has {self.over} as one axis, and no multiple of it")
        return Place(0, Cut(named[0], self.over))

    def _barrier(self, node: Node) -> Node:
        """It orders what pieces compute among each other; between rounds all is in order."""
        if self.place(node.inputs[0]).cut is None:
            return node.inputs[0]
        first, *after = (x for x in node.inputs if self.place(x).cut is not None)
        if not after:
            return first
        made = rebuild(node, (first, *after))
        level = max(self.place(x).level for x in made.inputs)
        self.places[made] = Place(level, self.place(first).cut)
        return made

    def _computed(self, node: Node) -> Node:
        operands = [self.place(x) for x in node.inputs]
        cuts = tuple([p.cut for p in operands])
        level = max((p.level for p in operands), default=0)
        if not any(cuts) and not self._is_about(node):
            several = isinstance(node.type, tuple)
            place = Place(level)
            count = len(types_of(node.type))
            self.places[node] = (place,) * count if several else place
            return node
        if node.bodies:
            node = self._from_zeros(node, self._bodies(node, cuts))
        found = Piecewise.KEPT if node.bodies else self._verdict(node, cuts)
        if callable(found):
            with built_as(node.origin):
                spelling = found(*node.inputs, **dict(node.attrs))
            return self._spelled(node, spelling)
        if isinstance(found, Joined):
            return self._join(node, found, level)
        if isinstance(node.type, tuple):
            self.places[node] = tuple(
                [
                    Place(level, self._cut(node, t, found, cuts)) if self._mentions(t) else None
                    for t in node.type
                ]
            )
        else:
            self.places[node] = Place(level, self._cut(node, node.type, found, cuts))
        if isinstance(found, Local):
            self.local[node] = found.operand
        return node

    def _verdict(self, node: Node, cuts: Cuts) -> Along:
        if node.op is arange_p.op:
            return self._numbered(node)
        types = [x.type for x in node.inputs]
        found = along(node.op, types, cuts, dict(node.attrs))
        if found is None:
            self._refuse(node, f"it takes more of {self.over} than one piece at a time has")
        return found

    def _numbered(self, node: Node) -> Along:
        counts = node.attr("start") == 0 and node.attr("step") == 1
        if not counts or self._times(node.attr("count")) is None:
            self._refuse(
                node, f"a piece cannot tell which numbers are its own; count 0, 1, … {self.over}"
            )
        return Piecewise.NUMBER if node.dtype == np.int64 else Piecewise.KEPT

    def _spelled(self, node: Node, spelling: Node) -> Node:
        """The node in other words, which are entered in its place."""
        assert spelling.type == node.type
        becomes: dict[Node, Node] = {}
        for n in topological([spelling], known=self.places):
            becomes[n] = self.enter(rebuild(n, tuple([becomes.get(x, x) for x in n.inputs])))
        return becomes[spelling]

    def _join(self, node: Node, found: Joined, level: int) -> Node:
        combiner = REGISTRY.ops[found.by]
        if self._is_about(node):
            self._refuse(node, f"its result would still have {self.over}")
        if self.exact < Exact.ROUNDING and not (combiner.idempotent or node.dtype.kind in "biu"):
            self._refuse(
                node,
                f"its pieces are joined by {found.by}, which rounds; with exact='rounding' it may",
            )
        if found.once is None:
            self.joined[node], self.places[node] = found, Place(level + 1)
            return node
        once = node.inputs[found.once]
        with built_as(node.origin):
            zeros = self._all([zeros_like(once)])
            rest = (*node.inputs[: found.once], *zeros, *node.inputs[found.once + 1 :])
            made = rebuild(node, rest)
            self.joined[made], self.places[made] = found, Place(level + 1)
            return self._all([REGISTRY.builders[found.by](once, made)])[0]

    def _all(self, nodes: Iterable[Node]) -> list[Node]:
        """Nodes of whole operands, entered."""
        wanted = list(nodes)
        for n in topological(wanted, known=self.places):
            self.enter(n)
        return wanted

    # ---- what is cut ------------------------------------------------------------------------

    def _cut(self, node: Node, t: TensorType, found: Along, cuts: Cuts) -> Cut | None:
        """Where a result is cut: its one axis of this name."""
        named = [i for i, s in enumerate(t.shape) if self._mentions(s)]
        if len(named) != 1 or self._times(t.shape[named[0]]) is None:
            fault = "has no axis" if not named else f"would be cut along {self.over} twice over"
            if len(named) == 1:
                fault = f"has an axis of {t.shape[named[0]]}, which is no multiple of {self.over}"
            self._refuse(node, f"its result {fault}")
        axis = named[0]
        numbers = [c for c in cuts if c is not None]
        is_number = found is Piecewise.NUMBER and all(c.number for c in numbers)
        if is_number and (numbers or node.op is arange_p.op):
            sizes = [x.shape[c.axis] for x, c in zip(node.inputs, cuts, strict=True) if c]
            return Cut(axis, self.over, all(s == t.shape[axis] for s in sizes))
        return Cut(axis, self.over)

    def _times(self, size: Size) -> Size | None:
        """How many elements each row has along an axis; None unless it is as many for each."""
        if isinstance(size, Dim) and self.over in size.rounded:
            return None
        found = divide_exactly(size, Dim.of(self.over))
        return None if found is None or self._mentions(found) else found

    def _mentions(self, value: Any) -> bool:
        return self.over in names_in(value)

    def _is_about(self, node: Node) -> bool:
        """Whether its type, its attributes or the graphs that it runs name the dimension."""
        return mentions(node, self.over)

    # ---- graphs that a node runs ------------------------------------------------------------

    def _bodies(self, node: Node, cuts: Cuts) -> list[int]:
        """Refuse a loop or choice unless it works row by row, its steps along other axes.

        Returns the carries to which the steps of a loop add what is joined.
        """
        sums: list[int] = []
        if node.op not in (loop.op, branch.op, while_loop_p.op):
            self._refuse(node, "nothing is known of what it solves, piece by piece")
        if node.op is loop.op and self._mentions(node.attr("length")):
            self._refuse(node, f"its steps go along {self.over}, each from the one before")
        for body in node.bodies:
            given = list(cuts[len(cuts) - len(body.inputs) :])
            if node.op is loop.op:
                first = node.attr("carries")
                for i in range(first, first + node.attr("sequences")):
                    given[i] = self._slice(node, given[i])
            inner = self._body(node, body, given)
            if inner.joined:
                sums = self._accumulated(node, body, inner)
        return sums

    def _slice(self, node: Node, cut: Cut | None) -> Cut | None:
        """Where a slice of a sequence is cut."""
        if cut is not None and cut.axis == 0:
            self._refuse(node, f"its steps go along {self.over}, each from the one before")
        return None if cut is None else Cut(cut.axis - 1, cut.over)

    def _body(self, outside: Node, body: GraphLike, given: Sequence[Cut | None]) -> Analysis:
        inner = Analysis(self.over, self.exact)
        inner.places.update((x, Place(0, c)) for x, c in zip(body.inputs, given, strict=True))
        for node in body.nodes:
            if node.op is size_of.op and self._is_about(node):
                self._refuse(outside, f"a step asks for the size of {self.over}; take it outside")
            if inner.enter(node) is not node or inner.local:
                self._refuse(outside, f"a step asks for all of {self.over}: {describe(node)}")
            if node.op is arange_p.op and inner.place(node).cut is not None:
                self._refuse(outside, f"a step numbers the rows of {self.over}; do it outside")
        return inner

    def _accumulated(self, outside: Node, body: GraphLike, inner: Analysis) -> list[int]:
        """The carries of a loop that are sums of what its steps join, and of nothing else.

        So they can be joined after the last step. What else a step joins is refused.
        """
        count = outside.attr("carries") if outside.op is loop.op else 0
        readers: dict[Node, int] = {}
        for x in (*body.outputs, *(x for n in body.nodes for x in n.inputs)):
            readers[x] = readers.get(x, 0) + 1
        found, known = [], set[Node]()
        for k, (y, carry) in enumerate(zip(body.outputs[:count], body.inputs, strict=False)):
            terms, inside, rest = 0, set[Node](), [(y, False)]
            while rest:
                node, viewed = rest.pop()
                inside.add(node)
                joined = inner.joined.get(node)
                if node is carry:
                    terms += 2 if viewed else 1
                elif joined is not None and joined.by == "add" and joined.once is None:
                    continue
                elif node.op is add.op:
                    rest += [(x, viewed) for x in node.inputs]
                elif node.op.view:
                    rest.append((node.inputs[0], True))
                else:
                    terms = 2
            alone = all(readers[n] == 1 for n in inside)
            if terms == 1 and alone and inside & inner.joined.keys():
                found.append(k)
                known |= inside
        for node in body.nodes:
            place = inner.places[node]
            levels = [p.level for p in (place if isinstance(place, tuple) else (place,)) if p]
            if any(levels) and node not in known:
                joined_here = next((n for n in inner.joined if n not in known), node)
                self._refuse(outside, f"a step joins along {self.over}: {describe(joined_here)}")
        return found

    def _from_zeros(self, node: Node, sums: Sequence[int]) -> Node:
        """A loop whose sums begin with zeros in every piece."""
        if not sums:
            return node
        with built_as(node.origin):
            zeros = {k: self._all([zeros_like(node.inputs[k])])[0] for k in sums}
        made = rebuild(node, tuple([zeros.get(i, x) for i, x in enumerate(node.inputs)]))
        self.sums[made] = {k: node.inputs[k] for k in sums}
        return made

    def _summed(self, node: Node) -> Node:
        """A sum of a loop: what the pieces add up to, and what it began with."""
        (of,) = node.inputs
        level = max(self.place(x).level for x in of.inputs)
        made = self._join(node, Joined("add"), level)
        with built_as(node.origin):
            start = self.sums[of][node.attr("index")]
            return self._all([add(start, made)])[0]

    def _refuse(self, node: Node, why: str) -> NoReturn:
        operands = ", ".join(self._said(x) for x in node.inputs)
        of = f"\n  operands: {operands}" if operands else ""
        raise UnsupportedError(
            f"{describe(node)} cannot be computed piece by piece over {self.over}: {why}"
            f"{of}{node.origin.description}"
        )

    def _said(self, x: Node) -> str:
        place = self.places.get(x)
        cut = place.cut if isinstance(place, Place) else None
        return f"{describe(x)}, " + ("whole" if cut is None else f"cut along axis {cut.axis}")


def mentions(node: Node, over: str) -> bool:
    """Whether the type of a node, its attributes or the graphs that it runs name a dimension."""
    if over in names_in((*types_of(node.type), *(v for _, v in node.attrs))):
        return True
    return any(mentions(n, over) for body in node.bodies for n in body.nodes)


def placed(outputs: Iterable[Node], over: str, exact: Exact) -> tuple[list[Node], Analysis]:
    """The outputs as they are computed piece by piece, and where every node of them stands."""
    wanted = list(outputs)
    found = Analysis(over, exact)
    becomes: dict[Node, Node] = {}
    for node in topological(wanted):
        becomes[node] = found.enter(rebuild(node, tuple([becomes[x] for x in node.inputs])))
    return [becomes[y] for y in wanted], found
