"""Flows: cotangents and tangents on their way through an op.

A flow that was masked is a selection, and stays one: what it is multiplied by is multiplied inside,
so that nothing flows where the mask is false, not even an inf or a NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from symgrad.ir.node import Node, as_node, constant_node
from symgrad.ir.op import Cotangent
from symgrad.ir.operators import call
from symgrad.ir.origin import built_as, current_origin
from symgrad.ir.values import ArrayData

HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)
ARRAYS = (Node, np.ndarray, np.generic)


class Masked(NamedTuple):
    """A partial derivative in pieces: by mask, and 0 where no mask holds. Masks do not overlap.

    What flows is selected by the masks, so that nothing flows elsewhere, not even an inf.
    """

    pieces: tuple[tuple[Node, float], ...]


Partial: TypeAlias = Node | int | float | Masked | None


# ---- selections -----------------------------------------------------------------------------


def is_selection(flow: Any) -> bool:
    """Whether what flows is one node, selected by a mask: its operands are mask and values."""
    return isinstance(flow, Node) and flow.op.selection


def masked(mask: Node, flow: Node) -> Node:
    """A cotangent or tangent where a mask is true, else 0; of a selection, where both masks are."""
    if is_selection(flow):
        other, flow = flow.inputs
        mask = call("logical_and", mask, other)
    return call("select", mask, flow)


def within(flow: Node, function: Callable[[Node], Node]) -> Node:
    """A function of what flows that is 0 at 0: of a selection, it is done before selecting."""
    if not is_selection(flow):
        return function(flow)
    mask, x = flow.inputs
    return still_selected(flow, mask, within(x, function))


def still_selected(flow: Node, mask: Node, x: Node) -> Node:
    """A selection after an op that it went through; it is told as the one that it was."""
    with built_as(flow.origin.moved_to(current_origin())):
        return call("select", mask, x)


def added(a: Node, b: Node) -> Node:
    """The sum of two flows; of two selections it is a selection."""
    if not (is_selection(a) and is_selection(b)):
        return call("add", a, b)
    (mask, x), (other, y) = a.inputs, b.inputs
    if mask is other:
        return still_selected(a, mask, x + y)
    return masked(call("logical_or", mask, other), a + b)


def total(*flows: Cotangent) -> Cotangent:
    """The sum of those that there are."""
    found: Cotangent = None
    for flow in flows:
        found = flow if found is None else found if flow is None else found + flow
    return found


# ---- partial derivatives --------------------------------------------------------------------


def chain(flow: Node, partial: Partial) -> Cotangent:
    """A partial derivative applied: to a cotangent in reverse mode, to a tangent in forward mode.

    A boolean partial is a mask. So a selection stays outermost, and an infinite slope where it is
    false meets nothing. What was narrowed to float16, as a cotangent that was added up in float32
    is, is multiplied as wide as it was and narrowed then: the slope may be what the user wrote
    against overflow.
    """
    if partial is None:
        return None
    if isinstance(partial, Masked):
        return _chain_pieces(flow, partial)
    if isinstance(partial, Node) and partial.dtype.kind == "b":
        return masked(partial, flow)
    return within(flow, lambda x: _scaled(x, partial))


def _scaled(flow: Node, slope: Node | float) -> Node:
    number = None if isinstance(slope, Node) else slope
    scaled: Node
    if number == 1:
        scaled = flow
    elif was_wider(flow) and (not isinstance(slope, Node) or slope.dtype == HALF):
        scaled = call("astype", chain(flow.inputs[0], slope), HALF)
    elif number == -1:
        scaled = call("negative", flow)
    else:
        scaled = call("multiply", flow, slope)
    return scaled


def _chain_pieces(flow: Node, partial: Masked) -> Cotangent:
    """One selection by all the masks, of what flows times the slope of the piece."""
    pieces = [(mask, slope) for mask, slope in partial.pieces if slope != 0]
    if not pieces:
        return None
    mask, first = pieces[0]
    slopes: Any = first
    for other, slope in pieces[1:]:
        if slope != first or isinstance(slopes, Node):
            held = constant_node(ArrayData(first, flow.dtype)) if slopes is first else slopes
            slopes = call("where", other, slope, held)
        mask = call("logical_or", mask, other)
    return masked(mask, within(flow, lambda x: _scaled(x, slopes)))


# ---- float16 --------------------------------------------------------------------------------


def widened(x: Any) -> Any:
    """x as float32 if it is an array of float16."""
    if isinstance(x, ARRAYS) and x.dtype == HALF:
        return call("astype", as_node(x), SINGLE)
    return x


def was_wider(flow: Node) -> bool:
    """Whether what flows is float16 that was narrowed from a wider float."""
    return flow.op.cast and flow.dtype == HALF and flow.inputs[0].dtype.kind == "f"
