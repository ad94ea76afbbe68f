"""The texts of boxes: the label, its formula, the tooltip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from symgrad.ir.formats.text import type_text
from symgrad.ir.graph import is_leaf
from symgrad.ir.node import Node, constant_value
from symgrad.ir.walk import GraphLike
from symgrad_viz.bodies import times_text
from symgrad_viz.formulas import formula, is_aside
from symgrad_viz.level import Details, Level, Operand, Source
from symgrad_viz.phases import BACKWARD, FORWARD, PARTS, UPDATE
from symgrad_viz.scene import Box
from symgrad_viz.scopes import spanned
from symgrad_viz.words import call_line, call_text, counted, name_text, shortened, tooltip

WRITTEN = 44  # letters of a formula that a label has room for


class Labels:
    """Says what is written on the boxes of a graph, and in their tooltips.

    `given` are the user's names of nodes; `boxes` those drawn so far.
    """

    def __init__(
        self,
        parts: Mapping[Node, str],
        titles: Mapping[str, str],
        details: Details,
        given: Mapping[Node, str],
        boxes: Mapping[str, Box],
    ) -> None:
        self.parts, self.titles, self.details, self.boxes = parts, titles, details, boxes
        self.given = dict(given)

    def ops_text(self, inner: GraphLike) -> str:
        """How many ops are inside, and where they belong if that is not one part."""
        counts = Counter(self.parts[n] for n in inner.nodes if not is_leaf(n))
        if len(counts) == 1:
            return counted(counts.total(), "op")
        derived = "tangent" if self.titles.get(BACKWARD) == "tangents" else "gradient"
        called = {FORWARD: "forward", BACKWARD: derived, UPDATE: "update"}
        *most, last = (counted(counts[p], f"{called[p]} op") for p in PARTS if p in counts)
        return " and ".join((*(text.rpartition(" ")[0] for text in most), last))

    def lines(
        self,
        level: Level,
        node: Node,
        operands: Sequence[Operand],
        inner: GraphLike | None,
        written: str,
    ) -> Iterator[str]:
        """The label: what it is, its type, what is inside, and the last rewrite that made it."""
        own, value = level.names[node], constant_value(node)
        if node.name is not None:
            yield name_text(node.name)
        elif value is None:
            index = f" {node.attr('index')}" if node.op.of_several else ""
            times = f" {text}" if (text := times_text(node)) else ""
            called = f"{shortened(call_text(node.op, operands), WRITTEN)}{index}{times}"
            given = f" {name}" if (name := self.given.get(node)) else ""
            yield f"{own}{given} = {written or called}"
        elif value.size <= 6:
            yield shortened(" ".join(str(value).split()), 40)
        else:
            yield f"{own} = constant"
        yield shortened(type_text(node.type), 48)
        for part in filter(None, (inner, *node.bodies)):
            ops = [n.op.name for n in part.nodes if not is_leaf(n)]
            yield shortened(" + ".join(dict.fromkeys(ops)), 48)
        if inner is not None:
            if len({self.parts[n] for n in inner.nodes if not is_leaf(n)}) > 1:
                yield self.ops_text(inner)
            within = spanned(inner)
            if len(within) > 1:
                yield shortened(f"in {', '.join(within)}", 48)
        rules = [m.name for m in node.origin.made_by if not m.is_gradient]
        if rules:
            more = f" +{len(rules) - 1}" if len(rules) > 1 else ""
            yield f"⟵ {shortened(rules[-1], 40)}{more}"

    def formula(self, level: Level, node: Node) -> str:
        """The node as a person writes it, or nothing if that is long."""

        def named(x: Node) -> str | None:
            return None if is_aside(x) else self.called(level, x)

        written = formula(node, named)
        return written if len(written) <= WRITTEN else ""

    def read(self, level: Level, node: Node) -> Iterator[tuple[Node, str]]:
        """Each operand, and the name that a formula has for it or for what it shows."""
        for x in node.inputs:
            shown = x
            while is_aside(shown):
                (shown,) = shown.inputs
            yield x, self.called(level, shown)

    def called(self, level: Level, x: Node) -> str:
        """The user's name of an operand, or the number of the box that it is drawn in."""
        found = self.given.get(x) or x.name
        source = level.sources.get(x, [""])[0]
        if found is not None or not isinstance(source, Source):
            return found or level.names[x]
        closed = x.op.of_several and source.box == level.names[x.inputs[0]]
        box = self.boxes[source.box].lines[0].partition(" = ")[0]
        return f"{box}[{x.attr('index')}]" if closed else box

    def tooltip(self, level: Level, node: Node) -> str:
        """All about a node in a few lines."""
        names = {x: self.called(level, x) for x in node.inputs} | {node: level.names[node]}
        if self.details.is_brief:
            return call_line(node, names)
        return "\n".join((tooltip(node, names), *self.details.lines(node)))
