"""The values of variables, written all together or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symgrad.ir.errors import StateError
from symgrad.ir.node import Variable
from symgrad.ir.types import TensorType
from symgrad.ir.values import ArrayData, store


def write(variables: Mapping[str, Variable], values: Mapping[str, Any]) -> None:
    """Give variables values by name: all of them, or none.

    Raises `StateError` that lists what is missing, what is there besides, and what has another
    shape or dtype, and `DtypeError` for what is no array of numbers.
    """
    arrays = {name: ArrayData(a).array.copy() for name, a in values.items()}
    faults = [f"{name} is missing" for name in variables if name not in arrays]
    faults += [f"there is no {name}" for name in arrays if name not in variables]
    for name, v in variables.items():
        if name in arrays and (v.shape, v.dtype) != (arrays[name].shape, arrays[name].dtype):
            given = TensorType(arrays[name].shape, arrays[name].dtype)
            faults.append(f"{name} is {v.type!r}, not {given!r}")
    if faults:
        raise StateError(f"the values do not fit, and nothing was changed: {'; '.join(faults)}")
    store({v.cell: arrays[name] for name, v in variables.items()})
