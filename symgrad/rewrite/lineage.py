"""The lineage of each node along the rewrites, from the graph as written to the one that runs.

A rewrite is noted with the nodes before and after it. Between two rewrites a node is built again
whenever its operands are, and merged with its equals. So nodes are told apart by their form here:
an op on operands that were shown to be equal, by rewrites or by equal forms of their own. That is
the congruence closure of the rewrites, and it does not depend on how the passes work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from symgrad.ir.graph import Graph, is_input
from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node
from symgrad.ir.origin import Maker
from symgrad.ir.walk import topological, with_bodies
from symgrad.rewrite.trace import RewriteEvent, Trace, made_together

Form: TypeAlias = Any


class Way(NamedTuple):
    """The rewrites through which a node went, in order, and what it is in the end.

    `ends` is more than one form if it was taken into several others, and none if nobody reads it;
    `parts` are what else the rewrites made of it. It is `folded` if it was never replaced itself,
    but vanished with a reader.
    """

    rewrites: tuple[RewriteEvent, ...]
    folded: bool
    ends: tuple[Form, ...]
    parts: tuple[Form, ...]


class Lineage:
    """The way of every node from the `raw` graph to the `final` one.

    What `runs` may be made of nodes that were built again when the plan was made.
    """

    def __init__(self, raw: Graph, final: Graph, trace: Trace, runs: Iterable[Node] = ()) -> None:
        self.raw = raw
        self.trace = trace
        self._classes = _Classes()
        graphs = [raw, final, *(s.after for s in trace.stages)]
        roots = [y for g in graphs for y in g.outputs]
        ends = [n for f in trace.fired for n in (f.before, f.after)]
        # What the inner nodes of fused nodes compute, written out over the operands.
        self._written_out: dict[Node, Node] = {}
        self._results: dict[Node, list[Node]] = {}
        for node in topological([*raw.inputs, *roots, *ends, *runs]):
            self._enter(node)
        for entry in trace.fired:
            self._classes.merge(entry.before, entry.after)
        self._classes.close()
        self._index(final)

    def _enter(self, node: Node) -> None:
        self._classes.add(node)
        if node.op.of_several and node.inputs[0] in self._results:
            self._classes.merge(node, self._results[node.inputs[0]][node.attr("index")])
        for body in node.bodies:
            for part in body.nodes:
                if part not in self._classes.parent:
                    self._enter(part)
        if (inner := node.inner_graph) is None:
            return
        becomes = dict(zip(inner.inputs, node.inputs, strict=True))
        for part in inner.nodes:
            if part not in becomes:
                inputs = tuple(becomes[x] for x in part.inputs)
                becomes[part] = Node(part.op, inputs, part.attrs, part.type, part.origin)
                self._written_out[part] = becomes[part]
                self._enter(becomes[part])
        self._results[node] = [becomes[y] for y in inner.outputs]
        if not isinstance(node.type, tuple):
            self._classes.merge(node, self._results[node][0])

    def _index(self, final: Graph) -> None:
        self.built: dict[Form, list[Node]] = defaultdict(list)
        for node in with_bodies(self.raw):
            self.built[self.form(node)].append(node)
        self.kept: dict[Form, Node] = {}
        there = list(with_bodies(final))
        parts = [p for n in there for p in self._parts(n)]
        for node in [*there, *parts]:
            self.kept.setdefault(self.form(node), node)
        self.readers: dict[Form, list[Node]] = defaultdict(list)
        for node in self.kept.values():
            for x in node.inputs:
                self.readers[self.form(x)].append(node)
        # Of each rewrite: what it replaced, what vanished with that, what is there, its new parts.
        self.before: list[Form] = []
        self.swallowed: list[tuple[Form, ...]] = []
        self.after: list[Form] = []
        self.made: list[tuple[Form, ...]] = []
        # Rewrites by what they replaced, by what they made, by what vanished, by what they no
        # longer read.
        self.replacing: dict[Form, list[int]] = defaultdict(list)
        self.making: dict[Form, list[int]] = defaultdict(list)
        self.swallowing: dict[Form, list[int]] = defaultdict(list)
        self.dropping: dict[Form, list[int]] = defaultdict(list)
        for i, entry in enumerate(self.trace.fired):
            found = entry.match()
            replaced = (entry.before,) if found is None else found.replaced
            made = self._made(entry)
            self.before.append(self.form(entry.before))
            self.swallowed.append(tuple(map(self.form, replaced[1:])))
            self.after.append(self.form(entry.after))
            self.made.append(tuple(map(self.form, made[1:])))
            self.replacing[self.before[i]].append(i)
            for form in dict.fromkeys(map(self.form, made)):
                self.making[form].append(i)
            for form in dict.fromkeys(self.swallowed[i]):
                self.swallowing[form].append(i)
            read = {self.after[i], *(self.form(x) for n in made for x in n.inputs)}
            for form in dict.fromkeys(self.form(x) for n in replaced for x in n.inputs):
                if form not in read:
                    self.dropping[form].append(i)

    def value(self, node: Node) -> Node:
        """The node that stands for all those that are shown to be equal to this one."""
        return self._classes.find(self.written_out(node))

    def written_out(self, node: Node) -> Node:
        """A node inside a fused one over what that reads, not over its own inputs; else itself."""
        return self._written_out.get(node, node)

    def _parts(self, node: Node) -> Iterator[Node]:
        for part in () if node.inner_graph is None else node.inner_graph.nodes:
            if part in self._written_out:
                yield self._written_out[part]
                yield from self._parts(part)

    def _made(self, entry: RewriteEvent) -> list[Node]:
        """The nodes that a rewrite made, if it made any."""
        made_by = entry.after.origin.made_by
        made_any = made_by[-1:] == (Maker("rewrite", entry.rule.name),)
        return made_together(entry.after) if made_any else []

    def form(self, node: Node) -> Form:
        """The form by which a node is known, or None for one that is in no graph of the trace."""
        return self._classes.form(self.written_out(node))

    # ---- ways -------------------------------------------------------------------------------

    def onward(self, form: Form) -> Way:
        """Through which rewrites a node went, and what it is in the end."""
        numbers: set[int] = set()
        ends: dict[Form, None] = {}
        parts: dict[Form, None] = {}
        folded = False
        seen, stack = {form}, [(form, ends)]
        while stack:
            at, found = stack.pop()
            if at in self.kept:
                found[at] = None
                continue
            went = self.replacing.get(at, [])
            numbers.update(went)
            if all(self.after[i] == at for i in went):
                went = self.swallowing.get(at) or self.dropping.get(at, [])
                numbers.update(went)
                if at not in self.swallowing and not _is_constant(at):
                    continue
                folded = folded or found is ends
            for i in went:
                for made, goes_to in ((self.after[i], found), *((f, parts) for f in self.made[i])):
                    if made not in seen:
                        seen.add(made)
                        stack.append((made, goes_to))
        for i in sorted(numbers):
            numbers |= self._leading(self.swallowed[i])
        rest = tuple(f for f in parts if f not in ends)
        return Way(self._in_order(numbers), folded, tuple(ends), rest)

    def backward(self, form: Form) -> tuple[tuple[RewriteEvent, ...], list[Node]]:
        """The rewrites that led to a form, and the nodes as written that it was once."""
        numbers = self._leading([form])
        forms = [form]
        for i in sorted(numbers):
            forms += [self.before[i], *self.swallowed[i]]
        found = [n for f in dict.fromkeys(forms) for n in self.built.get(f, ())]
        return self._in_order(numbers), found

    def _leading(self, forms: Iterable[Form]) -> set[int]:
        """The rewrites that made nodes of these forms, and those that led to them in turn."""
        numbers: set[int] = set()
        stack = list(forms)
        while stack:
            for i in self.making.get(stack.pop(), ()):
                if i not in numbers:
                    numbers.add(i)
                    stack += [self.before[i], *self.swallowed[i]]
        return numbers

    def _in_order(self, numbers: Iterable[int]) -> tuple[RewriteEvent, ...]:
        """Rewrites in their order; of those that did the same twice, the last."""
        fired = self.trace.fired
        last = {(fired[i].rule, self.before[i], self.after[i]): i for i in sorted(numbers)}
        return tuple(fired[i] for i in sorted(last.values()))


def _is_constant(form: Form) -> bool:
    op, inputs, *_ = form
    return op is CONSTANT and inputs == ()


class _Classes:
    """Nodes that are equal: by what was merged, and because they are one op on equal operands."""

    def __init__(self) -> None:
        self.parent: dict[Node, Node] = {}
        self.readers: dict[Node, list[Node]] = {}
        self.table: dict[Form, Node] = {}
        self.pending: list[tuple[Node, Node]] = []
        # Once closed, of each node that was asked for.
        self.forms: dict[Node, Form] | None = None

    def add(self, node: Node) -> None:
        """Enter a node, whose inputs are there already."""
        if node in self.parent:
            return
        self.parent[node] = node
        self.readers[node] = []
        for x in node.inputs:
            self.readers[self.find(x)].append(node)
        self._look_up(node)

    def _look_up(self, node: Node) -> None:
        same = self.table.setdefault(self.form(node), node)
        if same is not node:
            self.pending.append((same, node))

    def merge(self, a: Node, b: Node) -> None:
        """Take two nodes for equal, once `close` is called."""
        self.pending.append((a, b))

    def close(self) -> None:
        """Merge what is pending, and all that is equal because of it."""
        while self.pending:
            a, b = map(self.find, self.pending.pop())
            if a is b:
                continue
            if len(self.readers[a]) < len(self.readers[b]):
                a, b = b, a
            self.parent[b] = a
            moved = self.readers.pop(b)
            self.readers[a] += moved
            for reader in moved:
                self._look_up(reader)
        self.forms = {}

    def find(self, node: Node) -> Node:
        """The node that stands for its class."""
        parent = self.parent
        while (up := parent[node]) is not node:
            parent[node] = node = parent[up]
        return node

    def form(self, node: Node) -> Form:
        """An op on classes; an input is itself. None for a node that was not entered."""
        if self.forms is not None and node in self.forms:
            return self.forms[node]
        if node not in self.parent:
            return None
        form = self._form(node)
        if self.forms is not None:
            self.forms[node] = form
        return form

    def _form(self, node: Node) -> Form:
        if is_input(node):
            return (node.op, id(node))
        classes = [id(self.find(x)) for x in node.inputs]
        return (node.op, tuple(sorted(classes) if node.op.commutative else classes), node.attrs)
