"""A worker: runs mutants one after the other, and says what came of each in a line of JSON."""

import json
import resource
import signal
import sys
import traceback
from collections import Counter
from pathlib import Path

from tests.mutants.attack import Guard, attack
from tests.mutants.mutate import mutated, seeded, systematic
from tests.mutants.seeds import documents

SECONDS = 5  # of the processor's; who waits for something is killed by who waits for him
MEMORY = 2**30
FORMS = ("saved", "saved", "old", "text")
SHOWN = 12  # one in so many is drawn, and each whose texts were changed


class TooLong(BaseException):
    """A mutant has had its time."""


def stop(*_):
    raise TooLong


def tell(**found):
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def run(numbers, seed, folder):
    """Run the mutants of these numbers."""
    known = list(documents())
    others = [n for _, parts in known for g in parts for n in g["nodes"]]
    planted = list(systematic(known))
    for name, parts in known:
        if "compiled" in name:  # what is imported on first use is imported now
            attack(parts, seeded(seed, -1), folder, "saved", True)
            break
    guard = Guard(folder)
    signal.signal(signal.SIGPROF, stop)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    stages = Counter()
    for number in numbers:
        rng = seeded(seed, number)
        told = ""
        name, parts = known[rng.randrange(len(known))]
        fits, form = rng.random() < 0.7, rng.choice(FORMS)
        kind, fault = "?", None
        if number < len(planted):
            name, parts, form, kind = planted[number]
        tell(at=number, name=name)
        guard.found.clear()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        guard.on = True
        try:
            changed = parts
            if number >= len(planted):
                changed, kind = mutated(parts, others, rng, fits)
            shows = kind in ("lines", "name", "attribute_name") or rng.randrange(SHOWN) == 0
            stage = attack(changed, rng, folder, form, shows)
            stages[stage] += 1
        except TooLong:
            fault = "took too long"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            fault = f"{type(error).__name__}: {error}"[:300]
            told = "".join(traceback.format_exc().splitlines(True)[-14:])
        finally:
            guard.on = False
            signal.setitimer(signal.ITIMER_PROF, 0)
        if fault is not None:
            tell(number=number, name=name, kind=kind, form=form, fault=fault, trace=told)
        for event in guard.found:
            tell(number=number, name=name, kind=kind, form=form, fault=f"event {event}")
        if number % 50 == 0:
            tell(stages=dict(stages))
            stages.clear()
    tell(stages=dict(stages))


if __name__ == "__main__":
    start, stop_at, step, seed, folder = sys.argv[1:]
    run(range(int(start), int(stop_at), int(step)), int(seed), Path(folder))
