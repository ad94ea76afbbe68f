"""While loops in a plan, and graphs with a dimension whose size is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from symgrad.ir.types import TensorType
from symgrad.lowering.loops import Turns
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Ref, Step
from symgrad.ops.loops.while_loop import exceeded

if TYPE_CHECKING:
    from symgrad.lowering.visitor import Visitor

T = TypeVar("T")


class While(Step, kw_only=True):
    """A body that runs as long as the plan `test` of the same operands gives True.

    `turns` has its body, and its length says nothing. The first result is the number of steps;
    more than `most` are an error.
    """

    test: Plan
    turns: Turns
    most: int | None
    what: str

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.while_loop(self)

    @property
    def exceeded(self) -> str:
        """The message where it takes more than the most steps."""
        return exceeded(self.most, self.what)

    name = "while"

    @property
    def inner(self) -> Plan:
        return self.turns.plan

    @property
    def plans(self) -> tuple[Plan, ...]:
        return self.test, self.turns.plan

    @property
    def when(self) -> str:
        return "once in each step"

    def flops(self, operands: Sequence[TensorType], results: Sequence[TensorType]) -> int | None:
        return None

    def parts(self) -> tuple[Sequence[Ref], Sequence[Ref]]:
        """The operands: those that carries begin with, and what is read whole."""
        return self.operands[: self.turns.carries], self.operands[self.turns.carries :]

    def shared_out(self, scratch: Sequence[T]) -> tuple[Sequence[T], Sequence[T], list[T | None]]:
        """Scratch by its use: the arrays of the test; those of the body; the spare ones."""
        own = len(self.test.arrays_in_arena())
        return scratch[:own], *self.turns.shared_out(scratch[own:])


class Sized(Step, kw_only=True):
    """A plan in which a dimension has the size that the first operand is.

    `plan` has the name of the dimension for its size, and the first operand among its inputs, by
    that name; `of` makes the same plan for a size.
    """

    plan: Plan
    of: Callable[[int], Plan]

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.sized(self)

    name = "sized"

    @property
    def plans(self) -> tuple[Plan, ...]:
        return (self.plan,)

    @property
    def counted(self) -> tuple[Plan, ...]:
        return (self.of(1),)

    @property
    def when(self) -> str:
        return "for each step of a while_loop"

    def flops(self, operands: Sequence[TensorType], results: Sequence[TensorType]) -> int | None:
        return None
