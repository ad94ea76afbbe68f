"""Threads: blocks of rows are shared out among them, since NumPy's loops run without the GIL.

Which thread runs a block makes no difference to any bit. The caller works, too, and waits for
nobody who has not begun: so programs may run at once, within each other, and when the others are
busy. A process that was forked makes threads of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import numpy as np

MOST_THREADS = 64


def available() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), MOST_THREADS)
    return min(os.cpu_count() or 1, MOST_THREADS)


class _Helpers:
    """The threads of a process, made when they are first asked for."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.process = -1
        self.pool: ThreadPoolExecutor | None = None

    def of_this_process(self) -> ThreadPoolExecutor:
        if self.pool is None or self.process != os.getpid():
            if self.process != os.getpid():
                self.lock = Lock()  # it may have been held by another thread in the fork
            with self.lock:
                if self.pool is None or self.process != os.getpid():
                    self.pool = ThreadPoolExecutor(MOST_THREADS, "symgrad")
                    self.process = os.getpid()
        assert self.pool is not None
        return self.pool


_HELPERS = _Helpers()


def share(
    work: Callable[..., Any], starts: Iterable[int], workspaces: Sequence[Sequence[Any]]
) -> None:
    """Call `work(start, *workspace)` for each start, a thread for each workspace.

    Raises what a call raises, after all threads have stopped.
    """
    left = iter(list(starts))  # one step of it is one step of the interpreter

    def worker(workspace: Sequence[Any]) -> None:
        with np.errstate(all="ignore"):
            for start in left:
                work(start, *workspace)

    pool = _HELPERS.of_this_process()
    others = [pool.submit(worker, w) for w in workspaces[1:]]
    try:
        worker(workspaces[0])
    finally:
        for other in others:
            if not other.cancel():
                other.exception()
    for other in others:
        if not other.cancelled():
            other.result()
