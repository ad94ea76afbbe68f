"""`map_reduce`: a program that runs piece by piece along a named dimension, on any executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import urandom
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.compiler import compile
from symgrad.distributed.chunks import Chunks
from symgrad.distributed.report import Report, described
from symgrad.distributed.rounds import Executor, Spent, Task, run_round
from symgrad.distributed.worker import Key, Lent, Piece
from symgrad.ir.dims import evaluate
from symgrad.ir.errors import FeedError, GraphError
from symgrad.ir.graph import Graph, is_input
from symgrad.ir.late import SLOTS, Displayed
from symgrad.ir.node import Node, Variable
from symgrad.lowering.map_reduce.split import Part, Split, split
from symgrad.ops.leaves import size_of
from symgrad.passes.cse import common_subexpressions
from symgrad.passes.erase_identities import erase_identities, erase_updates
from symgrad.rewrite.rule import Exact, Grade
from symgrad.rewrite.trace import Trace
from symgrad.runtime.executable import Backend
from symgrad.runtime.feeding import Feeder
from symgrad.runtime.program import Program
from symgrad.runtime.question import Question, Updates, asked, stateful
from symgrad.runtime.store import VariableStore

if TYPE_CHECKING:
    from pathlib import Path


def map_reduce(
    inputs: Any,
    outputs: Any,
    updates: Updates | None = None,
    *,
    over: str,
    exact: Exact | Grade = "rounding",
    backend: Backend = "numpy",
    threads: int | None = None,
) -> MapReduce:
    """A program that is computed piece by piece along the named dimension `over`, and exactly so.

    `inputs`, `outputs` and `updates` are those of `compile`, as are `exact`, `backend` and
    `threads`, with which the parts are compiled. The answer is called with `chunks`; it computes
    the same as a compiled program of all rows at once: sums over `over` are joined from those of
    the pieces, means and batch statistics divide by the number of all rows, and draws of random
    numbers are those of the rows. What depends on no piece is computed once. It is computed in
    rounds, as many as there are sums that one needs to begin the next; each reads the data again.

    Raises `UnsupportedError`, which names the node and its line, for what needs more than one piece
    at once (a sort, a running sum, neighbours, a matrix of all pairs), and at a grade below
    `rounding` for sums of floats; `GraphError` as `compile` does, and if no input has `over`.

    >>> x, w = placeholder("x", ("N", 2)), variable("w", np.zeros(2))
    >>> loss = mean((x @ w - 1) ** 2)
    >>> step = map_reduce([x], loss, {w: w - 0.1 * grad(loss, w)}, over="N")
    >>> float(step(chunks(x=np.ones((10, 2)), rows=4)))
    1.0
    """
    question = asked(inputs, outputs, updates)
    if over.__class__ is not str or not any(over in x.tensor.names for x in question.fed):
        raise GraphError(
            f"no input has a dimension called {over!r:.60}: give one the shape ({over!r:.20}, …), "
            "and tell map_reduce its name"
        )
    grade = Exact.of(exact)
    start = stateful(erase_updates(question.graph, Trace()), question.fed, question.updated)
    # What is the same is merged before it is cut: the passes of the parts see one part each.
    start = common_subexpressions(erase_identities(start, grade, Trace()), grade, Trace())
    parts = split(start.outputs, question.fed, over, grade)

    def compiled(part: Part) -> Program | None:
        if not part.gives:
            return None
        graph = part.graph
        return compile(
            list(graph.inputs), list(graph.outputs), exact=grade, backend=backend, threads=threads
        )

    state = [x for x in start.inputs if isinstance(x, Variable)]
    return MapReduce(question, parts, state, compiled)


class MapReduce(Displayed):
    """A program in rounds of pieces. Call it with `chunks`, and inputs that have no rows by name.

    It prints as the rounds, with what pieces read and what they send back; `render` draws them.
    `rounds` and `stages` are the programs: the graph of a piece in each round, and what is computed
    before, between and after them, None for nothing. `report` tells where the time of the last call
    went.

    It may be called from several threads: calls that update take turns. Variables change together
    once everything has been computed, or none of them.
    """

    def __init__(
        self,
        question: Question,
        parts: Split,
        variables: Sequence[Variable],
        compiled: Callable[[Part], Program | None],
    ) -> None:
        self.question, self.split = question, parts
        self.rounds = tuple(map(compiled, parts.rounds))
        self.stages = tuple(map(compiled, parts.stages))
        self.feeder = Feeder(question.fed)
        self.store = VariableStore(variables, question.updated)
        self.slots = [(urandom(16).hex(), urandom(16).hex()) for _ in parts.rounds]
        self.workers: set[str] = set()
        self.report: Report | None = None

    @property
    def raw(self) -> Graph:
        """The graph as it was written: what is returned, then the next values of variables."""
        return self.question.graph

    @property
    def graph(self) -> Graph:
        """The graph as it is computed, in whose scopes are the rounds and what is between them."""
        return self.split.graph

    def render(self, path: str | Path | None = None, **options: Any) -> Any:
        """Draw the rounds into a file: .svg, .png or .dot."""
        return SLOTS.viewer().render(self.graph, path, **options)

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of what is returned, then those of the next values."""
        return self.question.names

    def __call__(
        self,
        data: Chunks,
        /,
        *,
        executor: Executor | None = None,
        progress: Callable[[int, Spent], object] | None = None,
        **whole: Any,
    ) -> Any:
        """The outputs, in the form that they were asked for; the variables have their next values.

        `executor` is any of `concurrent.futures`, or of another library that has `submit`: threads,
        processes, those of a cluster. Every executor gives the same bits. Without one the pieces
        are computed one after the other, so that no more than one is in memory. `whole` are the
        inputs that have no rows. `progress(round, spent)` is called after every piece.

        Raises `FeedError` for data that does not fit, before anything is computed. An error in a
        piece tells which one it was. If anything is raised, no variable has changed.
        """
        call = self._fed(data, whole, executor)
        return self.question.form(self.store.alone(self._run, call, executor, progress, True))

    def on(
        self, data: Chunks, /, *, executor: Executor | None = None, **whole: Any
    ) -> BoundProgram:
        """The program with its data: `sg.fit(step.on(data), epochs=10)` is one step an epoch."""
        self._fed(data, whole, executor)
        return BoundProgram(self, data, executor, whole)

    def profile(self, data: Chunks, /, *, executor: Executor | None = None, **whole: Any) -> Report:
        """Where the time of a call goes, round by round. Nothing is updated."""
        self._run(self._fed(data, whole, executor), executor, None, False)
        assert self.report is not None
        return self.report

    def _run(
        self,
        call: _Call,
        executor: Executor | None,
        progress: Callable[[int, Spent], object] | None,
        commits: bool,
    ) -> list[Any]:
        values, report = call.values, Report()
        values.update(zip(self.store.variables, self.store.read(), strict=True))
        for number, part in enumerate(self.split.stages):
            program = self.stages[number]
            if program is not None:
                given = [values[x] for x in part.given]
                found = program(*given, *_tell(part, call.sizes))
                values.update(zip(part.gives, found, strict=True))
            if number < len(self.rounds):
                note = None if progress is None else partial(progress, number)
                of = f"round {number + 1} of {len(self.rounds)}"
                tasks, meetings = self._tasks(number, call), self.split.meetings[number]
                count = call.data.count(call.sizes[self.split.over])
                found, spent = run_round(tasks, meetings, executor, self.workers, count, of, note)
                values.update(zip(self.split.rounds[number].gives, found, strict=True))
                report.rounds.append(spent)
        results = [_own(values[y]) if is_input(y) else values[y] for y in self.split.outputs]
        updated = self.question.updated
        count = len(results) - len(updated)
        if commits:
            new = zip(results[count:], updated, strict=True)
            self.store.exchange([np.array(value, v.dtype) for value, v in new])
        self.report = report
        return results[:count]

    def _tasks(self, number: int, call: _Call) -> Iterator[Task]:
        part, (program, lent) = self.split.rounds[number], self.slots[number]
        feeds = self.split.feeds
        cut = [x for x in part.given if x in feeds]
        arrays = [np.asarray(call.values[x]) for x in part.given if x not in feeds]
        common = Lent(program, self.rounds[number], Key()), Lent(lent, arrays, Key(arrays))
        for i, (start, stop) in enumerate(call.data.spans(call.sizes[self.split.over])):
            rows = [call.data.sources[str(x.name)].part(feeds[x], start, stop) for x in cut]
            own = [np.int64(start)] if part.is_numbered else []
            own += _tell(part, {**call.sizes, self.split.over: stop - start})
            yield Task(Piece(common[0], rows, common[1], own), i, (start, stop))

    def _fed(self, data: Chunks, whole: Mapping[str, Any], executor: Executor | None) -> _Call:
        """The data and the other inputs, checked."""
        if hasattr(executor, "get_executor"):
            raise FeedError(
                "a client of a cluster is no executor: give client.get_executor(pure=False, "
                "retries=3)"
            )
        usable = hasattr(executor, "submit") and not isinstance(executor, type)
        if executor is not None and not usable:
            raise FeedError(
                "an executor has submit, as concurrent.futures.ProcessPoolExecutor(2) has, and "
                f"{executor!r:.60} has not"
            )
        if not isinstance(data, Chunks):
            raise FeedError(
                f"data are sg.chunks(x=…, rows=4096), by the names of inputs, not {data!r:.60}"
            )
        axes = {str(x.name): axis for x, axis in self.split.feeds.items()}
        given: dict[str, Any] = {}
        totals: dict[str, int] = {}
        for name, source in data.sources.items():
            shape = list(source.shape)
            if name not in axes:
                given[name] = source.load()
            else:
                if axes[name] < len(shape):
                    totals[name], shape[axes[name]] = shape[axes[name]], 1
                given[name] = np.zeros(shape, source.dtype)
        if twice := given.keys() & whole.keys():
            raise FeedError(f"{', '.join(sorted(twice))}: given twice, in the data and by name")
        if wrong := axes.keys() & whole.keys():
            raise FeedError(f"{', '.join(sorted(wrong))}: rows are given as sg.chunks(…)")
        arrays, sizes = self.feeder.feed((), {**given, **whole})
        if len({*totals.values()}) > 1:
            listed = ", ".join(f"{n} has {rows}" for n, rows in totals.items())
            raise FeedError(f"inputs have as many rows each along {self.split.over}; {listed}")
        sizes = {**sizes, self.split.over: next(iter(totals.values()))}
        values: dict[Node, Any] = dict(zip(self.feeder.inputs, arrays, strict=True))
        for part in (*self.split.rounds, *self.split.stages):
            for x in (*part.given, *self.split.outputs):
                if x.op is size_of.op:
                    values[x] = x.dtype.type(evaluate(x.attr("dim"), sizes))
        return _Call(data, sizes, values)

    def __str__(self) -> str:
        return described(self.split)

    def __repr__(self) -> str:
        count = len(self.rounds)
        return f"<MapReduce over {self.split.over}: {count} round{'s' * (count != 1)}>"


@dataclass(frozen=True, eq=False)
class BoundProgram:
    """A program with the data that it is called with, and the executor."""

    step: MapReduce
    data: Chunks
    executor: Executor | None
    whole: Mapping[str, Any]

    def __call__(self, progress: Callable[[int, Spent], object] | None = None) -> Any:
        """The results of the program."""
        return self.step(self.data, executor=self.executor, progress=progress, **self.whole)


@dataclass(frozen=True)
class _Call:
    """A call: its data, sizes by their names, and the values of nodes, to which it adds."""

    data: Chunks
    sizes: Mapping[str, int]
    values: dict[Node, Any]


def _own(value: Any) -> Any:
    """A copy for the caller; of what has no axes a scalar."""
    return np.array(value)[()]


def _tell(part: Part, sizes: Mapping[str, int]) -> list[Any]:
    """Arrays without elements, of the sizes that nothing else tells a part."""
    return [np.empty((sizes[n], 0), bool) for n in part.sizes]
