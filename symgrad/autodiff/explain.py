"""Explaining gradients: along which paths one flows, and what stops it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from symgrad.autodiff.reverse import is_differentiable, sources
from symgrad.ir.node import Node, constant_value, describe
from symgrad.ir.walk import topological
from symgrad.ops.identity import stop_gradient

MOST_LINES = 200


class Explanation(NamedTuple):
    """The paths from a node to a loss, as a tree that prints.

    `flows` says whether any gradient reaches the node; `stops` are the nodes that stop one, each
    with why.
    """

    loss: Node
    wrt: Node
    flows: bool
    stops: tuple[tuple[Node, str], ...]
    lines: tuple[str, ...]

    def __str__(self) -> str:
        head = f"the gradient of {describe(self.loss)} by {describe(self.wrt)}:"
        if not self.lines:
            return f"{head}\n  there is no path: the loss does not depend on it"
        verdict = "a gradient flows" if self.flows else "no gradient flows"
        stopped = "".join(f"\n  stopped by {describe(n)}: {why}" for n, why in self.stops)
        return "\n".join([head, f"  {verdict}{stopped}", *self.lines])


def explain_grad(loss: Node, wrt: Node) -> Explanation:
    """Along which paths a gradient flows from a loss back to a node, and what stops it.

    The tree begins at the loss; each line is a node on a path to `wrt`, with its type, its line in
    the user's file and the rule that passes the gradient on. A part that was shown before is
    referred to.

    >>> x = placeholder("x", ())
    >>> explain_grad(floor(x) * x, x).flows
    True
    """
    reached = _reached([loss], wrt)
    stops = tuple((n, why) for n in reached if (why := why_stopped(n)) is not None)
    live = _live(loss, reached, blocked={n for n, _ in stops})
    lines = tuple(_tree(loss, wrt, reached)) if loss in set(reached) else ()
    return Explanation(loss, wrt, wrt in live, stops, lines)


def why_stopped(node: Node) -> str | None:
    """Why no gradient passes a node, or None if one does."""
    op = node.op
    if op is stop_gradient.op:
        return "stop_gradient says so"
    if not is_differentiable(node):
        kind = "the boolean" if _kind(node) == "b" else "the integer"
        if op.cast:
            return f"the cast to {_dtype(node)} is a step function, whose derivative is 0"
        return f"{kind} result of {op.name} changes in steps, so that its derivative is 0"
    if op.piecewise_constant:
        return f"{op.name} is piecewise constant: its derivative is 0"
    if op.vjp is None and node.inputs and not op.of_several:
        return f"{op.name} has no derivative"
    if op.selection and (mask := constant_value(node.inputs[0])) is not None:
        return None if mask.any() else "the mask is false everywhere"
    return None


def _kind(node: Node) -> str:
    return node.type[0].dtype.kind if isinstance(node.type, tuple) else node.type.dtype.kind


def _dtype(node: Node) -> str:
    return repr(node.type).partition("[")[0]


def _reached(ys: Sequence[Node], wrt: Node) -> list[Node]:
    """The nodes on a path from `wrt` to `ys`, in the order of the graph, `wrt` left out."""
    seen = {wrt}
    found = []
    for node in topological(ys):
        if node not in seen and any(x in seen for x in sources(node)):
            seen.add(node)
            found.append(node)
    live = set(ys)
    for node in reversed(found):
        if node in live:
            live.update(sources(node))
    return [n for n in found if n in live]


def _live(loss: Node, reached: list[Node], blocked: set[Node]) -> set[Node]:
    """The nodes that a gradient from the loss gets to."""
    live = {loss}
    for node in reversed(reached):
        if node in live and node not in blocked:
            live.update(sources(node))
    return live


def _tree(loss: Node, wrt: Node, reached: list[Node]) -> Iterator[str]:
    on_path = {*reached, wrt}
    shown: set[Node] = set()
    stack = [(loss, 1)]
    count = 0
    while stack:
        node, depth = stack.pop()
        count += 1
        indent = "  " * min(depth, 20)
        if count > MOST_LINES:
            yield f"{indent}… and more"
            return
        if node is wrt:
            yield f"{indent}→ {describe(node)}"
            continue
        why = why_stopped(node)
        again = " (shown above)" if node in shown else ""
        mark = f"✗ {why}" if why else f"by vjp({node.op.name})"
        yield f"{indent}{describe(node)}  {mark}{again}"
        if node not in shown:
            shown.add(node)
            stack += [(x, depth + 1) for x in reversed(sources(node)) if x in on_path]


def disconnected(ys: Sequence[Node], x: Node) -> str:
    """Why no gradient of any of `ys` reaches x, and what to write."""
    reached = _reached(ys, x)
    losses = ", ".join(map(describe, ys))
    mend = "If that is meant, pass disconnected='zero'."
    if not any(y in {*reached, x} for y in ys):
        return f"the gradient of {losses}: it does not depend on {describe(x)}. {mend}"
    stops = [(n, why) for n in reached if (why := why_stopped(n)) is not None]
    listed = "; ".join(f"{describe(n)} cuts the path: {why}" for n, why in stops[:4])
    listed = listed or "a custom backward returns None, or the derivative is 0 everywhere"
    return f"the gradient of {losses}: none flows to {describe(x)}; {listed}. {mend}"
