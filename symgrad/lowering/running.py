"""The steps of nodes that run bodies, which are planned like small programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from symgrad.ir.dims import Dim
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.types import TensorType, types_of
from symgrad.lowering.choices import Branch
from symgrad.lowering.loops import Loop, Turns, kept_carries, rows_of
from symgrad.lowering.plan import Plan
from symgrad.lowering.schedule import Task
from symgrad.lowering.steps import Ref, Step
from symgrad.lowering.whiles import Sized, While
from symgrad.ops.leaves import placeholder
from symgrad.ops.loops.cond import branch
from symgrad.ops.loops.while_loop import COUNT, sized, while_loop_p

Refs = tuple[Ref, ...]
Given = tuple[Node, Refs, Refs, int | None]


class Bodies(NamedTuple):
    """How steps get what they run: a body `planned`, a graph `sized`, `temporaries` to work in."""

    planned: Callable[..., Plan]
    sized: Callable[[Graph, Mapping[str, Any]], Plan]
    temporaries: Callable[[Sequence[TensorType], str], Refs]

    def step(self, task: Task, operands: Refs, results: Refs) -> Step:
        """The step of a node that runs bodies."""
        node, attrs = task.node, dict(task.attrs)
        given: Given = (node, operands, results, task.group)
        if node.op is branch.op:
            plans = self.planned(attrs["true"]), self.planned(attrs["false"])
            return Branch(*given, self._scratch(*plans), plans=plans)
        if node.op is sized.op:
            return self._sized(given, attrs["graph"], attrs["name"])
        if node.op is while_loop_p.op:
            test, body = self.planned(attrs["test"]), self.planned(attrs["step"])
            turns = Turns(body, len(results) - 1, 0, 0, False)
            scratch = (*self._scratch(test), *self.temporaries(turns.scratch, "body"))
            return While(
                *given, scratch, test=test, turns=turns, most=attrs["most"], what=attrs["what"]
            )
        parts = (attrs[name] for name in ("carries", "sequences", "length", "reverse"))
        turns = Turns(self.planned(attrs["body"]), *parts)
        return Loop(*given, self.temporaries(turns.scratch, "body"), turns=turns)

    def loop(
        self, task: Task, operands: Refs, new: Callable[[TensorType], Ref]
    ) -> tuple[Loop, Refs]:
        """The step of a loop of known length, with `new` places for what it makes; its results."""
        attrs, types = dict(task.attrs), types_of(task.type)
        body, carries, sequences, length, reverse = (
            attrs[name] for name in ("body", "carries", "sequences", "length", "reverse")
        )
        kept = kept_carries(body, carries, length, reverse)
        made = Graph([body.outputs[i] for i in kept.results], body.inputs)
        plan = self.planned(made, max(length, 1))
        turns = Turns(plan, carries, sequences, length, reverse, kept.carries)
        refs: dict[int, Ref] = {}
        for i in kept.results:
            t = types[i]
            refs[i] = new(t.with_shape((length + 1, *t.shape)) if i in kept.carries else t)
        results, scratch = tuple(refs.values()), self.temporaries(turns.scratch, "body")
        step = Loop(task.node, operands, results, task.group, scratch, turns=turns)
        for i, (carry, rows) in kept.seen.items():
            refs[i] = rows_of(refs[carry], types[carry], rows)
        last = length - turns.first
        for i in kept.carries:
            refs[i] = rows_of(refs[i], types[i], (last, last + 1), alone=True)
        return step, tuple(refs[i] for i in range(len(types)))

    def targets(self, body: Graph) -> list[Node]:
        """Stand-ins for the arrays into which the results of a body are written."""
        return [placeholder(f"y{i}", ()) for i in range(len(body.outputs))]

    def _scratch(self, *plans: Plan) -> Refs:
        return self.temporaries([s.type for p in plans for s in p.arrays_in_arena()], "body")

    def _sized(self, given: Given, graph: Graph, name: str) -> Sized:
        count = placeholder(name, COUNT.shape, COUNT.dtype)
        whole = Graph(graph.outputs, (count, *graph.inputs))
        plan = self.sized(whole, {name: Dim.of(name)})
        return Sized(
            *given, self._scratch(plan), plan=plan, of=lambda size: self.sized(whole, {name: size})
        )
