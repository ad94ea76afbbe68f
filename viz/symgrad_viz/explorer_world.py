"""The stages of a program as the page draws them: tables of boxes and edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from symgrad_viz.explorer_owners import Owners
from symgrad_viz.explorer_tables import Table, change, in_columns, named, numbers_text
from symgrad_viz.modules import layers_of
from symgrad_viz.phases import FORWARD, PARTS
from symgrad_viz.scene import CARRY, LEAVES, Edge
from symgrad_viz.sheet import Placed
from symgrad_viz.stages import Stages
from symgrad_viz.words import name_text

Json: TypeAlias = dict[str, Any]


class World:
    """The stages as they are drawn: boxes and edges in tables, each stage by what has changed.

    Places are given by the page, which knows what is open.
    """

    def __init__(self, stages: Stages, boxes: Table, texts: Table, owners: Owners) -> None:
        self.stages, self.texts, self.owners = stages, texts, owners
        self.boxes, self.placed, self.edges, self.levels = boxes, Table(), Table(), Table()
        self.titles: dict[str, str] = {}

    def to_json(self) -> Json:
        """The world in what JSON has."""
        stages: list[Json] = []
        seen: dict[tuple[int, int, int | None], int] = {}  # most of a stage is as it was before

        def number(placed: Placed) -> int:
            key = id(placed.box), placed.spot, placed.group
            if key not in seen:
                seen[key] = self._entered(placed)
            return seen[key]

        boxes: list[int] = []
        edges: list[int] = []
        for stage in self.stages.stages:
            spots = {p.box.id: p.spot for p in stage.boxes}
            boxes, old_boxes = list(map(number, stage.boxes)), boxes
            edges, old_edges = [self._edge(e, spots) for e in stage.edges], edges
            changes = {"boxes": change(old_boxes, boxes), "edges": change(old_edges, edges)}
            ghosts = list(map(number, stage.ghosts))
            stages.append(
                {
                    **changes,
                    "ghosts": numbers_text(ghosts),
                    "added": numbers_text(stage.added),
                    "left": stage.left,
                }
            )
        return {
            "titles": self.titles,
            "spots": 1 + max((spot for _, spot, _, _ in self.placed), default=-1),
            "levels": list(self.levels),
            "about": self._layers(),
            "stages": stages,
            "boxes": in_columns(named("box spot group level", self.placed)),
            "edges": in_columns(named("tail head carries operand carried", self.edges)),
        }

    def _layers(self) -> Json:
        """The layers that levels of the forward part are of, by their paths."""
        layers = layers_of(self.stages.elements.lineage.raw)
        told = {tuple(map(name_text, path)): text for path, text in layers.items()}
        found = {}
        for level in self.levels:
            part = level[: level[:1] == (FORWARD,)]
            scopes = level[len(part) :]
            for i in range(1, len(scopes) + 1):
                if (text := told.get(scopes[:i])) is not None:
                    found["\n".join((*part, *scopes[:i]))] = text
        return found

    def _edge(self, edge: Edge, spots: Mapping[str, int]) -> int:
        ends = spots[edge.tail], spots[edge.head]
        return self.edges[*ends, self.texts[edge.carries], edge.operand, int(edge.way == CARRY)]

    def _entered(self, placed: Placed) -> int:
        box, own = placed.box, f"n{placed.element} ="
        # Without its own name, what begins with it is the same text for many.
        call, first = (
            f"={t.removeprefix(own)}" if t.startswith(own) else f":{t}"
            for t in (box.tooltip.partition("\n")[0], box.lines[0])
        )
        shown = placed.element, box.kind, int(box.is_output), self.texts.pieces(first)
        lines = tuple(self.texts[line] for line in box.lines[1:])
        number = self.boxes[*shown, lines, self.texts.pieces(call)]
        return self.placed[number, placed.spot, placed.group, self._level(placed)]

    def _level(self, placed: Placed) -> int:
        """The part of a box, its scopes, and of an update those that the name of its owner says.

        What is in a group stays in its own scopes.
        """
        parts = [r for r in placed.box.regions if r.kind in PARTS]
        self.titles |= {r.kind: r.title for r in parts}
        if placed.box.kind in LEAVES:
            scopes = tuple(r.title for r in placed.box.regions if r.kind == "scope")
        else:
            scopes = self.stages.elements.scopes(placed.element)
        owner = self.owners.get(placed.element, ())
        return self.levels[(*(r.kind for r in parts), *scopes, *owner)]
