"""The methods that NumPy's arrays have and that build graphs: `x.sum(0)` is `sg.sum(x, axis=0)`.

Each finds its function by name, so that this floor imports no op. What writes into an array, or
tells of its memory, a node has not: `missing` says what to write instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.ir.errors import ShapeError
from symgrad.ir.masked import reduced
from symgrad.ir.op import REGISTRY
from symgrad.ir.operators import call

if TYPE_CHECKING:
    from symgrad.ir.node import Node

# The methods and attributes of NumPy's arrays that nodes have not, and what to write.
NO_METHODS: Mapping[str, str] = MappingProxyType(
    {
        "fill": "a node is frozen; write x = sg.full_like(x, value)",
        "partition": "a node is frozen; write x = sg.partition(x, kth)",
        "put": "a node is frozen; write x = x.at[indices].set(values) of x.ravel()",
        "resize": "a node is frozen; write x = sg.resize(x, shape)",
        "sort": "a node is frozen; write x = sg.sort(x)",
        "setfield": "a node has no memory; write x = sg.astype(x, dtype)",
        "byteswap": "a node has no memory; the order of bytes is that of the machine",
        "setflags": "a node has no memory, and is never written into",
        "getfield": "a node has no memory to view; write sg.astype(x, dtype)",
        "view": "a node has no memory to view; write sg.astype(x, dtype), or sg.real and sg.imag",
        "nonzero": "how many there are depends on data; write sg.nonzero(x, size=...)",
        "base": "a node has no memory",
        "ctypes": "a node has no memory; its value has: np.asarray(program(...))",
        "data": "a node has no memory; its value has: np.asarray(program(...))",
        "flags": "a node has no memory",
        "flat": "write sg.ravel(x)",
        "strides": "a node has no memory",
        "dump": "write sg.Graph(...).save(path), or save the array that a program gives",
        "dumps": "write pickle.dumps(x), or save the array that a program gives",
        "tobytes": "a node has no value before a program runs; write program(...).tobytes()",
        "tofile": "a node has no value before a program runs; write program(...).tofile(path)",
    }
)


def missing(name: str) -> str:
    """The message about an attribute that nodes have not."""
    hint = NO_METHODS.get(name)
    if hint is None and name in REGISTRY.functions:
        hint = f"write {REGISTRY.qualified_name(name)}(x)"
    return f"a node has no attribute {name!r}" + (f"; {hint}" if hint else "")


class ArrayMethods:
    """Mixin of the methods of NumPy's arrays, with NumPy's arguments."""

    __slots__ = ()

    # ---- reductions -------------------------------------------------------------------------

    def sum(
        self,
        axis: Any = None,
        dtype: Any = None,
        *,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Node:
        """The sum over axes; see `sg.sum`."""
        options = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
        return reduced("sum", self, where=where, initial=initial, **options)

    def prod(
        self,
        axis: Any = None,
        dtype: Any = None,
        *,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Node:
        """The product over axes; see `sg.prod`."""
        options = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
        return reduced("prod", self, where=where, initial=initial, **options)

    def max(
        self, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Node:
        """The largest element over axes; see `sg.max`."""
        return reduced("max", self, where=where, initial=initial, axis=axis, keepdims=keepdims)

    def min(
        self, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Node:
        """The smallest element over axes; see `sg.min`."""
        return reduced("min", self, where=where, initial=initial, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, *, keepdims: bool = False, where: Any = True) -> Node:
        """Whether all elements over axes are true; see `sg.all`."""
        return reduced("all", self, where=where, axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, *, keepdims: bool = False, where: Any = True) -> Node:
        """Whether any element over axes is true; see `sg.any`."""
        return reduced("any", self, where=where, axis=axis, keepdims=keepdims)

    def mean(
        self, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True
    ) -> Node:
        """The mean over axes, of x converted to `dtype`; see `sg.mean`."""
        return _averaged("mean", self, dtype, where, axis=axis, keepdims=keepdims)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        *,
        ddof: float = 0,
        keepdims: bool = False,
        where: Any = True,
    ) -> Node:
        """The variance over axes; see `sg.var`."""
        options = {"axis": axis, "keepdims": keepdims, "correction": ddof}
        return _averaged("var", self, dtype, where, **options)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        *,
        ddof: float = 0,
        keepdims: bool = False,
        where: Any = True,
    ) -> Node:
        """The standard deviation over axes; see `sg.std`."""
        options = {"axis": axis, "keepdims": keepdims, "correction": ddof}
        return _averaged("std", self, dtype, where, **options)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Node:
        """Where the largest element is; see `sg.argmax`."""
        return call("argmax", self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Node:
        """Where the smallest element is; see `sg.argmin`."""
        return call("argmin", self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Node:
        """The cumulative sum; see `sg.cumulative_sum`."""
        return call("cumulative_sum", self, axis=axis, dtype=dtype)

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Node:
        """The cumulative product; see `sg.cumulative_prod`."""
        return call("cumulative_prod", self, axis=axis, dtype=dtype)

    # ---- shapes -----------------------------------------------------------------------------

    def reshape(self, *shape: Any, order: str = "C") -> Node:
        """The same elements in another shape, `x.reshape(2, -1)`; see `sg.reshape`."""
        wanted = shape[0] if len(shape) == 1 else shape
        return call("reshape", self, wanted, order=order)

    def ravel(self, order: str = "C") -> Node:
        """The elements as a vector; see `sg.ravel`."""
        return call("reshape", self, (-1,), order=order)

    def flatten(self, order: str = "C") -> Node:
        """The elements as a vector; see `sg.ravel`."""
        return call("reshape", self, (-1,), order=order)

    def transpose(self, *axes: Any) -> Node:
        """The axes in reverse order, or in the order that is given; see `sg.permute_dims`."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return call("permute_dims", self, order or None)

    def swapaxes(self, axis1: int, axis2: int) -> Node:
        """Two axes exchanged; see `sg.swapaxes`."""
        return call("swapaxes", self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Node:
        """Without axes of size 1; see `sg.squeeze`."""
        return call("squeeze", self, axis=axis)

    def repeat(self, repeats: Any, axis: int | None = None) -> Node:
        """Each element so many times; see `sg.repeat`."""
        return call("repeat", self, repeats, axis=axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
        """A diagonal; see `sg.diagonal`."""
        return call("diagonal", self, offset=offset, axis1=axis1, axis2=axis2)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Node:
        """The sum of a diagonal; see `sg.trace`."""
        return call("trace", self, offset=offset, axis1=axis1, axis2=axis2, dtype=dtype)

    # ---- elements ---------------------------------------------------------------------------

    def astype(self, dtype: Any, *, copy: bool = True) -> Node:
        """x converted to a dtype; see `sg.astype`."""
        return call("astype", self, dtype, copy=copy)

    def clip(self, min: Any = None, max: Any = None) -> Node:
        """x between bounds; see `sg.clip`."""
        return call("clip", self, min, max)

    def round(self, decimals: int = 0) -> Node:
        """x rounded; see `sg.round`."""
        return call("round", self, decimals=decimals)

    def conj(self) -> Node:
        """The complex conjugate; see `sg.conj`."""
        return call("conj", self)

    def conjugate(self) -> Node:
        """The complex conjugate; see `sg.conj`."""
        return call("conj", self)

    @property
    def real(self) -> Node:
        """The real part; see `sg.real`."""
        return call("real", self)

    @property
    def imag(self) -> Node:
        """The imaginary part; see `sg.imag`."""
        return call("imag", self)

    def copy(self, order: str = "C") -> Node:
        """The node itself, into which nothing can be written."""
        return call("asarray", self)

    def take(self, indices: Any, axis: int | None = None) -> Node:
        """The elements at indices; see `sg.take`."""
        return call("take", self, indices, axis=axis)

    def compress(self, condition: Any, axis: int | None = None) -> Node:
        """The elements where a condition that is known holds; see `sg.compress`."""
        return call("compress", condition, self, axis)

    def choose(self, choices: Any, *, mode: str = "raise") -> Node:
        """The elements of choices by their numbers; see `sg.choose`."""
        return call("choose", self, choices, mode=mode)

    def argsort(self, axis: int | None = -1, *, kind: str | None = None) -> Node:
        """The indices that sort; see `sg.argsort`."""
        return call("argsort", self, axis=axis)

    def argpartition(self, kth: Any, axis: int | None = -1) -> Node:
        """The indices that give a partition; see `sg.argpartition`."""
        return call("argpartition", self, kth, axis)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Node:
        """Where elements of v go into this vector, which is in order; see `sg.searchsorted`."""
        return call("searchsorted", self, v, side=side, sorter=sorter)

    def dot(self, b: Any) -> Node:
        """NumPy's product; see `sg.dot`."""
        return call("dot", self, b)

    # ---- values -----------------------------------------------------------------------------

    @property
    def itemsize(self: Any) -> int:
        """The bytes of one element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self: Any) -> Any:
        """The bytes of all elements: a number, or an expression of named dimensions."""
        return self.size * self.dtype.itemsize

    def item(self, *args: Any) -> Any:
        """The value of a node without placeholders that has one element, as a Python number.

        With indices it is the element there. Raises `SymbolicError` where there is a placeholder.
        """
        value = np.asarray(self)
        if not args and value.size != 1:
            raise ShapeError(f"item() takes an array of one element, not of shape {value.shape}")
        return value.item(*args)

    def tolist(self) -> Any:
        """The value of a node without placeholders, as nested lists of Python numbers."""
        return np.asarray(self).tolist()


def _averaged(name: str, x: Any, dtype: Any, where: Any, **options: Any) -> Node:
    node = x if dtype is None else call("astype", x, dtype)
    return reduced(name, node, where=where, **options)
