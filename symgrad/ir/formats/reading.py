"""Files, read with care. Whatever symgrad reads goes through here: what it finds may be hostile."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from symgrad.ir.digest import blake2b
from symgrad.ir.errors import ArgumentError, FileError

if TYPE_CHECKING:
    from pathlib import Path

# A pipe is opened without waiting for who writes into it, a terminal without becoming ours.
_FLAGS = os.O_RDONLY | sum(getattr(os, n, 0) for n in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
# Bytes that an element takes when JSON has been read, about; a key takes as much as so many.
VALUE, KEY = 72, 3
FEW = 2**16  # values that there is always room for


def checked_path(path: str | Path) -> Path:
    """The path, if a file can have it. Raises `FileError`, and `ArgumentError` for what is none."""
    from pathlib import Path

    try:
        if b"\0" not in os.fsencode(path):
            return Path(path)
    except UnicodeEncodeError:
        pass
    except TypeError:
        raise ArgumentError(f"a path is a str or a Path, not {path!r:.60}") from None
    raise FileError(f"no file can be called {str(path)[:60]!r}, with a NUL or half a character")


class SizedFile(io.BufferedReader):
    """An open file of `size` bytes, of which at most `most` are read at a time."""

    size: int
    most: int | None = None
    path: str | Path

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes, or what is left. Raises `FileError` for more than `most`."""
        wanted = self.size - self.tell() if size is None or size < 0 else size
        if self.most is not None and wanted > self.most:
            raise FileError(f"{wanted} bytes are to be read at once, more than {self.most}")
        return super().read(wanted)


@contextmanager
def regular_file(path: str | Path, most: int | None = None) -> Iterator[SizedFile]:
    """A file, open to be read, of which it is certain that reading it comes to an end.

    It is asked of what was opened, not of the path, which somebody may meanwhile have changed.
    Raises `FileError` for a folder, a device, a pipe or a socket, and for more than `most` bytes;
    `OSError` for what is not there or may not be read.
    """
    try:
        handle = os.open(checked_path(path), _FLAGS)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):  # a socket
            raise _no_file(path) from None
        raise
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise _no_file(path)
        if most is not None and found.st_size > most:
            raise FileError(
                f"{path} has {found.st_size} bytes, and at most {most} are read here; if it is "
                f"known to be good: most_bytes={found.st_size}"
            )
    except BaseException:
        os.close(handle)
        raise
    with SizedFile(io.FileIO(handle)) as file:
        file.size, file.path = found.st_size, path
        yield file


def _no_file(path: str | Path) -> FileError:
    return FileError(f"{path} is no regular file, but a folder, a device, a pipe or a socket")


def strict_json(source: str, most_bytes: int | None = None) -> Any:
    """JSON, read to the letter: no NaN, no key twice, at most a value for each `VALUE` bytes.

    Raises `ValueError`, also for what is nested too deeply.
    """
    if most_bytes is not None:
        count = sum(map(source.count, ",[{")) + KEY * source.count(":")
        if count > max(most_bytes // VALUE, FEW):
            raise ValueError(
                f"it has {count} values, more than fit into {most_bytes} bytes of memory; if it is "
                f"known to be good: most_bytes={count * VALUE}"
            )
    import json

    try:
        return json.loads(source, parse_constant=_no_constant, object_pairs_hook=_once)
    except (RecursionError, MemoryError) as error:
        raise ValueError(f"it is nested too deeply or too large: {error}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(n for n in names if names.count(n) > 1)
        raise ValueError(f"the key {twice[:60]!r} is there twice")
    return found


class Checksum:
    """A checksum of bytes that come piece by piece: it finds damage, not malice."""

    def __init__(self, *pieces: Any) -> None:
        self._sum = blake2b(size=16)
        for piece in pieces:
            self.add(piece)

    def add(self, piece: Any) -> None:
        """Take the next bytes, a text as UTF-8."""
        self._sum.update(piece.encode() if isinstance(piece, str) else piece)

    def __str__(self) -> str:
        return self._sum.hexdigest()
