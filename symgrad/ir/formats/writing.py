"""Files, written whole or not at all. Whatever symgrad writes goes through here."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

from symgrad.ir.formats.reading import checked_path

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform != "win32":
    import fcntl


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write into, which becomes `path` when all is written; else nothing changes.

    It has the mode of the file that it replaces, or that of any new file. A link stays, and leads
    to what was written; what is no file, such as a pipe, is written into as it is. What is killed
    meanwhile leaves a hidden `.NAME.….part` beside it, which the next to write `path` removes.

    Raises `OSError`; `FileNotFoundError` if there is no folder to write into, `FileError` for a
    path that no file can have.
    """
    mode, path = None, checked_path(path)
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
    if mode is not None and not (stat.S_ISREG(mode) and os.access(path, os.W_OK)):
        with path.open("wb") as file:  # or the system says why not: a folder, a protected file
            yield file
        return
    target = path.resolve()
    if not target.parent.is_dir():
        home = "; ~ is not expanded: Path(path).expanduser()" * path.parts[0].startswith("~")
        raise FileNotFoundError(f"there is no folder {path.parent}; make it first{home}")
    _remove_left(target)
    temporary, handle = _part_of(target)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
            if mode is not None:
                temporary.chmod(stat.S_IMODE(mode))
            if sys.platform == "win32":  # which renames no open file
                file.close()
            temporary.replace(target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = str(path)  # a full disk does not know for what
        raise
    with suppress(OSError):  # where a folder cannot be synced, the system chooses when
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_whole(path: str | Path, text: str) -> Path:
    """Write a file as UTF-8, whole or not at all; returns its path."""
    target = checked_path(path)
    with whole_file(target) as file:
        file.write(text.encode())
    return target


def write_json(path: str | Path, document: Any, indent: int | None = None) -> Path:
    """Write a document as JSON, whole or not at all; returns its path."""
    import json

    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent)
    # Half of a surrogate pair, which a user's name may hold, is written as JSON escapes it.
    return write_whole(path, text.encode("utf-8", "backslashreplace").decode() + "\n")


def _start(target: Path) -> str:
    """How the names of its parts begin. Names have at most 255 bytes."""
    return f".{target.name[:40]}."


def _part_of(target: Path) -> tuple[Path, int]:
    """A new file beside it, held while it is open."""
    while True:
        temporary = target.with_name(f"{_start(target)}{os.urandom(4).hex()}.part")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        _hold(handle, wait=True)
        if os.fstat(handle).st_nlink:
            return temporary, handle
        os.close(handle)  # another process took it for one that was left, before it was held


def _remove_left(target: Path) -> None:
    """Remove what killed processes left of it: parts that nobody holds."""
    for path in target.parent.iterdir():
        if path.name.startswith(_start(target)) and path.suffix == ".part":
            with suppress(OSError), path.open("r+b") as left:
                if _hold(left.fileno(), wait=False):
                    path.unlink()


def _hold(handle: int, *, wait: bool) -> bool:
    """Hold an open file until it is closed or the process ends; False if that is not possible."""
    if sys.platform != "win32":
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            return True
    return False
