"""The visitor of steps: a method for each of their kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from symgrad.lowering.choices import Branch
    from symgrad.lowering.loops import Loop
    from symgrad.lowering.native import NativeCall, NativeLoop
    from symgrad.lowering.steps import Call, Copy, Step
    from symgrad.lowering.tiling import TileLoop
    from symgrad.lowering.whiles import Sized, While

T = TypeVar("T")


class Visitor(ABC, Generic[T]):
    """Does something with each kind of step; another kind is another method here."""

    def visit(self, step: Step) -> T:
        """The result of the method for the kind of the step."""
        return step.accept(self)

    @abstractmethod
    def call(self, step: Call) -> T: ...

    @abstractmethod
    def copy(self, step: Copy) -> T: ...

    @abstractmethod
    def tile_loop(self, step: TileLoop) -> T: ...

    @abstractmethod
    def loop(self, step: Loop) -> T: ...

    @abstractmethod
    def branch(self, step: Branch) -> T: ...

    @abstractmethod
    def while_loop(self, step: While) -> T: ...

    @abstractmethod
    def sized(self, step: Sized) -> T: ...

    @abstractmethod
    def native_loop(self, step: NativeLoop) -> T: ...

    @abstractmethod
    def native_call(self, step: NativeCall) -> T: ...
