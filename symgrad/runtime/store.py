"""The variables of a program: read all at one moment, and changed all at once or not at all."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from itertools import repeat
from operator import attrgetter, methodcaller
from typing import Any, TypeVar

import numpy as np

from symgrad.ir.node import Variable
from symgrad.ir.values import fetched
from symgrad.lowering.plan import Plan
from symgrad.runtime.executable import Executable
from symgrad.runtime.feeding import Array
from symgrad.runtime.prologue import Prologue
from symgrad.runtime.workspace import PAGE, paged

R = TypeVar("R")
_read = attrgetter("content")
_PLAIN = frozenset([np.ndarray])
_acquire = methodcaller("acquire")
_release = methodcaller("release")


class VariableStore:
    """The variables that a program reads, with what is kept of them, and those that it updates.

    The arrays for next values are its own. Calls that update take turns: each holds the locks of
    what it updates.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        updated: Sequence[Variable],
        prologue: Prologue | None = None,
    ) -> None:
        self.variables, self.updated = tuple(variables), tuple(updated)
        self.prologue = prologue
        self._cells = [v.cell for v in variables]
        self._unset = [v for v in variables if v.cell.content is None]
        self._scalars = [i for i, v in enumerate(variables) if not v.ndim]
        self._targets = [v.cell for v in updated]
        self._types: list[Any] = [v.tensor for v in updated]
        # All programs take locks in one order, so that no two wait for each other.
        self._locks = [c.lock for c in sorted(self._targets, key=id)]
        self._commits = bool(updated)
        self.spares: list[Any] = [np.empty(0)] * len(updated)

    def rehearsal(self) -> VariableStore:
        """The same variables, with arrays for next values of its own, which are never committed."""
        made = copy(self)
        made._commits = False
        made.spares = [np.empty(0)] * len(self.updated)
        return made

    def read(self) -> list[Any]:
        """The arrays of all variables at one moment, those on a device fetched.

        Raises `SymbolicError` for a variable that was never given a value.
        """
        found = self.contents()
        return found if _PLAIN.issuperset(map(type, found)) else list(map(fetched, found))

    def contents(self) -> list[Any]:
        """As `read`, but arrays that are on a device stay there."""
        if self._unset:
            for variable in self._unset:
                variable.cell.read(str(variable.name))
            self._unset = []
        # One call in C, as in `exchange`: neither Ctrl-C nor another thread can come in between and
        # see half of an update.
        return list(map(_read, self._cells))

    def run(
        self, executable: Executable, inputs: Sequence[Any], workspace: Sequence[Array]
    ) -> Sequence[Any]:
        """The outputs for these inputs and the present variables, which have their next values."""
        if not self.variables and self.prologue is None:
            return executable.run(inputs, (), (), workspace)
        if not self._locks:
            return self._step(executable, inputs, workspace)
        return self.alone(self._step, executable, inputs, workspace)

    def alone(self, work: Callable[..., R], *args: Any) -> R:
        """The result of a function, called while no other program updates these variables.

        It holds the locks of all variables that are updated. Ctrl-C comes between bytecodes. So
        every lock that is taken is noted in the same call in C, and one call in C, made ready
        beforehand, releases them.
        """
        taken: list[Any] = []
        release: partial[Any] = partial(deque, map(_release, taken), 0)
        try:
            taken.extend(filter(_acquire, self._locks))
            return work(*args)
        finally:
            release()

    def _step(
        self, executable: Executable, inputs: Sequence[Any], workspace: Sequence[Array]
    ) -> Sequence[Any]:
        current = self.read()
        if self.prologue is not None:
            current += self.prologue.values(inputs, current, executable.plan.sizes)
        for i in self._scalars:
            current[i] = current[i][()]
        plan = executable.plan
        if not self.updated:
            return executable.run(inputs, current, (), workspace)
        try:
            streamed = plan.streamed
            nexts = [self._spare(i, n in streamed) for i, n in enumerate(plan.nexts) if n >= 0]
        except MemoryError as error:
            raise executable.explained(error) from error
        try:
            results = executable.run(inputs, current, nexts, workspace)
        except BaseException:
            # As with the workspace, a thread may still be at work in them.
            self.spares[:] = [np.empty(0)] * len(self.spares)
            raise
        count = len(plan.outputs)
        if self._commits:
            self._commit(plan, nexts, results[count:])
        return results[:count]

    def _commit(self, plan: Plan, nexts: list[Array], scalars: Sequence[Any]) -> None:
        arrays, zero_d = iter(nexts), iter(scalars)
        new = [
            next(arrays) if n >= 0 else np.asarray(next(zero_d), v.dtype)
            for n, v in zip(plan.nexts, self.updated, strict=True)
        ]
        old = self.exchange(new)
        self.spares[:] = [a if type(a) is np.ndarray else np.empty(0) for a in old]

    def exchange(self, new: Sequence[Any]) -> list[Any]:
        """Give the variables that are updated their next values, all at once; the old ones."""
        old = list(map(_read, self._targets))
        deque(map(setattr, self._targets, repeat("content"), new), maxlen=0)
        return old

    def _spare(self, i: int, streamed: bool = False) -> Array:
        """An array for the next value of a variable: the value before the present one, unless
        somebody is still reading it, or it is `streamed` and begins no page of memory.
        """
        wanted, spares = self._types[i], self.spares
        fits = spares[i].shape == wanted.shape and spares[i].dtype == wanted.dtype
        if not fits or not self.is_free(i):
            spares[i] = (paged if streamed else np.empty)(wanted.shape, wanted.dtype)
        elif streamed and spares[i].ctypes.data % PAGE:
            spares[i] = paged(wanted.shape, wanted.dtype)
        spare: Array = spares[i]
        return spare

    def is_free(self, i: int) -> bool:
        """Whether nobody else reads the value before the present one of a variable."""
        return _readers(self.spares, i) <= _NO_READERS


def _readers(spares: list[Any], i: int) -> int:
    return sys.getrefcount(spares[i])


_NO_READERS = _readers([np.empty(1)], 0)
