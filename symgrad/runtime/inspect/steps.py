"""Loops and choices step by step: in which step, and at which node of a body, a fault began."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from symgrad.ir.errors import KernelError
from symgrad.ir.evaluate import evaluate, resolve
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, describe
from symgrad.ops.loops.cond import branch
from symgrad.ops.loops.loop import loop
from symgrad.ops.loops.while_loop import sized, while_loop_p
from symgrad.passes.fuse import taken_apart

Kinds: TypeAlias = Callable[[Any], frozenset[str]]


def began_in(node: Node, operands: Sequence[Any], sizes: Mapping[str, int], kinds: Kinds) -> str:
    """Where in its bodies a node makes a fault first, in words; "" if unknown or in none.

    `kinds` are the faults of a value. What it runs is run again, node by node.
    """
    way = _way(node, operands, sizes, kinds)
    return f"; it began {', '.join(way)}" if way else ""


def _way(node: Node, operands: Sequence[Any], sizes: Mapping[str, int], kinds: Kinds) -> list[str]:
    """In which step of which loop within which, and with which node."""
    for when, body, given, known in _runs(node, operands, sizes):
        values = dict(zip(body.inputs, given, strict=True))
        for n in (n for n in body.nodes if n not in values):
            before = [values[x] for x in n.inputs]
            try:
                (values[n],) = evaluate([n], values, known)
            except KernelError:
                return []
            if kinds(values[n]) - frozenset[str]().union(*map(kinds, before)):
                return [when, *(_way(n, before, known, kinds) or [f"with {describe(n)}"])]
    return []


def _runs(
    node: Node, operands: Sequence[Any], sizes: Mapping[str, int]
) -> Iterator[tuple[str, Graph, Sequence[Any], Mapping[str, int]]]:
    """The bodies that a node runs, one after the other: when, of what, with which sizes."""
    attrs = resolve(dict(node.attrs), sizes)
    known = {**sizes, **dict(attrs.get("sizes", ()))}
    if node.op is loop.op:
        first, end = attrs["carries"], attrs["carries"] + attrs["sequences"]
        body, state, steps = _flat(attrs["body"]), operands[:first], range(attrs["length"])
        for t in reversed(steps) if attrs["reverse"] else steps:
            given = [*state, *(x[t] for x in operands[first:end]), *operands[end:]]
            yield f"in step {t}", body, given, known
            state = _run(Graph(body.outputs[:first], body.inputs), given, known)
    elif node.op is while_loop_p.op:
        test, body, t = _flat(attrs["test"]), _flat(attrs["step"]), 0
        state, fixed = operands[: len(body.outputs)], operands[len(body.outputs) :]
        while True:
            given = [*state, *fixed]
            yield f"in the test before step {t}", test, given, known
            if not _run(test, given, known)[0]:
                return
            yield f"in step {t}", body, given, known
            state, t = _run(body, given, known), t + 1
    elif node.op is branch.op:
        name = "true" if operands[0] else "false"
        yield f"in the branch for {name}", _flat(attrs[name]), operands[1:], known
    elif node.op is sized.op:
        count = int(operands[0])
        known[attrs["name"]] = count
        yield f"in {count} steps", _flat(attrs["graph"]), operands[1:], known


def _flat(body: Graph) -> Graph:
    """A body without groups, of which faults are told op by op."""
    return taken_apart(body, lambda group: True)


def _run(body: Graph, given: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
    return evaluate(body.outputs, dict(zip(body.inputs, given, strict=True)), sizes)
