"""The methods that NumPy's arrays have and that build graphs: `x.sum(0)` is `sg.sum(x, axis=0)`.

Each finds its function by name, so that this floor imports no op. What writes into an array, or
tells of its memory, a node has not: `missing` says what to write instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.ir.errors import DtypeError, ShapeError, UnsupportedError
from symgrad.ir.masked import reduced
from symgrad.ir.messages import telling_methods
from symgrad.ir.op import REGISTRY
from symgrad.ir.operators import call
from symgrad.ir.types import as_dtype

if TYPE_CHECKING:
    from symgrad.ir.node import Node

# The methods and attributes of NumPy's arrays that nodes have not, and what to write.
NO_METHODS: Mapping[str, str] = MappingProxyType(
    {
        "backward": "gradients are nodes, which sg.grad(loss, wrt) makes",
        "grad": "gradients are nodes, which sg.grad(loss, x) makes",
        "detach": "write sg.stop_gradient(x)",
        "requires_grad": "a gradient is by what you ask for: sg.grad(loss, wrt)",
        "requires_grad_": "a gradient is by what you ask for: sg.grad(loss, wrt)",
        "get_value": "the value of a variable is w.value",
        "set_value": "write w.value = array",
        "add_": "a node is frozen; write x = x + y",
        "clone": "a node is frozen, and needs no copy; write x",
        "permute": "write sg.permute_dims(x, axes)",
        "dim": "write x.ndim",
        "cpu": "a node has no memory; the result of a program is an array of NumPy's",
        "block_until_ready": "a node has no memory; the result of a program is an array, and there",
        "run": "write sg.compile(inputs, x), and call it",
        "assign_add": "write in a program sg.compile(…, updates={w: w + change})",
        "assign": "write w.value = array, or in a program sg.compile(…, updates={w: next})",
        "eval": "write sg.compile(inputs, x), and call it",
        "float": "write sg.astype(x, 'float32')",
        "double": "write sg.astype(x, 'float64')",
        "long": "write sg.astype(x, 'int64')",
        "unsqueeze": "write sg.expand_dims(x, axis=axis)",
        "to": "write sg.astype(x, dtype); a program has a device: sg.compile(…, backend='jax')",
        "cuda": "a program has a device: sg.compile(…, backend='jax', device='gpu')",
        "numpy": "write np.asarray(x), or compile what depends on placeholders",
        "fill": "a node is frozen; write x = sg.full_like(x, value)",
        "partition": "a node is frozen; write x = sg.partition(x, kth)",
        "put": "a node is frozen; write x = x.at[indices].set(values) of x.ravel()",
        "resize": "a node is frozen; write x = sg.resize(x, shape)",
        "sort": "a node is frozen; write x = sg.sort(x)",
        "setfield": "a node has no memory; write x = sg.astype(x, dtype)",
        "byteswap": "a node has no memory; the order of bytes is that of the machine",
        "setflags": "a node has no memory, and is never written into",
        "getfield": "a node has no memory to view; write sg.astype(x, dtype)",
        "view": "a node has no memory to view; write sg.reshape(x, shape), sg.astype(x, dtype), or "
        "sg.real and sg.imag",
        "base": "a node has no memory",
        "ctypes": "a node has no memory; its value has: np.asarray(program(...))",
        "data": "a node has no memory; its value has: np.asarray(program(...))",
        "flags": "a node has no memory",
        "strides": "a node has no memory",
        "dump": "write sg.Graph(...).save(path), or save the array that a program gives",
        "dumps": "write pickle.dumps(x), or save the array that a program gives",
        "tofile": "a node has no value before a program runs; write program(...).tofile(path)",
    }
)


def missing(name: str) -> str:
    """The message about an attribute that nodes have not."""
    hint = NO_METHODS.get(name)
    if hint is None and name in REGISTRY.functions:
        hint = f"write {REGISTRY.qualified_name(name)}(x)"
    return f"a node has no attribute {name!r}" + (f"; {hint}" if hint else "")


@telling_methods
class ArrayMethods:
    """Mixin of the methods of NumPy's arrays, with NumPy's arguments."""

    __slots__ = ()

    # ---- reductions -------------------------------------------------------------------------

    def sum(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Node:
        """The sum over axes; see `sg.sum`."""
        options = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
        return _reduced("sum", self, out, where=where, initial=initial, **options)

    def prod(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Node:
        """The product over axes; see `sg.prod`."""
        options = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
        return _reduced("prod", self, out, where=where, initial=initial, **options)

    def max(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Node:
        """The largest element over axes; see `sg.max`."""
        options = {"axis": axis, "keepdims": keepdims}
        return _reduced("max", self, out, where=where, initial=initial, **options)

    def min(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Node:
        """The smallest element over axes; see `sg.min`."""
        options = {"axis": axis, "keepdims": keepdims}
        return _reduced("min", self, out, where=where, initial=initial, **options)

    def all(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Any = True,
    ) -> Node:
        """Whether all elements over axes are true; see `sg.all`."""
        options = {"axis": axis, "keepdims": keepdims}
        return _reduced("all", self, out, where=where, **options)

    def any(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Any = True,
    ) -> Node:
        """Whether any element over axes is true; see `sg.any`."""
        options = {"axis": axis, "keepdims": keepdims}
        return _reduced("any", self, out, where=where, **options)

    def mean(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Any = True,
    ) -> Node:
        """The mean over axes, of x converted to `dtype`; see `sg.mean`."""
        return _averaged("mean", self, dtype, out, where=where, axis=axis, keepdims=keepdims)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = True,
        mean: Any = None,
    ) -> Node:
        """The variance over axes; see `sg.var`."""
        options = {"axis": axis, "keepdims": keepdims, "correction": ddof}
        return _averaged("var", self, dtype, out, where=where, mean=mean, **options)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = True,
        mean: Any = None,
    ) -> Node:
        """The standard deviation over axes; see `sg.std`."""
        options = {"axis": axis, "keepdims": keepdims, "correction": ddof}
        return _averaged("std", self, dtype, out, where=where, mean=mean, **options)

    def argmax(self, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Node:
        """Where the largest element is; see `sg.argmax`."""
        return _made("argmax", out, self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Node:
        """Where the smallest element is; see `sg.argmin`."""
        return _made("argmin", out, self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Node:
        """The cumulative sum; see `sg.cumulative_sum`."""
        return _made("cumulative_sum", out, self, axis=axis, dtype=dtype)

    def cumprod(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Node:
        """The cumulative product; see `sg.cumulative_prod`."""
        return _made("cumulative_prod", out, self, axis=axis, dtype=dtype)

    # ---- shapes -----------------------------------------------------------------------------

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Node:
        """The same elements in another shape, `x.reshape(2, -1)`; see `sg.reshape`."""
        wanted = shape[0] if len(shape) == 1 else shape
        return call("reshape", self, wanted, order=order)

    def ravel(self, order: str = "C") -> Node:
        """The elements as a vector; see `sg.ravel`."""
        return call("ravel", self, order)

    def flatten(self, order: str = "C") -> Node:
        """The elements as a vector; see `sg.ravel`."""
        return call("ravel", self, order)

    @property
    def flat(self) -> Node:
        """The elements as a vector, to be counted through; see `sg.ravel`."""
        return call("ravel", self)

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

    def trace(
        self,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: Any = None,
        out: None = None,
    ) -> Node:
        """The sum of a diagonal; see `sg.trace`."""
        return _made("trace", out, self, offset=offset, axis1=axis1, axis2=axis2, dtype=dtype)

    # ---- elements ---------------------------------------------------------------------------

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: Any = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Node:
        """x converted to a dtype; see `sg.astype`. Raises `DtypeError` for what casting forbids."""
        if casting == "same_value":
            raise DtypeError("whether values are kept is not known yet; write x.astype(dtype)")
        node = call("asarray", self)
        if not np.can_cast(node.dtype, as_dtype(dtype), casting):
            raise DtypeError(f"{node.dtype} is not cast to {dtype!r} by casting={casting!r}")
        return call("astype", node, dtype, copy=copy)

    def clip(self: Any, min: Any = None, max: Any = None, out: None = None, **options: Any) -> Node:
        """x between bounds; see `sg.clip`. The options are those of NumPy's ufuncs."""
        _refuse_out("clip", out)
        clipped: Node = np.clip(self, min, max, **options)
        return clipped

    def round(self, decimals: int = 0, out: None = None) -> Node:
        """x rounded; see `sg.round`."""
        return _made("round", out, self, decimals=decimals)

    def conj(self: Any, out: None = None, /) -> Node:
        """The complex conjugate; see `sg.conj`. Real numbers are as they are."""
        _refuse_out("conj", out)
        return call("conj", self) if self.dtype.kind == "c" else self

    def conjugate(self, out: None = None, /) -> Node:
        """The complex conjugate; see `conj`."""
        return self.conj(out)

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

    def take(
        self, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise"
    ) -> Node:
        """The elements at indices; see `sg.take`."""
        return _made("take", out, self, indices, axis, mode=mode)

    def compress(self, condition: Any, axis: int | None = None, out: None = None) -> Node:
        """The elements where a condition that is known holds; see `sg.compress`."""
        return _made("compress", out, condition, self, axis)

    def nonzero(self) -> Any:
        """Where x is not 0, if that is known; else write `sg.nonzero(x, size=...)`."""
        return call("nonzero", self)

    def choose(self, *choices: Any, out: None = None, mode: str = "raise") -> Node:
        """The elements of choices, one list or several arrays, by numbers; see `sg.choose`."""
        given = choices[0] if len(choices) == 1 else choices
        return _made("choose", out, self, given, mode=mode)

    def argsort(
        self,
        axis: int | None = -1,
        kind: str | None = None,
        order: None = None,
        *,
        stable: bool | None = None,
    ) -> Node:
        """The indices that sort; see `sg.argsort`."""
        return call("argsort", self, axis=axis)

    def argpartition(
        self, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None
    ) -> Node:
        """The indices that give a partition; see `sg.argpartition`."""
        return call("argpartition", self, kth, axis)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Node:
        """Where elements of v go into this vector, which is in order; see `sg.searchsorted`."""
        return call("searchsorted", self, v, side=side, sorter=sorter)

    def dot(self, b: Any, out: None = None) -> Node:
        """NumPy's product; see `sg.dot`."""
        return _made("dot", out, self, b)

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

    def tobytes(self, order: Any = "C") -> bytes:
        """The bytes of the value of a node without placeholders."""
        return np.asarray(self).tobytes(order)

    def tolist(self) -> Any:
        """The value of a node without placeholders, as nested lists of Python numbers."""
        return np.asarray(self).tolist()


def _made(name: str, out: Any, *args: Any, **options: Any) -> Node:
    """The node of a function; NumPy's `out` is refused."""
    _refuse_out(name, out)
    return call(name, *args, **options)


def _refuse_out(name: str, out: Any) -> None:
    if out is not None:
        raise UnsupportedError(f"nothing is written into an array: write y = x.{name}(...)")


def _reduced(name: str, x: Any, out: Any, **options: Any) -> Node:
    _refuse_out(name, out)
    return reduced(name, call("asarray", x), **options)


def _averaged(name: str, x: Any, dtype: Any, out: Any, **options: Any) -> Node:
    if dtype is not None and as_dtype(dtype).kind not in "fc":
        raise DtypeError(f"{name} is a float; write x.{name}().astype({dtype!r})")
    return _reduced(name, x if dtype is None else call("astype", x, dtype), out, **options)
