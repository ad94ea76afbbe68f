"""Programs: compiled graphs that are called with arrays. The one object with state."""

from __future__ import annotations

import linecache
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, repeat
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from symgrad import display
from symgrad.ir.dims import GUESS
from symgrad.ir.errors import FeedError, KernelError
from symgrad.ir.graph import Graph
from symgrad.ir.node import Variable
from symgrad.lowering.lower import lower
from symgrad.lowering.plan import Plan, Step
from symgrad.rewrite.trace import Trace
from symgrad.runtime.codegen import Source, generate
from symgrad.runtime.executor import execute
from symgrad.runtime.feeding import Array, Feeder
from symgrad.runtime.standalone import write_standalone
from symgrad.runtime.workspace import allocate

MOST_PLANS = 16
_numbers = count(1)
_read = attrgetter("array")


@dataclass
class _Ready:
    """A plan that can be run: its source, its function, and workspaces that nobody uses."""

    plan: Plan
    filename: str
    free: list[list[Array]] = field(default_factory=list)

    @cached_property
    def source(self) -> Source:
        return generate(self.plan)

    @cached_property
    def function(self) -> Callable[..., Any]:
        made = self.source.compile(self.filename)
        lines = self.source.text.splitlines(keepends=True)
        linecache.cache[self.filename] = (len(self.source.text), None, lines, self.filename)
        return made


class Program:
    """A compiled graph. Call it with arrays, by position or by name.

    What it returns has the form of the `outputs` it was compiled with; the arrays are the
    caller's, and 0-d results are NumPy scalars. Inputs are never written. If it updates
    variables, all of them change together once everything has been computed, or none of them.
    It may be called from several threads: calls that update take turns.

    `graph` is what runs, `raw` what was written, `trace` the way from the one to the other.
    """

    def __init__(
        self, graph: Graph, raw: Graph, trace: Trace, form: Callable[[Sequence[Any]], Any],
        output_names: tuple[str, ...], updates: Sequence[Variable], backend: str,
    ) -> None:
        self.graph = graph
        self.raw = raw
        self.trace = trace
        self.output_names = output_names
        self._form = form
        self._updates = tuple(updates)
        self._backend = backend
        placeholders = [n for n in graph.inputs if not isinstance(n, Variable)]
        self._variables = [n for n in graph.inputs if isinstance(n, Variable)]
        self._cells = [v.cell for v in self._variables]
        self._updated = [v.cell for v in self._updates]
        self._locks = [c.lock for c in sorted({*self._updated}, key=id)]
        self._spares: list[Any] = [np.empty(0)] * len(self._updates)
        self._feeder = Feeder(placeholders)
        self._plans: OrderedDict[tuple[int, ...], _Ready] = OrderedDict()
        self._plans_lock = Lock()
        names = {name for n in placeholders for name in n.tensor.names}
        self._size_names = tuple(sorted(names))
        if not names:
            self._ready({})

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        inputs, sizes = self._feeder.feed(args, kwargs)
        ready = self._ready(sizes)
        try:
            workspace = ready.free.pop()
        except IndexError:
            workspace = allocate(ready.plan)
        try:
            with _held(self._locks):
                return self._form(self._run(ready, inputs, workspace))
        finally:
            ready.free.append(workspace)

    # ---- running ----------------------------------------------------------------------------

    def _run(self, ready: _Ready, inputs: list[Any], workspace: list[Array]) -> Sequence[Any]:
        # One call in C each for reading and for writing all the variables: neither Ctrl-C nor
        # another thread can come in between and see half of an update.
        arrays = list(map(_read, self._cells))
        current = [a if a is None or a.ndim else a[()] for a in arrays]
        if any(a is None for a in current):
            next(v for v in self._variables if v.cell.array is None).value  # noqa: B018  raises
        plan = ready.plan
        nexts = [self._spare(i) for i, n in enumerate(plan.nexts) if n >= 0]
        with np.errstate(all="ignore"):
            try:
                if self._backend == "numpy":
                    found = ready.function(*inputs, *current, *nexts, *workspace)
                    results = _several(found, len(plan.outputs) + plan.nexts.count(-1))
                else:
                    outputs, updated = execute(plan, inputs, current, nexts, workspace)
                    scalars = [u for u, n in zip(updated, plan.nexts, strict=True) if n < 0]
                    results = [*outputs, *scalars]
            except Exception as error:
                raise _explained(error, ready) from error
        if self._updates:
            self._commit(plan, nexts, results[len(plan.outputs) :])
        return results[: len(plan.outputs)]

    def _commit(self, plan: Plan, nexts: list[Array], scalars: Sequence[Any]) -> None:
        arrays, zero_d = iter(nexts), iter(scalars)
        new = [
            next(arrays) if n >= 0 else np.asarray(next(zero_d), v.dtype)
            for n, v in zip(plan.nexts, self._updates, strict=True)
        ]
        old = list(map(_read, self._updated))
        deque(map(setattr, self._updated, repeat("array"), new), maxlen=0)
        self._spares[:] = old

    def _spare(self, i: int) -> Array:
        """An array for the next value of a variable: the value before the present one, unless
        somebody is still reading it.
        """
        present = self._updated[i].array
        if self._spares[i].shape != present.shape or _readers(self._spares, i) > _NO_READERS:
            self._spares[i] = np.empty_like(present)
        spare: Array = self._spares[i]
        return spare

    def _ready(self, sizes: Mapping[str, int]) -> _Ready:
        key = tuple(sizes[n] for n in self._size_names)
        with self._plans_lock:
            found = self._plans.get(key)
            if found is None:
                plan = lower(self.graph, sizes, self._updates)
                found = self._plans[key] = _Ready(plan, f"<symgrad program {next(_numbers)}>")
                while len(self._plans) > MOST_PLANS:
                    linecache.cache.pop(self._plans.popitem(last=False)[1].filename, None)
            elif len(self._plans) > 1:
                self._plans.move_to_end(key)
            return found

    # ---- looking ----------------------------------------------------------------------------

    def _shown(self, sizes: Mapping[str, int] | None = None) -> _Ready:
        """The plan that is shown: for the sizes given, else of the last call, else for a guess."""
        if sizes:
            unknown = sizes.keys() ^ set(self._size_names)
            if unknown:
                raise FeedError(
                    f"sizes are wanted for {', '.join(self._size_names) or 'no names'}; "
                    f"{', '.join(sorted(unknown))} is missing or unknown"
                )
            return self._ready(sizes)
        if self._plans:
            return next(reversed(self._plans.values()))
        plan = lower(self.graph, dict.fromkeys(self._size_names, GUESS), self._updates)
        return _Ready(plan, "<symgrad program>")

    @property
    def plan(self) -> Plan:
        """Steps and memory, for the sizes of the last call (before one: every name is 64)."""
        return self._shown().plan

    @property
    def source(self) -> str:
        """The NumPy program, for the sizes of the last call (before one: every name is 64)."""
        return self._shown().source.text

    def save_source(self, path: str | Path, **sizes: int) -> Path:
        """Write the program as one file that imports NumPy only.

        It holds for the sizes of the last call, or for those given: `save_source("p.py", N=64)`.
        The file is written whole or not at all. Raises `FeedError` if sizes are not known.
        """
        if not sizes and not self._plans:
            wanted = ", ".join(f"{n}=…" for n in self._size_names)
            raise FeedError(f"a program is written for known sizes: save_source(path, {wanted})")
        ready = self._shown(sizes)
        names = [str(v.name) for v in self._updates]
        return write_standalone(ready.plan, ready.source, names, Path(path))

    def render(self, path: str | Path, **options: Any) -> Path:
        """Draw the graph that runs into a file: .svg, .png or .dot."""
        return display.render(self, path, **options)

    def _repr_svg_(self) -> str | None:
        return display.svg_or_none(self)

    def __repr__(self) -> str:
        names = ", ".join(self._feeder.names)
        updates = f", updating {', '.join(str(v.name) for v in self._updates)}" * bool(self._updates)
        return f"<Program of ({names[:200]}): {len(self.graph)} nodes{updates}>"


@contextmanager
def _held(locks: Sequence[Any]) -> Iterator[None]:
    """All locks, taken in one order everywhere, so that two programs never wait for each other."""
    taken = 0
    try:
        for lock in locks:
            lock.acquire()
            taken += 1
        yield
    finally:
        for lock in locks[:taken][::-1]:
            lock.release()


def _readers(spares: list[Any], i: int) -> int:
    return sys.getrefcount(spares[i])


_NO_READERS = _readers([np.empty(1)], 0)


def _several(found: Any, expected: int) -> Sequence[Any]:
    return (found,) if expected == 1 else found or ()


def _explained(error: Exception, ready: _Ready) -> Exception:
    """The error of a kernel, with the step, the node and the user's line."""
    if isinstance(error, (MemoryError, KernelError)):
        return error
    step = _failing_step(error, ready)
    if step is None:
        return KernelError(f"the program failed: {error}")
    places = "".join(f"\n  built at {p}: {p.text}" for p in step.node.origin.locations)
    made = f"\n  made by {', '.join(step.node.origin.made_by)}" if step.node.origin.made_by else ""
    types = ", ".join(repr(x.type) for x in step.node.inputs)
    return KernelError(f"{step.op.name}({types}) failed: {error}{places}{made}")


def _failing_step(error: Exception, ready: _Ready) -> Step | None:
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == ready.filename:
            return ready.source.lines.get(trace.tb_lineno)
        trace = trace.tb_next
    return None

