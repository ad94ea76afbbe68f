"""Rules for where a pass has seen all readers: results alone, shared masks and parts.

A pass that has looked at the whole graph says at which nodes: `rule.only(at)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, apply
from symgrad.ir.op import REGISTRY, Op
from symgrad.ops.activations import log_softmax, logsumexp, softmax
from symgrad.ops.elementwise import exp, log
from symgrad.ops.identity import scale_gradient, stop_gradient
from symgrad.ops.leaves import eye
from symgrad.ops.linalg.decompositions import svd
from symgrad.ops.linalg.eigenvalues import eigh
from symgrad.ops.logic import equal, isfinite
from symgrad.ops.loops.scan import map
from symgrad.ops.reduce import max, sum
from symgrad.ops.select import keep_by_bits, select, where
from symgrad.ops.shape import item, squeeze
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
    examples=(lambda x: svd(x)[1], lambda x: eigh(x[:, :1] * eye(2, dtype=x.dtype))[0]),
)
def result_found_alone(node: Node) -> Node | None:
    """Only one result is read: compute that one alone, in its own way, which rounds differently."""
    return _alone(node)


@rule_for(
    lambda op: op.of_several,
    exact=Exact.BITS,
    after_grad=True,
    operands=lambda ops: bool(ops[0].body),
    examples=(lambda x: map(lambda row: (exp(row), log(row)), x)[0],),
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
