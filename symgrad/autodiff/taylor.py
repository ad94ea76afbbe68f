"""Taylor mode: derivatives of any order along a curve, by arithmetic of truncated power series.

The nodes that the curve moves have Taylor coefficients in its parameter t, made when they are asked
for. Those of a product are the convolution of its factors', those of a quotient and of an
exponential follow from a product. Of any other op the jvp tells: y' = jvp(u, y, u') is a graph,
whose coefficient of degree k - 1, which takes lower ones of y only, is k times the one of degree k
of y. In that graph u' is a leaf with a series of its own, so that sin and cos, say, end in each
other. A graph of n nodes takes O(n k^2) operations; only functions whose derivatives lead to ever
new functions, as those of Bessel do, take more. (A. Griewank and A. Walther, Evaluating
Derivatives, 2008, chapter 13; J. Bettencourt, M. J. Johnson and D. Duvenaud, Taylor-mode automatic
differentiation for higher-order derivatives in JAX, 2019.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import index
from typing import Any

from symgrad.autodiff.checks import (
    Disconnected,
    check_connected,
    check_outputs,
    check_wrt,
    seeds_of,
    several,
)
from symgrad.autodiff.forward import fitted, tangent_of
from symgrad.autodiff.locking import lockings, weighted
from symgrad.autodiff.normal import normal_form
from symgrad.autodiff.reverse import active_nodes, is_differentiable
from symgrad.ir.collector import without_collection
from symgrad.ir.errors import GradientError
from symgrad.ir.graph import is_input
from symgrad.ir.kinks import Kinks, Policy
from symgrad.ir.node import Node, apply
from symgrad.ir.origin import Maker, built_as
from symgrad.ir.walk import topological
from symgrad.ops.declare import explaining
from symgrad.ops.leaves import ones_like, placeholder, zeros_like
from symgrad.ops.series import convolved, scaled
from symgrad.rewrite.driver import rebuild


@explaining
def jet(
    outputs: Any,
    wrt: Any,
    order: int,
    *,
    series: Sequence[Any] | None = None,
    kinks: Policy = None,
    disconnected: Disconnected = "raise",
) -> Any:
    """Outputs and their derivatives up to an order, as `wrt` moves along a curve: Taylor mode.

    For each output a tuple of `order + 1` nodes of its shape and dtype, in the form of `outputs`:
    itself, its first derivative by the parameter of the curve, and so on. `series` gives the
    derivatives of the curve, the first, the second, ..., each in the form of `wrt`; what is left
    out is 0. By default every element of `wrt` moves by 1, so that a function of one variable, or
    one that works element by element, has its ordinary derivatives. It takes time that grows with
    the square of the order, where derivatives of derivatives would take exponentially many
    operations.

    Other arguments and errors are those of `jvp`; `GradientError` also for an order below 0, and
    for a series that is longer than it.

    >>> x = placeholder("x", 3)
    >>> [d.type for d in jet(sin(x), x, 2)]
    [float64[3], float64[3], float64[3]]
    """
    ys, xs = several(outputs, "outputs"), several(wrt, "wrt")
    check_wrt(xs.nodes, xs.paths)
    check_outputs(ys.nodes)
    try:
        order = index(order)
    except TypeError:
        raise GradientError(f"the order is a whole number, not {order!r}") from None
    if order < 0:
        raise GradientError(f"the order of a derivative is 0 or more, not {order}")
    if series is None:
        moves = [[ones_like(x) for x in xs.nodes]]
    else:
        moves = [seeds_of(xs, given, "tangent") for given in series]
        if not 0 < len(moves) <= max(order, 1):
            raise GradientError(
                f"series has {len(moves)} derivatives of the curve: give 1 to {max(order, 1)}, "
                "for the order asked for"
            )
    curves = [[move[i] for move in moves[:order]] for i in range(len(xs.nodes))]
    return ys.form(_derivatives(ys.nodes, xs.nodes, curves, order, kinks, disconnected))


def _derivatives(
    ys: list[Node],
    xs: list[Node],
    curves: Sequence[Sequence[Node]],
    order: int,
    kinks: Policy,
    disconnected: Disconnected,
) -> list[tuple[Node, ...]]:
    with without_collection():
        parts: list[tuple[float, dict[tuple[int, int], Node]]] = []
        for weight, form in lockings(normal_form(ys, xs), xs, Kinks.of(kinks)):
            moving = dict(zip(form.xs, curves, strict=True))
            found = Curve(form.ys, moving).coefficients(form.ys, order)
            places = [at for at, node in found.items() if node is not None]
            written = form.as_written([node for node in found.values() if node is not None])
            parts.append((weight, dict(zip(places, written, strict=True))))
        flows = {
            (i, k): weighted([(w, of.get((i, k))) for w, of in parts])
            for i in range(len(ys))
            for k in range(1, order + 1)
        }
    if order:
        for i, y in enumerate(ys):
            first = next((f for k in range(1, order + 1) if (f := flows[i, k]) is not None), None)
            check_connected([first] * len(xs), disconnected, [y], xs)
    return [
        (y, *(_derivative(y, flows[i, k], k) for k in range(1, order + 1)))
        for i, y in enumerate(ys)
    ]


def _derivative(y: Node, coefficient: Node | None, k: int) -> Node:
    if coefficient is None:
        return zeros_like(y)
    return coefficient if k == 1 else coefficient * float(math.factorial(k))


class Curve:
    """Nodes as some of them move along a curve, by their Taylor coefficients."""

    def __init__(self, ys: Iterable[Node], moving: Mapping[Node, Sequence[Node]]) -> None:
        """`moving` has the derivatives of the curve, the first and so on, of the nodes it moves."""
        self._order = topological(list(ys))
        active = active_nodes(self._order, list(moving))
        self._moves: dict[Node, bool] = {n: False for n in self._order if n not in active}
        self._found: dict[tuple[Node, int], Any] = {}
        self._leaves = frozenset(moving)
        for x, derivatives in moving.items():
            self._moves[x] = True
            self._found[x, 0] = x
            for k, derivative in enumerate(derivatives, 1):
                self._found[x, k] = scaled(derivative, 1 / math.factorial(k))
        self._rates: dict[Node, Node] = {}
        self._of_rate: dict[Node, Node] = {}
        self._flows: dict[Node, Any] = {}
        self._linear: dict[Node, bool] = {}
        # Nodes by what they are, so that what a jvp builds again has the series that it had.
        self._alike = {_key(n): n for n in self._order}
        self._known = set(self._order)

    def coefficients(self, ys: Sequence[Node], order: int) -> dict[tuple[int, int], Node | None]:
        """Those of some nodes by their place and degree, from 1 to an order."""
        for node in self._order:
            for k in range(order + 1):
                self.coefficient(node, k)
        return {
            (i, k): self.coefficient(y, k) for i, y in enumerate(ys) for k in range(1, order + 1)
        }

    def coefficient(self, node: Node, k: int) -> Any:
        """The one of degree k, or None for 0; of several results, a tuple."""
        key = (node, k)
        if key not in self._found:
            self._found[key] = self._at_start(node) if k == 0 else self._made(node, k)
        return self._found[key]

    def _at_start(self, node: Node) -> Node:
        """The node at the start of the curve: itself, but for what rates of change are in it."""
        moved = self._of_rate.get(node)
        if moved is not None:
            first: Node | None = self.coefficient(moved, 1)
            return zeros_like(node) if first is None else first
        return rebuild(node, tuple(self.coefficient(x, 0) for x in node.inputs))

    def _made(self, node: Node, k: int) -> Any:
        if not self.moves(node) or node in self._leaves:
            return None
        if node in self._of_rate:
            return scaled(self.coefficient(self._of_rate[node], k + 1), k + 1)
        op = node.op
        with built_as(node.origin.then(Maker("jvp", op.name))):
            if op.of_several:
                several = self.coefficient(node.inputs[0], k)
                return None if several is None else several[node.attr("index")]
            operands = [partial(self.coefficient, x) for x in node.inputs]
            if op.series is not None:
                return _fitted(op.series(k, partial(self.coefficient, node), *operands), node)
            if op.bilinear:
                return self._product(node, k)
            if self._is_linear(node):
                flows = [
                    o(k) if self.moves(x) else None
                    for o, x in zip(operands, node.inputs, strict=True)
                ]
                if all(f is None for f in flows):
                    return None
                start = self.coefficient(node, 0)
                return tangent_of(start, flows, tuple(map(self.moves, node.inputs)))
            flow = self._flow(node)
            if isinstance(flow, tuple):
                return tuple(self._integrated(f, k) for f in flow)
            return self._integrated(flow, k)

    def _integrated(self, flow: Node | None, k: int) -> Node | None:
        return None if flow is None else scaled(self.coefficient(flow, k - 1), 1 / k)

    def _product(self, node: Node, k: int) -> Node | None:
        attrs = dict(node.attrs)

        def product(p: Node, q: Node) -> Node:
            return apply(node.op, (p, q), attrs)

        a, b = (partial(self.coefficient, x) for x in node.inputs)
        if not (node.op.elementwise and node.inputs[0] is node.inputs[1]):
            return _fitted(convolved(product, a, b, k, range(k + 1)), node)
        twice = scaled(convolved(product, a, b, k, range((k + 1) // 2)), 2)
        middle = None if k % 2 else convolved(product, a, b, k, [k // 2])
        if twice is None or middle is None:
            return _fitted(middle if twice is None else twice, node)
        return _fitted(twice + middle, node)

    def moves(self, node: Node) -> bool:
        """Whether the curve moves a node: whether it has a coefficient of a degree above 0."""
        if node not in self._moves:
            self._moves[node] = True  # so that its own flow, which may read it, can be asked for
            self._moves[node] = self._is_moved(node)
        return self._moves[node]

    def _is_moved(self, node: Node) -> bool:
        if node in self._of_rate:
            return True
        if not is_differentiable(node) or not any(map(self.moves, node.inputs)):
            return False
        if node.op.of_several:
            flow = self._flow(node.inputs[0])
            return flow is not None and flow[node.attr("index")] is not None
        return node.op.bilinear or node.op.series is not None or self._flow(node) is not None

    def _rate(self, node: Node) -> Node:
        """A leaf that stands for the derivative of a node by the parameter of the curve."""
        if node not in self._rates:
            leaf = placeholder("rate", node.shape, node.dtype)
            self._rates[node], self._of_rate[leaf] = leaf, node
            self._known.add(leaf)
        return self._rates[node]

    def _flow(self, node: Node) -> Any:
        """The derivative of a node, made of itself, its operands and their rates."""
        if node not in self._flows:
            active = tuple(map(self.moves, node.inputs))
            rates = [self._rate(x) if a else None for x, a in zip(node.inputs, active, strict=True)]
            flow = tangent_of(node, rates, active)
            flows = flow if isinstance(flow, tuple) else (flow,)
            self._linear[node] = not any(self._varies_by_more(f) for f in flows if f is not None)
            shared = tuple(None if f is None else self._shared(f) for f in flows)
            self._flows[node] = shared if isinstance(flow, tuple) else shared[0]
        return self._flows[node]

    def _is_linear(self, node: Node) -> bool:
        """Whether the flow of a node varies with the rates of its operands alone."""
        self._flow(node)
        return self._linear[node]

    def _varies_by_more(self, flow: Node) -> bool:
        stack, seen = [flow], set()
        while stack:
            node = stack.pop()
            if node in seen or node in self._of_rate or not is_differentiable(node):
                continue
            seen.add(node)
            if node in self._known:
                if self.moves(node):
                    return True
                continue
            stack += node.inputs
        return False

    def _shared(self, node: Node) -> Node:
        """The node that is known already for what it is, or itself, known from now on."""
        if node in self._known:
            return node
        node = rebuild(node, tuple(map(self._shared, node.inputs)))
        known = self._alike.setdefault(_key(node), node)
        self._known.add(known)
        return known


def _key(node: Node) -> Any:
    return node if is_input(node) else (node.op, tuple(map(id, node.inputs)), node.attrs)


def _fitted(flow: Node | None, node: Node) -> Node | None:
    return None if flow is None else fitted(flow, node)
