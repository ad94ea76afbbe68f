"""Data in chunks of rows: arrays, files and functions, of which a piece loads the rows it needs."""

from __future__ import annotations

import mmap
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from symgrad.ir.errors import FeedError
from symgrad.ir.types import DType, whole

Array: TypeAlias = np.ndarray[Any, DType]
ROWS = 4096


class Source(Protocol):
    """Rows that are somewhere, along an axis of what would be one array."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> DType: ...
    def part(self, axis: int, start: int, stop: int) -> Source:
        """The rows from one on and below another, small to send if they are in a file."""
        ...

    def load(self) -> Array:
        """The rows as an array."""
        ...


@dataclass(frozen=True, eq=False)
class InMemory:
    """An array in memory: what is sent of it are the rows themselves."""

    array: Array

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.array.shape
        return shape

    @property
    def dtype(self) -> DType:
        return self.array.dtype

    def part(self, axis: int, start: int, stop: int) -> Source:
        return InMemory(self.array[(*(slice(None),) * axis, slice(start, stop))])

    def load(self) -> Array:
        return self.array


@dataclass(frozen=True)
class InFile:
    """An array in a file, from a byte on: what is sent is where it is, and which rows are meant."""

    path: str
    offset: int
    shape: tuple[int, ...]
    dtype: DType
    order: str

    def part(self, axis: int, start: int, stop: int) -> Source:
        shape = (*self.shape[:axis], stop - start, *self.shape[axis + 1 :])
        return _RowsOf(self, axis, start, stop, shape)

    def load(self) -> Array:
        return np.array(self.mapped())

    def mapped(self) -> Array:
        """The array, read from the file as it is used."""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        order: Any = self.order
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order)


@dataclass(frozen=True)
class _RowsOf:
    """Some rows of an array in a file."""

    file: InFile
    axis: int
    start: int
    stop: int
    shape: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        return self.file.dtype

    def part(self, axis: int, start: int, stop: int) -> Source:
        return self.file.part(axis, self.start + start, self.start + stop)

    def load(self) -> Array:
        rows = slice(self.start, self.stop)
        return np.array(self.file.mapped()[(*(slice(None),) * self.axis, rows)], order="C")


@dataclass(frozen=True)
class Made:
    """Rows that a function of the user's makes or reads: `function(start, stop)`, of so many."""

    function: Callable[[int, int], Any]
    shape: tuple[int, ...]
    dtype: DType
    start: int = 0

    def part(self, axis: int, start: int, stop: int) -> Source:
        if axis:
            raise FeedError("the rows that a function gives lie along its first axis")
        shape = (stop - start, *self.shape[1:])
        return Made(self.function, shape, self.dtype, self.start + start)

    def load(self) -> Array:
        stop = self.start + self.shape[0]
        found = np.asarray(self.function(self.start, stop))
        if found.shape != self.shape or found.dtype != self.dtype:
            raise FeedError(
                f"the function gave {found.dtype.name}{list(found.shape)} for the rows from "
                f"{self.start} to {stop}, not {self.dtype.name}{list(self.shape)}"
            )
        return found


@dataclass(frozen=True, eq=False)
class Chunks:
    """Data by the names of placeholders, of which a piece has so many `rows`; see `chunks`."""

    sources: dict[str, Source]
    rows: int

    def count(self, total: int) -> int:
        """How many pieces so many rows have."""
        return max(-(-total // self.rows), 1)

    def spans(self, total: int) -> Iterator[tuple[int, int]]:
        """The first row and the end of each piece; one empty piece if there are no rows."""
        for start in range(0, max(total, 1), self.rows):
            yield start, min(start + self.rows, total)

    def __repr__(self) -> str:
        listed = ", ".join(f"{n} {s.dtype.name}{list(s.shape)}" for n, s in self.sources.items())
        return f"<chunks of {self.rows} rows of {listed}>"


def chunks(*, rows: Any = ROWS, **sources: Any) -> Chunks:
    """Data for `map_reduce`, in pieces of so many `rows`; the last one may be smaller.

    Each placeholder is given an array, or where its rows are: the path of an `.npy` file, or of an
    `.npz` file that holds an array of the placeholder's name and is not compressed; an array that
    `np.load(path, mmap_mode="r")` gave; or a function and how many rows there are,
    `x=(read, 1_000_000)`, of which `read(start, stop)` gives those from one on and below another.
    A piece reads its rows where it is computed, so that paths are to be the same on every machine.

    Raises `FeedError` for rows below 1, for what is no array or file of one, and for a function
    that gives no rows.

    >>> chunks(x=np.ones((10, 3)), rows=4)
    <chunks of 4 rows of x float64[10, 3]>
    """
    count = whole(rows, "the rows of a piece", 1, FeedError)
    if not sources:
        raise FeedError("name the data as the placeholders are: sg.chunks(x=X, y=Y, rows=4096)")
    return Chunks({name: _source(name, value) for name, value in sources.items()}, count)


def _source(name: str, value: Any) -> Source:
    base: Any = getattr(value, "base", None)
    if isinstance(value, tuple) and len(value) == 2 and callable(value[0]):
        return _made(name, value[0], value[1])
    if hasattr(value, "__fspath__") or isinstance(value, str):
        return _file(name, value.__fspath__() if hasattr(value, "__fspath__") else value)
    if isinstance(value, np.memmap) and isinstance(base, mmap.mmap) and value.filename:
        order = "C" if value.flags.c_contiguous else "F"
        return InFile(str(value.filename), value.offset, value.shape, value.dtype, order)
    try:
        found = np.asarray(value)
    except ValueError as error:
        raise FeedError(f"{name}: the rows of an array are all of one shape: {error}") from None
    if found.dtype.kind not in "biufc":
        raise FeedError(f"{name}: data are numbers, a path or a function, not {value!r:.60}")
    return InMemory(found)


def _made(name: str, function: Callable[[int, int], Any], count: Any) -> Made:
    total = whole(count, f"{name}: how many rows the function gives", 1, FeedError)
    first = np.asarray(function(0, 1))
    if first.shape[:1] != (1,):
        raise FeedError(
            f"{name}: function(0, 1) gave an array of the shape {first.shape}; it gives the rows "
            "from its first argument on and below its second, one row here"
        )
    return Made(function, (total, *first.shape[1:]), first.dtype)


def _file(name: str, path: str) -> Source:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  pathlib takes long to import
            if file.read(4) == b"PK\x03\x04":
                return _member(name, path)
            file.seek(0)
            return _npy(path, file, 0)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise FeedError(f"{name}: {path} is no array that can be read: {error}") from None


def _npy(path: str, file: Any, begin: int) -> InFile:
    version = np.lib.format.read_magic(file)
    read: Any = {(1, 0): "read_array_header_1_0", (2, 0): "read_array_header_2_0"}.get(version)
    if read is None:
        raise ValueError(f"the format {version} is not known")
    shape, fortran, dtype = getattr(np.lib.format, read)(file)
    if dtype.kind not in "biufc":
        raise ValueError(f"it holds {dtype}, not numbers")
    return InFile(path, begin + file.tell(), shape, dtype, "F" if fortran else "C")


def _member(name: str, path: str) -> InFile:
    """The array of a name in an `.npz` file, of which the bytes are in the file as they are."""
    with zipfile.ZipFile(path) as archive:
        listed: Sequence[str] = archive.namelist()
        if f"{name}.npy" not in listed:
            raise ValueError(f"it has no array {name!r}, but {', '.join(listed)[:200]}")
        info = archive.getinfo(f"{name}.npy")
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError("it is compressed, so that rows cannot be read; write it by np.savez")
        with open(path, "rb") as raw:  # noqa: PTH123
            raw.seek(info.header_offset + 26)
            lengths = np.frombuffer(raw.read(4), "<u2")
        begin = info.header_offset + 30 + int(lengths.sum())
        with archive.open(info) as member:
            return _npy(path, member, begin)
