"""How long each step of a program takes, against what this machine reaches.

What is timed is the source that runs, with a look at the clock between its steps. It runs in a copy
of the program, which does all that a call does but commit its updates.
"""

from __future__ import annotations

import ast
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, count
from time import perf_counter_ns as now
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symgrad.ir.errors import FeedError
from symgrad.ir.formats.writing import write_json
from symgrad.ir.late import Displayed
from symgrad.ir.origin import Location
from symgrad.ir.record import Record, replace
from symgrad.ir.types import whole
from symgrad.lowering.cost import StepCost, cost
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Step, is_open
from symgrad.rewrite.trace import shortened
from symgrad.runtime.inspect.machine import NANOSECOND, Machine, measured
from symgrad.runtime.runner import Runner
from symgrad.runtime.source import Source

if TYPE_CHECKING:
    from pathlib import Path

WARM_UP = 3
FIGURES = ("line", "code", "seconds", "share", "flops", "bytes_read", "bytes_written", "gflops",
           "gbytes", "reach")  # fmt: skip


class StepTime(NamedTuple):
    """How long a step takes: its median, and which `share` of the time of all steps that is.

    `line`, counted from 1, and `code` are of the program's source, `location` is the user's line.
    Operations and bytes are counted as `symgrad.lowering.cost.cost` does, which says when `flops`
    is None. `reach` compares with a copy of as many bytes, or a matrix product of as many
    operations, whichever takes longer on this machine: 1 is as fast.

    A group that runs in tiles reads and writes what comes into it and leaves it. Its steps are
    `inner`, for all tiles together, each with the part of the group's time that it has of theirs.
    So are those of a choice, and of a loop, which `ran` so many steps in a call.
    """

    step: Step
    line: int
    code: str
    seconds: float
    share: float
    flops: int | None
    bytes_read: int
    bytes_written: int
    reach: float
    inner: tuple[StepTime, ...] = ()
    ran: float = 0

    @property
    def location(self) -> Location | None:
        return self.step.node.origin.nearest

    @property
    def bytes_moved(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def gflops(self) -> float | None:
        """Billions of floating-point operations a second."""
        return None if self.flops is None else self.flops / self.seconds / 1e9

    @property
    def gbytes(self) -> float:
        """Billions of bytes read and written a second."""
        return self.bytes_moved / self.seconds / 1e9

    def document(self) -> dict[str, Any]:
        """It in terms of JSON."""
        place = self.location
        return {
            "kernel": self.step.name,
            "location": place and {"file": place.file, "line": place.line, "text": place.text},
            "made_by": list(map(str, self.step.node.origin.made_by)),
            **{name: getattr(self, name) for name in FIGURES},
            "ran": self.ran,
            "inner": [s.document() for s in self.inner],
        }


class Profile(Displayed, Record, frozen=True):
    """How long a program takes, step by step: what `Program.profile` found. It prints as a table.

    >>> found = program.profile(X, Y)
    >>> print(found)

    `steps` are those of the plan, in its order, `seconds` is the median time of a whole call, which
    also checks arrays and allocates outputs. `sizes` are those of the named dimensions. Everything
    is compared with `machine`. Marked are the `heaviest` steps.
    """

    steps: tuple[StepTime, ...]
    seconds: float
    runs: int
    sizes: Mapping[str, int]
    machine: Machine

    @property
    def step_seconds(self) -> float:
        """The time of all steps."""
        return sum(s.seconds for s in self.steps)

    @property
    def heaviest(self) -> tuple[int, ...]:
        """The fewest steps that take more than half of the time, the heaviest first."""
        order = sorted(range(len(self.steps)), key=lambda i: -self.steps[i].seconds)
        so_far = accumulate((self.steps[i].share for i in order), initial=0.0)
        return tuple(i for i, before in zip(order, so_far, strict=False) if before <= 0.5)

    def save(self, path: str | Path) -> Path:
        """Write it as JSON. The file is written whole or not at all.

        `format` is "symgrad-profile" and `version` 1. The rest are `seconds`, `runs`, `sizes` by
        name, `machine` with the fields of a `Machine`, and `steps`, each with the fields of a
        `StepTime`: for the step its `kernel`, and who `made_by` it; `location`, which may be null,
        with `file`, `line` and `text`.
        """
        document = {
            "format": "symgrad-profile",
            "version": 1,
            "seconds": self.seconds,
            "runs": self.runs,
            "sizes": dict(self.sizes),
            "machine": {
                "copies": {str(n): s for n, s in self.machine.copies.items()},
                "products": dict(self.machine.products),
                "clock": self.machine.clock,
            },
            "steps": [s.document() for s in self.steps],
        }
        return write_json(path, document, indent=1)

    def _lines(self) -> Iterator[str]:
        sizes = ", ".join(f"{k} = {v}" for k, v in self.sizes.items())
        yield (
            f"profile{f' for {sizes}' if sizes else ''}: steps {self.step_seconds * 1e6:,.1f} µs, "
            f"the whole call {self.seconds * 1e6:,.1f} µs (medians of {self.runs} runs)"
        )
        yield str(self.machine)
        yield (
            f"{'step':>4}    {'line':>5}  {'kernel':<20} {'µs':>12}  {'share':>6}   "
            f"{'GB/s':>7} {'GFLOP/s':>8} {'reach':>6}"
        )
        heaviest = set(self.heaviest)
        for i, step in enumerate(self.steps):
            yield _row(f"{i:>4}", step, "*" if i in heaviest else " ")
            yield from _inner_rows(f"{i:>4}", step)
        yield "* together more than half of the time"

    def __str__(self) -> str:
        return "\n".join(self._lines())


def _inner_rows(number: str, step: StepTime) -> Iterator[str]:
    for k, inner in enumerate(step.inner):
        yield _row(f"{number}.{k}", inner, " ")
        yield from _inner_rows(f"{number}.{k}", inner)


def _row(number: str, s: StepTime, mark: str) -> str:
    gflops = "?" if s.gflops is None else f"{s.gflops:.2f}"
    place = s.location
    where = "" if place is None else f"{place}  {shortened(place.text)}"
    name = f"{s.step.name} ×{s.ran:,.0f}" if s.ran else s.step.name
    if s.ran:
        where = f"{s.seconds / s.ran * 1e6:,.2f} µs each  {where}"
    return (
        f"{number:<7} {s.line:>5}  {name:<20} {s.seconds * 1e6:>12,.2f}  {s.share:>6.1%} "
        f"{mark} {s.gbytes:>7.2f} {gflops:>8} {s.reach:>6.0%}  {where}"
    ).rstrip()


def profiled(
    runner: Runner, args: tuple[Any, ...], kwargs: Mapping[str, Any], runs: int
) -> Profile:
    """The profile of a program for the arrays of a call; see `Program.profile`."""
    runner.feeder.check_names("profile", len(args), ("runs",))
    runs = whole(runs, "runs", 1, FeedError)
    _, sizes = runner.feeder.feed(args, kwargs)
    executable = runner.executables.of(sizes)
    watch = _Watch(executable.source, executable.plan)
    untimed, timed = (replace(executable, backend="numpy") for _ in range(2))
    untimed.function = executable.function
    timed.function = watch.compile(executable.filename)
    # The arrays for next values are not the program's: it may run meanwhile.
    store = runner.store.rehearsal()
    plain, watched = (
        Runner(runner.feeder, runner.executables.only(e), store, runner.form)
        for e in (untimed, timed)
    )
    calls: list[int] = []
    for run in range(-WARM_UP, runs):
        start = now()
        plain(*args, **kwargs)
        end = now()
        watched(*args, **kwargs)
        watch.note(keep=run >= 0)
        calls += [end - start] * (run >= 0)
    machine = measured()
    seconds = float(np.median(calls)) * NANOSECOND
    return Profile(watch.steps(machine), seconds, runs, dict(sizes), machine)


class _Watch:
    """A program's source with a look at the clock between steps, and what these looks found."""

    def __init__(self, source: Source, plan: Plan) -> None:
        self.source = source
        self.plan = plan
        # Of each function the first line of each step, and the steps.
        self.lines: list[list[int]] = []
        self.timed: list[list[Step]] = []
        # One record for each call of a function: its number, and when its steps began and ended.
        self.records: list[tuple[int, ...]] = []
        self.runs: list[Any] = []
        # Of a function within a step: the times of its steps in each run, and how often it ran.
        self.runs_within: dict[tuple[int, int], list[Any]] = {}
        self.counts: Counter[tuple[int, int]] = Counter()

    def compile(self, filename: str) -> Callable[..., Any]:
        """The function; its lines have the numbers that they have in the source."""
        name = next(n for i in count() if (n := f"clock{i or ''}") not in self.source.text)
        tree = ast.parse(self.source.text)
        for function in tree.body:
            if isinstance(function, ast.FunctionDef):
                self._watch(function, name)
        scope = {**self.source.scope, name: now, f"{name}_record": self.records.append}
        exec(compile(tree, filename, "exec"), scope)
        made: Callable[..., Any] = scope["step"]
        return made

    def _watch(self, function: ast.FunctionDef, name: str) -> None:
        body: list[ast.stmt] = []
        lines: list[int] = []
        looks: list[str] = []
        steps: list[Step] = []
        last: Step | None = None
        for statement in function.body:
            step = self.source.lines.get(statement.lineno)
            if step is not last:
                looks.append(f"{name}_{len(looks)}")
                body += ast.parse(f"{looks[-1]} = {name}()").body
                if step is not None:
                    lines.append(statement.lineno)
                    steps.append(step)
            last = step
            if isinstance(statement, ast.Return) and looks:
                record = f"{name}_record(({len(self.lines)}, {', '.join(looks)}))"
                body += ast.parse(record).body
            body.append(statement)
        function.body = body
        self.lines.append(lines)
        self.timed.append(steps)

    def note(self, keep: bool) -> None:
        """Take what a call recorded, the function of the whole program last, and forget it."""
        records = self.records[:]
        self.records.clear()
        if not keep or not records:
            return
        *within, (_, *looks) = records
        self.runs.append(np.diff(looks))
        sums: dict[tuple[int, int], Any] = {}
        for number, first, *rest in within:
            key = bisect(looks, first) - 1, number
            sums[key] = sums.get(key, 0) + np.diff([first, *rest])
            self.counts[key] += 1
        for key, times in sums.items():
            self.runs_within.setdefault(key, []).append(times)

    def steps(self, machine: Machine) -> tuple[StepTime, ...]:
        """The steps with their times."""
        if not self.plan.steps:
            return ()
        clock = machine.clock / NANOSECOND
        times = np.maximum(np.median(self.runs, axis=0) - clock, 1) * NANOSECOND
        judge = _Judge(machine, self.source.text.splitlines(), float(times.sum()))
        costs, found = cost(self.plan).steps, []
        for i, (of, line, seconds) in enumerate(zip(costs, self.lines[-1], times, strict=True)):
            inner = tuple(self._inner(i, of.step, seconds, judge))
            if inner and not of.step.node.bodies:
                flops = [s.flops for s in inner]
                of = of._replace(flops=None if None in flops else sum(f or 0 for f in flops))
            ran = self._times(i, of.step)
            found.append(judge.step_time(self.plan, of, line, seconds, 1.0, inner, ran))
        return tuple(found)

    def _functions(self, i: int, step: Step) -> list[tuple[int, Plan]]:
        """The functions that a step ran within the step of a number, each with its plan."""
        ran = [n for n in range(len(self.timed)) if (i, n) in self.runs_within]
        found = []
        for plan in step.plans:
            its = [n for n in ran if self.timed[n][:1] == [*plan.steps[:1]]]
            # Of functions that read alike one is written.
            names = [s.name for s in plan.steps]
            its = its or [n for n in ran if [s.name for s in self.timed[n]] == names]
            found += [(n, plan) for n in its[:1] if len(self.timed[n]) == len(names)]
        return found

    def _times(self, i: int, step: Step) -> float:
        """How often a step ran what it runs: as counted, of a loop."""
        if step.inner is None or not step.node.bodies:
            return 0
        counts = [self.counts[i, number] / len(self.runs) for number, _ in self._functions(i, step)]
        return counts[-1] if counts else 0

    def _inner(self, i: int, step: Step, seconds: float, judge: _Judge) -> Iterator[StepTime]:
        """The steps that a step runs within it, each with its part of the time."""
        functions = self._functions(i, step)
        rows = [np.median(self.runs_within[i, number], axis=0) for number, _ in functions]
        total = sum(float(np.maximum(row, 1).sum()) for row in rows)
        for (number, plan), row in zip(functions, rows, strict=True):
            times = np.maximum(row, 1) * (seconds / total)
            ran = self.counts[i, number] / len(self.runs) if step.node.bodies else step.times
            is_counted = not any(is_open(slot.type) for slot in plan.slots)
            unknown = (StepCost(s, None, 0, 0) for s in plan.steps)
            costs = cost(plan).steps if is_counted else tuple(unknown)
            for of, line, time in zip(costs, self.lines[number], times, strict=True):
                inner = tuple(self._inner(i, of.step, float(time), judge))
                within = self._times(i, of.step)
                yield judge.step_time(plan, of, line, time, ran, inner, within)


class _Judge(NamedTuple):
    machine: Machine
    code: Sequence[str]
    total: float

    def step_time(
        self,
        plan: Plan,
        of: StepCost,
        line: int,
        seconds: float,
        times: float,
        inner: tuple[StepTime, ...] = (),
        ran: float = 0,
    ) -> StepTime:
        """The figures of a step of such a cost, done so many times; a loop `ran` so many steps."""
        wide = any(plan.slots[r.slot].dtype in ("float64", "complex128") for r in of.step.results)
        dtype = "float64" if wide else "float32"
        least = self.machine.seconds(of.flops or 0, of.bytes_read + of.bytes_written, dtype)
        return StepTime(
            of.step,
            line,
            self.code[line - 1].partition("  # ")[0].strip(),
            float(seconds),
            float(seconds / self.total),
            None if of.flops is None else round(of.flops * times),
            round(of.bytes_read * times),
            round(of.bytes_written * times),
            float(least * times / seconds),
            inner,
            ran,
        )
