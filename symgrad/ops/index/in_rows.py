"""One element of each row, as a loss takes that of each label, and what is added to it.

They are gathers and scatters that know that they stay within rows, so that they can be computed
with what else is made of these rows.
"""

from __future__ import annotations

from symgrad.ir.dims import Size
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node
from symgrad.ir.op import REAL, Cotangent, case
from symgrad.ir.types import TensorType
from symgrad.ops import batch
from symgrad.ops.declare import NodeLike, again, op, require
from symgrad.ops.index import kernels
from symgrad.ops.index.indexing import INDEX
from symgrad.ops.leaves import zeros_like
from symgrad.ops.rows import rows

WITHIN = (0.0, 1.0)
CASES = (case((3, 2), (3, 1)), case((2, 3, 4), (2, 3, 1)))


def _check(x: TensorType, index: TensorType) -> None:
    require("iu", index)
    if x.ndim < 2 or index.shape != (*x.shape[:-1], 1) or x.shape[-1] == 0:
        raise ShapeError(f"{index!r} has no number for each row of {x!r}")


def _pick_infer(x: TensorType, index: TensorType) -> TensorType:
    _check(x, index)
    return x.with_shape(index.shape)


def _by_rows(x: TensorType, *others: TensorType) -> tuple[bool, ...]:
    within = rows(x) == rows(others[-1])
    return (within,) * (1 + len(others))


def _pick_back(g: Node, y: Node, x: Node, index: Node) -> Node:
    back: Node = add_in_rows(zeros_like(x), g, index)
    return back


@op(
    infer=_pick_infer,
    kernel=kernels.pick_in_rows,
    promote=lambda x, index: (None, INDEX),
    index_map=True,
    pullback=_pick_back,
    pushforward=again,
    by_rows=_by_rows,
    batch=batch.repeated,
    flops=lambda x, index: 0,
    indices=1,
    out=True,
    preserves_zero=True,
    domain=(REAL, WITHIN),
    cases=CASES,
    public=False,
)
def pick_in_rows(x: NodeLike, index: NodeLike, /) -> Node:
    """Of each row the element at an index, which counts from 0; beyond the row its end."""
    ...


def _add_infer(x: TensorType, u: TensorType, index: TensorType) -> TensorType:
    require("iufc", x)
    _check(x, index)
    if u.shape != index.shape:
        raise ShapeError(f"what is added at {index!r} is {u!r}")
    return x


def _add_jvp(t: tuple[Cotangent, ...], y: Node, x: Node, u: Node, index: Node) -> Cotangent:
    if t[0] is None and t[1] is None:
        return None
    by_x, by_u = (zeros_like(v) if d is None else d for d, v in zip(t, (x, u), strict=False))
    return add_in_rows(by_x, by_u, index)


@op(
    infer=_add_infer,
    kernel=kernels.add_in_rows,
    promote=lambda x, u, index: (None, x.dtype, INDEX),
    vjp=lambda g, y, x, u, index: (g, pick_in_rows(g, index), None),
    jvp=_add_jvp,
    by_rows=_by_rows,
    batch=batch.repeated,
    flops=lambda x, u, index: u.size,
    indices=2,
    out=True,
    in_place=(0,),
    preserves_zero=True,
    zero_filled=True,
    domain=(REAL, REAL, WITHIN),
    cases=tuple(case(c.shapes[0], c.shapes[1], c.shapes[1]) for c in CASES),
    public=False,
)
def add_in_rows(x: NodeLike, u: NodeLike, index: NodeLike, /) -> Node:
    """The first operand with the second added to one element of each row; see `pick_in_rows`."""
    ...


def _from_start_infer(x: TensorType, *, size: Size, axis: int) -> TensorType:
    require("iu", x)
    return x


@op(
    infer=_from_start_infer,
    kernel=kernels.from_start,
    piecewise_constant=True,
    ill_conditioned=True,
    batch=batch.in_front,
    flops=lambda *types, **attrs: 0,
    out=True,
    preserves_zero=True,
    domain=((-4.0, 4.0),),
    dtypes="int64 uint8",
    cases=(case((3, 4), size=5, axis=0), case((), size=5, axis=1), case((0,), size=5, axis=0)),
    public=False,
)
def from_start(x: NodeLike, /, size: Size, axis: int) -> Node:
    """Indices of an axis of so many elements, counted from its start and not from its end.

    Those that do not lie within it are refused when the program runs.
    """
    ...
