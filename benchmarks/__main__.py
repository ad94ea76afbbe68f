"""How fast are compiled programs, beside NumPy tuned by hand and beside their peers?

    python -m benchmarks [workload …] [--peers NAME …] [--rounds N] [--threads N …]

Writes `benchmarks/results/<date>.json`, the tables as `.md`, and plots if matplotlib is there.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import machine, tables
from benchmarks.rounds import ROOT, Process
from benchmarks.tables import OWN
from benchmarks.workload import ASKED_FOR, CONTESTANTS
from benchmarks.workloads import WORKLOADS

SCRIPT = str(ROOT / "benchmarks" / "contestant.py")
PAUSE = 0.1  # in seconds: threads that wait for more work by spinning have given up by then
Round = dict[str, dict[str, Any]]


def rounds_of(
    workload: str,
    contestants: Sequence[str],
    count: int,
    turns: int,
    threads: int,
    scale: float,
    limit: float,
    folder: str,
) -> list[Round]:
    """The answers of the contestants in each turn; one that fails is not asked again.

    In each round the processes are new; in the turns of a round they are the same, and are asked
    for the time of a call only, one after the other. Caches on disk lie in the folder: of a
    workload that is new in it they are empty in the first round, and full in the others.
    """
    found: list[Round] = []
    out: set[str] = set()
    environment = {
        "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
        "PYTENSOR_FLAGS": f"base_compiledir={folder}/pytensor",
        "NUMBA_CACHE_DIR": f"{folder}/numba",
        "HOME": folder,  # where symgrad keeps its objects
    }
    for _ in range(count):
        arguments = workload, str(scale), str(threads), folder
        processes: dict[str, Process] = {}
        try:
            for turn in range(turns):
                said: Round = {}
                for name in contestants:
                    if name in out:
                        continue
                    if turn:
                        time.sleep(PAUSE)
                        processes[name].ask()
                    else:
                        processes[name] = Process(
                            SCRIPT, name, *arguments, threads=threads, environment=environment
                        )
                    said[name] = answer(processes[name], limit)
                    if said[name]["status"] != "ok":
                        out.add(name)
                    if name in out or turn == turns - 1:
                        processes.pop(name).close()
                found.append(said)
        finally:
            for process in processes.values():
                process.close()
    for file in Path(folder).glob("*.npz"):
        file.unlink()
    return found


def answer(process: Process, limit: float) -> dict[str, Any]:
    try:
        return process.answer(limit)
    except TimeoutError:
        return {"status": f"over {limit:.0f} s"}
    except ChildProcessError as error:
        return {"status": f"died: {error}"}


def summary(found: Sequence[Round]) -> Round:
    """Medians, and medians of the ratios within a turn, for each contestant."""
    result: Round = {}
    for name in found[0]:
        told = [said[name] for said in found if name in said]
        bad = [t["status"] for t in told if t["status"] != "ok"]
        if bad:
            result[name] = {"status": bad[0]}
            continue
        whole = [t for t in told if "compile ms" in t]  # the first turns of the rounds
        first, later = whole[0], whole[1:] or whole
        result[name] = {
            "status": "ok",
            "ms": median(t["ms"] for t in told),
            "first ms": first["first ms"],
            "compile ms": first["compile ms"],
            "compile again ms": median(t["compile ms"] for t in later),
            "memory MiB": median(t["memory MiB"] for t in whole),
            "call MiB": median(t["call MiB"] for t in whole),
        }
        for base in ("tuned", *OWN[:2], "JAX"):
            pairs = [(s[name]["ms"], s[base].get("ms")) for s in found if base in s]
            if all(b for _, b in pairs) and pairs:
                result[name][f"time ratio to {base}"] = median(a / b for a, b in pairs)
    for base in (*OWN[:2], "JAX"):
        own = result.get(base, {})
        for figures in result.values():
            if own.get("status") == figures["status"] == "ok":
                for k in ("compile ms", "compile again ms"):
                    figures[k.replace("ms", f"ratio to {base}")] = figures[k] / own[k]
    return result


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="workload", help=", ".join(WORKLOADS))
    parser.add_argument("--peers", nargs="+", choices=list(CONTESTANTS), help="and NumPy")
    parser.add_argument("--rounds", type=int, default=5, help="each with new processes")
    parser.add_argument("--turns", type=int, default=1, help="in which a process is timed, a round")
    parser.add_argument(
        "--threads", type=int, nargs="+", help="one, and two where memory is the bound"
    )
    parser.add_argument("--scale", type=float, default=1, help="of the sizes, to try things out")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one contestant")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument(
        "--readme", type=Path, metavar="RESULTS.json", help="put a run's overview into the README"
    )
    given = parser.parse_args()
    for name in set(given.workloads) - WORKLOADS.keys():
        parser.error(f"there is no workload {name}; there are {', '.join(WORKLOADS)}")
    return given


def jobs(given: argparse.Namespace) -> Iterable[tuple[str, int]]:
    """Each workload and number of threads, the numbers one after the other."""
    for threads in given.threads or (1, 2):
        for name in given.workloads or WORKLOADS:
            if given.threads or threads == 1 or WORKLOADS[name].memory_bound:
                yield name, threads


def main() -> None:
    given = arguments()
    if given.readme:
        result = json.loads(given.readme.read_text(encoding="utf-8"))
        tables.into_readme(result, ROOT / "README.md")
        return
    peers = given.peers or [c for c in CONTESTANTS if c not in ASKED_FOR]
    needed = {"naive", "tuned", "symgrad", *peers}
    contestants = ["naive", *(c for c in CONTESTANTS if c in needed - {"naive"})]
    stem = given.out / f"{datetime.now(UTC):%Y-%m-%d}"
    given.out.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "machine": machine.described(),
        "rounds": given.rounds,
        "turns": given.turns,
        "scale": given.scale,
        "sizes MiB": machine.sizes(),
        "imports": machine.imports(given.rounds),
        "runs": [],
    }
    slow: dict[str, Round] = {}  # by workload: who is not asked again with more threads
    with TemporaryDirectory() as folder:
        for name, threads in jobs(given):
            load = os.getloadavg()[0]
            over = slow.get(name, {})
            asked = [c for c in contestants if c not in over]
            found = rounds_of(
                name, asked, given.rounds, given.turns, threads, given.scale, given.limit, folder
            )
            contest = {
                "workload": name,
                "title": WORKLOADS[name].title,
                "memory bound": WORKLOADS[name].memory_bound,
                "threads": threads,
                "load average": [load, os.getloadavg()[0]],
                "contestants": summary(found) | over,
            }
            result["runs"].append(contest)
            told = contest["contestants"]
            slow[name] = {c: f for c, f in told.items() if f["status"].startswith("over")}
            print(tables.line(contest), flush=True)
            stem.with_suffix(".json").write_text(
                json.dumps(result, indent=1) + "\n", encoding="utf-8"
            )
            stem.with_suffix(".md").write_text(tables.markdown(result), encoding="utf-8")
    tables.plots(result, stem)


if __name__ == "__main__":
    main()
