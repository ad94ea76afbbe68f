"""How much longer is an epoch in pieces, on which executor, than in one process?

    OPENBLAS_NUM_THREADS=1 python benchmarks/executors.py [rows] [rounds]

A step of gradient descent of a net of two layers on rows of 1,000 float32 in a file, in eight
pieces; the executors take turns, and the least of their times counts. Then 1,000 pieces of one
number, for what a piece costs by itself. With dask installed a cluster of two workers takes part.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import symgrad as sg

WIDTH, UNITS, CLASSES, PIECES = 1000, 100, 10, 8


def parts() -> tuple[list[Any], Any, dict[Any, Any]]:
    rng = np.random.default_rng(1)
    x = sg.placeholder("x", ("N", WIDTH), "float32")
    y = sg.placeholder("y", ("N", CLASSES), "float32")
    w1 = sg.variable("w1", rng.standard_normal((WIDTH, UNITS), dtype="float32") * np.float32(0.03))
    w2 = sg.variable("w2", rng.standard_normal((UNITS, CLASSES), dtype="float32"))
    loss = sg.mean((sg.relu(x @ w1) @ w2 - y) ** 2)
    grads = sg.grad(loss, [w1, w2])
    return [x, y], loss, {w: w - 1e-3 * g for w, g in zip((w1, w2), grads, strict=True)}


@contextmanager
def executors() -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        found: dict[str, Any] = {"one after the other": None}
        for kind, make in (("threads", ThreadPoolExecutor), ("processes", ProcessPoolExecutor)):
            for count in (1, 2):
                found[f"{count} {kind}"] = stack.enter_context(make(count))
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            yield found
            return
        for count in (1, 2):
            cluster = stack.enter_context(
                LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
            )
            client = stack.enter_context(Client(cluster))
            found[f"{count} dask"] = client.get_executor(pure=False, retries=3)
        yield found


def least(run: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return min(times)


def main(rows: int, rounds: int) -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, executors() as found:
        path = Path(folder) / "x.npy"
        np.save(path, rng.standard_normal((rows, WIDTH), dtype="float32"))
        y = rng.standard_normal((rows, CLASSES), dtype="float32")
        whole = sg.compile(*parts(), threads=1)
        held = np.load(path)
        step = sg.map_reduce(*parts(), over="N", threads=1)
        data = sg.chunks(x=path, y=y, rows=-(-rows // PIECES))
        one = sg.map_reduce([n := sg.placeholder("n", "N")], sg.sum(n), over="N")
        numbers = sg.chunks(n=np.ones(1000), rows=1)
        times: dict[str, list[float]] = {name: [] for name in found}
        alone: list[float] = []
        for _ in range(rounds):
            alone.append(least(lambda: whole(held, y), 1))
            for name, executor in found.items():
                times[name].append(least(lambda e=executor: step(data, executor=e), 1))
        print(f"{os.getloadavg()[0]:.1f} load; all rows at once, in memory: {min(alone):.3f} s")
        for name, executor in found.items():
            one(numbers, executor=executor)
            piece = least(lambda e=executor: one(numbers, executor=e), 2)
            ratio = min(times["one after the other"]) / min(times[name])
            print(
                f"{name:20} {min(times[name]):.3f} s an epoch, {ratio:4.2f} times as fast as one "
                f"after the other; {piece * 1e3:6.0f} µs a piece of one number"
            )


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:] or (65_536, 5)))
