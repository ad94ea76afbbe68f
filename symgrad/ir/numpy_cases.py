"""Functions of NumPy's that are a case of another of ours, by NumPy's arguments.

Some are answered when the graph is built: what they ask is in the types of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.ir.dims import product
from symgrad.ir.errors import ShapeError, SymbolicError, UnsupportedError
from symgrad.ir.leaf_ops import INPUTS
from symgrad.ir.operators import call
from symgrad.ir.types import normalize_axes
from symgrad.ir.walk import topological

if TYPE_CHECKING:
    from symgrad.ir.node import Node


def unwritten(out: Any) -> None:
    """Refuse an array to write into."""
    if out is not None:
        raise UnsupportedError("nothing is written into an array (out=); write y = np.f(x)")


def _flat(x: Any) -> Node:
    return call("reshape", x, -1)


def _outer(a: Any, b: Any, out: None = None) -> Node:
    unwritten(out)
    return call("outer", _flat(a), _flat(b))


def _where(condition: Any, /, *choices: Any) -> Any:
    if not choices:
        return call("nonzero", condition)
    return call("where", call("astype", condition, "bool"), *choices)


def _linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    options = {"endpoint": endpoint, "dtype": dtype, "axis": axis, "device": device}
    found = call("linspace", start, stop, num, **options)
    if not retstep:
        return found
    steps = num - bool(endpoint)
    return found, (stop * 1.0 - start * 1.0) / steps if steps > 0 else np.nan


def _cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Node:
    if axis is not None:
        return call("cross", a, b, axis=axis)
    first, second = call("moveaxis", a, axisa, -1), call("moveaxis", b, axisb, -1)
    return call("moveaxis", call("cross", first, second), -1, axisc)


def _svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    return call("svd", a, full_matrices=full_matrices) if compute_uv else call("svdvals", a)


def _qr(a: Any, mode: str = "reduced") -> Any:
    return call("qr", a)[1] if mode == "r" else call("qr", a, mode=mode)


def _lower(name: str) -> Callable[..., Any]:
    """A function of Hermitian matrices, of which NumPy may be told to read the upper triangle."""

    def of_triangle(a: Any, UPLO: str = "L") -> Any:
        if UPLO.upper() == "U":
            a = call("matrix_transpose", call("conj", a))
        return call(name, a)

    return of_triangle


def _like(x: Any) -> Any:
    """An array of the shape and dtype of a node, which takes no memory."""
    return np.broadcast_to(np.empty((), x.dtype), x.shape) if hasattr(x, "tensor") else x


def _ix(*args: Any) -> tuple[Node, ...]:
    """Vectors, each along an axis of its own; a mask, which must be known, is where it holds."""
    nodes = [call("asarray", a) for a in args]
    if any(n.ndim != 1 for n in nodes):
        raise ShapeError(f"ix_ takes vectors, not {[n.type for n in nodes]}")
    nodes = [call("nonzero", n)[0] if n.dtype.kind == "b" else n for n in nodes]
    last = len(nodes) - 1
    shapes = [(1,) * i + (-1,) + (1,) * (last - i) for i in range(len(nodes))]
    return tuple(call("reshape", n, s) for n, s in zip(nodes, shapes, strict=True))


def _size(a: Any, axis: Any = None) -> Any:
    return product(a.shape[i] for i in normalize_axes(axis, a.ndim))


def _matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Node:
    node = call("asarray", A)
    if node.ndim < 2:
        return call("astype", call("any", node), "int64")
    if tol is None:
        return call("matrix_rank", node, rtol=rtol)
    above = call("greater", call("svdvals", node), call("expand_dims", tol, axis=-1))
    return call("count_nonzero", above, axis=-1)


def _min_scalar_type(a: Any, /) -> Any:
    if not a.ndim:
        raise UnsupportedError("the smallest dtype of a number depends on its value; write x.dtype")
    return a.dtype


# The shape or the dtype of what these give depends on the values.
COUNTED = frozenset(
    {
        *(np.argwhere, np.flatnonzero, np.intersect1d, np.setdiff1d, np.setxor1d, np.union1d),
        *(np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values, np.trim_zeros),
        *(np.roots, np.polydiv),
    }
)


def of_values(function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Any:
    """NumPy's own answer for the values of nodes, which are the same whenever a program runs.

    Raises `SymbolicError` where one is not known.
    """

    def value(x: Any) -> Any:
        if not hasattr(x, "tensor"):
            return type(x)(map(value, x)) if isinstance(x, (list, tuple)) else x
        if any(n.op in INPUTS for n in topological([x])):
            raise SymbolicError("it is known only when the program runs")
        return np.asarray(x)

    def node(x: Any) -> Any:
        if isinstance(x, tuple):
            return type(x)(*map(node, x)) if hasattr(x, "_fields") else tuple(map(node, x))
        return call("asarray", x) if isinstance(x, np.ndarray) else x

    return node(function(*map(value, args), **{k: value(v) for k, v in kwargs.items()}))


DIRECT: Mapping[Any, Callable[..., Any]] = MappingProxyType(
    {
        np.shape: lambda a: a.shape,
        np.ndim: lambda a: a.ndim,
        np.size: _size,
        np.iscomplexobj: lambda x: x.dtype.kind == "c",
        np.isrealobj: lambda x: x.dtype.kind != "c",
        np.common_type: lambda *arrays: np.common_type(*(np.empty(0, a.dtype) for a in arrays)),
        np.einsum_path: lambda *args, **how: np.einsum_path(*map(_like, args), **how),
        np.ix_: _ix,
        np.outer: _outer,
        np.i0: lambda x: call("i0", x if x.dtype.kind == "f" else call("astype", x, "float64")),
        np.where: _where,
        np.linspace: _linspace,
        np.cross: _cross,
        np.linalg.diagonal: lambda x, /, *, offset=0: call(
            "diagonal", x, offset=offset, axis1=-2, axis2=-1
        ),
        np.linalg.trace: lambda x, /, *, offset=0, dtype=None: call(
            "trace", x, offset=offset, axis1=-2, axis2=-1, dtype=dtype
        ),
        np.min_scalar_type: _min_scalar_type,
        np.linalg.matrix_rank: _matrix_rank,
        np.linalg.svd: _svd,
        np.linalg.qr: _qr,
        np.linalg.eigh: _lower("eigh"),
        np.linalg.eigvalsh: _lower("eigvalsh"),
    }
)
