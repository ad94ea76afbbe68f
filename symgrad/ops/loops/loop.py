"""The loop: a graph that runs once for each step, with values carried from one to the next.

The body's inputs are the carries, a slice of each sequence, and what every step reads whole; its
outputs are the next carries, and what is stacked, a slice a step:

    carries = init
    for t in range(length):                    # or from the last to the first
        carries, stacks[t] = body(carries, sequences[t], fixed)

How it is differentiated and batched is told on a higher floor, in `autodiff/loops.py`: the body is
a graph, and its derivative is one, so that the derivative of a loop is a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any

import numpy as np

from symgrad.ir.dims import Dim, Size
from symgrad.ir.errors import GraphError, ShapeError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.graph import Graph
from symgrad.ir.late import SLOTS
from symgrad.ir.leaf_ops import PLACEHOLDER
from symgrad.ir.node import Node
from symgrad.ir.types import TensorType, Type, types_of
from symgrad.ir.walk import GraphLike, topological
from symgrad.ops.declare import op

Sizes = tuple[tuple[str, int | Dim], ...]
DEEPEST = 8


def _infer(
    *types: TensorType,
    body: Graph,
    carries: int,
    sequences: int,
    length: int | Dim,
    reverse: bool,
    sizes: tuple[tuple[str, int | Dim], ...],
) -> Type:
    given, made = body_types(body, sizes)
    if carries < 0 or sequences < 0 or carries + sequences > len(body.inputs):
        raise GraphError(
            f"the body's {len(body.inputs)} inputs are no {carries} carries and "
            f"{sequences} slices of sequences"
        )
    if isinstance(length, int) and length < 0:
        raise ShapeError(f"a loop has 0 steps or more, not {length}")
    if given[:carries] != made[:carries]:
        raise ShapeError(f"carries {given[:carries]} become {made[:carries]} in a step")
    steps = slice(carries, carries + sequences)
    given[steps] = [t.with_shape((length, *t.shape)) for t in given[steps]]
    if list(types) != given:
        raise ShapeError(f"the loop takes {given}, not {list(types)}")
    return (*made[:carries], *(t.with_shape((length, *t.shape)) for t in made[carries:]))


def body_types(body: Graph, sizes: Sizes) -> tuple[list[TensorType], list[TensorType]]:
    """The types of what a body is given and of what it gives, with the sizes that are known.

    Raises `GraphError` for what is no body.
    """
    if any(x.op is not PLACEHOLDER for x in body.inputs) or not body.outputs:
        raise GraphError("the body has placeholders for inputs, and an output or more")
    if depth(body) > DEEPEST:
        raise GraphError(f"loops are nested at most {DEEPEST} deep")
    if any(isinstance(y.type, tuple) for y in body.outputs):
        raise GraphError("an output of the body is one result, not several")
    if any(isinstance(s, Dim) and s != Dim.of(name) for name, s in sizes):
        raise GraphError("a named dimension of the body is that of the graph around it")
    known = {name: s for name, s in sizes if isinstance(s, int)}
    given = [_of_sizes(x.tensor, known) for x in body.inputs]
    return given, [_of_sizes(y.tensor, known) for y in body.outputs]


def depth(body: GraphLike) -> int:
    """How deep loops are nested that have this body: 1 or more."""
    bodies = {id(b): b for n in body.nodes for b in n.bodies}
    return 1 + max(map(depth, bodies.values()), default=0)


def _of_sizes(t: TensorType, sizes: Mapping[str, int]) -> TensorType:
    """A type with numbers for the named dimensions that are known."""
    if not sizes or all(isinstance(s, int) for s in t.shape):
        return t
    return t.with_shape(
        tuple(
            s.evaluate(sizes) if isinstance(s, Dim) and s.names <= sizes.keys() else s
            for s in t.shape
        )
    )


def _kernel(
    *arrays: Any,
    body: Graph,
    carries: int,
    sequences: int,
    length: int,
    reverse: bool,
    sizes: tuple[tuple[str, int], ...],
) -> tuple[Any, ...]:
    known = dict(sizes)
    state, fixed = list(arrays[:carries]), arrays[carries + sequences :]
    rows: list[list[Any]] = [[] for _ in body.outputs[carries:]]
    for t in reversed(range(length)) if reverse else range(length):
        slices = [x[t] for x in arrays[carries : carries + sequences]]
        feeds = dict(zip(body.inputs, (*state, *slices, *fixed), strict=True))
        found = evaluate(body.outputs, feeds, known)
        state = found[:carries]
        for row, y in zip(rows, found[carries:], strict=True):
            row.append(y)
    stacks = [
        np.stack(row[::-1] if reverse else row) if row else _nothing(y, known)
        for row, y in zip(rows, body.outputs[carries:], strict=True)
    ]
    return (*state, *stacks)


def _nothing(y: Node, sizes: Mapping[str, int]) -> Any:
    shape: Any = _of_sizes(y.tensor, sizes).shape
    return np.empty((0, *shape), y.dtype)


@op(
    infer=_infer,
    kernel=_kernel,
    vjp=lambda g, y, *inputs, active, **attrs: SLOTS.loops("loops").vjp(g, y, active),
    jvp=lambda t, y, *inputs, active, **attrs: SLOTS.loops("loops").jvp(t, y),
    locked=lambda lock, y, *inputs, **attrs: SLOTS.loops("loops").locked(lock, y),
    batch=lambda inputs, flags, node, **attrs: SLOTS.loops("loops").batch(inputs, flags, node),
    holomorphic=False,
    by_activity=True,
    body="body",
    public=False,
)
def loop(
    *operands: Node,
    body: Graph,
    carries: int,
    sequences: int,
    length: int | Dim,
    reverse: bool,
    sizes: Sizes,
) -> Node:
    """The carries after all steps of a body, and what its steps stack; see the top of the file."""
    ...


def looped(
    body: Graph,
    init: Sequence[Node],
    sequences: Sequence[Node],
    fixed: Sequence[Node],
    length: Size,
    reverse: bool = False,
) -> list[Node]:
    """The results of a loop: the last carries, and the stacks."""
    made = loop(
        *init,
        *sequences,
        *fixed,
        body=body,
        carries=len(init),
        sequences=len(sequences),
        length=length,
        reverse=reverse,
        sizes=named_sizes(body.nodes),
    )
    return list(made)


def never_fails(node: Node) -> bool:
    """Whether a node can be computed whatever its operands are, and without a loop."""
    op = node.op
    free = op.elementwise or op.view or op.combiner or op.annihilators or op.data_movement
    return not node.inputs or bool(free and not op.indices and not op.opaque)


def substituted(ys: Sequence[Node], becomes: Mapping[Node, Node]) -> list[Node]:
    """Nodes with others of the same types in the places of some that they are made of."""
    done = dict(becomes)
    for node in topological(ys, known=done):
        inputs = tuple(done.get(x, x) for x in node.inputs)
        if not all(map(is_, inputs, node.inputs)):
            done[node] = Node(node.op, inputs, node.attrs, node.type, node.origin)
    return [done.get(y, y) for y in ys]


def named_sizes(nodes: Iterable[Node]) -> Sizes:
    """The named dimensions in the types and attributes of nodes, each with itself."""
    names: set[str] = set()
    for node in nodes:
        for t in types_of(node.type):
            names |= _names_in(t.shape)
        names |= _names_in(tuple(v for _, v in node.attrs))
    return tuple((n, Dim.of(n)) for n in sorted(names))


def _names_in(value: Any) -> frozenset[str]:
    if isinstance(value, Dim):
        return value.names
    if isinstance(value, tuple):
        return frozenset[str]().union(*map(_names_in, value))
    return frozenset()
