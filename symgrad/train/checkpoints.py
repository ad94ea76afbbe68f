"""Checkpoints: the values of variables in a file, written whole or not at all, read all or none.

The suffix of the path says how: `.npz`, which `np.load` opens too, or `.safetensors`, for which
the package of that name must be installed. Nothing is pickled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, TypeAlias
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

from symgrad.ir.errors import StateError
from symgrad.ir.files import whole_file
from symgrad.ir.node import Node, Variable, describe
from symgrad.ir.types import KINDS, DType, TensorType
from symgrad.ir.values import store

Array: TypeAlias = np.ndarray[Any, DType]
Variables: TypeAlias = Mapping[str, Variable] | Iterable[Variable | tuple[str, Variable]]
# The type of each array in a file, and what reads one.
Contents: TypeAlias = tuple[dict[str, TensorType], Callable[[str], Array]]

MOST_LISTED = 8
LONGEST_NAME = 1000
_read = attrgetter("array")


def save_state(path: str | Path, variables: Variables) -> Path:
    """Write the present values of variables: those of one moment, also while a program updates.

    `variables` are variables, or a dict or pairs that give them names in the file. The file is
    written whole or not at all, so that the one before it stays if the disk is full or the process
    is killed.

    >>> w = variable("w", np.ones(3))
    >>> load_state(save_state("w.npz", [w]), [w])

    Raises `StateError` for what is no variable, for two of one name, and for names or dtypes that
    the kind of file cannot hold; `SymbolicError` for a variable that has no value.
    """
    target, named = Path(path), _named(variables)
    write = _kind(target, _WRITERS)
    for name in named:
        if not _is_writable(name):
            raise StateError(
                f"no array in a file can be called {name[:60]!r}; give another name: "
                "save_state(path, {'name': variable})"
            )
    arrays = list(map(_read, [v.cell for v in named.values()]))
    for variable in (v for v, a in zip(named.values(), arrays, strict=True) if a is None):
        variable.cell.read(str(variable.name))
    write(target, dict(zip(named, arrays, strict=True)))
    return target


def load_state(path: str | Path, variables: Variables) -> None:
    """Give variables the values that `save_state` wrote: all of them together, or none.

    The file must hold an array for each name, of the variable's shape and dtype, and no other.
    Raises `StateError`, which lists what differs, and for a file that is damaged or no checkpoint;
    then nothing has changed. No more is read than the variables have room for.
    """
    source, named = Path(path), _named(variables)
    read = _kind(source, _READERS)
    with source.open("rb") as file:
        try:
            with read(file, source) as (types, array_of):
                _compare(source, types, {name: v.tensor for name, v in named.items()})
                arrays = [array_of(name) for name in named]
        except (StateError, MemoryError):
            raise
        except Exception as error:  # a reader of damaged bytes may raise anything
            said = f"{type(error).__name__}: {error}"
            raise StateError(f"{source} is damaged, or no checkpoint: {said}") from error
    store({v.cell: a for v, a in zip(named.values(), arrays, strict=True)})


def _named(variables: Any) -> dict[str, Variable]:
    if isinstance(variables, Node) or not isinstance(variables, Iterable):
        raise _no_variables(variables)
    named: dict[str, Variable] = {}
    for entry in variables.items() if isinstance(variables, Mapping) else variables:
        match entry:
            case Variable(name=str(name)) as variable:
                pass
            case (str(name), Variable() as variable):
                pass
            case _:
                raise _no_variables(entry)
        if name in named:
            raise StateError(
                f"two variables are called {name[:60]!r}: {describe(named[name])} and "
                f"{describe(variable)}; give their names: {{'a': …, 'b': …}}"
            )
        named[name] = variable
    return named


def _no_variables(given: Any) -> StateError:
    return StateError(
        f"the state is kept in variables that have names, not in {given!r:.80}; give a list of "
        "them, [w, b], or a dict, {'w': w, 'b': b}; for a module net.named_variables(), and with "
        "its optimizer [*net.named_variables(), *optimizer.variables]"
    )


def _is_writable(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and name != "__metadata__"


def _kind(path: Path, kinds: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    found = kinds.get(path.suffix.lower())
    if found is None:
        raise StateError(f"a checkpoint is a file *.npz or *.safetensors, not {path.name!r}")
    return found


def _compare(path: Path, found: Mapping[str, TensorType], wanted: Mapping[str, TensorType]) -> None:
    """Refuse a file that is not for these variables."""
    differing = [
        *(f"{n[:60]}: not in the file" for n in wanted if n not in found),
        *(f"{n[:60]}: {t!r} in the file, no variable here" for n, t in found.items()
          if n not in wanted),
        *(f"{n[:60]}: {found[n]!r} in the file, {t!r} here" for n, t in wanted.items()
          if n in found and found[n] != t),
    ]  # fmt: skip
    if differing:
        more = len(differing) - MOST_LISTED
        listed = [*differing[:MOST_LISTED], *([f"and {more} more"] if more > 0 else [])]
        raise StateError("\n  ".join([f"{path} is a checkpoint of another model:", *listed]))


# ---- npz ------------------------------------------------------------------------------------


def _write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    with whole_file(path) as file, ZipFile(file, "w", ZIP_STORED) as bundle:
        for name, array in arrays.items():
            # The date of the entry is a constant: equal values are equal files.
            with bundle.open(ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                npy.write_array(entry, np.require(array, requirements="C"), (1, 0), False)


@contextmanager
def _read_npz(file: IO[bytes], path: Path) -> Iterator[Contents]:
    with ZipFile(file) as bundle:
        entries = {e.filename.removesuffix(".npy"): e for e in bundle.infolist()}
        if len(entries) != len(bundle.infolist()):
            raise StateError(f"{path} is damaged: it holds two arrays of one name")
        headers, types = {}, {}
        for name, entry in entries.items():
            if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                raise StateError(f"{path} is no checkpoint: {name[:60]!r} is packed otherwise")
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
                    raise StateError(f"{path} is damaged: {name[:60]!r} has another size")
            array = np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")
            return np.array(array, dtype.newbyteorder("="), order="C")

        yield types, array_of


def _npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, DType]:
    """Shape, whether by columns, and dtype. Later versions than the first may be large."""
    if npy.read_magic(stream) != (1, 0):
        raise ValueError("an array of another version of the format")
    shape, by_columns, dtype = npy.read_array_header_1_0(stream)
    if dtype.kind not in KINDS or any(n < 0 for n in shape):
        raise ValueError(f"an array of {dtype} with shape {shape}")
    return shape, by_columns, dtype


# ---- safetensors ----------------------------------------------------------------------------


def _write_safetensors(path: Path, arrays: Mapping[str, Array]) -> None:
    safe = _safetensors()
    for name, array in arrays.items():
        if array.dtype.name not in _SAFE_DTYPES.values():
            raise StateError(
                f"safetensors has no {array.dtype}, which {name[:60]!r} is; save it as .npz"
            )
    data = safe.save({n: np.require(a, requirements="C") for n, a in arrays.items()})
    with whole_file(path) as file:
        file.write(data)


@contextmanager
def _read_safetensors(file: IO[bytes], path: Path) -> Iterator[Contents]:
    with _safetensors().safe_open(path, framework="np") as bundle:
        types = {}
        for name in bundle.keys():  # noqa: SIM118  it is no dict
            piece = bundle.get_slice(name)
            dtype = _SAFE_DTYPES.get(piece.get_dtype())
            if dtype is None:
                raise StateError(f"{path} is no checkpoint: {name[:60]!r} is {piece.get_dtype()}")
            types[name] = TensorType(tuple(piece.get_shape()), np.dtype(dtype))
        yield types, lambda name: np.array(bundle.get_tensor(name), order="C")


def _safetensors() -> Any:
    try:
        import safetensors.numpy as safe
    except ImportError:
        raise StateError(
            "files *.safetensors need the package safetensors: pip install 'symgrad[safetensors]'; "
            "*.npz need none"
        ) from None
    return safe


_SAFE_DTYPES: Mapping[str, str] = {
    "BOOL": "bool", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64",
    "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "F16": "float16", "F32": "float32", "F64": "float64", "C64": "complex64",
}  # fmt: skip
_WRITERS: Mapping[str, Callable[[Path, Mapping[str, Array]], None]] = {
    ".npz": _write_npz,
    ".safetensors": _write_safetensors,
}
_READERS: Mapping[str, Callable[[IO[bytes], Path], AbstractContextManager[Contents]]] = {
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
}

__all__ = ["load_state", "save_state"]
