"""How the explorer's data are kept small: what is there many times is there once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, groupby
from operator import sub
from typing import Any, TypeAlias

_NUMBER = re.compile(r"(?<![0-9])(?:0|[1-9][0-9]{0,8})(?![0-9])")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

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

    >>> in_columns([{"a": "x", "b": [7]}, {"a": "y"}, {"a": "z"}, {"a": "x", "b": [7]}])
    {'a': ['x', 'y', 'z', 'x'], 'b': {'of': {'each': '0BA', 'of': '0H'}, 'at': '0ABBA'}}
    """
    found: Columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        column = [row.get(name) for row in rows]
        places: dict[Any, int] = {}
        of: list[Any] = []
        at = []
        for value in column:
            key = tuple(value) if value.__class__ is list else value
            try:
                place = places.setdefault(key, len(of))
            except TypeError:  # a list of what has no hash
                place = places.setdefault((repr(value),), len(of))
            if place == len(of):
                of.append(value)
            at.append(place)
        few = 2 * len(of) <= len(rows)
        found[name] = {"of": packed(of), "at": packed(at)} if few else packed(column)
    return found


def change(before: Sequence[int], after: Sequence[int]) -> dict[str, str]:
    """The elements that went, and those that came, packed."""
    had, has = set(before), set(after)
    gone, new = [x for x in before if x not in has], [x for x in after if x not in had]
    return {"gone": numbers_text(gone), "new": numbers_text(new)}


def packed(values: Sequence[Any]) -> Any:
    """Whole numbers as a text; lists of such, some of them None, as their lengths, and all in one.

    Anything else is given back as it is. None has the length -1.

    >>> packed([1, 2]), packed([[1], None, [2]]), packed(["a", 1])
    ('0CE', {'each': '0CDC', 'of': '0CE'}, ['a', 1])
    """
    if all(type(v) is int for v in values):
        return numbers_text(values)
    lists = [v for v in values if v is not None]
    if all(isinstance(v, list | tuple) and all(type(n) is int for n in v) for v in lists):
        lengths = [-1 if v is None else len(v) for v in values]
        return {"each": numbers_text(lengths), "of": numbers_text(list(chain(*lists)))}
    return list(values)


def numbers_text(numbers: Sequence[int]) -> str:
    """Whole numbers in few letters, for what is often near the one before, or the same.

    A digit tells how: 1 if each is told by how much it differs from the one before, and 2 added if
    what then is the same many times is told once, with its times. Then each number has its letters
    in base 32, the lowest first and its sign below that, as in source maps.

    >>> numbers_text([7, 8, 9, 4]), numbers_text([5, 5, 5, 5, 5, 5])
    ('1OCCJ', '2KM')
    """
    steps = list(map(sub, numbers, chain((0,), numbers)))
    best = ""
    for how, given in enumerate((numbers, steps)):
        for told, parts in ((how, given), (how + 2, _times(given))):
            text = f"{told}{''.join(map(_letters, parts))}" if len(parts) <= len(given) else ""
            best = min(filter(None, (best, text)), key=len, default="")
    return best


def _times(numbers: Sequence[int]) -> list[int]:
    """Each of those that follow each other and are the same once, with how many they are."""
    return [n for value, same in groupby(numbers) for n in (value, len(list(same)))]


@cache
def _letters(number: int) -> str:
    rest, found = abs(number) << 1 | (number < 0), ""
    while rest >= 32:
        found += LETTERS[rest & 31 | 32]
        rest >>= 5
    return found + LETTERS[rest]
