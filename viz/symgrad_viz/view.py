"""From what is to be drawn to the scene that is drawn: details, colours, what is drawn together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from symgrad.ir.node import Node
from symgrad.rewrite.trace import reason_text
from symgrad.runtime.inspect.profile import Profile
from symgrad.runtime.program import Program
from symgrad_viz.builder import graph_of, scene_of
from symgrad_viz.bundles import MOST as MOST_STUBS
from symgrad_viz.bundles import SHOWN, bundles, with_few_leaves, with_few_stubs
from symgrad_viz.closing import QUOTE, closing_of
from symgrad_viz.collapse import collapsed
from symgrad_viz.columns import ROWS, in_columns, width_in_columns
from symgrad_viz.elements import Elements, beside
from symgrad_viz.figures import HEATS, STEPS, Figures, figure_text, figures_of, heat
from symgrad_viz.formulas import names_in
from symgrad_viz.groups import shut
from symgrad_viz.level import Details, Numbered, numbered_of
from symgrad_viz.scene import Box, Scene, saved_text, with_stubs
from symgrad_viz.words import shortened

MOST = 150  # of more boxes those that are alike are drawn once, and scopes are closed
WIDEST = 4300.0  # points, of a picture in columns
MOST_BOXES = 1500  # above it the picture points at the explorer
TOLD = 60  # the description of a smaller graph has all its text
DETAILED = 1500  # of larger graphs no figures are found unless they are asked for


class _Details(Details):
    """Facts from the figures and the trace of a program."""

    def __init__(self, figures: Figures, thing: Any, color_by: str | None) -> None:
        self.sizes = figures.sizes or None
        self.figures = figures
        fired = thing.trace.fired if isinstance(thing, Program) else ()
        self.reasons = {f.rule.name: f.rule for f in fired}
        self.numbers = figures.of(color_by) if color_by else {}

    def lines(self, node: Node) -> list[str]:
        """Why the last rewrite made it, and its figures."""
        rule = self.reasons.get(str(node.origin.made_by[-1])) if node.origin.made_by else None
        why = [] if rule is None else [f"{rule.name}: {shortened(reason_text(rule))}"]
        return [*why, *self.figures.lines(node)]

    def figure(self, node: Node) -> float | None:
        """The number by which it is coloured."""
        return self.numbers.get(node)

    def overwrites(self, node: Node, operand: Node) -> bool:
        """Whether the plan lets its result take the place of an operand."""
        return operand in self.figures.in_place.get(node, ())


def _heated(scene: Scene, color_by: str, at: str) -> Scene:
    """The scene with its boxes coloured by their figures, and the key to the colours."""
    most = max((b.figure for b in scene.boxes if b.figure is not None), default=0.0)
    boxes = tuple(
        b if b.figure is None else replace(b, heat=heat(b.figure, most)) for b in scene.boxes
    )
    bounds = (most * (i + 1) / STEPS for i in range(STEPS))
    steps = tuple(f"≤ {figure_text(color_by, b)}" for b in bounds)
    return replace(scene, boxes=boxes, key=(f"{HEATS[color_by]}{at}", steps))


def view_of(
    thing: Any,
    *,
    title: str | None = None,
    stubs: bool = True,
    expand: bool | None = None,
    color_by: str | None = None,
    profile: Profile | None = None,
    collapse: bool | None = None,
    most: int = MOST,
    rows: int = ROWS,
) -> Scene:
    """The scene of a graph or program as it is drawn; the options are those of `draw`.

    About `most` boxes are drawn, and so many `rows` below each other.
    """
    graph = graph_of(thing)
    small = len(graph) <= DETAILED or color_by is not None or profile is not None
    figures = figures_of(thing, graph, profile, color_by) if small else Figures()
    details = _Details(figures, thing, color_by)
    given, numbered, buffers = None, None, dict[str, str]()
    if isinstance(thing, Program):
        elements = Elements.of(thing)
        numbered = elements.numbered(graph)
        if small:
            given = names_in(elements.lineage, graph)
        if figures.plan is not None:
            buffers = {f"n{i}": name for i, name in elements.buffers(figures.plan).items()}
    scene = scene_of(
        thing,
        title=title,
        stubs=False,
        expand=expand,
        numbered=numbered,
        details=details,
        given=given,
    )
    written = {b.id: b.lines for b in scene.boxes}
    scene = replace(scene, kept=saved_text(scene.edges))
    if collapse is not False:
        owners = numbered_of(graph) if numbered is None else numbered
        scene = _fitted(scene, owners, 0 if collapse else most, most)
    # Boxes that stand for several have several buffers.
    own = (beside(b, buffers) if b.lines == written.get(b.id) else b for b in scene.boxes)
    scene = replace(scene, boxes=tuple(own))
    if len(graph) <= TOLD:
        lines = graph.text(origins=False).splitlines()
        notes = "\n".join(shortened(line) for line in lines)
        scene = replace(scene, summary=f"{scene.summary}\n{notes}\n")
    if color_by is not None:
        scene = _heated(scene, color_by, figures.at)
    if len(scene.boxes) > MOST_BOXES:
        more = f"{len(scene.boxes):,} nodes are much for one picture: program.explore('page.html')."
        scene = replace(scene, note=f"{scene.note} {more}".strip())
    if stubs:
        boxes, columns = in_columns(scene.boxes, scene.edges, rows)
        boxes, edges = with_stubs(boxes, scene.edges, columns)
        boxes, edges = with_few_stubs(boxes, edges, SHOWN if scene.note else MOST_STUBS)
        boxes, edges = with_few_leaves(boxes, edges)
        scene = replace(scene, boxes=boxes, edges=edges)
    return scene


def _is_narrow(scene: Scene) -> bool:
    """Whether a scene without scopes fits a picture in columns."""
    few = len(scene.boxes) < MOST_BOXES
    return few and width_in_columns(scene.boxes, scene.edges, ROWS) <= WIDEST


def _fitted(scene: Scene, graph: Numbered, enough: int, most: int) -> Scene:
    """The scene with as much drawn once, and then closed, as lets `most` boxes be left."""
    nodes = {name: node for node, name in graph.names.items()}
    nodes |= {name: nodes[way.partition("_")[0]] for way, name in graph.inside.items()}

    def of(box: Box) -> Node:
        return nodes[box.id.partition("_")[0]]

    def place(box: Box) -> object:
        node = of(box)
        return None if node.origin.is_backward else node.origin.nearest

    scene = collapsed(scene, enough, place)
    apart = [b for many in bundles(scene.boxes, scene.edges).values() for b in many]
    scoped = any(r.kind == "scope" for b in scene.boxes for r in b.regions)
    if not scoped and enough == MOST and _is_narrow(scene):
        return scene
    owners = {b.id: of(b) for b in scene.boxes}
    closing = closing_of([(scene, owners)], most + len(apart))
    if closing is None:
        return scene
    there = len(scene.boxes)
    titles = closing.titles(scene, owners)
    # A group of what several lines wrote is of none of them.
    apart += [b for b in scene.boxes if b.kind == "fused" and QUOTE in titles[b.id]]
    titles |= dict.fromkeys((b.id for b in apart), "")
    scene = shut(scene, titles, closing.label)
    note = f"{there:,} boxes are drawn as {len(scene.boxes):,}: {closing}."
    return replace(scene, note=f"{scene.note} {note}".strip())
