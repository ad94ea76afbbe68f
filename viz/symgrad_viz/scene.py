"""What a picture shows, before anything has a place: boxes, edges and the regions around them.

Every engine draws the same scene. Values that are used far from where they are computed are drawn
again, as a small *stub* beside each use: that keeps pictures of gradients readable, and it spares
the layout the long edges that take it minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from symgrad.ir.errors import RenderError
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, constant_value
from symgrad.ir.text import type_text
from symgrad_viz.parts import (
    BACKWARD,
    FORWARD,
    PARTS,
    UPDATE,
    inner_graph,
    nexts_of,
    part_titles,
    parts_of,
)
from symgrad_viz.words import (
    bytes_text,
    call_text,
    name_text,
    nbytes,
    printable,
    shortened,
    tooltip,
)

EXPANDED = 150  # graphs of up to so many nodes in all show what is inside fused nodes
REACH = 10  # an edge over more ranks than this is drawn as a stub
NESTED = 6  # scopes within scopes are drawn to this depth
LEAVES = ("placeholder", "variable", "constant")


@dataclass(frozen=True, slots=True)
class Region:
    """An area with a title: a part of the graph, a user's scope, or the inside of a fused node."""

    id: str
    kind: str
    title: str
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """One drawn node.

    `kind` names its look; `regions` are the areas that it lies in, outermost first. `figure`
    is the number by which it is coloured, if it is, and `heat` the step of the ramp for that.
    """

    id: str
    kind: str
    lines: tuple[str, ...]
    tooltip: str
    regions: tuple[Region, ...] = ()
    is_output: bool = False
    figure: float | None = None
    heat: int | None = None

    @property
    def classes(self) -> str:
        output = " is-output" if self.is_output else ""
        return f"is-{self.kind}{output}{'' if self.heat is None else f' heat{self.heat}'}"


@dataclass(frozen=True, slots=True)
class Edge:
    """What flows from `tail` to `head`.

    `carries` is its type; `operand` its place among the operands, where that matters. `is_saved`
    is what was computed by the forward part and is kept for the backward part; `nbytes` its size.
    """

    tail: str
    head: str
    carries: str
    operand: str = ""
    is_stub: bool = False
    is_saved: bool = False
    nbytes: Any = None

    @property
    def classes(self) -> str:
        return " ".join(["is-stub"] * self.is_stub + ["is-saved"] * self.is_saved)

    @property
    def tooltip(self) -> str:
        kept = ", kept for the backward part" if self.is_saved else ""
        return f"{self.tail.partition('_at_')[0]} → {self.head} : {self.carries}{kept}"


class Details:
    """What is known of nodes beyond the graph: nothing, here."""

    sizes: Mapping[str, int] | None = None

    def lines(self, node: Node) -> list[str]:
        """More lines for its tooltip."""
        return []

    def figure(self, node: Node) -> float | None:
        """The number by which it is coloured, if it is."""
        return None


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a picture shows. `summary` says the same in words, for readers who cannot see it.

    `note` says in a line what was left out or drawn together; `kept` is how many bytes the forward
    part keeps for the backward part; `key` explains colours: a title, and
    for each step of the ramp the numbers that it stands for.
    """

    title: str
    summary: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    note: str = ""
    kept: Any = None
    key: tuple[str, tuple[str, ...]] = ("", ())


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a value is drawn."""

    box: str
    type: str
    nbytes: Any = None


# A small constant is not drawn: it is written into the label of the op that takes it.
_Operand: TypeAlias = "_Source | str"


def scene_of(
    thing: Any,
    *,
    title: str | None = None,
    stubs: bool = True,
    expand: bool | None = None,
    names: Mapping[Node, str] | None = None,
    details: Details | None = None,
) -> Scene:
    """The scene of a graph, or of something that has one as its `.graph`.

    `stubs=False` draws every edge in full. `expand` says whether fused nodes show what is inside;
    None is: if that makes 150 nodes at most. `names` is what the nodes are called, each in its own
    way; None is: by their numbers. `details` tells more of each. Raises `RenderError` for anything
    else.
    """
    graph = graph_of(thing)
    if expand is None:
        inside = (inner_graph(n) for n in graph.nodes)
        expand = len(graph) + sum(len(g) for g in inside if g is not None) <= EXPANDED
    nexts = nexts_of(graph, getattr(thing, "output_names", ()))
    builder = _Builder(graph, expand, details or Details(), nexts)
    builder.draw(_output_names(thing, graph), names or _numbered(graph))
    boxes, edges = tuple(builder.boxes.values()), tuple(builder.edges)
    if stubs:
        boxes, edges = with_stubs(boxes, edges)
    given = f"a graph of {len(graph)} nodes" if thing is graph else f"what runs: {len(graph)} nodes"
    wanted = given if title is None else title
    return Scene(shortened(wanted, 120), builder.summary(), boxes, edges)


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


def _numbered(graph: Graph) -> dict[Node, str]:
    return {n: f"n{i}" for i, n in enumerate(graph.nodes)}


@dataclass(frozen=True, slots=True)
class _Level:
    """A graph that is being drawn: the whole one, or one inside a fused node.

    `names` is what each node is called in the texts; `sources` says where each of its results is
    drawn. `regions` is what lies around a fused node.
    """

    graph: Graph
    names: dict[Node, str]
    sources: dict[Node, list[_Operand]]
    regions: tuple[Region, ...] = ()


class _Builder:
    """Draws the nodes of a graph in order, one box or one region each."""

    def __init__(
        self, graph: Graph, expand: bool, details: Details, nexts: frozenset[Node]
    ) -> None:
        self.graph = graph
        self.expand = expand
        self.details = details
        self.parts = parts_of(graph, nexts)
        self.titles = part_titles(graph, self.parts)
        self.boxes: dict[str, Box] = {}
        self.edges: list[Edge] = []
        self.scopes: dict[tuple[str, ...], str] = {}

    def draw(self, output_names: Sequence[str], names: Mapping[Node, str]) -> None:
        level = _Level(self.graph, dict(names), {})
        self._draw_all(level)
        for node, name in zip(self.graph.outputs, output_names, strict=True):
            source = level.sources[node][0]
            # A fused node may give back a constant, which has no box of its own to mark.
            if isinstance(source, _Source):
                box = self.boxes[source.box]
                lines = (*box.lines, f"⟶ {name_text(name)}")
                self.boxes[box.id] = replace(box, lines=lines, is_output=True)

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

    def _draw_all(self, level: _Level) -> None:
        graph, sources = level.graph, level.sources
        used = {x for node in graph.nodes for x in node.inputs}.difference(graph.outputs)
        for node in graph.nodes:
            if node in sources:
                continue
            value = constant_value(node)
            inner = inner_graph(node)
            results = sources[node.inputs[0]] if node.inputs else []
            if value is not None and value.ndim == 0 and node in used:
                sources[node] = [str(value[()])]
                level.names[node] = str(value[()])
            elif node.op.name == "item" and len(results) > 1:
                sources[node] = [results[dict(node.attrs)["index"]]]
            elif inner is not None and self.expand:
                self._draw_inside(level, node, inner)
            else:
                self._draw_box(level, node, inner)

    def _draw_inside(self, level: _Level, node: Node, inner: Graph) -> None:
        """A node with a graph inside: its inputs are the operands, its outputs the results."""
        own = level.names[node]
        computed = [n for n in inner.nodes if n.op.name not in LEAVES]
        title = f"{own} = {node.op.name}: {len(computed)} ops in one pass"
        region = Region(own, "fused", title, self._tooltip(level, node))
        inside = _Level(
            inner,
            {n: f"{own}_{i}" for i, n in enumerate(inner.nodes)}
            | {p: level.names[x] for p, x in zip(inner.inputs, node.inputs, strict=True)},
            {p: level.sources[x] for p, x in zip(inner.inputs, node.inputs, strict=True)},
            (*self._around(level, node), region),
        )
        self._draw_all(inside)
        level.sources[node] = [inside.sources[y][0] for y in inner.outputs]

    def _draw_box(self, level: _Level, node: Node, inner: Graph | None) -> None:
        own = level.names[node]
        operands = [level.sources[x][0] for x in node.inputs]
        self.boxes[own] = Box(
            own,
            _kind(node, self.parts[node], inner),
            tuple(_lines(node, own, operands, inner)),
            self._tooltip(level, node),
            self._around(level, node),
            figure=self.details.figure(node),
        )
        types = node.type if isinstance(node.type, tuple) else (node.type,)
        sizes = self.details.sizes
        level.sources[node] = [_Source(own, type_text(t), nbytes(t, sizes)) for t in types]
        drawn = [(i, x) for i, x in enumerate(operands) if isinstance(x, _Source)]
        ordered = len({x.box for _, x in drawn}) > 1 and not node.op.commutative
        for i, x in drawn:
            operand = str(i) if ordered else ""
            self.edges.append(Edge(x.box, own, x.type, operand, nbytes=x.nbytes))

    def _tooltip(self, level: _Level, node: Node) -> str:
        return "\n".join((tooltip(node, level.names), *self.details.lines(node)))

    def _around(self, level: _Level, node: Node) -> tuple[Region, ...]:
        if level.regions:
            return level.regions
        part = self.parts[node]
        regions = [Region(part, part, self.titles[part])] if len(self.titles) > 1 else []
        scope = node.origin.scope[:NESTED]
        for depth, name in enumerate(scope, 1):
            path = (part, *scope[:depth])
            # Ids are numbers, for a user's name can hold anything.
            id = self.scopes.setdefault(path, f"scope{len(self.scopes)}")
            regions.append(Region(id, "scope", name_text(name)))
        return tuple(regions)


def _lines(
    node: Node, own: str, operands: Sequence[_Operand], inner: Graph | None
) -> Iterator[str]:
    """The label of a box, line by line: what it is, its type, and the last rewrite that made it."""
    value = constant_value(node)
    if node.name is not None:
        yield name_text(node.name)
    elif value is None:
        index = f" {dict(node.attrs)['index']}" if node.op.name == "item" else ""
        yield f"{own} = {shortened(call_text(node.op, operands), 48)}{index}"
    elif value.size <= 6:
        yield shortened(" ".join(str(value).split()), 40)
    else:
        yield f"{own} = constant"
    yield shortened(type_text(node.type), 48)
    if inner is not None:
        ops = [n.op.name for n in inner.nodes if n.op.name not in LEAVES]
        yield shortened(" + ".join(dict.fromkeys(ops)), 48)
    rules = [m for m in node.origin.made_by if not m.startswith(("vjp(", "jvp("))]
    if rules:
        more = f" +{len(rules) - 1}" if len(rules) > 1 else ""
        yield f"⟵ {shortened(rules[-1], 40)}{more}"


def _kind(node: Node, part: str, inner: Graph | None) -> str:
    if node.op.name in LEAVES:
        return node.op.name
    if inner is not None:
        return "fused"
    return {FORWARD: "op", BACKWARD: "backward", UPDATE: "update"}.get(part, "op")


def with_stubs(
    boxes: tuple[Box, ...], edges: tuple[Edge, ...]
) -> tuple[tuple[Box, ...], tuple[Edge, ...]]:
    """The same scene with a stub beside each use that is far from its value.

    Far is: in another part of the graph, or more than `REACH` ranks away.
    """
    by_id = {b.id: b for b in boxes}
    near = [part_of(by_id[e.tail]) == part_of(by_id[e.head]) for e in edges]
    rank = ranks(boxes, [e for e, is_near in zip(edges, near, strict=True) if is_near])
    before: dict[str, dict[str, Box]] = {}
    result = []
    for edge, is_near in zip(edges, near, strict=True):
        if is_near and rank[edge.head] - rank[edge.tail] <= REACH:
            result.append(edge)
            continue
        tail, head = by_id[edge.tail], by_id[edge.head]
        saved = is_saved(edge, tail, head)
        kept = (f"kept: {bytes_text(edge.nbytes)}",) if saved else ()
        lines = (tail.lines[0], *([edge.carries] if edge.carries else tail.lines[1:2]), *kept)
        stub = Box(f"{tail.id}_at_{head.id}", "stub", lines, tail.tooltip, head.regions)
        before.setdefault(head.id, {})[stub.id] = stub
        result.append(replace(edge, tail=stub.id, is_stub=True, is_saved=saved))
    drawn = [b for box in boxes for b in (*before.get(box.id, {}).values(), box)]
    return tuple(drawn), tuple(result)


def is_saved(edge: Edge, tail: Box, head: Box) -> bool:
    """Whether an edge is of what the forward part computes and keeps for the backward part."""
    crosses = (part_of(tail), part_of(head)) == (FORWARD, BACKWARD)
    return crosses and tail.kind not in LEAVES and edge.nbytes is not None


def part_of(box: Box) -> str:
    """The part of the picture that a box lies in; empty where there is but one."""
    return next((r.kind for r in box.regions if r.kind in PARTS), "")


def ranks(boxes: Sequence[Box], edges: Sequence[Edge]) -> dict[str, int]:
    """How far each box lies below the top: below all that it uses, and not far above its uses.

    The boxes come in an order in which they can be computed.
    """
    into: dict[str, list[str]] = {}
    out: dict[str, list[str]] = {}
    for edge in edges:
        into.setdefault(edge.head, []).append(edge.tail)
        out.setdefault(edge.tail, []).append(edge.head)
    rank: dict[str, int] = {}
    for box in boxes:
        rank[box.id] = max((rank[t] + 1 for t in into.get(box.id, ())), default=0)
    for box in reversed(boxes):
        above = into.get(box.id, ())
        # Moving such a box down makes no more edges longer than it makes shorter.
        movable = len(above) < 2 or all(len(out[t]) == 1 for t in above)
        if movable and box.id in out:
            rank[box.id] = min(rank[h] for h in out[box.id]) - 1
    return rank
