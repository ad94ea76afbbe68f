"""The rounds of the benchmarks: contestants in processes of their own, interleaved."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # the checkout, installed or not

THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


class Process:
    """A contestant in a process of its own, which prints a line of JSON for each question.

    It may use as many cores as threads: that is the limit which XLA heeds, and nobody can exceed.
    The first question is asked by starting it.
    """

    def __init__(
        self,
        script: str,
        contestant: str,
        *arguments: str,
        threads: int = 1,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        cores = set(sorted(os.sched_getaffinity(0))[:threads])
        eigen = f"--xla_cpu_multi_thread_eigen={str(threads > 1).lower()}"
        own = {"PYTHONPATH": str(ROOT), "XLA_FLAGS": eigen, **(environment or {})}
        self._child = subprocess.Popen(
            [sys.executable, script, contestant, *arguments],
            env={**os.environ, **dict.fromkeys(THREADS, str(threads)), **own},
            preexec_fn=partial(os.sched_setaffinity, 0, cores),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # so that what it starts ends with it
        )

    def answer(self, limit: float | None = None) -> dict[str, Any]:
        """The next line. `TimeoutError` after `limit` seconds, `ChildProcessError` if it died."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._kill()

        timer = threading.Timer(limit or threading.TIMEOUT_MAX, stop)
        timer.start()
        try:
            assert self._child.stdout is not None
            line = self._child.stdout.readline()
        finally:
            timer.cancel()
        if late.is_set():
            raise TimeoutError
        if not line:
            raise ChildProcessError(self._child.wait())
        return dict(json.loads(line))

    def ask(self) -> None:
        """Ask once more; of one that has died, `answer` tells."""
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):
            self._child.stdin.write("again\n")
            self._child.stdin.flush()

    def close(self) -> None:
        self._kill()
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        self._child.wait()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)


def run(script: str, contestant: str, *arguments: str) -> dict[str, Any]:
    """The one answer of a contestant."""
    process = Process(script, contestant, *arguments)
    try:
        return process.answer()
    finally:
        process.close()


def compare(
    script: str, contestants: list[str], rounds: int, *arguments: str
) -> dict[str, dict[str, float]]:
    """Interleaved rounds; for each contestant the median of each figure and its ratio to the first.

    The ratio is the median of the ratios within a round, so that a machine whose speed drifts
    does not favour one.
    """
    found: dict[str, list[dict[str, float]]] = {c: [] for c in contestants}
    for _ in range(rounds):
        for contestant in contestants:
            found[contestant].append(run(script, contestant, *arguments))
    first = found[contestants[0]]
    result = {}
    for contestant, figures in found.items():
        result[contestant] = {k: median(f[k] for f in figures) for k in figures[0]}
        result[contestant] |= {
            f"{k} ratio": median(f[k] / g[k] for f, g in zip(figures, first, strict=True))
            for k in figures[0]
        }
    return result


def report(result: dict[str, dict[str, float]]) -> None:
    for contestant, figures in result.items():
        print(f"{contestant:<16}" + "  ".join(f"{k} {v:.4g}" for k, v in figures.items()))
