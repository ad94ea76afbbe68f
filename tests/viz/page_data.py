"""The tables of the explorer's page, read as the page reads them."""

from __future__ import annotations

import re
from itertools import accumulate, islice

from symgrad_viz.explorer_tables import LETTERS


def unpacked(text):
    """Whole numbers that are kept as a text, as the page reads them."""
    parts = [
        [LETTERS.index(c) for c in part] for part in re.findall("[g-z0-9+/]*[A-Za-f]", text[1:])
    ]
    told = [sum((digit & 31) << 5 * i for i, digit in enumerate(part)) for part in parts]
    told = [-(n >> 1) if n & 1 else n >> 1 for n in told]
    if int(text[0]) & 2:
        told = [n for n, times in zip(told[::2], told[1::2], strict=True) for _ in range(times)]
    return list(accumulate(told)) if int(text[0]) & 1 else told


def column(kept):
    """The values of a column, as the page reads them."""
    if isinstance(kept, str):
        return unpacked(kept)
    if isinstance(kept, list):
        return kept
    if "at" in kept:
        of = column(kept["of"])
        return [of[i] for i in unpacked(kept["at"])]
    of = iter(unpacked(kept["of"]))
    return [None if n < 0 else list(islice(of, n)) for n in unpacked(kept["each"])]


def rows(columns):
    """The rows of a table that is kept by its columns, as the page reads it."""
    fields = {name: column(c) for name, c in columns.items()}
    return [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]
