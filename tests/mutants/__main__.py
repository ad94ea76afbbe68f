"""Run mutants of saved graphs in worker processes; ends with 1 if anything came of one.

    python -m tests.mutants --count 100000 --workers 2 --seed 0
    python -m tests.mutants --only 4711      # one mutant again, with its traceback

Each mutant is a graph of `seeds.py` with one change of `mutate.py`. The first are systematic, code
in every part of every attribute of every op; the others are drawn. Each is loaded, verified,
compiled in every way, called, saved and drawn (`attack.py`), with 5 seconds, 1 GB of memory and an
audit hook. What is no `SymgradError` is a fault, and printed; a worker that hangs is killed, and
goes on after the mutant that it hung at.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 60  # seconds without a word


class Worker:
    """The mutants of one process, which is started again when it had to be killed."""

    def __init__(self, first, count, step, seed):
        self.first, self.count, self.step, self.seed = first, count, step, seed
        self.faults, self.stages = [], Counter()

    def run(self):
        at = self.first
        while at is not None and at < self.count:
            at = self.process(at)

    def process(self, first):
        """Run a process from a number on; the number to go on from if it did not get to its end."""
        home = "/dev/shm" if Path("/dev/shm").is_dir() else None
        with tempfile.TemporaryDirectory(dir=home, prefix="mutants_") as folder:
            command = [sys.executable, "-X", "faulthandler", "-m", "tests.mutants.worker"]
            numbers = map(str, (first, self.count, self.step, self.seed, folder))
            environment = {
                "PYTHONPATH": f"{ROOT}:{ROOT / 'viz'}", "OPENBLAS_NUM_THREADS": "1",
                "PATH": os.environ.get("PATH", ""),
            }  # fmt: skip
            with (
                tempfile.TemporaryFile("w+") as errors,
                subprocess.Popen(
                    [*command, *numbers], cwd=folder, text=True, env=environment,
                    stdout=subprocess.PIPE, stderr=errors,
                ) as running,
            ):  # fmt: skip
                last = self.listen(running, first)
                code = running.wait()
                errors.seek(0)
                error = errors.read()
            if code == 0:
                return None
            if last["name"] == "?":
                raise RuntimeError(f"a worker did not begin: {error}")
            fault = f"died with {code}"
            told = {"number": last["at"], "name": last["name"], "fault": fault}
            self.heard({**told, "kind": "?", "form": "?", "trace": error[-1500:]})
            return last["at"] + self.step

    def listen(self, running, first):
        """Take in what a process says, and kill it when it says nothing; its last mutant."""
        last = {"at": first, "name": "?"}
        assert running.stdout is not None
        while True:
            timer = threading.Timer(PATIENCE, running.kill)
            timer.start()
            line = running.stdout.readline()
            timer.cancel()
            if not line:
                return last
            self.heard(told := json.loads(line))
            last = told if "at" in told else last

    def heard(self, told):
        if "stages" in told:
            self.stages.update(told["stages"])
        elif "fault" in told:
            self.faults.append(told)
            told["fault"] = told["fault"].splitlines()[0]
            who = "{number} ({name}; {kind}, {form}): {fault}".format(**told)
            say(f"{who}\n{told.get('trace', '')}")


def say(text):
    """Write a line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def campaign(count, workers, seed, first=0):
    """Run mutants; the faults, and how many came to which stage."""
    each = [Worker(first + i, first + count, workers, seed) for i in range(workers)]
    threads = [threading.Thread(target=w.run) for w in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [f for w in each for f in w.faults], sum((w.stages for w in each), Counter())


def main():
    parser = argparse.ArgumentParser("python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    first, count = (given.first, given.count) if given.only is None else (given.only, 1)
    faults, stages = campaign(count, min(given.workers, count), given.seed, first)
    classes = Counter((f["fault"][:60], f["kind"]) for f in faults)
    for (fault, kind), n in classes.most_common():
        say(f"{n:6} {kind}: {fault}")
    done = sum(stages.values())
    say(f"{done} mutants: {dict(stages.most_common())}; {len(faults)} faults")
    # A worker that did not begin, or did not come to its end, has proved nothing.
    return 1 if faults or done < count else 0


if __name__ == "__main__":
    sys.exit(main())
