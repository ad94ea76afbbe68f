"""The training loop. Nothing of it is needed to train: a program is called with arrays.

>>> x, y, w = placeholder("x", "N"), placeholder("y", "N"), variable("w", 0.0)
>>> loss = mean((w * x - y) ** 2)
>>> step = compile([x, y], loss, {w: w - 0.1 * grad(loss, w)})
>>> rows = np.arange(3.0)
>>> history = fit(step, batches(rows, 2 * rows, size=2, key=0), epochs=20, progress=False)
>>> round(float(w.value), 3)
2.0
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from functools import partial
from itertools import islice
from math import isnan
from typing import Any, TextIO, TypeAlias
from warnings import warn

import numpy as np

from symgrad.distributed.step import BoundProgram, MapReduce
from symgrad.ir.arraylike import is_function
from symgrad.ir.errors import FeedError
from symgrad.ir.node import Node, describe
from symgrad.ir.types import whole
from symgrad.nn.updates import carried
from symgrad.runtime.program import Program
from symgrad.train.batches import Batches
from symgrad.train.history import TEST, History, Means
from symgrad.train.progress import shown_on

# Gone over once an epoch: something that can be, or a function of the number of the epoch.
Epochs: TypeAlias = Batches | Iterable[Any] | Callable[[int], Iterable[Any]]
Callback: TypeAlias = Callable[[History], object]
# What can be gone over, too, but is no list of batches: a tuple holds the arrays of one.
_ONE_BATCH = (Node, np.ndarray, Mapping, str, tuple)


def fit(
    program: Callable[..., Any],
    batches: Epochs | None = None,
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
    batch is a tuple of arrays for the placeholders, a dict of them by name, or one array. Without
    batches the program is called without arguments, once an epoch: so is a `map_reduce` program
    with its data, `step.on(sg.chunks(…))`, of which progress tells the pieces.
    `test` is a program that updates nothing and its batches: after each epoch its figures are
    recorded too, as `test loss` and so on. The functions `on_step` and `on_epoch` are given the
    history after each; if one returns True, the run ends (see `early_stopping`).

    `history` is that of an earlier run, which goes on, until `epochs` are done in all; without one
    a run begins with epoch 0, whose batches are always in the same order. Ctrl-C lets the batch
    that runs come to its end, and is then raised; the history given knows that step, so that a
    second call goes on as if there had been none. A second Ctrl-C is raised at once.

    `progress` is where progress is written, `True` for `sys.stderr`, `False` for nowhere: a bar if
    that is a terminal or notebook and tqdm is installed, else a line every few seconds.

    Raises `FeedError`, before anything runs, for a program that does not return scalars or updates
    nothing, a `test` that updates something, and arguments that are none; before its step, for a
    batch that does not fit the placeholders, has no rows, or differs from the first one in
    more than their number; and for no batches. Warns of a loss that is NaN, and of a `test` that
    was built for training.
    """
    last = whole(epochs, "epochs", 0, FeedError)
    history = _history(history)
    after_step, after_epoch = _callbacks(on_step, "on_step"), _callbacks(on_epoch, "on_epoch")
    _check_program(program, trains=True)
    _check_test(test)
    if batches is None and isinstance(program, MapReduce):
        raise FeedError("a program in rounds has its data with it: sg.fit(step.on(sg.chunks(…)))")
    shapes: dict[Any, tuple[int, ...]] = {}
    batches = [()] if batches is None else batches
    count = len(batches) if isinstance(batches, Sized) else None
    with _Interrupts() as interrupts, shown_on(progress, last, count) as shown:
        if isinstance(program, BoundProgram):
            program = partial(
                program, lambda number, spent: shown.pieces(history.epoch, number, spent)
            )
        while history.epoch < last:
            of = f"epoch {history.epoch}"
            for batch in islice(_epoch(batches, history.epoch), history.batch, None):
                figures, rows = _run(program, batch, shapes, history.batch, of)
                history.losses.append(next(iter(figures.values())))
                _warn_of_nan(history.losses)
                history.means.add(figures, rows)
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
            record = history.means.figures()
            if test is not None:
                measured = _evaluated(*test, "the test", interrupts)
                record |= {f"{TEST}{n}": v for n, v in measured.items()}
            history.records.append(record)
            history.means = Means()
            history.epoch, history.batch = history.epoch + 1, 0
            shown.epoch(history.epoch, record)
            over = _over(after_epoch, history)
            interrupts.raise_if_any()
            if over:
                break
    return history


def evaluate(program: Callable[..., Any], batches: Epochs) -> dict[str, float]:
    """The outputs of a program, by name, as means over the rows of all batches.

    Raises `FeedError` as `fit` does, for a program that updates something too.
    """
    _check_program(program, trains=False)
    return _evaluated(program, batches, "those to evaluate", _Interrupts())


def _evaluated(
    program: Callable[..., Any], batches: Epochs, of: str, interrupts: _Interrupts
) -> dict[str, float]:
    means, shapes = Means(), dict[Any, tuple[int, ...]]()
    for i, batch in enumerate(_epoch(batches, 0)):
        means.add(*_run(program, batch, shapes, i, of))
        interrupts.raise_if_any()
    if not means.sums:
        raise FeedError("there are no batches to evaluate on")
    return means.figures()


def _warn_of_nan(losses: Sequence[float]) -> None:
    """Warn of the first NaN in a row."""
    if isnan(losses[-1]) and not any(map(isnan, losses[-2:-1])):
        warn(
            f"the loss of step {len(losses) - 1} is NaN; program.check(X, Y), with a batch, names "
            "the node that makes the first",
            stacklevel=3,
        )


def _history(given: Any) -> History:
    found = History() if given is None else given
    if not isinstance(found, History):
        raise FeedError(f"history is what fit has given, or sg.History(), not {found!r:.60}")
    return found


def _check_test(given: Any) -> None:
    if given is not None:
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise FeedError(f"test is a program and batches, (measure, data), not {given!r:.60}")
        _check_program(given[0], trains=False)


def _callbacks(given: Any, name: str) -> Sequence[Callback]:
    found = given if isinstance(given, (tuple, list)) else [given]
    if not all(map(callable, found)):
        raise FeedError(f"{name} is a function of the history, or a list of them, not {given!r}")
    return found


def _over(callbacks: Sequence[Callback], history: History) -> bool:
    """Call them all; whether one says True, which a path that it has written does not."""
    answers = [callback(history) for callback in callbacks]
    return any(isinstance(answer, (bool, np.bool_)) and answer for answer in answers)


def _epoch(batches: Epochs, epoch: int) -> Iterable[Any]:
    found: Any = batches(epoch) if is_function(batches) else batches
    if not isinstance(found, Iterable) or isinstance(found, _ONE_BATCH):
        raise FeedError(
            "batches are sg.batches(X, Y, size=32), a list of batches, or a function that gives "
            f"those of an epoch, not a {type(found).__name__}"
        )
    return found


def _run(
    program: Callable[..., Any],
    batch: Any,
    shapes: dict[Any, tuple[int, ...]],
    number: int,
    of: str,
) -> tuple[dict[str, float], int]:
    """The figures that a program returns for a batch, and the number of its rows.

    `shapes` are those of a row of the first batch, and `number` and `of` say which batch it is.
    """
    parts = batch if isinstance(batch, Mapping) else dict(enumerate(_as_tuple(batch)))
    found = {n: v.shape if isinstance(v, np.ndarray) else np.shape(v) for n, v in parts.items()}
    rows = next((s[0] for s in found.values() if s), 1)
    rest = {name: shape[1:] for name, shape in found.items()}
    if not rows:
        raise FeedError(f"batch {number} of {of} has no rows; leave it out")
    if not shapes:
        shapes.update(rest)
    if shapes != rest:
        raise FeedError(
            f"batch {number} of {of} has rows of the shapes {_listed(rest)}, "
            f"the first batch had {_listed(shapes)}; pad or crop them to one shape"
        )
    try:
        named = isinstance(batch, Mapping)
        return _figures(program(**batch) if named else program(*parts.values())), rows
    except Exception as error:
        error.add_note(f"  in batch {number} of {of}, arrays of the shapes {_listed(found)}")
        raise


def _listed(shapes: Mapping[Any, tuple[int, ...]]) -> str:
    return str(list(shapes.values()) if 0 in shapes else dict(shapes))


def _as_tuple(batch: Any) -> Sequence[Any]:
    return batch if isinstance(batch, (tuple, list)) else (batch,)


def _figures(result: Any) -> dict[str, float]:
    """The outputs of a program, by name; the loss is the first."""
    if isinstance(result, (float, np.floating)):  # as it is mostly
        return {"loss": float(result)}
    if isinstance(result, Mapping):
        named = {str(name): value for name, value in result.items()}
    else:
        values = result if isinstance(result, (tuple, list)) else (result,)
        named = {f"output {i}" if i else "loss": value for i, value in enumerate(values)}
    wrong = [n for n, v in named.items() if np.ndim(v) or np.asarray(v).dtype.kind not in "biuf"]
    _check_scalars(len(named), wrong)
    return {name: float(value) for name, value in named.items()}


def _check_program(program: Any, *, trains: bool) -> None:
    if not is_function(program):
        said = describe(program) if isinstance(program, Node) else repr(program)
        raise FeedError(
            f"a program is called with each batch, not {said:.80}; make it: "
            f"sg.compile([x, y], loss{', updates=optimizer.updates(loss)' * trains})"
        )
    if isinstance(program, BoundProgram):
        program = program.step
    if not isinstance(program, (Program, MapReduce)):
        return
    if trains and not program.store.updated:
        raise FeedError(
            "the program updates nothing, so that nothing would be learnt; compile it with "
            "updates: sg.compile([x, y], loss, updates=optimizer.updates(loss))"
        )
    if program.store.updated and not trains:
        raise FeedError(
            f"what measures updates nothing, and {program!r:.200} would learn from the data; "
            "compile another without updates: sg.compile([x, y], loss)"
        )
    outputs = program.raw.outputs[: len(program.raw.outputs) - len(program.store.updated)]
    if not trains and (state := carried(*outputs)):
        warn(
            f"what measures was built for training, in which {next(iter(state)).name!r} changes, "
            "with noise and statistics of the batch; build it after net.eval()",
            stacklevel=4,
        )
    named = zip(program.output_names, outputs, strict=False)
    wrong = [f"{n}: {y.type!r}" for n, y in named if y.shape or y.dtype.kind not in "biuf"]
    _check_scalars(len(outputs), wrong)


def _check_scalars(count: int, wrong: Sequence[str]) -> None:
    if wrong or not count:
        raise FeedError(
            "the program returns "
            + (f"{wrong[0]!r}, which is no real scalar" if wrong else "nothing")
            + "; compile it with the loss as its first output, and figures beside it"
        )


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
