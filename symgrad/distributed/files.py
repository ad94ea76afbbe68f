"""Rows that are in files: where they are, and how they are read."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from symgrad.ir.errors import FeedError, UnsupportedError
from symgrad.ir.types import DType

Array: TypeAlias = np.ndarray[Any, DType]


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


def opened(name: str, path: str) -> InFile:
    """The array in an `.npy` file, or that of a name in an `.npz` file; raises `FeedError`."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  pathlib takes long to import
            if file.read(4) == b"PK\x03\x04":
                return _member(name, path)
            file.seek(0)
            return _npy(path, file, 0)
    except Exception as error:  # of a damaged file its readers raise many kinds
        told = str(error)[:200]
        raise FeedError(f"{name}: {path} is no array that can be read: {told}") from None


def _npy(path: str, file: Any, begin: int) -> InFile:
    version = np.lib.format.read_magic(file)
    read: Any = {(1, 0): "read_array_header_1_0", (2, 0): "read_array_header_2_0"}.get(version)
    if read is None:
        raise ValueError(f"the format {version} is not known")
    shape, fortran, dtype = getattr(np.lib.format, read)(file)
    if dtype.kind not in "biufc":
        raise ValueError(f"it holds {dtype}, not numbers")
    if any(type(s) is not int or s < 0 for s in shape):
        raise ValueError(f"its shape is {shape}")
    offset = begin + file.tell()
    missing = offset + math.prod(shape) * dtype.itemsize - os.stat(path).st_size  # noqa: PTH116
    if missing > 0:
        raise ValueError(f"it ends {missing} bytes before its array does")
    return InFile(path, offset, shape, dtype, "F" if fortran else "C")


def _member(name: str, path: str) -> InFile:
    """The array of a name in an `.npz` file, of which the bytes are in the file as they are."""
    import zipfile

    if not zipfile.is_zipfile(path):
        raise ValueError("it is damaged")
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


# ---- Parquet --------------------------------------------------------------------------------


@dataclass(frozen=True)
class InParquet:
    """Columns of a Parquet file, side by side, or one of them: the rows from `start` on."""

    path: str
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: DType
    start: int = 0

    def part(self, axis: int, start: int, stop: int) -> Source:
        if axis:
            raise FeedError("the rows of a Parquet file are along the first axis")
        shape = (stop - start, *self.shape[1:])
        return InParquet(self.path, self.columns, shape, self.dtype, self.start + start)

    def load(self) -> Array:
        file = _parquet_file(self.path)
        wanted: list[int] = []
        begin = skipped = 0
        for i in range(file.metadata.num_row_groups):
            end = begin + file.metadata.row_group(i).num_rows
            if begin < self.start + self.shape[0] and end > self.start:
                skipped = skipped if wanted else begin
                wanted.append(i)
            begin = end
        table = file.read_row_groups(wanted, columns=list(self.columns))
        rows = table.slice(self.start - skipped, self.shape[0])
        if any(rows.column(c).null_count for c in self.columns):
            raise FeedError(f"{self.path}: a row from {self.start} on has no value; fill it first")
        found = [np.asarray(rows.column(c).to_numpy(), self.dtype) for c in self.columns]
        return np.stack(found, axis=1) if len(self.shape) > 1 else found[0]


def parquet(name: str, path: str, columns: Any) -> InParquet:
    """Columns of a Parquet file, in an array of two axes; of one by its name, of one axis."""
    if not isinstance(columns, (str, list, tuple)):
        raise FeedError(f"{name}: the columns of {path} are names, not {columns!r:.60}")
    listed = (columns,) if isinstance(columns, str) else tuple(columns)
    try:
        schema = (file := _parquet_file(path)).schema_arrow
    except OSError as error:
        raise FeedError(f"{name}: {path} is no file that can be read: {error}") from None
    if unknown := [c for c in listed if c not in schema.names] or not listed:
        raise FeedError(f"{name}: {path} has the columns {schema.names}, and not {unknown!r:.60}")
    dtypes = [np.dtype(schema.field(c).type.to_pandas_dtype()) for c in listed]
    dtype = np.result_type(*dtypes)
    if dtype.kind not in "biuf":
        raise FeedError(f"{name}: columns are numbers, and these are {dtype}")
    sides = () if isinstance(columns, str) else (len(listed),)
    return InParquet(path, listed, (file.metadata.num_rows, *sides), dtype)


def _parquet_file(path: str) -> Any:
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise UnsupportedError(
            "a Parquet file is read by pyarrow, which is not installed: pip install pyarrow"
        ) from None
    try:
        return ParquetFile(path)
    except ArrowInvalid as error:
        raise OSError(str(error)) from None
