"""Whole programs in machine code: the plan of a graph that is one function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symgrad.ir.graph import Graph
from symgrad.ir.leaf_ops import VARIABLE
from symgrad.ir.node import Node
from symgrad.lowering.names import names_of
from symgrad.lowering.native import NativeCall, WholeCode
from symgrad.lowering.plan import Plan
from symgrad.lowering.schedule import schedule
from symgrad.lowering.steps import Kind, Ref, Slot, SlotBuilder


def whole_plan(
    graph: Graph, sizes: Mapping[str, int], updates: Sequence[Node], code: WholeCode
) -> Plan:
    """The plan of one step, in which every output is a place of its own; see `lower`."""
    tasks, outputs = schedule(graph, sizes)
    types = {t.node: t.type for t in tasks}
    builders: list[SlotBuilder] = []

    def new(kind: Kind, type_: Any, name: Any = None) -> int:
        last = 1 if kind == "output" else 0
        builders.append(SlotBuilder(kind, type_, name, 0, last, len(builders)))
        return len(builders) - 1

    leaves = [
        new("variable" if x.op is VARIABLE else "input", types[x], x.name) for x in graph.inputs
    ]
    kept, results = len(outputs) - len(updates), []
    for i, number in enumerate(outputs):
        t: Any = tasks[number].type
        target = None if i < kept else updates[i - kept]
        if not t.shape:
            results.append(new("scalar", t))
        elif target is None:
            results.append(new("output", t))
        else:
            suffix = "_next" * (target.op is VARIABLE)
            results.append(new("next", t, f"{target.name}{suffix}"))
    step = NativeCall(
        node=graph.outputs[0],
        operands=tuple(map(Ref, leaves)),
        results=tuple(map(Ref, results)),
        code=code,
        computed=tuple(t.node for t in tasks if t.inputs and not t.node.op.view),
    )
    names = names_of(builders, {})
    of = list(zip(graph.inputs, leaves, strict=True))
    return Plan(
        graph=graph,
        sizes=dict(sizes),
        slots=tuple(
            Slot(names[i], b.kind, b.type, b.first, b.last) for i, b in enumerate(builders)
        ),
        steps=(step,),
        inputs=tuple(i for x, i in of if x.op is not VARIABLE),
        variables=tuple(i for x, i in of if x.op is VARIABLE),
        nexts=tuple(i if builders[i].kind == "next" else -1 for i in results[kept:]),
        outputs=tuple(map(Ref, results[:kept])),
        updates=tuple(map(Ref, results[kept:])),
        arena_bytes=0,
    )
