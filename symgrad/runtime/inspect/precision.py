"""Programs whose error is held to a limit: by the grade of rules, and by wider values inside."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from math import inf
from typing import Any

import numpy as np

from symgrad.ir.errors import GraphError, SymgradError
from symgrad.ir.graph import Graph, is_input, is_leaf
from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node, Variable, apply, describe
from symgrad.ir.origin import Maker, built_as
from symgrad.ir.types import TensorType
from symgrad.ops.leaves import constant
from symgrad.ops.ranges.inference import declared
from symgrad.ops.shape import astype_p
from symgrad.passes import Pass, PassLike
from symgrad.rewrite.rule import Exact
from symgrad.runtime.inspect.rounding import Cause, OutputError
from symgrad.runtime.program import Program

POINTS = 64
ROUNDS = 6
WIDE = np.dtype(np.float64)
WIDENED = Maker("rewrite", "widen")


def precise(
    build: Callable[..., Program],
    passes: Sequence[PassLike],
    graph: Graph,
    exact: Exact,
    limit: Any,
) -> Program:
    """The first program that keeps to the limit at all points that are tried; see `compile`.

    `build` compiles the graph, given `exact` and `passes`. Raises `GraphError` if none is found,
    and names the line that rounding does most harm to.
    """
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit < inf:
        raise GraphError(f"error is a positive number such as 1e-6, not {limit!r}")
    points = list(_points(graph))
    widened: set[Node] = set()
    least, worst = inf, None
    grades = [grade for grade in sorted(Exact, reverse=True) if grade <= exact]
    for number in range(ROUNDS):
        for grade in grades if not number else grades[:1]:
            first = [_widening(frozenset(widened))] if widened else []
            program = build(exact=grade, passes=(*first, *passes))
            found, cause = _largest(program, points)
            if found <= limit:
                return program
            if found < least:
                least, worst = found, cause
        more = _after(graph, worst)
        if more <= widened:
            more = set(graph.nodes)
        if more <= widened:
            break
        widened |= more
    at = "" if worst is None else f"; {worst.node.op.name} moves it most, {worst.node.origin}"
    advice = "write that line so that it does not cancel"
    for y in filter(_is_narrow, graph.outputs):
        if limit < np.finfo(y.dtype).eps / 2:
            advice = f"results of {y.dtype} are rounded by more than that, make them {WIDE}"
    raise GraphError(
        f"no program was found whose error is at most {limit:g}: the least is {least:.2g} of the "
        f"largest element{at}: {advice}, or allow a larger error"
    )


def _points(graph: Graph) -> Iterator[dict[str, np.ndarray]]:
    """Arrays within what placeholders were declared to lie within: ends, and between them."""
    rng = np.random.default_rng(0)
    fed = [x for x in graph.inputs if not isinstance(x, Variable)]
    for x in fed:
        found = declared(x)
        if x.dtype.kind in "fiu" and (found is None or not found.finite):
            raise GraphError(
                f"{describe(x)}: which numbers it is fed decides how large an error is; declare "
                f"it: sg.placeholder({x.name!r}, ..., within=(low, high))"
            )
    for number in range(POINTS):
        point = {}
        for x in fed:
            shape = tuple(n if isinstance(n, int) else 4 for n in x.shape)
            point[str(x.name)] = np.asarray(_drawn(rng, x, shape, number)).astype(x.dtype)
        yield point


def _drawn(rng: np.random.Generator, x: Node, shape: tuple[int, ...], number: int) -> np.ndarray:
    found = declared(x)
    if found is None:
        return rng.random(shape) < 0.5
    low, high, _ = found
    if x.dtype.kind in "iu":
        return rng.integers(int(np.ceil(low)), int(np.floor(high)), shape, endpoint=True)
    if number == 0:
        return rng.choice([low, high], shape)
    if number % 2:
        return rng.uniform(low, high, shape)
    # Of all sizes, away from an end or from 0.
    away = (high - low) * 2.0 ** -rng.uniform(0, 24, shape)
    near = [low + away, high - away]
    if low < 0 < high:
        near.append(away * rng.choice([-1, 1], shape))
    return np.clip(near[number // 2 % len(near)], low, high)


def _largest(
    program: Program, points: Sequence[dict[str, np.ndarray]]
) -> tuple[float, Cause | None]:
    """The largest error of a program, of the largest element of its output, and its cause."""
    largest, cause = 0.0, None
    for point in points:
        for y in program.error(**point, bound=True).outputs:
            found = _relative(y)
            if found > largest:
                largest, cause = found, y.causes[0] if y.causes else None
    return largest, cause


def _relative(y: OutputError) -> float:
    """The bound of an error, if one is known, else its estimate, of the largest element."""
    error = y.estimate if y.bound is None or y.bound == inf else y.bound
    return error / y.largest if y.largest else (inf if y.estimate else 0.0)


def _after(graph: Graph, cause: Cause | None) -> set[Node]:
    """A node and all that is made of it."""
    found = set() if cause is None else {cause.node}
    for node in graph.nodes:
        if any(x in found for x in node.inputs):
            found.add(node)
    return found


def _widening(widened: Collection[Node]) -> Pass:
    """The pass that computes some nodes in float64; what others read of them is rounded."""
    return Pass(
        WIDENED.name,
        "first: the error that was asked for is met with these values in float64",
        lambda graph, exact, trace: _wide_graph(graph, widened),
    )


def _wide_graph(graph: Graph, widened: Collection[Node]) -> Graph:
    narrow: dict[Node, Node] = {}
    wide: dict[Node, Node] = {}

    def as_wide(x: Node) -> Node:
        if x not in wide:
            value = x.attr("value").array if x.op is CONSTANT else None
            at = narrow[x]
            with built_as(x.origin.then(WIDENED)):
                wide[x] = constant(value.astype(WIDE)) if value is not None else astype_p(at, WIDE)
        return wide[x]

    def as_narrow(x: Node) -> Node:
        if x not in narrow:
            with built_as(x.origin.then(WIDENED)):
                narrow[x] = astype_p(wide[x], x.dtype)
        return narrow[x]

    for node in graph.nodes:
        made = None
        if node in widened and _is_narrow(node) and not is_leaf(node):
            operands = [as_wide(x) if _is_narrow(x) else as_narrow(x) for x in node.inputs]
            made = operands[0] if node.op.cast else _applied(node, operands)
        if made is not None:
            wide[node] = made
        elif is_input(node) or not node.inputs:
            narrow[node] = node
        else:
            inputs = tuple(map(as_narrow, node.inputs))
            narrow[node] = Node(node.op, inputs, node.attrs, node.type, node.origin)
    return Graph(map(as_narrow, graph.outputs), graph.inputs)


def _is_narrow(node: Node) -> bool:
    return (
        isinstance(node.type, TensorType)
        and node.dtype.kind == "f"
        and node.dtype.itemsize < WIDE.itemsize
    )


def _applied(node: Node, operands: Sequence[Node]) -> Node | None:
    """A node on wider operands; None if its op gives no wider result."""
    try:
        made = apply(node.op, operands, dict(node.attrs))
    except SymgradError:
        return None
    same = isinstance(made.type, TensorType) and made.shape == node.shape and made.dtype == WIDE
    return Node(made.op, made.inputs, made.attrs, made.type, node.origin) if same else None
