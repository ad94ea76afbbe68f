"""Digests of bytes. Importing hashlib loads OpenSSL, which not every program needs."""

from __future__ import annotations

from typing import Any, Protocol


class Digest(Protocol):
    """A digest of the bytes that it was given."""

    def update(self, data: Any, /) -> None:
        """Take the next bytes."""

    def hexdigest(self) -> str:
        """The digest of all of them, as text."""
        ...


def blake2b(data: bytes = b"", *, size: int) -> Digest:
    """The BLAKE2b digest of some bytes, `size` bytes long, to which more bytes can be added.

    >>> blake2b(b"abc", size=4).hexdigest()
    '63906248'
    """
    import hashlib

    return hashlib.blake2b(data, digest_size=size)


def sha256(data: bytes) -> bytes:
    """The SHA-256 digest of some bytes."""
    import hashlib

    return hashlib.sha256(data).digest()
