"""Types of values that are yet to be computed: shapes and dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from operator import index as as_index
from typing import Any, NoReturn, TypeAlias

import numpy as np

from symgrad.ir.dim_text import dim
from symgrad.ir.dims import Dim, Shape, Size, product
from symgrad.ir.errors import (
    AllocationError,
    AxisError,
    DtypeError,
    ShapeError,
    SymgradError,
    short,
)

KINDS = "biufc"
MOST_AXES = 64  # of an array of NumPy's

DType: TypeAlias = np.dtype[Any]
Type: TypeAlias = "TensorType | tuple[TensorType, ...]"


class TensorType:
    """The type of a tensor: `shape`, of ints and named dimensions, and `dtype`.

    >>> TensorType(("N", 3), "float32")
    float32[N, 3]
    """

    __slots__ = ("dtype", "shape")
    shape: Shape
    dtype: DType

    def __init__(self, shape: Any, dtype: Any) -> None:
        # The fast way is for the type rules, which pass a clean shape and a dtype.
        if not (_is_clean(shape) and is_clean_dtype(dtype)):
            dtype, shape = as_dtype(dtype), as_shape(shape)
        _set_shape(self, shape)
        _set_dtype(self, dtype)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name} of a type stays; take with_shape or with_dtype")

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorType, (self.shape, self.dtype)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not TensorType:
            return NotImplemented
        return self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Size:
        """The number of elements."""
        return product(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether it holds floats."""
        return self.dtype.kind == "f"

    @property
    def is_complex(self) -> bool:
        """Whether it holds complex numbers."""
        return self.dtype.kind == "c"

    @property
    def is_inexact(self) -> bool:
        """Whether gradients can flow through values of this type: floats and complex numbers."""
        return self.dtype.kind in "fc"

    @property
    def names(self) -> frozenset[str]:
        """The names of its named dimensions."""
        named = [s.names for s in self.shape if s.__class__ is Dim]
        return _NONE.union(*named) if named else _NONE

    def with_shape(self, shape: Shape) -> TensorType:
        return TensorType(shape, self.dtype)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(self.shape, dtype)

    def __repr__(self) -> str:
        inside = ", ".join(map(repr, self.shape)) if self.shape else "()"
        return f"{name_of(self.dtype)}[{inside}]"


_set_shape = vars(TensorType)["shape"].__set__
_set_dtype = vars(TensorType)["dtype"].__set__


@cache
def name_of(dtype: DType) -> str:
    """The name of a dtype, which NumPy puts together each time."""
    return dtype.name


def _is_clean(shape: object) -> bool:
    if not isinstance(shape, tuple):
        return False
    # No generator, which takes as long as all else: types are made all the time.
    for s in shape:  # noqa: SIM110
        if s.__class__ is not Dim and not (s.__class__ is int and s >= 0):
            return False
    return True


def is_clean_dtype(dtype: object) -> bool:
    """Whether it is a dtype of symgrad's already: what `as_dtype` gives."""
    return isinstance(dtype, np.dtype) and dtype.kind in KINDS and bool(dtype.isnative)


def as_dtype(dtype: Any) -> DType:
    """A native NumPy dtype of booleans, integers, floats or complex numbers.

    Raises `DtypeError` for any other (objects, strings, dates, structures).
    """
    try:
        found: DType = np.dtype(dtype)
    except TypeError:
        raise DtypeError(f"{dtype!r} is not a dtype; write for example 'float32'") from None
    if dtype is None or found.kind not in KINDS or found.subdtype is not None:
        raise DtypeError(
            f"{found if dtype is not None else None} is not a dtype of symgrad; "
            "booleans, integers, floats and complex numbers are"
        )
    return np.dtype(found.str.lstrip("<>|="))  # native, and one of the C names of its size


def as_shape(shape: Any) -> Shape:
    """A shape from an int, a name, or a sequence of ints, names and dims."""
    if isinstance(shape, (int, str, Dim, np.integer)):
        return (dim(shape),)
    try:
        return tuple(dim(s) for s in in_order(shape, "the sizes of a shape", ShapeError))
    except TypeError:
        raise ShapeError(f"{shape!r} is not a shape; write for example ('N', 3)") from None


def types_of(type: Type) -> tuple[TensorType, ...]:
    """The types of all results: of the one, or of several."""
    return type if isinstance(type, tuple) else (type,)


def possible(type: Type) -> Type:
    """A type as it is; an error if it has too many axes, or more bytes than there are addresses."""
    for t in types_of(type):
        if len(t.shape) > MOST_AXES:
            raise ShapeError(f"an array has at most {MOST_AXES} dimensions, not {len(t.shape)}")
        nbytes = t.dtype.itemsize
        for size in t.shape:
            if size.__class__ is int and size:
                nbytes *= size
        if nbytes >= 2**63:
            listed, many = ", ".join(map(_listed, t.shape)), short(nbytes >> 60)
            raise AllocationError(
                f"no memory holds {t.dtype.name}[{listed}]: it has {many} EiB or more"
            )
    return type


def _listed(size: Size) -> str:
    return short(size) if isinstance(size, int) else str(size)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that several broadcast to, by NumPy's rule.

    Two dims that are not provably equal do not broadcast: `ShapeError` says to name them alike.
    """
    first = shapes[0]
    if all(s == first for s in shapes[1:]):
        return first
    ndim = max(map(len, shapes))
    result: list[Size] = []
    for axis in range(-ndim, 0):
        sizes = dict.fromkeys(s[axis] for s in shapes if len(s) >= -axis and s[axis] != 1)
        if len(sizes) > 1:
            raise ShapeError(_mismatch(list(sizes)))
        result.append(next(iter(sizes), 1))
    return tuple(result)


def _mismatch(sizes: Sequence[Size]) -> str:
    listed = " and ".join(map(str, sizes))
    if any(isinstance(s, Dim) for s in sizes):
        return (
            f"{listed} are not known to be equal; "
            "give dimensions that are always equal the same name"
        )
    return f"{listed} do not match"


def names_in(value: Any) -> frozenset[str]:
    """The names of the dimensions that a type or an attribute holds."""
    if isinstance(value, (TensorType, Dim)):
        return value.names
    if not isinstance(value, tuple):
        return _NONE
    # Asked of every attribute of every graph, most of which are texts and numbers.
    named = [found for v in value if v.__class__ not in _NAMELESS and (found := names_in(v))]
    return _NONE.union(*named) if named else _NONE


_NONE: frozenset[str] = frozenset()
_NAMELESS = frozenset((int, str, bool, float))


def require_equal(a: Size, b: Size) -> None:
    """Refuse two sizes that are not provably equal."""
    if a != b:
        raise ShapeError(_mismatch([a, b]))


def whole(value: Any, name: str, least: int, error: type[SymgradError]) -> int:
    """A count as an int. Raises an error for no int, a bool, or one that is too small."""
    try:
        found = least - 1 if isinstance(value, (bool, np.bool_)) else as_index(value)
    except TypeError:
        found = least - 1
    if found < least:
        raise error(f"{name} is a whole number from {least} on, not {value!r:.60}")
    return found


def in_order(values: Any, name: str, error: type[SymgradError]) -> Any:
    """The same values. Refuses a set, whose order is another in each process."""
    if isinstance(values, (set, frozenset)):
        raise error(f"{name} have an order, and a set has none; write a list, [a, b]")
    return values


def normalize_axis(axis: Any, ndim: int) -> int:
    """An axis counted from the front. Raises `AxisError` if it is out of range."""
    try:
        index = int(axis.__index__())
    except (AttributeError, TypeError):
        raise ShapeError(f"an axis is an int, not {axis!r}") from None
    if isinstance(axis, (bool, np.bool_)):
        raise ShapeError(f"an axis is an int, not {axis!r}")
    if not -ndim <= index < ndim:
        raise AxisError(f"axis {index} is out of range for {ndim} dimensions")
    return index % ndim


def normalize_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as a sorted tuple; None is all of them. Refuses an axis given twice."""
    if axis is None:
        return tuple(range(ndim))
    many: Iterable[Any] = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [normalize_axis(a, ndim) for a in many]
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axis {axis} names an axis twice")
    return tuple(sorted(axes))
