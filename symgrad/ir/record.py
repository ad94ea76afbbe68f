"""Records: classes of named fields, as of `dataclasses`, declared without writing any source.

`dataclass` writes and compiles the methods of a class whenever its module is imported, which for
those that every program loads takes longer than all other imports of the standard library.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any, NoReturn, TypeVar, cast, dataclass_transform

T = TypeVar("T")
R = TypeVar("R", bound="Record")


class _Fresh:
    """The default of a field: what a function makes anew for each record."""

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory


def fresh(*, factory: Callable[[], T]) -> T:
    """The default of a field: what a function makes anew for each record, such as `list`."""
    return cast(T, _Fresh(factory))


class _Signature:
    """The signature of a record's class, as `inspect` shows it."""

    def __get__(self, record: Record | None, kind: type[Record]) -> Signature:
        found = []
        for name in kind._fields:
            default: Any = Parameter.empty if name in kind._required else getattr(kind, name)
            by_place = name in kind._by_place
            way = Parameter.POSITIONAL_OR_KEYWORD if by_place else Parameter.KEYWORD_ONLY
            found.append(Parameter(name, way, default=default))
        return Signature(found)


@dataclass_transform(eq_default=False, field_specifiers=(fresh,))
class Record:
    """A class whose annotations are its fields: they are given by place or by name.

    Records are equal if they are the same. Fields of one that is `frozen` are not assigned; those
    of one that is `kw_only` are given by name.

    >>> class Point(Record, frozen=True):
    ...     x: int
    ...     y: int = 0
    >>> replace(Point(1), y=2)
    Point(x=1, y=2)
    """

    __signature__ = _Signature()
    _fields: tuple[str, ...] = ()
    _known: frozenset[str] = frozenset()
    _required: frozenset[str] = frozenset()
    _by_place: tuple[str, ...] = ()
    _made: tuple[tuple[str, Callable[[], Any]], ...] = ()

    def __init_subclass__(cls, *, frozen: bool = False, kw_only: bool = False) -> None:
        own = {n: vars(cls).get(n, cls) for n in vars(cls).get("__annotations__", ())}
        cls._fields = (*cls._fields, *own)
        cls._known |= own.keys()
        cls._by_place = cls._by_place if kw_only else (*cls._by_place, *own)
        cls._required |= {name for name, default in own.items() if default is cls}
        cls._made = (*cls._made, *((n, d.factory) for n, d in own.items() if isinstance(d, _Fresh)))
        for name in cls._required & own.keys():
            if hasattr(cls, name):
                setattr(cls, name, None)  # hides what a base class has by this name
        for name in ("__setattr__", "__delattr__") if frozen else ():
            setattr(cls, name, _refuse)

    def __init__(self, *args: Any, **given: Any) -> None:
        if not given and len(args) == len(self._fields) == len(self._by_place):
            # A plan has one for each place and step, made in the fastest way that there is.
            self.__dict__.update(zip(self._fields, args, strict=True))
            return
        values = dict(zip(self._by_place, args, strict=False))
        known = len(values) + len(given)
        values.update(given)
        whole = len(values) == known and len(args) <= len(self._by_place)
        if not (whole and self._required <= values.keys() <= self._known):
            odd = ", ".join(sorted({*self._required - values.keys(), *given.keys() - self._known}))
            raise TypeError(f"{type(self).__name__} takes its fields, each once; see {odd or args}")
        for name, make in self._made:
            if name not in values:
                values[name] = make()
        self.__dict__.update(values)

    def __repr__(self) -> str:
        fields = ", ".join(f"{n}={getattr(self, n)!r}" for n in self._fields)
        return f"{type(self).__name__}({fields})"


def _refuse(self: Record, name: str, value: Any = None) -> NoReturn:
    raise AttributeError(f"{name} of a {type(self).__name__} stays; replace() makes another one")


def replace(record: R, **changes: Any) -> R:
    """A record as it is but for some fields."""
    return type(record)(**{n: getattr(record, n) for n in record._fields} | changes)
