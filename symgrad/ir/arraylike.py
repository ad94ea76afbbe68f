"""Nodes as arrays: the value of a node that has one before anything is fed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard, TypeVar

import numpy as np

from symgrad.ir.callers import asked_by
from symgrad.ir.errors import ArgumentError, ShapeError, SymbolicError, UnsupportedError
from symgrad.ir.evaluate import value_of
from symgrad.ir.late import SLOTS, Displayed
from symgrad.ir.ranges import Range
from symgrad.ir.refusals import instead_of_scipys
from symgrad.ir.types import DType

if TYPE_CHECKING:
    from symgrad.ir.node import Node


T = TypeVar("T")
# What to write where a value is asked for that is known only when a program runs.
_BY_MATH = "For a function of math write symgrad's: sg.sin(x), not math.sin(x)"
_BY_CHOICE = (
    "A choice is part of the graph: sg.where(condition, a, b); of conditions, a & b, a | b and ~a"
)
_BY_TEXT = "Without a format its text is the node itself: f'{x}'"
_BY_INDEX = "range takes an int; an array indexed by a node is sg.constant(array)[node]"
_BY_NUMPY = (
    "What NumPy would do with its value, write with symgrad: sg.stack(nodes) for an array of "
    "nodes, sg.constant(array)[node] for an array indexed by a node, "
    "sg.random.normal(key, ...) or sg.stats for a draw of np.random, and "
    "sg.sparse.matrix(matrix) for a matrix of scipy.sparse"
)


def describe(node: Node) -> str:
    """A node in a few words: `x float32[N, 3] (train.py:5)`."""
    name = repr(node.name) if node.name is not None else node.op.name
    place = "" if (line := node.origin.nearest) is None else f" ({line})"
    return f"{name[:60]} {node.type!r}{place}"


def is_function(value: object) -> TypeGuard[Callable[..., Any]]:
    """Whether a user's value is to be called, which a node is only to be told what to write."""
    return callable(value) and not isinstance(value, ArrayLike)


class ArrayLike(Displayed):
    """The conversions of the array API standard, for nodes without placeholders.

    They evaluate the graph; with placeholders they raise `SymbolicError` and say what to feed.
    """

    __slots__ = ()

    def _value(self: Any, mend: str) -> Any:
        """The value; where there is none, the error says what to write instead."""
        try:
            return value_of(self)
        except SymbolicError as error:
            mend = (mend is _BY_NUMPY and instead_of_scipys()) or mend
            raise SymbolicError(f"{describe(self)}: {error}. {mend}") from None

    def _scalar(self: Any, kinds: str, python: str, mend: str = _BY_MATH) -> Any:
        """The value of a scalar of these kinds of dtypes, as Python's own number."""
        if self.dtype.kind not in kinds:
            raise SymbolicError(f"{describe(self)} is no {python}; convert it: sg.astype, sg.real")
        value = np.asarray(self._value(mend))
        if value.ndim:
            raise ShapeError(f"{describe(self)} is no scalar, so that its {python} is ambiguous")
        return value.item()

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, DType]:
        if asked_by("scipy.sparse", "_matmul_dispatch"):
            return np.empty((), object)  # no array: SciPy then leaves the product to `__rmatmul__`
        if copy is False:
            raise ArgumentError("a node's value is computed: it cannot be had without a copy")
        return np.array(self._value(_BY_NUMPY), dtype=dtype)

    if not TYPE_CHECKING:  # which would take a node for a function

        def __call__(self, *args: Any, **named: Any) -> NoReturn:
            fed = ", ".join(["array"] * (len(args) + len(named)) or ["…"])
            raise UnsupportedError(
                f"{describe(self)} is a node, and no function; compile it, and call the program: "
                f"sg.compile(inputs, node)({fed}). A step of training is a call of one, too: "
                "sg.compile(inputs, loss, updates=optimizer.updates(loss))"
            )

    def __bool__(self) -> bool:
        return bool(self._scalar("biufc", "bool", _BY_CHOICE))

    def __float__(self) -> float:
        return float(self._scalar("biuf", "float"))

    def __int__(self) -> int:
        return int(self._scalar("biuf", "int"))

    def __complex__(self) -> complex:
        return complex(self._scalar("biufc", "complex"))

    def __index__(self) -> int:
        return int(self._scalar("iu", "integer", _BY_INDEX))

    def __format__(self, spec: str) -> str:
        return format(self._scalar("biufc", "number", _BY_TEXT), spec) if spec else str(self)

    @property
    def range(self) -> Range:
        """Between which numbers its elements lie, if all that is fed is finite: `low` and `high`.

        It follows from the ranges `within` which placeholders were declared; see
        `symgrad.ops.ranges.inference`. `nan` says whether there may be a NaN, an infinite end that
        there may be an inf.

        >>> p = placeholder("p", 3, within=(0, 1))
        >>> print((p * (1 - p)).range)
        from 0 to 1
        """
        found: Range = SLOTS.range_of(self)
        return found

    @property
    def device(self) -> str:
        """Where the value lies: "cpu"."""
        return "cpu"

    def to_device(self: T, device: Any, /, *, stream: Any = None) -> T:
        """The node itself: there is no device but "cpu"."""
        if device != "cpu" or stream is not None:
            raise UnsupportedError(f"the device of every array is 'cpu'; there is no {device!r}")
        return self

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return np.asarray(self).__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the CPU, by DLPack's numbers
