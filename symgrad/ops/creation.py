"""Arrays from what is no array, and from the shape of one: linspace, meshgrid, tril, triu."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.errors import ShapeError, SymbolicError, UnsupportedError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import as_dtype
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.dtypes import result_type
from symgrad.ops.elementwise import floor, multiply
from symgrad.ops.leaves import arange, constant, require_cpu, zeros, zeros_like
from symgrad.ops.manipulate import broadcast_arrays
from symgrad.ops.select import select
from symgrad.ops.shape import astype, broadcast_to, moveaxis, permute_dims, reshape


@composite()
def asarray(
    obj: NodeLike, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Node:
    """A node as it is, or what NumPy makes an array of as a constant, converted to `dtype`.

    Raises `ValueError` for `copy=False` of anything but a node: a constant is a copy. Raises
    `DtypeError` for a number that the dtype cannot hold.

    >>> asarray([1, 2], dtype="float32").type
    float32[2]
    """
    require_cpu(device)
    if copy is False and not (isinstance(obj, Node) and dtype in (None, obj.dtype)):
        raise ValueError("asarray makes a constant, which is a copy; leave copy=False out")
    if dtype is None:
        return as_node(obj)
    if isinstance(obj, Node) or not isinstance(obj, (bool, int, float, complex, list, tuple)):
        return astype(obj, dtype)
    try:
        return constant(obj, dtype)
    except SymbolicError:  # a list with a node in it
        return astype(obj, dtype)


@composite()
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Node:
    """A constant of what another library's array holds, by the DLPack protocol; it is copied.

    >>> from_dlpack(np.ones(3)).type
    float64[3]
    """
    require_cpu(device)
    if copy is False and not isinstance(x, Node):
        raise ValueError("from_dlpack makes a constant, which is a copy; leave copy=False out")
    return x if isinstance(x, Node) else constant(np.from_dlpack(x))


@composite()
def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Node:
    """An array of any values: of zeros, so that a program does the same whenever it runs."""
    return zeros(shape, dtype=dtype, device=device)


@composite(numpy=(np.empty_like,))
def empty_like(x: NodeLike, /, *, dtype: Any = None, device: Any = None, shape: Any = None) -> Node:
    """An array of any values, of the shape and dtype of x or those that are given: zeros."""
    return zeros_like(x, dtype=dtype, device=device, shape=shape)


@composite(numpy=(np.linspace,))
def linspace(
    start: NodeLike,
    stop: NodeLike,
    /,
    num: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
    axis: int = 0,
) -> Node:
    """`num` numbers from `start` to `stop`, evenly spaced; the last is `stop` if `endpoint`.

    The ends may be nodes, which broadcast; the numbers are along a new axis. Raises
    `ShapeError` if `num` is no size.

    >>> linspace(placeholder("low", ()), 1.0, 5).type
    float64[5]
    """
    require_cpu(device)
    if isinstance(num, bool) or not isinstance(num, (int, np.integer)) or num < 0:
        raise ShapeError(f"linspace takes a number of elements, not {num!r}")
    if not isinstance(start, Node) and not isinstance(stop, Node):
        found = None if dtype is None else as_dtype(dtype)
        options: Any = {"endpoint": bool(endpoint), "dtype": found, "axis": axis}
        return constant(np.linspace(start, stop, int(num), **options))
    ends = [x if isinstance(x, (int, float, complex)) else as_node(x) for x in (start, stop)]
    found = result_type(*ends, 1.0)
    low, high = (astype(x, found) for x in ends)
    steps = np.linspace(0, 1, int(num), endpoint=bool(endpoint))
    part = constant(steps.reshape(-1, *(1,) * max(low.ndim, high.ndim)), found)
    y: Node = multiply(1 - part, low) + multiply(part, high)  # which meets both ends
    y = moveaxis(y, 0, axis)
    if dtype is None:
        return y
    return astype(floor(y) if as_dtype(dtype).kind in "iu" else y, dtype)


@composite(numpy=(np.meshgrid,))
def meshgrid(*arrays: NodeLike, indexing: str = "xy", sparse: bool = False) -> list[Node]:
    """Vectors as the coordinates of a grid, in a list: each repeated along the axes of the others.

    `indexing="ij"` gives the axes in the order of the arrays, "xy" swaps the first two. With
    `sparse` the other axes have size 1. Other arrays than vectors are flattened.

    >>> [y.shape for y in meshgrid(placeholder("x", 3), placeholder("y", "N"))]
    [(N, 3), (N, 3)]
    """
    if indexing not in ("xy", "ij"):
        raise UnsupportedError(f"the indexing of a meshgrid is 'xy' or 'ij', not {indexing!r}")
    nodes = [as_node(a) for a in arrays]
    shapes = [[1] * i + [-1] + [1] * (len(nodes) - i - 1) for i in range(len(nodes))]
    whole = [reshape(x, s) for x, s in zip(nodes, shapes, strict=True)]
    whole = whole if sparse else broadcast_arrays(*whole)
    if indexing == "ij" or len(nodes) < 2:
        return whole
    order = (1, 0, *range(2, len(nodes)))
    return [permute_dims(x, order) for x in whole]


def _triangle(x: Node, keep: Any) -> Node:
    if x.ndim == 0:
        raise ShapeError(f"a matrix has two axes or more; {x.type!r} has none")
    if x.ndim == 1:  # as in NumPy, each row is the vector
        x = broadcast_to(x, x.shape * 2)
    rows, columns = (arange(s) for s in x.shape[-2:])
    return select(keep(reshape(rows, (x.shape[-2], 1)), columns), x)


@composite(numpy=(np.tril,))
def tril(x: NodeLike, /, *, k: int = 0) -> Node:
    """Matrices with zeros above their k-th diagonal.

    >>> np.asarray(tril(np.ones((2, 2))))
    array([[1., 0.],
           [1., 1.]])
    """
    return _triangle(as_node(x), lambda row, column: column <= row + int(k))


@composite(numpy=(np.triu,))
def triu(x: NodeLike, /, *, k: int = 0) -> Node:
    """Matrices with zeros below their k-th diagonal.

    >>> np.asarray(triu(np.ones((2, 2)), k=1))
    array([[0., 1.],
           [0., 0.]])
    """
    return _triangle(as_node(x), lambda row, column: column >= row + int(k))
