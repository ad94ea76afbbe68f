"""Groups: the inner graph of a fused node as one function over blocks of its rows.

Of each row the values are made in passes along the inner loop: a pass ends where a later value
needs a reduction of the whole row. What a later pass needs again is made again if it is cheap, and
kept in a row of its own if it is not. Reductions over the rows give one partial result a block of
rows; blocks are as long as they are, whoever runs them, so that no bit depends on threads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from symgrad.ir.cached import cached_property
from symgrad.ir.evaluate import computed
from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node
from symgrad.ir.walk import GraphLike
from symgrad.native import operations
from symgrad.native.operations import VIEWS, kind_of, operation
from symgrad.native.philox import COST, NUMPYS, is_drawn
from symgrad.native.placed import PLACED
from symgrad.native.rows import COSTS, PICK, ROW_OPS, SCANS, is_turned
from symgrad.native.space import NotNative, Space, is_reduction, space_of
from symgrad.ops import kernels

BLOCK, GRAIN = 2**13, 2**10  # elements
COLUMN_BLOCK = 2**16
PER_PART = 16
MOST_OPS = 1000
SHARED = 0.7  # of the time on one thread, at most, where memory is the bound
MOST_STACK = 2**17  # bytes
CHEAP = 25  # in the unit of `Operation.cost`: what is made again rather than kept


@dataclass(frozen=True)
class End:
    """A reduction over the rows: what it is, how it joins, and the loops that it keeps.

    One block's part of it has a value for each turn of `kept`, loops of rows of those sizes by
    their numbers, or a whole row for each if the inner loop is kept too, and it `is_column`.
    """

    node: Node
    join: str
    kept: Mapping[int, int]
    is_column: bool

    @property
    def count(self) -> int:
        """How many values or rows one part has."""
        return math.prod(self.kept.values())


class Group:
    """The facts of a group before it is written. Raises `NotNative` if it cannot be.

    `rows` are shared out in blocks of `block`; the arguments of the kernel are the graph's inputs,
    then its outputs, with an array of parts in place of each that is an `End`. For `strided` see
    `space_of`.
    """

    def __init__(
        self,
        graph: GraphLike,
        sizes: Mapping[str, int],
        *,
        exact: bool = False,
        strided: Mapping[Node, tuple[int, ...]] | None = None,
    ) -> None:
        self.graph = graph
        self.outputs = frozenset(graph.outputs)
        self.read = frozenset(x for n in graph.nodes for x in n.inputs)
        if len(graph.nodes) > MOST_OPS:
            raise NotNative(f"a group of {len(graph.nodes)} ops takes too long to compile")
        for node in graph.nodes:
            admit_in_rows(node, exact)
        self.space: Space = space_of(graph, sizes, strided or {})
        self.flat = len(self.space.sizes) == 1
        for node in graph.nodes:
            if is_drawn(node) and (node.inputs[0] in (strided or {}) or not self._is_plain(node)):
                raise NotNative("what is drawn does not lie as the group has it")
        self.columns = self.space.sizes[-1]
        self.rows = self.columns if self.flat else math.prod(self.space.sizes[:-1])
        self.ends = self._find_ends()
        for node, loops in self.space.reduced.items():
            if any(not self.space.strides[x][i] for x in node.inputs for i in loops):
                raise NotNative(f"{node.op.name} is of one number again and again")
            if node not in self.ends and (self.flat or loops != {self.space.inner}):
                raise NotNative(f"{node.op.name} is neither over all rows nor within them")
        for y in graph.outputs:
            if y not in self.ends and not any(self.space.strides[y]):
                raise NotNative("a result is one number that depends on no row")
        if self.flat and any(n.op in ROW_OPS for n in graph.nodes):
            raise NotNative("there is one row only")
        self.turned: dict[int, bool] = {}
        self.stage = self._stages()
        picked = (x for n in graph.nodes if n.op is PICK for x in self.chain(n))
        if any(x.op in SCANS or x.op in PLACED for x in picked):
            raise NotNative("an element of a scan is read before its row is made")
        if not all(map(self.space.is_inner, self.space.parts)):
            raise NotNative("what is placed has no columns")
        self.lanes = self._lanes()
        self.kept: frozenset[Node] = frozenset()
        if not self.flat:
            self._keep()

    def _is_plain(self, draw: Node) -> bool:
        """Whether what is drawn lies one after the other in each row."""
        return self.space.strides[draw][-1] == 1 and not draw.inputs[0].inputs

    def _find_ends(self) -> dict[Node, End]:
        found, inner = {}, self.space.inner
        for node, loops in self.space.reduced.items():
            operand = self.space.strides[node.inputs[0]]
            within = loops == {inner} and not self.flat
            if not node.op.combiner or not loops or within:
                continue
            left = {i for i, s in enumerate(operand) if s} - loops
            if left != {i for i, s in enumerate(self.space.strides[node]) if s}:
                raise NotNative(f"{node.op.name} repeats its operand")
            kept = {i: self.space.sizes[i] for i in sorted(left - {inner})}
            if node not in self.outputs or node in self.read:
                raise NotNative(f"{node.op.name} over all rows is read in the group")
            found[node] = End(node, node.op.combiner, kept, inner in left)
        return found

    def _stages(self) -> dict[Node, int]:
        """The pass in which each value is made; of a value of rows, that which it comes before."""
        stage: dict[Node, int] = {}
        for node in self.graph.nodes:
            first = max((stage[x] for x in node.inputs), default=0)
            if node in self.space.reduced and node not in self.ends:
                first += 1
            if node.op in SCANS:
                while self.turned.setdefault(first, is_turned(node)) != is_turned(node):
                    first += 1
            stage[node] = first
        return stage

    @property
    def passes(self) -> int:
        """How often the inner loop is run through."""
        inner = (n for n in self.graph.nodes if self.space.is_inner(n))
        read = [self._read_in(n) for n in self.space.reduced]
        return 1 + max([*(self.stage[n] for n in inner if n in self.outputs), *read, 0])

    def _lanes(self) -> int:
        inner = [n for n in self.graph.nodes if self.space.is_inner(n)]
        wide = any(n.tensor.dtype.itemsize == 8 for n in inner)
        within = len(self.space.reduced) > len(self.ends)
        return 32 if within and not wide else 16

    def cost(self, node: Node) -> int:
        """The cost of one element, in the unit of `Operation.cost`."""
        found = operation(node.op)
        if found is not None:
            return found.cost
        if is_drawn(node):
            return 0  # which is drawn once
        return COSTS[node.op][0] if node.op in COSTS else 4 * is_reduction(node)

    def made_in(self, stage: int) -> list[Node]:
        """The inner values that a pass makes, in order; those that are kept are not made again."""
        wanted: set[Node] = set()
        todo = self._targets(stage)
        while todo:
            node = todo.pop()
            if node in wanted or not self.space.is_inner(node):
                continue
            wanted.add(node)
            if node not in self.kept or self.stage[node] == stage:
                todo += node.inputs
        return [n for n in self.graph.nodes if n in wanted]

    def _targets(self, stage: int) -> list[Node]:
        """The nodes a pass is for: operands of reductions, results, and what is kept."""
        found = [x for n in self.space.reduced for x in n.inputs if self._read_in(n) == stage]
        found += [y for y in self.graph.outputs if y not in self.ends and self.stage[y] == stage]
        return found + [n for n in self.kept if self.stage[n] == stage]

    def _lost(self, stage: int) -> list[Node]:
        """The nodes that a pass makes again, though one before it has made them."""
        return [n for n in self.made_in(stage) if self.stage[n] < stage and n not in self.kept]

    def chain(self, pick: Node) -> list[Node]:
        """The inner values of which a pick's operand is made, in order."""
        wanted, todo = {pick.inputs[0]}, [pick.inputs[0]]
        while todo:
            more = [x for x in todo.pop().inputs if self.space.is_inner(x) and x not in wanted]
            wanted.update(more)
            todo += more
        return [n for n in self.graph.nodes if n in wanted]

    def _read_in(self, reduction: Node) -> int:
        return max(self.stage[x] for x in reduction.inputs)

    def _keep(self) -> None:
        """Keep the inner values that are dear, and that a later pass needs again."""
        room = MOST_STACK // 2
        found: set[Node] = set()
        for stage in range(1, self.passes):
            again = [n for n in self.made_in(stage) if self.stage[n] < stage and n.inputs]
            fresh = (n for n in self.made_in(stage) if self.stage[n] == stage)
            direct = {*self._targets(stage), *(x for n in fresh for x in n.inputs)}
            price: dict[Node, int] = {}
            for node in again:
                price[node] = self.cost(node) + sum(price.get(x, 0) for x in {*node.inputs})
            for node in reversed(again):
                dear = node in direct and price[node] > CHEAP
                size = self.columns * node.tensor.dtype.itemsize
                if (dear or node.op in SCANS) and size <= room:
                    found.add(node)
                    room -= size
            self.kept = frozenset(found)
            if any(n.op in SCANS and self.stage[n] < stage for n in self._lost(stage)):
                raise NotNative("its rows are too long to be kept between passes")

    @cached_property
    def grain(self) -> int:
        """Threads share the rows in multiples of so many: blocks, where these are more than loops.

        A reduction has a part for each block, and draws and gathers are made for one.
        """
        if self.ends or self.space.scattered or any(map(is_drawn, self.graph.nodes)):
            return self.block
        return GRAIN if self.flat else max(1, GRAIN // self.columns)

    @cached_property
    def block(self) -> int:
        """How many rows make one part of a reduction over the rows."""
        if self.flat:
            return BLOCK
        if not any(e.is_column or e.kept for e in self.ends.values()):
            return max(1, BLOCK // self.columns)
        # A part of many values takes some time, too, and is to be made of many more.
        wide = max(
            e.count * (self.columns if e.is_column else self.lanes) for e in self.ends.values()
        )
        return max(64, COLUMN_BLOCK // self.columns, PER_PART * wide // self.columns)

    @cached_property
    def in_place(self) -> tuple[tuple[int, ...], ...]:
        """Of each result the operands that it may be written over.

        An operand has each of its elements where the result has it, and no later pass reads it.
        """
        until = {x: s for s in range(self.passes) for x in self.made_in(s) if not x.inputs}
        for pick in self.graph.nodes:
            for x in self.chain(pick) if pick.op is PICK else ():
                until[x] = max(until.get(x, 0), self.stage[pick])

        def takes(y: Node, x: Node) -> bool:
            own = self.space.strides[y]
            fits = x.tensor.dtype == y.tensor.dtype and self.space.strides[x] == own
            fits &= x not in self.space.scattered
            return fits and all(own) and until.get(x, 0) <= self.stage[y]

        numbered = list(enumerate(self.graph.inputs))
        return tuple(
            () if y in self.ends else tuple(k for k, x in numbered if takes(y, x))
            for y in self.graph.outputs
        )

    def is_long(self) -> bool:
        """Whether a call is so long that other threads should run meanwhile."""
        return self.rows * (1 if self.flat else self.columns) >= 2**14

    def pays(self, shared: bool = False) -> bool:
        """Whether it takes less time than NumPy's loops, as the costs of its ops tell.

        Both are given what it takes to read and write an element of what the group itself does.
        If it is `shared`, several threads compute it, which NumPy's loops do not have.
        """
        moved, own = self._moved, self._own
        inner = self._inner
        alone = sum(found.numpy for n in inner if (found := operation(n.op)) is not None)
        alone += sum(COSTS[n.op][1] if n.op in COSTS else 13 * is_reduction(n) for n in inner)
        alone += NUMPYS * sum(map(is_drawn, inner))
        return (own + moved) / self._filled * (SHARED if shared else 1) < alone + moved

    @property
    def nanoseconds(self) -> float:
        """About how long a call takes on one thread, as its ops cost in float32."""
        elements = self.rows * (1 if self.flat else self.columns)
        return elements and elements * (self._own + self._moved) / self._filled / 100

    @cached_property
    def _inner(self) -> list[Node]:
        """The nodes that have a value for each element, and the reductions of such."""
        return [n for n in self.graph.nodes if self.space.is_inner(n) or n in self.space.reduced]

    @cached_property
    def _own(self) -> int:
        """The cost to compute an element, in the unit of `Operation.cost`."""
        made = [n for s in range(self.passes) for n in self.made_in(s)]
        return sum(map(self.cost, made)) + COST * sum(map(is_drawn, self._inner))

    @property
    def _moved(self) -> int:
        """The cost to read and write an element of each array, in the same unit."""
        return 5 * (len(self.graph.inputs) + len(self.graph.outputs))

    @property
    def _filled(self) -> float:
        """The part of a row's vectors that is used."""
        rounds = 1 if self.flat else -(-self.columns // self.lanes)
        return 1 if self.flat else self.columns / (rounds * self.lanes)


def admit_in_rows(node: Node, exact: bool) -> None:
    """The same as `admit`, of a group that may have rows."""
    if is_drawn(node):
        return
    if node.op in PLACED:
        _admit_dtypes(node)
        if node.tensor.dtype == np.float16:
            raise NotNative(f"{node.op.name} of float16 has no native form")
        return
    if node.op not in ROW_OPS:
        admit(node, exact)
        return
    _admit_dtypes(node)
    if any(x.tensor.dtype == np.float16 for x in (node, *node.inputs)):
        raise NotNative(f"{node.op.name} of float16 has no native form")
    if exact:
        raise NotNative(f"{node.op.name} is of a row, and exact groups have none")
    if node.inputs[0].tensor.dtype == bool and node.op is not PICK:
        raise NotNative(f"{node.op.name} of bool has no native form")


def _admit_dtypes(node: Node) -> None:
    for x in (node, *node.inputs):
        if kind_of(x.tensor.dtype) is None:
            raise NotNative(f"there are no vectors of {x.tensor.dtype}")


def admit(node: Node, exact: bool) -> None:
    """Refuse an op that cannot be written, or that an exact group may not hold, as `NotNative`."""
    op = node.op
    _admit_dtypes(node)
    if op in ROW_OPS:
        raise NotNative(f"{op.name} has a native form within rows only")
    if op is CONSTANT and node.ndim:
        raise NotNative("a constant is an array")
    if not node.inputs or op in VIEWS:
        return
    dtypes = [x.tensor.dtype for x in (node, *node.inputs)]
    halves = np.float16 in dtypes
    if halves and (is_reduction(node) or np.float64 in dtypes[1:]):
        raise NotNative(f"{op.name} of float16 has no native form")
    if is_reduction(node):
        if exact:
            raise NotNative(f"{op.name} rounds in another order")
        return
    found = operation(op)
    if found is None:
        raise NotNative(f"{op.name} has no native form")
    if any(node.attr(name) != value for name, value in found.only.items()):
        raise NotNative(f"{op.name} with these attributes has no native form")
    if exact and (not found.exact or (halves and op.kernel in operations.EXTREMA)):
        raise NotNative(f"{op.name} rounds otherwise than NumPy's")
    kinds = [x.tensor.dtype.kind for x in node.inputs]
    if exact and op.cast and kinds == ["f"] and node.tensor.dtype.kind == "u":
        raise NotNative("NumPy's unsigned integers of floats out of range depend on their layout")
    if any(k not in found.kinds for k in kinds):
        raise NotNative(f"{op.name} of {node.inputs[0].tensor.dtype} has no native form")
    if op.kernel in operations.QUOTIENTS and not _is_positive(node.inputs[1]):
        raise NotNative(f"{op.name} has a native form by a positive constant only")
    has_mask = op.kernel in (kernels.where, kernels.select)
    same = {x.tensor.dtype for x in node.inputs[has_mask:]}
    if len(same) > 1 and op.kernel is not kernels.keep_bits:
        raise NotNative(f"{op.name} of different dtypes has no native form")


def _is_positive(x: Node) -> bool:
    """Whether a node is a constant number above 0."""
    return x.op is CONSTANT and not x.ndim and bool(np.all(computed(x, [], dict(x.attrs)) > 0))


def is_admitted(node: Node, exact: bool) -> bool:
    """Whether an op can be written: see `admit`."""
    try:
        admit_in_rows(node, exact)
    except NotNative:
        return False
    return True
