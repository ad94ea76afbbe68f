"""Loops in a plan: the body is planned once, like a small program, and runs for each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from symgrad.ir.cached import cached_property
from symgrad.ir.dims import Dim, guess
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.record import Record
from symgrad.ir.types import TensorType
from symgrad.lowering.cost import cost
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Call, Ref, Step, View
from symgrad.ops.elementwise import add, multiply, negative, subtract
from symgrad.ops.index.slices import slice_p
from symgrad.ops.shape import reshape_p

if TYPE_CHECKING:
    from symgrad.lowering.visitor import Visitor

T = TypeVar("T")
SAFE = frozenset({add.op, subtract.op, multiply.op, negative.op})


class Turns(Record, frozen=True):
    """How a loop runs: `plan`, that of its body, for so many steps, or in `reverse`.

    Of the operands the first are `carries`, then come `sequences`, of which each step is given a
    slice. A step writes its results straight into their places: a row of a stack, or the array
    that is the next carry. Of the carries that are `kept` all are in one array, their history, from
    the first on (`reverse`: from the last row on); any other array that is carried has a spare one,
    with which it changes places.
    """

    plan: Plan
    carries: int
    sequences: int
    length: int | Dim
    reverse: bool
    kept: tuple[int, ...] = ()

    @cached_property
    def arrays(self) -> tuple[bool, ...]:
        """For each result of the body whether it is an array, and no number."""
        return tuple(n >= 0 for n in self.plan.nexts)

    @property
    def scratch(self) -> tuple[TensorType, ...]:
        """The arrays to work in: those of the body, and the spare ones of carries."""
        types = [self.plan.slots[self.plan.nexts[i]].type for i in self._swapped]
        return (*(s.type for s in self.plan.arrays_in_arena()), *types)

    def shared_out(self, scratch: Sequence[T]) -> tuple[Sequence[T], list[T | None]]:
        """Scratch by its use: the arrays of the body; for each carry the spare one, if any."""
        own = len(self.plan.arrays_in_arena())
        spares = iter(scratch[own:])
        swapped = set(self._swapped)
        return scratch[:own], [next(spares) if i in swapped else None for i in range(self.carries)]

    @property
    def _swapped(self) -> list[int]:
        """The carries whose arrays change places."""
        return [i for i in range(self.carries) if self.arrays[i] and i not in self.kept]

    @cached_property
    def is_of_floats(self) -> bool:
        """Whether Python's floats give the same bits: of numbers of float64 it adds and multiplies.

        Python raises for a division by 0, and for a power out of range, where NumPy does not.
        """
        slots, steps = self.plan.slots, self.plan.steps
        read = {r.slot for s in steps for r in (*s.operands, *s.results)} | {*self.plan.inputs}
        return (
            bool(steps)
            and not any(self.arrays)
            and all(isinstance(s, Call) and s.op in SAFE for s in steps)
            and all(slots[i].type == TensorType((), np.dtype("float64")) for i in read)
        )

    @property
    def first(self) -> int:
        """The row of a history from which its carry begins."""
        assert isinstance(self.length, int)
        return self.length if self.reverse else 0

    @property
    def rows(self) -> tuple[int, int]:
        """How far the rows of a history that step t reads and writes are from row t."""
        return (1, 0) if self.reverse else (0, 1)

    @property
    def steps(self) -> range:
        """The numbers of the steps, in the order in which they run."""
        assert isinstance(self.length, int)
        return range(self.length)[::-1] if self.reverse else range(self.length)

    def __repr__(self) -> str:
        return f"{self.length} steps{' in reverse' * self.reverse}"


class Kept(NamedTuple):
    """Which results of a loop lie in histories, and how they are seen there.

    `carries` have one; `results` are the numbers of the results that are computed, of which
    histories stand for these carries; `seen` gives for each other result the carry and the rows of
    its history.
    """

    carries: tuple[int, ...]
    results: tuple[int, ...]
    seen: Mapping[int, tuple[int, tuple[int, int]]]


def kept_carries(body: Graph, carries: int, length: int, reverse: bool) -> Kept:
    """The arrays among the carries that are stacked, before a step or after it.

    All their values are kept once, in one array, so that no step copies any.
    """
    before, after = ((1, length + 1), (0, length))[:: 1 if reverse else -1]
    rows: dict[Node, tuple[int, tuple[int, int]]] = {}
    for i in reversed(range(carries)):
        if body.outputs[i].ndim:
            rows[body.outputs[i]] = i, after
    for i, state in enumerate(body.inputs[:carries]):
        if state.ndim:
            rows[state] = i, before
    seen = {i: rows[y] for i, y in enumerate(body.outputs) if i >= carries and y in rows}
    histories = {i for i, _ in seen.values()}
    results = [i for i in range(len(body.outputs)) if i not in seen]
    return Kept(tuple(sorted(histories)), tuple(results), seen)


def rows_of(ref: Ref, t: TensorType, rows: tuple[int, int], alone: bool = False) -> Ref:
    """Some rows of a history of values of a type; if it is one `alone`, as that value."""
    index = ((*rows, 1), *((0, s, 1) for s in t.shape))
    one = (View(reshape_p.op, (("shape", t.shape),)),) if alone else ()
    return Ref(ref.slot, (View(slice_p.op, (("index", index),)), *one))


class Loop(Step, kw_only=True):
    """A body that runs for one step after the other, with what it carries."""

    turns: Turns
    is_loop = True

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.loop(self)

    name = "loop"

    @property
    def inner(self) -> Plan:
        return self.turns.plan

    @property
    def times(self) -> float:
        return guess(self.turns.length)

    @property
    def when(self) -> str:
        return f"once in each of {self.turns!r}"

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
