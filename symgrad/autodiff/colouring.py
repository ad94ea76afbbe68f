"""Columns of a sparse matrix that share no row, in as few groups as are found quickly.

The greedy colouring of the graph in which columns that share a row are neighbours, without making
that graph: each row keeps the colours that its columns have, as the bits of an int. See
Gebremedhin, Manne and Pothen, What color is your Jacobian? SIAM Review 47, 2005.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


def coloured(pattern: Any) -> Numbers:
    """The colour of each column, from 0 on, -1 for one without entries; `pattern` is a csr_array.

    Columns are taken in their order, and, where a row shows that fewer colours might do, those with
    the most entries first; the one with fewer colours is returned.
    """
    least = fewest(pattern)
    columns = pattern.tocsc()
    counts = np.diff(columns.indptr)
    found = _greedy(columns, np.arange(len(counts)))
    if found.max(initial=-1) + 1 > least:
        other = _greedy(columns, np.argsort(-counts, kind="stable"))
        found = min(found, other, key=lambda colours: int(colours.max(initial=-1)))
    return found


def fewest(pattern: Any) -> int:
    """A lower bound of the number of colours: the most entries in a row."""
    return int(np.diff(pattern.indptr).max(initial=0))


def apart(pattern: Any) -> Any:
    """The columns of a symmetric pattern that get a colour of their own, as a mask.

    They are the k columns with the most entries, for the k with which k + (the most entries of any
    other row) is least, which is about how many colours there will be; k may be 0.
    """
    counts = np.diff(pattern.indptr)
    order = np.argsort(-counts, kind="stable")
    ranked = np.append(counts[order], 0)
    together = np.arange(len(ranked)) + ranked
    alone = np.zeros(len(counts), bool)
    alone[order[: int(together.argmin())]] = True
    return alone


def coloured_apart(pattern: Any, alone: Any) -> Numbers:
    """Colours of the columns of a symmetric pattern, those `alone` with one each, the last ones.

    The others are coloured as if rows and columns that are alone were not there: by symmetry, these
    entries are read from the columns that are alone.
    """
    rest = pattern.tocoo()
    keep = ~(alone[rest.row] | alone[rest.col])
    entries = (rest.data[keep], (rest.row[keep], rest.col[keep]))
    colours = coloured(type(rest)(entries, shape=pattern.shape).tocsr())
    colours[alone] = colours.max(initial=-1) + 1 + np.arange(int(alone.sum()))
    return colours


def _greedy(columns: Any, order: Numbers) -> Numbers:
    """Each column in turn takes the least colour that no row of it has."""
    ends, rows = columns.indptr.tolist(), columns.indices.tolist()
    used = [0] * columns.shape[0]
    colours = np.full(columns.shape[1], -1)
    for j in order.tolist():
        own = rows[ends[j] : ends[j + 1]]
        if own:
            taken = 0
            for i in own:
                taken |= used[i]
            free = ~taken & (taken + 1)
            for i in own:
                used[i] |= free
            colours[j] = free.bit_length() - 1
    return colours
