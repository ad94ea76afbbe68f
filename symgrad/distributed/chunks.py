"""Data in chunks of rows: arrays, files and functions, of which a piece loads the rows it needs."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.distributed.files import Array, InFile, Source, opened, parquet
from symgrad.ir.arraylike import is_function
from symgrad.ir.errors import FeedError
from symgrad.ir.types import DType, whole

ROWS = 4096


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


@dataclass(frozen=True)
class InARow:
    """The rows of several sources, one after the other."""

    sources: tuple[Source, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        first = self.sources[0].shape
        return (sum(s.shape[0] for s in self.sources), *first[1:])

    @property
    def dtype(self) -> DType:
        return self.sources[0].dtype

    def part(self, axis: int, start: int, stop: int) -> Source:
        if axis:
            raise FeedError("the rows of several files lie along their first axis")
        parts: list[Source] = []
        begin = 0
        for source in self.sources:
            count = source.shape[0]
            first, last = max(start - begin, 0), min(stop - begin, count)
            if first < last or (not parts and begin + count == self.shape[0]):
                parts.append(source.part(0, min(first, count), max(last, 0)))
            begin += count
        return parts[0] if len(parts) == 1 else InARow(tuple(parts))

    def load(self) -> Array:
        return np.concatenate([s.load() for s in self.sources])


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
    `.npz` file that holds an array of the placeholder's name and is not compressed; a list of such
    files, whose rows are in a row; columns of a Parquet file, `x=("data.parquet", ["a", "b"])`, or
    one, `("data.parquet", "a")`, with pyarrow installed; an array that `np.load(path,
    mmap_mode="r")` gave; or a function and how many rows there are, `x=(read, 1_000_000)`, of which
    `read(start, stop)` gives those from one on and below another. A piece reads its rows where it
    is computed, so that paths are to be the same on every machine.

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
    if isinstance(value, tuple) and len(value) == 2 and is_function(value[0]):
        return _made(name, value[0], value[1])
    if _is_path(value):
        return opened(name, os.fspath(value))
    if isinstance(value, tuple) and len(value) == 2 and _is_path(value[0]):
        return parquet(name, os.fspath(value[0]), value[1])
    if isinstance(value, list) and value and all(map(_is_path, value)):
        return _in_a_row(name, [opened(name, os.fspath(path)) for path in value])
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


def _is_path(value: Any) -> bool:
    return isinstance(value, str) or hasattr(value, "__fspath__")


def _in_a_row(name: str, sources: list[Source]) -> InARow:
    kinds = {(s.shape[1:], s.dtype) for s in sources}
    if len(kinds) > 1:
        listed = ", ".join(f"{dtype.name}{list(shape)}" for shape, dtype in kinds)
        raise FeedError(f"{name}: the rows of several files are alike, not {listed}")
    return InARow(tuple(sources))


def _made(name: str, function: Callable[[int, int], Any], count: Any) -> Made:
    total = whole(count, f"{name}: how many rows the function gives", 1, FeedError)
    first = np.asarray(function(0, 1))
    if first.shape[:1] != (1,):
        raise FeedError(
            f"{name}: function(0, 1) gave an array of the shape {first.shape}; it gives the rows "
            "from its first argument on and below its second, one row here"
        )
    return Made(function, (total, *first.shape[1:]), first.dtype)
