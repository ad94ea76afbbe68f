"""Checks of the numbers that an optimiser is given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.ir.errors import DtypeError, UnsupportedError
from symgrad.ir.node import Node, Variable, constant_value, describe


def number(value: Any, name: str, *, above: bool = False, below: float = math.inf) -> float:
    """A finite number from 0 on, or above 0, as a float. Raises `UnsupportedError` for another."""
    given = np.asarray(value) if isinstance(value, (int, float, np.number, np.ndarray)) else None
    is_real = given is not None and not given.ndim and given.dtype.kind in "iuf"
    if not is_real or not 0 <= value < below or (above and not value):
        said = describe(value) if isinstance(value, Node) else repr(value)
        ends = ("above 0" if above else "from 0 on") + f" and below {below}" * (below < math.inf)
        raise UnsupportedError(f"{name} is a finite number {ends}, not {said:.80}")
    return float(value)


def rate(value: Any, name: str = "lr") -> Any:
    """A number as above, or a real scalar node, which may not hold another.

    Raises `UnsupportedError` for another number, `DtypeError` for another node.
    """
    if not isinstance(value, Node):
        return number(value, name)
    if value.shape or value.dtype.kind not in "iuf":
        raise DtypeError(f"{name} is a real scalar, not {describe(value)}")
    known = value.value if isinstance(value, Variable) else constant_value(value)
    if known is not None:
        number(known, name)
    return value
