"""How far a run has come, as a bar in a terminal or notebook, or as lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from symgrad.ir.errors import FeedError

SECONDS_BETWEEN_LINES = 5.0


class Silent:
    """Progress that nobody sees."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def step(self, epoch: int, batch: int, loss: float) -> None:
        """So many epochs are done, and batches of the next."""

    def pieces(self, epoch: int, number: int, spent: object) -> None:
        """So many epochs are done, and rounds of the next; `spent` tells of the next round."""

    def epoch(self, epoch: int, figures: Mapping[str, float]) -> None:
        """So many epochs are done, the last one with these figures."""

    def close(self) -> None:
        """The run is over."""


class Lines(Silent):
    """A line every few seconds, one after the first epoch and one at the end."""

    def __init__(self, stream: TextIO, epochs: int, count: int | None) -> None:
        self.stream, self.epochs, self.count = stream, epochs, count
        self.begun = self.last = time.monotonic()
        self.said = False
        self.held = ""

    def step(self, epoch: int, batch: int, loss: float) -> None:
        if time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            of = "" if self.count is None else f"/{self.count}"
            self._say(f"epoch {epoch + 1}/{self.epochs}  batch {batch}{of}  loss {loss:.6g}")

    def pieces(self, epoch: int, number: int, spent: object) -> None:
        if time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self._say(f"epoch {epoch + 1}/{self.epochs}  round {number + 1}  {spent}")

    def epoch(self, epoch: int, figures: Mapping[str, float]) -> None:
        self.held = f"epoch {epoch}/{self.epochs}  {describe(figures)}"
        if not self.said or time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self._say(self.held)

    def _say(self, line: str) -> None:
        self.last, self.said, self.held = time.monotonic(), True, ""
        self.stream.write(f"{line}  {self.last - self.begun:.1f} s\n")
        self.stream.flush()

    def close(self) -> None:
        if self.held:
            self._say(self.held)


class Bar(Silent):
    """A bar of tqdm over the batches of all epochs."""

    def __init__(self, make: Any, stream: TextIO, epochs: int, count: int | None) -> None:
        self.epochs, self.count = epochs, count
        self.bar = make(total=count and count * epochs, file=stream, unit="batch")

    def step(self, epoch: int, batch: int, loss: float) -> None:
        self.bar.set_postfix_str(f"loss {loss:.6g}", refresh=False)
        # A run that goes on begins where it was.
        self.bar.update(1 if self.count is None else epoch * self.count + batch - self.bar.n)

    def pieces(self, epoch: int, number: int, spent: object) -> None:
        self.bar.set_postfix_str(f"round {number + 1}  {spent}")

    def epoch(self, epoch: int, figures: Mapping[str, float]) -> None:
        self.bar.set_description_str(f"epoch {epoch}/{self.epochs}", refresh=False)
        self.bar.set_postfix_str(describe(figures))

    def close(self) -> None:
        self.bar.close()


def describe(figures: Mapping[str, float]) -> str:
    """Figures in one line."""
    return "  ".join(f"{name} {value:.6g}" for name, value in figures.items())


def shown_on(progress: bool | TextIO, epochs: int, count: int | None) -> Silent:
    """Progress on a stream, `True` for `sys.stderr`, `False` for none.

    `epochs` are to be done in all, of `count` batches each, if that is known. Raises `FeedError`
    for what is no stream.
    """
    if progress is False:
        return Silent()
    stream = sys.stderr if progress is True else progress
    if not hasattr(stream, "write"):
        raise FeedError(f"progress is True, False, or a stream such as sys.stdout, not {stream!r}")
    if stream.isatty() or type(stream).__module__.startswith("ipykernel"):
        try:
            from tqdm import tqdm
        except ImportError:
            return Lines(stream, epochs, count)
        return Bar(tqdm, stream, epochs, count)
    return Lines(stream, epochs, count)
