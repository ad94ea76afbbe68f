"""The history of a run: the loss of each step, the figures of each epoch, and when it is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from symgrad.ir.errors import FeedError, UnsupportedError
from symgrad.ir.late import Displayed
from symgrad.ir.types import whole
from symgrad.train.progress import describe

TEST = "test "  # before the names of figures that are no part of training


@dataclass
class Means:
    """Means over the rows of batches."""

    sums: dict[str, float] = field(default_factory=dict)
    rows: int = 0

    def add(self, figures: Mapping[str, float], rows: int) -> None:
        self.rows += rows
        for name, value in figures.items():
            self.sums[name] = self.sums.get(name, 0.0) + rows * value

    def figures(self) -> dict[str, float]:
        return {name: total / max(self.rows, 1) for name, total in self.sums.items()}


@dataclass(repr=False)
class History(Displayed):
    """The record of a run so far: `fit` goes on from here, and writes into it.

    `losses` has the loss of each step, `records` the figures of each epoch, by name: means over its
    rows. `history["loss"]` is one figure over the epochs. `epoch` epochs are done, and `batch`
    batches of the next, whose figures so far are in `means`.
    """

    epoch: int = 0
    batch: int = 0
    losses: list[float] = field(default_factory=list)
    records: list[dict[str, float]] = field(default_factory=list)
    means: Means = field(default_factory=Means, repr=False)

    @staticmethod
    def after(steps: int, batches: Sized) -> History:
        """The history of a run of which it is only known how many steps it has done.

        With a variable that counts the steps, a checkpoint is enough to go on from.
        """
        return History(*divmod(whole(steps, "the number of steps", 0, FeedError), len(batches)))

    def __getitem__(self, name: str) -> list[float]:
        if not any(name in r for r in self.records):
            known = ", ".join(dict.fromkeys(repr(n) for r in self.records for n in r))
            raise KeyError(f"there is no {name!r}, but {known or 'nothing yet'}")
        return [r.get(name, np.nan) for r in self.records]

    def __repr__(self) -> str:
        last = self.records[-1:] or [{"loss": loss} for loss in self.losses[-1:]]
        said = "".join(f": {describe(figures)}" for figures in last)
        return f"<History of {self.epoch} epochs, {len(self.losses)} steps{said}>"

    def plot(self, path: str | Path | None = None) -> Any:
        """A figure of matplotlib with every figure over the epochs; written to a path if given.

        A notebook shows it, and the history itself as the same figure. Raises
        `UnsupportedError` if matplotlib is not installed.
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
        # Front ends know the figures of pyplot, of which this is none.
        vars(figure)["_repr_png_"] = partial(png, figure)
        return figure


def png(figure: Any) -> bytes:
    """A figure of matplotlib as a picture."""
    with BytesIO() as file:
        figure.savefig(file, format="png")
        return file.getvalue()


def early_stopping(
    watch: str = "loss", *, patience: int, higher: bool = False
) -> Callable[[History], bool]:
    """For `on_epoch`: stop when a figure has not become better for `patience` epochs.

    `watch` is its name in the history: "loss", "test loss", …. Lower is better, or `higher`. A NaN
    is not better than anything. After the first epoch a name that it does not have is a
    `FeedError`.
    """
    epochs = whole(patience, "patience, in epochs,", 1, FeedError)

    def is_over(history: History) -> bool:
        try:
            figures = np.array(history[watch]) * (-1 if higher else 1)
        except KeyError as error:
            raise FeedError(f"early_stopping watches a figure: {error.args[0]}") from None
        best = int(np.argmin(np.where(np.isnan(figures), np.inf, figures)))
        return len(figures) - 1 - best >= epochs

    return is_over
