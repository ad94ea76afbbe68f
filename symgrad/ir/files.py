"""Files, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write into, which becomes `path` when all is written; else nothing changes.

    What is killed meanwhile leaves a hidden file beside it, of the same name and more.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}; make it first")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a file as UTF-8, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode())
