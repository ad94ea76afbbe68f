"""Where a piece is computed: in this process, or in one that was sent what it needs.

What all pieces of a round read, the program and arrays such as weights, is lent: it is sent to a
process once, and again when it has changed, which its digest tells. A piece that comes to a process
which has not been sent it says so, and is sent again with it.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from symgrad.distributed.files import Source
from symgrad.ir.cached import cached_property
from symgrad.ir.digest import blake2b
from symgrad.runtime.program import Program

# What is smaller is sent with every piece. A process keeps the last of so many things.
SMALL, KEPT = 2**12, 64


class Key:
    """The same text for arrays that are the same; found when it is first asked for."""

    def __init__(self, arrays: Sequence[Any] = ()) -> None:
        self.arrays = arrays

    @cached_property
    def text(self) -> str:
        """A digest of types and bytes."""
        digest = blake2b(size=16)
        for a in map(np.ascontiguousarray, self.arrays):
            digest.update(f"{a.dtype.str} {a.shape} ".encode())
            digest.update(a.reshape(-1).view(np.uint8))
        return digest.hexdigest()


class Lent:
    """Something that all pieces of a round read. In the process that lends it, it is there.

    Pickled, it is where it is kept and the `key` of what it is now, and the value only if it
    `carries` that.
    """

    def __init__(self, slot: str, value: Any, key: Key) -> None:
        self.slot, self.value, self.key, self.carries = slot, value, key, True

    @property
    def is_small(self) -> bool:
        """Whether it is not worth keeping."""
        return bool(self.key.arrays) and sum(a.nbytes for a in self.key.arrays) < SMALL

    def without(self) -> Lent:
        """The same, not carrying its value unless that is small."""
        made = Lent(self.slot, self.value, self.key)
        made.carries = self.is_small
        return made

    def get(self) -> Any:
        """The value."""
        return self.value

    def __reduce__(self) -> tuple[Any, ...]:
        if self.is_small:
            return Sent, ("", "", self.value)
        return Sent, (self.slot, self.key.text, *[self.value] * self.carries)


class Sent:
    """Something lent, in another process: it came with the piece, or is kept from before."""

    def __init__(self, slot: str, key: str, *value: Any) -> None:
        self.slot, self.key, self.value = slot, key, value
        if slot and value:
            self.value = (_shelf().put(slot, key, value[0]),)

    def __reduce__(self) -> tuple[Any, ...]:
        """So that it is kept where it arrives, also if a scheduler on the way has read it."""
        return Sent, (self.slot, self.key, *self.value)

    def get(self) -> Any:
        """The value. Raises `KeyError` if it is not here."""
        return self.value[0] if self.value else _shelf().get(self.slot, self.key)


class _Shelf:
    """The shelf of a process: the last of each thing that it was sent, of those used last."""

    def __init__(self) -> None:
        self.kept: OrderedDict[str, tuple[str, Any]] = OrderedDict()
        self.lock = Lock()
        self.name = os.urandom(8).hex()  # a process that was forked has another number

    def put(self, slot: str, key: str, value: Any) -> Any:
        """Keep a thing; the one that is kept, which has been compiled, if it is the same."""
        with self.lock:
            if self.kept.get(slot, (None,))[0] != key:
                self.kept[slot] = (key, value)
            self.kept.move_to_end(slot)
            while len(self.kept) > KEPT:
                self.kept.popitem(last=False)
            return self.kept[slot][1]

    def get(self, slot: str, key: str) -> Any:
        with self.lock:
            found, value = self.kept[slot]
            if found != key:
                raise KeyError(key)
            self.kept.move_to_end(slot)
            return value


@cache
def _shelf() -> _Shelf:
    return _Shelf()


class Piece(NamedTuple):
    """A piece of a round: its program, the rows that it loads, and what it reads in common.

    The program takes the rows, then what is `lent`, then the number of the first row, if it asks
    for it, and arrays without elements that tell sizes.
    """

    program: Lent | Sent
    rows: Sequence[Source]
    lent: Lent | Sent
    own: Sequence[Any]


class Done(NamedTuple):
    """The results of a piece, in which process, and the seconds for reading and computing."""

    results: Sequence[Any]
    where: str
    reading: float
    computing: float


class Missing(NamedTuple):
    """A piece that came to a process that lacks what it needs."""

    where: str


def compute(piece: Piece) -> Done | Missing:
    """Load the rows of a piece and run its program."""
    begun = perf_counter()
    try:
        program: Program = piece.program.get()
        lent: Sequence[Any] = piece.lent.get()
    except KeyError:
        return Missing(_here())
    arrays = [source.load() for source in piece.rows]
    loaded = perf_counter()
    results = program(*arrays, *lent, *piece.own)
    return Done(results, _here(), loaded - begun, perf_counter() - loaded)


def _here() -> str:
    return f"{_shelf().name}:{os.getpid()}"
