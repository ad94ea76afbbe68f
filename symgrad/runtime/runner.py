"""A call: arguments in, an executable for their sizes, variables read and changed, results out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symgrad.runtime.executable import Executables
from symgrad.runtime.feeding import Feeder
from symgrad.runtime.store import VariableStore

# Workspaces that are kept for calls to come, for each plan.
MOST_IDLE = 8


class Runner:
    """The part of a program that is called: it binds arguments, runs, and forms the results.

    `feeder` checks and orders the arguments, `executables` has what runs for their sizes, `store`
    the variables, and `form` makes of the results what a call returns.
    """

    def __init__(
        self,
        feeder: Feeder,
        executables: Executables,
        store: VariableStore,
        form: Callable[[Sequence[Any]], Any],
    ) -> None:
        self.feeder, self.executables, self.store, self.form = feeder, executables, store, form

    # A function for the whole of it, which gives None for arguments that want looking at.
    direct: Callable[..., Sequence[Any] | None] | None = None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self.direct is not None and not kwargs:
            found = self.direct(*args)
            if found is not None:
                return self.form(found)
        inputs, sizes = self.feeder.feed(args, kwargs)
        executable = self.executables.fixed or self.executables.of(sizes)
        try:
            workspace = executable.free.pop()
        except IndexError:
            workspace = executable.workspace()
        # After an exception a thread may still be at work in it: then it is not used again.
        results = self.store.run(executable, inputs, workspace)
        if len(executable.free) < MOST_IDLE:
            executable.free.append(workspace)
        return self.form(results)
