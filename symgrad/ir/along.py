"""How an op works piece by piece along a named dimension: what its fact `along` is given and says.

An array is *cut* along a named dimension if it has one axis of that size, or of a multiple of it:
then it is its pieces, one after the other along this axis. An array without such an axis is
*whole*: the same beside every piece.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from symgrad.ir.node import Node


class Cut(NamedTuple):
    """An operand that is cut along the dimension called `over`, which its `axis` has.

    It is a `number` if its elements are those of `arange` along this axis, whatever the others are.
    """

    axis: int
    over: str
    number: bool = False


class Piecewise(Enum):
    """Ops of which each piece of the result is made of the same piece of the operands.

    `NUMBER` if the elements of its operand are only moved, so that of a number it is one.
    """

    KEPT = "kept"
    NUMBER = "number"


class Local(NamedTuple):
    """The same, if the numbers in one `operand` count from the first row of the piece."""

    operand: int


class Joined(NamedTuple):
    """The results of pieces are joined by an op of two operands, `by`, in the order of the pieces.

    The operand `once` counts once: pieces have zeros in its place, and it is joined in the end.
    """

    by: str
    once: int | None = None


# Spelled in ops that tell more, as a node of the operands; None if it cannot be cut so.
Spelling: TypeAlias = Callable[..., "Node"]
Along: TypeAlias = Piecewise | Local | Joined | Spelling | None
AlongRule: TypeAlias = Callable[..., Along]
Cuts: TypeAlias = tuple[Cut | None, ...]
Attributes: TypeAlias = dict[str, Any]
