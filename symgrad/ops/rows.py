"""Rows: what makes each row of its result of the same row of an operand.

The rows of an array are its parts along its first axis that is longer than 1. An elementwise op, a
view, a reduction within rows: a run of such ops can be computed tile by tile. A reduction over
the rows themselves can be too, tile by tile, and what the tiles give is joined in the end.
"""

from __future__ import annotations

from typing import TypeAlias

from symgrad.ir.dims import Size
from symgrad.ir.node import Node
from symgrad.ir.types import TensorType, Type
from symgrad.ops.batch import over_axes

# Which axis the rows of an array lie along, counted from the last one, and how many there are.
Rows: TypeAlias = tuple[int, Size]


def rows(type_: Type) -> Rows | None:
    """The rows of an array of a type; None if it has no axis longer than 1."""
    if isinstance(type_, TensorType):
        for i, size in enumerate(type_.shape):
            if size != 1:
                return len(type_.shape) - i, size
    return None


def works_by_rows(node: Node) -> bool:
    """Whether a node is of an op that can work row by row, if its attributes let it."""
    op = node.op
    if not node.inputs or op.identity or not isinstance(node.type, TensorType):
        return False
    known = op.elementwise or op.view or op.by_rows is not None or is_row_source(node)
    return known or bool(op.combiner) or op.batch is over_axes


def is_row_source(node: Node) -> bool:
    """Whether rows of a node can be made alone, of no rows: what one key draws."""
    return node.op.row_source and node.inputs[0].ndim == 1 and rows(node.type) is not None


def keeps_rows(x: Node, node: Node) -> bool:
    """Whether each row of a node that works by rows is made of the same row of an operand."""
    t, made, op = x.type, node.type, node.op
    of_x = rows(t)
    if of_x is None:
        return False
    if (made is t or made == t) and op.elementwise:
        return True
    own = rows(made)
    if own is None or of_x[1] != own[1]:
        return False
    if op.elementwise:
        return of_x == own
    if op.by_rows is not None:
        flags = op.by_rows(*(operand.type for operand in node.inputs))
        return all(flag for operand, flag in zip(node.inputs, flags, strict=True) if operand is x)
    first, attrs = x.ndim - of_x[0], dict(node.attrs)
    if "axis" in attrs:
        axis = attrs["axis"]
        return first not in axis if isinstance(axis, tuple) else first != axis
    if "axes" in attrs:
        moved: bool = attrs["axes"][node.ndim - own[0]] == first
        return moved
    if "index" in attrs:
        # A part along the rows of a square array lies elsewhere, though its rows are as many.
        kept: bool = of_x == own and attrs["index"][first][2] == 1
        return kept
    return of_x == own or x.size == node.size
