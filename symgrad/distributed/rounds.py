"""A round: its pieces on an executor, and what they give, joined in the order of the pieces.

The order does not depend on who is ready first, so that every executor gives the same bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from symgrad.distributed.worker import Done, Lent, Missing, Piece, compute
from symgrad.ir.op import REGISTRY
from symgrad.lowering.map_reduce.split import Meeting
from symgrad.runtime.threads import available

# So many pieces are under way at once for each worker that has what they read, at most so many in
# all, and two for each worker at least.
AHEAD, EACH = 64, 16


class Future(Protocol):
    """The result of a call, which an executor gives when it is there."""

    def result(self) -> Any: ...
    def cancel(self) -> Any: ...


class Executor(Protocol):
    """An executor, as those of `concurrent.futures` are."""

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Any: ...


@dataclass
class Spent:
    """Where the time of a round went, in seconds, and how much was done.

    `reading` and `computing` are sums over pieces, wherever they ran; `waiting` is how long this
    process waited for them, and `joining` how long it took to join what they gave. `pieces` are
    done `of` so many. `sending` is what was waited for beyond the work of the workers, shared out
    evenly. It prints as progress.
    """

    of: int = 0
    pieces: int = 0
    rows: int = 0
    reading: float = 0.0
    computing: float = 0.0
    waiting: float = 0.0
    joining: float = 0.0
    sent_again: int = 0
    workers: set[str] = field(default_factory=set)
    begun: float = field(default_factory=perf_counter)

    @property
    def sending(self) -> float:
        """Seconds in which pieces and results were on their way."""
        work = (self.reading + self.computing) / max(len(self.workers), 1)
        return max(self.waiting - work, 0.0)

    def __str__(self) -> str:
        rate = self.rows / max(perf_counter() - self.begun, 1e-9)
        return f"piece {self.pieces}/{self.of}  {rate:,.0f} rows/s"


class Now:
    """A call that was made at once: the executor of a program that runs piece after piece."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.found = function(*args)

    def result(self) -> Any:
        """The result."""
        return self.found

    def cancel(self) -> None:
        """It is over."""


class Here:
    """An executor that computes a piece when it is asked for."""

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Now:
        """The call, which is over."""
        return Now(function, *args)


class Sum:
    """The pieces of a result so far; the first one is its own to write into."""

    def __init__(self, meeting: Meeting) -> None:
        self.meeting = meeting
        self.found: Any = None
        self.parts: list[Any] = []

    def add(self, part: Any) -> None:
        """Join the next piece's."""
        if self.meeting.axis is not None:
            self.parts.append(part)
        elif self.found is None:
            self.dtype = part.dtype
            self.found = _wide(part)
        else:
            join = REGISTRY.ops[self.meeting.by].kernel
            into = {"out": self.found} if isinstance(self.found, np.ndarray) else {}
            with np.errstate(all="ignore"):
                lost = _is_nan(self.found) | _is_nan(part)  # hypot(inf, nan) is inf
                self.found = join(self.found, _wide(part), **into)
                if np.any(lost):
                    self.found = np.where(lost, self.found.dtype.type(np.nan), self.found)[()]

    def total(self) -> Any:
        """All pieces in one."""
        if self.meeting.axis is not None:
            return np.concatenate(self.parts, axis=self.meeting.axis)
        with np.errstate(all="ignore"):
            return self.found.astype(self.dtype, copy=False)


def _is_nan(part: Any) -> Any:
    return np.isnan(part) if part.dtype.kind in "fc" else np.False_


def _wide(part: Any) -> Any:
    """Sums of float16 are added up in float32, as NumPy does."""
    return part.astype(np.float32) if part.dtype == np.float16 else part


@dataclass(frozen=True)
class Task:
    """A piece, which rows it has, and its number."""

    piece: Piece
    number: int
    rows: tuple[int, int]


def run_round(
    tasks: Iterator[Task],
    meetings: Sequence[Meeting],
    executor: Executor | None,
    known: set[str],
    count: int,
    of: str,
    progress: Callable[[Spent], object] | None,
) -> tuple[list[Any], Spent]:
    """The results of a round of `count` pieces, joined.

    `known` are the workers of rounds before; those of this one are added. An error tells the piece,
    and none is submitted after it.
    """
    spent, sums = Spent(count), [Sum(m) for m in meetings]
    waiting = _Waiting(tasks, executor or Here(), len(known))
    try:
        for task, future in waiting:
            begun = perf_counter()
            done = future.result()
            spent.waiting += perf_counter() - begun
            if isinstance(done, Missing):
                waiting.again(task)
                spent.sent_again += 1
                continue
            _join(done, task, sums, spent)
            waiting.has_it.add(done.where)
            if progress is not None:
                progress(spent)
    except BaseException as error:
        waiting.cancel()
        if waiting.task is not None:
            (start, stop), number = waiting.task.rows, waiting.task.number
            error.add_note(
                f"  in piece {number} of {of}, rows {start} to {stop}; nothing was changed"
            )
        raise
    known |= waiting.has_it
    begun = perf_counter()
    totals = [s.total() for s in sums]
    spent.joining += perf_counter() - begun
    return totals, spent


def _join(done: Done, task: Task, sums: Sequence[Sum], spent: Spent) -> None:
    begun = perf_counter()
    for s, part in zip(sums, done.results, strict=True):
        s.add(part)
    spent.joining += perf_counter() - begun
    spent.pieces += 1
    spent.rows += task.rows[1] - task.rows[0]
    spent.reading += done.reading
    spent.computing += done.computing
    spent.workers.add(done.where)


class _Waiting:
    """Pieces under way, in order: as many as there is work for, as few as memory likes.

    The first ones carry what all of them read, one for each worker that there may be; the others
    go out as workers turn out to have it.
    """

    def __init__(self, tasks: Iterator[Task], executor: Executor, workers: int) -> None:
        self.tasks, self.executor = tasks, executor
        self.under_way: deque[tuple[Task, Future]] = deque()
        self.carrying = 1 if isinstance(executor, Here) else max(workers, available())
        self.has_it: set[str] = set()
        self.task: Task | None = None

    def __iter__(self) -> Iterator[tuple[Task, Future]]:
        while True:
            while self._has_room() and (task := next(self.tasks, None)) is not None:
                self.task = task
                self.under_way.append((task, self._submit(task, carries=self.carrying > 0)))
                self.carrying -= 1
            if not self.under_way:
                return
            self.task, future = task, _ = self.under_way.popleft()
            yield task, future

    def _has_room(self) -> bool:
        if isinstance(self.executor, Here):
            return not self.under_way
        workers = len(self.has_it)
        most = max(min(AHEAD, EACH * workers), 2 * workers)
        return self.carrying > 0 or len(self.under_way) < most

    def _submit(self, task: Task, *, carries: bool) -> Future:
        piece = task.piece
        if not carries and isinstance(piece.program, Lent) and isinstance(piece.lent, Lent):
            piece = piece._replace(program=piece.program.without(), lent=piece.lent.without())
        found: Future = self.executor.submit(compute, piece)
        return found

    def again(self, task: Task) -> None:
        """Send a piece with all that it reads; it stays the next one."""
        self.under_way.appendleft((task, self._submit(task, carries=True)))

    def cancel(self) -> None:
        """Take back what has not begun."""
        for _, future in self.under_way:
            future.cancel()
