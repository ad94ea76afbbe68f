"""Machine code in plans: a fused group's loops, or a whole small program as one call.

Who makes the code is on another floor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.types import TensorType
from symgrad.ir.walk import GraphLike
from symgrad.lowering.steps import MatmulCode, Ref, SlotBuilder, Step
from symgrad.ops.rows import is_row_source
from symgrad.passes.fuse import without_sources

if TYPE_CHECKING:
    from symgrad.lowering.visitor import Visitor

# The bytes from one element to the next along each axis; None for an axis of one.
Strides: TypeAlias = "tuple[int | None, ...]"


class NativeCode(Protocol):
    """The code of an inner graph, as `symgrad.native.kernel.Kernel` has it.

    `call(*operands, *results, first, end)` computes the rows from one to another, of which there
    are `rows`, which take about so many `nanoseconds`; the first is a multiple of `grain`. If it
    `shares`, it takes two more numbers, of the rows in a piece and of threads. Of a
    result that is joined from the blocks', `parts` has the type of the array to give for it, None
    of others. Each result may be written over those of its operands that `in_place` has for it; one
    that is `streamed` is written faster where it begins a page of memory. Operands are plain
    arrays, but for those that are to have `strides`; some are to be as `wide` as the shape that it
    has for their number.
    """

    rows: int
    grain: int
    shares: bool
    call: Callable[..., None]
    in_place: tuple[tuple[int, ...], ...]
    streamed: tuple[bool, ...]
    wide: Mapping[int, tuple[int, ...]]
    strides: tuple[Strides | None, ...]

    @property
    def nanoseconds(self) -> float: ...
    @property
    def ir(self) -> str: ...
    @property
    def assembly(self) -> str: ...
    @property
    def parts(self) -> tuple[TensorType | None, ...]: ...


class WholeCode(Protocol):
    """The code of a whole program, as `symgrad.native.small.SmallProgram` has it.

    `call(*inputs, *nexts)` gives a tuple of the results that are not written into `nexts`, arrays
    that it makes and NumPy's scalars. `direct` is the same, and gives None where arguments are not
    what the program takes.
    """

    call: Callable[..., tuple[Any, ...]]
    direct: Callable[..., tuple[Any, ...] | None]
    ir: str

    @property
    def assembly(self) -> str: ...


T = TypeVar("T")


class Native(Protocol):
    """The maker of the code of an inner graph for sizes of its named dimensions; None for NumPy.

    `strides` has those of operands that are no plain arrays, which the code follows or not.
    `parts` is a graph of which what can run as machine code is fused. `whole` is the code of a
    whole program, the last `nexts` outputs of which are next values; None if it is not small.
    `regrouped` is a graph with other groups, of which each is one loop.
    `repeated` is the maker for what runs so often in a call, which is `times` for this one.
    `product` is the code of products of a kind on so many threads, or None. Whoever is to `insist`
    gives machine code where it does not pay, too.
    """

    insist: bool
    times: int

    def __call__(
        self,
        graph: GraphLike,
        sizes: Mapping[str, int],
        strides: Sequence[Strides | None],
    ) -> NativeCode | None: ...

    def parts(self, graph: Graph, sizes: Mapping[str, int]) -> Graph: ...

    def regrouped(self, graph: Graph, sizes: Mapping[str, int]) -> Graph: ...

    def repeated(self, times: int) -> Native: ...

    def whole(self, graph: Graph, sizes: Mapping[str, int], nexts: int) -> WholeCode | None: ...

    def product(self, threads: int, kind: str) -> MatmulCode | None: ...


NEAR = 64  # bytes: what lies farther from each other along a row is copied in blocks


def strides_of(builders: Sequence[SlotBuilder], refs: Sequence[Ref]) -> list[Strides | None]:
    """The strides of values; None for one that lies as its shape says, or had better be copied."""
    return [_strides(builders[ref.slot], ref) for ref in refs]


def _strides(slot: SlotBuilder, ref: Ref) -> Strides | None:
    if not ref.views:
        return None
    layout = ref.seen(slot.value) if slot.kind == "constant" else ref.layout(slot.type)
    both = zip(layout.strides, layout.shape, strict=True)
    found = tuple(s if n > 1 else None for s, n in both)
    last = [s for s in found if s is not None][-1:]
    return None if layout.flags.c_contiguous or any(abs(s) > NEAR for s in last) else found


def subgroups(native: Native | None, graph: GraphLike, sizes: Mapping[str, int]) -> Graph | None:
    """A group in parts: what may be machine code fused, or all but what NumPy draws as a whole.

    None if they are all of it.
    """
    if native is not None:
        parts = native.parts(Graph(graph.outputs, graph.inputs), sizes)
        computing = [n for n in parts.nodes if n.inputs and not n.op.view and not n.op.of_several]
        if len(computing) > 1 and any(n.inner_graph for n in computing):
            return parts
    return without_sources(graph) if any(map(is_row_source, graph.nodes)) else None


PIECES = 4  # for each thread, so that none waits long for the last one
# Nanoseconds. To wake one of Python's threads takes 10 to 100 µs, most while BLAS spins on its
# processor; code that `shares` is that for which its own threads, which wait, are worth it.
LEAST_WOKEN = 150_000


class NativeLoop(Step, kw_only=True):
    """A fused group that runs as machine code, in blocks of rows that so many threads share.

    Its scratch are the arrays of parts, one for each result that is joined from the blocks'.
    `beside_blas` if BLAS's own threads may be spinning when it runs.
    """

    code: NativeCode
    threads: int = 1
    beside_blas: bool = False

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.native_loop(self)

    @property
    def name(self) -> str:
        return "native"

    @property
    def piece(self) -> int:
        """How many rows a call computes: a multiple of the grain."""
        code = self.code
        at_once = code.shares and not self.beside_blas
        long = at_once or code.nanoseconds >= LEAST_WOKEN
        if self.threads == 1 or code.rows <= code.grain or not long:
            return code.rows
        grains = -(-code.rows // code.grain)
        return -(-grains // (PIECES * self.threads)) * code.grain

    @property
    def in_place(self) -> Sequence[Sequence[int]]:
        return self.code.in_place

    @property
    def is_elementwise(self) -> bool:
        return True

    def flops(self, operands: Sequence[TensorType], results: Sequence[TensorType]) -> int | None:
        """Nobody tells; `Program.cost` counts the ops one by one."""
        return None

    @property
    def computes(self) -> tuple[Node, ...]:
        return tuple(n for n in self._graph.nodes if n.inputs and not n.op.view)

    @property
    def _graph(self) -> GraphLike:
        inner = self.node.inner_graph
        assert inner is not None
        return inner

    def ends(self, parts: Sequence[T]) -> Iterator[tuple[Ref, T | None, Node]]:
        """Each result, the array of its parts (None if it has none), its inner node."""
        left = iter(parts)
        for ref, t, y in zip(self.results, self.code.parts, self._graph.outputs, strict=True):
            yield ref, None if t is None else next(left), y


class NativeCall(Step, kw_only=True):
    """A whole small program as one function in machine code, which makes its outputs itself.

    `computed` are the nodes that it stands for.
    """

    code: WholeCode
    computed: tuple[Node, ...]

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.native_call(self)

    @property
    def name(self) -> str:
        return "native"

    def flops(self, operands: Sequence[TensorType], results: Sequence[TensorType]) -> int | None:
        """Nobody tells; `Program.cost` counts the ops one by one."""
        return None

    @property
    def computes(self) -> tuple[Node, ...]:
        return self.computed


def held(step: NativeLoop | NativeCall) -> str:
    """The ops that machine code holds, in a few words."""
    found = Counter(n.op.name for n in step.computes)
    named = [name if k == 1 else f"{k} {name}" for name, k in found.items()]
    return ", ".join([*named[:8], *["…"] * (len(named) > 8)])
