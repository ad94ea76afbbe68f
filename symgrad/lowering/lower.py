"""Lowering: a graph and the sizes of its named dimensions become a plan."""

from __future__ import annotations

import builtins
import keyword
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from string import ascii_lowercase
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.op import REGISTRY, Op
from symgrad.ir.types import TensorType
from symgrad.ir.values import ArrayData
from symgrad.lowering.blocks import BLOCKS, Blocks, in_blocks
from symgrad.lowering.memory import assign_offsets
from symgrad.lowering.plan import Attrs, Kind, Plan, Ref, Slot, Step, View
from symgrad.lowering.schedule import Task, schedule
from symgrad.ops import kernels
from symgrad.ops.copied import own_names

COPY = Op(
    name="copy", infer=lambda t: t, kernel=kernels.copy, out=True, source="np.copyto({out}, {0})"
)
RESHAPE = REGISTRY.ops["reshape"]


def lower(
    graph: Graph,
    sizes: Mapping[str, int],
    updates: Sequence[Node] = (),
    *,
    in_blocks: bool = True,
    threads: int = 1,
) -> Plan:
    """The plan for these sizes. The last outputs of the graph are the next values of `updates`.

    Large fused groups run `in_blocks`, unless that is not wanted, on so many `threads`. Raises
    `ShapeError` if a size makes an op impossible.
    """
    return _Lowering(graph, sizes, updates, threads if in_blocks else 0).plan()


@dataclass
class _Draft:
    """A slot before its place is known. `root` is the draft whose memory it takes over."""

    kind: Kind
    type: TensorType
    value: Any = None
    first: int = -1
    last: int = -1
    root: int = -1


class _Lowering:
    def __init__(
        self, graph: Graph, sizes: Mapping[str, int], updates: Sequence[Node], threads: int
    ) -> None:
        self.threads = threads
        self.graph = graph
        self.sizes = sizes
        self.updates = updates
        self.drafts: list[_Draft] = []
        self.steps: list[Step] = []
        self.values: list[tuple[Ref, ...]] = []
        self.leaves: dict[Node, int] = {}
        self.number: dict[int, int] = {}

    def plan(self) -> Plan:
        tasks = schedule(self.graph, self.sizes, self._blocks)
        for task in tasks.tasks:
            self.values.append(self._place(task))
        wanted = [self.values[i][0] for i in tasks.outputs]
        ends = len(self.steps) + len(wanted)
        for ref in wanted:
            self.drafts[ref.slot].last = ends
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

    def _blocks(self, graph: Graph, types: list[TensorType]) -> Blocks | None:
        if not self.threads:
            return None
        return in_blocks(graph, types, self.sizes, lower, self.threads)

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
        if not task.inputs:
            attrs = dict(task.attrs)
            held = attrs.get("value")
            array = held.array if isinstance(held, ArrayData) else op.kernel(**attrs)
            return (self._new("constant", task.type, array[()]),)
        operands = tuple(self.values[i][0] for i in task.inputs)
        if op.name == "item":
            return (self.values[task.inputs[0]][dict(task.attrs)["index"]],)
        if op.forwards:
            return operands[: len(task.type) if isinstance(task.type, tuple) else 1]
        if op.view:
            return (self._view(task, operands[0]),)
        return self._compute(task, operands)

    def _new(self, kind: Kind, type_: Any, value: Any = None, step: int = -1) -> Ref:
        assert isinstance(type_, TensorType)
        self.drafts.append(_Draft(kind, type_, value, step, step, len(self.drafts)))
        return Ref(len(self.drafts) - 1)

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
        t = self.drafts[ref.slot].type
        shape: Any = t.shape
        strides = np.cumprod((t.dtype.itemsize, *(max(s, 1) for s in shape[:0:-1])))[::-1]
        x = as_strided(np.empty(1, t.dtype), shape, tuple(strides[: len(shape)]) if shape else ())
        for view in ref.views:
            x = view.op.kernel(x, **dict(view.attrs))
        return x

    def _shape_of(self, ref: Ref) -> tuple[int, ...]:
        shape: tuple[int, ...] = self._layout(ref).shape
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
        if task.op.scratch is not None and (types[0].shape or task.op is BLOCKS):
            inner = [self.values[i] for i in task.inputs]
            assert all(len(v) == 1 for v in inner)
            asked = task.op.scratch(*self._types(task), **dict(task.attrs))
            kind = "blocks" if task.op is BLOCKS else "scratch"
            scratch = tuple(self._new("arena", t, kind, step) for t in asked)
        self._append(task.op, operands, results, task.attrs, task, scratch)
        return results

    def _types(self, task: Task) -> list[TensorType]:
        """The types of a task's operands."""
        found = []
        for i in task.inputs:
            ref = self.values[i][0]
            t = self.drafts[ref.slot].type
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
            self.drafts[ref.slot].last = len(self.steps)
        self.steps.append(Step(op, operands, results, attrs, task.node, scratch, task.group))

    # ---- in place ---------------------------------------------------------------------------

    def _root(self, slot: int) -> int:
        while self.drafts[slot].root != slot:
            slot = self.drafts[slot].root
        return slot

    def _work_in_place(self, index: int, step: Step) -> None:
        """Let a step write over an operand that nobody reads afterwards."""
        result = step.results[0]
        draft = self.drafts[result.slot]
        if len(step.results) != 1 or draft.kind != "arena" or result.views:
            return
        for k in step.op.in_place:
            if k < len(step.operands) and self._may_take(step, k, index, draft):
                root = self._root(step.operands[k].slot)
                draft.root = root
                self.drafts[root].last = draft.last
                return

    def _may_take(self, step: Step, k: int, index: int, draft: _Draft) -> bool:
        ref = step.operands[k]
        root = self._root(ref.slot)
        old = self.drafts[root]
        if ref.views or old.kind != "arena" or old.last != index:
            return False
        if old.type != draft.type or self.drafts[ref.slot].type != draft.type:
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
            draft = self.drafts[root]
            if ref.views or draft.kind != "arena" or self.drafts[ref.slot].type != draft.type:
                root = self._copy_out(self.graph.outputs[i], ref, shape, kind)
            else:
                draft.kind = kind
            if kind == "next":
                target = self.updates[i - kept]
                is_variable = target.op.name == "variable"
                self.drafts[root].value = f"{target.name}_next" if is_variable else target.name
                nexts.append(root)
            results.append(Ref(root))
        return results, nexts

    def _copy_out(self, node: Node, ref: Ref, shape: tuple[int, ...], kind: Kind) -> int:
        t = self.drafts[ref.slot].type.with_shape(shape)
        result = self._new(kind, t, step=len(self.steps))
        self.steps.append(Step(COPY, (ref,), (result,), (), node))
        return result.slot

    # ---- places and names -------------------------------------------------------------------

    def _finish(self) -> tuple[tuple[Slot, ...], int]:
        """Offsets for what lies in the arena, and a name for every slot."""
        own = [i for i, d in enumerate(self.drafts) if d.kind == "arena" and d.root == i]
        lifetimes = [(d.first, d.last, _nbytes(d.type)) for d in (self.drafts[i] for i in own)]
        offsets, arena_bytes = assign_offsets(lifetimes)
        place = dict(zip(own, offsets, strict=True))
        names = _names(self.drafts, place)
        roots = [i for i, d in enumerate(self.drafts) if d.root == i]
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
            for i, d in ((i, self.drafts[i]) for i in roots)
        )
        return slots, arena_bytes

    def _rooted(self, ref: Ref) -> Ref:
        return Ref(self.number[self._root(ref.slot)], ref.views)

    def _rooted_step(self, step: Step) -> Step:
        operands, results, scratch = (
            tuple(map(self._rooted, refs)) for refs in (step.operands, step.results, step.scratch)
        )
        return Step(step.op, operands, results, step.attrs, step.node, scratch, step.group)


def _nbytes(t: TensorType) -> int:
    return Slot("", "arena", t).nbytes


# What generated text says itself: no value takes such a name.
WORDS = frozenset({"np", "step", "self", "fitted", "found", "workspace", "Program"})
RESERVED = frozenset(
    {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *np.__all__, *own_names(), *WORDS}
)


def identifier(name: str) -> str:
    """A Python name as near to any text as can be. Two leading underscores mean something else."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name[:40])
    plain = plain if plain[:1].isalpha() else f"_{plain.lstrip('_') or 'unnamed'}"
    return f"{plain}_" if plain in RESERVED else plain


def _letters() -> Iterator[str]:
    """a, b, … z, a1, b1, …"""
    for round_ in count():
        for letter in ascii_lowercase:
            yield f"{letter}{round_ or ''}"


def _names(drafts: list[_Draft], place: Mapping[int, int]) -> dict[int, str]:
    """A name for every slot; arrays of one shape and dtype at one place share theirs."""
    names: dict[int, str] = {}
    taken = set(RESERVED)
    letters = _letters()
    shared: dict[Any, str] = {}
    numbers: dict[str, Iterator[int]] = defaultdict(count)

    def fresh(stem: str) -> str:
        found = next(n for k in numbers[stem] if (n := f"{stem}{k or ''}") not in taken)
        taken.add(found)
        return found

    given = ("input", "variable", "next")
    for i, d in enumerate(drafts):
        if d.kind in given and d.root == i:
            names[i] = fresh(identifier(str(d.value)))
    for i, d in enumerate(drafts):
        if d.root != i or d.kind in given:
            continue
        if d.kind == "arena":
            key = (place[i], d.type)
            if key not in shared:
                shared[key] = (
                    fresh("bits")
                    if d.value == "scratch"
                    else fresh("block")
                    if d.value == "blocks"
                    else fresh(next(n for n in letters if n not in taken))
                )
            names[i] = shared[key]
        else:
            names[i] = fresh({"constant": "k", "scalar": "s", "output": "out"}[d.kind])
    return names
