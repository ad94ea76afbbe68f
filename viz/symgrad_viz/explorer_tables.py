"""How the explorer's data are kept small: what is there many times is there once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

_NUMBER = re.compile(r"(?<![0-9])(?:0|[1-9][0-9]{0,8})(?![0-9])")

# For each field its values, row by row; or its different values, and which of them each row has.
Columns: TypeAlias = dict[str, Any]


class Table:
    """Things that are named by their places in a list, each there once."""

    def __init__(self) -> None:
        self.places: dict[Any, int] = {}

    def __getitem__(self, thing: Any) -> int:
        return self.places.setdefault(thing, len(self.places))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.places)

    def pieces(self, text: str) -> tuple[int, ...]:
        """A text as the place of one with gaps for its numbers, and the numbers.

        >>> table = Table()
        >>> table.pieces("step 3"), table.pieces("step 14"), list(table)
        ((0, 3), (0, 14), ['step \\x00'])
        """
        numbers = _NUMBER.findall(text)
        return self[_NUMBER.sub("\0", text)], *map(int, numbers)


def named(fields: str, rows: Iterable[Iterable[Any]]) -> list[dict[str, Any]]:
    """Rows of values as objects with these fields.

    >>> named("a b", [(1, 2)])
    [{'a': 1, 'b': 2}]
    """
    return [dict(zip(fields.split(), row, strict=True)) for row in rows]


def in_columns(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Rows as columns; a field that a row has not is None.

    >>> in_columns([{"a": 1, "b": [7]}, {"a": 2}, {"a": 3}, {"a": 4}])
    {'a': [1, 2, 3, 4], 'b': {'of': [[7], None], 'at': [0, 1, 1, 1]}}
    """
    found: Columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        column = [row.get(name) for row in rows]
        places: dict[Any, int] = {}
        at = [places.setdefault(_key(value), len(places)) for value in column]
        few = 2 * len(places) <= len(rows)
        of = dict(zip(at, column, strict=True))
        found[name] = {"of": [of[i] for i in range(len(of))], "at": at} if few else column
    return found


def _key(value: Any) -> Any:
    """A key that values share which are written alike: to write simple ones takes its time."""
    return (type(value), value) if isinstance(value, str | int | None) else json.dumps(value)


def change(before: Sequence[int], after: Sequence[int]) -> dict[str, list[int]]:
    """The elements that went, and those that came, each in runs.

    >>> change([1, 2, 3], [2, 3, 4, 5])
    {'gone': [1, 1], 'new': [4, 2]}
    """
    had, has = set(before), set(after)
    gone, new = (x for x in before if x not in has), (x for x in after if x not in had)
    return {"gone": runs(gone), "new": runs(new)}


def runs(numbers: Iterable[int]) -> list[int]:
    """Numbers as runs of those that follow each other: where each begins, how long it is.

    >>> runs([7, 8, 9, 4])
    [7, 3, 4, 1]
    """
    found: list[int] = []
    for number in numbers:
        if found and number == found[-2] + found[-1]:
            found[-1] += 1
        else:
            found += [number, 1]
    return found
