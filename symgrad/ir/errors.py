"""The errors of symgrad: one tree, so that `except SymgradError` catches what symgrad refuses.

Each class also derives from the built-in error a NumPy user would expect in its place.
"""

import math
import reprlib
from collections.abc import Iterable
from typing import NoReturn

import numpy as np


class SymgradError(Exception):
    """Whatever symgrad refuses: it says what, where, and what to write instead."""


class ArgumentError(SymgradError, TypeError, ValueError):
    """An argument of a kind that a function does not take."""


class ShapeError(SymgradError, ValueError):
    """Shapes that do not fit together, a size that is not known."""


class AxisError(ShapeError, IndexError):
    """An axis out of range."""


class IndexingError(ShapeError, IndexError):
    """An index of a kind that no array takes: a float, text, a mask of another shape."""


class DtypeError(SymgradError, TypeError):
    """A dtype that an op does not take, or a value that its dtype cannot hold."""


class SymbolicError(SymgradError, TypeError):
    """A value was asked of a node that has none before its placeholders are fed."""


class UnsupportedError(SymgradError, TypeError):
    """A NumPy function, argument or method that has no symbolic form."""


class MissingError(SymgradError, AttributeError):
    """An attribute that nodes have not: what NumPy's arrays have in memory, or a typing error."""


class GraphError(SymgradError, ValueError):
    """A graph that is not well formed: a missing input, a name used twice, a wrong type."""


class ParseError(GraphError):
    """Text that is not a graph; says which line and why."""


class FeedError(SymgradError, ValueError):
    """Arrays fed to a program that do not fit its placeholders."""


class FileError(SymgradError, OSError):
    """A path to no regular file, to one larger than it may be, or that no file can have."""


class StateError(SymgradError, ValueError):
    """A checkpoint that is damaged, of another model, or cannot be written as asked."""


class GradientError(SymgradError, ValueError):
    """A gradient that does not exist: a loss that is no scalar, an integer, no path."""


class RewriteError(SymgradError, RuntimeError):
    """A rewrite rule that is ill formed, changes a type, or does not come to an end."""


class KernelError(SymgradError, RuntimeError):
    """A kernel failed while a program ran: names the step, the node and the user's line."""


class BoundsError(ShapeError, KernelError, IndexError):
    """An index out of bounds, found when the graph was built or, by a kernel, while it ran."""


class AllocationError(ShapeError, KernelError, MemoryError):
    """An array for which there is no memory, when the graph was built or while it ran."""


class LinAlgError(KernelError, np.linalg.LinAlgError):
    """A singular matrix where a regular one is wanted, or what else NumPy's algebra refuses."""


class RenderError(SymgradError, RuntimeError):
    """A picture could not be drawn or written."""


def short(value: object) -> str:
    """A value as a message shows it: on one line, in a few words, and never failing.

    Python refuses to write ints of more than 4,300 digits; of large ones the length is told.
    """
    return " ".join(_SHORT.repr(value).split())


class _Short(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        digits = int(x.bit_length() * math.log10(2)) + 1
        return repr(x) if digits <= LONGEST_INT else f"<an int of about {digits} digits>"


_SHORT = _Short()
LONGEST_INT = 40


def unordered(size: object, other: object) -> NoReturn:
    """Refuse to order a named dimension, whose size is not known while the graph is built."""
    raise SymbolicError(
        f"{size} is a named dimension, whose size is known when a program is called: while the "
        f"graph is built it is neither below nor above {other!r:.60}. Choose inside the graph, "
        "sg.where(sg.asarray(x.shape[0]) < 64, a, b), or declare an int for the size"
    )


def undecided(comparison: str) -> NoReturn:
    """Refuse to compare a named dimension that may be equal, or may not."""
    raise SymbolicError(
        f"whether {comparison} is not known while the graph is built: the size of a named "
        "dimension comes with the arrays. Choose inside the graph, sg.where(sg.asarray(x.shape[0]) "
        "== 64, a, b), declare an int for the size, or ask what is sure: sg.same_size(x.shape[0], "
        "64)"
    )


def no_number(size: object) -> NoReturn:
    """Refuse to take a named dimension as a number, which it is only when a program is called."""
    raise SymbolicError(
        f"{size} is a named dimension, whose size is known when a program is called: it is no "
        "number while the graph is built. Beside a node it counts as one of that dtype: "
        "sg.sum(y) / x.shape[0]; alone, write what dtype it has: "
        "1.0 / sg.asarray(x.shape[0], dtype=x.dtype). Count by sg.arange(x.shape[0]), loop by "
        "sg.fori or sg.scan in place of range, or declare an int for the size"
    )


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """The names, at most three, that someone may have meant who wrote this one; the best first."""
    from difflib import get_close_matches

    return get_close_matches(name, names)


def listed(names: Iterable[str], most: int = 12) -> str:
    """Names in a row: the first ones, whole, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def counted(count: int, noun: str) -> str:
    """So many of something: 1 node, 2 nodes."""
    return f"{count} {noun}{'s' * (count != 1)}"
