"""The two formats of checkpoints, read to the letter: what a file says is checked before it counts.

- `.npz`: a zip file of arrays as NumPy writes them. Each has a checksum of its own in the zip file.
- `.safetensors`: the length of a header, 8 bytes; the header, in JSON, that says of each array its
  dtype, its shape and its place; the arrays, one directly after the other. In the header's
  `__metadata__` symgrad puts first of all a checksum of all that comes after it. Files of other
  programs have none and are read without.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import IO, Any, TypeAlias
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

from symgrad.ir.errors import StateError
from symgrad.ir.formats.reading import Checksum, SizedFile, strict_json
from symgrad.ir.types import KINDS, DType, TensorType

Array: TypeAlias = np.ndarray[Any, DType]
Arrays: TypeAlias = Mapping[str, Array]
# The type of each array in a file, and what reads them all.
Contents: TypeAlias = tuple[dict[str, TensorType], Callable[[], Arrays]]

# What lists the arrays of a file: room for some 100,000 of them.
MOST_LISTED_BYTES = 2**24
MOST_AXES = 32


@dataclass(frozen=True)
class Format:
    """A kind of file: whether it can hold some arrays, what writes them, and what reads them."""

    check: Callable[[Arrays], None]
    write: Callable[[IO[bytes], Arrays], None]
    opened: Callable[[SizedFile], AbstractContextManager[Contents]]


# ---- npz ------------------------------------------------------------------------------------


def _any(arrays: Arrays) -> None:
    """Every array can be written."""


def _write_npz(file: IO[bytes], arrays: Arrays) -> None:
    with ZipFile(file, "w", ZIP_STORED) as bundle:
        for name, array in arrays.items():
            # The date of the entry is a constant: equal values are equal files.
            with bundle.open(ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                npy.write_array(entry, np.require(array, requirements="C"), (1, 0), False)


@contextmanager
def _opened_npz(file: SizedFile) -> Iterator[Contents]:
    file.most = MOST_LISTED_BYTES
    with ZipFile(file) as bundle:
        file.most = None
        entries = {e.filename.removesuffix(".npy"): e for e in bundle.infolist()}
        if len(entries) != len(bundle.infolist()):
            raise StateError(f"{file.path} is damaged: it holds two arrays of one name")
        headers = {}
        for name, entry in entries.items():
            if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                raise StateError(f"{name[:60]!r} in {file.path} is packed as no checkpoint is")
            with bundle.open(entry) as stream:
                headers[name] = _npy_header(stream)
        types = {
            n: TensorType(shape, dtype.newbyteorder("="))
            for n, (shape, _, dtype) in headers.items()
        }

        def array_of(name: str) -> Array:
            shape, by_columns, dtype = headers[name]
            with bundle.open(entries[name]) as stream:
                _npy_header(stream)
                size = math.prod(shape) * dtype.itemsize
                data = stream.read(size)
                # To have come to the end is to have compared the checksum.
                if len(data) != size or stream.read(1):
                    raise StateError(f"{file.path} is damaged: {name[:60]!r} has another size")
            array = np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")
            return np.array(array, dtype.newbyteorder("="), order="C")

        yield types, lambda: {name: array_of(name) for name in entries}


def _npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, DType]:
    """Shape, whether by columns, and dtype. Later versions than the first may be large."""
    if npy.read_magic(stream) != (1, 0):
        raise ValueError("an array of another version of the format")
    shape, by_columns, dtype = npy.read_array_header_1_0(stream)
    if dtype.kind not in KINDS or any(n < 0 for n in shape):
        raise ValueError(f"an array of {dtype} with shape {shape}")
    return shape, by_columns, dtype


# ---- safetensors ----------------------------------------------------------------------------


_HEAD = '{"__metadata__":{"symgrad":"%s"}'


def _check_safetensors(arrays: Arrays) -> None:
    for name, array in arrays.items():
        if array.dtype.name not in _SAFE_NAMES:
            raise StateError(
                f"safetensors has no {array.dtype}, which {name[:60]!r} is; save it as .npz"
            )


def _write_safetensors(file: IO[bytes], arrays: Arrays) -> None:
    # The widest first, so that all of them are aligned.
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    header, at, pieces = {}, 0, []
    for name, array in ordered:
        dtype = array.dtype.newbyteorder("<")
        pieces.append(np.require(array, dtype, ["C"]).reshape(-1).view(np.uint8).data)
        place = [at, at := at + array.nbytes]
        kind = _SAFE_NAMES[array.dtype.name]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": place}
    listed = ("," if header else "") + json.dumps(header, separators=(",", ":"))[1:]
    listed += " " * (-(len(_HEAD % Checksum()) + len(listed)) % 8)
    text = f"{_HEAD % Checksum(listed, *pieces)}{listed}"
    file.write(len(text).to_bytes(8, "little") + text.encode())
    for piece in pieces:
        file.write(piece)


@contextmanager
def _opened_safetensors(file: SizedFile) -> Iterator[Contents]:
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(file.size - 8, MOST_LISTED_BYTES):
        raise ValueError(f"a header of {length} bytes")
    text = file.read(length).decode()
    if text[0] != "{":  # blanks after it are part of the format, those before it are not
        raise ValueError("no header")
    header = strict_json(text)
    metadata = header.pop("__metadata__", {})
    _check_metadata(metadata)
    head = re.match(re.escape(_HEAD).replace("%s", "([0-9a-f]{32})"), text)
    if "symgrad" in metadata and not head:
        raise ValueError("its checksum is not where symgrad puts it")
    places = {name: _place(name, entry) for name, entry in header.items()}
    ordered = sorted(places, key=lambda name: places[name][1:])
    end = 0
    for name in ordered:
        _, first, last = places[name]
        if first != end:
            raise ValueError(f"{name[:60]!r} does not begin where the array before it ends")
        end = last
    if 8 + length + end != file.size:
        raise ValueError("the arrays are not what comes after the header")

    def read() -> Arrays:
        found, checksum = {}, Checksum(text[head.end() :] if head else "")
        for name in ordered:
            type_ = places[name][0]
            sizes: Any = type_.shape  # of numbers: no name is in a file
            array = np.empty(sizes, type_.dtype.newbyteorder("<"))
            piece = array.reshape(-1).view(np.uint8).data
            if file.readinto(piece) != array.nbytes:
                raise StateError(f"{file.path} was cut off while it was read")
            checksum.add(piece)
            found[name] = array.astype(type_.dtype, copy=False).view(type_.dtype)
        if head and str(checksum) != head[1]:
            raise StateError(f"{file.path} is damaged: its checksum is that of other values")
        return found

    yield {name: type_ for name, (type_, _, _) in places.items()}, read


def _check_metadata(metadata: Any) -> None:
    if not isinstance(metadata, dict) or not all(type(v) is str for v in metadata.values()):
        raise ValueError("__metadata__ is to be texts by their names")


def _place(name: str, entry: Any) -> tuple[TensorType, int, int]:
    """The type of an array, and where it begins and ends."""
    match entry:
        case {"dtype": str(kind), "shape": [*shape], "data_offsets": [first, last]}:
            numbers = (first, last, *shape)
            if len(entry) != 3 or len(shape) > MOST_AXES:
                raise ValueError(f"{name[:60]!r} is told of otherwise than with three fields")
            if any(type(n) is not int or not 0 <= n < 2**63 for n in numbers):
                raise ValueError(f"{name[:60]!r} has sizes and places that are no such numbers")
            if kind not in _SAFE_DTYPES:
                raise StateError(f"{name[:60]!r} is {kind[:60]}, which no variable can be")
            type_ = TensorType(tuple(shape), _SAFE_DTYPES[kind])
            if last - first != math.prod(shape) * type_.dtype.itemsize:
                raise ValueError(f"{name[:60]!r} has another size than its shape says")
            return type_, first, last
    raise ValueError(f"{name[:60]!r} has no dtype, shape and data_offsets")


_SAFE_NAMES: Mapping[str, str] = {
    "bool": "BOOL", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64",
    "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "float16": "F16", "float32": "F32", "float64": "F64", "complex64": "C64",
}  # fmt: skip
_SAFE_DTYPES: Mapping[str, DType] = {kind: np.dtype(name) for name, kind in _SAFE_NAMES.items()}

FORMATS: Mapping[str, Format] = {
    ".npz": Format(_any, _write_npz, _opened_npz),
    ".safetensors": Format(_check_safetensors, _write_safetensors, _opened_safetensors),
}
