"""The loops of a group: which axes of its values are one and the same, and how they lie in memory.

Axes that an op takes element by element belong to one loop (a union of classes). Loops that all
values have together, or not at all, are one loop over both. The last loop is the inner one, along
the lanes of a vector; those before it are the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from symgrad.ir.evaluate import resolve
from symgrad.ir.node import Node
from symgrad.ir.walk import GraphLike
from symgrad.native.ends import Scattered
from symgrad.native.philox import is_drawn
from symgrad.native.placed import PLACED, Along, bounds
from symgrad.native.rows import ADD, PICK, PLACES, ROW_OPS, SCANS, axis_of
from symgrad.ops.linalg.products import row_sums, vdot_p, vecdot_p
from symgrad.ops.reduce import max as largest
from symgrad.ops.reduce import min as least
from symgrad.ops.reduce import sum as total
from symgrad.ops.shape import broadcast_to, reshape_p

# What sums up the last axis, though it has no combiner; and what has one, and axes if not all.
ROW_REDUCTIONS = (row_sums.op, vecdot_p.op)
REDUCTIONS = (total.op, largest.op, least.op, vdot_p.op)


SHORT, MOST_LISTED = 16, 2**12  # elements of an axis, and of both


def is_reduction(node: Node) -> bool:
    """Whether a node joins the elements along some axes."""
    return node.op in ROW_REDUCTIONS or node.op in REDUCTIONS or node.op in PLACES


class NotNative(Exception):
    """Why a group is left to NumPy."""


@dataclass(frozen=True)
class Space:
    """The loops of a group, from the outermost: their sizes, and what each value does in them.

    `strides` has for each node the number of elements from one turn of a loop to the next, 0 where
    it does not depend on it; `reduced` the loops that end in a reduction. The inner loop may be of
    two axes that do not lie so in some input: `scattered` has how they lie. Of what is placed
    somewhere `parts` has where along each loop.
    """

    sizes: tuple[int, ...]
    strides: Mapping[Node, tuple[int, ...]]
    reduced: Mapping[Node, frozenset[int]]
    scattered: Mapping[Node, Scattered]
    parts: Mapping[Node, Sequence[Along]]

    @property
    def inner(self) -> int:
        """The number of the inner loop."""
        return len(self.sizes) - 1

    def is_inner(self, node: Node) -> bool:
        """Whether a value has an element for each turn of the inner loop."""
        return self.strides[node][-1] != 0

    def is_row(self, node: Node) -> bool:
        """Whether it has one element for each row."""
        return not self.is_inner(node) and any(self.strides[node])


def space_of(
    graph: GraphLike, sizes: Mapping[str, int], strided: Mapping[Node, tuple[int, ...]]
) -> Space:
    """The loops of an inner graph. Raises `NotNative` if they do not lie within each other.

    Inputs that are `strided` have so many elements from one to the next along each of their axes,
    the others none between.
    """
    return _Classes(graph, sizes, strided).space()


class _Classes:
    def __init__(
        self,
        graph: GraphLike,
        sizes: Mapping[str, int],
        strided: Mapping[Node, tuple[int, ...]],
    ) -> None:
        self.graph, self.strided = graph, strided
        self.shapes: dict[Node, tuple[int, ...]] = {
            n: resolve(n.tensor.shape, sizes) for n in graph.nodes
        }
        self.parent: dict[tuple[Node, int], tuple[Node, int]] = {}
        self.placed = {n: bounds(n, self.shapes[n], sizes) for n in graph.nodes if n.op in PLACED}
        for node, found in self.placed.items():
            u = node.inputs[-1]
            if not found or u.inputs or u in strided or 0 in self.shapes[u]:
                raise NotNative("what is placed does not lie as the group has it")
        for node in graph.nodes:
            if node.inputs:
                self._join(node)

    def _find(self, axis: tuple[Node, int]) -> tuple[Node, int]:
        while (up := self.parent.setdefault(axis, axis)) is not axis:
            self.parent[axis] = self.parent[up]
            axis = up
        return axis

    def _unite(self, a: tuple[Node, int], b: tuple[Node, int]) -> None:
        self.parent[self._find(a)] = self._find(b)

    def _join(self, node: Node) -> None:
        """Unite the axes of a node with those of its operands."""
        for x in self._read(node):
            for i, j in self._pairs(x, node):
                self._unite((x, i), (node, j))
        if is_reduction(node):
            first, *others = node.inputs
            for x in others:
                for i, s in enumerate(self.shapes[x]):
                    if self.shapes[first][i] != s:
                        raise NotNative(f"{node.op.name} repeats an operand")
                    self._unite((x, i), (first, i))

    def _read(self, node: Node) -> Sequence[Node]:
        """The operands that have its loops: all but what is placed, and the key of a draw."""
        if is_drawn(node):
            return ()
        return node.inputs[: len(node.inputs) - (node in self.placed)]

    def _pairs(self, x: Node, node: Node) -> Iterator[tuple[int, int]]:
        """Which axis of an operand is which of the result."""
        own, shape = self.shapes[x], self.shapes[node]
        if node.op.elementwise or node.op is broadcast_to.op or node in self.placed:
            shift = len(shape) - len(own)
            yield from ((i, i + shift) for i, s in enumerate(own) if s != 1)
        elif node.op is reshape_p.op:
            a = [i for i, s in enumerate(own) if s != 1]
            b = [i for i, s in enumerate(shape) if s != 1]
            if [own[i] for i in a] != [shape[i] for i in b]:
                raise NotNative("a reshape takes axes apart, or joins them")
            yield from zip(a, b, strict=True)
        elif node.op in SCANS:
            yield from ((i, i) for i, s in enumerate(own) if s != 1)
        elif node.op is PICK or node.op is ADD:
            along = x.ndim - (node.op is PICK or x is not node.inputs[0])
            yield from ((i, i) for i, s in enumerate(own[:along]) if s != 1)
        elif is_reduction(node):
            left = self._kept(node, x)
            places = [j for j, s in enumerate(shape) if s != 1] if len(shape) != len(own) else left
            left = [i for i in left if own[i] != 1]
            places = [j for j in places if shape[j] != 1]
            if len(left) != len(places):
                raise NotNative(f"the axes of {node.op.name} cannot be followed")
            yield from zip(left, places, strict=True)
        else:
            raise NotNative(f"{node.op.name} has no native form")

    def _kept(self, node: Node, x: Node) -> list[int]:
        """The axes of an operand that its reduction leaves."""
        ndim = len(self.shapes[x])
        if node.op in ROW_REDUCTIONS:
            return list(range(ndim - 1))
        axis = dict(node.attrs).get("axis")
        axes = (axis,) if isinstance(axis, int) else range(ndim) if axis is None else axis
        return [i for i in range(ndim) if i not in axes]

    def _loops(self, node: Node) -> list[tuple[Node, int]]:
        return [self._find((node, i)) for i, s in enumerate(self.shapes[node]) if s != 1]

    def _share(self, node: Node, widest: Node) -> None:
        """Give axes that meet no axis of the widest value its loops of the same size and place."""
        order = frozenset(self._loops(widest))
        shape, wide = self.shapes[node], self.shapes[widest]
        for i in range(max(len(shape) - len(wide), 0), len(shape)):
            j = i + len(wide) - len(shape)
            if shape[i] == wide[j] != 1 and self._find((node, i)) not in order:
                self._unite((node, i), (widest, j))

    def space(self) -> Space:
        """The loops in order, merged."""
        read = (x for n in self.graph.nodes for x in self._read(n))
        used = {*self.graph.outputs, *read}
        widest = max(used, key=lambda n: len(self._loops(n)))
        for node in self.graph.nodes:
            if node in used:
                self._share(node, widest)
        loops = {n: self._loops(n) if n in used else [] for n in self.graph.nodes}
        order = loops[widest]
        place = {c: i for i, c in enumerate(order)}
        for node, own in loops.items():
            numbers = [place.get(c, -1) for c in own]
            if -1 in numbers or numbers != sorted(set(numbers)):
                raise NotNative(f"{node.op.name} has axes that no loop over all values has")
        if not order or 0 in (self.shapes[node][i] for node, i in order):
            raise NotNative("there is nothing to loop over")
        reduced = {
            n: frozenset(place[c] for x in n.inputs for c in loops[x])
            - frozenset(place[c] for c in loops[n])
            for n in self.graph.nodes
            if is_reduction(n)
        }
        wide = {place[c]: self.shapes[c[0]][c[1]] for c in order}
        uses = [frozenset(place[c] for c in own) for own in loops.values()]
        uses += [*reduced.values(), *self._along_rows(place)]
        apart = self._apart(loops, place)
        merged: list[list[int]] = []
        scattered: dict[Node, Scattered] = {}
        for i in range(len(order)):
            alike = bool(merged) and all((i in u) == (merged[-1][-1] in u) for u in uses)
            if (
                alike
                and i == len(order) - 1
                and i in apart
                and self._is_short(wide[i - 1], wide[i])
            ):
                scattered = {x: self._scattered(x) for x in apart[i]}
                merged[-1].pop()
                merged = [*filter(None, merged), [i - 1, i]]
            elif alike and i not in apart:
                merged[-1].append(i)
            else:
                merged.append([i])
        strides = {n: self._strides(n, loops[n], place, merged) for n in self.graph.nodes}
        # These are laid side by side before they are read, even what is one number for each row.
        strides |= {x: (*strides[x][:-1], 1) for x in scattered}
        ends = {
            n: frozenset(m for m, group in enumerate(merged) if group[-1] in r)
            for n, r in reduced.items()
        }
        whole = tuple(math.prod(wide[i] for i in m) for m in merged)
        parts = {n: self._along(n, loops[n], place, merged, whole) for n in self.placed}
        return Space(whole, strides, ends, scattered, parts)

    def _along(
        self,
        node: Node,
        own: list[tuple[Node, int]],
        place: Mapping[tuple[Node, int], int],
        merged: list[list[int]],
        whole: Sequence[int],
    ) -> list[Along]:
        """Where along each loop a part lies that is placed."""
        axes = [i for i, s in enumerate(self.shapes[node]) if s != 1]
        shape = self.shapes[node.inputs[-1]]
        axis_of = {place[c]: i for c, i in zip(own, axes, strict=True)}
        found = []
        for group, size in zip(merged, whole, strict=True):
            i = axis_of.get(group[-1])
            if i is None:
                found.append(Along(0, size, 0))
                continue
            first, count = self.placed[node][i]
            stride = math.prod(shape[i + 1 :])
            found.append(Along(*((first, count) if len(group) == 1 else (0, size)), stride))
        if found[-1].stride != 1 or whole[-1] >= 2**31:
            raise NotNative("what is placed does not lie along the inner loop")
        return found

    def _is_short(self, rows: int, columns: int) -> bool:
        """Whether two axes make one loop, in which some inputs are scattered."""
        plain = all(n.op.elementwise for n in self.graph.nodes if n.inputs)
        return plain and columns < SHORT and rows * columns <= MOST_LISTED

    def _scattered(self, x: Node) -> Scattered:
        """How the last two axes that are not 1 lie in an input."""
        axes = zip(self.strided[x], self.shapes[x], strict=True)
        (outer, rows), (inner, columns) = [(s, n) for s, n in axes if n != 1][-2:]
        return Scattered(rows, columns, outer, inner)

    def _along_rows(self, place: Mapping[tuple[Node, int], int]) -> Iterator[frozenset[int]]:
        """The loop that each op along rows goes along, which is to be the innermost."""
        for node in self.graph.nodes:
            if node.op in ROW_OPS and node.op not in PLACES:
                x = node if node.op is ADD else node.inputs[0]
                loop = place.get(self._find((x, axis_of(node))))
                if loop != len(place) - 1:
                    raise NotNative(f"{node.op.name} is not along the inner loop")
                yield frozenset({loop})

    def _apart(
        self,
        loops: Mapping[Node, list[tuple[Node, int]]],
        place: Mapping[tuple[Node, int], int],
    ) -> dict[int, list[Node]]:
        """The loops that do not go on where the one before ends, with the values of which."""
        found: dict[int, list[Node]] = {}
        for x, strides in self.strided.items():
            steps = [(s, n) for s, n in zip(strides, self.shapes[x], strict=True) if n != 1]
            numbers = [place[c] for c in loops[x]]
            for k in range(1, len(steps)):
                if steps[k - 1][0] != steps[k][0] * steps[k][1]:
                    found.setdefault(numbers[k], []).append(x)
        for node, parts in self.placed.items():
            both = zip(parts, self.shapes[node], strict=True)
            whole = [part == (0, n) for part, n in both if n != 1]
            for k in range(1, len(whole)):
                if not (whole[k - 1] and whole[k]):
                    found.setdefault(place[loops[node][k]], []).append(node)
        return found

    def _strides(
        self,
        node: Node,
        own: list[tuple[Node, int]],
        place: Mapping[tuple[Node, int], int],
        merged: list[list[int]],
    ) -> tuple[int, ...]:
        shape = self.shapes[node]
        steps: Sequence[int] = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        steps = [s for s, n in zip(self.strided.get(node, steps), shape, strict=True) if n != 1]
        numbers = [place[c] for c in own]
        lasts = (group[-1] for group in merged)
        return tuple(steps[numbers.index(i)] if i in numbers else 0 for i in lasts)
