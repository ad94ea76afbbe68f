"""Programs whose calls give only what changes: they hold the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.ir.errors import FeedError
from symgrad.ir.node import Node, Variable
from symgrad.runtime.executable import Executables, ProcessLock
from symgrad.runtime.feeding import Feeder
from symgrad.runtime.program import Program
from symgrad.runtime.store import VariableStore


class HoldingFeeder(Feeder):
    """Fills in what a call leaves out, with what is `held` of earlier calls.

    What is given is copied: a caller may write into an array, and what is held stays. So the same
    array is the same numbers to the parts of the program, and another one may be others.
    """

    def feed(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, int]]:
        """The arrays in order, and the sizes of the named dimensions. Raises as `Feeder.feed`."""
        held = self.held
        try:
            inputs, sizes = super().feed(args, kwargs)
        except FeedError as error:
            rest = ", ".join(repr(n) for n in held if n not in kwargs)
            say = f"held from calls before: {rest[:200]}" if held else "the first call gives all"
            raise FeedError(f"{error} ({say})") from None
        return [_held(held.get(n), a) for n, a in zip(self.names, inputs, strict=True)], sizes


def _held(old: Any, new: Any) -> Any:
    """The array to hold of an input: the one held, if that was fed again, else one of its own."""
    if new is old or isinstance(new, np.ndarray):
        return old if new is old else new.copy()
    return old if old is not None and old.tobytes() == new.tobytes() else new


class PartialProgram(Program):
    """A program whose first call gives all inputs, and each other one those that change.

    What is left out is as it was in the last call that succeeded. `held` has the programs of the
    parts that are computed again only where something that they depend on has changed. Calls take
    turns.
    """

    feeder: HoldingFeeder

    def __init__(self, *args: Any) -> None:
        self._turn = ProcessLock()
        super().__init__(*args)
        self.direct = None

    def parts(
        self, placeholders: Sequence[Node], variables: Sequence[Variable]
    ) -> tuple[Feeder, Executables, VariableStore]:
        """The way of a call, which begins with a feeder that holds what it is fed."""
        _, executables, store = super().parts(placeholders, variables)
        return HoldingFeeder(placeholders, self.interface.forms), executables, store

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        with self._turn:
            inputs, sizes = self.feeder.feed(args, kwargs)
            results = self.run(inputs, sizes)
            self.feeder.held = dict(zip(self.feeder.names, inputs, strict=True))
        return results
