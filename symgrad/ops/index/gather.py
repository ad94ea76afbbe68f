"""Gathering by arrays of indices, and its transpose: a family closed under differentiation.

Indices are integers, counted from the end if they are negative, and stand for neighbouring axes of
which `axis` is the first; they broadcast together, and their shape takes the place of those axes.
One out of bounds is an error when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from symgrad.ir.along import Along, Cuts, Joined, Local, Piecewise
from symgrad.ir.dims import Shape, product
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, constant_value
from symgrad.ir.op import REAL, Cotangent, case
from symgrad.ir.operators import call
from symgrad.ir.types import DType, TensorType, broadcast_shapes
from symgrad.ops import batch
from symgrad.ops.declare import NodeLike, again, in_single, op, require
from symgrad.ops.flows import widened
from symgrad.ops.index import kernels
from symgrad.ops.index.indexing import INDEX
from symgrad.ops.leaves import arange, full, zeros_like
from symgrad.ops.select import is_result, select
from symgrad.ops.sides import Side, held

Mode: TypeAlias = Literal["set", "add", "max", "min"]
WITHIN = (-2.0, 1.0)  # in bounds for axes of two elements or more


def gathered_shape(shape: Shape, axis: int, indices: Sequence[TensorType]) -> Shape:
    """The shape with the axes that are indexed replaced by that of the indices."""
    found = broadcast_shapes(*(i.shape for i in indices))
    return (*shape[:axis], *found, *shape[axis + len(indices) :])


def is_unique(indices: Sequence[Node], sizes: Shape) -> bool:
    """Whether indices are known never to name one place twice."""
    if product(broadcast_shapes(*(i.shape for i in indices))) == 1:
        return True
    values = [constant_value(i) for i in indices]
    at: Any = 0
    for value, size in zip(values, sizes, strict=True):
        if value is None or (not isinstance(size, int) and (value < 0).any()):
            return False
        span = size if isinstance(size, int) else int(value.max(initial=0)) + 1
        at = at * span + np.where(value < 0, value + span, value)
    return bool(len(np.unique(at)) == at.size)


def _indexed(t: TensorType, axis: int, indices: Sequence[TensorType]) -> None:
    require("iu", *indices)
    if not 0 <= axis <= t.ndim - len(indices):
        raise ShapeError(f"{t!r} has no {len(indices)} axes from axis {axis} on")


# ---- gather ---------------------------------------------------------------------------------


def _gather_infer(t: TensorType, *indices: TensorType, axis: int) -> TensorType:
    _indexed(t, axis, indices)
    return t.with_shape(gathered_shape(t.shape, axis, indices))


def _gather_promote(t: TensorType, *indices: TensorType) -> tuple[DType | None, ...]:
    require("iu", *indices)
    return None, *(INDEX,) * len(indices)


def _gather_pullback(g: Node, y: Node, x: Node, *indices: Node, axis: int) -> Node:
    mode = "set" if is_unique(indices, x.shape[axis : axis + len(indices)]) else "add"
    wide = widened(g) if mode == "add" else g
    zeros = full(x.shape, 0, dtype=wide.dtype)
    return scatter(zeros, wide, *indices, axis=axis, mode=mode)


def _gather_along(types: tuple[TensorType, ...], cuts: Cuts, axis: int, first: int = 1) -> Along:
    """Along an axis that is indexed, rows are found in their piece if each asks for its own.

    The `first` of the operands are no indices.
    """
    cut = cuts[0]
    if cut is None or not axis <= cut.axis < axis + len(types) - first:
        return Piecewise.KEPT
    operand = first + cut.axis - axis
    index = cuts[operand]
    if index is None or not index.number:
        return None
    asked = types[operand].shape[index.axis]
    return Local(operand) if asked == types[0].shape[cut.axis] else None


def _scatter_along(types: tuple[TensorType, ...], cuts: Cuts, axis: int, mode: Mode) -> Along:
    """Into rows of their own, or from all pieces into an array that is whole."""
    if cuts[0] is not None:
        return _gather_along(types, cuts, axis, first=2)
    joins: dict[str, Along] = {
        "add": Joined("add", once=0), "max": Joined("maximum"), "min": Joined("minimum"),
    }  # fmt: skip
    return joins.get(mode)


def _rows_first(x: Node, axis: int, count: int) -> Node:
    """A batch with the axes that are indexed, which `axis` begins, right behind the batch axis."""
    moved = range(axis + 1, axis + 1 + count)
    rest = (i for i in range(1, x.ndim) if i not in moved)
    return x if axis == 0 else call("permute_dims", x, (0, *moved, *rest))


def _rows_back(y: Node, axis: int, count: int) -> Node:
    """`_rows_first`, undone."""
    before = range(1 + count, 1 + count + axis)
    rest = range(1 + count + axis, y.ndim)
    order = (0, *before, *range(1, 1 + count), *rest)
    return y if axis == 0 else call("permute_dims", y, order)


def _batch_indices(
    originals: Sequence[Node], inputs: Sequence[Node], flags: Sequence[bool]
) -> tuple[Node, list[Node], int]:
    """The number of each batch, the indices as they broadcast with it, and their rank before."""
    indices = batch.aligned(originals, inputs, flags)
    rank = max(i.ndim for i in originals)
    size = batch.batch_size(inputs, flags)
    return call("reshape", arange(size), (size, *(1,) * rank)), indices, rank


def _gather_batch(inputs: Sequence[Node], flags: Sequence[bool], node: Node, axis: int) -> Node:
    x, count = inputs[0], len(inputs) - 1
    if not any(flags[1:]):
        return gather(*inputs, axis=axis + 1)
    number, indices, rank = _batch_indices(node.inputs[1:], inputs[1:], flags[1:])
    if not flags[0]:
        return call("moveaxis", gather(x, *indices, axis=axis), axis, 0)
    found = gather(_rows_first(x, axis, count), number, *indices, axis=0)
    return _rows_back(found, axis, rank)


@op(
    infer=_gather_infer,
    kernel=kernels.gather,
    promote=_gather_promote,
    pullback=_gather_pullback,
    pushforward=again,
    batch=_gather_batch,
    along=_gather_along,
    flops=lambda *types, axis: 0,
    index_map=True,
    indices=1,
    out=True,
    preserves_zero=True,
    domain=(REAL, WITHIN, WITHIN),
    cases=(
        case((4,), (3,), axis=0),
        case((3, 2, 4), (5,), axis=1),
        case((2, 3, 4), (2, 1), (3,), axis=1),
        case((3, 2), (), axis=0),
        case((3, 2), (0, 2), axis=1),
    ),
    public=False,
)
def gather(x: NodeLike, index: NodeLike, /, *indices: NodeLike, axis: int) -> Node:
    """The elements of the first operand at the indices that the others are."""
    ...


# ---- scatter --------------------------------------------------------------------------------


def _scatter_infer(
    t: TensorType, u: TensorType, *indices: TensorType, axis: int, mode: Mode
) -> TensorType:
    _indexed(t, axis, indices)
    if mode != "set":
        require("iufc" if mode == "add" else "biuf", t)
    wanted = gathered_shape(t.shape, axis, indices)
    if u.shape != wanted:
        raise ShapeError(f"what is written to {wanted} has the shape {u.shape}")
    return t


def _scatter_promote(
    t: TensorType, u: TensorType, *indices: TensorType
) -> tuple[DType | None, ...]:
    require("iu", *indices)
    return None, t.dtype, *(INDEX,) * len(indices)


def _last(y: Node, u: Node, indices: Sequence[Node], axis: int) -> Node | None:
    """Where what was written last is; None if nothing is written twice."""
    sizes = y.shape[axis : axis + len(indices)]
    if is_unique(indices, sizes):
        return None
    shape = broadcast_shapes(*(i.shape for i in indices))
    number = call("reshape", arange(product(shape)), shape)
    owner = scatter(full(sizes, -1, dtype=INDEX), number, *indices, axis=0, mode="set")
    mask = gather(owner, *indices, axis=0) == number
    return call("reshape", mask, (*shape, *(1,) * (u.ndim - axis - len(shape))))


def _ties(y: Node, x: Node, u: Node, indices: Sequence[Node], axis: int) -> tuple[Node, Node, Node]:
    """Where x and u are the extremum that y is, and how many are, as a float32 at least."""
    of_x, of_u = is_result(x, y), is_result(u, gather(y, *indices, axis=axis))
    wide = np.result_type(y.dtype, np.float32)  # float16 counts to 2,048
    ones = (call("astype", m, wide) for m in (of_x, of_u))
    return of_x, of_u, scatter(*ones, *indices, axis=axis, mode="add")


def _scatter_vjp(
    g: Node, y: Node, x: Node, u: Node, *indices: Node, axis: int, mode: str
) -> tuple[Cotangent, ...]:
    nothing = (None,) * len(indices)
    if mode == "add":
        return g, gather(g, *indices, axis=axis), *nothing
    if mode == "set":
        of_u, last = gather(g, *indices, axis=axis), _last(y, u, indices, axis)
        of_x = scatter(g, full(u.shape, 0, dtype=g.dtype), *indices, axis=axis, mode="set")
        return of_x, of_u if last is None else select(last, of_u), *nothing
    x_ties, u_ties, count = _ties(y, x, u, indices, axis)
    share = g / count
    return select(x_ties, share), select(u_ties, gather(share, *indices, axis=axis)), *nothing


def _scatter_jvp(
    t: tuple[Cotangent, ...], y: Node, x: Node, u: Node, *indices: Node, axis: int, mode: str
) -> Cotangent:
    if t[0] is None and t[1] is None:
        return None
    by_x, by_u = (zeros_like(x) if d is None else d for d, x in zip(t, (x, u), strict=False))
    if mode == "set":
        return scatter(by_x, by_u, *indices, axis=axis, mode=mode)
    if mode == "add":
        return in_single(scatter)(by_x, by_u, *indices, axis=axis, mode=mode)
    x_ties, u_ties, count = _ties(y, x, u, indices, axis)
    parts = select(x_ties, by_x), select(u_ties, by_u)
    wide = (call("astype", t, count.dtype) for t in parts)
    return scatter(*wide, *indices, axis=axis, mode="add") / count


def _scatter_locked(
    side: Side, y: Node, x: Node, u: Node, *indices: Node, axis: int, mode: str
) -> Node:
    if mode in ("set", "add"):
        return y
    worst = -np.inf if mode == "max" else np.inf
    of_x, of_u, count = _ties(held(y), held(x), held(u), indices, axis)
    for s, t in side.both(x, u):
        s, t = call("where", of_x, s, worst), call("where", of_u, t, worst)
        best = scatter(s, t, *indices, axis=axis, mode=mode)
        of_x, of_u = of_x & (s == best), of_u & (t == gather(best, *indices, axis=axis))
    ones = (call("astype", m, count.dtype) for m in (of_x, of_u))
    count = scatter(*ones, *indices, axis=axis, mode="add")
    parts = (call("astype", v, count.dtype) for v in (select(of_x, x), select(of_u, u)))
    return scatter(*parts, *indices, axis=axis, mode="add") / count


def _scatter_batch(
    inputs: Sequence[Node], flags: Sequence[bool], node: Node, axis: int, mode: str
) -> Node:
    if not any(flags[2:]):
        x, u = batch.of_all(inputs[:2], flags[:2])
        return scatter(x, u, *inputs[2:], axis=axis + 1, mode=mode)
    number, indices, rank = _batch_indices(node.inputs[2:], inputs[2:], flags[2:])
    x, u, _ = batch.of_all([*inputs[:2], number], (*flags[:2], True))
    x, u = _rows_first(x, axis, len(indices)), _rows_first(u, axis, rank)
    found = scatter(x, u, number, *indices, axis=0, mode=mode)
    return _rows_back(found, axis, len(indices))


@op(
    infer=_scatter_infer,
    kernel=kernels.scatter,
    promote=_scatter_promote,
    vjp=_scatter_vjp,
    jvp=_scatter_jvp,
    locked=_scatter_locked,
    batch=_scatter_batch,
    along=_scatter_along,
    flops=lambda t, u, *indices, axis, mode: 0 if mode == "set" else u.size,
    indices=2,
    out=True,
    in_place=(0,),
    preserves_zero=True,
    zero_filled=True,
    domain=(REAL, REAL, WITHIN, WITHIN),
    cases=tuple(
        case(*shapes, axis=axis, mode=mode)
        for mode in ("add", "set", "max", "min")
        for *shapes, axis in (
            ((4,), (6,), (6,), 0),
            ((3, 2, 4), (3, 5, 4), (5,), 1),
            ((2, 3, 2), (2, 2, 3), (2, 1), (3,), 1),
            ((3, 2), (2,), (), 0),
            ((3, 2), (3, 0), (0,), 1),
        )
    ),
    public=False,
)
def scatter(
    x: NodeLike, u: NodeLike, index: NodeLike, /, *indices: NodeLike, axis: int, mode: str
) -> Node:
    """The first operand with the second written to indices: set, added, or by max or min.

    What is written to one place several times: of "set" the last stays, in the order of the
    indices; the extrema of "max" and "min" share the gradient with all that tie.
    """
    ...
