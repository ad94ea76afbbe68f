"""Copies and pickles of programs: what of one makes another that runs the same graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symgrad.ir.graph import Graph
from symgrad.rewrite.trace import Stage, Trace
from symgrad.runtime.kept import joined

if TYPE_CHECKING:
    from symgrad.runtime.program import Program


def state_of(program: Program) -> tuple[Any, ...]:
    """What `remade` makes a program of, besides the traces."""
    parts = program._parts and (program._parts.once, program._parts.each)
    how = program._form, program.output_names, program._updates, program._backend, program._threads
    return type(program), program.graph, program.raw, parts, (*how, program._feeder.forms)


def traces_of(program: Program) -> tuple[Trace, Trace | None]:
    """What `remade` takes besides, if the rules in it can be taken along."""
    return program.trace, None if program._parts is None else program._parts.trace


def remade(
    cls: type[Program],
    graph: Graph,
    raw: Graph,
    both: tuple[Graph, Graph] | None,
    how: tuple[Any, ...],
    trace: Trace | None = None,
    other: Trace | None = None,
) -> Program:
    """A program of the same graph, which is in `both` parts if some of it is kept."""
    form, names, updates, backend, threads, forms = how
    parts = None
    if both is not None:
        once, each = both
        parts = joined(once, each, graph.inputs, other or Trace([Stage("kept", once, once, 0.0)]))
        graph = parts.graph
    made_by = trace or Trace()
    return cls(graph, raw, made_by, form, names, updates, backend, parts, threads, forms)
