"""The methods of NumPy's arrays that build graph: `x.sum(axis=0)`, `x.reshape(2, -1)`, `x.dot(y)`.

Each calls the function of its name, with NumPy's arguments in NumPy's order. Methods that change an
array in place (`sort`, `fill`, `resize`, …) are not there: nodes are frozen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symgrad.ir.operators import call

if TYPE_CHECKING:
    from symgrad.ir.node import Node


def _one_or_many(given: tuple[Any, ...]) -> Any:
    """What NumPy takes as several arguments or as one tuple."""
    return given[0] if len(given) == 1 else given


class ArrayMethods:
    """What `x.f(…)` is for a node x."""

    __slots__ = ()

    # ---- shapes -----------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> Node:
        """The same elements in another shape: `x.reshape(2, -1)` or `x.reshape((2, -1))`."""
        return call("reshape", self, _one_or_many(shape))

    def ravel(self) -> Node:
        """The elements as a vector."""
        return call("reshape", self, (-1,))

    def flatten(self) -> Node:
        """The elements as a vector."""
        return call("reshape", self, (-1,))

    def transpose(self, *axes: Any) -> Node:
        """The axes in another order, without any in reverse."""
        given = _one_or_many(axes) if axes else None
        return call("permute_dims", self, axes if isinstance(given, int) else given)

    def swapaxes(self, axis1: int, axis2: int, /) -> Node:
        """Two axes in each other's place."""
        return call("swapaxes", self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Node:
        """Without the axes of size 1, or without these."""
        return call("squeeze", self, axis=axis)

    def repeat(self, repeats: Any, axis: int | None = None) -> Node:
        """Each element so many times."""
        return call("repeat", self, repeats, axis=axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
        """A diagonal in the plane of two axes."""
        return call("diagonal", self, offset=offset, axis1=axis1, axis2=axis2)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Node:
        """The sum of a diagonal."""
        return call("trace", self, offset=offset, axis1=axis1, axis2=axis2, dtype=dtype)

    # ---- values -----------------------------------------------------------------------------

    @property
    def real(self) -> Node:
        """The real part."""
        return call("real", self)

    @property
    def imag(self) -> Node:
        """The imaginary part."""
        return call("imag", self)

    def astype(self, dtype: Any) -> Node:
        """The elements as another dtype."""
        return call("astype", self, dtype)

    def copy(self) -> Node:
        """The node itself: what never changes needs no copy."""
        return call("asarray", self)

    def conj(self) -> Node:
        """The complex conjugate."""
        return call("conj", self)

    def conjugate(self) -> Node:
        """The complex conjugate."""
        return call("conj", self)

    def clip(self, min: Any = None, max: Any = None) -> Node:
        """At least `min` and at most `max`."""
        return call("clip", self, min, max)

    def round(self) -> Node:
        """Rounded to the nearest integer, halves to the even one."""
        return call("round", self)

    def dot(self, other: Any, /) -> Node:
        """NumPy's dot with another array."""
        return call("dot", self, other)

    def take(self, indices: Any, axis: int | None = None) -> Node:
        """The elements at indices along an axis; None flattens first."""
        return call("take", self, indices, axis=axis)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Node:
        """Where the elements of v go into this sorted vector."""
        return call("searchsorted", self, v, side=side, sorter=sorter)

    # ---- over axes --------------------------------------------------------------------------

    def sum(self, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Node:
        """The sum over axes; None is all of them."""
        return call("sum", self, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Node:
        """The product over axes."""
        return call("prod", self, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> Node:
        """The mean over axes."""
        return call("mean", self, axis=axis, keepdims=keepdims)

    def var(self, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Node:
        """The variance over axes: squares divided by n - ddof."""
        return call("var", self, axis=axis, correction=ddof, keepdims=keepdims)

    def std(self, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Node:
        """The standard deviation over axes: squares divided by n - ddof."""
        return call("std", self, axis=axis, correction=ddof, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Node:
        """The largest element over axes."""
        return call("max", self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Node:
        """The smallest element over axes."""
        return call("min", self, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, *, keepdims: bool = False) -> Node:
        """Whether all elements over axes are true."""
        return call("all", self, axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, *, keepdims: bool = False) -> Node:
        """Whether some element over axes is true."""
        return call("any", self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Node:
        """The index of the first largest element."""
        return call("argmax", self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Node:
        """The index of the first smallest element."""
        return call("argmin", self, axis=axis, keepdims=keepdims)

    def argsort(self, axis: int | None = -1) -> Node:
        """The indices that sort along an axis."""
        return call("argsort", self, axis=axis)

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Node:
        """The sums up to each element along an axis; None flattens first."""
        return call("cumulative_sum", self, axis=axis, dtype=dtype)

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Node:
        """The products up to each element along an axis; None flattens first."""
        return call("cumulative_prod", self, axis=axis, dtype=dtype)
