"""Plans that can be run, and what is said of them when they fail."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from symgrad.ir.collector import without_collection
from symgrad.ir.errors import KernelError
from symgrad.ir.evaluate import kernel_error, said
from symgrad.lowering.plan import Plan, Step
from symgrad.lowering.tiling import TILED
from symgrad.runtime.codegen import generate
from symgrad.runtime.feeding import Array
from symgrad.runtime.kept import Parts
from symgrad.runtime.source import Source
from symgrad.runtime.workspace import allocate


@dataclass(eq=False)
class Ready:
    """A plan that can be run: its source, its function, and workspaces that nobody uses."""

    plan: Plan
    filename: str
    parts: Parts | None = None
    free: list[list[Array]] = field(default_factory=list)

    @cached_property
    def returns_one(self) -> bool:
        """Whether the function returns one value as it is, not in a tuple."""
        return len(self.plan.outputs) + self.plan.nexts.count(-1) == 1

    @cached_property
    def source(self) -> Source:
        made = generate(self.plan, threads=True)
        return made if self.parts is None else self.parts.annotated(made, self.plan)

    @cached_property
    def function(self) -> Callable[..., Any]:
        with without_collection():
            made = self.source.compile(self.filename)
        lines = self.source.text.splitlines(keepends=True)
        linecache.cache[self.filename] = (len(self.source.text), None, lines, self.filename)
        forgotten = weakref.finalize(self, linecache.cache.pop, self.filename, None)
        forgotten.atexit = False
        return made

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


def explained(error: Exception, step: Step | None) -> KernelError:
    """The error of a kernel, with the step, the node and the user's line."""
    if step is None:
        return KernelError(f"the program failed: {said(error)}")
    op = step.node.op if step.op is TILED else step.op
    return kernel_error(error, step.node, op.name)
