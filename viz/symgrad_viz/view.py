"""From what is to be drawn to the scene that is drawn: details, colours, what is drawn together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from symgrad.ir.node import Node
from symgrad.rewrite.trace import reason_text
from symgrad.runtime.inspect.profile import Profile
from symgrad.runtime.program import Program
from symgrad_viz.builder import Details, graph_of, scene_of
from symgrad_viz.collapse import collapsed
from symgrad_viz.figures import HEATS, STEPS, Figures, figure_text, figures_of, heat
from symgrad_viz.scene import Scene, saved_text, with_stubs
from symgrad_viz.words import shortened

COLLAPSED = 400  # in larger graphs scopes that repeat are drawn once
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
) -> Scene:
    """The scene of a graph or program as it is drawn; the options are those of `draw`."""
    graph = graph_of(thing)
    small = len(graph) <= DETAILED or color_by is not None or profile is not None
    figures = figures_of(thing, graph, profile, color_by) if small else Figures()
    details = _Details(figures, thing, color_by)
    scene = scene_of(thing, title=title, stubs=False, expand=expand, details=details)
    scene = replace(scene, kept=saved_text(scene.edges))
    if collapse or (collapse is None and len(graph) > COLLAPSED):
        scene = collapsed(scene)
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
        boxes, edges = with_stubs(scene.boxes, scene.edges)
        scene = replace(scene, boxes=boxes, edges=edges)
    return scene
