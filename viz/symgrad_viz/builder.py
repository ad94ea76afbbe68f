"""From a graph to its scene: a box for each node, an edge for each value that is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
    times_text,
    title_of,
)
from symgrad_viz.formulas import formula, given_names, is_aside
from symgrad_viz.level import Details, Level, Numbered, Operand, Source, Within, numbered_of
from symgrad_viz.modules import layers_of
from symgrad_viz.phases import (
    BACKWARD,
    FORWARD,
    PARTS,
    UPDATE,
    nexts_of,
    part_titles,
    parts_of,
)
from symgrad_viz.residuals import Kept
from symgrad_viz.scene import CARRY, Box, Edge, Region, Saved, Scene, Sizes, part_of, with_stubs
from symgrad_viz.scopes import kind_of, scope_of, shared, spanned
from symgrad_viz.words import (
    call_line,
    call_text,
    counted,
    name_text,
    nbytes,
    printable,
    shortened,
    title_text,
    tooltip,
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
) -> Scene:
    """The scene of a graph, or of something that has one as its `.graph`.

    `stubs=False` draws every edge in full. `expand` says whether fused nodes, loops and choices
    show what is inside; None is: if that makes 150 nodes at most; `loops=False` leaves loops and
    choices closed. `names` is what the nodes are called, each in its own way; None is: by their
    numbers. `given` are the user's names; None is: those of the graph's own lines. `details` tells
    more of each. Raises `RenderError` for anything else.
    """
    graph = graph_of(thing)
    if expand is None:
        expand = count(graph) <= EXPANDED
    nexts = nexts_of(graph, getattr(thing, "output_names", ()))
    builder = _Builder(graph, expand, expand and loops, details or Details(), nexts)
    builder.given |= given_names(graph) if given is None else given
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


class _Builder:
    """Draws the nodes of a graph in order, one box or one region each."""

    def __init__(
        self,
        graph: Graph,
        expand: bool,
        loops: bool,
        details: Details,
        nexts: frozenset[Node],
    ) -> None:
        self.graph = graph
        self.expand, self.loops = expand, loops
        self.details = details
        self.parts = parts_of(graph, nexts)
        self.kept = Kept(graph, self.parts)
        self.titles = part_titles(graph, self.parts)
        self.boxes: dict[str, Box] = {}
        self.edges: list[Edge] = []
        self.scopes: dict[tuple[str, ...], str] = {}
        self.given: dict[Node, str] = {}
        self.within = Within({})
        self.layers = layers_of(graph)

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
        title = f"{own} = {node.op.name}: {self._ops_text(inner)} in one pass"
        region = Region(own, "fused", title, self._tooltip(level, node))
        inside = Level(
            inner,
            {n: self.within(own, i) for i, n in enumerate(inner.nodes)}
            | {p: level.names[x] for p, x in zip(inner.inputs, node.inputs, strict=True)},
            {p: level.sources[x] for p, x in zip(inner.inputs, node.inputs, strict=True)},
            (*level.path, node),
            (*self._around(level, node), region),
        )
        self.given.update(
            (p, self._called(level, x)) for p, x in zip(inner.inputs, node.inputs, strict=True)
        )
        self._draw_all(inside)
        level.sources[node] = [inside.sources[y][0] for y in inner.outputs]

    def _draw_bodies(self, level: Level, node: Node, bodies: Sequence[Body]) -> None:
        """A loop or a choice: a frame with its bodies, and with what is carried step by step."""
        own = level.names[node]
        mirror = mirrored(node, level.graph.nodes)
        kind = "loop" if mirror is None else "mirror"
        title = title_of(node, level.names, mirror)
        region = Region(f"{own}_runs", kind, title, self._tooltip(level, node))
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
        self._add(own, "test", lines, self._tooltip(level, node), around)
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
                self.given[x] = self._called(level, given)
                continue
            is_carry = i < taken
            called = f"carry{i}" if is_carry else f"{shown_name(given, level.names)}[t]"
            begins = [f"from {source}"] if isinstance(source, str) else []
            lines = (called, shortened(type_text(x.type), 48), *begins)
            said = f"{called} : {type_text(x.type)}, "
            said += "handed from step to step" if is_carry else "of which each step has its own"
            self._add(names[x], "carry" if is_carry else "slice", lines, said, around)
            self.given[x] = called
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

    def _ops_text(self, inner: GraphLike) -> str:
        """How many ops are inside, and where they belong if that is not one part."""
        counts = Counter(self.parts[n] for n in inner.nodes if not is_leaf(n))
        if len(counts) == 1:
            return counted(counts.total(), "op")
        derived = "tangent" if self.titles.get(BACKWARD) == "tangents" else "gradient"
        called = {FORWARD: "forward", BACKWARD: derived, UPDATE: "update"}
        *most, last = (counted(counts[p], f"{called[p]} op") for p in PARTS if p in counts)
        return " and ".join((*(text.rpartition(" ")[0] for text in most), last))

    def _draw_box(self, level: Level, node: Node, inner: GraphLike | None) -> None:
        own = level.names[node]
        operands = [level.sources[x][0] for x in node.inputs]
        written = "" if inner or node.bodies or is_leaf(node) else self._formula(level, node)
        self.boxes[own] = Box(
            own,
            kind_of(node, self.parts[node], inner),
            tuple(self._lines(level, node, operands, inner, written)),
            self._tooltip(level, node),
            self._around(level, node),
            figure=self.details.figure(node),
            what="" if node.name is not None else call_text(node.op, operands),
        )
        level.sources[node] = [Source(own, type_text(t)) for t in types_of(node.type)]
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

    def _lines(
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
                yield self._ops_text(inner)
            within = spanned(inner)
            if len(within) > 1:
                yield shortened(f"in {', '.join(within)}", 48)
        rules = [m.name for m in node.origin.made_by if not m.is_gradient]
        if rules:
            more = f" +{len(rules) - 1}" if len(rules) > 1 else ""
            yield f"⟵ {shortened(rules[-1], 40)}{more}"

    def _formula(self, level: Level, node: Node) -> str:
        """The node as a person writes it, or nothing if that is long."""

        def named(x: Node) -> str | None:
            return None if is_aside(x) else self._called(level, x)

        written = formula(node, named)
        return written if len(written) <= WRITTEN else ""

    def _called(self, level: Level, x: Node) -> str:
        """The user's name of an operand, or the number of the box that it is drawn in."""
        found = self.given.get(x) or x.name
        source = level.sources.get(x, [""])[0]
        if found is not None or not isinstance(source, Source):
            return found or level.names[x]
        closed = x.op.of_several and source.box == level.names[x.inputs[0]]
        box = self.boxes[source.box].lines[0].partition(" = ")[0]
        return f"{box}[{x.attr('index')}]" if closed else box

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
        return ((value, nbytes(type, own)),), tuple(own.items())

    def _tooltip(self, level: Level, node: Node) -> str:
        if self.details.is_brief:
            return call_line(node, level.names)
        return "\n".join((tooltip(node, level.names), *self.details.lines(node)))

    def _around(self, level: Level, node: Node) -> tuple[Region, ...]:
        if level.regions:
            return level.regions
        part = self.parts[node]
        regions = [Region(part, part, self.titles[part])] if len(self.titles) > 1 else []
        scope = scope_of(node)[:NESTED]
        for depth, name in enumerate(scope, 1):
            path = (part, *scope[:depth])
            # Ids are numbers, for a user's name can hold anything.
            id = self.scopes.setdefault(path, f"scope{len(self.scopes)}")
            layer = self.layers.get(tuple(scope[:depth]), "") if part == FORWARD else ""
            regions.append(Region(id, "scope", name_text(name), "", layer))
        return tuple(regions)
