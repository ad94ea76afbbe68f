"""Forward mode: a walk in the order of the graph that builds the tangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symgrad.autodiff.reverse import active_nodes, nothing_through_zeros, require_slopes, sources
from symgrad.ir.errors import GradientError
from symgrad.ir.node import Node, describe
from symgrad.ir.origin import Maker, built_as
from symgrad.ir.types import TensorType
from symgrad.ir.walk import topological
from symgrad.ops.shape import astype, broadcast_to


def push_forward(
    ys: Sequence[Node], xs: Sequence[Node], tangents: Sequence[Node | None]
) -> dict[Node, Node]:
    """The tangents of those of `ys` that the tangents of `xs`, of which None is 0, reach.

    Raises `GradientError` for an op on the way that has no derivative.
    """
    live = _reaching(ys)
    order = [n for n in topological(ys) if n in live]
    varies = active_nodes(order, xs)
    flows: dict[Node, Any] = {x: t for x, t in zip(xs, tangents, strict=True) if t is not None}
    for node in order:
        if node not in flows and any(x in flows for x in node.inputs):
            active = tuple(x in varies for x in node.inputs)
            flow = tangent_of(node, [flows.get(x) for x in node.inputs], active)
            if flow is not None:
                flows[node] = flow
    return {y: flows[y] for y in ys if y in flows}


def _reaching(ys: Sequence[Node]) -> set[Node]:
    """The nodes whose tangents make those of `ys`."""
    found = set(ys)
    stack = list(ys)
    while stack:
        fresh = [x for x in sources(stack.pop()) if x not in found]
        found.update(fresh)
        stack += fresh
    return found


def tangent_of(node: Node, tangents: list[Any], active: tuple[bool, ...]) -> Any:
    """The tangent of a node from those of its operands; of several results, one for each."""
    if node.op.of_several:
        flow = tangents[0][node.attr("index")]
        return None if flow is None else fitted(flow, node)
    if node.op.jvp is None:
        raise GradientError(
            f"{node.op.name} has no derivative: {describe(node)}; "
            "take stop_gradient(...) of it if none is meant to flow"
        )
    require_slopes(node, [t is not None for t in tangents])
    if node.op.unbounded_slope:
        tangents = [nothing_through_zeros(t) for t in tangents]
    attrs = dict(node.attrs)
    if node.op.by_activity:
        attrs["active"] = active
    with built_as(node.origin.then(Maker("jvp", node.op.name))):
        flow = node.op.jvp(tuple(tangents), node, *node.inputs, **attrs)
        if isinstance(flow, tuple):
            return flow
        return None if flow is None else fitted(flow, node)


def fitted(flow: Node, node: Node) -> Node:
    """A tangent brought to the type of its node, where an operand without one broadcast."""
    assert isinstance(node.type, TensorType)
    if flow.shape != node.shape:
        flow = broadcast_to(flow, node.shape)
    return astype(flow, node.dtype)
