"""Programs: compiled graphs that are called with arrays. The one object with state."""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import count, repeat
from operator import attrgetter, index, is_, methodcaller
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from symgrad.ir.collector import without_collection
from symgrad.ir.dims import GUESS
from symgrad.ir.errors import FeedError, GraphError, KernelError
from symgrad.ir.graph import Graph
from symgrad.ir.late import SLOTS, Displayed
from symgrad.ir.node import Node, Variable
from symgrad.lowering.cost import Cost, cost
from symgrad.lowering.lower import lower
from symgrad.lowering.plan import Plan
from symgrad.rewrite.trace import Trace
from symgrad.runtime.check import RTOL, Check, checked
from symgrad.runtime.codegen import generate
from symgrad.runtime.copies import remade, state_of, traces_of
from symgrad.runtime.executable import Ready, explained
from symgrad.runtime.executor import StepFailed, execute
from symgrad.runtime.feeding import Array, Feeder
from symgrad.runtime.kept import Parts
from symgrad.runtime.profile import RUNS, Profile, profiled
from symgrad.runtime.standalone import write_standalone
from symgrad.runtime.why import Teller, Why

MOST_PLANS = 16
# Workspaces that are kept for calls to come, for each plan.
MOST_IDLE = 8
_numbers = count(1)
_read = attrgetter("array")
_acquire = methodcaller("acquire")
_release = methodcaller("release")


class Program(Displayed):
    """A compiled graph. Call it with arrays, by position or by name.

    What it returns has the form of the `outputs` it was compiled with; the arrays are the
    caller's, and 0-d results are NumPy scalars. Inputs are never written. If it updates
    variables, all of them change together once everything has been computed, or none of them.
    It may be called from several threads: calls that update take turns.

    `graph` is what runs, `raw` what was written, `trace` the way from the one to the other.

    What depends only on variables that it does not update is computed once and kept, until one of
    them has changed, if that saves work: `kept` is a program that computes it, or None. Of `graph`
    that is a part; `plan`, `source` and `cost` are of the rest, and `kept` has its own.
    """

    def __init__(
        self,
        graph: Graph,
        raw: Graph,
        trace: Trace,
        form: Callable[[Sequence[Any]], Any],
        output_names: tuple[str, ...],
        updates: Sequence[Variable],
        backend: str,
        parts: Parts | None = None,
        threads: int = 1,
        forms: tuple[Any, ...] | None = None,
    ) -> None:
        self.graph, self.raw, self.trace = graph, raw, trace
        self.output_names = output_names
        self._form = form
        self._updates = tuple(updates)
        self._backend, self._parts, self._threads = backend, parts, threads
        self._lowered = partial(lower, graph) if parts is None else parts.lower
        self.kept: Program | None = None
        placeholders = [n for n in graph.inputs if not isinstance(n, Variable)]
        self._variables = [n for n in graph.inputs if isinstance(n, Variable)]
        self._cells = [v.cell for v in self._variables]
        self._unset = [v for v in self._variables if v.cell.array is None]
        self._scalars = [i for i, v in enumerate(self._variables) if not v.ndim]
        self._updated = [v.cell for v in self._updates]
        # All programs take locks in one order, so that no two wait for each other.
        self._locks = [c.lock for c in sorted(self._updated, key=id)]
        self._spares: list[Any] = [np.empty(0)] * len(self._updates)
        self._feeder = Feeder(placeholders, forms)
        self._plans: OrderedDict[tuple[int, ...], Ready] = OrderedDict()
        self._plans_lock = Lock()
        names = {name for n in placeholders for name in n.tensor.names}
        self._size_names = tuple(sorted(names))
        if parts is not None:
            raw_part = parts.trace.stages[0].before
            own = (parts.once, raw_part, parts.trace, tuple, parts.names, (), backend)
            self.kept = Program(*own, threads=threads)
            place = {v: i for i, v in enumerate(self._variables)}
            self._sources = [place[v] for v in self.kept._variables]
            # The arrays of the sources, and what was made of them: always replaced together.
            self._last: tuple[list[Any], Sequence[Any]] = ([None] * len(self._sources), ())
        # The one plan of a program without named dimensions.
        self._fixed = None if names else self._ready({})

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        inputs, sizes = self._feeder.feed(args, kwargs)
        ready = self._fixed or self._ready(sizes)
        try:
            workspace = ready.free.pop()
        except IndexError:
            workspace = ready.workspace()
        # After an exception a thread may still be at work in it: then it is not used again.
        results = self._update(ready, inputs, workspace)
        if len(ready.free) < MOST_IDLE:
            ready.free.append(workspace)
        return self._form(results)

    # ---- copies -----------------------------------------------------------------------------

    def __copy__(self) -> Program:
        """The same program: it shares variables, plans and workspaces."""
        made = object.__new__(Program)
        vars(made).update(vars(self))
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        """The same with variables of its own, which begin with the present values.

        What is copied together shares them: `copy.deepcopy((program, w))`.
        """
        return remade(*deepcopy((*state_of(self), *traces_of(self)), memo))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, it runs the same graph, and variables have their values; the trace is lost."""
        return remade, state_of(self)

    # ---- running ----------------------------------------------------------------------------

    def _update(self, ready: Ready, inputs: list[Any], workspace: list[Array]) -> Sequence[Any]:
        """Run while holding the locks of all variables that are updated.

        Ctrl-C comes between bytecodes. So every lock that is taken is noted in the same call in C,
        and one call in C, made ready beforehand, releases them.
        """
        if not self._variables:
            return self._computed(ready, inputs, (), (), workspace)
        if not self._locks:
            return self._run(ready, inputs, workspace)
        taken: list[Any] = []
        release: partial[Any] = partial(deque, map(_release, taken), 0)
        try:
            taken.extend(filter(_acquire, self._locks))
            return self._run(ready, inputs, workspace)
        finally:
            release()

    def _run(self, ready: Ready, inputs: list[Any], workspace: list[Array]) -> Sequence[Any]:
        # One call in C each for reading and for writing all the variables: neither Ctrl-C nor
        # another thread can come in between and see half of an update.
        if self._unset:
            for variable in self._unset:
                variable.cell.read(str(variable.name))
            self._unset = []
        current: list[Any] = list(map(_read, self._cells))
        if self.kept is not None:
            current += self._kept_values(self.kept, current)
        for i in self._scalars:
            current[i] = current[i][()]
        plan = ready.plan
        try:
            nexts = [self._spare(i) for i, n in enumerate(plan.nexts) if n >= 0]
        except MemoryError as error:
            raise ready.explained(error) from error
        try:
            results = self._computed(ready, inputs, current, nexts, workspace)
        except BaseException:
            self._spares[:] = [np.empty(0)] * len(self._spares)  # as with the workspace
            raise
        if self._updates:
            self._commit(plan, nexts, results[len(plan.outputs) :])
        return results[: len(plan.outputs)]

    def _kept_values(self, kept: Program, arrays: list[Any]) -> Sequence[Any]:
        """What is kept, computed again if a variable has another array than it was made of.

        That these arrays are held is what keeps other programs from writing into them.
        """
        sources = [arrays[i] for i in self._sources]
        made_of, values = self._last
        if not all(map(is_, sources, made_of)):
            ready = kept._ready({})
            seen = [a if a.ndim else a[()] for a in sources]
            values = kept._computed(ready, [], seen, [], ready.workspace())
            self._last = sources, values
        return values

    def _computed(
        self,
        ready: Ready,
        inputs: Sequence[Any],
        current: Sequence[Any],
        nexts: Sequence[Any],
        workspace: Sequence[Any],
    ) -> Sequence[Any]:
        """The outputs, and the next values of 0-d variables, for these values of all variables."""
        with np.errstate(all="ignore"):
            try:
                if self._backend == "numpy":
                    found = ready.function(*inputs, *current, *nexts, *workspace)
                    return (found,) if ready.returns_one else found or ()
                return execute(ready.plan, inputs, current, nexts, workspace)
            except KernelError:
                raise
            except StepFailed as failed:
                raise explained(failed.error, failed.step) from failed.error
            except Exception as error:
                raise ready.explained(error) from error

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
        assert present is not None
        fits = self._spares[i].shape == present.shape and self._spares[i].dtype == present.dtype
        if not fits or _readers(self._spares, i) > _NO_READERS:
            self._spares[i] = np.empty_like(present)
        spare: Array = self._spares[i]
        return spare

    def _ready(self, sizes: Mapping[str, int]) -> Ready:
        key = tuple(sizes[n] for n in self._size_names)
        with self._plans_lock:
            found = self._plans.get(key)
            if found is None:
                with without_collection():
                    found = self._planned(sizes, f"<symgrad program {next(_numbers)}>")
                self._plans[key] = found
                if len(self._plans) > MOST_PLANS:
                    self._plans.popitem(last=False)
            elif len(self._plans) > 1:
                self._plans.move_to_end(key)
            return found

    def _planned(self, sizes: Mapping[str, int], filename: str = "<symgrad program>") -> Ready:
        """A plan that is not entered: to look at it does not change what is shown next."""
        plan = self._lowered(sizes, self._updates, threads=self._threads)
        return Ready(plan, filename, self._parts)

    # ---- looking ----------------------------------------------------------------------------

    def _shown(self, sizes: Mapping[str, int] | None = None) -> Ready:
        """The plan that is shown: for the sizes given, else of the last call, else for a guess."""
        if sizes:
            unknown = sizes.keys() ^ set(self._size_names)
            if unknown:
                raise FeedError(
                    f"sizes are wanted for {', '.join(self._size_names) or 'no names'}; "
                    f"{', '.join(sorted(unknown))} is missing or unknown"
                )
            given = _as_sizes(sizes)
            with self._plans_lock:
                found = self._plans.get(tuple(given[n] for n in self._size_names))
            return found or self._planned(given)
        with self._plans_lock:
            if self._plans:
                return next(reversed(self._plans.values()))
        return self._planned(dict.fromkeys(self._size_names, GUESS))

    @property
    def plan(self) -> Plan:
        """Steps and memory, for the sizes of the last call (before one: every name is 64).

        What is kept from call to call is counted by `kept.plan.output_bytes`.
        """
        return self._shown().plan

    @property
    def source(self) -> str:
        """The NumPy program, for the sizes of the last call (before one: every name is 64)."""
        return self._shown().source.text

    def why(self, node_or_line: Node | int | str) -> Why:
        """Why it runs what it runs: the way from what was written to the step that computes it now.

        Ask about a node that it was compiled from, about a line of yours (`12`, or `"train.py:12"`
        if there are several files), or about a line of `source`. The answer prints as a story: the
        line, what it built, each rewrite with its grade and reason, and the steps of the plan with
        their lines in the source. It has the same as fields. Of what is computed once and kept, the
        steps are those of `kept.plan`, and the lines those of `kept.source`.

        Raises `GraphError` for a node that is no part of the program, and for a line at which
        nothing was built; it lists the nearest that built something.
        """
        if not self.trace.stages and self.raw is not self.graph:
            raise GraphError("the program was pickled, which loses its trace; compile it to ask")
        ready = self._shown()
        answer = self._teller(ready).answer(node_or_line)
        if self.kept is None or self._parts is None:
            return answer
        return self._parts.told(answer, self._teller(self.kept._shown()))

    def _teller(self, ready: Ready) -> Teller:
        return Teller(self.raw, self.trace, ready.plan, ready.source)

    def cost(self, /, **sizes: int) -> Cost:
        """Floating-point operations and bytes moved, of each step and in all; it prints as a table.

        It holds for the sizes of the last call, or for those given: `cost(N=64)`. `before` is the
        graph as it was written, run op by op, `after` what runs. Each has `steps`, with `flops`,
        `bytes_read`, `bytes_written` and `intensity`, and these in all; `bytes_moved` if each step
        goes over whole arrays, and `bytes_fused` if each fused group is one pass over its operands,
        as a large one nearly is that runs in blocks.
        `symgrad.lowering.cost.cost` says what counts. What is computed once and kept is no part of
        `after`: see `kept.cost()`.
        """
        known = self._shown(sizes).plan.sizes
        raw = lower(self.raw, known, self._updates, tiled=False)
        return Cost(cost(raw), cost(self._lowered(known, self._updates, tiled=False)))

    def profile(self, /, *args: Any, runs: int = RUNS, **kwargs: Any) -> Profile:
        """Time each step in calls with these arrays, which update nothing: see `Profile`."""
        return profiled(self, args, kwargs, runs)

    def check(
        self, /, *args: Any, against: str | None = None, rtol: float = RTOL, **kwargs: Any
    ) -> Check:
        """Find the first node that makes a NaN or an inf of these arrays that reaches an output.

        With `against="float64"`, the first node whose result differs by more than `rtol` from that
        of the same graph in float64, relative to its largest element. Constants, random numbers and
        what Python code of yours gives are taken as they are. The answer is true if nothing was
        found; printed, it names the node, its line and the ranges of its inputs, and lists what
        reaches no output, being harmless. Nothing is updated.

        >>> x = placeholder("x", 3)
        >>> print(compile(x, sum(log(x))).check([1.0, 0.0, 2.0]))  # doctest: +ELLIPSIS
        log made inf: 1 of 3, first at (1,)
          built at ...
          input 0, 'x' float64[3] (...): from 0 to 2
          result, log float64[3] (...): from 0 to 0.693147, 1 inf
        """
        return checked(self, args, kwargs, against, rtol)

    def save_source(self, path: str | Path, /, **sizes: int) -> Path:
        """Write the program as one file that imports NumPy only.

        It holds for the sizes of the last call, or for those given: `save_source("p.py", N=64)`.
        What is computed once and kept here is computed in every call there; results have the same
        form. The file is written whole or not at all. Raises `FeedError` if sizes are not known.
        """
        if not sizes and not self._plans:
            wanted = ", ".join(f"{n}=…" for n in self._size_names)
            raise FeedError(f"a program is written for known sizes: save_source(path, {wanted})")
        ready = self._shown(sizes)
        outputs = self.output_names[: len(ready.plan.outputs)]
        plan, source = ready.plan, ready.source
        if self._parts is not None or self._threads > 1:
            plan = lower(self.graph, plan.sizes, self._updates)
            source = generate(plan)
        keeps = self._parts is not None
        return write_standalone(plan, source, self._updates, outputs, Path(path), self._form, keeps)

    def render(self, path: str | Path, **options: Any) -> Path:
        """Draw the graph that runs into a file: .svg, .png or .dot. What is kept is part of it."""
        return SLOTS.viewer().render(self, path, **options)

    def explore(self, path: str | Path, **options: Any) -> Path:
        """Write a page that shows every pass, every node with its story, and the source.

        It is one HTML file that needs no network. `profile=` takes what `profile` gave;
        `embed_source=False` leaves your source out. See `symgrad_viz.explore`.
        """
        return SLOTS.viewer().explore(self, path, **options)

    def __repr__(self) -> str:
        names = ", ".join(self._feeder.names)
        updates = f", updating {', '.join(str(v.name) for v in self._updates)}" * bool(
            self._updates
        )
        return f"<Program of ({names[:200]}): {len(self.graph)} nodes{updates}>"


def _as_sizes(sizes: Mapping[str, Any]) -> dict[str, int]:
    try:
        found = {name: index(size) for name, size in sizes.items()}
    except TypeError:
        raise FeedError(f"sizes are whole numbers, and {sizes} are not") from None
    negative = [name for name, size in found.items() if size < 0]
    if negative:
        raise FeedError(f"a size cannot be negative: {negative[0]} = {found[negative[0]]}")
    return found


def _readers(spares: list[Any], i: int) -> int:
    return sys.getrefcount(spares[i])


_NO_READERS = _readers([np.empty(1)], 0)
