"""Hoisting: what nothing changes between the calls of a program is computed once, and kept.

A variable that a program does not update is the same in every call until somebody sets it, or
another program updates it. What follows from such variables and constants alone is a prologue of
the program, which runs when one of them has another array than it last ran on (`Program.kept`).
Arrays are not written while somebody holds them (see `Cell`), so that the same array is the same
numbers.

A graph is split after the rules and before fusion, so that no rule acts in another way because of
it. At `bits` and `values` results are the same bytes, kept or not; from `rounding` on, a sum over
large arrays that a fused group takes tile by tile may be cut elsewhere, and round otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from symgrad.analysis import is_free
from symgrad.ir.dims import Dim, guess
from symgrad.ir.graph import Graph, is_input
from symgrad.ir.leaf_ops import VARIABLE
from symgrad.ir.node import Node, Variable
from symgrad.ir.types import TensorType, types_of
from symgrad.ir.walk import topological
from symgrad.rewrite.driver import rebuild
from symgrad.rewrite.trace import Trace

# What a value must save to be kept: elements computed or read, or floating-point operations.
LEAST_WORK = 4096
# How many elements may be kept: of one value, for each of the largest variable that it is made of;
# and in all, for each of those variables that are not updated.
MOST_OF_ONE = 2
MOST_OF_ALL = 4
MOST_NAMED = 4


@dataclass(frozen=True, eq=False)
class Split:
    """A graph in two: `prologue` computes what is kept, `body` the rest in every call.

    The last inputs of `body` are leaves that stand for the outputs of `prologue`. `graph` is the
    whole, and `stands_for` gives its node for one of `body`. `trace` is what was done to
    `prologue`.
    """

    graph: Graph
    prologue: Graph
    body: Graph
    stands_for: Mapping[Node, Node]
    trace: Trace = field(default_factory=Trace)

    @property
    def raw(self) -> Graph:
        """The prologue as it was split off."""
        return self.trace.stages[0].before if self.trace.stages else self.prologue

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the kept values."""
        return tuple(str(n.name) for n in self.body.inputs[-len(self.prologue.outputs) :])

    @property
    def changing(self) -> str:
        """The variables of which one must change before anything is computed again."""
        names = [str(v.name) for v in self.prologue.inputs]
        if len(names) > MOST_NAMED:
            names[MOST_NAMED - 1 :] = [f"{len(names) - MOST_NAMED + 1} others"]
        return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def hoist_invariants(graph: Graph, updates: Collection[Variable]) -> Split | None:
    """A graph split in two; None if nothing is worth keeping."""
    kept = _worth_keeping(graph, updates)
    if not kept:
        return None
    taken = {n.name for n in graph.inputs}
    names = (n for i in range(len(kept) + len(taken)) if (n := f"kept{i or ''}") not in taken)
    becomes = {
        n: Node(VARIABLE, (), (("name", name),), n.type, n.origin)
        for n, name in zip(kept, names, strict=False)
    }
    leaves = list(becomes.values())
    made_of = set(topological(kept))
    prologue = Graph(kept, [n for n in graph.inputs if n in made_of])
    body = Graph(_rebuilt(graph.outputs, becomes), [*graph.inputs, *leaves])
    return Split(graph, prologue, body, dict(zip(leaves, kept, strict=True)))


def joined(prologue: Graph, body: Graph, inputs: Sequence[Node], trace: Trace) -> Split:
    """The two parts of a graph of these inputs, with the whole."""
    whole = dict(zip(body.inputs[-len(prologue.outputs) :], prologue.outputs, strict=True))
    return Split(Graph(_rebuilt(body.outputs, whole), inputs), prologue, body, whole, trace)


def _worth_keeping(graph: Graph, updates: Collection[Variable]) -> list[Node]:
    """The values to keep: the last ones that nothing changes, if they save work and are not large.

    A view is made again where it is read, which costs nothing.
    """
    changing = set(updates)
    largest: dict[Node, int] = {
        n: _elements(n) for n in graph.inputs if isinstance(n, Variable) and n not in changing
    }
    room = MOST_OF_ALL * sum(largest.values())
    if not room:
        return []
    work = dict.fromkeys(largest, 0)
    for node in graph.nodes:
        if node not in work and _is_invariant(node, work):
            work[node] = min(LEAST_WORK, _work(node) + sum(work[x] for x in node.inputs))
            largest[node] = max((largest[x] for x in node.inputs), default=0)
    read = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if node not in work:
            read.update(node.inputs)
        elif node in read and node.inputs:
            size = _elements(node)
            fits = 0 < size <= min(MOST_OF_ONE * largest[node], room)
            if fits and work[node] >= LEAST_WORK and _has_memory(node):
                kept.append(node)
                room -= size
            else:
                read.update(node.inputs)
    return kept[::-1]


def _is_invariant(node: Node, known: Mapping[Node, Any]) -> bool:
    """Whether a node is the same in every call, if those before it that are so are `known`."""
    if is_input(node) or node.op.opaque or not all(map(known.__contains__, node.inputs)):
        return False
    return not any(_depends_on_names(value) for _, value in node.attrs)


def _depends_on_names(value: Any) -> bool:
    """Whether an attribute may be another in calls of other sizes."""
    if isinstance(value, tuple):
        return any(map(_depends_on_names, value))
    return isinstance(value, (Dim, Graph))


def _has_memory(node: Node) -> bool:
    """Whether a node is an array that it has computed itself."""
    return isinstance(node.type, TensorType) and not (node.op.view or node.op.identity)


def _work(node: Node) -> int:
    if not node.inputs or node.op.identity or is_free(node):
        return 0
    if node.op.flops is not None:
        return int(node.op.flops(*(x.type for x in node.inputs), **dict(node.attrs)))
    return max(_elements(n) for n in (node, *node.inputs))


def _elements(node: Node) -> int:
    """The elements of all that a node computes, of known sizes."""
    return sum(guess(t.size) for t in types_of(node.type))


def _rebuilt(outputs: Sequence[Node], becomes: dict[Node, Node]) -> Iterator[Node]:
    """Outputs on what stands for some of the nodes, which is entered for all the others."""
    for node in topological(outputs, becomes):
        becomes[node] = rebuild(node, tuple(becomes[x] for x in node.inputs))
    return map(becomes.__getitem__, outputs)
