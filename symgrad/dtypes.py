"""The names of the Python array API standard that are no functions: dtypes and constants, and what
the namespace says of itself. The dtypes are NumPy's, so that they hash and compare.

>>> sg.placeholder("x", 3, sg.float32).dtype == sg.float32
True
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.types import DType
from symgrad.ops.dtypes import isdtype
from symgrad.ops.leaves import require_cpu

__all__ = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
__all__ += ["float32", "float64"]
__all__ += ["complex64", "complex128"]
DTYPES = tuple(__all__)
__all__ += ["e", "inf", "nan", "newaxis", "pi"]

bool: DType = np.dtype("bool")
int8: DType = np.dtype("int8")
int16: DType = np.dtype("int16")
int32: DType = np.dtype("int32")
int64: DType = np.dtype("int64")
uint8: DType = np.dtype("uint8")
uint16: DType = np.dtype("uint16")
uint32: DType = np.dtype("uint32")
uint64: DType = np.dtype("uint64")
float32: DType = np.dtype("float32")
float64: DType = np.dtype("float64")
complex64: DType = np.dtype("complex64")
complex128: DType = np.dtype("complex128")

e, inf, nan, pi = float(np.e), float("inf"), float("nan"), float(np.pi)
newaxis = None

__array_api_version__ = "2024.12"


class NamespaceInfo:
    """The capabilities, dtypes and devices of the namespace, as the standard asks them."""

    def capabilities(self) -> dict[str, Any]:
        """Indexing by boolean arrays, results whose shapes depend on data, the most axes.

        The first two are for what has a value; of a placeholder the sizes must be known.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The one device that there is."""
        return "cpu"

    def devices(self) -> list[str]:
        """All the devices that there are."""
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtype of numbers that come without one, by kind."""
        require_cpu(device)
        return {
            "real floating": float64,
            "complex floating": complex128,
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The dtypes of the standard by name: all of them, or those of a kind as in `isdtype`."""
        require_cpu(device)
        every = {name: np.dtype(name) for name in DTYPES}
        return {n: d for n, d in every.items() if kind is None or isdtype(d, kind)}


def __array_namespace_info__() -> NamespaceInfo:
    """The namespace's description of itself."""
    return NamespaceInfo()
