"""`while_loop`: a body runs as long as a test holds; how often, only the data tell.

It gives the number of its steps, too. That number is the size of a named dimension in the graphs of
its derivatives, which are made of loops of that length: `sized` runs such a graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from symgrad.ir.dims import Dim
from symgrad.ir.errors import GraphError, ShapeError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.graph import Graph
from symgrad.ir.late import SLOTS
from symgrad.ir.messages import telling
from symgrad.ir.node import Node, as_node
from symgrad.ir.origin import traced
from symgrad.ir.types import TensorType, Type
from symgrad.ops.declare import op
from symgrad.ops.loops.calls import calling, require_function
from symgrad.ops.loops.cond import predicate
from symgrad.ops.loops.loop import Sizes, body_types, depth, named_sizes
from symgrad.ops.loops.scan import begun, carried, closed, fitted, leaves, next_nodes

COUNT = TensorType((), np.dtype(np.int64))
BOOLEAN = TensorType((), np.dtype(bool))
What: TypeAlias = Literal["while_loop", "root", "fixed_point", "minimizer", "odeint"]
# The most steps, and the function that says so.
Limit: TypeAlias = "tuple[int | None, What]"
OWN_NAME = re.compile("steps[0-9]{1,4}")


@telling
def while_loop(
    cond: Callable[[Any], Any],
    body: Callable[[Any], Any],
    init: Any,
    *,
    max_steps: int | None = None,
) -> Any:
    """The carry after as many steps `carry = body(carry)` as `cond(carry)` is true before.

    `cond` gives a boolean scalar. The carry is a node, or lists, tuples and dicts of nodes, nested;
    a step keeps its form, shapes and dtypes. There are gradients of every order, in both modes,
    with no bound on the steps: the backward runs the loop again, keeps what it needs of each step,
    and then goes back over them. Under `vmap` it runs until the last row has ended, and a row that
    has ended stays as it is.

    With `max_steps`, one more step than that is an error when the program runs. Ctrl-C ends a loop
    that does not, and leaves variables as they were. Raises as `scan` does for a carry that
    changes, and `ShapeError` or `DtypeError` for a cond that gives no boolean scalar.

    >>> a, b = placeholder("a", ()), placeholder("b", ())
    >>> def step(pair):
    ...     return (pair[0] + pair[1]) / 2, sqrt(pair[0] * pair[1])
    >>> mean, _ = while_loop(lambda pair: abs(pair[0] - pair[1]) > 1e-12, step, (a, b))
    >>> mean.type
    float64[]
    """
    require_function("while_loop", cond, "cond(carry)")
    require_function("while_loop", body, "body(carry)")
    return looping("while_loop", cond, body, init, max_steps)


def looping(
    name: What,
    cond: Callable[[Any], Any],
    body: Callable[[Any], Any],
    init: Any,
    max_steps: int | None,
) -> Any:
    """The same for a function of this name, which is built of such a loop."""
    if max_steps is not None and (type(max_steps) is not int or max_steps < 0):
        raise GraphError(f"{name}: max_steps is an int, 0 or more, not {max_steps!r:.60}")
    carries, form = leaves(init, "carry", name)
    if not carries:
        raise GraphError(f"{name} has nothing to compute: give it a carry")

    def stepped(starts: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        states = carried(starts)
        with traced(name), calling(name, "body(carry)", carry=states):
            after = body(form(states))
        return states, next_nodes(name, after, init)

    starts = begun(carries, lambda starts: stepped(starts)[1])
    states, nexts = stepped(starts)
    with traced(name), calling(name, "cond(carry)", carry=states):
        test = predicate(name, as_node(cond(form(states))))
    both, outer = closed(name, [test, *fitted(name, carries, states, nexts)], states)
    limit = max_steps, name
    made = whiled(both.outputs[0], both.outputs[1:], both.inputs, [*starts, *outer], limit)
    return form(made[1:])


def exceeded(most: int | None, what: str) -> str:
    """The message where a loop takes more than the most steps."""
    if what == "while_loop":
        return f"more than {most} steps"
    if what == "odeint":
        return (
            f"odeint takes more than {most} steps from one time to the next: ask for more times, "
            "give max_steps or larger tolerances; where a solution is stiff or infinite, or f or a "
            "time is NaN, steps become smaller than rounding, and there is no end"
        )
    return (
        f"{what} did not converge in {most} steps: begin nearer to the solution, or give max_steps "
        "or a larger tol"
    )


def whiled(
    test: Node,
    nexts: Sequence[Node],
    inputs: Sequence[Node],
    operands: Sequence[Node],
    limit: Limit,
) -> list[Node]:
    """The number of steps and the last carries; the first inputs are the carries."""
    most, what = limit
    bodies = Graph([test], inputs), Graph(nexts, inputs)
    sizes = named_sizes([*bodies[0].nodes, *bodies[1].nodes])
    test_, step = bodies
    return list(while_loop_p(*operands, test=test_, step=step, most=most, what=what, sizes=sizes))


def _infer(
    *types: TensorType,
    test: Graph,
    step: Graph,
    most: int | None,
    what: Literal["while_loop", "root", "fixed_point", "minimizer", "odeint"],
    sizes: tuple[tuple[str, int | Dim], ...],
) -> Type:
    (given, made), (same, tested) = body_types(step, sizes), body_types(test, sizes)
    if tested != [BOOLEAN] or same != given:
        raise GraphError(f"the test gives one boolean of what the step is given, not {tested}")
    if given[: len(made)] != made:
        raise ShapeError(f"carries {given[: len(made)]} become {made} in a step")
    if list(types) != given:
        raise ShapeError(f"the loop takes {given}, not {list(types)}")
    if most is not None and most < 0:
        raise GraphError(f"the most steps are 0 or more, not {most}")
    return (COUNT, *made)


def _kernel(
    *arrays: Any,
    test: Graph,
    step: Graph,
    most: int | None,
    what: str,
    sizes: tuple[tuple[str, int], ...],
) -> tuple[Any, ...]:
    known, count = dict(sizes), np.int64(0)
    state, fixed = list(arrays[: len(step.outputs)]), arrays[len(step.outputs) :]
    while True:
        feeds = (*state, *fixed)
        (goes_on,) = evaluate(test.outputs, dict(zip(test.inputs, feeds, strict=True)), known)
        if not goes_on:
            return (count, *state)
        if most is not None and count == most:
            raise RuntimeError(exceeded(most, what))
        state = evaluate(step.outputs, dict(zip(step.inputs, feeds, strict=True)), known)
        count += 1


@op(
    infer=_infer,
    kernel=_kernel,
    vjp=lambda g, y, *inputs, active, **attrs: SLOTS.loops("whiles").vjp(g, y, active),
    jvp=lambda t, y, *inputs, active, **attrs: SLOTS.loops("whiles").jvp(t, y),
    locked=lambda lock, y, *inputs, **attrs: SLOTS.loops("whiles").locked(lock, y),
    batch=lambda inputs, flags, node, **attrs: SLOTS.loops("whiles").batch(inputs, flags, node),
    holomorphic=False,
    by_activity=True,
    graphs=("test", "step"),
    public=False,
)
def while_loop_p(
    *operands: Node, test: Graph, step: Graph, most: int | None, what: What, sizes: Sizes
) -> Node:
    """The number of steps and the last carries: see the top of the file."""
    ...


# ---- a graph with a dimension of its own ----------------------------------------------------


def sized_of(
    count: Node,
    name: str,
    outputs: Sequence[Node],
    inputs: Sequence[Node],
    operands: Sequence[Node],
) -> list[Node]:
    """Nodes made of some inputs, given the operands, where a dimension has the size `count`."""
    read = {*Graph(outputs, inputs).nodes[len(inputs) :], *outputs}
    read |= {x for n in read for x in n.inputs}
    pairs = [(x, o) for x, o in zip(inputs, operands, strict=True) if x in read]
    graph = Graph(outputs, [x for x, _ in pairs])
    sizes = tuple((n, s) for n, s in named_sizes(graph.nodes) if n != name)
    return list(sized(count, *(o for _, o in pairs), graph=graph, name=name, sizes=sizes))


def own_name(*bodies: Graph) -> str:
    """A name for the dimension of a loop over bodies: another than those of loops within them."""
    return f"steps{max(map(depth, bodies))}"


def _sized_infer(
    *types: TensorType, graph: Graph, name: str, sizes: tuple[tuple[str, int | Dim], ...]
) -> Type:
    if not types or types[0] != COUNT:
        raise GraphError(f"the first operand is a number of steps, not {types[:1]}")
    given, made = body_types(graph, sizes)
    if OWN_NAME.fullmatch(name) is None or name in {x.name for x in graph.inputs}:
        raise GraphError(
            f"steps0, steps1, … are names for it, which no input has, not {name!r:.60}"
        )
    if loose := dict(named_sizes(graph.nodes)).keys() - dict(sizes).keys() - {name}:
        raise GraphError(f"the sizes of {', '.join(sorted(loose))} are not told")
    if name in dict(sizes) or any(name in t.names for t in (*given, *made)):
        raise GraphError(f"the dimension {name} is that of the graph inside alone")
    if list(types[1:]) != given:
        raise ShapeError(f"the graph inside takes {given}, not {list(types[1:])}")
    return tuple(made)


def _sized_kernel(
    count: Any, *arrays: Any, graph: Graph, name: str, sizes: tuple[tuple[str, int], ...]
) -> tuple[Any, ...]:
    feeds = dict(zip(graph.inputs, arrays, strict=True))
    return tuple(evaluate(graph.outputs, feeds, {**dict(sizes), name: int(count)}))


@op(
    infer=_sized_infer,
    kernel=_sized_kernel,
    vjp=lambda g, y, *inputs, active, **attrs: SLOTS.loops("dynamic_shapes").vjp(g, y, active),
    jvp=lambda t, y, *inputs, active, **attrs: SLOTS.loops("dynamic_shapes").jvp(t, y),
    locked=lambda lock, y, *inputs, **attrs: SLOTS.loops("dynamic_shapes").locked(lock, y),
    batch=lambda inputs, flags, node, **attrs: SLOTS.loops("dynamic_shapes").batch(
        inputs, flags, node
    ),
    holomorphic=False,
    by_activity=True,
    graphs=("graph",),
    public=False,
)
def sized(count: Node, *operands: Node, graph: Graph, name: str, sizes: Sizes) -> Node:
    """The outputs of a graph in which the dimension called `name` has the size `count`."""
    ...
