"""Data in batches: the rows of arrays, shuffled anew in each epoch, and always in the same way.

>>> for images, labels in batches(np.ones((5, 8)), np.arange(5), size=2, key=0):
...     print(images.shape, labels)
(2, 8) [0 3]
(2, 8) [4 2]
(1, 8) [1]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from symgrad.ir.errors import FeedError
from symgrad.ir.node import Node
from symgrad.ir.types import DType, whole

Array: TypeAlias = np.ndarray[Any, DType]


@dataclass(eq=False)
class Batches:
    """Rows of arrays, a number at a time; each time that it is gone over is the next epoch.

    `batches(epoch)` are those of one epoch, from 0 on, whatever was gone over before. The order is
    a function of the key and the epoch alone, so that a run can go on anywhere: `fit` asks by the
    number, and a loop of yours can, or sets `epoch`, the number of the one that comes next.
    """

    arrays: tuple[Array, ...]
    size: int
    seed: tuple[int, ...] | None
    epoch: int = 0

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
        self.epoch += 1
        return self(self.epoch - 1)

    def __repr__(self) -> str:
        return f"<{len(self)} batches of {self.size} of {self.rows} rows>"


def batches(*arrays: Any, size: int, key: Any = None) -> Batches:
    """The rows of arrays in batches of `size`, those of one batch together; the last is smaller.

    Shuffled by `key`, a seed or a key of `sg.random`, in each epoch anew; without one they keep
    their order. Each time that the result is gone over is an epoch: see `Batches`. A program takes
    the last batch as it is if its placeholders say `("N", …)`.

    >>> data = batches(np.arange(5), size=2, key=0)
    >>> for epoch in range(2):
    ...     print([x.tolist() for (x,) in data])
    [[0, 3], [4, 2], [1]]
    [[3, 1], [4, 2], [0]]

    Raises `FeedError` for arrays that have not as many rows, or none, and for a size below 1.
    """
    found = tuple(map(_array, arrays))
    rows = {a.shape[:1] for a in found}
    if len(rows) != 1 or rows & {(), (0,)}:
        shapes = ", ".join(str(a.shape) for a in found) or "none"
        raise FeedError(
            f"batches are of arrays with as many rows each, from 1 on, not {shapes}; "
            "write sg.batches(X, Y, size=32, key=0)"
        )
    count = whole(size, "the size of a batch", 1, FeedError)
    return Batches(found, count, None if key is None else _seed(key))


def _array(rows: Any) -> Array:
    try:
        return np.asarray(rows)
    except ValueError as error:
        raise FeedError(f"the rows of an array are all of one shape: {error}") from None


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
