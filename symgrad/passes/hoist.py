"""Hoisting: what nothing changes between the calls of a program is computed once, and kept.

A variable that a program does not update is the same in every call until somebody sets it, or
another program updates it. What follows from such variables and constants alone is a prologue of
the program, which runs when one of them has another array than it last ran on (`Program.kept`).
Arrays are not written while somebody holds them (see `Cell`), so that the same array is the same
numbers.

The calls of a partial program give only the inputs that change. There each input and each variable
is told from all others: values that depend on the same ones are a part of the program, which runs
when one of these has changed, and the parts run in the order in which they read each other.

A graph is split after the rules and before fusion, so that no rule acts in another way because of
it. At `bits` and `values` results are the same bytes, kept or not; from `rounding` on, a sum over
large arrays that a fused group takes tile by tile may be cut elsewhere, and round otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from symgrad.analysis import is_free
from symgrad.ir.dims import GUESS, Dim, guess
from symgrad.ir.evaluate import resolve
from symgrad.ir.graph import Graph, is_input
from symgrad.ir.leaf_ops import VARIABLE
from symgrad.ir.node import Node, Variable
from symgrad.ir.record import Record, fresh, replace
from symgrad.ir.types import TensorType, names_in, types_of
from symgrad.ir.walk import topological, with_bodies
from symgrad.rewrite.driver import rebuild
from symgrad.rewrite.trace import Trace

# What a value must save to be kept: elements computed or read, or floating-point operations.
LEAST_WORK = 4096
# How many elements may be kept: of one value, for each of the largest variable that it is made of;
# and in all, for each of those variables that are not updated.
MOST_OF_ONE = 2
MOST_OF_ALL = 4
# In a partial program, which keeps all that is worth it: the operations that an element must save,
# since it is written and read, and those that an expensive function of one takes.
LEAST_OF_ONE = 4
EXPENSIVE = 8
MOST_COUNTED = 2**62
MOST_NAMED = 4


class Split(Record, frozen=True):
    """A graph in parts: `body` runs in every call, on what the parts before it, `kept`, compute.

    Each of those is split in turn, so that its `body` is what it runs, on what others before it
    keep; they are in order. The last inputs of a body are leaves that stand for values which are
    kept, by their names; `names` are those for the outputs of this part. `graph` is the whole,
    without leaves, and `stands_for` gives its node for one of `body`. `trace` is what was done to
    `graph`, if this is kept.
    """

    graph: Graph
    body: Graph
    kept: tuple[Split, ...]
    stands_for: Mapping[Node, Node]
    names: tuple[str, ...] = ()
    trace: Trace = fresh(factory=Trace)

    @property
    def raw(self) -> Graph:
        """The graph as it was split off."""
        return self.trace.stages[0].before if self.trace.stages else self.graph

    @property
    def depends(self) -> str:
        """The names of the inputs and variables that it depends on."""
        return ", ".join(str(x.name) for x in self.graph.inputs)

    @property
    def again(self) -> str:
        """When it is computed again, if it is kept."""
        names = [str(x.name) for x in self.graph.inputs]
        if len(names) > MOST_NAMED:
            return f"again when {', '.join(names[:3])} or one of {len(names) - 3} others changes"
        listed = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        return f"again when {listed} changes"

    def path(self, part: Split) -> str:
        """The expression for the program that computes a part that it keeps."""
        return "program.kept" if len(self.kept) == 1 else f"program.held[{part.depends!r}]"


def is_leaf(node: Node) -> bool:
    """Whether an input stands for a value that another part keeps."""
    return node.op is VARIABLE and not isinstance(node, Variable)


def hoist_invariants(
    graph: Graph, updates: Collection[Variable], partial: bool = False
) -> Split | None:
    """A graph split into parts; None if nothing is worth keeping.

    If it is `partial`, inputs stay, too, and each of them changes by itself.
    """
    changing = set(updates)
    stay = [n for n in graph.inputs if (partial or isinstance(n, Variable)) and n not in changing]
    sources = {n: 1 << i if partial else 1 for i, n in enumerate(stay)}
    every = reduce(or_, sources.values(), 0) if not changing else -1
    kept = _each_worth_it(graph, sources, every) if partial else _worth_keeping(graph, sources)
    if not kept:
        return None
    taken = {n.name for n in graph.inputs}
    names = (n for i in range(len(kept) + len(taken)) if (n := f"kept{i or ''}") not in taken)
    leaves = {
        n: Node(VARIABLE, (), (("name", name),), n.type, n.origin)
        for n, name in zip(kept, names, strict=False)
    }
    grouped: dict[int, list[Node]] = {}
    for node, mask in kept.items():
        grouped.setdefault(mask, []).append(node)
    home: dict[str, Split] = {}
    # What reads a value depends on all that it does, and on more.
    for _, values in sorted(grouped.items(), key=lambda group: group[0].bit_count()):
        made_of = set(topological(values))
        own = Graph(values, [n for n in graph.inputs if n in made_of])
        others = {n: leaf for n, leaf in leaves.items() if n not in set(values)}
        part_names = tuple(str(leaves[n].name) for n in values)
        part = replace(_on_leaves(own, others, home), names=part_names)
        home |= dict.fromkeys(part_names, part)
    return _on_leaves(graph, leaves, home)


def _on_leaves(graph: Graph, leaves: Mapping[Node, Node], home: Mapping[str, Split]) -> Split:
    """A graph split so that its body is fed leaves for what parts before it keep."""
    becomes = dict(leaves)
    outputs = list(_rebuilt(graph.outputs, becomes))
    read = set(topological(outputs))
    body = Graph(outputs, [*graph.inputs, *(leaf for leaf in leaves.values() if leaf in read)])
    return Split(graph, body, _needed(body, home), {new: old for old, new in becomes.items()})


def joined(
    parts: Iterable[tuple[tuple[str, ...], Graph, Trace]], body: Graph, inputs: Sequence[Node]
) -> Split:
    """A graph of these inputs from its parts: of each the names of what it keeps, and its trace."""
    whole: dict[str, Node] = {}
    home: dict[str, Split] = {}

    def split(body: Graph, inputs: Sequence[Node]) -> Split:
        stands_for = {n: whole[str(n.name)] for n in filter(is_leaf, body.inputs)}
        graph = Graph(_rebuilt(body.outputs, stands_for), inputs)
        return Split(graph, body, _needed(body, home), stands_for)

    for names, part, trace in parts:
        own = [n for n in part.inputs if not is_leaf(n)]
        found = replace(split(part, own), names=names, trace=trace)
        whole |= zip(names, found.graph.outputs, strict=True)
        home |= dict.fromkeys(names, found)
    return split(body, inputs)


def _needed(body: Graph, home: Mapping[str, Split]) -> tuple[Split, ...]:
    """The parts whose values a body reads, and those that they need, in order."""
    direct = [home[str(n.name)] for n in filter(is_leaf, body.inputs)]
    needed = {*direct, *(before for part in direct for before in part.kept)}
    return tuple(part for part in dict.fromkeys(home.values()) if part in needed)


def _each_worth_it(graph: Graph, sources: Mapping[Node, int], every: int) -> dict[Node, int]:
    """The values to keep of a partial program, each with the bits of what it depends on.

    They are those that are read by what depends on more, if they save work; what depends on
    `every` one is computed in every call. A view is made again where it is read.
    """
    masks: dict[Node, int] = {}
    named: dict[Node, frozenset[str]] = {}
    work: dict[Node, int] = {}
    for node in graph.nodes:
        names = _names_of(node)
        if is_input(node):
            if node in sources:
                masks[node], named[node] = sources[node], names
        elif not node.op.opaque and all(x in masks for x in node.inputs):
            known = frozenset[str]().union(*(named[x] for x in node.inputs))
            if names <= known:
                masks[node], named[node] = reduce(or_, (masks[x] for x in node.inputs), 0), known
    masks = {n: mask for n, mask in masks.items() if mask != every}
    for node, mask in masks.items():
        before = sum(work[x] for x in node.inputs if masks[x] in (0, mask))
        heavy = EXPENSIVE if node.op.expensive or node.bodies else 1
        work[node] = min(MOST_COUNTED, heavy * _work(node) + before)
    read = set(graph.outputs)
    kept = {}
    for node in reversed(graph.nodes):
        saved = max(LEAST_WORK, LEAST_OF_ONE * _elements(node))
        if node not in masks:
            read.update(node.inputs)
        elif node in read and masks[node] and work[node] >= saved and _has_memory(node):
            kept[node] = masks[node]
            read.update(x for x in node.inputs if masks[x] != masks[node])
        else:
            read.update(x for x in node.inputs if node in read or masks[x] != masks[node])
    return dict(reversed(kept.items()))


def _names_of(node: Node) -> frozenset[str]:
    """The named dimensions that a node is told the sizes of, and those in its bodies."""
    within = (names_in((n.type, n.attrs)) for body in node.bodies for n in with_bodies(body))
    return names_in((node.type, node.attrs)).union(*within)


def _worth_keeping(graph: Graph, sources: Mapping[Node, int]) -> dict[Node, int]:
    """The values to keep: the last ones that nothing changes, if they save work and are not large.

    A view is made again where it is read, which costs nothing.
    """
    largest: dict[Node, int] = {n: _elements(n) for n in sources}
    room = MOST_OF_ALL * sum(largest.values())
    if not room:
        return {}
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
    return dict.fromkeys(reversed(kept), 1)


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
        guessed = dict.fromkeys(names_in(tuple(x.type for x in (node, *node.inputs))), GUESS)
        types = (x.tensor.with_shape(tuple(map(guess, x.shape))) for x in node.inputs)
        return int(node.op.flops(*types, **resolve(dict(node.attrs), guessed)))
    return max(_elements(n) for n in (node, *node.inputs))


def _elements(node: Node) -> int:
    """The elements of all that a node computes, of known sizes."""
    return sum(guess(t.size) for t in types_of(node.type))


def _rebuilt(outputs: Sequence[Node], becomes: dict[Node, Node]) -> Iterator[Node]:
    """Outputs on what stands for some of the nodes, which is entered for all the others."""
    for node in topological(outputs, becomes):
        becomes[node] = rebuild(node, tuple(becomes[x] for x in node.inputs))
    return map(becomes.__getitem__, outputs)
