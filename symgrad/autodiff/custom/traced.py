"""How a function whose bodies are made of nodes is built into a graph and differentiated.

The bodies are run on stand-ins for the arguments, and what they build is copied over the arguments
themselves. In a backward body a cotangent times a 0/1 mask is a selection, as in every backward
graph, and what a selection is multiplied by is multiplied within it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from symgrad.autodiff.batching import batched
from symgrad.autodiff.custom.call import CustomCall, Tensor
from symgrad.autodiff.reverse import is_differentiable, pull_back, sources
from symgrad.ir.dims import Size
from symgrad.ir.graph import is_input
from symgrad.ir.node import Node, apply, as_node, constant_value, describe
from symgrad.ir.op import Cotangent
from symgrad.ir.origin import Maker, built_as, scope
from symgrad.ir.walk import topological
from symgrad.ops.batch import batch_size, of_all
from symgrad.ops.elementwise import divide, multiply, negative
from symgrad.ops.flows import is_selection, within
from symgrad.ops.identity import CustomRule, custom, results_of
from symgrad.ops.leaves import placeholder, zeros_like
from symgrad.ops.select import select


def trace(call: CustomCall) -> Any:
    """The results of forward over the operands, which know how they are differentiated."""
    ctx = call.ctx
    ctx.needs_input_grad = call.needs_grad
    # Stand-ins, so that no body takes the present value of a variable for a constant.
    standins = [
        x if constant_value(x) is not None else placeholder(name, x.shape, x.dtype)
        for name, x in zip(call.names(), call.operands, strict=True)
    ]
    with scope(call.name):
        found, several = call.results(call.run(ctx, "forward", *call.filled(standins)))
    results = [as_node(y) for y in found]
    _refuse_outer(call, results, standins)
    known = {*results, *standins}
    kept = dict.fromkeys(n for n in _nodes_on(ctx) if n not in known)
    rule = Traced(call, (*results, *standins, *kept))
    actual = replaced(rule.template, dict(zip(standins, call.operands, strict=True)))
    with built_as(call.origin):
        made = results_of(custom(actual[: len(results)], actual[len(results) :], rule))
    return tuple(made) if several else made[0]


def _refuse_outer(call: CustomCall, results: Sequence[Node], standins: Sequence[Node]) -> None:
    """A result may depend on floats that are arguments only: no gradient would reach others."""
    seen = set(standins)
    stack = list(results)
    while stack:
        node = stack.pop()
        if node in seen or not is_differentiable(node) or node.op.piecewise_constant:
            continue
        seen.add(node)
        stack += sources(node)
        if is_input(node):
            raise call.error(
                "forward",
                f"it uses {describe(node)}, which is no argument, so that no gradient would reach "
                "it; give it as an argument, or take stop_gradient of it",
            )


def _nodes_on(ctx: Any) -> Iterator[Node]:
    """The nodes that a context has kept, saved or as attributes."""
    for value in vars(ctx).values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, Node) and item.inputs:
                yield item


class PerElement(CustomRule):
    """A rule that on a batch does the same for each element."""

    def batch(self, inputs: Sequence[Node], flags: Sequence[bool], y: Node) -> Node:
        """The custom node for a batch, differentiated by this rule element for element."""
        many, count = of_all(inputs, flags), len(results_of(y))
        return custom(many[:count], many[count:], Batched(self, y, batch_size(inputs, flags)))


@dataclass(frozen=True, eq=False)
class Traced(PerElement):
    """The rule of a function of nodes; see `CustomRule`.

    `template` is what forward built on the stand-ins: its results, the stand-ins, what it kept.
    """

    call: CustomCall
    template: tuple[Node, ...]

    def __repr__(self) -> str:
        return repr(self.call.name)

    def vjp(self, flows: tuple[Cotangent, ...], y: Node) -> Sequence[Cotangent]:
        """The body of backward, on cotangents."""
        ys = results_of(y)
        with built_as(y.origin.then(Maker("vjp", self.call.name))):
            seeds, grads = self._backward(len(ys))
            given = [zeros_like(r) if f is None else f for f, r in zip(flows, ys, strict=True)]
            becomes = self._actual(y) | dict(zip(seeds, given, strict=True))
            found = _where_any(grads, lambda some: replaced(some, becomes, seeds))
        return found + [None] * (len(y.inputs) - len(ys) - len(grads))

    def jvp(self, tangents: tuple[Cotangent, ...], y: Node) -> Sequence[Cotangent]:
        """The body of `jvp`, or the transpose of backward, which is linear."""
        ys = results_of(y)
        given = tangents[len(ys) : len(ys) + len(self.call.operands)]
        with built_as(y.origin.then(Maker("jvp", self.call.name))):
            if hasattr(self.call.ctx, "jvp"):
                return self._own_jvp(given, y)
            seeds, grads = self._backward(len(ys))
            rows = _where_any(grads, lambda some: replaced(some, self._actual(y), seeds))
            pairs = [
                (g, t) for g, t in zip(rows, given, strict=True) if g is not None and t is not None
            ]
            flows = pull_back([g for g, _ in pairs], [t for _, t in pairs], seeds)
            if not {*seeds}.isdisjoint(topological(flows.values())):
                raise self.call.error(
                    "backward",
                    "forward mode is its transpose, and it is not linear in the cotangent; "
                    "define jvp(ctx, *tangents)",
                )
            return [flows.get(s) for s in seeds]

    def _actual(self, y: Node) -> dict[Node, Node]:
        """The nodes that replace those of the template; for a result, the one that others read."""
        ys = results_of(y)
        return dict(zip(self.template, (*ys, *y.inputs[len(ys) :]), strict=True))

    def _backward(self, count: int) -> tuple[list[Node], list[Cotangent]]:
        """Stand-ins for the cotangents, and the gradients that backward builds of them."""
        call = self.call
        seeds = [placeholder("grad_output", t.shape, t.dtype) for t in self.template[:count]]
        found = call.gradients(call.run(copy(call.ctx), "backward", *seeds))
        return seeds, [
            None if g is None else call.fitted("backward", g, x.tensor, f"the gradient of {name!r}")
            for g, x, name in zip(found, call.operands, call.names(), strict=True)
        ]

    def _own_jvp(self, tangents: Sequence[Cotangent], y: Node) -> Sequence[Cotangent]:
        call, ys = self.call, results_of(y)
        seeds: list[Node | None] = []
        becomes = self._actual(y)
        for x, t in zip(call.operands, tangents, strict=True):
            seeds.append(placeholder("tangent", x.shape, x.dtype) if x.tensor.is_inexact else None)
            if (seed := seeds[-1]) is not None:
                becomes[seed] = zeros_like(x) if t is None else t
        given = [seeds[a.number] if isinstance(a, Tensor) else None for a in call.args]
        made = call.run(copy(call.ctx), "jvp", *given)
        several = list(made) if isinstance(made, (tuple, list)) else [made]
        if len(several) != len(ys):
            raise call.error("jvp", f"it returned {len(several)} tangents for {len(ys)} results")
        rows = [
            None if t is None else call.fitted("jvp", t, r.tensor, f"the tangent of result {i}")
            for i, (t, r) in enumerate(zip(several, ys, strict=True), 1)
        ]
        flows = [s for s in seeds if s is not None]
        return _where_any(rows, lambda some: replaced(some, becomes, flows))


def _where_any(
    nodes: Sequence[Node | None], of_some: Callable[[list[Node]], Iterable[Node]]
) -> list[Node | None]:
    """A function of a list of nodes, done for those that there are."""
    found = iter(of_some([n for n in nodes if n is not None]))
    return [None if n is None else next(found) for n in nodes]


# ---- copying --------------------------------------------------------------------------------


def replaced(
    ys: Sequence[Node],
    becomes: Mapping[Node, Node],
    flows: Iterable[Node] = (),
    maker: Maker | None = None,
) -> list[Node]:
    """`ys` with other nodes of the same types in the places of some; the rest is shared.

    `flows` are cotangents: a product of what depends on them with a 0/1 mask is a selection.
    `maker` is noted in the origins of the copies.
    """
    done = dict(becomes)
    carried = set(flows)
    for node in topological(ys, known=done):
        inputs = tuple(done.get(x, x) for x in node.inputs)
        places = [i for i, x in enumerate(node.inputs) if x in carried]
        if places:
            carried.add(node)
            selected = _selection(node, inputs, places)
            if selected is not None:
                done[node] = selected
                continue
        if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
            origin = node.origin.then(maker) if maker else node.origin
            done[node] = Node(node.op, inputs, node.attrs, node.type, origin)
    return [done.get(y, y) for y in ys]


# What is linear in its first operand; the one that is commutative, in its second, too.
_FACTORS = (multiply.op, divide.op, negative.op)


def _selection(node: Node, inputs: Sequence[Node], places: Sequence[int]) -> Node | None:
    """A product of a cotangent with a mask, or of a selected cotangent, as a selection."""
    i = places[0]
    if node.op not in _FACTORS or len(places) > 1 or (i and node.op is divide.op):
        return None
    if node.op is multiply.op and (mask := _mask(inputs[1 - i])) is not None:
        return select(mask, inputs[i])
    if not is_selection(inputs[i]):
        return None
    return within(inputs[i], lambda flow: apply(node.op, (*inputs[:i], flow, *inputs[i + 1 :])))


def _mask(factor: Node) -> Node | None:
    """The boolean node of which a factor is the 0/1 form, maybe seen through views."""
    views = []
    while factor.op.view:
        views.append(factor)
        factor = factor.inputs[0]
    if not factor.op.cast or factor.inputs[0].dtype.kind != "b":
        return None
    mask = factor.inputs[0]
    for view in reversed(views):
        mask = apply(view.op, [mask], dict(view.attrs))
    return mask


# ---- on a batch -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Batched(PerElement):
    """The rule of a custom node on a batch: that of the node `one`, done for all at once."""

    rule: CustomRule
    one: Node
    size: Size

    def __repr__(self) -> str:
        return repr(self.rule)

    def vjp(self, flows: tuple[Cotangent, ...], y: Node) -> Sequence[Cotangent]:
        """The cotangents of one element, for all."""
        return self._of_all(self.rule.vjp, flows, results_of(self.one), y)

    def jvp(self, tangents: tuple[Cotangent, ...], y: Node) -> Sequence[Cotangent]:
        """The tangents of one element, for all."""
        return self._of_all(self.rule.jvp, tangents, self.one.inputs, y)

    def _of_all(
        self,
        derive: Callable[..., Sequence[Cotangent]],
        flows: Sequence[Cotangent],
        like: Sequence[Node],
        y: Node,
    ) -> Sequence[Cotangent]:
        single = [placeholder(describe(x), x.shape, x.dtype) for x in self.one.inputs]
        one = Node(self.one.op, tuple(single), self.one.attrs, self.one.type, self.one.origin)
        given = dict(zip(single, y.inputs, strict=True)) | {one: y}
        seeds: list[Node | None] = []
        for f, x in zip(flows, like, strict=True):
            seeds.append(None if f is None else placeholder("flow", x.shape, x.dtype))
            if (seed := seeds[-1]) is not None and f is not None:
                given[seed] = f
        found = derive(tuple(seeds), one)
        return _where_any(found, lambda some: batched(some, given, self.size))
