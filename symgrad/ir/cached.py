"""A property that is computed once, without a lock.

That of `functools` holds one lock for all objects of a class in Python 3.11, for as long as it
computes: one program would wait for another, and a child forked meanwhile would wait for ever. It
has none from 3.12 on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """Declare a property whose value is kept with its object from the first time on.

    >>> class Square:
    ...     @cached_property
    ...     def area(self):
    ...         return 4
    >>> Square().area
    4
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        found = self.function(instance)
        # Of threads that compute it at once all get the value of the one that came first.
        return instance.__dict__.setdefault(self.name, found)
