"""Objects on disk: what was compiled once is loaded by every later process.

An entry is a file that is whole or not there: it is written under another name first. It begins
with a checksum of all else, and with the whole key in full, so that neither a damaged file nor two
keys of one name give wrong code. A folder that others can write to, or put another in its place,
is not used, nor one that cannot be written: a store that fails at anything just keeps nothing.
"""

from __future__ import annotations

import os
import stat
import sys
import zlib
from contextlib import suppress
from pathlib import Path

from symgrad.ir.digest import sha256

MAGIC = b"symgrad object 1\n"
MOST_BYTES = 2**27
# A full folder has twenty thousand files, which take 0.4 s to look at: so one of 256 entries does,
# by how its name begins.
RARE = "00"


def standard_folder() -> Path | None:
    """Where this user's programs keep what can be made again; None if there is no such place."""
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        return home / "AppData" / "Local" / "symgrad" / "Cache" / "native"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "symgrad" / "native"
    return home / ".cache" / "symgrad" / "native"


class Store:
    """Entries of bytes by texts, in a folder that holds about so many bytes."""

    def __init__(self, folder: Path, most: int = MOST_BYTES) -> None:
        self.folder, self.most = folder, most

    @classmethod
    def at(cls, folder: Path | None) -> Store | None:
        """The store in a folder, which is made; None where it is not ours alone to write to."""
        if folder is None:
            return None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.stat()
            around = [p.stat().st_mode for p in folder.resolve().parents]
        except OSError:
            return None
        if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022):
            return None
        if any(mode & 0o002 and not mode & stat.S_ISVTX for mode in around):
            return None
        return cls(folder)

    def _path(self, key: str) -> Path:
        return self.folder / f"{sha256(key.encode()).hex()}.o"

    def get(self, key: str) -> bytes | None:
        """The object that was put in under a key; None if none was, or not all of it is there."""
        path = self._path(key)
        try:
            found = path.read_bytes()
        except OSError:
            return None
        held = _unpacked(found, key)
        with suppress(OSError):
            path.unlink() if held is None else os.utime(path)
        return held

    def put(self, key: str, content: bytes) -> None:
        """Keep an entry, and forget those that were used least lately, if there are too many."""
        path = self._path(key)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.{id(content):x}")
        try:
            unfinished.write_bytes(_packed(key, content))
            unfinished.replace(path)
            if path.name.startswith(RARE):
                self._shrink()
        except OSError:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)

    def _shrink(self) -> None:
        """Remove the oldest files, among them those that a process left unfinished."""
        files = []
        for entry in os.scandir(self.folder):
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                files.append((found.st_mtime, found.st_size, entry.path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self.most:
                break
            with suppress(OSError):
                Path(path).unlink()
            total -= size


def _packed(key: str, content: bytes) -> bytes:
    text = zlib.compress(key.encode(), 1)
    body = len(text).to_bytes(8, "little") + text + content
    return MAGIC + zlib.crc32(body).to_bytes(4, "little") + body


def _unpacked(found: bytes, key: str) -> bytes | None:
    head = len(MAGIC)
    body = found[head + 4 :]
    if not found.startswith(MAGIC) or len(body) < 8:
        return None
    if zlib.crc32(body).to_bytes(4, "little") != found[head : head + 4]:
        return None
    size = int.from_bytes(body[:8], "little")
    return body[8 + size :] if body[8 : 8 + size] == zlib.compress(key.encode(), 1) else None
