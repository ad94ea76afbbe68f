"""The garbage collector of Python, and when it had better wait."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """No cyclic garbage collection: a compiler makes many objects that live, and no cycles.

    Compiling a graph of 16,000 nodes took 1.14 s with it and 0.82 s without.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
