"""Why a program runs what it runs: from the user's line through the rewrites to the step."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from symgrad.ir.errors import GraphError, counted
from symgrad.ir.formats.infix import expression
from symgrad.ir.formats.text import type_text
from symgrad.ir.graph import Graph, is_input
from symgrad.ir.late import Displayed
from symgrad.ir.leaf_ops import PLACEHOLDER
from symgrad.ir.node import Node, constant_value, describe
from symgrad.ir.origin import Location, Resolver, printable
from symgrad.ir.record import Record, replace
from symgrad.ir.walk import with_bodies
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Step
from symgrad.passes.fuse import Group
from symgrad.passes.hoist import Split
from symgrad.rewrite.lineage import Form, Lineage
from symgrad.rewrite.trace import RewriteEvent, Trace, place_text, reason_text, rule_text, shortened
from symgrad.runtime.executable import Executable
from symgrad.runtime.inspect.joined import Joined, joined
from symgrad.runtime.source import Source

MOST_NEAREST = 5
MOST_STEPS = 6
HEADS = ("for ", "while ", "if ")  # of the line of a loop or a choice


class Story(NamedTuple):
    """The story of one node: how it came to be computed as it is.

    `node` is the node as it was built, or what a step computes; `others` are those with which it
    was merged, or of which a step was made; `rewrites` led from it to what runs; `steps` are the
    numbers of the plan's steps that compute it now, and `code` their lines in the source, each with
    its number, counted from 1; `verdict` says in a sentence what it is now.
    """

    node: Node
    others: tuple[Node, ...]
    rewrites: tuple[RewriteEvent, ...]
    steps: tuple[int, ...]
    code: tuple[tuple[int, str], ...]
    verdict: str

    def lines(self, described: Collection[RewriteEvent] = ()) -> Iterator[str]:
        """The story line by line; of rewrites in `described`, the names only."""
        yield place_text(self.node.origin)
        yield f"  built {expression(self.node)}    {type_text(self.node.type)}"
        for other in self.others:
            yield f"  with {expression(other)}    {place_text(other.origin)}"
        for i, entry in enumerate(self.rewrites):
            if entry not in described:
                reason = reason_text(entry.rule)
                yield f"  {i + 1}. {rule_text(entry.rule)} in {entry.stage}: {reason}"
                yield f"     {entry.change()}"
            elif i == 0 or self.rewrites[i - 1] not in described:
                again = takewhile(described.__contains__, self.rewrites[i:])
                names = ", ".join(entry.rule.name for entry in again)
                yield f"  {i + 1}. as above: {names}"
        yield f"  {self.verdict}"
        for number, text in self.code:
            yield f"    line {number}: {text}"

    def __str__(self) -> str:
        return "\n".join(map(printable, self.lines()))


class Why(Displayed, Record, frozen=True):
    """The answer of `Program.why`: what was asked about, and a story for each node of it.

    `groups` say of the fused groups that compute it why each is one, and why no larger; `left` are
    the reasons for which large groups of the program run in NumPy, not as machine code.
    """

    asked: str
    stories: tuple[Story, ...]
    left: tuple[str, ...] = ()
    groups: tuple[Joined, ...] = ()

    def _lines(self) -> Iterator[str]:
        yield f"why {self.asked}:"
        described: set[RewriteEvent] = set()
        for story in self.stories:
            yield from story.lines(described)
            described.update(story.rewrites)
        for group in self.groups:
            yield from group.lines()
        for reason in self.left:
            yield f"left to NumPy, not machine code: {reason}"

    def __str__(self) -> str:
        return "\n".join(map(printable, self._lines()))


def explained(
    raw: Graph,
    trace: Trace,
    runs: Sequence[Executable],
    split: Split | None,
    asked: Node | int | str,
) -> Why:
    """The answer of `Program.why`; of `runs` the second, if any, is what is computed and kept."""
    if not trace.stages and raw is not runs[0].plan.graph:
        raise GraphError("the program was pickled, which loses its trace; compile it to ask")
    own, *kept = (Explainer(raw, trace, e.plan, e.source) for e in runs)
    answer = own.answer(asked)
    stories, groups = list(answer.stories), list(answer.groups)
    parts = () if split is None else split.kept
    for i, story in enumerate(stories):
        for part, prologue in zip(parts, kept, strict=True) if not story.steps else ():
            again = prologue.answer(story.node)
            once = again.stories[0]
            if split is not None and once.steps:
                groups += again.groups
                verdict = f"{once.verdict} of {split.path(part)}: once, and {part.again}"
                stories[i] = once._replace(verdict=verdict)
    return replace(answer, stories=tuple(stories), groups=tuple(dict.fromkeys(groups)))


class Explainer:
    """Answers `Program.why` for the sizes of one plan, a story for each node."""

    def __init__(self, raw: Graph, trace: Trace, plan: Plan, source: Source) -> None:
        self.raw, self.nodes = raw, list(with_bodies(raw))
        self.in_bodies = {*self.nodes}.difference(raw.nodes)
        self.plan = plan
        within = (own for step in plan.steps for _, own in step.within())
        self.lineage = Lineage(raw, plan.graph, trace, [*(s.node for s in plan.steps), *within])
        self.text = source.text.splitlines()
        self.lines = source.lines
        self.line_of = {step: line for line, step in reversed(source.lines.items())}
        heads = (n for n in reversed(source.lines) if self.text[n - 1].lstrip().startswith(HEADS))
        self.line_of |= {s: n for n in heads if (s := source.lines[n]).node.bodies}
        self.steps: dict[Form, list[int]] = {}
        # What runs within a step: which step that is, and the node that it computes a part of.
        self.within: dict[Step, tuple[int, Node]] = {}
        for i, step in enumerate(plan.steps):
            inside = list(step.within())
            self.within.update((inner, (i, own)) for inner, own in inside)
            whole = () if inside and not step.node.bodies else step.computes
            for own in [*whole, *(own for _, own in inside)]:
                numbers = self.steps.setdefault(self.lineage.form(own), [])
                numbers += [i] if i not in numbers else []
        # Of what runs within a loop or a choice: the steps that these are.
        self.looped: dict[Form, set[int]] = {}
        for i, own in self.within.values():
            if plan.steps[i].node.bodies:
                self.looped.setdefault(self.lineage.form(own), set()).add(i)
        # What runs, by where it was written and what made it.
        self.written: dict[Any, list[tuple[Form, Node]]] = {}
        for form, n in self.lineage.kept.items():
            if form in self.steps:
                self.written.setdefault(_written(n), []).append((form, n))
        self.lines_within: dict[Form, list[int]] = {}
        for line, step in source.lines.items():
            if step in self.within:
                own = self.lineage.form(self.within[step][1])
                self.lines_within.setdefault(own, []).append(line)
        # The fused groups that a step computes, or is part of.
        self.groups_at: dict[int, dict[Node, Group]] = {}
        for node in with_bodies(plan.graph):
            if isinstance(group := node.inner_graph, Group):
                forms = (self.lineage.form(n) for n in group.nodes if n.inputs)
                for i in (i for form in forms for i in self.steps.get(form, ())):
                    self.groups_at.setdefault(i, {})[node] = group
        self.resolver = Resolver()

    def answer(self, asked: Node | int | str) -> Why:
        """The answer about a node, a line of the user's, or a line of the source."""
        if isinstance(asked, Node):
            found = [asked] if asked in {*self.nodes} else self._traced(asked)
            if not found and asked in {*self.plan.graph.nodes}:
                return self._why(describe(asked), self._of_running(asked))
            if not found:
                place = asked.origin.nearest
                near = self._some_lines(0 if place is None else place.line)
                raise GraphError(
                    f"{describe(asked)} is no part of this program: none of its results depends "
                    f"on it. Ask about one of its nodes, or about a line: {near}"
                )
            return self._why(describe(asked), self._stories(found))
        if isinstance(asked, str):
            steps = self._steps_at(asked)
            if steps:
                return self._why(_code(asked), tuple(map(self._of_step, steps)))
        nodes = self._built_at(asked)
        return self._why(_asked_line(nodes), self._stories(nodes))

    def _why(self, asked: str, stories: tuple[Story, ...]) -> Why:
        """The answer, with the groups that compute what the stories are about."""
        steps = {i for story in stories for i in story.steps}
        found = {n: g for i in sorted(steps) for n, g in self.groups_at.get(i, {}).items()}
        groups = tuple(joined(n, g, self._with_line) for n, g in found.items())
        return Why(asked, stories, groups=groups)

    def _with_line(self, node: Node) -> str:
        """An op with the line of the source that computes it."""
        form = self.lineage.form(node)
        of_steps = (self.line_of.get(self.plan.steps[i]) for i in self.steps.get(form, ()))
        lines = self.lines_within.get(form) or list(filter(None, of_steps))
        return f"{node.op.name} (line {min(lines)})" if lines else node.op.name

    # ---- what was asked ---------------------------------------------------------------------

    def _traced(self, asked: Node) -> list[Node]:
        """The nodes of bodies that were made of a node which a function gave when it was traced."""
        made = (n for n in self.nodes if n in self.in_bodies and n.op is asked.op)
        return [n for n in made if n.origin == asked.origin and n.type == asked.type]

    def _steps_at(self, line: str) -> list[Step]:
        """The steps of a line of the source: of that very line, else of those with its code."""
        for same in (str.strip, _code):
            numbers = [i for i, text in enumerate(self.text, 1) if same(text) == same(line)]
            if numbers and line.strip():
                found = [self.lines[i] for i in numbers if i in self.lines]
                if not found:
                    raise GraphError(f"line {numbers[0]} of the source computes nothing: {line!r}")
                return found
        return []

    def _built_at(self, asked: int | str) -> list[Node]:
        """The nodes of a line of the user's, constants left out if there are others."""
        file, number = _parsed(asked)
        built = list(self._lines_built())
        files = {p.file for p, _ in built if _is_file(p, file)}
        found = [(p, n) for p, n in built if p.line == number and p.file in files]
        if not found:
            raise GraphError(
                f"nothing of this program was built at {_line_text(file, number)}. The nearest "
                f"lines that built something: {self._some_lines(number, files)}"
            )
        if len({p.file for p, _ in found}) > 1:
            listed = ", ".join(dict.fromkeys(f"{p.file}:{p.line}" for p, _ in found))
            raise GraphError(f"line {number} is in several files; say which: {listed}")
        nodes = [n for _, n in found]
        return [n for n in nodes if constant_value(n) is None] or nodes

    def _lines_built(self) -> Iterator[tuple[Location, Node]]:
        """The nodes that were built at a known line, with the line."""
        for node in self.nodes:
            if (line := self.resolver.nearest(node.origin)) is not None:
                yield line, node

    def _some_lines(self, number: int = 0, files: Collection[str] = ()) -> str:
        found = {line for line, _ in self._lines_built()}
        # Of a line the longest text: the whole expression.
        places = sorted(found, key=lambda p: len(p.text))
        near = {(p.file, p.line): p for p in places if not files or p.file in files}
        nearest = sorted(near.values(), key=lambda p: (abs(p.line - number), p.line, p.file))
        shown = sorted(nearest[:MOST_NEAREST], key=lambda p: (p.file, p.line))
        return "; ".join(f"{p}  {shortened(p.text)}" for p in shown)

    # ---- stories ----------------------------------------------------------------------------

    def _stories(self, nodes: Iterable[Node]) -> tuple[Story, ...]:
        """Their stories; one of those that are alike, as of what a gradient's loop has again."""
        return tuple({str(story): story for story in map(self.of_node, nodes)}.values())

    def of_node(self, node: Node) -> Story:
        """The story of a node of any graph of the trace."""
        form = self.lineage.form(node)
        way = self.lineage.onward(form)
        if not way.ends and node in self.in_bodies:
            way = way._replace(ends=self._alike(node))
        steps = tuple(i for end in way.ends for i in self.steps.get(end, ()))
        parts = tuple(i for part in way.parts for i in self.steps.get(part, ()) if i not in steps)
        twins = tuple(n for n in self.lineage.built[form] if n is not node and n.inputs)
        if node.op is PLACEHOLDER and node not in set(self.raw.inputs):
            verdict = "given to a body: a carry, or a slice for each step"
        elif not way.ends:
            verdict = "nobody reads it any more, so that it is not computed"
            if node in self.in_bodies:
                verdict = "no longer in its loop: moved out of it, or nobody reads it any more"
        elif not steps:
            verdict = "; ".join(dict.fromkeys(map(self._costless, way.ends)))
        else:
            how = "computed as written, by" if not way.rewrites else "now computed by"
            verdict = f"{'folded into' if way.folded else how} {steps_text(steps)}"
            outside = "outside its loop" * (node in self.in_bodies)
            verdict += f", {when}" if (when := self._when(way.ends) or outside) else ""
            if parts:
                verdict += f"; the rewrites made {steps_text(parts)} of it, too"
        merged = f"merged with its {counted(len(twins), 'equal')}; " if twins else ""
        shown = (*steps, *parts)
        within = [n for end in way.ends for n in self.lines_within.get(end, ())]
        code = self._code_at(within) if within else self._code_of(shown)
        return Story(node, twins, way.rewrites, shown, code, f"{merged}{verdict}")

    def _of_step(self, step: Step) -> Story:
        numbers = {s: (i, s.node) for i, s in enumerate(self.plan.steps)} | self.within
        number, node = numbers[step]
        rewrites, nodes = self.lineage.backward(self.lineage.form(node))
        # First the one as which the source tells it.
        nodes.sort(key=lambda n: self._as_told(n, node), reverse=True)
        first = nodes[0] if nodes else node
        rest = tuple(n for n in nodes[1:] if constant_value(n) is None)
        own = [line for line, of in self.lines.items() if of is step and step in self.within]
        code = self._code_at(own) if own else self._code_of([number])
        return Story(first, rest, rewrites, (number,), code, f"computed by step {number}")

    def _of_running(self, node: Node) -> tuple[Story, ...]:
        """The stories of the steps that compute a node of what runs; of a group, of its ops."""
        parts = (node, *(n for n in getattr(node.inner_graph, "nodes", ()) if n.inputs))
        forms = map(self.lineage.form, parts)
        steps = dict.fromkeys(i for form in forms for i in self.steps.get(form, ()))
        return tuple(self._of_step(self.plan.steps[i]) for i in steps) or self._stories([node])

    def _alike(self, node: Node) -> tuple[Form, ...]:
        """The forms that run of this op, and were written where this node of a body was.

        What was moved out of a body, or is there again in a gradient's loop, has no lineage.
        """
        alike = self.written.get(_written(node), [])
        same = tuple(form for form, n in alike if n.type == node.type)
        return same or tuple(form for form, _ in alike if form not in self.looped)

    def _when(self, ends: Sequence[Form]) -> str:
        """When these forms run that are computed within a loop or a choice."""
        steps = set[int]().union(*(self.looped.get(end, ()) for end in ends))
        said = dict.fromkeys(self.plan.steps[i].when for i in sorted(steps))
        return ", ".join(filter(None, said))

    def _as_told(self, built: Node, node: Node) -> int:
        """With how many of its makers a node begins as one that was built on its line; -1: not."""
        earlier, later = built.origin.made_by, node.origin.made_by
        places = map(self.resolver.nearest, (built.origin, node.origin))
        is_it = later[: len(earlier)] == earlier and len({*places}) == 1
        return len(earlier) if is_it else -1

    def _costless(self, form: Form) -> str:
        """The verdict on a value that no step computes."""
        node = self.lineage.kept[form]
        read = self._reading(form)
        by = f", read by {steps_text(read)}" if read else ""
        if is_input(node):
            return f"the {'input' if node.op is PLACEHOLDER else node.op.name}{by}"
        if not node.inputs:
            return f"a constant of the program{by}"
        what = "a view, which costs nothing" if node.op.view else "another name of its operand"
        return f"{what}{by}"

    def _reading(self, form: Form) -> list[int]:
        """The steps that read a value, through views."""
        found: set[int] = set()
        seen, stack = {form}, [form]
        while stack:
            for reader in self.lineage.readers.get(stack.pop(), ()):
                own = self.lineage.form(reader)
                found.update(self.steps.get(own, ()))
                # A group is no step; its members, which are, read for themselves.
                goes_on = own not in self.steps and reader.inner_graph is None
                if goes_on and own not in seen:
                    seen.add(own)
                    stack.append(own)
        return sorted(found)

    def _code_of(self, steps: Sequence[int]) -> tuple[tuple[int, str], ...]:
        lines = (self.line_of.get(self.plan.steps[i]) for i in steps)
        return self._code_at(filter(None, lines))

    def _code_at(self, lines: Iterable[int]) -> tuple[tuple[int, str], ...]:
        return tuple((n, _code(self.text[n - 1])) for n in sorted(set(lines)))


def _written(node: Node) -> Any:
    """The key that nodes share which are one op, written at one place, and made by the same."""
    return node.op, node.origin.frames, node.origin.made_by


def _code(line: str) -> str:
    """A line of the source without its comment."""
    return line.strip().partition("  # ")[0].rstrip()


def _parsed(asked: int | str) -> tuple[str, int]:
    """A file, or nothing, and a line."""
    if isinstance(asked, int):
        return "", asked
    found = re.fullmatch(r"\s*(?:(.+):)?(\d{1,18})\s*", asked)
    if found is None:
        raise GraphError(
            f"{asked!r} is no line of this program's source, and no line of yours such as "
            "'train.py:12'; ask about a node, a line number, or one of these"
        )
    return found[1] or "", int(found[2])


def _is_file(place: Location, file: str) -> bool:
    from pathlib import PurePath

    wanted = PurePath(file).parts
    return not file or PurePath(place.file).parts[-len(wanted) :] == wanted


def _line_text(file: str, number: int) -> str:
    return f"{file}:{number}" if file else f"line {number}"


def _asked_line(nodes: Sequence[Node]) -> str:
    place = nodes[0].origin.nearest
    return f"{place} built {counted(len(nodes), 'node')}"


def steps_text(steps: Sequence[int]) -> str:
    """Some steps by their numbers: steps 3, 4."""
    listed = ", ".join(map(str, steps[:MOST_STEPS]))
    more = f" and {len(steps) - MOST_STEPS} more" if len(steps) > MOST_STEPS else ""
    return f"step{'s' * (len(steps) != 1)} {listed}{more}"
