"""`x.at[index]`: a place in a node, to which values are written by building another node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symgrad.ir.operators import call

if TYPE_CHECKING:
    from symgrad.ir.node import Node


class At:
    """The value of `x.at`, which is to be given an index."""

    __slots__ = ("x",)

    def __init__(self, x: Node) -> None:
        self.x = x

    def __getitem__(self, index: Any) -> Place:
        return Place(self.x, index)


class Place:
    """A place in a node. Each method gives the node that is changed there; see `set_at`."""

    __slots__ = ("place", "x")

    def __init__(self, x: Node, place: Any) -> None:
        self.x = x
        self.place = place

    def get(self) -> Node:
        """The elements at the index: x[index]."""
        return call("getitem", self.x, self.place)

    def set(self, value: Any) -> Node:
        """x with values there; where an index names a place twice the last value stays."""
        return call("set_at", self.x, self.place, value)

    def add(self, value: Any) -> Node:
        """x with values added there, all of them where an index names a place more than once."""
        return call("add_at", self.x, self.place, value)

    def subtract(self, value: Any) -> Node:
        """x with values subtracted there."""
        return call("add_at", self.x, self.place, call("negative", value))

    def multiply(self, value: Any) -> Node:
        """x multiplied by values there."""
        return call("multiply_at", self.x, self.place, value)

    def divide(self, value: Any) -> Node:
        """x divided by values there."""
        return call("divide_at", self.x, self.place, value)

    def min(self, value: Any) -> Node:
        """x with at most these values there."""
        return call("min_at", self.x, self.place, value)

    def max(self, value: Any) -> Node:
        """x with at least these values there."""
        return call("max_at", self.x, self.place, value)
