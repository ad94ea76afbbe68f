"""Subnormal numbers taken for 0, in a call of a program and wherever it shares its work.

Each thread has its own mode, which a thread that it makes inherits and keeps. So who helps another
takes over the mode of that one, whatever its own is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from symgrad.ir.errors import UnsupportedError
from symgrad.runtime.threads import SLOTS, Work

if TYPE_CHECKING:
    from symgrad.native.mode import Mode

T = TypeVar("T")


def prepare() -> None:
    """Find out how to flush, before the first call that does. Raises `UnsupportedError`."""
    from symgrad.native.engine import Unavailable

    try:
        _mode()
    except Unavailable as error:
        raise UnsupportedError(
            f"flush_subnormals needs machine code: {error}; leave it out, or install llvmlite: "
            "pip install 'symgrad[native]'"
        ) from None
    SLOTS.handed_over = _as_here


def _mode() -> Mode:
    from symgrad.native.mode import mode

    return mode()


def flushed(function: Callable[..., T], *args: object) -> T:
    """The result of a function that runs with subnormal numbers taken for 0."""
    here = _mode()
    own = here.get()
    try:
        here.set(own | here.flush)
        return function(*args)
    finally:  # in one call, which no Ctrl-C divides
        here.set(own)


def _as_here(work: Work) -> Work:
    """Work for another thread, which computes as this one does."""
    there = _mode()
    wanted = there.get()

    def helping() -> None:
        own = there.get()
        try:
            there.set(wanted)
            work()
        finally:
            there.set(own)

    return helping
