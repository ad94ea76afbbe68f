"""Reverse mode: a walk over the reversed order that builds nodes and evaluates nothing.

A cotangent that is a selection by a mask stays one on its way back through elementwise ops and
views: whatever it is multiplied by, the selection is done last. Where that cannot be, its zeros are
selected anew before an op whose slope may be infinite. So a branch that was not taken contributes 0
even where its derivative is inf or NaN.

The gradient of a real loss L by a complex z = a + ib is dL/da + i dL/db, so that z - lr * g
descends; cotangents pair with tangents by Re(sum(conj(g) * t)). The walk carries their conjugates,
which pair by Re(sum(g * t)): for them the adjoint of an op with a complex derivative is its plain
transpose, as for real numbers, and no op has to remember to conjugate. An op without one
(`Op.holomorphic`) is given the cotangents themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from symgrad.ir.errors import GradientError
from symgrad.ir.node import Node, describe
from symgrad.ir.origin import Maker, built_as
from symgrad.ir.types import types_of
from symgrad.ir.walk import topological
from symgrad.ops.complexes import conj, conj_p, real
from symgrad.ops.flows import HALF, added, is_selection, still_selected, was_wider, widened, within
from symgrad.ops.identity import checkpointed, custom_p
from symgrad.ops.select import select
from symgrad.ops.shape import astype, broadcast_to, sum_to

UNTAKEN = Maker("rewrite", "untaken_branch_is_zero")


def pull_back(
    ys: Sequence[Node],
    seeds: Sequence[Node],
    xs: Sequence[Node],
    *,
    sparse: bool = False,
) -> dict[Node, Node]:
    """The cotangents of those of `xs` that cotangents of `ys`, the `seeds`, reach.

    `sparse` says that the seeds may have zeros, through which nothing is to flow.
    Raises `GradientError` for an op on the way that has no derivative.
    """
    walk = _Walk(ys, xs)
    for y, seed in zip(ys, seeds, strict=True):
        walk.add(y, conjugated(seed), sparse)
    return {x: conjugated(g) for x, g in walk.run().items()}


class _Walk:
    def __init__(self, ys: Sequence[Node], xs: Sequence[Node]) -> None:
        self.order = topological(ys)
        self.xs = xs
        self.depends = active_nodes(self.order, xs)
        self.flows: dict[Node, Any] = {}
        self.several: set[Node] = set()  # what has had two cotangents or more
        self.sparse: set[Node] = set()

    def run(self) -> dict[Node, Node]:
        for node in reversed(self.order):
            if node in self.flows and not self.depends.isdisjoint(node.inputs):
                self._step(node)
        return {x: self.flows[x] for x in self.xs if x in self.flows}

    def add(self, x: Node, g: Any, sparse: bool) -> None:
        """One more cotangent for a node; a `sparse` one has zeros through which nothing flows."""
        if sparse:
            self.sparse.add(x)
        if x not in self.flows:
            self.flows[x] = g
            return
        add = _sum_of_many if x in self.several and g.dtype == HALF else added
        self.flows[x] = add(self.flows[x], g)
        self.several.add(x)

    def _step(self, node: Node) -> None:
        """Pass the cotangent of a node on to its inputs."""
        flow = self.flows[node]
        origin = node.origin.then(Maker("vjp", node.op.name))
        if node.op.unbounded_slope and (node in self.sparse or is_selection(flow)):
            origin = origin.then(UNTAKEN)
            with built_as(origin):
                flow = nothing_through_zeros(flow)
        with built_as(origin):
            if node.op.of_several:
                self._add_item(node, flow)
                return
            for x, g in zip(node.inputs, self._cotangents(node, flow), strict=True):
                if g is not None and x in self.depends and is_differentiable(x):
                    # What runs graphs may not have read this operand in them.
                    sparse = node in self.sparse or g.op.zero_filled or bool(node.bodies)
                    self.add(x, _fitted(g, x), sparse)

    def _cotangents(self, node: Node, flow: Any) -> Sequence[Node | None]:
        op, attrs = node.op, dict(node.attrs)
        if op.vjp is None:
            raise GradientError(
                f"{op.name} has no gradient: {describe(node)}; "
                "take stop_gradient(...) of it if none is meant to flow"
            )
        if op.no_slope:
            varying = active_nodes(self.order, self.xs, through_steps=False)
            require_slopes(node, [x in varying for x in node.inputs])
        if not op.holomorphic:
            flow = conjugated(flow)
        if op.by_activity:
            attrs["active"] = tuple(x in self.depends for x in node.inputs)
        if op.data_movement and is_selection(flow):
            masks, values = (
                op.vjp(
                    x if x.shape == flow.shape else broadcast_to(x, flow.shape),
                    node,
                    *node.inputs,
                    **attrs,
                )
                for x in flow.inputs
            )
            pairs = zip(masks, values, strict=True)
            return [
                None if m is None or x is None else still_selected(flow, m, x) for m, x in pairs
            ]
        found = op.vjp(flow, node, *node.inputs, **attrs)
        return found if op.holomorphic else [conjugated(g) for g in found]

    def _add_item(self, node: Node, flow: Node) -> None:
        """The cotangent of an op with several results is a tuple, None where nothing flows."""
        source = node.inputs[0]
        if node in self.sparse:
            self.sparse.add(source)
        assert isinstance(source.type, tuple)
        parts = list(self.flows.get(source, (None,) * len(source.type)))
        index = node.attr("index")
        parts[index] = flow if parts[index] is None else added(parts[index], flow)
        self.flows[source] = tuple(parts)


def require_slopes(node: Node, active: Sequence[bool]) -> None:
    """Refuse the derivative of a node by an active operand by which none is known."""
    for i in node.op.no_slope:
        if active[i]:
            which = ("first", "second", "third")[i]
            raise GradientError(
                f"the derivative of {node.op.name} by its {which} operand is not known: "
                f"{describe(node)}; take stop_gradient(...) of it if none is meant to flow"
            )


def nothing_through_zeros(flow: Any) -> Any:
    """A flow as a selection of what is not 0 in it, so that no infinite slope meets a 0."""
    if not isinstance(flow, Node) or is_selection(flow):
        return flow
    return select(astype(flow, "bool"), flow)


def conjugated(flow: Any) -> Any:
    """A flow, or several, conjugated where they are complex; a selection stays one."""
    if isinstance(flow, tuple):
        return tuple(map(conjugated, flow))
    if not isinstance(flow, Node) or not flow.tensor.is_complex:
        return flow
    if flow.op is conj_p.op:
        return flow.inputs[0]
    return within(flow, conj)


def _sum_of_many(a: Node, b: Node) -> Node:
    """The sum of several cotangents of float16 and one more, added up in float32."""
    total = added(within(a, _unrounded), within(b, _unrounded))
    return within(total, lambda x: astype(x, a.dtype))


def _unrounded(x: Node) -> Node:
    """A float16 as the wider float that it was narrowed from, or else as a float32."""
    wide: Node = x.inputs[0] if was_wider(x) else widened(x)
    return wide


def _fitted(g: Node, x: Node) -> Node:
    """A cotangent brought to the type of what it belongs to: summed over what was broadcast.

    By what is real, only the real part counts.
    """
    if isinstance(x.type, tuple) or g.type == x.type:
        return g
    if g.tensor.is_complex and not x.tensor.is_complex:
        g = within(g, real)
    return astype(sum_to(g, x.shape), x.dtype)


def is_differentiable(x: Node) -> bool:
    """Whether a gradient can flow through values of this type: floats and complex numbers."""
    return any(t.dtype.kind in "fc" for t in types_of(x.type))


def sources(node: Node) -> tuple[Node, ...]:
    """The operands that a derivative of a node goes to: not those that are its very results."""
    count = node.attr("count") if node.op in (custom_p.op, checkpointed.op) else 0
    return node.value_inputs[count:]


def active_nodes(
    order: Iterable[Node], xs: Sequence[Node], *, through_steps: bool = True
) -> set[Node]:
    """The active nodes: those that a change of `xs` reaches through floats and complex numbers.

    Not `through_steps`, through ops that are piecewise constant, it is where a gradient flows.
    """
    depends = set(xs)
    for node in order:
        if (
            node not in depends
            and is_differentiable(node)
            and (through_steps or not node.op.piecewise_constant)
            and not depends.isdisjoint(sources(node))
        ):
            depends.add(node)
    return depends
