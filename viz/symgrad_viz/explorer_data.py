"""The explorer's data, as JSON: stages, nodes with their stories, source, memory."""

from __future__ import annotations

import inspect
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any, TypeAlias

from symgrad.ir.errors import RenderError
from symgrad.ir.formats.text import type_text
from symgrad.ir.graph import Graph
from symgrad.ir.leaf_ops import CONSTANT, PLACEHOLDER
from symgrad.ir.record import replace
from symgrad.lowering.native import NativeCall, NativeLoop
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Slot
from symgrad.rewrite.rule import Rule
from symgrad.rewrite.trace import RewriteEvent, reason_text
from symgrad.runtime.inspect.profile import Profile, StepTime
from symgrad.runtime.inspect.why import Explainer
from symgrad.runtime.program import Program
from symgrad_viz.elements import Elements
from symgrad_viz.explorer_nodes import Nodes, Section
from symgrad_viz.explorer_owners import owners_of
from symgrad_viz.explorer_tables import Columns, Table, in_columns, named, numbers_text, packed
from symgrad_viz.explorer_world import World
from symgrad_viz.level import Details
from symgrad_viz.scene import known_bytes
from symgrad_viz.sentences import sentence_of
from symgrad_viz.sketches import Sketch, sketches
from symgrad_viz.stages import Stages
from symgrad_viz.words import printable, shortened, title_text

FORMAT, VERSION = "symgrad-explorer", 5
AROUND = 12  # so many lines of a file are shown around each that built something
PATIENCE = 2.0  # seconds
LARGE = 2500  # nodes as written
MOST_LINES = 5000  # of one piece of machine code
Json: TypeAlias = dict[str, Any]
AS_WRITTEN = "as written"


def document(
    program: Program, *, title: str | None, embed_source: bool, profile: Profile | None
) -> Json:
    """All that the page shows. Without `embed_source` it has no text of the user's files."""
    return Document(program, embed_source, profile).to_json(title)


class _Brief(Details):
    """The page tells all but the first line of a tooltip by itself."""

    is_brief = True

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes


class _Told:
    """Says on the terminal what is being done, once that has taken a while."""

    def __init__(self) -> None:
        self.begun = time.monotonic()

    def __call__(self, what: str) -> None:
        if time.monotonic() - self.begun > PATIENCE:
            sys.stderr.write(f"explore: {what}\n")


class Document:
    """All that the page shows of a program."""

    def __init__(self, program: Program, embed_source: bool, profile: Profile | None) -> None:
        self.program, self.embed_source, self.profile = program, embed_source, profile
        self.tell = tell = _Told()
        ready = program.executables.shown(profile.sizes if profile else None)
        # Where there was no call yet, what is asked for again is not planned again.
        self.planned = copy(program)
        self.planned.executables = program.executables.only(ready)
        own = Explainer(program.raw, program.trace, ready.plan, ready.source)
        self.sections = [Section("every call", ready.plan, ready.source, own)]
        for depends, part in program.held.items():
            # Its steps compute nodes of the whole graph, and so have their places in its stories.
            kept = part.executables.shown()
            whole = replace(kept.plan, graph=program.graph)
            explainer = Explainer(program.raw, program.trace, whole, kept.source)
            title = "once, and kept" if program.kept else f"kept, by {depends}"
            self.sections.append(Section(title, kept.plan, kept.source, explainer))
        self.lineage = self.sections[0].explainer.lineage
        self.graphs = [program.raw, *(s.after for s in program.trace.stages)]
        self.names = [AS_WRITTEN, *(s.name for s in program.trace.stages)]
        self.elements = Elements(self.lineage, list({id(g): g for g in self.graphs}.values()))
        # Of a large program what is in groups is drawn, where it was written, and nothing else.
        self.is_large = len(program.raw) > LARGE
        tell("reading what each step costs")
        self.cost = self.planned.cost(**ready.plan.sizes)
        tell(f"drawing {len(self.graphs)} stages of {len(program.raw)} nodes")
        self.stages = self._stages(opened=self.is_large)
        tell("telling of each node where it comes from")
        self.nodes = Nodes(program, self.sections, self.elements, self.names, self.cost)
        self.places = self.nodes.places
        self.owners = owners_of(self.graphs, program.output_names, self.elements, self.nodes.inside)
        self.rules, self.boxes = Table(), Table()
        self.texts = self.nodes.texts

    def to_json(self, title: str | None) -> Json:
        """The document."""
        worlds = {"open" if self.is_large else "full": self._world(self.stages)}
        several = any(n.bodies for g in self.graphs for n in g.nodes) or self.nodes.inside
        if several and not self.is_large:
            worlds["open"] = self._world(self._stages(opened=True))
        kept = self._kept()
        elements = list(map(self.nodes.describe, range(len(self.elements.nodes))))
        for number, size in kept.items():
            elements[number]["kept"] = size
        self.tell("writing the page")
        boxes = named("element kind output first lines call", self.boxes)
        given = (n for n in self.program.raw.inputs if n.op is PLACEHOLDER)
        listed = ", ".join(str(n.name) for n in given) or "no inputs"
        return {
            "format": FORMAT,
            "version": VERSION,
            "title": title_text(title, f"a program of {listed}"),
            "sizes": dict(self.sections[0].plan.sizes),
            "guessed": not (self.profile or self.program.executables.used),
            "summary": self._summary(),
            "stages": list(map(self._stage, range(len(self.graphs)))),
            "worlds": worlds,
            "boxes": in_columns(boxes),
            "elements": in_columns(elements),
            "rewrites": self._rewrites(),
            "rules": list(map(self._rule, self.rules)),
            "places": self._places(),
            "slopes": self.nodes.derivatives(),
            "fileNames": list(self._file_names().values()),
            "files": self._files() if self.embed_source else [],
            "sections": list(map(self._section, self.sections)),
            "native": list(self._native()),
            "profile": self.profile and self._profile(self.profile),
            "texts": list(self.texts),
        }

    def _kept(self) -> dict[int, int]:
        """The values that are kept for the backward part, in what runs: how many bytes each."""
        found: dict[int, int] = {}
        for edge in self.stages.stages[-1].edges:
            for _, size in edge.saved:
                found[int(edge.tail[1:])] = known_bytes(size, edge.sizes) or 0
        return found

    def _stages(self, opened: bool) -> Stages:
        names = self.program.output_names
        return Stages(
            self.graphs,
            self.elements,
            names,
            opened=opened,
            details=_Brief(self.cost.after.plan.sizes),
        )

    def _world(self, stages: Stages) -> Json:
        return World(stages, self.boxes, self.texts, self.owners).to_json()

    def _stage(self, i: int) -> Json:
        """The description of a pass."""
        found: Json = {"name": self.names[i], "nodes": len(self.graphs[i]), "rules": []}
        if i:
            done = self.program.trace.stages[i - 1]
            fired = [f for f in self.program.trace.fired if f.stage == done.name]
            found["ms"] = round(1e3 * done.seconds, 2)
            found["same"] = done.after is done.before
            found |= self._changes(*(self._numbers(g) for g in self.graphs[i - 1 : i + 1]))
            found["reason"] = sentence_of(done.name)
            times = Counter(self.rules[f.rule] for f in fired)
            found["rules"] = named("rule times", times.items())
        return found

    def _numbers(self, graph: Graph) -> set[int]:
        return self.elements.of_graph(graph)

    def _changes(self, before: set[int], after: set[int]) -> Json:
        """How many nodes are new, how many went, and where to: before + new - gone = after."""
        value, inside = self.elements.value, self.nodes.inside
        fused = {value(part) for n in after for part in inside.get(n, ())}
        kept, made = ({value(n) for n in ns} for ns in (before & after, after - before))
        ways = (("fused", fused), ("merged", kept), ("replaced", made))
        gone = before - after
        went = Counter(next((w for w, vs in ways if value(n) in vs), "dropped") for n in gone)
        constants = sum(self.elements.nodes[n].op is CONSTANT for n in gone)
        picks = sum(self.elements.nodes[n].op.of_several for n in after - before)
        found = {"new": len(after - before), "picks": picks, "gone": dict(went)}
        return {**found, "constants": constants}

    # ---- rules and lines --------------------------------------------------------------------

    def _rewrites(self) -> Columns:
        stage, rule = self.names.index, self.rules
        fired = self.program.trace.fired
        line, of = self.lineage, self._elements
        forms = zip(line.before, line.swallowed, line.after, line.made, strict=True)
        ends = (([b], s, [a], m) for b, s, a, m in forms)
        rows = (
            (stage(f.stage), rule[f.rule], *_change(f), *map(of, end))
            for f, end in zip(fired, ends, strict=True)
        )
        return in_columns(named("stage rule change sketch before swallowed after made", rows))

    def _elements(self, forms: Iterable[Any]) -> list[int]:
        """The numbers of these forms, of those that were ever in a graph."""
        found = map(self.elements.of_form, forms)
        return [number for number in found if number is not None]

    def _rule(self, rule: Rule) -> Json:
        code = getattr(rule.definition, "__code__", None)
        module = str(getattr(rule.definition, "__module__", ""))
        own = module.partition(".")[0] == "symgrad"
        found: Json = {
            "name": rule.name,
            "grade": rule.exact.name.lower(),
            "reason": printable(reason_text(rule)),
        }
        if code is not None and (own or self.embed_source):
            found["where"] = f"{printable(module)}, line {code.co_firstlineno}"
            with suppress(OSError, TypeError):
                found["source"] = list(map(_line, inspect.getsource(code).splitlines()))
        return found

    def _places(self) -> Columns:
        file = list(self._file_names()).index
        text = shortened if self.embed_source else lambda text: ""
        lines = ((file(p.file), p.line, text(p.text)) for p in self.places)
        return in_columns(named("file line text", lines))

    def _file_names(self) -> Mapping[str, str]:
        """The labels of files: their names, with their folders where names are alike."""
        files = dict.fromkeys(p.file for p in self.places)
        alike = Counter(Path(f).name for f in files)
        return {
            f: printable("/".join(Path(f).parts[-min(2, alike[Path(f).name]) :])) for f in files
        }

    def _files(self) -> list[Json]:
        """The lines of the user's files around those that built something."""
        found: dict[str, dict[int, str]] = defaultdict(dict)
        for place in self.places:
            found[place.file] |= place.around(AROUND)
        return [
            {
                "name": self._file_names()[file],
                "lines": [[n, _line(t)] for n, t in sorted(ls.items())],
            }
            for file, ls in found.items()
        ]

    # ---- what runs --------------------------------------------------------------------------

    def _section(self, section: Section) -> Json:
        plan = section.plan
        lines = section.source.text.splitlines()
        if not self.embed_source:
            lines = [_without_places(n in section.source.lines, t) for n, t in enumerate(lines, 1)]
        computes = {}
        for line, step in section.source.lines.items():
            number = self.elements.of_form(self.lineage.form(section.node_of(step)))
            if number is not None:
                computes[line] = number
        slots = (
            (s.name, s.kind, s.first, s.last, s.offset, s.nbytes, type_text(s.type), host)
            for s, host in section.places.all
        )
        steps = (self._step(section, at) for at in range(len(plan.steps)))
        return {
            "title": section.title,
            "lines": packed([self.texts.pieces(_line(line)) for line in lines]),
            "computes": [numbers_text(list(computes)), numbers_text(list(computes.values()))],
            "steps": in_columns(named("element written", steps)),
            "slots": in_columns(named("name kind first last offset bytes type host", slots)),
            "arena": plan.arena_bytes,
            "outputs": plan.output_bytes,
            "nexts": plan.next_bytes,
        }

    def _native(self) -> Iterator[Json]:
        """The machine code, as LLVM reads it and as it came out; in IR are no names of a user's.

        A line of IR that computes an op has its element.
        """
        plan = self.planned.plan
        steps = (s for step in plan.steps for s in (step, *(inner for inner, _ in step.within())))
        native = (s for s in steps if isinstance(s, NativeLoop | NativeCall))
        for i, step in enumerate(native, 1):
            nodes = [self.elements.of_form(self.lineage.form(n)) for n in step.computes]
            lines, elements = _ir(step.code.ir, nodes)
            title = f"Machine code {i}: "
            yield {"title": f"{title}LLVM's IR", "lines": lines, "elements": packed(elements)}
            lines = [_line(t) for t in step.code.assembly.splitlines()[:MOST_LINES]]
            yield {"title": f"{title}assembly", "lines": lines}

    def _step(self, section: Section, at: int) -> tuple[int | None, list[int]]:
        """The element that a step computes, and the places that it writes to."""
        step = section.plan.steps[at]
        element = self.elements.of_form(self.lineage.form(step.node))
        places = (section.places.number(at, r) for r in (*step.results, *step.scratch))
        return element, sorted(set(places))

    def _summary(self) -> list[Json]:
        """The costs as written and as it runs: each figure with the one it is part of."""
        plan = self.sections[0].plan
        raw, runs = self.cost.before, self.cost.after
        full, full_raw = _fullest(plan), _fullest(raw.plan)
        rows: list[list[Any]] = [
            [0, "nodes", len(self.program.raw), len(self.program.graph)],
            [0, "steps", len(raw.steps), len(plan.steps)],
            [0, "operations (FLOP)", raw.flops, runs.flops],
            [0, "bytes moved", raw.bytes_moved, runs.bytes_moved],
            [0, "bytes of memory", raw.plan.peak_bytes, plan.peak_bytes],
            [1, "next values", raw.plan.next_bytes, plan.next_bytes],
            [1, "outputs", raw.plan.output_bytes, plan.output_bytes],
            [1, "arena", raw.plan.arena_bytes, plan.arena_bytes],
            [2, "fullest in", full_raw[0], full[0]],
            [2, "scratch there", full_raw[1], full[1]],
        ]
        shown = (row for row in rows if not row[0] or any(row[2:]))
        return named("depth what before after", shown)

    def _profile(self, profile: Profile) -> Json:
        section = self.sections[0]
        ops = [s.name for s in section.plan.steps]
        if ops != [s.step.name for s in profile.steps]:
            raise RenderError("this profile is of another program; make one: program.profile(...)")
        return {
            "seconds": profile.seconds,
            "runs": profile.runs,
            "machine": str(profile.machine),
            "steps": list(map(_time, profile.steps)),
        }


def _change(event: RewriteEvent) -> tuple[str, Sequence[Sketch]]:
    """The text of a rewrite, and its two small graphs."""
    text = event.change()
    return shortened(text), sketches(text)


def _fullest(plan: Plan) -> tuple[str, int]:
    """The kernel during which most of the arena is in use, and how much of that is its scratch."""
    begins: dict[int, list[Slot]] = defaultdict(list)
    ends: dict[int, list[Slot]] = defaultdict(list)
    for slot in plan.slots:
        if slot.kind == "arena" and slot.first >= 0:
            begins[slot.first].append(slot)
            ends[slot.last + 1].append(slot)
    # In place of another a slot takes no more room than the larger of the two.
    there: dict[int, list[int]] = defaultdict(list)
    used, most, fullest = 0, 0, None
    for i, step in enumerate(plan.steps):
        for slots, turn in ((begins[i], list.append), (ends[i], list.remove)):
            for slot in slots:
                before = max(there[slot.offset], default=0)
                turn(there[slot.offset], slot.nbytes)
                used += max(there[slot.offset], default=0) - before
        if used > most:
            most, fullest = used, step
    if fullest is None:
        return "", 0
    return fullest.name, sum(plan.slots[r.slot].nbytes for r in fullest.scratch)


def _time(step: StepTime) -> Json:
    figures = ("seconds", "share", "gbytes", "gflops", "reach")
    costs = {figure: _short(getattr(step, figure)) for figure in figures}
    return {"line": step.line, **costs, "inner": list(map(_time, step.inner))}


def _short(figure: float | None) -> float | None:
    return None if figure is None else float(f"{figure:.4g}")


def _ir(text: str, nodes: Sequence[int | None]) -> tuple[list[str], list[int]]:
    """The lines of IR, and the element that each computes; -1 for none.

    Its comments name ops by their numbers among the nodes; here they have those of the page.
    """
    lines: list[str] = []
    elements: list[int] = []
    own = -1
    for line in text.splitlines():
        if (found := re.fullmatch(r"  ; op (-|\d+)", line)) is not None:
            number = None if found[1] == "-" else nodes[int(found[1])]
            own = -1 if number is None else number
            if own < 0 or (elements and elements[-1] == own):
                continue
            line = f"  ; n{own}"
        elif not line.startswith(" "):  # a label, or where a function begins or ends
            own = -1
        lines.append(_line(line))
        elements.append(own)
    return lines[:MOST_LINES], elements[:MOST_LINES]


def _line(text: str) -> str:
    """A line of source as it is shown."""
    return shortened(text.rstrip("\r\n").expandtabs(), 400)


def _without_places(computes: bool, line: str) -> str:
    """A line of generated source without the user's lines that its comments quote."""
    if computes:
        return line.partition("  # ")[0].rstrip()
    return f"#   {line[4:].partition('  ')[0]}" if line.startswith("#   ") else line
