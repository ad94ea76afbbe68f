"""Threads: tiles of rows are shared out among them, since NumPy's loops run without the GIL.

Which thread runs a tile makes no difference to any bit. The caller works, too, and waits for
nobody who has not begun: so programs may run at once, within each other, and when the others are
busy. A process that was forked makes threads of its own.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from threading import Lock, Thread
from typing import Any, TypeAlias

import numpy as np

MOST_THREADS = 64


def available() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), MOST_THREADS)
    return min(os.cpu_count() or 1, MOST_THREADS)


Work: TypeAlias = Callable[[], None]


class _Slots:
    """`handed_over(work)`, asked in a thread, is the work as another one is to do it."""

    handed_over: Callable[[Work], Work] = staticmethod(lambda work: work)


SLOTS = _Slots()


class _Job:
    """A call for another thread, which whoever asked for it may take back until it has begun."""

    __slots__ = ("begun", "done", "error", "work")

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.error: BaseException | None = None
        self.begun, self.done = Lock(), Lock()
        self.done.acquire()

    def run(self) -> None:
        if self.begun.acquire(blocking=False):
            try:
                self.work()
            except BaseException as error:  # told to whoever waits
                self.error = error
            finally:
                self.done.release()

    def end(self) -> BaseException | None:
        """Take it back, or wait until it is done; what it raised, which is then forgotten."""
        if not self.begun.acquire(blocking=False):
            self.done.acquire()
        error, self.error = self.error, None
        return error


class _Helper:
    """A thread that runs a job, and then waits for the next one among those that are idle."""

    def __init__(self, idle: list[_Helper], job: _Job) -> None:
        self.idle, self.wake = idle, Lock()
        self.job: _Job | None = job
        self.wake.acquire()

    def serve(self) -> None:
        while True:
            if self.job is not None:
                self.job.run()
            self.job = None  # its arrays may go
            self.idle.append(self)
            self.wake.acquire()


class _Pool:
    """The helpers of a process. concurrent.futures takes five milliseconds to import."""

    def __init__(self) -> None:
        self.idle: list[_Helper] = []
        self.count = 0

    def submit(self, work: Callable[[], None]) -> _Job:
        """A job for a helper; where no other thread can be had, nobody begins it."""
        job = _Job(work)
        try:
            helper = self.idle.pop()
        except IndexError:
            if self.count < MOST_THREADS:
                with suppress(RuntimeError):  # the system has no more threads
                    helper = _Helper(self.idle, job)
                    Thread(target=helper.serve, name="symgrad", daemon=True).start()
                    self.count += 1
        else:
            helper.job = job
            helper.wake.release()
        return job


@lru_cache(maxsize=1)
def _helpers(process: int) -> _Pool:
    """The threads of a process, made when they are first asked for."""
    return _Pool()


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
    others = [pool.submit(SLOTS.handed_over(partial(worker, w))) for w in workspaces[1:]]
    errors = list[BaseException | None]()
    try:
        worker(workspaces[0])
    finally:
        left.clear()  # whoever is still at work ends with the tile that it has begun
        for other in others:
            errors.append(other.end())
    if any(errors):
        try:
            raise next(filter(None, errors))
        finally:
            errors.clear()  # its traceback has this frame, which is not to hold it in turn


def resting(rest: Callable[[], None]) -> Callable[..., None]:
    """`share` that has other threads rest first, which would hold the processors of these."""

    def share_alone(*args: Any) -> None:
        rest()
        share(*args)

    return share_alone
