"""Lowering: a graph and the sizes of its named dimensions become a plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from symgrad.ir.evaluate import computed
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.op import REGISTRY, Op
from symgrad.ir.types import TensorType
from symgrad.lowering.memory import assign_offsets
from symgrad.lowering.names import names_of
from symgrad.lowering.plan import Attrs, Kind, Plan, Ref, Slot, Step, View
from symgrad.lowering.schedule import Task, schedule
from symgrad.lowering.slots import SlotBuilder
from symgrad.lowering.tiling import TILED, Tiling, tile_rows
from symgrad.ops import kernels

COPY = Op(
    name="copy", infer=lambda t: t, kernel=kernels.copy, out=True, source="np.copyto({out}, {0})"
)
RESHAPE, RELU, MAXIMUM, ROW_SUMS = (
    REGISTRY.ops[name] for name in ("reshape", "relu", "maximum", "row_sums")
)
# What adds up rows: a product with ones, of which half of the operations do nothing.
MATMUL = Op(
    name="matmul",
    infer=lambda x, ones: x.with_shape((*x.shape[:-1], *ones.shape[1:])),
    kernel=np.matmul,
    out=True,
    flops=lambda x, ones: x.size,
)
EXTREMA = (np.maximum, np.minimum)
# With a row of numbers NumPy's extrema are two to three times as fast as with one number, if there
# are enough of them.
MOST_KEPT = 2**24  # elements; a program of a graph that was read is made in little memory
LEAST_ROW, LEAST_SIZE = 64, 2**15


def lower(
    graph: Graph,
    sizes: Mapping[str, int],
    updates: Sequence[Node] = (),
    *,
    tiled: bool = True,
    threads: int = 1,
) -> Plan:
    """The plan for these sizes. The last outputs of the graph are the next values of `updates`.

    Large fused groups run in tiles if `tiled`, on so many `threads`. Raises
    `ShapeError` if a size makes an op impossible.
    """
    return _Lowering(graph, sizes, updates, threads if tiled else 0).plan()


class _Lowering:
    def __init__(
        self, graph: Graph, sizes: Mapping[str, int], updates: Sequence[Node], threads: int
    ) -> None:
        self.threads = threads
        self.graph = graph
        self.sizes = sizes
        self.updates = updates
        self.builders: list[SlotBuilder] = []
        self.steps: list[Step] = []
        self.values: list[tuple[Ref, ...]] = []
        self.leaves: dict[Node, int] = {}
        self.uniform: dict[Any, Ref] = {}
        self.number: dict[int, int] = {}

    def plan(self) -> Plan:
        tasks = schedule(self.graph, self.sizes, self._tile_rows)
        for task in tasks.tasks:
            self.values.append(self._place(task))
        wanted = [self.values[i][0] for i in tasks.outputs]
        ends = len(self.steps) + len(wanted)
        for ref in wanted:
            self.builders[ref.slot].last = ends
        for i, step in enumerate(self.steps):
            self._work_in_place(i, step)
        results, nexts = self._deliver(wanted, ends)
        slots, arena_bytes = self._finish()
        kept = len(wanted) - len(self.updates)
        return Plan(
            graph=self.graph,
            sizes=dict(self.sizes),
            slots=slots,
            steps=tuple(map(self._rooted_step, self.steps)),
            inputs=self._leaf_slots("placeholder"),
            variables=self._leaf_slots("variable"),
            nexts=tuple(n if n < 0 else self.number[n] for n in nexts),
            outputs=tuple(map(self._rooted, results[:kept])),
            updates=tuple(map(self._rooted, results[kept:])),
            arena_bytes=arena_bytes,
        )

    def _tile_rows(self, graph: Graph, types: list[TensorType]) -> Tiling | None:
        if not self.threads:
            return None
        return tile_rows(graph, types, self.sizes, lower, self.threads)

    def _leaf_slots(self, op_name: str) -> tuple[int, ...]:
        leaves = (n for n in self.graph.inputs if n.op.name == op_name)
        return tuple(self.number[self.leaves[n]] for n in leaves)

    # ---- where each task's value goes -------------------------------------------------------

    def _place(self, task: Task) -> tuple[Ref, ...]:
        op = task.op
        if op.name in ("placeholder", "variable"):
            kind: Kind = "input" if op.name == "placeholder" else "variable"
            ref = self._new(kind, task.type, task.node.name)
            self.leaves[task.node] = ref.slot
            return (ref,)
        if not task.inputs and (op.name == "constant" or self._is_small(task.type)):
            value = np.asarray(computed(task.node, [], dict(task.attrs)))[()]
            return (self._new("constant", task.type, value),)
        operands = tuple(self.values[i][0] for i in task.inputs)
        if op.name == "item":
            return (self.values[task.inputs[0]][dict(task.attrs)["index"]],)
        if op.identity:
            return operands[: len(task.type) if isinstance(task.type, tuple) else 1]
        if op.view:
            return (self._view(task, operands[0]),)
        return self._compute(task, operands)

    def _is_small(self, type_: Any) -> bool:
        """Whether what is made from a shape alone is made once, with the plan, and kept in it."""
        return bool(math.prod(type_.shape) <= MOST_KEPT)

    def _new(self, kind: Kind, type_: Any, value: Any = None, step: int = -1) -> Ref:
        assert isinstance(type_, TensorType)
        self.builders.append(SlotBuilder(kind, type_, value, step, step, len(self.builders)))
        return Ref(len(self.builders) - 1)

    def _view(self, task: Task, source: Ref) -> Ref:
        view = View(task.op, task.attrs)
        if view.op is not RESHAPE or self._reshapes_in_place(source, view.attrs):
            return Ref(source.slot, (*source.views, view))
        assert isinstance(task.type, TensorType)
        result = self._new("arena", task.type, step=len(self.steps))
        back = View(RESHAPE, (("shape", self._shape_of(source)),))
        self._append(COPY, (source,), (Ref(result.slot, (back,)),), (), task)
        return result

    def _layout(self, ref: Ref) -> np.ndarray[Any, Any]:
        """An array with the shape and strides of a value, and no memory to speak of."""
        t = self.builders[ref.slot].type
        shape: Any = t.shape
        strides = np.cumprod((t.dtype.itemsize, *(max(s, 1) for s in shape[:0:-1])))[::-1]
        x = as_strided(np.empty(1, t.dtype), shape, tuple(strides[: len(shape)]) if shape else ())
        for view in ref.views:
            x = view.op.kernel(x, **dict(view.attrs))
        return x

    def _shape_of(self, ref: Ref) -> tuple[int, ...]:
        source: Any = self._layout(ref) if ref.views else self.builders[ref.slot].type
        shape: tuple[int, ...] = source.shape
        return shape

    def _reshapes_in_place(self, source: Ref, attrs: Attrs) -> bool:
        if not source.views:
            return True
        try:
            np.reshape(self._layout(source), dict(attrs)["shape"], copy=False)
        except ValueError:
            return False
        return True

    def _compute(self, task: Task, operands: tuple[Ref, ...]) -> tuple[Ref, ...]:
        step = len(self.steps)
        types = task.type if isinstance(task.type, tuple) else (task.type,)
        results = tuple(self._new("arena" if t.shape else "scalar", t, step=step) for t in types)
        scratch: tuple[Ref, ...] = ()
        if task.op.scratch is not None and (types[0].shape or task.op is TILED):
            inner = [self.values[i] for i in task.inputs]
            assert all(len(v) == 1 for v in inner)
            asked = task.op.scratch(*self._types(task), **dict(task.attrs))
            kind = "tiling" if task.op is TILED else "scratch"
            scratch = tuple(self._new("arena", t, kind, step) for t in asked)
        op, operands, attrs = self._with_rows(task, operands, types[0])
        self._append(op, operands, results, attrs, task, scratch)
        return results

    def _with_rows(
        self, task: Task, operands: tuple[Ref, ...], t: TensorType
    ) -> tuple[Op, tuple[Ref, ...], Attrs]:
        """The op with the constants that it is best done with.

        An extremum of an array and a number reads a row of that number, a sum of rows a row of 1.
        """
        shape: Any = t.shape
        same = task.op, operands, task.attrs
        if max((s for r in operands for s in self._shape_of(r)), default=0) > MOST_KEPT:
            return same
        if task.op is ROW_SUMS:
            ones = (self._shape_of(operands[0])[-1], *(1,) * dict(task.attrs)["keepdims"])
            return MATMUL, (*operands, self._filled(t.dtype.type(1), ones)), ()
        if math.prod(shape) < LEAST_SIZE or shape[-1] < LEAST_ROW or t.dtype.kind != "f":
            return same
        if task.op is RELU:
            return MAXIMUM, (*operands, self._filled(t.dtype.type(0), shape[-1:])), ()
        if task.op.kernel not in EXTREMA:
            return same
        builders = [self.builders[r.slot] for r in operands]
        rows = (
            self._filled(d.value, shape[-1:]) if d.kind == "constant" and not d.type.shape else r
            for r, d in zip(operands, builders, strict=True)
        )
        return task.op, tuple(rows), task.attrs

    def _filled(self, value: Any, shape: tuple[int, ...]) -> Ref:
        """A constant that is one number throughout."""
        key = value.tobytes(), value.dtype, shape
        if key not in self.uniform:
            array = np.full(shape, value)
            array.flags.writeable = False
            self.uniform[key] = self._new("constant", TensorType(shape, array.dtype), array)
        return self.uniform[key]

    def _types(self, task: Task) -> list[TensorType]:
        """The types of a task's operands."""
        found = []
        for i in task.inputs:
            ref = self.values[i][0]
            t = self.builders[ref.slot].type
            found.append(t.with_shape(self._shape_of(ref)) if ref.views else t)
        return found

    def _append(
        self,
        op: Op,
        operands: tuple[Ref, ...],
        results: tuple[Ref, ...],
        attrs: Attrs,
        task: Task,
        scratch: tuple[Ref, ...] = (),
    ) -> None:
        for ref in operands:
            self.builders[ref.slot].last = len(self.steps)
        self.steps.append(Step(op, operands, results, attrs, task.node, scratch, task.group))

    # ---- in place ---------------------------------------------------------------------------

    def _root(self, slot: int) -> int:
        while self.builders[slot].root != slot:
            slot = self.builders[slot].root
        return slot

    def _work_in_place(self, index: int, step: Step) -> None:
        """Let a step write over an operand that nobody reads afterwards."""
        result = step.results[0]
        builder = self.builders[result.slot]
        if len(step.results) != 1 or builder.kind != "arena" or result.views:
            return
        for k in step.op.in_place:
            if k < len(step.operands) and self._may_take(step, k, index, builder):
                root = self._root(step.operands[k].slot)
                builder.root = root
                self.builders[root].last = builder.last
                return

    def _may_take(self, step: Step, k: int, index: int, builder: SlotBuilder) -> bool:
        ref = step.operands[k]
        root = self._root(ref.slot)
        old = self.builders[root]
        if ref.views or old.kind != "arena" or old.last != index:
            return False
        if builder.type.is_complex:  # where its operands overlap, np.multiply rounds otherwise
            return False
        if old.type != builder.type or self.builders[ref.slot].type != builder.type:
            return False
        is_ufunc = isinstance(step.op.kernel, np.ufunc)
        others = [r for j, r in enumerate(step.operands) if j != k and self._root(r.slot) == root]
        return all(is_ufunc and r == ref for r in others)

    # ---- results ----------------------------------------------------------------------------

    def _deliver(self, wanted: list[Ref], ends: int) -> tuple[list[Ref], list[int]]:
        """Put each result where it belongs: in an array for the caller, or in a spare one."""
        results: list[Ref] = []
        nexts: list[int] = []
        kept = len(wanted) - len(self.updates)
        for i, ref in enumerate(wanted):
            kind: Kind = "output" if i < kept else "next"
            shape = self._shape_of(ref)
            if shape == ():
                results.append(ref)
                if kind == "next":
                    nexts.append(-1)
                continue
            root = self._root(ref.slot)
            builder = self.builders[root]
            if ref.views or builder.kind != "arena" or self.builders[ref.slot].type != builder.type:
                root = self._copy_out(self.graph.outputs[i], ref, shape, kind)
            else:
                builder.kind = kind
            if kind == "next":
                target = self.updates[i - kept]
                is_variable = target.op.name == "variable"
                self.builders[root].value = f"{target.name}_next" if is_variable else target.name
                nexts.append(root)
            results.append(Ref(root))
        return results, nexts

    def _copy_out(self, node: Node, ref: Ref, shape: tuple[int, ...], kind: Kind) -> int:
        t = self.builders[ref.slot].type.with_shape(shape)
        result = self._new(kind, t, step=len(self.steps))
        self.steps.append(Step(COPY, (ref,), (result,), (), node))
        return result.slot

    # ---- places and names -------------------------------------------------------------------

    def _finish(self) -> tuple[tuple[Slot, ...], int]:
        """Offsets for what lies in the arena, and a name for every slot."""
        own = [i for i, d in enumerate(self.builders) if d.kind == "arena" and d.root == i]
        lifetimes = [(d.first, d.last, _nbytes(d.type)) for d in (self.builders[i] for i in own)]
        offsets, arena_bytes = assign_offsets(lifetimes)
        place = dict(zip(own, offsets, strict=True))
        names = names_of(self.builders, place)
        roots = [i for i, d in enumerate(self.builders) if d.root == i]
        self.number = {root: n for n, root in enumerate(roots)}
        slots = tuple(
            Slot(
                names[i],
                d.kind,
                d.type,
                d.first,
                d.last,
                place.get(i, -1),
                d.value if d.kind == "constant" else None,
            )
            for i, d in ((i, self.builders[i]) for i in roots)
        )
        return slots, arena_bytes

    def _rooted(self, ref: Ref) -> Ref:
        number = self.number[self._root(ref.slot)]
        return ref if number == ref.slot else Ref(number, ref.views)

    def _rooted_step(self, step: Step) -> Step:
        operands = tuple(map(self._rooted, step.operands))
        results = tuple(map(self._rooted, step.results))
        scratch = tuple(map(self._rooted, step.scratch))
        return Step(step.op, operands, results, step.attrs, step.node, scratch, step.group)


def _nbytes(t: TensorType) -> int:
    return Slot("", "arena", t).nbytes
