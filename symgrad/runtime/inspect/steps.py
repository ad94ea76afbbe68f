"""Loops step by step: in which step, and at which node of the body, a fault began."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symgrad.ir.errors import SymbolicError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, describe
from symgrad.ir.types import TensorType
from symgrad.passes.fuse import taken_apart


def began_in(node: Node, operands: Sequence[Any], kinds: Callable[[Any], frozenset[str]]) -> str:
    """The first step of a loop in which a node of its body makes a fault, in words; "" if unknown.

    `kinds` are the faults of a value. The loop is run again.
    """
    body = node.attr("body")
    assert isinstance(body, Graph)
    body = taken_apart(body, lambda group: True)
    first = node.attr("carries")
    end = first + node.attr("sequences")
    length = node.attr("length")
    if not isinstance(length, int):
        if end == first:
            return ""
        length = len(operands[first])
    nodes = [n for n in body.nodes if n.inputs and isinstance(n.type, TensorType)]
    states, steps = list(operands[:first]), range(length)
    for t in reversed(steps) if node.attr("reverse") else steps:
        given = [*states, *(x[t] for x in operands[first:end]), *operands[end:]]
        values = dict(zip(body.inputs, given, strict=True))
        before = frozenset[str]().union(*map(kinds, given))
        try:
            values |= dict(zip(nodes, evaluate(nodes, values), strict=True))
        except SymbolicError:  # a size that no operand tells
            return ""
        for n in nodes:
            if kinds(values[n]) - before:
                return f"; it began in step {t}, with {describe(n)}"
        states = evaluate(body.outputs[:first], values)
    return ""
