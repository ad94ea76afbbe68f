"""Explaining gradients: along which paths one flows, and what stops it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import NamedTuple

from symgrad.autodiff.reverse import is_differentiable, sources
from symgrad.ir.graph import is_input, is_leaf
from symgrad.ir.node import Node, constant_value, describe
from symgrad.ir.walk import GraphLike, topological
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
    referred to. Below a loop or a choice stands what its body does: for each carry and each result
    the paths to the carries of the step before, and to what it reads.

    >>> x = placeholder("x", ())
    >>> explain_grad(floor(x) * x, x).flows
    True
    """
    reached = _reached([loss], {wrt})
    stops = tuple(_stops(reached, {wrt}))
    live = _live([loss], reached)
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


def _reached(ys: Sequence[Node], begin: Set[Node]) -> list[Node]:
    """The nodes on a path from some nodes to `ys`, in the order of the graph, these left out."""
    seen = {*begin}
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


def _live(ys: Iterable[Node], reached: Sequence[Node]) -> set[Node]:
    """The nodes that a gradient from `ys` gets to, by way of those that are `reached`."""
    live = set(ys)
    wanted: dict[Node, set[int]] = {}
    for node in reversed(reached):
        if node not in live or why_stopped(node) is not None:
            continue
        if node.op.of_several:
            wanted.setdefault(node.inputs[0], set()).add(node.attr("index"))
        runs = runs_of(node)
        live.update(x for run in runs for x in run.live(wanted.get(node, set())))
        live.update(() if runs else sources(node))
    return live


def _stops(reached: Sequence[Node], begin: Set[Node]) -> Iterator[tuple[Node, str]]:
    """The nodes that stop a gradient, those in bodies too, each with why."""
    on_path = {*reached, *begin}
    for node in reached:
        if (why := why_stopped(node)) is not None:
            yield node, why
        for run in runs_of(node):
            given = run.given(on_path)
            yield from _stops(_reached(run.ends(reached, node), given), given)


class Run(NamedTuple):
    """A graph that a loop or a choice runs, as a gradient passes through it.

    The first inputs are `carries`; `operands` are what all are given; `first` is the number of the
    result that the first output is.
    """

    graph: GraphLike
    operands: tuple[Node, ...]
    carries: int
    first: int
    title: str

    def given(self, on_path: Set[Node]) -> set[Node]:
        """The inputs that depend on what is on a path, at first or after some steps."""
        pairs = zip(self.graph.inputs, self.operands, strict=True)
        found = {p for p, x in pairs if x in on_path}
        states, nexts = self.graph.inputs[: self.carries], self.graph.outputs
        while True:
            depend = {*found, *_reached(nexts, found)}
            more = {s for s, y in zip(states, nexts, strict=False) if y in depend}
            if more <= found:
                return found
            found |= more

    def ends(self, reached: Iterable[Node], node: Node) -> list[Node]:
        """The outputs on which the results of a node depend that are read, in however many steps.

        Those of the body, of which the first ones are the next carries.
        """
        read = {n.attr("index") for n in reached if n.op.of_several and n.inputs[0] is node}
        return self._outputs(read, lambda ys: {*topological(ys)})[0]

    def live(self, results: Collection[int]) -> Iterator[Node]:
        """The operands that a gradient of some results gets to, in however many steps."""
        inputs = self.graph.inputs
        ys, found = self._outputs(results, lambda ys: _live(ys, _reached(ys, {*inputs})))
        carried = zip(inputs[: self.carries], self.graph.outputs, strict=False)
        begins = {s for s, y in carried if y in {*ys}}
        return (x for p, x in zip(inputs, self.operands, strict=True) if p in {*found, *begins})

    def _outputs(
        self, results: Collection[int], below: Callable[[list[Node]], set[Node]]
    ) -> tuple[list[Node], set[Node]]:
        """The outputs for some results, and for carries that are among what is below them."""
        wanted = {i - self.first for i in results}
        while True:
            ys = [y for i, y in enumerate(self.graph.outputs) if i in wanted]
            found = below(ys)
            more = {i for i, s in enumerate(self.graph.inputs[: self.carries]) if s in found}
            if more <= wanted:
                return ys, found
            wanted |= more


def runs_of(node: Node) -> list[Run]:
    """The graphs that a loop or a choice runs; none of another node."""
    op, inputs = node.op, node.inputs
    if op.body:
        return [Run(node.attr(op.body), inputs, node.attr("carries"), 0, "in each step")]
    match op.graphs:
        case ("test", "step"):
            step = node.attr("step")
            return [Run(step, inputs, len(step.outputs), 1, "in each step")]
        case ("true", "false"):
            sides = ((s, node.attr(s)) for s in op.graphs)
            return [Run(graph, inputs[1:], 0, 0, f"if {name}") for name, graph in sides]
        case ("graph",):
            return [Run(node.attr("graph"), inputs[1:], 0, 0, "within")]
    return []


def _tree(loss: Node, wrt: Node, reached: list[Node]) -> Iterator[str]:
    lines = _branches(loss, {wrt}, reached, {}, 1)
    yield from islice(lines, MOST_LINES)
    if next(lines, None) is not None:
        yield "  … and more"


def _branches(
    loss: Node, ends: Set[Node], reached: list[Node], called: Mapping[Node, str], deep: int
) -> Iterator[str]:
    """The tree of paths from a node to some ends, some of which are called otherwise."""
    on_path = {*reached, *ends}
    shown: set[Node] = set()
    stack = [(loss, deep)]
    while stack:
        node, depth = stack.pop()
        indent = "  " * min(depth, 20)
        if node in ends:
            yield f"{indent}→ {called.get(node) or describe(node)}"
            continue
        why = why_stopped(node)
        again = " (shown above)" if node in shown else ""
        mark = f"✗ {why}" if why else f"by vjp({node.op.name})"
        yield f"{indent}{describe(node)}  {mark}{again}"
        if node not in shown:
            shown.add(node)
            for run in runs_of(node) if why is None else ():
                yield from _within(run, run.ends(reached, node), on_path, depth + 1)
            stack += [(x, depth + 1) for x in reversed(sources(node)) if x in on_path]


def _within(run: Run, ends: Sequence[Node], on_path: Set[Node], depth: int) -> Iterator[str]:
    """The paths through a body: from each output that is among its ends to what it was given."""
    given = run.given(on_path)
    called = {p: f"carry {i}" for i, p in enumerate(run.graph.inputs[: run.carries])}
    rest = zip(run.graph.inputs[run.carries :], run.operands[run.carries :], strict=True)
    called |= {p: describe(x) for p, x in rest}
    indent = "  " * min(depth, 20)
    for i, y in enumerate(run.graph.outputs):
        reached = _reached([y], given)
        if y in {*ends} and y in {*reached, *given}:
            result = f"carry {i}" if i < run.carries else f"result {i - run.carries}"
            yield f"{indent}{run.title}, {result}:"
            yield from _branches(y, given, reached, called, depth + 1)


def _newly(x: Node) -> str:
    """The mend, if x was made of something else for the call of `grad`."""
    sources = [n for n in topological([x]) if is_input(n)]
    if is_leaf(x) or not sources:
        return ""
    listed = ", ".join(repr(n.name) for n in sources[:4])
    return (
        f", which is a new node each time it is written: take the gradient by {listed}, and then "
        "the part, sg.grad(loss, x)[0]; or name the part before the loss is made of it: "
        "part = x[0]"
    )


def disconnected(ys: Sequence[Node], x: Node) -> str:
    """Why no gradient of any of `ys` reaches x, and what to write."""
    reached = _reached(ys, {x})
    losses = ", ".join(map(describe, ys))
    mend = "If that is meant, pass disconnected='zero'."
    if not any(y in {*reached, x} for y in ys):
        return f"the gradient of {losses}: it does not depend on {describe(x)}{_newly(x)}. {mend}"
    stops = list(_stops(reached, {x}))
    listed = "; ".join(f"{describe(n)} cuts the path: {why}" for n, why in stops[:4])
    listed = listed or "a custom backward returns None, or the derivative is 0 everywhere"
    return f"the gradient of {losses}: none flows to {describe(x)}; {listed}. {mend}"
