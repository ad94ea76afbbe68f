"""Threads: tiles of rows are shared out among them, since NumPy's loops run without the GIL.

Which thread runs a tile makes no difference to any bit. The caller works, too, and waits for
nobody who has not begun: so programs may run at once, within each other, and when the others are
busy. A process that was forked makes threads of its own.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

MOST_THREADS = 64


def available() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), MOST_THREADS)
    return min(os.cpu_count() or 1, MOST_THREADS)


@lru_cache(maxsize=1)
def _helpers(process: int) -> Any:
    """The threads of a process, made when they are first asked for."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(MOST_THREADS, "symgrad")


def share(
    work: Callable[..., Any], starts: Iterable[int], workspaces: Sequence[Sequence[Any]]
) -> None:
    """Call `work(start, *workspace)` for each start, a thread for each workspace.

    Raises what a call raises, after all threads have stopped. A second Ctrl-C does not wait for
    them: after an exception their workspaces must not be used again.
    """
    left = deque(starts)

    def worker(workspace: Sequence[Any]) -> None:
        with np.errstate(all="ignore"):
            while True:
                try:
                    start = left.popleft()
                except IndexError:
                    return
                work(start, *workspace)

    pool = _helpers(os.getpid())
    others = [pool.submit(worker, w) for w in workspaces[1:]]
    try:
        worker(workspaces[0])
    finally:
        left.clear()  # whoever is still at work ends with the tile that it has begun
        for other in others:
            if not other.cancel():
                other.exception()
    for other in others:
        if not other.cancelled():
            other.result()
