"""Snapshots of the mutable state of an instance and its class, to find writes and undo them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

PLAIN = (bool, int, float, complex, str, bytes)


@dataclass(frozen=True, eq=False)
class Attributes:
    """The attributes of an object that has no dict of its own to write into."""

    owner: Any
    names: tuple[str, ...] | None = None

    def read(self) -> dict[str, Any]:
        """Those that are set. `names` are those of slots; without, it is a class."""
        if self.names is None:
            return {k: v for k, v in vars(self.owner).items() if not k.startswith("__")}
        return {k: getattr(self.owner, k) for k in self.names if hasattr(self.owner, k)}

    def write(self, contents: dict[str, Any]) -> None:
        """Set them, and delete all others."""
        for name in self.read().keys() - contents.keys():
            delattr(self.owner, name)
        for name, value in contents.items():
            if self.read().get(name, self) is not value:
                setattr(self.owner, name, value)


@dataclass(frozen=True, eq=False)
class Held:
    """Something that can be written into, a copy of its contents, and the attribute it is under."""

    name: str
    holder: Any
    contents: Any


class State:
    """The contents of all that can be written into and that an instance or its class holds.

    Found by a walk through containers, arrays and objects whose classes are of the package of the
    instance's class: what libraries keep in theirs, such as caches, is their own affair.
    """

    def __init__(self, instance: Any) -> None:
        self.package = _package(type(instance))
        self.held: list[Held] = []
        self._seen: set[int] = set()
        found: list[tuple[str, Any]] = list(vars(instance).items())
        found += [("", Attributes(c)) for c in type(instance).__mro__]
        while found:
            name, value = found.pop()
            if type(value) in PLAIN or id(value) in self._seen:
                continue
            self._seen.add(id(value))
            contents = _contents(value)
            if contents is not None:
                self.held.append(Held(name, value, contents))
            found += [(name or key, part) for key, part in self._parts(value, contents)]

    def restore(self) -> str | None:
        """Put back all that was written into; the name of the first of it, or None."""
        changed = None
        for held in self.held:
            now = _contents(held.holder)
            if not _same(now, held.contents):
                changed = changed or held.name or _first_difference(now, held.contents)
                _write(held.holder, held.contents)
        return changed

    def _parts(self, value: Any, contents: Any) -> Iterator[tuple[str, Any]]:
        """The parts of a value, each with its name if it has one."""
        if isinstance(contents, dict):
            yield from ((str(key), part) for key, part in contents.items())
        elif isinstance(contents, (list, set)):
            yield from (("", part) for part in contents)
        elif isinstance(value, tuple):
            yield from (("", part) for part in value)
        own = isinstance(value, SimpleNamespace) or _package(type(value)) == self.package
        if isinstance(value, type) or not own:
            return
        if hasattr(value, "__dict__"):
            yield "", vars(value)
        slots = [s for c in type(value).__mro__ for s in _slots(c)]
        if slots:
            yield "", Attributes(value, tuple(slots))


def _package(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(
        f"_{cls.__name__.lstrip('_')}{s}" if s.startswith("__") and not s.endswith("__") else s
        for s in names
        if s not in ("__dict__", "__weakref__")
    )


def _contents(value: Any) -> Any:
    """A shallow copy of what a value holds, or None if it cannot be written into."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return list(value.flat)
        return value.copy() if value.flags.writeable else None
    if isinstance(value, Attributes):
        return value.read()
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, (list, deque)):
        return list(value)
    return set(value) if isinstance(value, set) else None


def _write(holder: Any, contents: Any) -> None:
    if isinstance(holder, Attributes):
        holder.write(contents)
    elif isinstance(holder, np.ndarray):
        if holder.dtype == object:
            holder.flat[:] = contents
        elif holder.shape == contents.shape:
            np.copyto(holder, contents)
    else:
        holder.clear()
        add = holder.extend if isinstance(holder, (list, deque)) else holder.update
        add(contents)


def _same(a: Any, b: Any) -> bool:
    """Whether two copies of contents are the same: arrays and numbers in value, others are one."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        alike = a.shape == b.shape and a.dtype == b.dtype
        return alike and (a is b or a.tobytes() == b.tobytes())
    if isinstance(a, dict):
        return list(map(id, a)) == list(map(id, b)) and all(_is(a[k], b[k]) for k in a)
    if isinstance(a, set):
        return set(map(id, a)) == set(map(id, b))
    return len(a) == len(b) and all(map(_is, a, b))


def _is(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_is, a, b))
    return isinstance(a, PLAIN) and bool(a == b)


def _first_difference(now: dict[str, Any], before: dict[str, Any]) -> str:
    names = [*now, *before]
    missing = object()
    return next(k for k in names if not _is(now.get(k, missing), before.get(k, missing)))
