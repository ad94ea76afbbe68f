"""The steps of nodes that run bodies, which are planned like small programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symgrad.ir.graph import Graph
from symgrad.ir.types import TensorType
from symgrad.lowering.choices import Branch
from symgrad.lowering.loops import Loop, Turns
from symgrad.lowering.plan import Plan
from symgrad.lowering.schedule import Task
from symgrad.lowering.steps import Ref, Step
from symgrad.ops.loops.cond import branch


def running(
    task: Task,
    operands: tuple[Ref, ...],
    results: tuple[Ref, ...],
    planned: Callable[[Graph], Plan],
    temporaries: Callable[[Sequence[TensorType], str], tuple[Ref, ...]],
) -> Step:
    """The step of a node that runs bodies, each `planned`, with `temporaries` to work in."""
    node, attrs = task.node, dict(task.attrs)
    if node.op is branch.op:
        plans = planned(attrs["true"]), planned(attrs["false"])
        scratch = temporaries(Branch.arrays(plans), "body")
        return Branch(node, operands, results, task.group, scratch, plans=plans)
    parts = (attrs[name] for name in ("carries", "sequences", "length", "reverse"))
    turns = Turns(planned(attrs["body"]), *parts)
    scratch = temporaries(turns.scratch, "body")
    return Loop(node, operands, results, task.group, scratch, turns=turns)
