"""Checks of the arguments of layers and losses, made where these are given."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.arraylike import is_function
from symgrad.ir.errors import DtypeError, UnsupportedError
from symgrad.ir.types import DType, as_dtype


def number(value: Any, name: str, most: float = math.inf) -> float:
    """A finite number from 0 to the most; NumPy's would make all that it meets of their dtype."""
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    if not is_number or isinstance(value, bool) or not 0 <= value <= most or math.isinf(value):
        wanted = "on" if math.isinf(most) else f"to {most:g}"
        raise UnsupportedError(f"{name} is a number from 0 {wanted}, not {value!r}")
    return float(value)


def floats(dtype: Any) -> DType:
    """The dtype of weights."""
    found = as_dtype(dtype)
    if found.kind != "f":
        raise DtypeError(f"weights are floats, not {found.name}")
    return found


def called(value: Any, name: str) -> Callable[..., Any]:
    """Something to call with a node; raises for a class of modules that has no instance yet."""
    if isinstance(value, type) or not is_function(value):
        hint = "; unpack it: Sequential(*layers)" if isinstance(value, (list, tuple)) else ""
        raise UnsupportedError(f"{name} is a module or a function, not {value!r}{hint}")
    found: Callable[..., Any] = value
    return found


def given(key: Any) -> Any:
    """A key, unless it was forgotten."""
    if key is None:
        raise UnsupportedError(
            "it draws with a key, so that it draws the same whenever it is made: give it "
            "key=sg.random.key(0), and several layers keys of their own: "
            "first, second = sg.random.split(sg.random.key(0))"
        )
    return key
