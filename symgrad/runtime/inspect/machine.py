"""The rates that a machine reaches, with which a profile compares the steps of a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter_ns as now
from typing import NamedTuple

import numpy as np

NANOSECOND = 1e-9
# The bytes that copies move, read and written: from those of a call of NumPy's, which are few,
# to more than caches hold.
COPIES = (2**12, 2**16, 2**20, 2**24, 2**26)
MATRIX = 512
CALIBRATION = 0.025  # seconds for each measurement
LOOKS = 64


class Machine(NamedTuple):
    """The rates that this machine reaches, with BLAS as it is set: the best of several tries.

    `copies` gives the seconds in which NumPy copies an array, on one thread, by the bytes that are
    read and written; `products` the floating-point operations a second of a matrix product, by
    dtype; `clock` the seconds that a look at the clock takes, which are subtracted.
    """

    copies: Mapping[int, float]
    products: Mapping[str, float]
    clock: float

    def seconds(self, flops: float, nbytes: float, dtype: str) -> float:
        """In how many seconds it does so much if it does it as well as a copy, or a product."""
        sizes, times = list(self.copies), list(self.copies.values())
        beyond = max(1.0, nbytes / sizes[-1])
        moving = float(np.interp(nbytes, sizes, times)) * beyond if nbytes else 0.0
        return max(moving, flops / self.products[dtype])

    def __str__(self) -> str:
        rates = {n: n / s / 1e9 for n, s in self.copies.items()}
        best, most = max(rates, key=rates.__getitem__), max(rates)
        products = (f"{r / 1e9:.1f} GFLOP/s in {name}" for name, r in self.products.items())
        return (
            f"this machine copies at {rates[best]:.1f} GB/s, and {most >> 20} MiB at "
            f"{rates[most]:.1f}; its matrix products reach {' and '.join(products)}"
        )


def measured() -> Machine:
    """The rates of this machine, measured in about a fifth of a second."""
    largest = max(COPIES) // 2
    source, target = np.ones(largest, np.uint8), np.ones(largest, np.uint8)
    copies = {n: _best(partial(np.copyto, target[: n // 2], source[: n // 2])) for n in COPIES}
    products = {}
    for dtype in ("float32", "float64"):
        a = np.ones((MATRIX, MATRIX), dtype)
        seconds = _best(partial(np.matmul, a, a, np.empty_like(a)))
        products[dtype] = 2 * MATRIX**3 / seconds
    looks = [(now(), now(), now(), now(), now()) for _ in range(LOOKS)]
    clock = float(np.median([last - first for first, *_, last in looks])) / 4
    return Machine(copies, products, clock * NANOSECOND)


def _best(work: Callable[[], object]) -> float:
    """The shortest time that something takes, of as many tries as fit, but two."""
    best, tries, begun = np.inf, 0, now()
    while tries < 2 or now() - begun < CALIBRATION / NANOSECOND:
        start = now()
        work()
        best, tries = min(best, now() - start), tries + 1
    return float(best) * NANOSECOND
