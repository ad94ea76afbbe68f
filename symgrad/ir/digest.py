"""Digests of bytes. Importing hashlib loads OpenSSL, which not every program needs."""

from __future__ import annotations

from typing import Any


def blake2b(data: bytes = b"", *, size: int) -> Any:
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
