"""Rules for where a pass has seen all readers: results alone, shared masks and parts, slices.

A pass that has looked at the whole graph says at which nodes: `rule.only(at)`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np

from symgrad.ir.dims import Size
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, apply
from symgrad.ir.op import REGISTRY, Op
from symgrad.ir.operators import call
from symgrad.ops.activations import log_softmax, logsumexp, softmax
from symgrad.ops.elementwise import add, exp, log
from symgrad.ops.identity import scale_gradient, stop_gradient
from symgrad.ops.index.slices import Index, place, slice_p
from symgrad.ops.leaves import eye, zeros
from symgrad.ops.linalg.products import vdot_p
from symgrad.ops.logic import equal, isfinite
from symgrad.ops.reduce import max, sum
from symgrad.ops.select import keep_by_bits, select, where
from symgrad.ops.shape import concat, expand_dims, item, squeeze
from symgrad.rewrite.rule import Exact, rule_for
from symgrad.rules.softmax import are_known

# ---- what only differentiation sees ---------------------------------------------------------


@rule_for(
    lambda op: op.identity or op.of_several,
    exact=Exact.BITS,
    after_grad=True,
    examples=(lambda x: stop_gradient(x), lambda x: scale_gradient(x, 0.5)),
)
def identity_of_operand(node: Node) -> Node | None:
    """Only who differentiates or updates sees it, and has by now: its operand takes its place."""
    if not node.op.of_several:
        orders = node.op.barrier and len(node.inputs) > 1
        return None if orders or isinstance(node.type, tuple) else node.inputs[0]
    source = node.inputs[0]
    return source.inputs[node.attr("index")] if source.op.identity else None


# ---- results that nobody reads --------------------------------------------------------------


def _alone(node: Node) -> Node | None:
    source = node.inputs[0]
    name = source.op.projections[node.attr("index")]
    return apply(REGISTRY.find(name), source.inputs, dict(source.attrs)) if name else None


@rule_for(
    lambda op: op.of_several,
    exact=Exact.BITS,
    after_grad=True,
    operands=lambda ops: bool(ops[0].projections) and ops[0].elementwise,
    examples=(lambda x, y: divmod(x, y)[0], lambda x, y: divmod(x, y)[1]),
)
def result_alone(node: Node) -> Node | None:
    """Only one result is read: compute that one alone."""
    return _alone(node)


@rule_for(
    lambda op: op.of_several,
    exact=Exact.ROUNDING,
    after_grad=True,
    operands=lambda ops: bool(ops[0].projections) and not ops[0].elementwise,
    examples=(
        lambda x: call("svd", x)[1],
        lambda x: call("eigh", x[:, :1] * eye(2, dtype=x.dtype))[0],
    ),
)
def result_found_alone(node: Node) -> Node | None:
    """Only one result is read: compute that one alone, in its own way, which rounds differently."""
    return _alone(node)


def _one_of_two(x: Node) -> Node:
    from symgrad.ops.loops.scan import map

    first: Node = map(lambda row: (exp(row), log(row)), x)[0]
    return first


@rule_for(
    lambda op: op.of_several,
    exact=Exact.BITS,
    after_grad=True,
    operands=lambda ops: bool(ops[0].body),
    examples=(_one_of_two,),
)
def loop_result(node: Node) -> Node | None:
    """Loops that do the same are one, and what nobody reads of them is left out."""
    source, index = node.inputs[0], node.attr("index")
    body, carries = source.attr("body"), source.attr("carries")
    rows = [index] if index >= carries else []
    if len(body.outputs) == carries + len(rows):
        return None
    outputs = [body.outputs[i] for i in (*range(carries), *rows)]
    attrs = {**dict(source.attrs), "body": Graph(outputs, body.inputs)}
    return item(apply(source.op, source.inputs, attrs), min(index, carries))


# ---- masks and parts that are shared --------------------------------------------------------


def _selects_floats(node: Node) -> bool:
    """Whether a node selects floats by a mask of their shape."""
    mask, x = node.inputs
    alike = mask.shape == x.shape and x.ndim > 0
    return alike and x.dtype.kind == "f" and x.dtype.itemsize <= 8


@rule_for(
    lambda op: op is select.op,
    exact=Exact.BITS,
    when=_selects_floats,
    after_grad=True,
    examples=(lambda x, y: select(y > 0, x),),
)
def shared_mask_as_bits(node: Node) -> Node | None:
    """The mask selects from several arrays: it is turned into bits once."""
    return keep_by_bits(*node.inputs)


def _parts(x: Node, axis: tuple[int, ...]) -> tuple[Node, Node, Node, Node]:
    """The largest element, the distances from it, their exponentials and the sum of these.

    The sum is 1 where the largest is inf, so that what is finite there is right.
    """
    top = max(x, axis=axis, keepdims=True)
    away = x - top
    raised = exp(away)
    total = sum(raised, axis=axis, keepdims=True)
    return top, away, raised, where(equal(top, np.inf), 1, total)


def _softmax(x: Node, axis: tuple[int, ...]) -> Node:
    _, _, raised, total = _parts(x, axis)
    y: Node = raised / total
    return y


def _log_softmax(x: Node, axis: tuple[int, ...]) -> Node:
    _, away, _, total = _parts(x, axis)
    y: Node = away - log(total)
    return y


def _logsumexp(x: Node, axis: tuple[int, ...], keepdims: bool) -> Node:
    top, _, _, total = _parts(x, axis)
    y = where(isfinite(top), log(total) + top, top)
    return y if keepdims else squeeze(y, axis=axis)


SOFTMAX_FAMILY: Mapping[Op, Callable[..., Node]] = {
    softmax.op: _softmax,
    log_softmax.op: _log_softmax,
    logsumexp.op: _logsumexp,
}


def _reads_known_axes(node: Node) -> bool:
    x = node.inputs[0]
    # Of float16 the kernels sum in float32, which is no part to share.
    return x.dtype.itemsize > 2 and are_known(x, node.attr("axis"))


@rule_for(
    lambda op: op in SOFTMAX_FAMILY,
    exact=Exact.ROUNDING,
    when=_reads_known_axes,
    after_grad=True,
    examples=(
        lambda x: softmax(x, axis=0),
        lambda x: log_softmax(x, axis=1),
        lambda x: logsumexp(x, axis=1, keepdims=True),
    ),
)
def softmax_in_parts(node: Node) -> Node | None:
    """Another function of the family reads the same operand: exponentials are taken once."""
    return SOFTMAX_FAMILY[node.op](*node.inputs, **dict(node.attrs))


# ---- slices side by side --------------------------------------------------------------------


def _span(node: Node) -> tuple[int, int, int] | None:
    """The one axis along which a node is placed in a part of zeros, from where, and to where."""
    found = None
    for axis, (size, triple) in enumerate(zip(node.shape, node.attr("index"), strict=True)):
        if triple in ((None, None, 1), (0, size, 1)):
            continue
        start, stop, step = triple
        bounds = isinstance(size, int) and isinstance(start, int) and isinstance(stop, int)
        if not bounds or step != 1 or found is not None:
            return None
        found = axis, start, stop
    return found


def _terms(node: Node) -> list[Node]:
    """The terms of a sum of sums of one type."""
    found: list[Node] = []
    pending = [node]
    while pending:
        x = pending.pop()
        is_sum = x.op is add.op and x.type == node.type
        pending += reversed(x.inputs) if is_sum else ()
        found += () if is_sum else (x,)
    return found


@rule_for(
    lambda op: op is add.op,
    exact=Exact.VALUES,
    after_grad=True,
    examples=(
        lambda x, y: _placed(x, 2) + (x[[0, 1, 2, 0]] + _placed(y, 0)),
        lambda x: _placed(x, 0) + _placed(x + 1, 3),
    ),
)
def slices_side_by_side(node: Node) -> Node | None:
    """Where one term is placed the others are 0: they are joined, and the zeros between them."""
    terms = _terms(node)
    placed = [x for x in terms if x.op is place.op]
    others = [x for x in terms if x.op is not place.op]
    spans = sorted((span, i) for i, x in enumerate(placed) if (span := _span(x)) is not None)
    axes = {span[0] for span, _ in spans}
    if len(others) > 1 or len(placed) < 2 or len(spans) < len(placed) or len(axes) > 1:
        return None
    (axis,), end = axes, 0
    parts: list[Node] = []

    def gap(rows: Size) -> list[Node]:
        shape = (*node.shape[:axis], rows, *node.shape[axis + 1 :])
        return [zeros(shape, dtype=node.dtype)] if rows else []

    for (_, start, stop), i in spans:
        if start < end:
            return None
        parts += [*gap(start - end), placed[i].inputs[0]]
        end = stop
    parts += gap(node.shape[axis] - end)
    joined = concat(parts, axis=axis)
    return others[0] + joined if others else joined


def _placed(x: Node, at: int) -> Node:
    """Zeros, of which one row is the largest elements of x."""
    index = ((at, at + 1, 1), (None, None, 1))
    return place(max(x, axis=0, keepdims=True), shape=(4, x.shape[1]), index=index)


# ---- slices of what is computed ---------------------------------------------------------------


def _of_elementwise(operands: Sequence[Op]) -> bool:
    return bool(operands[0].elementwise)


@rule_for(
    lambda op: op is slice_p.op,
    exact=Exact.ROUNDING,
    operands=_of_elementwise,
    after_grad=True,
    examples=(
        lambda x, y: slice_p(x + y, index=((None, None, 1), (1, 3, 1))),
        lambda x, y: slice_p(exp(x) * y[0], index=((1, 3, 1), (0, 2, 1))),
        lambda x, y: slice_p(x * y[:, :1] + 2, index=((None, None, 1), (2, 0, -1))),
    ),
)
def slice_of_elementwise(node: Node) -> Node | None:
    """The parts that are read do not overlap: operands are cut, not the result, in one loop.

    A part that is computed alone lies otherwise in memory, so that sums of it may round otherwise.
    """
    source, index = node.inputs[0], node.attr("index")
    operands = (_cut(x, source, index) for x in source.inputs)
    return apply(source.op, list(operands), dict(source.attrs))


def _cut(x: Node, whole: Node, index: Index) -> Node:
    """An operand of an elementwise node for a slice of that."""
    first = whole.ndim - x.ndim
    both = zip(x.shape, whole.shape[first:], index[first:], strict=True)
    every = (None, None, 1)
    own = tuple(every if size != of or t == (0, of, 1) else t for size, of, t in both)
    return x if all(t == every for t in own) else slice_p(x, index=own)


# ---- short axes -----------------------------------------------------------------------------


SHORT = 4  # elements


def is_sum(node: Node) -> bool:
    """Whether a node sums up floats as they are, along axes that are told, or along all."""
    told = node.op is vdot_p.op or (node.op is sum.op and node.attr("dtype") is None)
    return told and node.inputs[0].tensor.is_inexact


def in_parts(node: Node, parts: Sequence[Sequence[Node]]) -> Node:
    """A sum, from the parts along the last axis of each of its operands."""
    if node.op is vdot_p.op:
        return reduce(operator.add, [vdot_p(*xs) for xs in zip(*parts, strict=True)])
    last, keepdims = node.inputs[0].ndim - 1, node.attr("keepdims")
    axis = node.attr("axis")
    axes = range(last + 1) if axis is None else axis
    rest = tuple(i for i in axes if i != last)
    sums = [sum(x, axis=rest, keepdims=keepdims) if rest else x for x in parts[0]]
    if last not in axes:
        return concat([expand_dims(x, axis=-1) for x in sums], axis=-1)
    total: Node = reduce(operator.add, sums)
    return expand_dims(total, axis=-1) if keepdims else total


@rule_for(
    lambda op: op is sum.op or op is vdot_p.op,
    exact=Exact.ROUNDING,
    when=is_sum,
    after_grad=True,
    examples=(lambda x: sum(x * x, axis=1), lambda x: sum(x * x, axis=0, keepdims=True)),
)
def short_axis_apart(node: Node) -> Node | None:
    """Loops along an axis of a few elements are short: what is summed is computed for each."""
    x = node.inputs[0]
    count = x.shape[-1] if x.ndim else 0
    if not isinstance(count, int) or not 1 < count <= SHORT:
        return None
    return in_parts(node, [[x[..., i] for i in range(count)] for x in node.inputs])
