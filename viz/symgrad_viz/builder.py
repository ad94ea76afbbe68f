"""From a graph to its scene: a box for each node, an edge for each value that is read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, takewhile
from typing import Any

from symgrad.ir.errors import RenderError
from symgrad.ir.formats.text import type_text
from symgrad.ir.graph import Graph, is_leaf
from symgrad.ir.node import Node, constant_value
from symgrad.ir.types import types_of
from symgrad.ir.walk import GraphLike
from symgrad_viz.bodies import (
    Body,
    bodies_of,
    count,
    mirrored,
    own_size,
    shown_name,
    test_text,
    tested,
    title_of,
)
from symgrad_viz.formulas import given_names
from symgrad_viz.labels import Labels
from symgrad_viz.level import Details, Level, Numbered, Operand, Source, Within, numbered_of
from symgrad_viz.modules import layers_of
from symgrad_viz.phases import (
    FORWARD,
    nexts_of,
    part_titles,
    parts_of,
)
from symgrad_viz.residuals import Kept
from symgrad_viz.scene import CARRY, Box, Edge, Region, Saved, Scene, Sizes, part_of, with_stubs
from symgrad_viz.scopes import kind_of, scope_of, shared
from symgrad_viz.words import (
    call_text,
    name_text,
    nbytes,
    printable,
    shortened,
    title_text,
)

EXPANDED = 150  # graphs of up to so many nodes in all show what is in fused nodes and loops
WRITTEN = 44  # letters of a formula that a label has room for
NESTED = 6  # scopes within scopes are drawn to this depth


def scene_of(
    thing: Any,
    *,
    title: str | None = None,
    stubs: bool = True,
    expand: bool | None = None,
    loops: bool = True,
    numbered: Numbered | None = None,
    details: Details | None = None,
    given: Mapping[Node, str] | None = None,
    memo: Memo | None = None,
) -> Scene:
    """The scene of a graph, or of something that has one as its `.graph`.

    `stubs=False` draws every edge in full. `expand` says whether fused nodes, loops and choices
    show what is inside; None is: if that makes 150 nodes at most; `loops=False` leaves loops and
    choices closed. `names` is what the nodes are called, each in its own way; None is: by their
    numbers. `given` are the user's names; None is: those of the graph's own lines. `details` tells
    more of each. `memo` holds what was drawn of earlier graphs of the same lineage, with the same
    details. Raises `RenderError` for anything else.
    """
    graph = graph_of(thing)
    if expand is None:
        expand = count(graph) <= EXPANDED
    nexts = nexts_of(graph, getattr(thing, "output_names", ()))
    given = given_names(graph) if given is None else given
    memo = Memo(graph) if memo is None else memo
    builder = _Builder(graph, expand, expand and loops, details or Details(), nexts, given, memo)
    builder.draw(_output_names(thing, graph), numbered or numbered_of(graph))
    boxes, edges = tuple(builder.boxes.values()), tuple(builder.edges)
    if stubs:
        boxes, edges = with_stubs(boxes, edges)
    said = f"a graph of {len(graph)} nodes" if thing is graph else f"what runs: {len(graph)} nodes"
    return Scene(title_text(title, said), builder.summary(), boxes, edges)


def graph_of(thing: Any) -> Graph:
    """The graph that is to be drawn."""
    found = thing if isinstance(thing, Graph) else getattr(thing, "graph", None)
    if isinstance(found, Graph):
        return found
    hint = "; draw sg.Graph([node])" if isinstance(thing, Node) else ""
    raise RenderError(f"a Graph or a Program can be drawn, not a {type(thing).__name__}{hint}")


def _output_names(thing: Any, graph: Graph) -> list[str]:
    given = tuple(getattr(thing, "output_names", ()))
    return [
        printable(given[i]) if i < len(given) else f"output {i}" for i in range(len(graph.outputs))
    ]


class Memo:
    """Boxes of graphs of one lineage: what is as it was in the one before is not made again.

    In all of them a name stands for one op with the same attributes and a value of the same type.
    `layers` are the labels of scopes, by the first of the graphs.
    """

    def __init__(self, graph: Graph) -> None:
        self.layers = layers_of(graph)
        self.scopes: dict[tuple[str, ...], str] = {}
        self.around: dict[Hashable, tuple[Region, ...]] = {}
        # By the name: all else that the texts depend on, the box, whether that has a formula, and
        # where the results are drawn.
        self.boxes: dict[str, tuple[Any, Box, bool, list[Operand]]] = {}


class _Builder:
    """Draws the nodes of a graph in order, one box or one region each."""

    def __init__(
        self,
        graph: Graph,
        expand: bool,
        loops: bool,
        details: Details,
        nexts: frozenset[Node],
        given: Mapping[Node, str],
        memo: Memo,
    ) -> None:
        self.graph = graph
        self.expand, self.loops = expand, loops
        self.details = details
        self.parts = parts_of(graph, nexts)
        self.kept = Kept(graph, self.parts)
        self.titles = part_titles(graph, self.parts)
        self.boxes: dict[str, Box] = {}
        self.edges: list[Edge] = []
        self.labels = Labels(self.parts, self.titles, details, given, self.boxes)
        self.within = Within({})
        self.memo = memo

    def draw(self, output_names: Sequence[str], numbered: Numbered) -> None:
        self.within = Within(numbered.inside)
        level = Level(self.graph, dict(numbered.names), {})
        self._draw_all(level)
        for node, name in zip(self.graph.outputs, output_names, strict=True):
            source = level.sources[node][0]
            # A fused node may give back a constant, which has no box of its own to mark.
            if isinstance(source, Source):
                box = self.boxes[source.box]
                lines = (*box.lines, f"⟶ {name_text(name)}")
                self.boxes[box.id] = replace(box, lines=lines, is_output=True)
        self._move_parameters()

    def _move_parameters(self) -> None:
        """Draw a parameter made outside of scopes in the scope that alone reads it, of its part."""
        readers: dict[str, list[Box]] = {}
        for edge in self.edges:
            tail, head = self.boxes[edge.tail], self.boxes[edge.head]
            if tail.kind == "variable" and part_of(tail) == part_of(head):
                readers.setdefault(tail.id, []).append(head)
        for id, heads in readers.items():
            own = self.boxes[id].regions
            common = shared(b.regions for b in heads)
            around = tuple(takewhile(lambda r: r.kind != "fused", common))
            if around[: len(own)] == own:
                self.boxes[id] = replace(self.boxes[id], regions=around)

    def summary(self) -> str:
        counts = [
            f"{sum(self.parts[n] == part for n in self.graph.nodes)} {title}"
            for part, title in self.titles.items()
        ]
        inputs = ", ".join(name_text(str(n.name)) for n in self.graph.inputs[:20])
        split = f" ({', '.join(counts)})" if len(counts) > 1 else ""
        return (
            f"A graph of {len(self.graph)} nodes{split}, from the inputs {inputs or 'none'} to "
            f"{len(self.graph.outputs)} outputs. Arrows go from a value to where it is used."
        )

    def _draw_all(self, level: Level) -> None:
        graph, sources = level.graph, level.sources
        used = {x for node in graph.nodes for x in node.inputs}.difference(graph.outputs)
        for node in graph.nodes:
            if node in sources:
                continue
            value = constant_value(node)
            inner = node.inner_graph
            results = sources[node.inputs[0]] if node.inputs else []
            if value is not None and value.ndim == 0 and node in used:
                sources[node] = [str(value[()])]
                level.names[node] = str(value[()])
            elif node.op.of_several and len(results) == len(types_of(node.inputs[0].type)):
                sources[node] = [results[node.attr("index")]]
            elif inner is not None and self.expand:
                self._draw_inside(level, node, inner)
            elif self.loops and (bodies := bodies_of(node)):
                self._draw_bodies(level, node, bodies)
            else:
                self._draw_box(level, node, inner)

    def _draw_inside(self, level: Level, node: Node, inner: GraphLike) -> None:
        """A node with a graph inside: its inputs are the operands, its outputs the results."""
        own = level.names[node]
        title = f"{own} = {node.op.name}: {self.labels.ops_text(inner)} in one pass"
        region = Region(own, "fused", title, self.labels.tooltip(level, node))
        inside = Level(
            inner,
            {n: self.within(own, i) for i, n in enumerate(inner.nodes)}
            | {p: level.names[x] for p, x in zip(inner.inputs, node.inputs, strict=True)},
            {p: level.sources[x] for p, x in zip(inner.inputs, node.inputs, strict=True)},
            (*level.path, node),
            (*self._around(level, node), region),
        )
        self.labels.given.update(
            (p, self.labels.called(level, x))
            for p, x in zip(inner.inputs, node.inputs, strict=True)
        )
        self._draw_all(inside)
        level.sources[node] = [inside.sources[y][0] for y in inner.outputs]

    def _draw_bodies(self, level: Level, node: Node, bodies: Sequence[Body]) -> None:
        """A loop or a choice: a frame with its bodies, and with what is carried step by step."""
        own = level.names[node]
        mirror = mirrored(node, level.graph.nodes)
        kind = "loop" if mirror is None else "mirror"
        title = title_of(node, level.names, mirror)
        region = Region(f"{own}_runs", kind, title, self.labels.tooltip(level, node))
        around = (*self._around(level, node), region)
        if (name := own_size(node)) is not None:
            said = (name, "steps, so many"), "a size that is computed"
            size = self.within(own, "size")
            self._add(size, "slice", *said, around)
            steps = node.inputs[0]
            self._connect(level.sources[steps][0], size, "", self._saved(level, steps, node))
        if len(bodies) == 1:
            level.sources[node] = self._draw_body(level, node, bodies[0], own, around)
            return
        sides: list[list[Operand]] = []
        for name, body in zip(("true", "false"), bodies, strict=True):
            side = self.within(own, name)
            frame = Region(side, "branch", f"if {name}")
            sides.append(self._draw_body(level, node, body, side, (*around, frame)))
        types = types_of(node.type)
        lines = (f"{own} = chosen", *(shortened(type_text(t), 48) for t in types))
        self._add(own, "test", lines, self.labels.tooltip(level, node), around)
        p = node.inputs[0]
        self._connect(level.sources[p][0], own, "if", self._saved(level, p, node))
        for source in chain.from_iterable(sides):
            self._connect(source, own)
        level.sources[node] = [Source(own, type_text(t)) for t in types]

    def _draw_body(
        self, level: Level, node: Node, body: Body, own: str, around: tuple[Region, ...]
    ) -> list[Operand]:
        """A body and the arrows from carry to carry; where each of the results is drawn."""
        graph, taken, end = body.graph, body.carries, body.carries + body.slices
        names = {n: self.within(own, i) for i, n in enumerate(graph.nodes)}
        inside = Level(graph, names, {}, (*level.path, node), around)
        for i, (x, given) in enumerate(zip(graph.inputs, body.operands, strict=True)):
            source = level.sources[given][0]
            if i >= end:
                inside.sources[x], names[x] = level.sources[given], level.names[given]
                self.labels.given[x] = self.labels.called(level, given)
                continue
            is_carry = i < taken
            called = f"carry{i}" if is_carry else f"{shown_name(given, level.names)}[t]"
            begins = [f"from {source}"] if isinstance(source, str) else []
            lines = (called, shortened(type_text(x.type), 48), *begins)
            said = f"{called} : {type_text(x.type)}, "
            said += "handed from step to step" if is_carry else "of which each step has its own"
            self._add(names[x], "carry" if is_carry else "slice", lines, said, around)
            self.labels.given[x] = called
            self._connect(source, names[x], "", self._saved(level, given, node))
            inside.sources[x] = [Source(names[x], type_text(x.type))]
        test = self.within(own, "test")
        if node.op.graphs and taken:
            self._add(test, "test", (test_text(node, level.names),), "", around)
            for i in tested(node):
                self._connect(inside.sources[graph.inputs[i]][0], test)
        self._draw_all(inside)
        results = [inside.sources[y][0] for y in graph.outputs]
        for x, y in zip(graph.inputs[:taken], results, strict=False):
            if isinstance(y, Source) and y.box != names[x]:
                self.edges.append(Edge(y.box, names[x], y.type, way=CARRY))
        types = types_of(node.type)
        if len(types) > len(results):  # the number of steps, before what they carry
            results.insert(0, Source(test, ""))
        return [
            Source(y.box, type_text(t)) if isinstance(y, Source) else y
            for y, t in zip(results, types, strict=True)
        ]

    def _add(
        self, id: str, kind: str, lines: tuple[str, ...], said: str, around: tuple[Region, ...]
    ) -> None:
        self.boxes[id] = Box(id, kind, lines, said or lines[0], around)

    def _connect(
        self, tail: Operand, head: str, operand: str = "", kept: tuple[Saved, Sizes] = ((), ())
    ) -> None:
        if isinstance(tail, Source):
            self.edges.append(Edge(tail.box, head, tail.type, operand, False, *kept))

    def _draw_box(self, level: Level, node: Node, inner: GraphLike | None) -> None:
        own = level.names[node]
        operands = [level.sources[x][0] for x in node.inputs]
        around = self._around(level, node)
        reads = [(level.names[x], name) for x, name in self.labels.read(level, node)]
        given = self.labels.given.get(node)
        context = self.parts[node], node.origin, around, operands, reads, given
        known = self.memo.boxes.get(own)
        # The ops inside of a node have parts of their own, by which its texts differ.
        if known is None or inner is not None or known[0] != context:
            known = self.memo.boxes[own] = context, *self._box(level, node, inner, operands)
        _, box, written, level.sources[node] = known
        self.boxes[own] = box
        drawn = [(i, x) for i, x in enumerate(operands) if isinstance(x, Source)]
        ordered = len({x.box for _, x in drawn}) > 1 and not node.op.commutative
        # A formula tells the order of operands, and the inside of a node what is read where.
        ordered &= inner is None and not node.bodies and not written
        if not ordered:
            drawn = list({node.inputs[i]: (i, x) for i, x in drawn[::-1]}.values())[::-1]
        for i, x in drawn:
            saved, sizes = self._saved(level, node.inputs[i], node)
            operand = str(i) if ordered else ""
            way = "in-place" if self.details.overwrites(node, node.inputs[i]) else ""
            way = "view" if node.op.view else way
            self.edges.append(Edge(x.box, own, x.type, operand, False, saved, sizes, way))

    def _box(
        self, level: Level, node: Node, inner: GraphLike | None, operands: Sequence[Operand]
    ) -> tuple[Box, bool, list[Operand]]:
        """The box of a node, whether it has a formula, and where each of its results is drawn."""
        own = level.names[node]
        is_plain = inner is None and not node.bodies and not is_leaf(node)
        written = self.labels.formula(level, node) if is_plain else ""
        box = Box(
            own,
            kind_of(node, self.parts[node], inner),
            tuple(self.labels.lines(level, node, operands, inner, written)),
            self.labels.tooltip(level, node),
            self._around(level, node),
            figure=self.details.figure(node),
            what="" if node.name is not None else call_text(node.op, operands),
        )
        return box, bool(written), [Source(own, type_text(t)) for t in types_of(node.type)]

    def _saved(self, level: Level, tail: Node, head: Node) -> tuple[Saved, Sizes]:
        """The residuals of a value for a gradient op, and the sizes of its dimensions."""
        value = self.kept.between((*level.path, tail), (*level.path, head))
        if value is None:
            return (), ()
        path, result = value
        made = path[-1].type
        type = made[result] if isinstance(made, tuple) else made
        sizes = self.details.sizes or {}
        own = {name: sizes[name] for name in sorted(type.names) if name in sizes}
        return ((value, nbytes(type)),), tuple(own.items())

    def _around(self, level: Level, node: Node) -> tuple[Region, ...]:
        if level.regions:
            return level.regions
        part, scope, memo = self.parts[node], tuple(scope_of(node)[:NESTED]), self.memo
        title = self.titles[part] if len(self.titles) > 1 else ""
        if (known := memo.around.get((part, title, scope))) is not None:
            return known
        regions = [Region(part, part, title)] if title else []
        for depth, name in enumerate(scope, 1):
            path = (part, *scope[:depth])
            # Ids are numbers, for a user's name can hold anything.
            id = memo.scopes.setdefault(path, f"scope{len(memo.scopes)}")
            layer = memo.layers.get(scope[:depth], "") if part == FORWARD else ""
            regions.append(Region(id, "scope", name_text(name), "", layer))
        return memo.around.setdefault((part, title, scope), tuple(regions))
