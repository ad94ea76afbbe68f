"""Training loops: batches, `fit`, and the history of a run. Nothing of them is needed to train.

>>> x, y, w = placeholder("x", "N"), placeholder("y", "N"), variable("w", 0.0)
>>> loss = mean((w * x - y) ** 2)
>>> step = compile([x, y], loss, {w: w - 0.1 * grad(loss, w)})
>>> rows = np.arange(3.0)
>>> history = fit(step, batches(rows, 2 * rows, size=2, key=0), epochs=20, progress=False)
>>> round(float(w.value), 3)
2.0
"""

from __future__ import annotations

import operator
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import numpy as np

from symgrad.ir.errors import FeedError, UnsupportedError
from symgrad.ir.node import Node
from symgrad.ir.types import DType
from symgrad.progress import shown_on

Array: TypeAlias = np.ndarray[Any, DType]
# Gone over once an epoch: something that can be, or a function of the number of the epoch.
Epochs: TypeAlias = "Batches | Iterable[Any] | Callable[[int], Iterable[Any]]"

TEST = "test "  # before the names of figures that are no part of training


# ---- batches --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Batches:
    """Rows of arrays, a number at a time; `batches(epoch)` are those of an epoch, from 0 on.

    The order is a function of the key and the epoch alone, so that a run can go on anywhere.
    """

    arrays: tuple[Array, ...]
    size: int
    seed: tuple[int, ...] | None

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return len(self.arrays[0])

    def __len__(self) -> int:
        return -(-self.rows // self.size)

    def __call__(self, epoch: int) -> Iterator[tuple[Array, ...]]:
        order = np.arange(self.rows)
        if self.seed is not None:
            words = np.random.SeedSequence([*self.seed, epoch])
            np.random.Generator(np.random.Philox(words)).shuffle(order)
        for start in range(0, self.rows, self.size):
            taken = order[start : start + self.size]
            yield tuple([a[taken] for a in self.arrays])

    def __iter__(self) -> Iterator[tuple[Array, ...]]:
        return self(0)

    def __repr__(self) -> str:
        return f"<{len(self)} batches of {self.size} of {self.rows} rows>"


def batches(*arrays: Any, size: int, key: Any = None) -> Batches:
    """The rows of arrays in batches of `size`, those of one batch together; the last is smaller.

    Shuffled by `key`, a seed or a key of `sg.random`, otherwise in each epoch; without one they
    keep their order. A program takes the last batch as it is if its placeholders say
    `("N", …)`.

    >>> [x.tolist() for (x,) in batches(np.arange(5), size=2)]
    [[0, 1], [2, 3], [4]]

    Raises `FeedError` for arrays that have not as many rows, or none, and for a size below 1.
    """
    found = tuple(map(np.asarray, arrays))
    rows = {a.shape[:1] for a in found}
    if len(rows) != 1 or rows & {(), (0,)}:
        shapes = ", ".join(str(a.shape) for a in found)
        raise FeedError(f"batches are of arrays with as many rows each, from 1 on, not {shapes}")
    try:
        count = operator.index(size)
    except TypeError:
        count = 0
    if count < 1:
        raise FeedError(f"the size of a batch is a whole number from 1 on, not {size!r}")
    return Batches(found, count, None if key is None else _seed(key))


def _seed(key: Any) -> tuple[int, ...]:
    """The words of a key, of which a seed is one, of any length."""
    words: tuple[Any, ...] = (key,)
    if isinstance(key, (Node, np.ndarray)):
        found = np.asarray(key)
        words = tuple(found.tolist()) if found.shape == (2,) else ()
    if not words or any(not isinstance(w, (int, np.integer)) or w < 0 for w in words):
        raise FeedError(
            f"a key is a seed, an int from 0 on, or sg.random.key(seed), not {key!r:.60}"
        )
    return tuple(map(int, words))


# ---- the history of a run -------------------------------------------------------------------


@dataclass
class _Means:
    """Means over the rows of batches."""

    sums: dict[str, float] = field(default_factory=dict)
    rows: int = 0

    def add(self, figures: Mapping[str, float], rows: int) -> None:
        self.rows += rows
        for name, value in figures.items():
            self.sums[name] = self.sums.get(name, 0.0) + rows * value

    def means(self) -> dict[str, float]:
        return {name: total / max(self.rows, 1) for name, total in self.sums.items()}


@dataclass
class History:
    """What a run has done so far: `fit` goes on from here, and writes into it.

    `losses` has the loss of each step, `records` the figures of each epoch, by name: means over its
    rows. `history["loss"]` is one figure over the epochs. `epoch` epochs are done, and `batch`
    batches of the next.
    """

    epoch: int = 0
    batch: int = 0
    losses: list[float] = field(default_factory=list)
    records: list[dict[str, float]] = field(default_factory=list)
    _means: _Means = field(default_factory=_Means, repr=False)

    @staticmethod
    def after(steps: int, batches: Sized) -> History:
        """The history of a run of which it is only known how many steps it has done.

        With a variable that counts the steps, a checkpoint is enough to go on from.
        """
        if steps < 0:
            raise FeedError(f"a run has done 0 steps or more, not {steps}")
        return History(*divmod(int(steps), len(batches)))

    def __getitem__(self, name: str) -> list[float]:
        if not any(name in r for r in self.records):
            known = ", ".join(dict.fromkeys(repr(n) for r in self.records for n in r))
            raise KeyError(f"there is no {name!r}, but {known or 'nothing yet'}")
        return [r.get(name, np.nan) for r in self.records]

    def plot(self, path: str | Path | None = None) -> Any:
        """A figure of matplotlib with every figure over the epochs; written to a path if given.

        Raises `UnsupportedError` if matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise UnsupportedError("a plot needs matplotlib: pip install matplotlib") from None
        figure = Figure(layout="constrained")
        names = list(dict.fromkeys(n for r in self.records for n in r))
        # Losses and their like share a plot; so do others of one name, such as 'test accuracy'.
        kinds = list(dict.fromkeys(n.removeprefix(TEST) for n in names)) or ["loss"]
        for axes, kind in zip(figure.subplots(len(kinds), squeeze=False)[:, 0], kinds, strict=True):
            for name in (n for n in names if n.removeprefix(TEST) == kind):
                axes.plot(range(1, len(self.records) + 1), self[name], label=name)
            if not names:
                axes.plot(self.losses)
            axes.set(xlabel="epoch" if names else "step", ylabel=kind)
            if len(axes.lines) > 1:
                axes.legend()
        if path is not None:
            figure.savefig(path)
        return figure


def early_stopping(
    watch: str = "loss", *, patience: int, higher: bool = False
) -> Callable[[History], bool]:
    """For `on_epoch`: stop when a figure has not become better for `patience` epochs.

    Lower is better, or `higher`. A NaN is not better than anything.
    """
    if patience < 1:
        raise FeedError(f"patience is a number of epochs from 1 on, not {patience!r}")

    def is_over(history: History) -> bool:
        figures = np.array(history[watch]) * (-1 if higher else 1)
        best = int(np.argmin(np.where(np.isnan(figures), np.inf, figures)))
        return len(figures) - 1 - best >= patience

    return is_over


# ---- fit ------------------------------------------------------------------------------------

Callback: TypeAlias = Callable[[History], object]


def fit(
    program: Callable[..., Any],
    batches: Epochs,
    *,
    epochs: int = 1,
    history: History | None = None,
    test: tuple[Callable[..., Any], Epochs] | None = None,
    on_step: Callback | Sequence[Callback] = (),
    on_epoch: Callback | Sequence[Callback] = (),
    progress: bool | TextIO = True,
) -> History:
    """Call a program with each batch, in so many epochs, and keep what it returns.

    `program` returns the loss, or a dict or sequence of scalars of which the first is the loss.
    `batches` are `sg.batches(…)`, a list, or a function that gives those of an epoch, from 0 on. A
    batch is a tuple of arrays for the placeholders, a dict of them by name, or one array.
    `test` is a program that updates nothing and its batches: after each epoch its figures are
    recorded too, as `test loss` and so on. The functions `on_step` and `on_epoch` are given the
    history after each; if one returns True, the run ends (see `early_stopping`).

    `history` is that of an earlier run, which goes on, until `epochs` are done in all. Ctrl-C lets
    the step that runs come to its end, and is then raised; the history given knows that step, so
    that a second call goes on as if there had been none. A second Ctrl-C is raised at once.

    `progress` is where progress is written, `True` for `sys.stderr`, `False` for nowhere: a bar if
    that is a terminal or notebook and tqdm is installed, else a line every few seconds.

    Raises `FeedError` for batches whose shapes differ in more than their rows, for none, and for a
    program that does not return scalars.
    """
    history = History() if history is None else history
    after_step, after_epoch = _callbacks(on_step), _callbacks(on_epoch)
    shapes: dict[Any, tuple[int, ...]] = {}
    count = len(batches) if isinstance(batches, Sized) else None
    with _Interrupts() as interrupts, shown_on(progress, epochs, count) as shown:
        while history.epoch < epochs:
            for batch in islice(_epoch(batches, history.epoch), history.batch, None):
                rows = _check_shapes(batch, shapes, history.batch, history.epoch)
                figures = _figures(_called(program, batch))
                history.losses.append(next(iter(figures.values())))
                history._means.add(figures, rows)
                history.batch += 1
                shown.step(history.epoch, history.batch, history.losses[-1])
                over = _over(after_step, history)
                interrupts.raise_if_any()
                if over:
                    return history
            if not history.batch:
                raise FeedError(
                    f"there are no batches in epoch {history.epoch}; a generator can be gone over "
                    "once: give a list, sg.batches(…), or a function of the number of the epoch"
                )
            record = history._means.means()
            if test is not None:
                record |= {f"{TEST}{n}": v for n, v in evaluate(*test).items()}
            history.records.append(record)
            history._means = _Means()
            history.epoch, history.batch = history.epoch + 1, 0
            shown.epoch(history.epoch, record)
            over = _over(after_epoch, history)
            interrupts.raise_if_any()
            if over:
                break
    return history


def evaluate(program: Callable[..., Any], batches: Epochs) -> dict[str, float]:
    """What a program returns, by name, as means over the rows of all batches (see `fit`)."""
    means, shapes = _Means(), dict[Any, tuple[int, ...]]()
    for i, batch in enumerate(_epoch(batches, 0)):
        rows = _check_shapes(batch, shapes, i, 0)
        means.add(_figures(_called(program, batch)), rows)
    if not means.sums:
        raise FeedError("there are no batches to evaluate on")
    return means.means()


def _callbacks(given: Callback | Sequence[Callback]) -> Sequence[Callback]:
    return (given,) if callable(given) else tuple(given)


def _over(callbacks: Sequence[Callback], history: History) -> bool:
    """Call them all; whether one says True, which a path that it has written does not."""
    answers = [callback(history) for callback in callbacks]
    return any(isinstance(answer, (bool, np.bool_)) and answer for answer in answers)


def _epoch(batches: Epochs, epoch: int) -> Iterable[Any]:
    return batches(epoch) if callable(batches) else batches


def _called(program: Callable[..., Any], batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return program(**batch)
    return program(*batch) if isinstance(batch, (tuple, list)) else program(batch)


def _check_shapes(batch: Any, known: dict[Any, tuple[int, ...]], number: int, epoch: int) -> int:
    """The rows of a batch, whose shapes are otherwise those of the first one."""
    parts = batch if isinstance(batch, Mapping) else dict(enumerate(_as_tuple(batch)))
    shapes = {n: v.shape if isinstance(v, np.ndarray) else np.shape(v) for n, v in parts.items()}
    rest = {name: shape[1:] for name, shape in shapes.items()}
    if not known:
        known.update(rest)
    if known != rest:
        raise FeedError(
            f"batch {number} of epoch {epoch} has rows of the shapes {list(rest.values())}, "
            f"the first batch had {list(known.values())}; pad or crop them to one shape"
        )
    return next((s[0] for s in shapes.values() if s), 1)


def _as_tuple(batch: Any) -> Sequence[Any]:
    return batch if isinstance(batch, (tuple, list)) else (batch,)


def _figures(result: Any) -> dict[str, float]:
    """What a program returned, by name; the loss is the first."""
    if isinstance(result, (float, np.floating)):  # as it is mostly
        return {"loss": float(result)}
    if isinstance(result, Mapping):
        named = {str(name): value for name, value in result.items()}
    else:
        values = result if isinstance(result, (tuple, list)) else (result,)
        named = {f"output {i}" if i else "loss": value for i, value in enumerate(values)}
    wrong = [n for n, v in named.items() if np.ndim(v) or np.asarray(v).dtype.kind not in "biuf"]
    if wrong or not named:
        raise FeedError(
            "the program returns "
            + (f"{wrong[0]!r}, which is no real scalar" if wrong else "nothing")
            + "; compile it with the loss as its first output, and figures beside it"
        )
    return {name: float(value) for name, value in named.items()}


class _Interrupts:
    """Ctrl-C waits for a moment at which everything is whole; a second one does not."""

    def __init__(self) -> None:
        self.asked = False
        self.before: Any = None

    def __enter__(self) -> _Interrupts:
        # A handler of the user's own is left alone; only the main thread has handlers.
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def raise_if_any(self) -> None:
        """Raise what was asked for meanwhile."""
        if self.asked:
            raise KeyboardInterrupt

    def __exit__(self, *error: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)


__all__ = ["Batches", "History", "batches", "early_stopping", "evaluate", "fit"]
