"""Messages to `logging.getLogger("symgrad")` about what takes time.

What takes half a second or more is told at INFO, the rest at DEBUG. Nobody listens where `logging`
has not been imported, so that it is not imported here either.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger

LONG = 0.5  # seconds
INFO, DEBUG = 20, 10


def tell(what: str, seconds: float) -> None:
    """Say that something took so long."""
    if "logging" in sys.modules:
        level = INFO if seconds >= LONG else DEBUG
        _logger().log(level, "%s: %.3f s", what, seconds)


@cache
def _logger() -> Logger:
    """Found once: a Ctrl-C in the midst of it leaves the lock of all loggers locked for ever."""
    logger: Logger = sys.modules["logging"].getLogger("symgrad")
    return logger


@contextmanager
def timed(what: Callable[[], str]) -> Iterator[None]:
    """Tell how long the block took; `what` is asked for words only if somebody may listen."""
    begun = perf_counter()
    yield
    if "logging" in sys.modules:
        tell(what(), perf_counter() - begun)
