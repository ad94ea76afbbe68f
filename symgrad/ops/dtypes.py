"""Questions about dtypes. They are NumPy's own, which hash and compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir.dims import Dim
from symgrad.ir.errors import DtypeError
from symgrad.ir.node import Node
from symgrad.ir.types import DType, as_dtype
from symgrad.ops.declare import NodeLike, composite


class FloatInfo(NamedTuple):
    """The limits of a dtype of floats; of a complex one, those of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntegerInfo(NamedTuple):
    """The limits of a dtype of integers."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(value: Any) -> DType:
    return value.dtype if isinstance(value, (Node, np.ndarray, np.generic)) else as_dtype(value)


@composite()
def finfo(type: Any, /) -> FloatInfo:
    """The limits of a dtype of floats, or of that of an array. Raises `DtypeError` for others.

    >>> finfo("float32").eps
    1.1920928955078125e-07
    """
    found = _dtype_of(type)
    if found.kind not in "fc":
        raise DtypeError(f"{found} is no dtype of floats; for integers write iinfo")
    of = np.finfo(found)
    eps, most, least, small = map(float, (of.eps, of.max, of.min, of.smallest_normal))
    return FloatInfo(int(of.bits), eps, most, least, small, np.dtype(of.dtype))


@composite()
def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of a dtype of integers, or of that of an array. Raises `DtypeError` for others.

    >>> iinfo("int8").max
    127
    """
    found = _dtype_of(type)
    if found.kind not in "iu":
        raise DtypeError(f"{found} is no dtype of integers; for floats write finfo")
    of = np.iinfo(found)
    return IntegerInfo(int(of.bits), int(of.max), int(of.min), found)


@composite()
def isdtype(dtype: Any, kind: str | Any | Sequence[Any]) -> bool:
    """Whether a dtype is of a kind: of one by name, another dtype, or one of several of these.

    The names are bool, signed integer, unsigned integer, integral, real floating, complex floating
    and numeric. Raises `DtypeError` for another name.

    >>> isdtype("float32", ("integral", "real floating"))
    True
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    try:
        return bool(np.isdtype(as_dtype(dtype), kinds))
    except (TypeError, ValueError) as error:
        said = str(error).partition("\n")[0]
        raise DtypeError(f"{kind!r} is no kind of dtypes: {said}") from None


@composite(numpy=(np.can_cast,))
def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a dtype, or that of an array, is cast to another without loss.

    >>> can_cast("int32", "float64")
    True
    """
    return bool(np.can_cast(_dtype_of(from_), as_dtype(to)))


@composite(numpy=(np.result_type,))
def result_type(*arrays_and_dtypes: NodeLike) -> DType:
    """The dtype that arrays, dtypes and Python's numbers promote to; numbers are weak.

    >>> result_type("float32", 1.0, placeholder("x", 3, "int8"))
    dtype('float32')
    """
    if not arrays_and_dtypes:
        raise DtypeError("result_type takes at least one array or dtype")
    weak = (bool, int, float, complex)
    return np.result_type(
        *(0 if isinstance(x, Dim) else x if type(x) in weak else _dtype_of(x)
          for x in arrays_and_dtypes)
    )  # fmt: skip
