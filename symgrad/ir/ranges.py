"""Ranges: between which numbers all elements of a node lie; `symgrad.ops.ranges` infers them."""

from __future__ import annotations

from math import inf, isinf
from typing import NamedTuple

import numpy as np


class Range(NamedTuple):
    """The least and the largest number that may be there, and whether there may be a NaN.

    An end that is infinite says that an inf may be there; of masks the ends are 0 and 1.
    """

    low: float
    high: float
    nan: bool = False

    @property
    def finite(self) -> bool:
        """Whether there is no NaN and no inf."""
        return not (self.nan or isinf(self.low) or isinf(self.high))

    def __contains__(self, value: object) -> bool:
        array = np.asarray(value)
        inside = (array >= self.low) & (array <= self.high)
        return bool((inside | (np.isnan(array) & self.nan)).all())

    def __str__(self) -> str:
        ends = f"from {self.low:.6g} to {self.high:.6g}"
        return f"{ends}, or NaN" if self.nan else ends


UNKNOWN = Range(-inf, inf, True)
