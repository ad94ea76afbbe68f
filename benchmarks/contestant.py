"""One contestant at one workload, in this process; started by `python -m benchmarks`.

    python benchmarks/contestant.py <contestant> <workload> <scale> <threads> <folder>

`naive` leaves its answers in the folder; the others are held to them before they are timed. It
prints one line of JSON: `status`, and the figures if that is "ok". For each line that it reads
after that, it measures the time of a call once more, and prints that.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from ctypes import CDLL
from importlib import import_module
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.workload import CONTESTANTS, Run
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.small import First

CHECKED = 3
SECONDS, LEAST, MOST = 0.7, 5, 3000


def measure(
    contestant: str, workload: str, scale: float, threads: int, folder: Path
) -> Iterator[dict[str, Any]]:
    """All figures, then the time of a call as often as it is asked for."""
    method, library = CONTESTANTS[contestant]
    limit_threads(library, threads)
    start = perf_counter()
    with suppress(NotImplementedError):
        small = First()
        getattr(small, method)(*small.inputs())()
    warmed = perf_counter() - start
    work = WORKLOADS[workload](scale)
    inputs = work.inputs()
    resident = settled()
    start = perf_counter()
    run: Run = getattr(work, method)(*inputs)
    first = run()
    built = perf_counter() - start
    highest = highest_now() - resident
    error = difference_to_naive(contestant, run, first, folder / workload)
    if not error <= work.tolerance:
        yield {"status": f"wrong by {error:.1g}"}
        return
    del first
    settled()
    run()
    of_a_call = highest_now() - resident
    times = timed(run)
    yield {
        "status": "ok",
        **of_calls(times),
        "compile ms": 1e3 * (built - min(times)),
        "first ms": 1e3 * warmed,
        "memory MiB": highest / 2**20,
        "call MiB": of_a_call / 2**20,
    }
    while True:
        yield {"status": "ok", **of_calls(timed(run))}


def of_calls(times: Sequence[float]) -> dict[str, float]:
    return {"ms": 1e3 * float(np.median(times)), "least ms": 1e3 * min(times)}


def limit_threads(library: str, threads: int) -> None:
    import_module(library)
    if library == "torch":
        torch = import_module("torch")
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(threads)


def difference_to_naive(contestant: str, run: Run, first: Sequence[Any], file: Path) -> float:
    """The largest difference in the first calls; `naive` writes down what they are held to."""
    worst = 0.0
    for i in range(CHECKED):
        answer = arrays(first if i == 0 else run())
        if contestant == "naive":
            np.savez(f"{file}-{i}.npz", *answer)
        elif contestant != "products":
            with np.load(f"{file}-{i}.npz") as expected:
                worst = max(worst, difference(answer, list(expected.values())))
    return worst


def arrays(results: Sequence[Any]) -> list[Any]:
    return [np.asarray(y) for y in results]


def difference(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """The largest difference, as a part of the largest element of the same result."""
    if [a.shape for a in found] != [b.shape for b in expected]:
        return np.inf
    worst = 0.0
    for a, b in zip(found, expected, strict=True):
        apart = np.abs(a.astype("float64") - b).max(initial=0)
        worst = max(worst, float(apart / max(np.abs(b).max(initial=0), 1e-30)))
        if np.isnan(apart):
            return np.inf
    return worst


def timed(run: Run) -> list[float]:
    times: list[float] = []
    end = perf_counter() + SECONDS
    while len(times) < LEAST or (perf_counter() < end and len(times) < MOST):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return times


def status(field: str) -> int:
    """This process's memory in bytes, as Linux reports it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


def highest_now() -> int:
    """The most memory in use since `settled`, without pages of files: the code of a library is
    shared by all processes, and the system drops it when it needs the memory.
    """
    return status("VmHWM") - status("RssFile")


def settled() -> int:
    """The memory in use, without what was freed; from here on the highest is counted anew."""
    CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return status("VmRSS") - status("RssFile")


def main(name: str, workload: str, scale: str, threads: str, folder: str) -> None:
    # What libraries print is not an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    told = measure(name, workload, float(scale), int(threads), Path(folder))
    for _ in chain([""], sys.stdin):
        try:
            figures = next(told)
        except NotImplementedError:
            figures = {"status": "does not apply"}
        except ModuleNotFoundError as error:
            figures = {"status": f"{error.name} is not installed"}
        except Exception as error:
            figures = {"status": f"failed: {type(error).__name__}: {error}"[:200]}
        print(json.dumps(figures), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
