"""`cond`: of two functions, the one that a boolean chooses runs, and the other does not.

What a function builds while it is called runs with it; what was built before is computed before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ir.dims import Dim
from symgrad.ir.errors import DtypeError, GraphError, ShapeError, SymgradError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.forms import aligned
from symgrad.ir.graph import Graph
from symgrad.ir.late import SLOTS
from symgrad.ir.messages import telling
from symgrad.ir.node import Node, as_node, describe
from symgrad.ir.origin import traced
from symgrad.ir.types import TensorType, Type
from symgrad.ops.declare import op
from symgrad.ops.loops.calls import WHERE, require_function
from symgrad.ops.loops.loop import Sizes, body_types, named_sizes
from symgrad.ops.loops.scan import closed, is_number, leaves, nodes
from symgrad.ops.shape import astype


@telling
def cond(p: Any, f: Callable[[], Any], g: Callable[[], Any]) -> Any:
    """The results of f where p, a boolean scalar, is true, and those of g where it is not.

    f and g take no arguments: they read the nodes around them. What they build is computed only
    if theirs is the turn; so are its gradients, of every order and in both modes, and only the
    function that ran contributes to them. Their results are a node each, or lists, tuples and
    dicts of nodes, nested, of one form, shapes and dtypes. Under `vmap`, where p differs by row, a
    row has the results of its own function, and no NaN of the other one; where f or g have loops
    or what may fail, one row is computed after the other.

    Raises `DtypeError` or `ShapeError` for p that is no boolean scalar, and for results of other
    dtypes or shapes, `GraphError` for another form, and for a side effect.

    >>> x = placeholder("x", ())
    >>> cond(x > 0, lambda: sqrt(x), lambda: x).type
    float64[]
    """
    for function, call in ((f, "f()"), (g, "g()")):
        require_function("cond", function, call, WHERE)
    chosen = predicate("cond", as_node(p))
    with traced("cond", "true") as true:
        first = f()
    with traced("cond", "false") as false:
        second = g()
    found, form = leaves(first, "result", "cond")
    if not found:
        raise GraphError("cond has nothing to compute: let both functions return a result")
    others = [leaf.value for leaf in aligned(second, first, "result", GraphError)]
    ys = nodes([leaf.value for leaf in found], "cond")
    zs = nodes(others, "cond")
    for i, (leaf, other) in enumerate(zip(found, others, strict=True)):
        if is_number(leaf.value):
            ys[i] = _like(ys[i], zs[i])
        if is_number(other):
            zs[i] = _like(zs[i], ys[i])
        _check(leaf.path, ys[i], zs[i])
    both, outer = closed("cond", [*ys, *zs], [], (true, false))
    return form(chosen_of(chosen, both.outputs[: len(ys)], both.outputs[len(ys) :], both, outer))


def predicate(name: str, p: Node) -> Node:
    """A boolean scalar; raises for anything else."""
    if p.ndim:
        raise ShapeError(
            f"{name} asks for one boolean, not {describe(p)}: take sg.any or sg.all of it, or "
            f"sg.vmap over its rows{p.origin.place()}"
        )
    if p.dtype.kind != "b":
        raise DtypeError(
            f"{name} asks for a boolean, not {describe(p)}: compare it, as in x != 0"
            f"{p.origin.place()}"
        )
    return p


def _like(number: Node, other: Node) -> Node:
    """A number in the dtype of the array on the other side, if that may be."""
    kinds = "biufc"
    fits = kinds.find(number.dtype.kind) <= kinds.find(other.dtype.kind) or other.dtype.kind == "f"
    return astype(number, other.dtype) if fits and number.dtype.kind != "c" else number


def _check(path: str, y: Node, z: Node) -> None:
    if y.type == z.type:
        return
    kind: type[SymgradError] = ShapeError
    mend = "both give one shape, as sg.broadcast_to(result, shape) does"
    if y.shape == z.shape:
        kind, mend = DtypeError, f"both give one dtype, as sg.astype(result, {y.dtype.name!r}) does"
    raise kind(
        f"cond: {path} is {y.type!r} of the first function and {z.type!r} of the second; {mend}"
        f"{z.origin.place()}"
    )


def chosen_of(
    p: Node,
    true: Sequence[Node],
    false: Sequence[Node],
    inputs: Graph | Sequence[Node],
    operands: Sequence[Node],
) -> list[Node]:
    """The results of a choice between nodes made of some inputs, which are given the operands."""
    given = inputs.inputs if isinstance(inputs, Graph) else inputs
    used = {*Graph([*true, *false], given).nodes[len(given) :], *true, *false}
    read = {x for n in used for x in (n, *n.inputs)}
    pairs = [(x, o) for x, o in zip(given, operands, strict=True) if x in read]
    inner = [x for x, _ in pairs]
    bodies = Graph(true, inner), Graph(false, inner)
    sizes = named_sizes([*bodies[0].nodes, *bodies[1].nodes])
    return list(branch(p, *(o for _, o in pairs), true=bodies[0], false=bodies[1], sizes=sizes))


def _infer(
    *types: TensorType, true: Graph, false: Graph, sizes: tuple[tuple[str, int | Dim], ...]
) -> Type:
    if not types or types[0] != TensorType((), np.dtype(bool)):
        raise GraphError(f"the first operand is a boolean scalar, not {types[:1]}")
    (given, made), other = body_types(true, sizes), body_types(false, sizes)
    if other != (given, made):
        raise GraphError(f"one body takes and gives {(given, made)}, and the other {other}")
    if list(types[1:]) != given:
        raise ShapeError(f"the bodies take {given}, not {list(types[1:])}")
    return tuple(made)


def _kernel(
    p: Any, *arrays: Any, true: Graph, false: Graph, sizes: tuple[tuple[str, int], ...]
) -> tuple[Any, ...]:
    body = true if p else false
    return tuple(evaluate(body.outputs, dict(zip(body.inputs, arrays, strict=True)), dict(sizes)))


@op(
    infer=_infer,
    kernel=_kernel,
    vjp=lambda g, y, *inputs, active, **attrs: SLOTS.loops("choices").vjp(g, y, active),
    jvp=lambda t, y, *inputs, active, **attrs: SLOTS.loops("choices").jvp(t, y),
    locked=lambda lock, y, *inputs, **attrs: SLOTS.loops("choices").locked(lock, y),
    batch=lambda inputs, flags, node, **attrs: SLOTS.loops("choices").batch(inputs, flags, node),
    holomorphic=False,
    by_activity=True,
    graphs=("true", "false"),
    public=False,
)
def branch(p: Node, *operands: Node, true: Graph, false: Graph, sizes: Sizes) -> Node:
    """The outputs of one of two graphs, whose inputs are the operands; the other does not run."""
    ...
