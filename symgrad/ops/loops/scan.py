"""`scan`, `fori` and `map`: a function of nodes, traced once, becomes the body of a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from symgrad.ir.dim_text import same_size
from symgrad.ir.dims import Size
from symgrad.ir.errors import DtypeError, GraphError, ShapeError, SymgradError, UnsupportedError
from symgrad.ir.forms import Form, Leaf, aligned, flatten
from symgrad.ir.graph import Graph, is_input
from symgrad.ir.late import SLOTS
from symgrad.ir.leaf_ops import CONSTANT, PLACEHOLDER
from symgrad.ir.messages import telling
from symgrad.ir.node import Node, as_node, describe
from symgrad.ir.origin import inner_name, plain_name
from symgrad.ir.origin import traced as tracing
from symgrad.ir.types import DType, as_shape, whole
from symgrad.ir.walk import topological
from symgrad.ops.leaves import arange, placeholder
from symgrad.ops.loops.calls import calling, require_function
from symgrad.ops.loops.loop import looped, substituted
from symgrad.ops.shape import astype, concat, reshape


@telling
def scan(
    step: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    keep: Literal["all", "sqrt"] | int | None = None,
) -> tuple[Any, Any]:
    """The last carry, and the results of all steps, stacked: `(carry, ys)`.

    `step(carry, x)` gives `(next carry, y)`, where x is a slice of `xs` along their first axis.
    Without xs it is None, and `length`, an int or a named dimension, says how many steps there
    are. The step is called on nodes: once, or twice if a carry begins as a Python number, which
    takes the dtype of what it becomes. The carry, x and y are a node each, or lists, tuples and
    dicts of nodes, nested; y may be None. What the step reaches besides is read whole by every
    step. With `reverse` it runs from the last slice to the first; ys[t] belongs to xs[t] all the
    same. There are gradients of every order, in both modes.

    `keep` says of how many steps the carry is kept for the backward: of about the square root of
    their number, or of so many. What else it reads is then computed again, some steps at a time: a
    second forward for less memory (Griewank and Walther, ACM TOMS 26, 2000). Steps within steps
    that do so keep the less. With "all" or None everything is kept, unless `memory_budget` of
    `compile` asks for less. The number of steps must be known for anything else.

    Raises `ShapeError` or `DtypeError` if a step changes the shape or dtype of a carry, or if the
    sequences have different lengths; `GraphError` for a carry of another form, and for a side
    effect such as the update of a module's state.

    >>> total, sums = scan(lambda c, x: (c + x, c + x), 0.0, placeholder("x", ("T", 3))[:, 0])
    >>> total.type, sums.type
    (float64[], float64[T])
    """
    require_function("scan", step, CALLS["scan"])
    if keep is None or keep == "all":
        return _scanned(step, init, xs, length, reverse, "scan")
    return _in_stretches(step, init, xs, length, reverse, keep)


@telling
def fori(n: Any, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """The carry after n steps, of which each is `carry = body(i, carry)`, for i from 0 on.

    n is an int or a named dimension, i a scalar node of int64. The rest is as in `scan`.

    >>> x = placeholder("x", 3)
    >>> fori(10, lambda i, y: y * x + i, x).type
    float64[3]
    """

    require_function("fori", body, CALLS["fori"])

    def step(carry: Any, i: Node) -> tuple[Any, None]:
        return body(i, carry), None

    return _scanned(step, init, arange(_steps("fori", n)), None, False, "fori")[0]


@telling
def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """The results of f for each slice of `xs` along their first axis, stacked.

    They are computed one after the other, in the memory of one; `vmap` computes them all at once.
    The rest is as in `scan`.

    >>> map(lambda row: sum(row * row), placeholder("x", ("N", 3))).type
    float64[N]
    """
    require_function("map", f, CALLS["map"])
    return _scanned(lambda _, x: ((), f(x)), (), xs, None, False, "map")[1]


CALLS: Mapping[str, str] = {"scan": "step(carry, x)", "fori": "body(i, carry)", "map": "f(x)"}


class _Trace(NamedTuple):
    """The outputs of a traced step: the next carries and the results, with their form."""

    nexts: list[Node]
    ys: list[Node]
    form: Form


def _scanned(
    step: Callable[[Any, Any], Any], init: Any, xs: Any, length: Any, reverse: bool, name: str
) -> tuple[Any, Any]:
    carries, carry_form = leaves(init, "carry", name)
    sequences, slice_form = ([], None) if xs is None else leaves(xs, "xs", name)
    count = _length(name, sequences, length)
    given = [as_node(leaf.value) for leaf in sequences]
    slices = [placeholder(inner_name(f"x{i}"), x.shape[1:], x.dtype) for i, x in enumerate(given)]
    x = None if slice_form is None else slice_form(slices)

    def traced(starts: Sequence[Node]) -> tuple[list[Node], _Trace]:
        states = carried(starts)
        row = "i" if name == "fori" else "x, a slice along the first axis,"
        told = {"carry": states, row: slices}
        with tracing(name), calling(name, CALLS[name], **told):
            found = step(carry_form(states), x)
        return states, _traced(name, found, init)

    starts = begun(carries, lambda starts: traced(starts)[1].nexts)
    states, found = traced(starts)
    outputs = [*fitted(name, carries, states, found.nexts), *found.ys]
    if not outputs:
        raise GraphError(f"{name} has nothing to compute: give it a carry, or return a result")
    body, fixed = closed(name, outputs, [*states, *slices])
    results = looped(body, starts, given, fixed, count, bool(reverse))
    ends = len(starts)
    return carry_form(results[:ends]), found.form(results[ends:])


def _in_stretches(
    step: Callable[[Any, Any], Any], init: Any, xs: Any, length: Any, reverse: bool, keep: Any
) -> tuple[Any, Any]:
    """A scan of scans, of which each keeps nothing but what goes in; and of what is left over."""
    carries, carry_form = leaves(init, "carry", "scan")
    sequences, slice_form = ([], None) if xs is None else leaves(xs, "xs", "scan")
    count = _length("scan", sequences, length)
    if keep != "sqrt":
        whole(keep, "keep", 1, GraphError)
    if not isinstance(count, int):
        raise ShapeError(f"scan: keep needs a number of steps, not {count}; leave keep out")
    # Once as it is, which tells the form of the results, and the dtypes that numbers take.
    last, ys = found = _scanned(step, init, xs, length, reverse, "scan")
    size = -(-count // max(isqrt(count) if keep == "sqrt" else keep, 1))
    if size <= 1 or not carries:
        return found
    types = [leaf.value.dtype for leaf in leaves(last, "carry", "scan")[0]]
    state = [astype(as_node(c.value), t) for c, t in zip(carries, types, strict=True)]
    form = None if ys is None else leaves(ys, "y", "scan")[1]
    number, rest = divmod(count, size)

    def stretch(given: Sequence[Node], steps: int) -> tuple[list[Node], list[Node]]:
        def run(*given: Node) -> tuple[Node, ...]:
            x = None if slice_form is None else slice_form(given[len(carries) :])
            begin, many = carry_form(given[: len(carries)]), steps if x is None else None
            after, made = _scanned(step, begin, x, many, reverse, "scan")
            found = leaves(after, "carry", "scan")[0]
            found = found if made is None else [*found, *leaves(made, "y", "scan")[0]]
            return tuple([leaf.value for leaf in found])

        results = SLOTS.loops("loops").checkpoint(run)(*given)
        return list(results[: len(carries)]), list(results[len(carries) :])

    given = [as_node(leaf.value) for leaf in sequences]
    first, end = (rest, count) if reverse else (0, number * size)
    blocks = [reshape(x[first:end], (number, size, *x.shape[1:])) for x in given]
    tail: list[Node] = []
    state, stacks = _scanned(
        lambda c, x: stretch((*c, *(x or ())), size), state, blocks or None,
        None if blocks else number, reverse, "scan",
    )  # fmt: skip
    flat = [reshape(y, (number * size, *y.shape[2:])) for y in stacks]
    if rest:
        state, tail = stretch((*state, *(x[:rest] if reverse else x[end:] for x in given)), rest)
        pairs = zip(flat, tail, strict=True)
        flat = [concat([b, a] if reverse else [a, b]) for a, b in pairs]
    return carry_form(state), None if form is None else form(flat)


def leaves(value: Any, what: str, name: str) -> tuple[list[Leaf], Form]:
    """The leaves of what a user gave, none of which is None, and what has the form of it."""
    found, form = flatten(value, what)
    for leaf in found:
        if leaf.value is None:
            raise GraphError(f"{name}: {leaf.path} is None; give an array, a node or a number")
    return found, form if found else lambda results: value


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python's, which takes the dtype beside it."""
    return isinstance(value, (bool, int, float, complex)) and type(value).__module__ == "builtins"


def carried(starts: Sequence[Node]) -> list[Node]:
    """The inputs of a body that stand for its carries."""
    named = ((inner_name(f"carry{i}"), c) for i, c in enumerate(starts))
    return [placeholder(name, c.shape, c.dtype) for name, c in named]


def begun(carries: Sequence[Leaf], nexts_of: Callable[[list[Node]], list[Node]]) -> list[Node]:
    """The nodes that carries begin with, of which a step makes others.

    A number takes the dtype of what it becomes, if that has been made of more than numbers.
    """
    starts = [as_node(leaf.value) for leaf in carries]
    weak = {i: least_dtype(c.value) for i, c in enumerate(carries) if is_number(c.value)}
    if not weak:
        return starts
    trial = [astype(s, weak[i]) if i in weak else s for i, s in enumerate(starts)]
    try:
        nexts = nexts_of(trial)
    except SymgradError:  # not of this dtype
        return starts
    return [
        astype(s, n.dtype) if i in weak and n.dtype != weak[i] else s
        for i, (s, n) in enumerate(zip(starts, nexts, strict=True))
    ]


def least_dtype(number: bool | int | float | complex) -> DType:
    """The least dtype of the kind of a number: with an array of that kind it gives the array's."""
    least = {"b": "bool", "i": "int8", "f": "float16", "c": "complex64"}
    return np.dtype(least[np.dtype(type(number)).kind])


def _steps(name: str, n: Any) -> Size:
    if isinstance(n, Node):
        raise ShapeError(
            f"{name}: the number of steps is an int or the name of a dimension, not {describe(n)}; "
            f"sg.while_loop takes as many as are computed{n.origin.place()}"
        )
    try:
        (found,) = as_shape((n,))
    except SymgradError as error:
        raise type(error)(f"{name}: the number of steps: {error}") from None
    return found


def _length(name: str, sequences: Sequence[Leaf], length: Any) -> Size:
    """How many steps there are, which all sequences say alike."""
    lengths = [] if length is None else [("length", _steps(name, length))]
    for leaf in sequences:
        node = as_node(leaf.value)
        if not node.ndim:
            raise ShapeError(
                f"{name}: {leaf.path} is {describe(node)}, a scalar, which has no slices; let the "
                f"step read it whole: it need not be among xs{node.origin.place()}"
            )
        lengths.append((leaf.path, node.shape[0]))
    if not lengths:
        raise ShapeError(f"{name}: without xs, length says how many steps there are")
    for path, size in lengths[1:]:
        if not same_size(size, lengths[0][1]):
            raise ShapeError(
                f"{name}: {lengths[0][0]} has {lengths[0][1]} steps, and {path} has {size}; all "
                "sequences have one length"
            )
    return lengths[0][1]


def _traced(name: str, found: Any, init: Any) -> _Trace:
    if not isinstance(found, tuple) or len(found) != 2:
        raise GraphError(
            f"{name}: a step returns two things, (carry, y), not {type(found).__name__}; "
            "y may be None"
        )
    after, y = found
    nexts = next_nodes(name, after, init)
    if y is None:
        return _Trace(nexts, [], lambda results: None)
    results, form = leaves(y, "y", name)
    return _Trace(nexts, nodes([leaf.value for leaf in results], name), form)


def next_nodes(name: str, after: Any, init: Any) -> list[Node]:
    """The next carries, which have the form of the first ones."""
    nexts = [leaf.value for leaf in aligned(after, init, "carry", GraphError)]
    for value in nexts:
        if isinstance(value, (list, tuple, dict)):
            raise GraphError(f"{name}: a carry that was one array becomes {value!r:.60}")
    return nodes(nexts, name)


def nodes(values: Sequence[Any], name: str) -> list[Node]:
    """The nodes that a body returned."""
    try:
        return [as_node(v) for v in values]
    except SymgradError as error:
        kinds = ", ".join(dict.fromkeys(type(v).__name__ for v in values))
        raise type(error)(f"{name}: a body returns nodes, not {kinds}: {error}") from None


def fitted(
    name: str, carries: Sequence[Leaf], states: Sequence[Node], nexts: Sequence[Node]
) -> list[Node]:
    """The next carries, each of the type of the carry."""
    triples = zip(carries, states, nexts, strict=True)
    return [_fitted(name, leaf, state, after) for leaf, state, after in triples]


def _fitted(name: str, leaf: Leaf, state: Node, after: Node) -> Node:
    """The next carry, which has the type of the carry."""
    if after.type == state.type:
        return after
    if not after.inputs and after.op is not PLACEHOLDER and after.ndim == state.ndim == 0:
        return astype(after, state.dtype)
    kind: type[SymgradError] = ShapeError
    mend = "a carry keeps its shape; begin with one of the shape that it is to have"
    if after.shape == state.shape:
        from_, to = state.dtype.name, after.dtype.name
        mend = f"begin with sg.astype(carry, {to!r}), or return sg.astype(carry, {from_!r})"
        kind = DtypeError
    if name == "fori":  # with its arguments swapped, an i is what most bodies give
        mend += f"; it calls {CALLS[name]}"
    raise kind(
        f"{name}: {leaf.path} is {state.type!r} before a step and {after.type!r} after it; {mend}"
        f"{after.origin.place()}"
    )


def closed(
    name: str, outputs: Sequence[Node], own: Sequence[Node], regions: Sequence[tuple[str, ...]] = ()
) -> tuple[Graph, list[Node]]:
    """The body, and what it reads of the graph around it, which becomes its last inputs.

    It is what depends on its `own` inputs, or was built in one of the `regions`. Constants of one
    number stay inside, where rules see them.
    """
    inside = set(own)
    order = topological(outputs)

    def is_built_inside(node: Node) -> bool:
        scope = node.origin.scope
        free = is_input(node) or node.op is CONSTANT or node.op.of_several
        return not free and any(scope[: len(region)] == region for region in regions)

    for node in order:
        if any(x in inside for x in node.inputs) or is_built_inside(node):
            inside.add(node)
            if node.op.update:
                raise UnsupportedError(
                    f"{name}: a step has no side effects, and {describe(node)} updates the state "
                    f"of a module; carry that state, or freeze it{node.origin.place()}"
                )
    reads = [x for n in order if n in inside for x in n.inputs] + [*outputs]
    outer = dict.fromkeys(x for x in reads if x not in inside and not _stays(x))
    becomes = {x: placeholder(f"k{i}", x.shape, x.dtype) for i, x in enumerate(outer)}
    states = {x: placeholder(plain_name(x.attr("name")), x.shape, x.dtype) for x in own}
    made = substituted(outputs, states | becomes)
    return Graph(made, [*states.values(), *becomes.values()]), list(outer)


def _stays(x: Node) -> bool:
    return not x.inputs and not is_input(x) and x.ndim == 0
