"""Gathers and scatters of one element in each row, which stay within rows.

They run with what else is made of the same rows: a loss of labels is one pass over its logits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symgrad.ir.dim_text import same_size
from symgrad.ir.dims import Size
from symgrad.ir.node import Node, constant_value
from symgrad.ops.index.gather import gather, scatter
from symgrad.ops.index.in_rows import add_in_rows, from_start, pick_in_rows
from symgrad.ops.index.indexing import INDEX
from symgrad.ops.index.take import in_range
from symgrad.ops.leaves import arange, arange_p
from symgrad.ops.order import argmax
from symgrad.ops.shape import broadcast_to, reshape, reshape_p
from symgrad.rewrite.rule import Exact, rule_for


def _counts(index: Node, size: Size, place: int) -> bool:
    """Whether indices are 0, 1, 2 … below a size, along the axis that is `place` from the end."""
    shape: list[Size] = [1] * index.ndim
    if index.ndim < place:
        return False
    shape[index.ndim - place] = size
    if index.shape != tuple(shape):
        return False
    while index.op in (reshape_p.op, broadcast_to.op) and same_size(index.inputs[0].size, size):
        index = index.inputs[0]
    if index.op is arange_p.op:
        return (index.attr("start"), index.attr("step")) == (0, 1)
    value = constant_value(index)
    return value is not None and np.array_equal(value.ravel(), np.arange(value.size))


def _column(x: Node, indices: Sequence[Node], axis: int) -> Node | None:
    """The index of each row's one element, in a column, if that is what indices of x are."""
    *rows, last = indices
    shape = (*x.shape[:-1], 1)
    if axis or len(indices) != x.ndim or x.ndim < 2 or x.shape[-1] == 0:
        return None
    if last.shape not in (shape, shape[:-1]):
        return None
    if not all(_counts(i, x.shape[k], last.ndim - k) for k, i in enumerate(rows)):
        return None
    source = last
    while source.op.view or (source.op.cast and source.dtype == INDEX):
        source = source.inputs[0]
    if source.op is not in_range.op or not same_size(source.attr("size"), x.shape[-1]):
        last = from_start(last, size=x.shape[-1], axis=x.ndim - 1)
    return last if last.shape == shape else reshape(last, shape)


@rule_for(
    lambda op: op is gather.op,
    exact=Exact.ROUNDING,
    last=True,
    examples=(lambda x: gather(x, arange(x.shape[0]), argmax(x, axis=1), axis=0),),
)
def gather_in_rows(node: Node) -> Node | None:
    """One element of each row is taken with what else is made of the rows."""
    x, *indices = node.inputs
    column = _column(x, indices, node.attr("axis"))
    if column is None:
        return None
    found = pick_in_rows(x, column)
    return found if found.shape == node.shape else reshape(found, node.shape)


@rule_for(
    lambda op: op is scatter.op,
    exact=Exact.ROUNDING,
    last=True,
    examples=(
        lambda x, u: scatter(x, u[:, 0], arange(x.shape[0]), argmax(x, axis=1), axis=0, mode="add"),
    ),
)
def scatter_in_rows(node: Node) -> Node | None:
    """What is added to one element of each row is added with what else is made of the rows."""
    x, u, *indices = node.inputs
    column = _column(x, indices, node.attr("axis")) if node.attr("mode") == "add" else None
    if column is None:
        return None
    return add_in_rows(x, u if u.shape == column.shape else reshape(u, column.shape), column)
