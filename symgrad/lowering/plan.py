"""The plan of a program: the steps in order, and where every value lies. It explains itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from symgrad.ir.cached import cached_property
from symgrad.ir.graph import Graph
from symgrad.ir.late import Displayed
from symgrad.ir.record import Record, fresh
from symgrad.ir.types import TensorType
from symgrad.lowering.native import NativeCall, NativeLoop
from symgrad.lowering.steps import Product, Ref, Slot, Step, View, is_open, nbytes

ALIGNMENT = 64
LARGE = 2**18  # bytes of a result whose memory is worth keeping
# In a nanosecond on one thread, and how much of a plan is to be shared.
FLOPS, BYTES, MOSTLY = 100, 12, 1.15


class Plan(Displayed, Record, frozen=True):
    """The steps of a program for given sizes of its named dimensions.

    `inputs`, `variables` and `nexts` are slots, in the order of the program's arguments (-1 for
    the next value of a 0-d variable, which is a scalar); `outputs` and `updates` say where the
    results are found. Byte counts are exact: `arena_bytes` is allocated once a workspace,
    `output_bytes` once a call.
    """

    graph: Graph
    sizes: Mapping[str, int]
    slots: tuple[Slot, ...]
    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    variables: tuple[int, ...]
    nexts: tuple[int, ...]
    outputs: tuple[Ref, ...]
    updates: tuple[Ref, ...]
    arena_bytes: int
    # The temporaries that lie in the spare array of a next value until that is written, by name.
    inside: Mapping[str, Ref] = fresh(factory=dict)
    # A line for each value that another program keeps: when it is computed, and where.
    given: tuple[str, ...] = ()

    @property
    def returned(self) -> tuple[Ref, ...]:
        """The results of its function: the outputs, and the next values of 0-d variables."""
        ends = zip(self.updates, self.nexts, strict=True)
        return (*self.outputs, *(ref for ref, n in ends if n < 0))

    @property
    def allocated(self) -> list[int]:
        """The outputs that are allocated before the first step; machine code makes its own."""
        made = {r.slot for s in self.steps if isinstance(s, NativeCall) for r in s.results}
        return [i for i, s in enumerate(self.slots) if s.kind == "output" and i not in made]

    @cached_property
    def streamed(self) -> frozenset[int]:
        """The slots that machine code writes past the caches, if they begin a page of memory."""
        loops = [s for s in self.steps if isinstance(s, NativeLoop)]
        ends = (zip(s.results, s.code.streamed, strict=True) for s in loops)
        return frozenset(ref.slot for pairs in ends for ref, is_streamed in pairs if is_streamed)

    @property
    def paged(self) -> frozenset[int]:
        """The outputs beside machine code that begin a page: those that are streamed, or large."""
        if not self.has_native:
            return frozenset()
        known = (i for i in self.allocated if not is_open(self.slots[i].type))
        large = (i for i in known if self.slots[i].nbytes >= LARGE)
        return self.streamed.intersection(self.allocated).union(large)

    @property
    def direct(self) -> Callable[..., tuple[Any, ...] | None] | None:
        """The function for all of it, from inputs to outputs, if it is one in machine code."""
        match self.steps:
            case (NativeCall() as step,) if not self.variables and not self.nexts:
                return step.code.direct
        return None

    @property
    def has_native(self) -> bool:
        """Whether a part of it, or of a plan that a step runs, is machine code."""
        return any(
            isinstance(s, (NativeLoop, NativeCall, Product))
            or (s.inner is not None and s.inner.has_native)
            for s in self.steps
        )

    def nanoseconds(self, step: Step) -> float:
        """About how long a step takes on one thread: products, machine code, or a pass of NumPy."""
        if isinstance(step, NativeLoop):
            return step.code.nanoseconds
        operands, results = (
            list(map(self._type, step.operands)),
            list(map(self._type, step.results)),
        )
        if isinstance(step, Product):
            return (step.flops(operands, results) or 0) / FLOPS
        return sum(map(nbytes, operands + results)) / BYTES

    @property
    def is_shared(self) -> bool:
        """Whether threads share products, and most of what else it does."""
        products = [s for s in self.steps if isinstance(s, Product) and s.threads > 1]
        loops = [s for s in self.steps if isinstance(s, NativeLoop) and s.piece < s.code.rows]
        shared = sum(map(self.nanoseconds, (*products, *loops)))
        return bool(products) and sum(map(self.nanoseconds, self.steps)) <= MOSTLY * shared

    def _type(self, ref: Ref) -> TensorType:
        return ref.seen_type(self.slots[ref.slot].type)

    @property
    def output_bytes(self) -> int:
        """The bytes that a call allocates for the caller to keep."""
        return sum(s.nbytes for s in self.slots if s.kind == "output")

    @property
    def next_bytes(self) -> int:
        """The spare arrays of the variables that are updated."""
        return sum(s.nbytes for s in self.slots if s.kind == "next")

    @property
    def peak_bytes(self) -> int:
        """The memory that a call needs beyond its inputs, variables and constants.

        What a kernel such as a sort takes for itself while it runs is not part of it.
        """
        return self.arena_bytes + self.output_bytes + self.next_bytes

    def is_scalar(self, ref: Ref) -> bool:
        """Whether a value is a local variable of the program, not an array to write into."""
        return self.slots[ref.slot].kind == "scalar"

    def arrays_in_arena(self) -> list[Slot]:
        """The arena slots, one for each place, shape and dtype: what a workspace is made of."""
        found = {s.name: s for s in self.slots if s.kind == "arena"}
        return list(found.values())

    def named(self, ref: Ref) -> tuple[str, tuple[View, ...]]:
        """The name of the slot of a value, or of the temporary in it, and the views on that."""
        for name, place in self.inside.items():
            if place.slot == ref.slot and place.views == ref.views[: len(place.views)]:
                return name, ref.views[len(place.views) :]
        return self.slots[ref.slot].name, ref.views

    def describe(self, ref: Ref) -> str:
        """A value in a few characters: the slot's name and the views on it."""
        name, views = self.named(ref)
        return name + "".join(f".{v.op.name}" for v in views)

    def _lines(self) -> Iterator[str]:
        sizes = ", ".join(f"{k} = {v}" for k, v in self.sizes.items())
        yield f"plan{f' for {sizes}' if sizes else ''}: {len(self.steps)} steps"
        yield (
            f"arena {self.arena_bytes} bytes, outputs {self.output_bytes}, "
            f"next values {self.next_bytes}, peak {self.peak_bytes}"
        )
        yield from self.given
        yield f"{'step':>4}  {'result':<8} {'kernel':<22} {'reads':<24} where"
        for i, step in enumerate(self.steps):
            result = ", ".join(map(self.describe, step.results))
            reads = ", ".join(map(self.describe, step.operands))
            place = step.node.origin.nearest or ""
            yield f"{i:>4}  {result:<8} {step.name:<22} {reads:<24} {place}"
        for name, ref in self.inside.items():
            yield f"{name} lies in {self.slots[ref.slot].name} until that is written"
        yield f"{'slot':<8} {'offset':>8} {'bytes':>10}  {'steps':<11} type"
        for slot in self.slots:
            if slot.kind == "arena":
                steps = f"{slot.first}-{slot.last}"
                place = f"{slot.name:<8} {slot.offset:>8} {slot.nbytes:>10}"
                yield f"{place}  {steps:<11} {slot.type!r}"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return f"<Plan of {len(self.steps)} steps, {self.peak_bytes} bytes>"
