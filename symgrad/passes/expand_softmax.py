"""Expansion of softmax: those of its family that read one operand are taken apart, to share parts.

Each is a kernel of its own, which is best as long as it is alone. Where a loss takes `log_softmax`
and its gradient `softmax`, both need the distances from the largest element and their exponentials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.op import Op
from symgrad.ops.activations import log_softmax, logsumexp, softmax
from symgrad.ops.elementwise import exp, log
from symgrad.ops.logic import equal, isfinite
from symgrad.ops.reduce import max, sum
from symgrad.ops.select import where
from symgrad.ops.shape import squeeze
from symgrad.passes.cse import common_subexpressions
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.rule import Exact, rule_for
from symgrad.rewrite.trace import Trace
from symgrad.rules.softmax import are_known

Key: TypeAlias = tuple[Node, tuple[int, ...]]


def _parts(x: Node, axis: tuple[int, ...]) -> tuple[Node, Node, Node, Node]:
    """The largest element, the distances from it, their exponentials and the sum of these.

    The sum is 1 where the largest is inf, so that what is finite there is right.
    """
    top = max(x, axis=axis, keepdims=True)
    away = x - top
    raised = exp(away)
    total = sum(raised, axis=axis, keepdims=True)
    return top, away, raised, where(equal(top, np.inf), 1, total)


def _softmax(x: Node, axis: tuple[int, ...]) -> Node:
    _, _, raised, total = _parts(x, axis)
    y: Node = raised / total
    return y


def _log_softmax(x: Node, axis: tuple[int, ...]) -> Node:
    _, away, _, total = _parts(x, axis)
    y: Node = away - log(total)
    return y


def _logsumexp(x: Node, axis: tuple[int, ...], keepdims: bool) -> Node:
    top, _, _, total = _parts(x, axis)
    y = where(isfinite(top), log(total) + top, top)
    return y if keepdims else squeeze(y, axis=axis)


FAMILY: Mapping[Op, Callable[..., Node]] = {
    softmax(0.0, axis=None).op: _softmax,
    log_softmax(0.0, axis=None).op: _log_softmax,
    logsumexp(0.0).op: _logsumexp,
}


def expand_softmax(graph: Graph, exact: Exact, trace: Trace) -> Graph:
    """The graph with members of the family that read one operand expanded, their parts merged."""
    if exact < Exact.ROUNDING:
        return graph
    members: dict[Key, set[Any]] = {}
    for node in graph.nodes:
        key = _key(node)
        if key is not None:
            members.setdefault(key, set()).add((node.op, node.attrs))
    shared = {key for key, found in members.items() if len(found) > 1}
    if not shared:
        return graph

    @rule_for(lambda op: op in FAMILY, exact=Exact.ROUNDING)
    def shares_parts(node: Node) -> Node | None:
        """Another function of the family reads the same operand: exponentials are taken once."""
        key = _key(node)
        return FAMILY[node.op](*node.inputs, **dict(node.attrs)) if key in shared else None

    return common_subexpressions(
        rewrite(graph, [shares_parts], trace, "expand_softmax"), exact, trace
    )


def _key(node: Node) -> Key | None:
    """The operand and the axes of a member of the family; None if nothing of it can be shared."""
    if node.op not in FAMILY:
        return None
    (x,), axis = node.inputs, dict(node.attrs)["axis"]
    wide = x.dtype.itemsize > 2  # of float16 the kernels sum in float32, which is no part to share
    return (x, axis) if wide and are_known(x, axis) else None
