"""The stages of a program on one sheet: every node keeps its place from pass to pass.

What all stages show together is laid out once. A node that was rewritten stands where the node
stood that it replaced, so that of two stages only that differs which the pass has changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symgrad.ir.cached import cached_property
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.rewrite.lineage import Lineage
from symgrad_viz.builder import Memo, scene_of
from symgrad_viz.closing import Closing, closing_of
from symgrad_viz.elements import Elements, beside
from symgrad_viz.formulas import names_in, names_of_values
from symgrad_viz.groups import computed, group
from symgrad_viz.level import Details
from symgrad_viz.scene import LEAVES, Box, Edge, Scene, part_of
from symgrad_viz.sheet import Placed, Sheet, Stage, laid_out

_FRAMES = ("fused", "loop", "mirror")  # around a group: of what is inside of one node


@dataclass(frozen=True)
class _Drawn:
    """The interface that `scene_of` asks for."""

    graph: Graph
    output_names: tuple[str, ...]


@dataclass(frozen=True)
class _View:
    """A graph, the numbers and names of its nodes, and its scene before anything is closed.

    `elements` are all nodes by their numbers; `inside` gives the name of what is in a
    group or body.
    """

    graph: Graph
    names: Mapping[Node, str]
    scene: Scene
    elements: Mapping[int, Node]
    inside: Mapping[str, str]

    @property
    def nodes(self) -> dict[str, Node]:
        return {name: node for node, name in self.names.items()}


class Stages:
    """The stages of a program, the first as it was written, and the sheet that they lie on."""

    def __init__(
        self,
        graphs: Sequence[Graph],
        elements: Elements,
        output_names: tuple[str, ...],
        *,
        opened: bool = False,
        most: int | None = None,
        details: Details | None = None,
    ) -> None:
        """Draw some graphs of one lineage.

        `opened` draws what is inside fused nodes; `details` tells more of nodes. If a stage has
        more than `most` boxes, as much of it is closed as must be, so that what is in a scope is
        one box.
        """
        self.elements, self.opened, self.details = elements, opened, details
        # Of each closed box, by part and title: its number, after those of all elements, and the
        # elements that were ever in it.
        self.groups: dict[tuple[str, str], tuple[int, set[int]]] = {}
        self._titles: dict[str, str] = {}  # of the leaves, which stay in the box that they came to
        self._members: dict[str, list[Box]] = {}  # of each closed box, in the stage drawn last
        self._groups = _rewritten_together(elements.lineage)
        self._spot_of: dict[tuple[int, str], int] = {}
        self._count = 0
        self._memo, self._names = Memo(graphs[0]), names_of_values(elements.lineage)
        views = {id(graph): self._view(_Drawn(graph, output_names)) for graph in graphs}
        drawn = [(view.scene, view.nodes) for view in views.values()]
        self.closing = None if most is None else closing_of(drawn, most)
        self.stages: list[Stage] = []
        for i, graph in enumerate(graphs):
            if i and graph is graphs[i - 1]:
                self.stages.append(Stage(self.stages[-1].boxes, self.stages[-1].edges))
            else:
                self.stages.append(self._stage(views[id(graph)]))

    @cached_property
    def sheet(self) -> Sheet:
        """The places of all that any stage shows."""
        return laid_out(self.stages)

    def tell_buffers(self, buffers: Mapping[str, str]) -> None:
        """Write into the boxes of what runs the names of their arrays, before it has places."""
        for i, stage in reversed(list(enumerate(self.stages))):
            boxes = (replace(p, box=beside(p.box, buffers)) for p in stage.boxes)
            self.stages[i] = replace(stage, boxes=tuple(boxes))
            if stage.added or stage.left:  # those after it show the same
                return

    def _view(self, drawn: _Drawn) -> _View:
        key = id(drawn.graph), self.opened
        views: dict[tuple[int, bool], _View] = self.elements.views
        if key in views:
            return views[key]
        numbered = self.elements.numbered(drawn.graph)
        names = numbered.names
        scene = scene_of(
            drawn,
            stubs=False,
            expand=self.opened,
            numbered=numbered,
            details=self.details,
            given=names_in(self.elements.lineage, drawn.graph, self._names),
            memo=self._memo,
        )
        items = {names[n] for n in drawn.graph.nodes if n.op.of_several}
        elements = numbered.elements
        if not self.opened:
            elements = {int(name[1:]): node for node, name in names.items()}
        view = _View(drawn.graph, names, _without_items(scene, items), elements, numbered.inside)
        return views.setdefault(key, view)

    def _stage(self, view: _View) -> Stage:
        before = self.stages[-1].boxes if self.stages else ()
        scene, groups, changed = view.scene, dict[str, int](), set[str]()
        if self.opened:
            scene, groups = _in_groups(scene, view, before)
        if self.closing is not None:
            scene, changed = self._closed(scene, self.closing, view.nodes)
        spots = self._spots(view, scene.boxes, before)
        boxes = tuple(Placed(int(b.id[1:]), spots[b.id], b, groups.get(b.id)) for b in scene.boxes)
        if not self.stages:
            return Stage(boxes, scene.edges)
        here, there = ({p.element for p in ps} for ps in (boxes, before))
        # A closed box stays; it is marked if what is in it has changed.
        there -= {int(id[1:]) for id in changed}
        taken = set(spots.values())
        gone = [p for p in before if p.element not in here]
        return Stage(
            boxes,
            scene.edges,
            tuple(p for p in gone if p.spot not in taken),
            tuple(p.element for p in boxes if p.element not in there),
            len(gone),
        )

    def _closed(
        self, scene: Scene, closing: Closing, nodes: Mapping[str, Node]
    ) -> tuple[Scene, set[str]]:
        """The scene with one box for all that is closed, and which of these boxes have changed."""
        titles = closing.titles(scene, nodes)
        members: dict[str, list[Box]] = defaultdict(list)
        stands_for: dict[str, str] = {}
        for box in scene.boxes:
            title = titles[box.id]
            if box.kind in LEAVES:
                title = self._titles.setdefault(box.id, title)
            if not title:
                stands_for[box.id] = box.id
                continue
            new = len(self.elements.nodes) + len(self.groups), set[int]()
            number, inside = self.groups.setdefault((part_of(box), title), new)
            inside.add(int(box.id[1:]))
            stands_for[box.id] = f"n{number}"
            members[f"n{number}"].append(box)
        boxes = [b for b in scene.boxes if stands_for[b.id] == b.id]
        names = {f"n{number}": name for (_, name), (number, _) in self.groups.items()}
        boxes += [
            group(id, closing.label(names[id], inside), inside) for id, inside in members.items()
        ]
        changed = {
            id
            for id, inside in self._members.items()
            if id in members and _first_lines(inside) != _first_lines(members[id])
        }
        self._members = members
        edges: dict[tuple[str, str], Edge] = {}
        for edge in scene.edges:
            pair = stands_for[edge.tail], stands_for[edge.head]
            if pair[0] != pair[1]:
                operand = edge.operand if pair[1] == edge.head else ""
                edges.setdefault(pair, Edge(*pair, edge.carries, operand))
        return replace(scene, boxes=tuple(boxes), edges=tuple(edges.values())), changed

    def _spots(self, view: _View, boxes: Sequence[Box], before: Sequence[Placed]) -> dict[str, int]:
        """A spot for each box: its own, else that of one which it replaced, else a new one."""
        values: dict[int, list[Node]] = {}
        for number, node in view.elements.items():
            values[number] = [self.elements.lineage.value(node)]
        for node in view.graph.nodes:
            # A node with several results is none of their values itself.
            if node.op.of_several:
                of = values[int(view.names[node.inputs[0]][1:])]
                of.append(self.elements.lineage.value(node))
        present = set(view.elements)
        vacated: dict[Any, list[int]] = defaultdict(list)
        for placed in before:
            if placed.element not in present:
                for key in self._roles(placed.element, part_of(placed.box)):
                    vacated[key].append(placed.spot)
        found: dict[str, int] = {}
        taken: set[int] = set()
        for box in boxes:
            spot = self._spot_of.get((int(box.id[1:]), part_of(box)))
            if spot is not None:
                found[box.id] = spot
                taken.add(spot)
        # First those that compute the same value, then those that do the same for another.
        for by_role in (False, True):
            for box in boxes:
                number, part = int(box.id[1:]), part_of(box)
                keys = [(v, part) for v in values.get(number, ())]
                if by_role:
                    keys = self._roles(number, part)[1:]
                free = (s for key in keys for s in vacated[key] if s not in taken)
                spot = found.get(box.id, next(free, self._count if by_role else -1))
                if spot >= 0 and box.id not in found:
                    self._count += spot == self._count
                    found[box.id] = self._spot_of[number, part] = spot
                    taken.add(spot)
        return found

    def _roles(self, number: int, part: str) -> list[Any]:
        """The key of nodes that may take each other's places: the value; the op, in a rewrite."""
        if number >= len(self.elements.nodes):
            return []
        node = self.elements.nodes[number]
        group = self._groups.get(self.elements.lineage.form(node))
        return [(self.elements.value(number), part), (group, node.op, node.type, part)][
            : 1 if group is None else 2
        ]


def _in_groups(scene: Scene, view: _View, before: Sequence[Placed]) -> tuple[Scene, dict[str, int]]:
    """The scene, and the number of its group for each box inside one.

    A node that stood outside before stays on its side.
    """
    inside = set(view.inside.values())
    sides = {f"n{p.element}": p.box.regions[:1] for p in before}
    boxes, groups = [], {}
    for box in scene.boxes:
        around = next((r.id for r in box.regions if r.kind in _FRAMES), None)
        if around is not None and (box.id in inside or box.kind == "test"):
            groups[box.id] = int(around[1:].partition("_")[0])
        if box.id in inside and box.id in sides:
            box = replace(box, regions=sides[box.id])
        boxes.append(box)
    return replace(scene, boxes=tuple(boxes)), groups


def _first_lines(inside: Sequence[Box]) -> list[str]:
    return [b.lines[0] for b in computed(inside)]


def _rewritten_together(lineage: Lineage) -> dict[Any, Any]:
    """For each form that a rewrite took or made, one that stands for all that hang together."""
    parent: dict[Any, Any] = {}

    def find(form: Any) -> Any:
        while (up := parent.setdefault(form, form)) != form:
            parent[form] = form = parent[up]
        return form

    columns = (lineage.before, lineage.swallowed, lineage.after, lineage.made)
    for before, swallowed, after, made in zip(*columns, strict=True):
        for form in (*swallowed, after, *made):
            parent[find(form)] = find(before)
    return {form: find(form) for form in parent}


def _without_items(scene: Scene, items: set[str]) -> Scene:
    """The scene without boxes that only pick a result of a fused node, which its insides tell."""
    boxes = {b.id: b for b in scene.boxes}
    picks = {
        e.head: e.tail for e in scene.edges if e.head in items and boxes[e.tail].kind == "fused"
    }
    for item, of in picks.items():
        if boxes[item].is_output:
            lines = (*boxes[of].lines, boxes[item].lines[-1])
            boxes[of] = replace(boxes[of], lines=lines, is_output=True)
        del boxes[item]
    edges = [
        replace(e, tail=picks[e.tail]) if e.tail in picks else e
        for e in scene.edges
        if e.head in boxes
    ]
    return replace(scene, boxes=tuple(boxes.values()), edges=tuple(edges))
