"""A call: arguments in, an executable for their sizes, variables read and changed, results out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symgrad.runtime.executable import Executables
from symgrad.runtime.feeding import Feeder
from symgrad.runtime.store import VariableStore


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
        return self.run(*self.feeder.feed(args, kwargs))

    def run(self, inputs: Sequence[Any], sizes: Mapping[str, int]) -> Any:
        """The results for arrays that have been checked, and the sizes that they have."""
        executable = self.executables.fixed or self.executables.of(sizes)
        workspace = executable.lent()
        results = self.store.run(executable, inputs, workspace)
        executable.give_back(workspace)
        return self.form(results)
