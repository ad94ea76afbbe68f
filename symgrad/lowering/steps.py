"""The steps of a plan, of which each kind is a class, and the slots that they read and write."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from symgrad.ir.node import Node
from symgrad.ir.op import Op
from symgrad.ir.record import Record
from symgrad.ir.types import DType, TensorType, types_of

if TYPE_CHECKING:
    from symgrad.lowering.plan import Plan
    from symgrad.lowering.visitor import T, Visitor

Kind: TypeAlias = Literal["input", "variable", "constant", "scalar", "arena", "output", "next"]
Attrs: TypeAlias = tuple[tuple[str, Any], ...]


class View(NamedTuple):
    """One way of seeing the same memory: a view op with its attributes."""

    op: Op
    attrs: Attrs


class Slot(NamedTuple):
    """A place for a value.

    `input`, `variable` and `constant` are given; a `scalar` is a local variable of the program;
    an `arena` slot lies at `offset` bytes in the arena from step `first` to step `last`; an
    `output` is allocated anew in every call, for the caller to keep; a `next` is the spare array
    of a variable, into which its next value is computed.
    """

    name: str
    kind: Kind
    type: TensorType
    first: int = -1
    last: int = -1
    offset: int = -1
    value: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape  # type: ignore[return-value]

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return nbytes(self.type)


class SlotBuilder(Record):
    """A slot before its offset is known. `root` is the slot whose memory it takes over."""

    kind: Kind
    type: TensorType
    value: Any = None
    first: int = -1
    last: int = -1
    root: int = -1

    @property
    def constant(self) -> Any:
        """The value of a constant."""
        return self.value if self.kind == "constant" else None


def add_slot(
    builders: list[SlotBuilder], kind: Kind, type: TensorType, value: Any = None, step: int = -1
) -> Ref:
    """A slot more, with the first value that lies in it."""
    builders.append(SlotBuilder(kind, type, value, step, step, len(builders)))
    return Ref(len(builders) - 1)


class Ref(NamedTuple):
    """A value as a step reads or writes it: a slot, seen through views."""

    slot: int
    views: tuple[View, ...] = ()

    def seen(self, array: Any) -> Any:
        """The array of the slot, through the views."""
        for view in self.views:
            array = view.op.kernel(array, **dict(view.attrs))
        return array

    def shape(self, t: TensorType) -> Any:
        """The shape of the value of a slot of this type as it is seen."""
        return self.layout(t).shape if self.views else t.shape

    def seen_type(self, t: TensorType) -> TensorType:
        """The type of the value of a slot of this type as it is seen."""
        return t.with_shape(self.shape(t)) if self.views else t

    def layout(self, t: TensorType) -> Any:
        """An array as the value of a slot of this type is seen, with no memory to speak of."""
        shape: Any = t.shape
        strides = np.cumprod((t.dtype.itemsize, *(max(s, 1) for s in shape[:0:-1])))[::-1]
        whole = as_strided(np.empty(1, t.dtype), shape, tuple(strides) if shape else ())
        return self.seen(whole)


class Step(Record, ABC):
    """One thing that a program does: it computes `results` of `operands` for a node.

    `results` has more than one entry for an op with several results; `group` numbers the fused
    node it is part of; `scratch` are arena slots that it uses while it runs. Each kind is a class
    of its own, and has a method in `Visitor`. Steps are complete once their plan is.
    """

    node: Node
    operands: tuple[Ref, ...]
    results: tuple[Ref, ...]
    group: int | None = None
    scratch: tuple[Ref, ...] = ()

    # Whether it is a `Loop`, which runs a body for each row of sequences.
    is_loop = False

    @abstractmethod
    def accept(self, visitor: Visitor[T]) -> T:
        """The result of the visitor's method for its kind."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The kernel, as a plan, a cost, a profile and a picture call it."""

    @property
    def in_place(self) -> Sequence[Sequence[int]]:
        """Of each result the operands whose memory it may take."""
        return ()

    @property
    def is_elementwise(self) -> bool:
        """Whether what it may write over is read element by element, by several operands too."""
        return False

    def flops(self, operands: Sequence[TensorType], results: Sequence[TensorType]) -> int | None:
        """The floating-point operations for values of these types; None if nobody can tell."""
        return 0

    def moved(self, read: int, written: int) -> tuple[int, int]:
        """The bytes that it reads and writes in all, of operands and results of so many."""
        return read, written

    @property
    def inner(self) -> Plan | None:
        """The plan that it runs again and again, if it is a loop."""
        return None

    @property
    def plans(self) -> tuple[Plan, ...]:
        """All plans that it runs, each when its turn comes."""
        return () if self.inner is None else (self.inner,)

    @property
    def counted(self) -> tuple[Plan, ...]:
        """The plans by which its costs are told: of which all sizes are known."""
        return self.plans

    @property
    def when(self) -> str:
        """When it runs its plans, in words; empty if that is nobody's concern."""
        return ""

    @property
    def times(self) -> float:
        """How often it runs that plan."""
        return 1

    @property
    def computes(self) -> tuple[Node, ...]:
        """The nodes that it computes; of tiles, if no steps within it do."""
        return (self.node,)

    def within(self) -> Iterator[tuple[Step, Node]]:
        """The steps that it runs within, each with the node that it computes, or a part of it."""
        for plan in self.plans:
            for step in plan.steps:
                yield step, step.node
                yield from step.within()


class Call(Step, kw_only=True):
    """One call of the kernel of an op."""

    op: Op
    attrs: Attrs

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.call(self)

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def in_place(self) -> Sequence[Sequence[int]]:
        return (self.op.storage.in_place,) * (len(self.results) == 1)

    @property
    def is_elementwise(self) -> bool:
        return isinstance(self.op.kernel, np.ufunc)

    def takes_out(self, plan: Plan) -> bool:
        """Whether the kernel is handed the arrays for its results."""
        return self.op.storage.out and not any(map(plan.is_scalar, self.results))

    def flops(self, operands: Sequence[TensorType], results: Sequence[TensorType]) -> int | None:
        op, (read, made) = self.op, (sum(_size(t) for t in of) for of in (operands, results))
        if op.opaque:
            return None
        if not any(t.dtype.kind in "fc" for t in results):
            return 0
        if op.flops is not None:
            return int(op.flops(*operands, **dict(self.attrs)))
        if op.combiner:
            return max(read - made, 0)
        return made if op.elementwise else None if op.expensive else 0


class RowSums(Call):
    """Sums of rows, as a product with ones: half of its operations do nothing."""

    def flops(self, operands: Sequence[TensorType], results: Sequence[TensorType]) -> int | None:
        return _size(operands[0])


NATIVE_MATMUL = "native_matmul"


class MatmulCode(Protocol):
    """The code of large products, as `symgrad.native.products.ProductCode` has it."""

    call: Callable[..., Any]

    @property
    def ir(self) -> str: ...
    @property
    def assembly(self) -> str: ...


class Product(Call, kw_only=True):
    """A large product of matrices: `code.call(a, b, out)` computes it on so many `threads`."""

    code: MatmulCode
    threads: int

    @property
    def name(self) -> str:
        return NATIVE_MATMUL


class Copy(Step):
    """A copy of a value to another place, where it has another layout or is the caller's."""

    name = "copy"

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.copy(self)


def _size(t: TensorType) -> int:
    return math.prod(t.shape)  # type: ignore[arg-type]


def nbytes(t: TensorType) -> int:
    """The bytes of an array of this type, of which all sizes are known."""
    return _size(t) * t.dtype.itemsize


def is_open(t: Any) -> bool:
    """Whether a dimension stays a name: what has it is allocated when it runs, in no arena."""
    return any(t.names for t in types_of(t))
