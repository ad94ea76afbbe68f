"""Loops in a plan: the body is planned once, like a small program, and runs for each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from symgrad.ir.dims import Dim, guess
from symgrad.ir.types import TensorType
from symgrad.lowering.cost import cost
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Ref, Step

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Turns:
    """How a loop runs: `plan`, that of its body, for so many steps, or in `reverse`.

    Of the operands the first are `carries`, then come `sequences`, of which each step is given a
    slice. A step writes its results straight into their places: a row of a stack, or the array
    that is the next carry. An array that is carried has a spare one, with which it changes places.
    """

    plan: Plan
    carries: int
    sequences: int
    length: int | Dim
    reverse: bool

    @cached_property
    def arrays(self) -> tuple[bool, ...]:
        """For each result of the body whether it is an array, and no number."""
        return tuple(n >= 0 for n in self.plan.nexts)

    @property
    def scratch(self) -> tuple[TensorType, ...]:
        """The arrays to work in: those of the body, and a spare one for each carried array."""
        types = [self.plan.slots[n].type for n in self.plan.nexts[: self.carries] if n >= 0]
        return (*(s.type for s in self.plan.arrays_in_arena()), *types)

    def shared_out(self, scratch: Sequence[T]) -> tuple[Sequence[T], list[T | None]]:
        """Scratch by its use: the arrays of the body; for each carry the spare one, if any."""
        own = len(self.plan.arrays_in_arena())
        spares = iter(scratch[own:])
        return scratch[:own], [
            next(spares) if array else None for array in self.arrays[: self.carries]
        ]

    @property
    def steps(self) -> range:
        """The numbers of the steps, in the order in which they run."""
        assert isinstance(self.length, int)
        return range(self.length)[::-1] if self.reverse else range(self.length)

    def __repr__(self) -> str:
        return f"{self.length} steps{' in reverse' * self.reverse}"


@dataclass(slots=True, eq=False, kw_only=True)
class Loop(Step):
    """A body that runs for one step after the other, with what it carries."""

    turns: Turns
    name = "loop"

    @property
    def inner(self) -> Plan:
        return self.turns.plan

    @property
    def times(self) -> float:
        return guess(self.turns.length)

    def flops(self, operands: Sequence[TensorType], results: Sequence[TensorType]) -> int | None:
        found = cost(self.turns.plan)
        return None if found.uncounted else found.flops * guess(self.turns.length)

    def moved(self, read: int, written: int) -> tuple[int, int]:
        found, length = cost(self.turns.plan), guess(self.turns.length)
        return found.bytes_read * length, found.bytes_written * length

    def parts(self) -> tuple[Sequence[Ref], Sequence[Ref], Sequence[Ref]]:
        """The operands: those that carries begin with, sequences, and what is read whole."""
        first, end = self.turns.carries, self.turns.carries + self.turns.sequences
        return self.operands[:first], self.operands[first:end], self.operands[end:]
