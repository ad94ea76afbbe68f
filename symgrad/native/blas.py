"""The BLAS that NumPy calls: where its products of matrices are, and how many threads it takes."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

# By kind, the letter of BLAS's own names.
LETTERS: Mapping[str, str] = {"f4": "s", "f8": "d"}


class Blas(NamedTuple):
    """The addresses of OpenBLAS's functions, in the library that NumPy has loaded.

    `products` has those of `cblas_sgemm` and `cblas_dgemm`, by kind; `integer` is LLVM's type of
    their sizes.
    """

    products: Mapping[str, int]
    integer: str
    threads: int
    set_threads: int


@lru_cache(maxsize=1)
def openblas() -> Blas | None:
    """NumPy's BLAS, if it is an OpenBLAS that can be asked; it is loaded already."""
    try:
        # A symbol is looked for in what the library depends on, too.
        library = ctypes.CDLL(sys.modules["numpy._core._multiarray_umath"].__file__)
    except (KeyError, OSError):
        return None
    for prefix, suffix, integer in (("scipy_", "64_", "i64"), ("", "64_", "i64"), ("", "", "i32")):
        names = [f"{prefix}cblas_{letter}gemm{suffix}" for letter in LETTERS.values()]
        names += [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
        if all(hasattr(library, name) for name in names):
            *products, threads, set_threads = (_address(library, name) for name in names)
            return Blas(dict(zip(LETTERS, products, strict=True)), integer, threads, set_threads)
    return None


def blas_threads() -> int | None:
    """How many threads NumPy's BLAS may take, if it can be asked."""
    found = openblas()
    return None if found is None else int(ctypes.CFUNCTYPE(ctypes.c_int)(found.threads)())


def set_blas_threads(count: int) -> None:
    """Let NumPy's BLAS take so many threads, in the whole process, if it can be told."""
    found = openblas()
    if found is not None:
        ctypes.CFUNCTYPE(None, ctypes.c_int)(found.set_threads)(count)


def _address(library: Any, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
