"""The cost of a plan: floating-point operations, and bytes read and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

from symgrad.ir.cached import cached_property
from symgrad.ir.late import SLOTS
from symgrad.ir.record import Record
from symgrad.ir.types import TensorType
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Ref, Step

Value = tuple[int, int]  # a slot, and how often it had been written


class StepCost(NamedTuple):
    """The cost of one step; `flops` is None where nobody can tell, in a kernel of the user's."""

    step: Step
    flops: int | None
    bytes_read: int
    bytes_written: int

    @property
    def intensity(self) -> float:
        """Floating-point operations for each byte that is moved."""
        return _ratio(self.flops or 0, self.bytes_read + self.bytes_written)


class PlanCost(Record, frozen=True):
    """The cost of a plan, step by step and in all.

    Printed, below a loop stands what one of its steps costs.

    `bytes_moved` is by steps each of which reads and writes whole arrays, as small programs run.
    `bytes_fused` is what is left if each fused group is one pass that reads what comes into the
    group and writes what leaves it; groups that run in tiles come near to that.
    """

    plan: Plan
    steps: tuple[StepCost, ...]
    bytes_fused: int

    @cached_property
    def flops(self) -> int:
        """The floating-point operations of all steps for which they are known."""
        return sum(s.flops or 0 for s in self.steps)

    @cached_property
    def bytes_read(self) -> int:
        return sum(s.bytes_read for s in self.steps)

    @cached_property
    def bytes_written(self) -> int:
        return sum(s.bytes_written for s in self.steps)

    @property
    def bytes_moved(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float:
        """Floating-point operations for each byte that is moved."""
        return _ratio(self.flops, self.bytes_moved)

    @property
    def uncounted(self) -> tuple[str, ...]:
        """The ops whose floating-point operations nobody can tell."""
        return tuple(dict.fromkeys(s.step.name for s in self.steps if s.flops is None))

    def _lines(self) -> Iterator[str]:
        yield f"{'step':>4}  {'kernel':<20} {'flops':>15} {'read':>13} {'written':>13}  flops/byte"
        yield from _rows(self.steps, "")

    def __str__(self) -> str:
        return "\n".join(self._lines())


def _rows(steps: Sequence[StepCost], outer: str) -> Iterator[str]:
    """A line for each step; below a loop or a choice those of its bodies, for one time."""
    for i, s in enumerate(steps):
        number = f"{outer}{i}"
        flops = "?" if s.flops is None else f"{s.flops:,}"
        place = s.step.node.origin.nearest or ""
        group = "" if s.step.group is None else f"  fused {s.step.group}"
        when = f"  {s.step.when}:" if s.step.when else ""
        yield (
            f"{number:>4}  {s.step.name:<20} {flops:>15} {s.bytes_read:>13,} "
            f"{s.bytes_written:>13,} {s.intensity:>11.3f}  {place}{group}{when}"
        )
        if s.step.node.bodies:
            inner = [c for plan in s.step.counted for c in cost(plan).steps]
            yield from _rows(inner, f"{number}.")


TOTALS: Mapping[str, str] = MappingProxyType(
    {
        "floating-point operations": "flops",
        "bytes read": "bytes_read",
        "bytes written": "bytes_written",
        "bytes moved by the steps": "bytes_moved",
        "… if a fused group is one pass": "bytes_fused",
    }
)


class Cost(NamedTuple):
    """The cost of a program: `before`, the graph as it was written, and `after`, what runs."""

    before: PlanCost
    after: PlanCost

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return SLOTS.viewer().mimebundle(self, include, exclude)

    def totals(self) -> Iterator[tuple[str, float, float]]:
        """Each figure in all: its name, that of what was written, that of what runs."""
        for name, attribute in TOTALS.items():
            before, after = (getattr(c, attribute) for c in self)
            yield name, before, after

    def _lines(self) -> Iterator[str]:
        sizes = ", ".join(f"{k} = {v}" for k, v in self.after.plan.sizes.items())
        yield f"cost{f' for {sizes}' if sizes else ''}"
        yield str(self.after)
        yield ""
        yield f"{'in all':<34} {'as written':>15} {'optimised':>15}"
        yield f"{'steps':<34} {len(self.before.steps):>15,} {len(self.after.steps):>15,}"
        for name, before, after in self.totals():
            yield f"{name:<34} {before:>15,} {after:>15,}"
        name = "flops for each byte moved"
        yield f"{name:<34} {self.before.intensity:>15.3f} {self.after.intensity:>15.3f}"
        if self.after.uncounted:
            yield f"not counted: what {', '.join(self.after.uncounted)} computes"

    def __str__(self) -> str:
        return "\n".join(self._lines())


def cost(plan: Plan) -> PlanCost:
    """The cost of a plan, counted from its steps.

    One floating-point operation is an addition, a product, a maximum or any other elementwise op of
    one element; a function such as exp or tanh counts as one, too, though it takes longer. A
    product of matrices counts 2 m n k, a reduction of n elements n - 1; softmax and its like, sorts
    and solvers what their algorithms take, about. Views, copies, casts, selections, comparisons and
    integers count nothing.

    Bytes are of arrays: each operand read once, as far as it is seen (a broadcast one is small),
    and each result written once; a loop does what its body does, once for each step. Scalars, and
    what a kernel keeps to itself, are left out.
    """
    tally = _Tally(plan)
    steps = tuple(map(tally.step, plan.steps))
    return PlanCost(plan, steps, tally.fused(steps))


class _Tally:
    """Follows the values through the slots, whose memory is used again and again."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.written = [0] * len(plan.slots)
        self.reads: list[tuple[Step, Value, int]] = []
        self.writes: list[tuple[Step, Value, int]] = []
        self.group_of: dict[Value, int | None] = {}

    def step(self, step: Step) -> StepCost:
        """The cost of a step."""
        operands = [_seen(self.plan, r) for r in step.operands]
        read: dict[Value, int] = {}
        for ref, (_, nbytes) in zip(step.operands, operands, strict=True):
            value = (ref.slot, self.written[ref.slot])
            read[value] = max(nbytes, read.get(value, 0))
        self.reads += [(step, value, nbytes) for value, nbytes in read.items()]
        results = [_seen(self.plan, r) for r in step.results]
        for ref, (_, nbytes) in zip(step.results, results, strict=True):
            self.written[ref.slot] += 1
            value = (ref.slot, self.written[ref.slot])
            self.writes.append((step, value, nbytes))
            self.group_of[value] = step.group
        types = [t for t, _ in operands]
        flops = step.flops(types, [t for t, _ in results])
        return StepCost(step, flops, *step.moved(sum(read.values()), sum(n for _, n in results)))

    def fused(self, steps: Sequence[StepCost]) -> int:
        """The bytes moved if a group reads what comes into it and writes what leaves it, once."""
        wanted = {(r.slot, self.written[r.slot]) for r in (*self.plan.outputs, *self.plan.updates)}
        leaving = {v for s, v, _ in self.reads if s.group is None or s.group != self._maker(v)}
        entering: dict[tuple[Any, Value], int] = {}
        for i, (step, value, nbytes) in enumerate(self.reads):
            if step.group is None or step.group != self._maker(value):
                key = (i if step.group is None else ("group", step.group), value)
                entering[key] = max(nbytes, entering.get(key, 0))
        left = (
            nbytes
            for step, value, nbytes in self.writes
            if step.group is None or value in leaving or value in wanted
        )
        return sum(entering.values()) + sum(left)

    def _maker(self, value: Value) -> int | None:
        return self.group_of.get(value)


def _seen(plan: Plan, ref: Ref) -> tuple[TensorType, int]:
    """The type of a value as it is seen through its views, and how many bytes that reads."""
    slot = plan.slots[ref.slot]
    t = slot.type
    if not ref.views:
        return t, slot.nbytes if t.shape else 0
    layout = ref.layout(t)
    shape = layout.shape
    repeated = [n for n, s in zip(shape, layout.strides, strict=True) if s == 0 and n > 1]
    elements = prod(shape) // max(prod(repeated), 1)
    return t.with_shape(shape), elements * t.dtype.itemsize if slot.shape else 0


def _ratio(flops: int, nbytes: int) -> float:
    return flops / nbytes if nbytes else 0.0
