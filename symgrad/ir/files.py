"""Files, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file as UTF-8, whole or not at all."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}; make it first")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
