"""Copies and pickles of programs: what of one makes another that runs the same graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from symgrad.ir.errors import GraphError
from symgrad.ir.graph import Graph
from symgrad.passes.hoist import joined
from symgrad.rewrite.trace import Trace

if TYPE_CHECKING:
    from symgrad.runtime.program import Interface, Program


VERSION = 3
Parts: TypeAlias = "tuple[Sequence[tuple[tuple[str, ...], Graph]], Graph]"


def state_of(program: Program) -> tuple[Any, ...]:
    """The arguments of `remade` after the version, but for the traces."""
    split = program.split
    parts = split and ([(p.names, p.body) for p in split.kept], split.body)
    return type(program), program.graph, program.raw, parts, program.interface


def traces_of(program: Program) -> tuple[Trace, Sequence[Trace]]:
    """The last arguments of `remade`, which are left out where rules cannot be taken along."""
    return program.trace, [] if program.split is None else [p.trace for p in program.split.kept]


def remade(version: Any, *state: Any) -> Program:
    """A program of the same graph, which is in parts if some of it is kept.

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
    parts: Parts | None,
    interface: Interface,
    trace: Trace | None = None,
    others: Sequence[Trace] = (),
) -> Program:
    split = None
    if parts is not None:
        kept, body = parts
        traces = others or [Trace() for _ in kept]
        each = [(names, part, own) for (names, part), own in zip(kept, traces, strict=True)]
        split = joined(each, body, graph.inputs)
        graph = split.graph
    return cls(graph, raw, trace or Trace(), interface, split)
