"""Lowering: a graph and the sizes of its named dimensions become a plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from symgrad.ir.cached import cached_property
from symgrad.ir.dims import Dim
from symgrad.ir.evaluate import computed
from symgrad.ir.graph import Graph
from symgrad.ir.leaf_ops import CONSTANT, INPUTS, PLACEHOLDER, VARIABLE
from symgrad.ir.node import Node
from symgrad.ir.op import Op
from symgrad.ir.record import replace
from symgrad.ir.types import TensorType, types_of
from symgrad.ir.walk import GraphLike
from symgrad.lowering.calls import MOST_KEPT, Calls
from symgrad.lowering.in_place import InPlace
from symgrad.lowering.masks import masks_apart
from symgrad.lowering.memory import assign_offsets
from symgrad.lowering.names import names_of
from symgrad.lowering.native import Native, NativeCode, NativeLoop, strides_of, subgroups
from symgrad.lowering.native_program import whole_plan
from symgrad.lowering.plan import Plan
from symgrad.lowering.products import share_products
from symgrad.lowering.schedule import Loop, Task, schedule
from symgrad.lowering.spares import in_spares
from symgrad.lowering.steps import (
    Attrs,
    Copy,
    Kind,
    Ref,
    Slot,
    SlotBuilder,
    Step,
    View,
    add_slot,
    is_open,
    nbytes,
)
from symgrad.lowering.tiling import TileLoop, Tiling, tile_rows
from symgrad.ops.shape import broadcast_to, reshape_p
from symgrad.passes.fuse import PLACING

MOST_STEPS = 256  # of a plan to which others are tried
LEAST_SAVED = 2**16  # bytes that are worth a mask of its own, which is one more step


def lower(
    graph: Graph,
    sizes: Mapping[str, Any],
    updates: Sequence[Node] = (),
    *,
    tiled: bool = True,
    threads: int = 1,
    native: Native | None = None,
    within: bool = False,
    plain: bool = False,
    parts_last: bool = False,
) -> Plan:
    """The plan for these sizes. The last outputs of the graph are the next values of `updates`.

    Where `native` gives machine code, a small program is one function, and large fused groups run
    so, else in tiles if `tiled`, on so many `threads`. It is a plan `within` a tile if so. A
    `plain` one calls kernels as they are, and a size may be the dimension itself, which stays a
    name in it. With `parts_last` what is joined is so when all its parts are made. Where less
    memory may do, by masks made apart or by parts that come last, that is tried.
    Raises `ShapeError` if a size makes an op impossible.
    """
    if native is not None and tiled and not within and not plain:
        whole = native.whole(graph, sizes, len(updates))
        if whole is not None:
            return whole_plan(graph, sizes, updates, whole)
        grouped = native.regrouped(graph, sizes)
        if grouped is not graph:
            made = lower(
                grouped, sizes, updates, threads=threads, native=native, parts_last=parts_last
            )
            return replace(made, graph=graph)
    options = sizes, updates, threads if tiled else 0, native, within, plain
    first = _Lowering(graph, *options, parts_last)
    plan = first.plan()
    if within or plain or len(plan.steps) > MOST_STEPS:
        return plan
    if first.in_place.waits_for_parts:
        last = _Lowering(graph, *options, True).plan(first.scheduled)
        plan = min(plan, last, key=lambda p: p.peak_bytes)
    if plan.arena_bytes < LEAST_SAVED:
        return plan
    apart, stands_for = masks_apart(graph)
    if stands_for:
        other = _Lowering(apart, *options, parts_last).plan()
        if other.peak_bytes <= plan.peak_bytes - LEAST_SAVED:
            for step in other.steps:
                step.node = stands_for.get(step.node, step.node)
            plan = replace(other, graph=graph)
    return plan


class _Lowering:
    def __init__(
        self,
        graph: Graph,
        sizes: Mapping[str, Any],
        updates: Sequence[Node],
        threads: int,
        native: Native | None,
        within: bool,
        plain: bool,
        parts_last: bool,
    ) -> None:
        self.threads, self.native, self.within, self.plain = threads, native, within, plain
        self.parts_last = parts_last
        self.graph, self.sizes = graph, sizes
        # Whether a dimension stays a name.
        self.has_open = any(isinstance(size, Dim) for size in sizes.values())
        self.updates = updates
        self.builders: list[SlotBuilder] = []
        self.steps: list[Step] = []
        self.in_place = InPlace(self.builders, self.steps)
        self.values: list[tuple[Ref, ...]] = []
        self.leaves: dict[Node, int] = {}
        self.calls = Calls(self.builders, plain)
        self.number: dict[int, int] = {}

    @cached_property
    def scheduled(self) -> tuple[list[Task], list[int]]:
        """The tasks, and which of them make the outputs."""
        return schedule(self.graph, self.sizes, self._loop)

    def plan(self, scheduled: tuple[list[Task], list[int]] | None = None) -> Plan:
        """The plan of its tasks, or of those that another way of lowering has scheduled."""
        tasks, outputs = scheduled or self.scheduled
        self._place_all(tasks)
        share_products(self.steps, self.builders, self.native, self.threads)
        wanted = [self.values[i][0] for i in outputs]
        ends = len(self.steps) + len(wanted)
        for ref in wanted:
            self.builders[ref.slot].last = ends
        self.in_place.over_operands()
        if not self.plain and not self.parts_last:
            self.in_place.into_joined()
        ends = len(self.steps) + len(wanted)
        results, nexts = self._deliver(wanted, ends)
        slots, arena_bytes, inside = self._finish()
        rooted = cache(self._rooted)
        for step in self.steps:
            step.operands = tuple(map(rooted, step.operands))
            step.results = tuple(map(rooted, step.results))
            step.scratch = tuple(map(rooted, step.scratch))
        kept = len(wanted) - len(self.updates)
        return Plan(
            graph=self.graph,
            sizes=dict(self.sizes),
            slots=slots,
            steps=tuple(self.steps),
            inputs=self._leaf_slots(PLACEHOLDER),
            variables=self._leaf_slots(VARIABLE),
            nexts=tuple(n if n < 0 else self.number[n] for n in nexts),
            outputs=tuple(map(self._rooted, results[:kept])),
            updates=tuple(map(self._rooted, results[kept:])),
            arena_bytes=arena_bytes,
            inside=inside,
        )

    def _place_all(self, tasks: Sequence[Task]) -> None:
        for task in tasks[len(self.values) :]:
            self.values.append(self._place(task))

    def _loop(self, graph: GraphLike, inputs: list[int], tasks: list[Task]) -> Loop:
        if not self.threads or self.plain:
            return None
        found = None
        if self.native is not None:
            self._place_all(tasks)
            strides = strides_of(self.builders, [self.values[i][0] for i in inputs])
            found = self.native(graph, self.sizes, strides)
        if found is not None or self.within or any(n.op in PLACING for n in graph.nodes):
            return found
        types: list[Any] = [tasks[i].type for i in inputs]
        tiling = tile_rows(graph, types, self.sizes, self._lower_tile, self.threads)
        return tiling or subgroups(self.native, graph, self.sizes)

    def _lower_tile(self, tile: Graph, nexts: Sequence[Node], trial: bool) -> Plan:
        """The plan of a tile. Threads share what is in it, if that is enough, or else the tiles."""
        inner = partial(lower if trial else self._inner, tile, {}, nexts, within=True)
        plan = inner(threads=1 if trial else self.threads)
        return plan if trial or plan.is_shared else inner()

    def _inner(
        self, graph: Graph, sizes: Any, nexts: Sequence[Node], times: int = 1, **options: Any
    ) -> Plan:
        """The plan of what runs so many `times`, in which parts may be machine code."""
        if self.native is not None and self.threads:
            native = self.native.repeated(times)
            plan = lower(native.parts(graph, sizes), sizes, nexts, native=native, **options)
            if plan.has_native:
                return plan
        return lower(graph, sizes, nexts, **options)

    def _leaf_slots(self, op: Op) -> tuple[int, ...]:
        return tuple(self.number[self.leaves[n]] for n in self.graph.inputs if n.op is op)

    # ---- where each task's value goes -------------------------------------------------------

    def _place(self, task: Task) -> tuple[Ref, ...]:
        op = task.node.op
        type_: Any = task.type
        if op in INPUTS:
            kind: Kind = "variable" if op is VARIABLE else "input"
            ref = self._new(kind, task.type, task.node.name)
            self.leaves[task.node] = ref.slot
            return (ref,)
        if (
            not task.inputs
            and not op.runs_graphs
            and not is_open(type_)
            and (op is CONSTANT or math.prod(type_.shape) <= MOST_KEPT)
        ):
            value = np.asarray(computed(task.node, [], dict(task.attrs)))[()]
            return (self._new("constant", task.type, value),)
        values = self.values
        operands = tuple([values[i][0] for i in task.inputs])
        if op.of_several:
            return (self.values[task.inputs[0]][task.node.attr("index")],)
        if op.identity:
            return operands[: len(types_of(task.type))]
        if op.view:
            return (self._view(task, operands[0]),)
        return self._compute(task, operands)

    def _new(self, kind: Kind, type_: Any, value: Any = None, step: int = -1) -> Ref:
        assert isinstance(type_, TensorType)
        if kind == "arena" and self.has_open and is_open(type_):
            kind = "output"
        return add_slot(self.builders, kind, type_, value, step)

    def _result(self, t: TensorType) -> Ref:
        """A place for a result of the next step."""
        return self._new("arena" if t.shape else "scalar", t, step=len(self.steps))

    def _view(self, task: Task, source: Ref) -> Ref:
        view = View(task.node.op, task.attrs)
        if self.has_open and (is_open(self.builders[source.slot].type) or is_open(task.type)):
            result = self._new("arena", task.type, step=len(self.steps))
            seen = Ref(source.slot, (*source.views, view))
            self._append(Copy(task.node, (seen,), (result,), task.group))
            return result
        if view.op is not reshape_p.op or self._reshapes_in_place(source, view.attrs):
            return Ref(source.slot, (*source.views, view))
        result = self._new("arena", task.type, step=len(self.steps))
        back = View(reshape_p.op, (("shape", self._shape(source)),))
        target = Ref(result.slot, (back,))
        self._append(Copy(task.node, (source,), (target,), task.group))
        return result

    def _shape(self, ref: Ref) -> Any:
        return ref.shape(self.builders[ref.slot].type)

    def _type(self, ref: Ref) -> TensorType:
        """The type of a value as it is seen."""
        return ref.seen_type(self.builders[ref.slot].type)

    def _reshapes_in_place(self, source: Ref, attrs: Attrs) -> bool:
        if not source.views:
            return True
        layout = source.layout(self.builders[source.slot].type)
        try:
            np.reshape(layout, dict(attrs)["shape"], copy=False)
        except ValueError:
            return False
        return True

    def _compute(self, task: Task, operands: tuple[Ref, ...]) -> tuple[Ref, ...]:
        node, types = task.node, types_of(task.type)
        if node.op.body and not self.plain:
            first = node.attr("carries") + node.attr("sequences")
            fixed = (self._contiguous(task, ref) for ref in operands[first:])  # laid out once
            looped, refs = self._bodies.loop(task, (*operands[:first], *fixed), self._result)
            self._append(looped)
            return tuple(refs)
        results = tuple(map(self._result, types))
        if task.loop is not None:
            self._append(self._loop_step(task, task.loop, operands, results))
            return results
        if node.op.runs_graphs:
            self._append(self._bodies.step(task, operands, results))
            return results
        wanted = node.op.storage.scratch if types[0].shape and not self.plain else None
        asked = () if wanted is None else wanted(*map(self._type, operands), **dict(task.attrs))
        scratch = self._temporaries(asked, "bits") if asked else ()
        self._append(self.calls.step(task, operands, results, scratch))
        return results

    @property
    def _bodies(self) -> Any:  # not kept: they hold this, which the collector would have to free
        from symgrad.lowering.running import Bodies

        return Bodies(self._body, self._sized, self._temporaries)

    def _body(self, body: Graph, times: int = 1) -> Plan:
        """The plan of a body, each of whose results is written where it belongs."""
        tiled, threads = self.threads > 0, max(self.threads, 1)
        sizes = {n: size for n, size in self.sizes.items() if not isinstance(size, Dim)}
        options = {"tiled": tiled, "threads": threads, "parts_last": self.parts_last}
        plan = self._inner(body, sizes, self._bodies.targets(body), times, **options)
        return replace(plan, graph=body)

    def _sized(self, graph: Graph, sizes: Mapping[str, Any]) -> Plan:
        """The plan of a graph that has a dimension of its own, for a size of that or its name."""
        tiled, threads = self.threads > 0, max(self.threads, 1)
        return lower(
            graph, {**self.sizes, **sizes}, self._bodies.targets(graph),
            tiled=tiled, threads=threads, native=self.native, plain=True,
        )  # fmt: skip

    def _loop_step(
        self,
        task: Task,
        loop: Tiling | NativeCode,
        operands: tuple[Ref, ...],
        results: tuple[Ref, ...],
    ) -> Step:
        node = task.node
        if isinstance(loop, Tiling):
            scratch = self._temporaries(loop.scratch, "tile")
            return TileLoop(node, operands, results, task.group, scratch, tiling=loop)
        both = zip(operands, map(loop.wide.get, range(len(operands))), strict=True)
        seen = [r if s is None else self._broadcast(r, s) for r, s in both]
        ready = zip(seen, loop.strides, strict=True)
        operands = tuple([self._contiguous(task, r) if s is None else r for r, s in ready])
        scratch = self._temporaries([t for t in loop.parts if t is not None], "tile")
        given = node, operands, results, task.group, scratch
        return NativeLoop(*given, code=loop, threads=self.threads)

    def _broadcast(self, ref: Ref, shape: tuple[int, ...]) -> Ref:
        return Ref(ref.slot, (*ref.views, View(broadcast_to.op, (("shape", shape),))))

    def _contiguous(self, task: Task, ref: Ref) -> Ref:
        """A value that lies as its shape says: a copy, if it is seen otherwise."""
        if not ref.views or ref.layout(self.builders[ref.slot].type).flags.c_contiguous:
            return ref
        copy = self._new("arena", self._type(ref), step=len(self.steps))
        self._append(Copy(task.node, (ref,), (copy,), task.group))
        return copy

    def _temporaries(self, types: Sequence[TensorType], stem: str) -> tuple[Ref, ...]:
        """Slots that only this step uses; their names begin with the stem."""
        return tuple([self._new("arena", t, stem, len(self.steps)) for t in types])

    def _append(self, step: Step) -> None:
        for ref in step.operands:
            self.builders[ref.slot].last = len(self.steps)
        self.steps.append(step)

    # ---- results ----------------------------------------------------------------------------

    def _deliver(self, wanted: list[Ref], ends: int) -> tuple[list[Ref], list[int]]:
        """Put each result where it belongs: in an array for the caller, or in a spare one."""
        results: list[Ref] = []
        nexts: list[int] = []
        kept = len(wanted) - len(self.updates)
        for i, ref in enumerate(wanted):
            kind: Kind = "output" if i < kept else "next"
            shape = self._shape(ref)
            if not shape:
                results.append(ref)
                if kind == "next":
                    nexts.append(-1)
                continue
            root = self.in_place.root(ref.slot)
            builder = self.builders[root]
            if ref.views or builder.kind != "arena" or self.builders[ref.slot].type != builder.type:
                root = self._copy_out(self.graph.outputs[i], ref, shape, kind)
            else:
                builder.kind = kind
            if kind == "next":
                target = self.updates[i - kept]
                suffix = "_next" * (target.op is VARIABLE)
                self.builders[root].value = f"{target.name}{suffix}"
                nexts.append(root)
            results.append(Ref(root))
        return results, nexts

    def _copy_out(self, node: Node, ref: Ref, shape: tuple[int, ...], kind: Kind) -> int:
        t = self.builders[ref.slot].type.with_shape(shape)
        result = self._new(kind, t, step=len(self.steps))
        self.steps.append(Copy(node, (ref,), (result,)))
        return result.slot

    # ---- places and names -------------------------------------------------------------------

    def _finish(self) -> tuple[tuple[Slot, ...], int, Mapping[str, Ref]]:
        """Slots with their names and places, the bytes of the arena, what lies in spare arrays."""
        own = [i for i, d in enumerate(self.builders) if d.kind == "arena" and d.root == i]
        ours = not self.within and not self.plain and all(n.op is VARIABLE for n in self.updates)
        inside = in_spares(self.in_place, own) if ours else {}
        own = [i for i in own if i not in inside]
        lifetimes = [(d.first, d.last, nbytes(d.type)) for d in (self.builders[i] for i in own)]
        offsets, arena_bytes = assign_offsets(lifetimes)
        place = dict(zip(own, offsets, strict=True))
        names = names_of(self.builders, {**place, **inside})
        roots = [i for i, d in enumerate(self.builders) if d.root == i]
        self.number = {root: n for n, root in enumerate(roots)}
        built = ((i, self.builders[i], place.get(i, -1)) for i in roots)
        slots = tuple(
            Slot(names[i], d.kind, d.type, d.first, d.last, offset, d.constant)
            for i, d, offset in built
        )
        return slots, arena_bytes, {names[i]: self._rooted(Ref(i)) for i in inside}

    def _rooted(self, ref: Ref) -> Ref:
        slot, views = self.in_place.rooted(ref)
        return Ref(self.number[slot], views)
