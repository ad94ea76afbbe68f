"""Choices in a plan: two bodies, each planned like a small program, of which one runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from symgrad.ir.types import TensorType
from symgrad.lowering.cost import cost
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Step

if TYPE_CHECKING:
    from symgrad.lowering.visitor import Visitor

T = TypeVar("T")


class Branch(Step, kw_only=True):
    """The first of two plans if the first operand is true, else the second, of the others.

    Each writes its results straight into their places.
    """

    plans: tuple[Plan, Plan]

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.branch(self)

    name = "cond"

    @property
    def when(self) -> str:
        return "if it is chosen"

    def sides(self, scratch: Sequence[T]) -> Iterator[tuple[Plan, Sequence[T]]]:
        """Each plan, with its part of the scratch."""
        first = len(self.plans[0].arrays_in_arena())
        yield self.plans[0], scratch[:first]
        yield self.plans[1], scratch[first:]

    def flops(self, operands: Sequence[TensorType], results: Sequence[TensorType]) -> int | None:
        found = [cost(plan) for plan in self.plans]
        return None if any(c.uncounted for c in found) else max(c.flops for c in found)
