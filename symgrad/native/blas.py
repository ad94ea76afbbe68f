"""The BLAS that NumPy calls: where its products of matrices are, and how many threads it takes."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

# By kind, the letter of BLAS's own names.
LETTERS: Mapping[str, str] = {"f4": "s", "f8": "d"}
HOLDERS, LIMIT = 0, 1  # places in `Blas.state`


class Blas(NamedTuple):
    """OpenBLAS's functions, in the library that NumPy has loaded, by their addresses.

    `products` has those of `cblas_sgemm` and `cblas_dgemm`, by kind; `integer` is LLVM's type of
    their sizes. `state` tells how many calls hold BLAS to one thread, and how many threads it
    may take when none does. It is read and written with the GIL.
    """

    products: Mapping[str, int]
    integer: str
    threads: int
    set_threads: int
    state: Any


@lru_cache(maxsize=1)
def openblas() -> Blas | None:
    """NumPy's BLAS, if it is an OpenBLAS that can be asked; it is loaded already."""
    for library in _libraries():
        for prefix, suffix in (("scipy_", "64_"), ("", "64_"), ("", "")):
            names = [f"{prefix}cblas_{letter}gemm{suffix}" for letter in LETTERS.values()]
            names += [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
            if all(hasattr(library, name) for name in names):
                *products, threads, set_threads = (_address(library, name) for name in names)
                known = dict(zip(LETTERS, products, strict=True))
                integer = "i64" if suffix or _has_long_sizes(library) else "i32"
                found = Blas(known, integer, threads, set_threads, (ctypes.c_int64 * 2)())
                if hasattr(os, "register_at_fork"):
                    os.register_at_fork(after_in_child=_give_back)
                return found
    return None


def _libraries() -> Iterator[Any]:
    """NumPy's own library, in which what it depends on is looked for, too, and those beside it."""
    extension = sys.modules["numpy._core._multiarray_umath"].__file__ or ""
    folder = Path(extension).parents[1].with_suffix(".libs")
    for path in (extension, *sorted(map(str, folder.glob("*openblas*")))):
        try:
            yield ctypes.CDLL(path)
        except OSError:
            continue


def _has_long_sizes(library: Any) -> bool:
    """Whether an OpenBLAS whose names do not tell was built for sizes of 64 bits."""
    try:
        told = library.openblas_get_config
    except AttributeError:
        return False
    told.restype = ctypes.c_char_p
    return b"USE64BITINT" in (told() or b"")


def _give_back() -> None:
    """Let BLAS take its threads in a process that was forked while a call held it to one."""
    found = openblas()
    if found is not None and found.state[HOLDERS]:
        found.state[HOLDERS] = 0
        set_blas_threads(found.state[LIMIT])


def blas_threads() -> int | None:
    """How many threads NumPy's BLAS may take when no call of ours holds it to one."""
    found = openblas()
    if found is None:
        return None
    ask, held = ctypes.PYFUNCTYPE(ctypes.c_int)(found.threads), found.state.__getitem__
    # One call in C, which keeps the GIL: a product of another thread's cannot end in between.
    all_three = partial(ask), partial(held, HOLDERS), partial(held, LIMIT)
    asked, holders, limit = list(map(partial.__call__, all_three))
    return int(limit if holders else asked)


def set_blas_threads(count: int) -> None:
    """Let NumPy's BLAS take so many threads, in the whole process, if it can be told."""
    found = openblas()
    if found is not None:
        ctypes.PYFUNCTYPE(None, ctypes.c_int)(found.set_threads)(count)


def _address(library: Any, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
