"""Subnormal numbers taken for 0, in this thread and wherever it shares its work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from symgrad.ir.errors import UnsupportedError
from symgrad.runtime.threads import SLOTS, Context

if TYPE_CHECKING:
    from symgrad.native.mode import Mode


@contextmanager
def flush_subnormals() -> Iterator[None]:
    """A context in which subnormal numbers count as 0, as they do in XLA.

    Subnormal are floats nearer to 0 than 1.2e-38 in float32, and 2.2e-308 in float64. Intel's
    processors take up to a hundred times as long for them, which slows down training whose
    gradients vanish. Here each that is an operand or a result becomes a zero of its sign, so that
    results may differ by no more than these numbers, unless they are divided by. That holds for all
    that this thread computes, by NumPy or in machine code, and for the threads that a program
    shares its work with; not for threads of BLAS's own, and not for processes or other threads that
    work is given to. It can decorate a function, too. Do not `await` or `yield` within: the mode is
    the thread's. float16 is left alone.

    Raises `UnsupportedError` without the extra `native`, or on a processor that is not known.

    >>> with flush_subnormals():
    ...     float(np.float32(1e-30) * np.float32(1e-10))
    0.0
    """
    from symgrad.native.engine import Unavailable
    from symgrad.native.mode import mode

    try:
        here = mode()
    except Unavailable as error:
        raise UnsupportedError(f"subnormal numbers cannot be flushed: {error}") from error
    # From here on always: a thread that is made within inherits the mode, and keeps it.
    SLOTS.of_caller = _as_this_thread
    with _in_mode(here, here.get() | here.flush):
        yield


def _as_this_thread() -> Context:
    from symgrad.native.mode import mode

    here = mode()
    return partial(_in_mode, here, here.get())


@contextmanager
def _in_mode(here: Mode, wanted: int) -> Iterator[None]:
    own = here.get()
    try:
        here.set(wanted)
        yield
    finally:
        here.set(own)
