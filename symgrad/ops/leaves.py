"""The leaves of a graph: placeholders, variables, constants, and arrays made from a shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.along import Along, Cuts
from symgrad.ir.dims import Dim, Shape, Size
from symgrad.ir.errors import DtypeError, GraphError, ShapeError, SymbolicError, UnsupportedError
from symgrad.ir.leaf_ops import PLACEHOLDER, VARIABLE
from symgrad.ir.node import Node, Variable, as_node, constant_node, leaf, new_cell
from symgrad.ir.op import case, require_ends
from symgrad.ir.operators import call
from symgrad.ir.types import DType, TensorType, as_dtype, as_shape, possible
from symgrad.ir.values import ArrayData
from symgrad.ops import kernels
from symgrad.ops.declare import NodeLike, composite, op


@composite()
def placeholder(
    name: str, shape: Any, dtype: Any = "float64", *, within: tuple[float, float] | None = None
) -> Node:
    """An input, fed by name or position when a program is called.

    `shape` is of ints and names: the same name is the same size throughout a program. All elements
    lie `within` two numbers, these included, if that is declared: other arrays, and NaN, are
    refused when they are fed, and what the range decides is not computed (see `Node.range`).

    >>> placeholder("x", ("N", 3), "float32").type
    float32[N, 3]
    """
    if not isinstance(name, str):
        raise GraphError(f"the name of a placeholder is a string, not {name!r}")
    type_ = TensorType(as_shape(shape), as_dtype(dtype))
    possible(type_)
    if within is None:
        return leaf(PLACEHOLDER, type_, name=name)
    try:
        low, high = map(float, within)
    except (TypeError, ValueError, OverflowError):
        raise GraphError(f"within is two numbers, (low, high), not {within!r}") from None
    require_ends((low, high), type_)
    return leaf(PLACEHOLDER, type_, name=name, within=(low, high))


@composite()
def variable(name: str, value: Any) -> Variable:
    """State with a name, kept between calls; `value` is copied. Programs update it.

    >>> variable("w", np.zeros(3)).type
    float64[3]
    """
    if not isinstance(name, str):
        raise GraphError(f"the name of a variable is a string, not {name!r}")
    data = ArrayData(value)
    made = leaf(VARIABLE, data.type, name=name, cell=new_cell(data.array.copy()))
    assert isinstance(made, Variable)
    return made


@composite()
def constant(value: Any, dtype: Any = None) -> Node:
    """A value that never changes; it is copied.

    >>> constant([1.0, 2.0]).type
    float64[2]
    """
    if isinstance(value, Node):
        raise GraphError("a node is no value; use it as it is, or np.asarray(node) for its value")
    return as_node(value) if dtype is None else constant_node(ArrayData(value, as_dtype(dtype)))


def _size_infer(*, dim: Size, dtype: DType) -> TensorType:
    return TensorType((), dtype)


def _size_kernel(dim: int, dtype: DType) -> Any:
    return dtype.type(dim)


@op(
    infer=_size_infer,
    kernel=_size_kernel,
    normalize=lambda dim, dtype: {"dim": dim, "dtype": np.dtype(dtype)},
    cases=(case(dim=7, dtype=np.dtype(np.float32)),),
    public=False,
)
def size_of(*, dim: Dim, dtype: DType) -> Node:
    """The size of a named dimension, as a number in the graph."""
    ...


def require_cpu(device: Any) -> None:
    """Refuse any device but the one that there is."""
    if device is not None and device != "cpu":
        raise UnsupportedError(f"the device of every array is 'cpu'; there is no {device!r}")


def _filled(value: Any, shape: Any, dtype: Any, device: Any) -> Node:
    require_cpu(device)
    node = constant_node(ArrayData(value, as_dtype("float64" if dtype is None else dtype)))
    wanted = as_shape(shape)
    return call("broadcast_to", node, wanted) if wanted else node


@composite()
def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Node:
    """An array of one value; `fill_value` may be a node, of a shape that broadcasts to `shape`."""
    require_cpu(device)
    if isinstance(fill_value, Node) or dtype is None:
        value = as_node(fill_value)
        if dtype is not None:
            value = call("astype", value, dtype)
        return call("broadcast_to", value, as_shape(shape))
    return _filled(fill_value, shape, dtype, device)


@composite()
def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Node:
    """An array of zeros, float64 unless `dtype` says otherwise."""
    return _filled(0, shape, dtype, device)


@composite()
def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Node:
    """An array of ones, float64 unless `dtype` says otherwise."""
    return _filled(1, shape, dtype, device)


@composite(numpy=(np.full_like,))
def full_like(
    x: NodeLike, /, fill_value: Any, *, dtype: Any = None, device: Any = None, shape: Any = None
) -> Node:
    """An array of one value, of the shape and dtype of x, or of those that are given."""
    like = as_node(x)
    found = like.dtype if dtype is None else dtype
    wanted = like.shape if shape is None else shape
    return full(wanted, fill_value, dtype=found, device=device)


@composite(numpy=(np.zeros_like,))
def zeros_like(x: NodeLike, /, *, dtype: Any = None, device: Any = None, shape: Any = None) -> Node:
    """Zeros of the shape and dtype of x, or of those that are given."""
    return full_like(x, 0, dtype=dtype, device=device, shape=shape)


@composite(numpy=(np.ones_like,))
def ones_like(x: NodeLike, /, *, dtype: Any = None, device: Any = None, shape: Any = None) -> Node:
    """Ones of the shape and dtype of x, or of those that are given."""
    return full_like(x, 1, dtype=dtype, device=device, shape=shape)


def _arange_infer(*, start: int, step: int, count: Size, dtype: DType) -> TensorType:
    if dtype.kind == "b":
        raise DtypeError("arange counts in numbers, not in bool")
    return TensorType((count,), dtype)


@op(
    infer=_arange_infer,
    kernel=kernels.arange_from,
    cases=(case(start=2, step=-3, count=4, dtype=np.dtype(np.float32)),),
)
def arange_p(*, start: int, step: int, count: Size, dtype: DType) -> Node:
    """start + step * i for i below count."""
    ...


def _number(value: Any) -> Any:
    """A number, or that of a node that has a value before anything is fed."""
    try:
        found = np.asarray(value)[()] if isinstance(value, Node) else value
    except SymbolicError:
        found = None
    if not isinstance(found, (int, float, np.integer, np.floating)):
        raise DtypeError("arange takes numbers, not nodes: a shape must be known when it is built")
    return found


@composite()
def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Node:
    """start, start + step, … below stop. `stop` may be a named dimension: `arange(x.shape[0])`."""
    require_cpu(device)
    if stop is None:
        start, stop = 0, start
    if isinstance(stop, Dim):
        if start != 0 or step != 1:
            raise ShapeError("arange to a named dimension begins at 0 and has step 1")
        return arange_p(start=0, step=1, count=stop, dtype=as_dtype(dtype or "int64"))
    start, stop, step = map(_number, (start, stop, step))
    if step == 0:
        raise ShapeError("the step of arange cannot be 0")
    found = None if dtype is None else as_dtype(dtype)
    if found == np.bool_:
        raise DtypeError("arange counts in numbers, not in bool; write astype(arange(...), 'bool')")
    return as_node(np.arange(start, stop, step, dtype=found))


def _eye_infer(*, n_rows: Size, n_cols: Size, k: int, dtype: DType) -> TensorType:
    return TensorType((n_rows, n_cols), dtype)


def _eye_along(types: tuple[TensorType, ...], cuts: Cuts, **attrs: Any) -> Along:
    """Rows and columns are numbered, and compared."""
    return _eye_of_numbers


def _eye_of_numbers(*, n_rows: Size, n_cols: Size, k: int, dtype: DType) -> Node:
    rows, columns = arange(n_rows), arange(n_cols)
    return call("astype", call("reshape", rows, (n_rows, 1)) + k == columns, dtype)


@op(
    infer=_eye_infer,
    along=_eye_along,
    kernel=kernels.ones_on_diagonal,
    cases=(case(n_rows=3, n_cols=4, k=-1, dtype=np.dtype(np.float32)),),
)
def eye_p(*, n_rows: Any, n_cols: Any, k: int, dtype: DType) -> Node:
    """Ones on the k-th diagonal."""
    ...


@composite()
def eye(
    n_rows: Any, n_cols: Any = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Node:
    """A matrix of zeros with ones on its k-th diagonal; sizes may be named dimensions."""
    require_cpu(device)
    shape: Shape = as_shape((n_rows, n_rows if n_cols is None else n_cols))
    found = as_dtype("float64" if dtype is None else dtype)
    if type(k) is int:  # beyond int64 there is no element either way
        k = max(-(2**63), min(k, 2**63 - 1))
    return eye_p(n_rows=shape[0], n_cols=shape[1], k=k, dtype=found)
