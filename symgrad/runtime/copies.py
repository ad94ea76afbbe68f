"""Copies and pickles of programs: what of one makes another that runs the same graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symgrad.ir.errors import GraphError
from symgrad.ir.graph import Graph
from symgrad.passes.hoist import joined
from symgrad.rewrite.trace import Trace

if TYPE_CHECKING:
    from symgrad.runtime.program import Interface, Program


VERSION = 2


def state_of(program: Program) -> tuple[Any, ...]:
    """The arguments of `remade` after the version, but for the traces."""
    split = program.split and (program.split.prologue, program.split.body)
    return type(program), program.graph, program.raw, split, program.interface


def traces_of(program: Program) -> tuple[Trace, Trace | None]:
    """The last arguments of `remade`, which are left out where rules cannot be taken along."""
    return program.trace, None if program.split is None else program.split.trace


def remade(version: Any, *state: Any) -> Program:
    """A program of the same graph, which is in two parts if some of it is kept.

    Raises `GraphError` for the pickle of another version of symgrad. The first one had none.
    """
    if version != VERSION:
        found = version if type(version) is int else 1
        raise GraphError(
            f"this is a pickled program of version {found}, and version {VERSION} is read here; "
            "compile it again and pickle that. To keep a graph from version to version, write it "
            "with Graph.save"
        )
    return _remade(*state)


def _remade(
    cls: type[Program],
    graph: Graph,
    raw: Graph,
    both: tuple[Graph, Graph] | None,
    interface: Interface,
    trace: Trace | None = None,
    other: Trace | None = None,
) -> Program:
    split = None
    if both is not None:
        prologue, body = both
        split = joined(prologue, body, graph.inputs, other or Trace())
        graph = split.graph
    return cls(graph, raw, trace or Trace(), interface, split)
