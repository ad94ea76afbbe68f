"""The story of a program in one picture: what was written, its gradient, each pass, what runs."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, sqrt
from pathlib import Path
from textwrap import wrap

from symgrad.ir.collector import without_collection
from symgrad.ir.errors import RenderError
from symgrad.ir.graph import Graph
from symgrad.ir.leaf_ops import PLACEHOLDER
from symgrad.ir.node import Node
from symgrad.runtime.program import Program
from symgrad_viz.elements import Elements
from symgrad_viz.legend import add_legend
from symgrad_viz.lifetimes import draw_lifetimes, lifetimes_size
from symgrad_viz.phases import BACKWARD, FORWARD, nexts_of, part_titles, parts_of
from symgrad_viz.picture import LARGEST, Picture, check_choice, size_of_svg, write
from symgrad_viz.scene import Box, Edge, Scene, part_of
from symgrad_viz.sentences import sentence_of
from symgrad_viz.shapes import draw_arrow, draw_box, draw_frame, draw_mark, draw_note, draw_title
from symgrad_viz.sheet import Placed, Route, Sheet, Stage, size_of, stub_text
from symgrad_viz.stages import Stages
from symgrad_viz.svg import element, finished
from symgrad_viz.theme import ADVANCE, THEMES, Palette
from symgrad_viz.words import counted, name_text, text_width, title_text

MOST_BOXES = 40
GAP = 28.0
CAPTION = 18.0  # above the frames, with a line of `LINE` for each note
LINE = 18.0
HEAD, TOLD = 22.0, 14.0  # the sizes of a heading's letters, and of those below it
LEGEND = 1.6  # how much larger than in other pictures the legend is
ASPECT = 1.6
MARKS = (
    "Every node keeps its place. Of what is gone, 'became n5' is what a rewrite made of it, '= n5' "
    "the equal that is kept, 'in n7' the fused op that computes it. Nodes are counted as "
    "print(program.trace) does: with constants, which stand in labels, with the results that are "
    "picked from fused ops, and with what is gone from where something new stands."
)


@dataclass(frozen=True)
class _Panel:
    """One stage: what its caption says, and what it shows."""

    name: str
    notes: Sequence[str]
    stage: Stage
    marked: bool
    forward_only: bool = False
    fates: Mapping[int, str] = field(default_factory=dict)


def story(
    program: Program,
    path: str | Path | None = None,
    *,
    title: str | None = None,
    theme: str = "auto",
    columns: int | None = None,
    most: int = MOST_BOXES,
) -> Path | Picture:
    """Draw the way of a program, from what was written to what runs, into an SVG. Gives its path.

    Without a path it gives a `Picture`, which a notebook shows.

    The stages stand side by side, in so many `columns` (None: as fits a screen): the forward part,
    the gradient, what each pass that changed something made of it, and at the end the lifetimes of
    the buffers. Every node keeps its place; what is new, gone or replaced is marked, and a node
    that a rewrite made has the rewrite's name. A program of more than `most` boxes is drawn with
    the scopes closed, each a box; where that is too much still, lines of the source, too; then
    neighbours are put together. Raises `RenderError` for what is no program, another suffix than
    .svg, or a missing folder.

    >>> story(program, "story.svg")
    PosixPath('story.svg')
    """
    if path is None:
        # One stage below another is as wide as a notebook.
        text = story_svg(program, title=title, theme=theme, columns=columns or 1, most=most)
        return Picture(text, "svg", "")
    path = Path(path)
    if path.suffix.lower() != ".svg":
        raise RenderError(f"a story is an SVG; name {path.name!r} with .svg at its end")
    if not path.parent.is_dir():
        raise RenderError(f"there is no folder {str(path.parent)!r}; make it first")
    text = story_svg(program, title=title, theme=theme, columns=columns, most=most)
    write(path, text.encode())
    return path


@without_collection()
def story_svg(
    program: Program,
    *,
    title: str | None = None,
    theme: str = "auto",
    columns: int | None = None,
    most: int = MOST_BOXES,
) -> str:
    """The text of the picture that `story` writes."""
    if not isinstance(program, Program):
        raise RenderError(f"a Program has a story, not a {type(program).__name__}")
    check_choice("theme", theme, THEMES)
    numbers: Mapping[str, object] = {"columns": columns, "most": most}
    for name, number in numbers.items():
        if number is not None and not (isinstance(number, int) and number >= 1):
            raise RenderError(f"{name} is a number from 1 on, not {number!r}")
    for fewer in (most, most * 2 // 3, most // 3) if most == MOST_BOXES else (most,):
        text = _Storyboard(program, theme, fewer).to_svg(title, columns)
        if columns is not None or max(size_of_svg(text)) <= LARGEST:
            break
    return text


class _Storyboard:
    """Draws the stages of a program, each in its panel."""

    def __init__(self, program: Program, theme: str, most: int) -> None:
        self.program, self.theme = program, theme
        self.palette: Palette = THEMES[theme]
        changed = [s for s in program.trace.stages if s.after is not s.before]
        self.graphs = [program.raw, *(s.after for s in changed)]
        self.elements = Elements.of(program)
        self.lineage = self.elements.lineage
        self.stages = Stages(self.graphs, self.elements, program.output_names, most=most)
        buffers = self.elements.buffers(program.plan)
        self.stages.tell_buffers({f"n{i}": name for i, name in buffers.items()})
        self.sheet: Sheet = self.stages.sheet
        self.panels = list(self._panels([s.name for s in changed]))

    def _panels(self, names: Sequence[str]) -> Iterator[_Panel]:
        raw, *rest = self.stages.stages
        graph = self.program.raw
        parts = parts_of(graph, nexts_of(graph, self.program.output_names))
        titles = part_titles(graph, parts)
        whole = counted(len(graph), "node")
        if FORWARD in titles and BACKWARD in titles:
            own = [p for p in raw.boxes if part_of(p.box) == FORWARD]
            ids = {f"n{p.element}" for p in own}
            edges = tuple(e for e in raw.edges if e.tail in ids and e.head in ids)
            forward = sum(parts[n] == FORWARD for n in graph.nodes)
            notes = (counted(forward, "node"), "before any gradient")
            yield _Panel("as written", notes, Stage(tuple(own), edges), False, True)
            how = f"with its {titles[BACKWARD]} part, which differentiation derived"
            yield _Panel("its gradient", (whole, how), raw, False)
        else:
            yield _Panel("as written", (whole,), raw, False)
        # What merges constants, which labels hold, changes nothing that can be seen.
        seen = [i for i, stage in enumerate(rest) if stage.added or stage.left]
        before = self._numbers(graph)
        for i in seen:
            last = "what runs, after " if i == seen[-1] else ""
            after = self._numbers(self.graphs[i + 1])
            fates = self._fates(before, self.graphs[i + 1])
            notes = self._notes(names[i], before, after, fates)
            yield _Panel(f"{last}{names[i]}", notes, rest[i], True, fates=fates)
            before = after

    def _numbers(self, graph: Graph) -> set[int]:
        return set(self.elements.enter(graph.nodes).values())

    def _notes(
        self, name: str, before: set[int], after: set[int], fates: Mapping[int, str]
    ) -> tuple[str, str]:
        """The effect of a pass, in numbers and by the names of its rules, or in words."""
        became = Counter(fate.partition(" ")[0] for fate in fates.values())
        counts = [
            (len(after - before), "new"),
            (became[""], "gone"),
            (became["became"], "replaced"),
            (became["="], "merged with an equal"),
            (became["in"], "fused"),
        ]
        notes = ", ".join(f"{n:,} {what}" for n, what in counts if n)
        fired = Counter(f.rule.name for f in self.program.trace.fired if f.stage == name)
        rules = [f"{rule}{f' ×{n}' if n > 1 else ''}" for rule, n in fired.most_common()]
        return f"{len(before):,} → {len(after):,} nodes: {notes}", ", ".join(rules) or sentence_of(
            name
        )

    def _fates(self, before: set[int], graph: Graph) -> dict[int, str]:
        """The nodes that now compute the values of nodes that went.

        `= n5` is an equal that was there, `became n6` is a new node, `in n7` is a group.
        """
        equals: dict[Node, str] = {}
        inside: dict[Node, str] = {}
        after = self.elements.enter(graph.nodes)
        # An equal that was there comes first.
        for node, number in sorted(after.items(), key=lambda item: item[1] not in before):
            inner = node.inner_graph
            if inner is not None:
                own = (self.lineage.value(n) for n in inner.nodes if n.inputs)
                inside |= dict.fromkeys(own, f"in n{number}")
            # A result that is picked from a fused node is computed there.
            if not node.op.of_several and inner is None:
                how = "=" if number in before else "became"
                equals.setdefault(self.lineage.value(node), f"{how} n{number}")
        computing = inside | equals
        gone = before.difference(after.values())
        return {n: computing.get(self.elements.value(n), "") for n in gone}

    def to_svg(self, title: str | None, columns: int | None) -> str:
        """The whole picture."""
        sheet, panels = self.sheet, self.panels
        plan = self.program.plan
        told_width, told_height = lifetimes_size(plan)
        widths = [self._width(i) for i in range(len(panels))]
        widths[-1] = max(widths[-1], told_width)
        rows_of = min(columns or self._columns(widths, told_height), len(panels))
        given = (n for n in self.program.raw.inputs if n.op is PLACEHOLDER)
        listed = ", ".join(name_text(str(n.name)) for n in given) or "no inputs"
        shown = title_text(title, f"the story of a program of {listed}")
        wide = max(_row_width(widths, rows_of), text_width(shown, HEAD * 1.4) + 2 * GAP)
        notes = [_wrapped(panel.notes, width) for panel, width in zip(panels, widths, strict=True)]
        caption = CAPTION + LINE * (max(map(len, notes)) + 1)
        root = ET.Element("svg")
        canvas = element(root, "g", class_="graph")
        draw_title(canvas, shown, GAP, GAP * 1.3, self.palette, HEAD * 1.4, "start")
        top = GAP * 1.3 + TOLD
        for line in _wrapped(self._closing(), wide - 2 * GAP):
            top += LINE
            draw_note(canvas, line, (GAP, top - 4), self.palette, TOLD)
        x, y, row_height = GAP, max(top + GAP, GAP * 3.5), 0.0
        for i, panel in enumerate(panels):
            if i and i % rows_of == 0:
                x, y, row_height = GAP, y + row_height + GAP, 0.0
            own = element(canvas, "g", transform=f"translate({x:.0f} {y:.0f})", id=f"stage{i}")
            self._draw(own, panel, i, notes[i], caption)
            high = sheet.height + caption
            if i == len(panels) - 1:
                below = element(own, "g", transform=f"translate(0 {high + GAP:.0f})")
                draw_lifetimes(below, plan, max(sheet.width, told_width), self.palette)
                high += GAP + told_height
            row_height = max(row_height, high)
            x += widths[i] + GAP
        height = y + row_height
        root.set("width", f"{wide:.0f}")
        root.set("height", f"{height:.0f}")
        root.set("viewBox", f"0 0 {wide:.0f} {height:.0f}")
        boxes = tuple(p.box for panel in panels for p in panel.stage.boxes)
        there_are = {
            "stub": any(route.stub is not None for route in sheet.routes.values()),
            "new": any(p.marked and p.stage.added for p in panels),
            "gone": any(p.stage.ghosts for p in panels),
        }
        boxes += tuple(Box("", kind, ("",), "") for kind, there in there_are.items() if there)
        edges = tuple(e for panel in panels for e in panel.stage.edges)
        names = ", ".join(p.name for p in panels)
        scene = Scene(shown, f"Stages: {names}.", boxes, edges, MARKS)
        add_legend(root, scene, self.palette, LEGEND)
        return finished(root, scene, self.theme, ())

    def _columns(self, widths: Sequence[float], below: float) -> int:
        """As many panels a row as fit a screen best, or three screens if they can."""
        high = self.sheet.height + 80
        own = ceil(sqrt(len(widths) * ASPECT * high / self.sheet.width))
        sizes = {
            n: (_row_width(widths, n), ceil(len(widths) / n) * (high + GAP) + below + 400)
            for n in range(1, len(widths) + 1)
        }
        if max(sizes[min(own, len(widths))]) <= LARGEST:
            return own
        return min(sizes, key=lambda n: max(sizes[n]))

    def _closing(self) -> list[str]:
        """The text about nodes that were put together, if any were."""
        closing = self.stages.closing
        done = (
            f"{len(self.program.raw):,} nodes are much for one picture: {closing}; "
            "+ says that what is in it has changed. All of them: program.explore('page.html')"
        )
        return [] if closing is None else [done]

    def _width(self, number: int) -> float:
        """How wide a panel is: its frames, or its heading."""
        frames = [
            left + width
            for kind, _, left, _, width, _ in self.sheet.frames
            if self.panels[number].forward_only and kind == FORWARD
        ]
        heading = text_width(self._heading(number), HEAD)
        return max(max(frames, default=self.sheet.width), heading)

    def _heading(self, number: int) -> str:
        return f"{number + 1}. {self.panels[number].name}"

    def _draw(
        self, canvas: ET.Element, panel: _Panel, number: int, notes: Sequence[str], caption: float
    ) -> None:
        stage, palette = panel.stage, self.palette
        draw_title(canvas, self._heading(number), 0, 12, palette, HEAD, "start")
        for i, line in enumerate(notes):
            draw_note(canvas, line, (0, 14 + LINE * (i + 1)), palette, TOLD)
        drawn = element(canvas, "g", transform=f"translate(0 {caption:.0f})")
        for kind, title, *place in self.sheet.frames:
            if not panel.forward_only or kind == FORWARD:
                left, top, wide, high = place
                draw_frame(drawn, kind, title, (left, top, wide, high), palette)
        new = set(stage.added) if panel.marked else set()
        for placed in stage.boxes:
            if placed.element in new:
                draw_mark(drawn, self.sheet.spots[placed.spot], size_of(placed.box), palette)
        at = {f"n{p.element}": p for p in stage.boxes}
        for edge in stage.edges:
            tail, head = at[edge.tail], at[edge.head]
            route = self.sheet.routes[tail.spot, head.spot]
            self._draw_edge(drawn, tail, head, route, edge)
        for ghost in stage.ghosts:
            became = panel.fates.get(ghost.element, "")
            lines = (ghost.box.lines[0], *([became] if became else []))
            gone = replace(ghost.box, kind="gone", lines=lines)
            self._draw_box(drawn, replace(gone, is_output=False), ghost, number)
        for placed in stage.boxes:
            self._draw_box(drawn, placed.box, placed, number)

    def _draw_box(self, canvas: ET.Element, box: Box, placed: Placed, number: int) -> None:
        own = replace(box, id=f"s{number}-{box.id}")
        centre = self.sheet.spots[placed.spot]
        draw_box(canvas, own, centre, size_of(box), self.palette, small=True)

    def _draw_edge(
        self, canvas: ET.Element, tail: Placed, head: Placed, route: Route, edge: Edge
    ) -> None:
        x, y = self.sheet.spots[tail.spot]
        start = (x, y + size_of(tail.box)[1] / 2)
        if route.stub is not None:
            stub = Box("", "stub", (stub_text(tail.box),), "")
            draw_box(canvas, stub, route.stub, (0.0, 0.0), self.palette, "key")
            start = (route.stub[0], route.stub[1] + 6)
        above = self.sheet.spots[head.spot][1] - size_of(head.box)[1] / 2
        points = [start, *route.points, (route.end, above - 3.5 * head.box.is_output)]
        draw_arrow(canvas, replace(edge, is_stub=route.stub is not None), points, self.palette)


def _row_width(widths: Sequence[float], columns: int) -> float:
    """How wide the widest row of panels is."""
    rows = (widths[i : i + columns] for i in range(0, len(widths), columns))
    return max(GAP + sum(w + GAP for w in row) for row in rows)


def _wrapped(notes: Iterable[str], width: float) -> list[str]:
    """Texts in lines as wide as that."""
    letters = max(int(width / (TOLD * ADVANCE)), 1)
    return [line for text in notes for line in wrap(text, letters)]
