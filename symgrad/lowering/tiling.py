"""Tiling: how a fused group runs in parts that stay in the processor's cache.

What a group computes of some rows depends on these rows only (`ops.rows`). So a group over large
arrays is planned for a tile of rows, like a small graph of its own, and runs once for each tile:
what is inside the group is never as large as a whole array. A reduction over the rows gives one
result a tile, and these are joined at the end, always in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from symgrad.ir.cached import cached_property
from symgrad.ir.dims import product
from symgrad.ir.evaluate import resolve
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.op import REGISTRY, inferred
from symgrad.ir.record import Record, replace
from symgrad.ir.types import TensorType
from symgrad.ir.walk import GraphLike
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Ref, Step
from symgrad.ops.leaves import placeholder
from symgrad.ops.rows import is_row_source, keeps_rows, rows

if TYPE_CHECKING:
    from symgrad.lowering.visitor import Visitor

# Smaller groups stay in the cache as they are. All that a tile reads and writes has about the
# size of a second-level cache; measured: smaller ones are slower, for NumPy's calls take time.
LEAST_BYTES = 2**22
TILE_BYTES = 2**21
LEAST_TILES = 8

T = TypeVar("T")
# The plan of a tile, whose last outputs are the next values of some nodes; a trial is not run.
Lower: TypeAlias = Callable[[Graph, Sequence[Node], bool], Plan]


class Tiling(Record, frozen=True):
    """How a group runs: `plan` for `size` of `count` rows at a time, `remainder` for the last ones.

    `operands` and `results` give the axis that the rows of each lie along; None for an operand that
    every tile reads whole, and for a result that is joined from the tiles'. `stands_for` gives
    the group's node for one of a tile. So many `threads` share the tiles.
    """

    plan: Plan
    remainder: Plan | None
    size: int
    count: int
    operands: tuple[int | None, ...]
    results: tuple[int | None, ...]
    stands_for: Mapping[Node, Node]
    threads: int = 1

    @property
    def number(self) -> int:
        """How many tiles there are, the last one counted."""
        return -(-self.count // self.size)

    @cached_property
    def parts(self) -> tuple[TensorType, ...]:
        """The types of the arrays of the tiles' results, for each that is joined from them."""
        types = (y.tensor for y in self.plan.graph.outputs)
        joined = (t for t, axis in zip(types, self.results, strict=True) if axis is None)
        return tuple(t.with_shape((self.number, *t.shape)) for t in joined)

    def ends(
        self, results: Sequence[Ref], parts: Iterable[T]
    ) -> Iterator[tuple[Ref, int | None, Any, Node]]:
        """Each result with the axis of its rows or else its parts, and what a tile gives of it."""
        left = iter(parts)
        for ref, axis, y in zip(results, self.results, self.plan.graph.outputs, strict=True):
            yield ref, axis, next(left) if axis is None else None, y

    @cached_property
    def scratch(self) -> tuple[TensorType, ...]:
        """The arrays to work in; see `shared_out`."""
        plans = [self.plan] * self.threads + ([] if self.remainder is None else [self.remainder])
        arrays = chain.from_iterable(p.arrays_in_arena() for p in plans)
        return (*(s.type for s in arrays), *self.parts)

    def shared_out(
        self, scratch: Sequence[T]
    ) -> tuple[list[Sequence[T]], Sequence[T], Sequence[T]]:
        """Scratch by its use: the arrays of a tile, for each thread; the remainder's; the parts."""
        own, ends = len(self.plan.arrays_in_arena()), len(scratch) - len(self.parts)
        threads = [scratch[i * own : (i + 1) * own] for i in range(self.threads)]
        return threads, scratch[self.threads * own : ends], scratch[ends:]

    def spans(self) -> list[tuple[int, int, Plan]]:
        """The first row and the end of each tile, with its plan."""
        whole = self.count - self.count % self.size
        found = [(i, i + self.size, self.plan) for i in range(0, whole, self.size)]
        return found if self.remainder is None else [*found, (whole, self.count, self.remainder)]

    def __repr__(self) -> str:
        shared = f" on {self.threads} threads" if self.threads > 1 else ""
        return f"{self.number} tiles of {self.size} rows{shared}"


class TileLoop(Step, kw_only=True):
    """A fused group that runs for one tile of rows after the other."""

    tiling: Tiling

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.tile_loop(self)

    name = "tiled"

    @property
    def inner(self) -> Plan:
        return self.tiling.plan

    @property
    def times(self) -> float:
        return self.tiling.count / self.tiling.size

    def within(self) -> Iterator[tuple[Step, Node]]:
        for plan in filter(None, (self.tiling.plan, self.tiling.remainder)):
            for s in plan.steps:
                yield from ((s, self.tiling.stands_for.get(n, self.node)) for n in s.computes)


def tile_rows(
    graph: GraphLike,
    types: Sequence[TensorType],
    sizes: Mapping[str, int],
    lower: Lower,
    threads: int,
) -> Tiling | None:
    """The tiling of a group's inner graph for operands of these types; None to run it whole."""
    if sum(_nbytes(n, sizes) for n in graph.nodes) < LEAST_BYTES:
        return None
    by_rows = _rows_of(graph)
    ends = {n for n in graph.nodes if n.inputs and _is_end(n)}
    # NumPy sums float16 in float32, which is lost where tiles are joined.
    if by_rows is None or any(n.dtype == np.float16 for n in ends):
        return None
    axes = tuple(_axis(p) if by_rows.get(p) else None for p in graph.inputs)
    counts = {t.shape[a] for t, a in zip(types, axes, strict=True) if a is not None}
    if len(counts) != 1:
        return None
    count = counts.pop()
    assert isinstance(count, int)

    stands_for: dict[Node, Node] = {}

    def planned(size: int, trial: bool = False) -> Plan:
        tile = _tile(graph, types, axes, size, sizes, stands_for)
        nexts = [placeholder(f"r{i}", ()) for i in range(len(tile.outputs))]
        plan = lower(tile, nexts, trial)
        if plan.graph is tile:
            return plan
        stands_for.update(_stand_ins(plan.graph, tile, stands_for))
        return replace(plan, graph=tile)

    results = tuple(None if y in ends else _axis(y) for y in graph.outputs)
    trial = planned(min(16, count), trial=True)
    moved = (*trial.inputs, *(n for n in trial.nexts if n >= 0))
    used = trial.arena_bytes + sum(trial.slots[i].nbytes for i in moved)
    # With fewer tiles their arrays take nearly as much room as those of the whole.
    size = _size(count, min(TILE_BYTES * min(16, count) // max(used, 1), count // LEAST_TILES))
    if size * 2 > count:
        return None
    remainder = planned(count % size) if count % size else None
    plan = planned(size)
    threads = 1 if plan.is_shared else min(threads, count // size)
    return Tiling(plan, remainder, size, count, axes, results, stands_for, threads)


def _stand_ins(
    made: Graph, tile: Graph, stands_for: Mapping[Node, Node]
) -> Iterator[tuple[Node, Node]]:
    """The nodes of a tile's graph of which parts were fused, with those that they stand for."""
    same = {(n.op, n.attrs, n.inputs): n for n in tile.nodes if n.inputs}
    found: dict[Node, Node | None] = {n: n for n in tile.nodes}

    def enter(node: Node) -> None:
        if node not in found:
            inputs: Any = tuple([found.get(x) for x in node.inputs])
            found[node] = same.get((node.op, node.attrs, inputs))

    several: dict[Node, tuple[Node, ...]] = {}
    for node in made.nodes:
        inner = node.inner_graph
        if inner is not None:
            found.update((p, found[x]) for p, x in zip(inner.inputs, node.inputs, strict=True))
            for n in inner.nodes:
                enter(n)
            several[node] = inner.outputs
            found[node] = found[inner.outputs[0]]
        elif node.op.of_several and node.inputs[0] in several:
            found[node] = found[several[node.inputs[0]][node.attr("index")]]
        else:
            enter(node)
    for node, twin in found.items():
        if twin is not None and twin in stands_for:
            yield node, stands_for[twin]


def combiner(y: Node) -> tuple[Any, dict[str, Any]]:
    """The ufunc that joins the parts of a result, and what its `reduce` must be told.

    NumPy sums small integers and booleans in larger integers, unless it is told not to.
    """
    options = {"dtype": y.dtype} if y.dtype.kind in "biu" else {}
    return REGISTRY.ops[y.op.combiner].kernel, options


def _size(count: int, most: int) -> int:
    """How many rows a tile has: a divisor of their number, if there is one of about the size."""
    divisors = (s for s in range(min(most, count), most // 2, -1) if count % s == 0)
    even = next(divisors, None) if most < 10_000 else None
    return even or max(1, most // 64 * 64 if most > 64 else most)


def _nbytes(node: Node, sizes: Mapping[str, int]) -> int:
    if not node.inputs or node.op.view:
        return 0
    total = product(resolve(node.shape, sizes))
    assert isinstance(total, int)
    return total * node.dtype.itemsize


def _axis(node: Node) -> int:
    """The axis that the rows of a node lie along."""
    found = rows(node.type)
    assert found is not None
    return node.ndim - found[0]


def _is_end(node: Node) -> bool:
    return bool(node.op.combiner) and not any(keeps_rows(x, node) for x in node.inputs)


def _rows_of(graph: GraphLike) -> dict[Node, bool] | None:
    """For each input whether it is read by rows; None if one is read both ways, or any drawn."""
    found: dict[Node, bool] = {}
    if any(map(is_row_source, graph.nodes)):
        return None
    inputs = set(graph.inputs)
    for node in graph.nodes:
        for x in inputs.intersection(node.inputs):
            by_rows = _is_end(node) or keeps_rows(x, node)
            if found.setdefault(x, by_rows) is not by_rows:
                return None
    return found


def _tile(
    graph: GraphLike,
    types: Sequence[TensorType],
    axes: Sequence[int | None],
    size: int,
    sizes: Mapping[str, int],
    stands_for: dict[Node, Node],
) -> Graph:
    """The inner graph for so many rows, its nodes entered in `stands_for`."""
    becomes: dict[Node, Node] = {}
    for p, t, axis in zip(graph.inputs, types, axes, strict=True):
        shape = t.shape if axis is None else (*t.shape[:axis], size, *t.shape[axis + 1 :])
        becomes[p] = placeholder(str(p.name), shape, t.dtype)
    for node in graph.nodes:
        if node in becomes:
            continue
        if not node.inputs:
            becomes[node] = node
            continue
        inputs = tuple(becomes[x] for x in node.inputs)
        attrs: dict[str, Any] = resolve(dict(node.attrs), sizes)
        if node.op.view:
            attrs = _narrowed(node, attrs, size)
        given = tuple(attrs.items())
        type_ = inferred(node.op, tuple([x.type for x in inputs]), given)
        becomes[node] = Node(node.op, inputs, given, type_, node.origin)
    stands_for.update({own: node for node, own in becomes.items()})
    return Graph([becomes[y] for y in graph.outputs], [becomes[p] for p in graph.inputs])


def _narrowed(node: Node, attrs: dict[str, Any], size: int) -> dict[str, Any]:
    """The attributes of a view for so many rows."""
    if "shape" in attrs:
        axis = _axis(node)
        shape = attrs["shape"]
        return {"shape": (*shape[:axis], size, *shape[axis + 1 :])}
    if "index" in attrs:
        axis = _axis(node.inputs[0])
        index = attrs["index"]
        return {"index": (*index[:axis], (0, size, 1), *index[axis + 1 :])}
    return attrs
