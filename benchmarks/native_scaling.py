"""How near does machine code come to the speed of memory, on one thread and on more?

    python -m benchmarks.native_scaling [--scale 0.1] [--rounds 25]

Each workload and a copy that moves as many bytes as its inputs and results have, in turns, in one
process and on as many threads. A ratio is the median of the ratios within the turns.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.workloads import WORKLOADS

NAMES = "kinked_f32", "kinked_f64", "black_scholes_f32", "black_scholes_f64"


def program(name: str, scale: float) -> tuple[Callable[[], Any], int]:
    """A call of a workload's program, and the bytes of its inputs and results."""
    work = WORKLOADS[name](scale)
    arrays = work.inputs()
    run = work.symgrad_native(*arrays)
    return run, sum(np.asarray(a).nbytes for a in (*arrays, *run()))


def copying(nbytes: int, threads: int, pool: ThreadPoolExecutor) -> Callable[[], Any]:
    """A copy that reads a half of so many bytes, and writes as many into the same array."""
    source = np.ones(nbytes // 2, np.uint8)
    made = np.empty_like(source)
    size = -(-len(source) // threads)
    parts = [slice(i * size, (i + 1) * size) for i in range(threads)]

    def run() -> Any:
        if threads == 1:
            np.copyto(made, source)
        else:
            list(pool.map(lambda s: np.copyto(made[s], source[s]), parts))
        return made

    return run


def ratio(first: Callable[[], Any], second: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """The median ratio of the times of two calls in turns, and the least time of the first."""
    times: list[tuple[float, float]] = []
    for _ in range(rounds + 3):
        ends = [perf_counter()]
        for call in (first, second):
            held = call()
            ends.append(perf_counter())
            del held
        times.append((ends[1] - ends[0], ends[2] - ends[1]))
    times = times[3:]
    return median(a / b for a, b in times), min(a for a, _ in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="of the sizes")
    parser.add_argument("--rounds", type=int, default=25)
    given = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    for name in NAMES:
        for threads in sorted({1, 2, len(cores)} & set(range(1, len(cores) + 1))):
            os.sched_setaffinity(0, cores[:threads])
            run, nbytes = program(name, given.scale)
            with ThreadPoolExecutor(threads) as pool:
                found, least = ratio(run, copying(nbytes, threads, pool), given.rounds)
            print(
                f"{name:<18} threads {threads}: {found:.2f} × the copy, "
                f"{1e3 * least:.2f} ms, {nbytes / 2**20:.0f} MiB",
                flush=True,
            )
    os.sched_setaffinity(0, cores)


if __name__ == "__main__":
    main()
