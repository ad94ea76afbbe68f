"""The contents of leaves: the data of a constant, the storage of a variable."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from functools import lru_cache
from itertools import repeat
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from symgrad.ir.digest import blake2b
from symgrad.ir.errors import DtypeError, ShapeError, SymbolicError, SymgradError, short
from symgrad.ir.foreign import as_array_mend, by_dlpack
from symgrad.ir.types import KINDS, DType, TensorType, as_dtype


class ArrayData:
    """A read-only array that can be compared and hashed: by dtype, shape and bytes.

    `memo` is for what a kernel that is given it as an attribute has found out, and may need again:
    the factors of a sparse matrix. Nothing but time depends on it.
    """

    __slots__ = ("_digest", "array", "memo")
    array: np.ndarray[Any, DType]
    memo: Any
    _digest: str | None

    def __init__(self, value: Any, dtype: DType | None = None) -> None:
        # Only a subclass can be masked; to ask of anything else would load numpy.ma for nothing.
        subclass = isinstance(value, np.ndarray) and type(value) is not np.ndarray
        if subclass and np.ma.isMaskedArray(value):
            raise SymbolicError("a masked array would lose its mask; fill it first: a.filled(0)")
        array = _as_array(value, dtype)
        native = _native(array.dtype)
        if array.dtype is not native:
            array = array.astype(native, copy=False).view(native)  # equal ones have several names
        array.flags.writeable = False
        object.__setattr__(self, "array", array)
        object.__setattr__(self, "_digest", None)
        object.__setattr__(self, "memo", None)

    def __setattr__(self, name: str, value: object) -> None:
        if name != "memo":
            raise AttributeError(f"a constant is frozen: {name} cannot be set")
        object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrayData, (self.array,)

    @property
    def type(self) -> TensorType:
        return TensorType(self.array.shape, self.array.dtype)

    @property
    def digest(self) -> str:
        """A short fingerprint of the bytes."""
        if self._digest is None:
            found = blake2b(self.array.tobytes(), size=8).hexdigest()
            object.__setattr__(self, "_digest", found)
        assert self._digest is not None
        return self._digest

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, ArrayData)
            and self.array.dtype == other.array.dtype
            and self.array.shape == other.array.shape
            and self.array.tobytes() == other.array.tobytes()
        )

    def __hash__(self) -> int:
        if self.array.size == 1:
            return hash((self.array.dtype.char, self.array.shape, self.array.tobytes()))
        return hash((self.array.dtype.char, self.array.shape, self.digest))

    def __repr__(self) -> str:
        return np.array2string(self.array, separator=", ", threshold=8)


_native = lru_cache(as_dtype)
_SCALARS = frozenset((bool, int, float, complex))


def weak_data(scalar: bool | int | float | complex, dtypes: tuple[DType, ...]) -> ArrayData:
    """The data of a Python scalar, which takes the dtype of the elements beside it, if there are.

    Graphs have the same few numbers in many places: of Python's own, the data is made once.
    """
    if scalar.__class__ in _SCALARS:
        return _scalar_data(scalar, dtypes, "" if scalar else repr(scalar))
    return _scalar_data.__wrapped__(scalar, dtypes)


@lru_cache(maxsize=1024, typed=True)
def _scalar_data(scalar: Any, dtypes: tuple[DType, ...], zero: str = "") -> ArrayData:
    dtype = np.result_type(*dtypes, scalar) if dtypes else np.asarray(scalar).dtype
    return ArrayData(scalar, dtype)  # zeros are equal, and are told apart by their texts


def _as_array(value: Any, dtype: DType | None) -> np.ndarray[Any, DType]:
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            array = np.array(by_dlpack(value), dtype=dtype, order="C")
    except SymgradError:
        raise
    except Exception as error:  # of the value's own `__array__`
        raise DtypeError(
            f"{_shown(value)} is no array of {dtype or 'numbers'}: {error}{as_array_mend(value)}"
        ) from None
    if array.dtype.kind not in KINDS:
        mend = as_array_mend(value) or (
            "; if it holds numbers, convert it: np.asarray(value, dtype='float64')"
        )
        raise DtypeError(f"{_shown(value)} is no array of numbers but of {array.dtype}{mend}")
    plain = array.ndim == 0 and array.dtype.kind in "fc" and np.isfinite(array)
    if not (dtype is None or plain) and (
        fault := lost_in_cast(np.asarray(value), array, exact=False)
    ):
        raise DtypeError(f"{_shown(value)} does not fit into {array.dtype}: {fault}")
    return array


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {short(value)!r}"


def lost_in_cast(array: np.ndarray[Any, DType], made: np.ndarray[Any, DType], exact: bool) -> str:
    """Which number did not survive a cast: a finite one that is not, an integer that is another.

    Fractions may be cut off, and precision be lost; with `exact`, not that of integers. The answer
    is empty if all have survived, and it costs nothing where no number can be lost.
    """
    ints = array.dtype.kind in "iu"
    if array.dtype == made.dtype or array.dtype.kind not in "iufcO" or made.dtype.kind == "b":
        return ""
    with np.errstate(over="ignore", invalid="ignore"):
        if made.dtype.kind in "iu":
            low, high = int(np.iinfo(made.dtype).min), int(np.iinfo(made.dtype).max)
            # The next number after the largest is a float, and the largest may be none.
            lost = (array < low) | (array > high if ints else array >= float(high + 1))
        elif ints and exact:
            if 8 * array.dtype.itemsize <= np.finfo(made.dtype).nmant:
                return ""
            # To cast back what is above the largest may give the largest.
            above = made.real >= float(int(np.iinfo(array.dtype).max) + 1)
            lost = above | (made.real.astype(array.dtype) != array)
        else:
            # Of objects, which Python's large ints are, none is infinite.
            finite = True if array.dtype.kind == "O" else np.isfinite(array)
            lost = finite & ~np.isfinite(made)
    if not lost.any():
        return ""
    place = tuple(int(i) for i in np.argwhere(lost)[0])
    where = f" at {place}" if place else ""
    return f"{array[place]}{where} becomes {made[place]}"


def converted(
    data: np.ndarray[Any, DType], wanted: TensorType, what: str
) -> np.ndarray[Any, DType]:
    """A copy of the data, of a type. Raises `ShapeError` or `DtypeError` where it does not fit."""
    misfit = f"{what} is {wanted!r}; a value of {TensorType(data.shape, data.dtype)!r} does not fit"
    if data.shape != wanted.shape:
        raise ShapeError(misfit)
    if not np.can_cast(data.dtype, wanted.dtype, "safe"):
        raise DtypeError(f"{misfit}; convert it: value.astype({wanted.dtype.name!r})")
    made = data.astype(wanted.dtype)
    if fault := lost_in_cast(data, made, exact=True):
        raise DtypeError(f"{what} is {wanted!r}: {fault}")
    return made


class Cell:
    """The storage of a variable: the one thing about a graph that changes.

    `content` is an array of NumPy's, or one on a device that a back end left there, or None. It is
    never written in place while anybody may read it: a program computes the next value into another
    array and swaps the reference. `lock` is held by a program that is updating.
    `calls` are those that update the variable and of which a graph is held, by number.
    """

    __slots__ = ("calls", "content", "lock")
    content: Any
    calls: WeakValueDictionary[int, Any]

    def __init__(self, array: np.ndarray[Any, DType] | None, lock: Any) -> None:
        self.content = array
        self.lock = lock
        self.calls = WeakValueDictionary()

    @property
    def array(self) -> np.ndarray[Any, DType] | None:
        """The content as an array of NumPy's, fetched if it is on a device."""
        found: np.ndarray[Any, DType] | None = fetched(self.content)
        return found

    @property
    def next_call(self) -> int:
        """The number of the next call: above those of all others, so that they are in order."""
        return max(self.calls, default=-1) + 1

    def read(self, name: str) -> np.ndarray[Any, DType]:
        """The present value. Raises `SymbolicError` if it was never given one."""
        if (array := self.array) is None:
            raise SymbolicError(
                f"the variable {name!r} was read from text and has no value; "
                "set it: variable.value = array"
            )
        return array


def fetched(content: Any) -> Any:
    """The content of a cell as an array of NumPy's; None if there is none."""
    return content if content is None or content.__class__ is np.ndarray else np.asarray(content)


def store(values: Mapping[Cell, np.ndarray[Any, DType]]) -> None:
    """Give cells new arrays, all of them or none, while no program updates one of them."""
    with ExitStack() as held:
        # In the order in which programs take locks.
        for cell in sorted(values, key=id):
            held.enter_context(cell.lock)
        # One call in C, so that neither Ctrl-C nor another thread sees half of it.
        deque(map(setattr, values, repeat("content"), values.values()), maxlen=0)


def is_uniform(value: Any) -> bool:
    """Whether all elements of an array, of which there are several, are the same to the bit."""
    array = np.asarray(value)
    if array.size < 2:
        return False
    first = array.flat[0].tobytes()
    # Most arrays differ at their ends: only what may be uniform is read as a whole.
    return bool(array.flat[-1].tobytes() == first) and array.tobytes() == first * array.size
