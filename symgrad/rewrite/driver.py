"""The driver: applies rules to a graph until none fits. Linear in the graph, never recursive."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from itertools import chain, count, product
from operator import itemgetter
from typing import Any, TypeAlias

from symgrad.ir.errors import RewriteError, ShapeError
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, describe
from symgrad.ir.op import Op
from symgrad.ir.origin import Maker, Origin, built_as
from symgrad.ir.types import TensorType
from symgrad.ir.walk import topological
from symgrad.ops.shape import broadcast_to
from symgrad.rewrite.late import Late, RuleLike, Rules
from symgrad.rewrite.pattern import Applied, may_match
from symgrad.rewrite.rule import Match, Rule
from symgrad.rewrite.trace import RewriteEvent, Trace, made_together

MOST_SWEEPS = 8
MOST_PER_NODE = 100
MOST_KNOWN = 1 << 14
FEW = 4  # operands, of which every choice is looked up

_Forms: TypeAlias = tuple[Applied, ...]
_Entry: TypeAlias = tuple[int, Rule, _Forms]
_ByOperands: TypeAlias = "dict[tuple[Op | None, ...] | None, list[_Entry]]"
_Left: TypeAlias = dict[Node, list[tuple[Node, ...]]]
WorthTrying: TypeAlias = tuple[tuple[Rule, _Forms], ...]


def rewrite(
    graph: Graph,
    rules: Iterable[Rule] | Index,
    trace: Trace | None = None,
    stage: str = "rewrite",
    *,
    keep_layout: bool = False,
) -> Graph:
    """The graph with the rules applied wherever they fit, inputs before their readers.

    New nodes carry the origins of what they replace, that of their own op first, and the rule's
    name. With `keep_layout` no array gives way to a view, nor does a sum come to read one: the
    elements are the same, but sums go through a view in another order, and round differently.
    Raises `RewriteError` if a rule changes a type, or if rules chase each other for ever. An
    `Index` of rules that are applied to many graphs saves looking through them each time.
    """
    index = rules if isinstance(rules, Index) else Index(rules)
    left: _Left = {}
    for _ in range(MOST_SWEEPS):
        sweep = _Sweep(graph, index, trace, stage, keep_layout, left)
        graph, left = sweep.run(), sweep.left
        if not sweep.may_fit_now(graph):
            break
    return graph


def sweep_once(
    graph: Graph, index: Index, stage: str
) -> tuple[dict[Node, Node], list[RewriteEvent]]:
    """The replacement of each node in one sweep of the rules, and the events of what fired."""
    trace = Trace()
    sweep = _Sweep(graph, index, trace, stage)
    sweep.run()
    return (sweep.final, trace.fired) if trace.fired else ({}, [])


def rebuild(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same node on other inputs of the same types; the node itself if they are its own."""
    for x, y in zip(inputs, node.inputs, strict=True):
        if x is not y:
            break
    else:
        return node
    return Node(node.op, inputs, node.attrs, node.type, node.origin)


class _Tables:
    """The rules of an index that are loaded, as they are looked up."""

    __slots__ = ("by_op", "by_operands", "by_root", "known", "may_fit")

    def __init__(self, parts: Iterable[RuleLike]) -> None:
        # By the ops of their patterns, numbered; those for ops by a fact are under None.
        self.by_root: dict[Op | None, list[tuple[int, Rule]]] = defaultdict(list)
        for i, rule in enumerate(parts):
            if not isinstance(rule, Late):
                self.by_root[rule.root].append((i, rule))
        self.by_op: dict[Op, list[Rule]] = {}
        self.by_operands: dict[Op, _ByOperands] = {}
        self.known: dict[Any, WorthTrying] = {}
        self.may_fit: dict[Any, bool] = {}

    def add(self, op: Op) -> list[Rule]:
        """The rules that are tried at an op, in their order."""
        by_fact = [(i, rule) for i, rule in self.by_root[None] if rule.is_for(op)]
        both = sorted([*self.by_root.get(op, ()), *by_fact], key=itemgetter(0))
        found = [rule for _, rule in both]
        self.by_operands[op] = _by_operands(found)
        self.by_op[op] = found
        return found

    def find(self, node: Node, kind: str, levels: int) -> Iterator[_Entry]:
        """The forms whose ops so many levels down allow them, numbered."""
        table = self.by_operands[node.op]
        operands = [x.op for x in node.inputs]
        for entry in table[None]:
            acts_on = entry[1].operands
            if acts_on is None or acts_on(operands):
                yield entry
        few = len(operands) <= FEW
        for wanted in product(*[(op, None) for op in operands]) if few else table:
            for entry in table.get(wanted, ()):
                rule, forms = entry[1:]
                if forms and kind in rule.kinds and may_match(forms[0], node, levels):
                    yield entry


class Index:
    """The rules worth trying at a node, found by its op, its kind of dtype and the ops below it.

    Late ones are loaded when a node has an op of theirs. Where one fits there is such a node, at
    the root of its pattern or below it, and so looked up no later.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._parts = Rules.of(rules).parts
        self._tables = _Tables(self._parts)

    def at(self, node: Node) -> WorthTrying:
        """Rules in their order, with the forms that the ops two levels down do not rule out."""
        tables = self._tables  # which another thread may replace
        rules = tables.by_op.get(node.op)  # asked at every node
        if rules is None:
            tables = self._with(node.op)
            rules = tables.add(node.op)
        if not rules:
            return ()
        t, inputs = node.type, node.inputs
        kind = t.dtype.kind if t.__class__ is TensorType else ""
        # Most nodes have none by the ops right below already.
        near = (node.op, kind, *[x.op for x in inputs])
        if tables.may_fit.get(near) is False:
            return ()
        key = (node.op, kind, *[(x.op, *[y.op for y in x.inputs]) for x in inputs])
        found = tables.known.get(key)
        if found is None:
            if len(tables.known) >= MOST_KNOWN:
                tables.known.clear()
                tables.may_fit.clear()
            worth = sorted(tables.find(node, kind, 2), key=itemgetter(0))
            found = tables.known[key] = tuple([(rule, forms) for _, rule, forms in worth])
            tables.may_fit[near] = any(True for _ in tables.find(node, kind, 1))
        return found

    def _with(self, op: Op) -> _Tables:
        """The tables with all rules that may fit in a graph that has an op."""
        wanted = {p for p in self._parts if isinstance(p, Late) and p.are_for(op)}
        if wanted:
            parts = [p.load() if p in wanted else (p,) for p in self._parts]
            self._parts = tuple(chain.from_iterable(parts))
            self._tables = _Tables(self._parts)
        return self._tables


def _by_operands(rules: Iterable[Rule]) -> _ByOperands:
    """The forms of rules, numbered, by the ops that the operands must be of: None for any.

    Rules that are functions of the node are under None.
    """
    found: _ByOperands = {None: []}
    numbers = count()
    for rule in rules:
        if rule.function is not None:
            found[None].append((next(numbers), rule, ()))
        for form in rule.forms:
            wanted = tuple([p.op for p in form.inputs])
            found.setdefault(wanted, []).append((next(numbers), rule, (form,)))
    return found


class _Sweep:
    """One walk over a graph. `final` maps a node to what stands for it in the end.

    `left` has the nodes at which no rule fitted, each with the inner nodes whose other readers held
    a rule back. What the walk `before` left, with its operands, is tried again only for these.
    """

    def __init__(
        self,
        graph: Graph,
        index: Index,
        trace: Trace | None,
        stage: str,
        keep_layout: bool = False,
        before: _Left | None = None,
    ) -> None:
        self.graph = graph
        self.before = before or {}
        self.left: _Left = {}
        self.index = index
        self.trace = trace
        self.stage = stage
        self.keep_layout = keep_layout
        self.final: dict[Node, Node] = {}
        self.becomes: dict[Node, Node] = {}
        self.uses: dict[Node, int] = defaultdict(int)
        self.fired = 0
        self.held_back: list[tuple[Node, ...]] = []
        self.recent: deque[str] = deque(maxlen=12)

    def run(self) -> Graph:
        nodes, final, uses = self.graph.nodes, self.final, self.uses
        worth = list(map(self.index.at, nodes))
        if not any(worth):
            return self.graph
        readers = _readers(self.graph)
        for node, rules in zip(nodes, worth, strict=True):
            if node not in final:
                for x in node.inputs:
                    if final[x] is not x:
                        self._rewrite(node)
                        break
                else:  # it is what it was, as most are
                    made = self._rewritten(node, rules) if rules and self._may_fit(node) else None
                    if made is None:
                        final[node] = node
                    else:
                        self.becomes[node] = made
                        self._rewrite(made)
                        final[node] = final[made]
            uses[final[node]] += readers[node]
        if not self.fired:
            return self.graph
        return self.graph.giving([final[y] for y in self.graph.outputs])

    def _rewrite(self, root: Node) -> None:
        final = self.final
        stack = [root]
        while stack:
            node = stack[-1]
            if node in final:
                stack.pop()
                continue
            try:
                inputs = tuple(map(final.__getitem__, node.inputs))
            except KeyError:
                stack += [x for x in node.inputs if x not in final]
                continue
            if node in self.becomes:
                if self.becomes[node] not in final:
                    raise RewriteError(
                        f"the rule {self.recent[-1]} makes {describe(node)} of itself: what it "
                        "puts in place is computed from what it takes away"
                    )
                final[node] = final[self.becomes[node]]
                continue
            current = rebuild(node, inputs)
            rules = self.index.at(current)
            result = self._rewritten(current, rules) if rules and self._may_fit(current) else None
            if result is None:
                final[node] = final[current] = current
                stack.pop()
                continue
            self.becomes[node] = result
            if result not in final:
                stack.append(result)

    def _rewritten(self, node: Node, rules: WorthTrying) -> Node | None:
        """The replacement of a node by the first rule that fits."""
        count = len(self.held_back)
        for rule, forms in rules:
            for found in rule.matches(node, self._is_sole_reader, forms):
                maker = Maker("rewrite", rule.name)
                origin = node.origin.merged(x.origin for x in found.replaced).then(maker)
                with built_as(origin):
                    made = found.build()
                    if made is None or made is node:
                        continue
                    made = _moved(fitted(made, node, rule), found, origin)
                    if not self.keep_layout or self._keeps_layout(node, made):
                        self._note(rule, node, made)
                        return made
        self.left[node] = self.held_back[count:]
        return None

    def _may_fit(self, node: Node) -> bool:
        """Whether a node is new, or what held a rule back there does so no longer."""
        held = self.before.get(node)
        if held is None:
            return True
        self.left[node] = held
        return any(map(self._is_sole_reader, held))

    def _keeps_layout(self, node: Node, made: Node) -> bool:
        """Whether what is made has its elements, and those it sums, in the order they had."""
        if made.op.view and not node.op.view:
            return False
        new, known = [made], {node}
        while new:
            made = new.pop()
            if made in known or made in self.final:
                continue
            known.add(made)
            op = made.op
            moves = op.elementwise or op.view or (op.data_movement and not op.combiner)
            if not moves and any(x.op.view for x in made.inputs):
                return False
            new += made.inputs
        return True

    def _is_sole_reader(self, inner: tuple[Node, ...]) -> bool:
        if all(self.uses.get(x, 1) == 1 for x in inner):
            return True
        self.held_back.append(inner)
        return False

    def may_fit_now(self, graph: Graph) -> bool:
        """Whether a rule that was held back, because a node had two readers, may fit by now."""
        if not (self.fired and self.held_back):
            return False
        readers = _readers(graph)
        return any(all(readers[x] == 1 for x in inner) for inner in self.held_back)

    def _note(self, rule: Rule, before: Node, after: Node) -> None:
        self.fired += 1
        self.recent.append(rule.name)
        if self.trace is not None:
            self.trace.fired.append(RewriteEvent(self.stage, rule, before, after))
        if self.fired > 1000 + MOST_PER_NODE * len(self.graph.nodes):
            raise RewriteError(
                f"rules chase each other without end: {' -> '.join(self.recent)}; "
                "one of them undoes what another does"
            )


def _readers(graph: Graph) -> Counter[Node]:
    """How many readers each node has; being an output counts as one."""
    return Counter([*chain.from_iterable([n.inputs for n in graph.nodes]), *graph.outputs])


def fitted(made: Node, node: Node, rule: Rule) -> Node:
    """The replacement repeated to the shape of what it replaces. Its dtype must be the same.

    Where a pattern sums or reshapes, a smaller result is a mistake, and not to be repeated.
    """
    if made.type == node.type:
        return made
    try:
        if made.dtype == node.dtype and rule.may_shrink:
            return broadcast_to(made, node.shape)
    except ShapeError:
        pass  # told below, with the rule's name
    raise RewriteError(
        f"the rule {rule.name} makes {made.type!r} of {node.type!r}; "
        "what it puts in place must have the same type"
    )


def _moved(made: Node, found: Match, origin: Origin) -> Node:
    """The replacement, each node of the op of an inner one that was matched being of its origin.

    All were built with one origin, that of what they stand for. But a selection through which a
    factor moves is still the gradient of relu, of relu's line.
    """
    inner = found.replaced[1:] if found.rule.function is None else found.node.inputs
    origins = {x.op: x.origin for x in reversed(inner) if x.inputs and x.op is not found.node.op}
    if not origins or made.origin is not origin:
        return made
    parts = made_together(made)
    if origins.keys().isdisjoint(part.op for part in parts):
        return made
    maker = origin.made_by[-1]
    becomes: dict[Node, Node] = {}
    for part in topological([made], {x for p in parts for x in p.inputs}.difference(parts)):
        inputs = tuple([becomes.get(x, x) for x in part.inputs])
        of = origins.get(part.op, origin)
        if of is not origin:
            of = of.merged(x.origin for x in found.replaced).moved_to(origin).then(maker)
        becomes[part] = Node(part.op, inputs, part.attrs, part.type, of)
    return becomes[made]
