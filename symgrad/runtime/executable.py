"""Plans that can be run, and what is said of them when they fail."""

from __future__ import annotations

import linecache
import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from itertools import chain, count
from operator import index
from threading import Lock
from typing import Any, Literal, TypeAlias

import numpy as np

from symgrad.ir.cached import cached_property
from symgrad.ir.collector import without_collection
from symgrad.ir.dims import GUESS
from symgrad.ir.errors import FeedError, KernelError
from symgrad.ir.evaluate import kernel_error, said
from symgrad.ir.record import Record, fresh
from symgrad.ir.telling import timed
from symgrad.lowering.native import NativeCall
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Step
from symgrad.runtime.codegen import generate
from symgrad.runtime.executor import StepFailed, execute
from symgrad.runtime.feeding import Array
from symgrad.runtime.source import Source
from symgrad.runtime.subnormals import flushed
from symgrad.runtime.workspace import allocate

Backend: TypeAlias = Literal["numpy", "native", "reference", "jax"] | None
MOST_PLANS = 16
# Workspaces that are kept for calls to come, for each plan.
MOST_IDLE = 8
_numbers = count(1)


class Executable(Record):
    """A plan that can be run: its source, its function, and workspaces that nobody uses.

    `backend` is `reference` if the plan is walked, step by step, and its source is only to be read.
    `annotate` is given the source, and returns it with what else there is to say. If it `flushes`,
    it takes subnormal numbers for 0.
    """

    plan: Plan
    filename: str
    backend: Backend = "numpy"
    annotate: Callable[[Source, Plan], Source] | None = None
    flushes: bool = False
    free: list[list[Array]] = fresh(factory=list)

    @property
    def direct(self) -> Callable[..., tuple[Any, ...] | None] | None:
        """The function for all of it, from inputs to outputs, if it is one in machine code."""
        return None if self.flushes else self.plan.direct

    @cached_property
    def returns_one(self) -> bool:
        """Whether the function returns one value as it is, not in a tuple."""
        return len(self.plan.returned) == 1

    @cached_property
    def is_quiet(self) -> bool:
        """Whether no step of it could warn, being machine code."""
        return all(isinstance(step, NativeCall) for step in self.plan.steps)

    @cached_property
    def source(self) -> Source:
        made = generate(self.plan, threads=True)
        return made if self.annotate is None else self.annotate(made, self.plan)

    @cached_property
    def function(self) -> Callable[..., Any]:
        with without_collection(), timed(lambda: "writing and loading the source"):
            made = self.source.compile(self.filename)
        lines = self.source.text.splitlines(keepends=True)
        linecache.cache[self.filename] = (len(self.source.text), None, lines, self.filename)
        forgotten = weakref.finalize(self, linecache.cache.pop, self.filename, None)
        forgotten.atexit = False
        return made

    def run(
        self,
        inputs: Sequence[Any],
        current: Sequence[Any],
        nexts: Sequence[Any],
        workspace: Sequence[Any],
    ) -> Sequence[Any]:
        """The outputs, and the next values of 0-d variables, for these values of all variables.

        The other next values are written into `nexts`. Raises `KernelError` for a step that fails.
        """
        try:
            if self.flushes:
                return flushed(self._called, inputs, current, nexts, workspace)
            return self._called(inputs, current, nexts, workspace)
        except KernelError:
            raise
        except StepFailed as failed:
            raise explained(failed.error, failed.step) from failed.error
        except Exception as error:
            raise self.explained(error) from error

    def _called(self, *arrays: Sequence[Any]) -> Sequence[Any]:
        if self.is_quiet:
            return self._walked(*arrays)
        with np.errstate(all="ignore"):
            return self._walked(*arrays)

    def _walked(self, *arrays: Sequence[Any]) -> Sequence[Any]:
        if self.backend == "reference":
            return execute(self.plan, *arrays)
        found = self.function(*chain(*arrays))
        return (found,) if self.returns_one else found or ()

    def lent(self) -> list[Array]:
        """A workspace that nobody uses. Raises as `workspace` does."""
        try:
            return self.free.pop()
        except IndexError:
            return self.workspace()

    def give_back(self, workspace: list[Array]) -> None:
        """Take back what was lent; not after an exception: a thread may still be at work in it."""
        if len(self.free) < MOST_IDLE:
            self.free.append(workspace)

    def workspace(self) -> list[Array]:
        """Arrays to work in. Raises `AllocationError` if there is no memory for them."""
        try:
            return allocate(self.plan)
        except MemoryError as error:
            raise self.explained(error) from error

    def explained(self, error: Exception) -> KernelError:
        """The error of a call, with the step that failed, the node and the user's line.

        Of an array for which there is no memory, the step is that of the largest one.
        """
        step = self._step_of(error)
        if step is None and isinstance(error, MemoryError):
            step = max(self.plan.steps, key=self._bytes_made, default=None)
        return explained(error, step)

    def _bytes_made(self, step: Step) -> int:
        return sum(self.plan.slots[r.slot].nbytes for r in (*step.results, *step.scratch))

    def _step_of(self, error: Exception) -> Step | None:
        """The step whose line of the generated source is the last one in a traceback."""
        trace, found = error.__traceback__, None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.filename:
                found = self.source.lines.get(trace.tb_lineno, found)
            trace = trace.tb_next
        return found


class ProcessLock:
    """A lock that each process has of its own: a thread that held it is not there after a fork."""

    def __init__(self) -> None:
        self._locks: dict[int, Lock] = {}

    def _own(self) -> Lock:
        process = os.getpid()
        return self._locks.get(process) or self._locks.setdefault(process, Lock())

    def __enter__(self) -> None:
        self._own().acquire()

    def __exit__(self, *raised: object) -> None:
        self._own().release()


class Executables:
    """The executables of a program: one for each combination of sizes, of those used last.

    `names` are those of its dimensions, and `plan` makes a plan for their sizes. `fixed` is the one
    executable of a program without named dimensions.
    """

    def __init__(
        self,
        names: Collection[str],
        plan: Callable[[Mapping[str, int]], Plan],
        backend: Backend = "numpy",
        annotate: Callable[[Source, Plan], Source] | None = None,
        flushes: bool = False,
    ) -> None:
        self.names = tuple(sorted(names))
        self._plan, self._backend, self._annotate = plan, backend, annotate
        self._flushes = flushes
        self._used: OrderedDict[tuple[int, ...], Executable] = OrderedDict()
        self._lock = ProcessLock()
        self.fixed = None if names else self.of({})

    @property
    def used(self) -> tuple[Executable, ...]:
        """The executables that are held; the one that was used last is at the end."""
        with self._lock:
            return tuple(self._used.values())

    def of(self, sizes: Mapping[str, int]) -> Executable:
        """The executable for these sizes, to run it: it is held, in place of the least used."""
        key = self._key(sizes)
        with self._lock:
            found = self._used.get(key)
            if found is None:
                with without_collection(), timed(lambda: _planning(sizes)):
                    found = self._made(sizes, f"<symgrad program {next(_numbers)}>")
                self._used[key] = found
                if len(self._used) > MOST_PLANS:
                    self._used.popitem(last=False)
            elif len(self._used) > 1:
                self._used.move_to_end(key)
            return found

    def shown(self, sizes: Mapping[str, int] | None = None) -> Executable:
        """The executable to look at, which does not change what is held.

        It is that for the sizes given, else of the last call, else for a guess. Raises `FeedError`
        for other names than those of the program, and for what is no size.
        """
        if not sizes:
            used = self.used
            return used[-1] if used else self._made(dict.fromkeys(self.names, GUESS))
        unknown = sizes.keys() ^ set(self.names)
        if unknown:
            raise FeedError(
                f"sizes are wanted for {', '.join(self.names) or 'no names'}; "
                f"{', '.join(sorted(unknown))} is missing or unknown"
            )
        given = _as_sizes(sizes)
        with self._lock:
            found = self._used.get(self._key(given))
        return found or self._made(given)

    def only(self, executable: Executable) -> Executables:
        """A copy that holds this one executable, and no other."""
        made = copy(self)
        made._used = OrderedDict({self._key(executable.plan.sizes): executable})
        made._lock = ProcessLock()
        made.fixed = None if self.names else executable
        return made

    def _key(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple([sizes[n] for n in self.names])

    def _made(self, sizes: Mapping[str, int], filename: str = "<symgrad program>") -> Executable:
        plan = self._plan(sizes)
        return Executable(plan, filename, self._backend, self._annotate, self._flushes)


def _planning(sizes: Mapping[str, int]) -> str:
    given = ", ".join(f"{n}={size}" for n, size in sizes.items())
    return f"planning for {given or 'fixed sizes'}"


def _as_sizes(sizes: Mapping[str, Any]) -> dict[str, int]:
    try:
        found = {name: index(size) for name, size in sizes.items()}
    except TypeError:
        raise FeedError(f"sizes are whole numbers, and {sizes} are not") from None
    negative = [name for name, size in found.items() if size < 0]
    if negative:
        raise FeedError(f"a size cannot be negative: {negative[0]} = {found[negative[0]]}")
    return found


def explained(error: Exception, step: Step | None) -> KernelError:
    """The error of a kernel, with the step, the node and the user's line."""
    if step is None:
        return KernelError(f"the program failed: {said(error)}")
    return kernel_error(error, step.node, step.name if step.inner is None else step.node.op.name)
