"""Generated source: a module, as it grows and when it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from symgrad.ir.op import Op
from symgrad.ir.origin import Location, Resolver
from symgrad.ir.record import Record, fresh
from symgrad.lowering.steps import Slot, Step
from symgrad.ops.copied import source_of
from symgrad.passes.fuse import FUSION
from symgrad.runtime.literals import is_short

LONGEST_TEXT = 48


class Module(Record):
    """The state that the functions of a module share; `taken` are the names in use.

    `kernels` are those whose source is copied into it; `opaque` are the ops whose kernel is neither
    of them nor NumPy's. `functions` are those that run a tile of rows: their lines with the step of
    each, by name.
    """

    taken: set[str]
    threads: bool = False
    numpy_names: set[str] = fresh(factory=set)
    imports: set[str] = fresh(factory=set)
    kernels: dict[str, Callable[..., Any]] = fresh(factory=dict)
    scope: dict[str, Any] = fresh(factory=dict)
    constants: dict[str, Any] = fresh(factory=dict)
    resolver: Resolver = fresh(factory=Resolver)
    places: dict[Location | None, str] = fresh(factory=dict)
    opaque: dict[Op, None] = fresh(factory=dict)
    functions: dict[str, tuple[list[str], dict[int, Step]]] = fresh(factory=dict)
    # Of functions that are written; one may be begun before another is done.
    numbers: Iterator[int] = fresh(factory=count)

    def copied(self) -> list[str]:
        """The source of the kernels."""
        return list(map(source_of, self.kernels.values()))

    def new(self, stem: str) -> str:
        """A name that is not taken, and is from now on."""
        found = next(n for i in count() if (n := f"{stem}{i or ''}") not in self.taken)
        self.taken.add(found)
        return found

    def note(self, step: Step) -> str:
        """Where a step comes from: the user's line and expression, and what made the node."""
        origin = step.node.origin
        line = self.resolver.nearest(origin)
        place = self.places.get(line, "")
        if line is not None and not place:
            place = self.places[line] = " ".join(f"{line}  {line.text[:LONGEST_TEXT]}".split())
        return "  ".join(filter(None, (place, origin.few_makers(besides=FUSION))))


class Source(Record):
    """A generated function: the text of the module that defines `step`, which is `body`.

    `lines` gives the step of a line of the text, counted from 1.
    """

    text: str
    lines: dict[int, Step]
    module: Module
    body: list[str]

    @property
    def scope(self) -> dict[str, Any]:
        """The objects that its text refers to by name: large constants, kernels of a user's own."""
        large = {k: v for k, v in self.module.constants.items() if not is_short(v)}
        return {**large, **self.module.scope}

    def compile(self, filename: str) -> Callable[..., Any]:
        """The function itself; `filename` is what tracebacks call it.

        Kernels are at hand, and need not be compiled again; the lines keep their numbers.
        """
        text, scope = self.text, {**self.scope, **self.module.kernels}
        for copied in self.module.copied():
            text = text.replace(copied, "\n" * copied.count("\n"))
        exec(compile(text, filename, "exec"), scope)
        # Taken out: a function that its own scope holds is freed by the collector only.
        function: Callable[..., Any] = scope.pop("step")
        return function


def arena_lines(arena: list[Slot]) -> Iterator[str]:
    """The workspace, a few arrays a line."""
    for i in range(0, min(len(arena), 40), 4):
        yield "  ".join(f"{s.name}: {s.type!r}" for s in arena[i : i + 4])
    if len(arena) > 40:
        yield f"… and {len(arena) - 40} more"
