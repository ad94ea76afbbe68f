"""Programs of the examples by JAX beside the reference: `python -m tests.backends.examples [13 …]`.

Each call is made by both, from the same variables. Values may differ by a part of the largest
element; dtypes, shapes and the places of NaN may not. After some calls of a program NumPy goes on.
"""

import runpy
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np

import symgrad as sg
from symgrad.ir.forms import flatten
from tests.helpers import differences

EXAMPLES = Path(__file__).parents[2] / "examples"
MOST_CALLS = 2
# Of the largest element, by size of a number in bytes. Next values may be further away: Adam
# divides a gradient by its own size, so that of one that is nearly 0 the last digits count.
TOLERANCES = {2: 1e-2, 4: 1e-5, 8: 1e-10, 16: 1e-10}
OF_NEXT = 100


class Twin:
    """A program run by the reference, whose calls JAX makes as well."""

    def __init__(self, number, make, options):
        self.number, self.calls, self.faults = number, 0, []
        place = {k: options.pop(k, None) for k in ("device", "shard")}
        self.fast = make(**options | {"backend": "numpy"})
        self.reference = make(**options | {"backend": "reference"})
        self.other = make(**options | place | {"backend": "jax"})

    def __getattr__(self, name):
        return getattr(self.fast, name)

    def __call__(self, *args, **kwargs):
        if self.calls >= MOST_CALLS:
            return self.fast(*args, **kwargs)
        self.calls += 1
        state = self.reference.interface.updated
        before = [v.value for v in state]
        found = self.other(*args, **kwargs)
        moved = [v.value for v in state]
        for v, value in zip(state, before, strict=True):
            v.value = value
        expected = self.reference(*args, **kwargs)
        results = zip(leaves(found), leaves(expected), strict=True)
        compared = [(z.path, faults_of(y.value, z.value)) for y, z in results]
        nexts = zip(state, moved, strict=True)
        compared += [(v.name, faults_of(y, v.value, OF_NEXT)) for v, y in nexts]
        where = f"program {self.number}, call {self.calls}"
        self.faults += [f"{where}: {name} {words}" for name, told in compared for words in told]
        return expected


def leaves(results):
    return flatten(results, "result")[0]


def faults_of(found, expected, times=1):
    """How what was found differs from what was expected, in words."""
    if type(found) is not type(expected):
        yield f"is a {type(found).__name__}, not a {type(expected).__name__}"
    room = times * TOLERANCES.get(np.asarray(expected).dtype.itemsize, 0)
    yield from differences(found, expected, room)


def twins(number):
    """The programs of an example after its run, each with what is wrong with it."""
    (path,) = EXAMPLES.glob(f"{number}_*.py")
    compiled, made = sg.compile, []

    def compile(inputs, outputs, updates=None, **options):
        if sg.Exact.of(options.get("exact", "rounding")) < sg.Exact.ROUNDING:
            return compiled(inputs, outputs, updates, **options)
        made.append(Twin(len(made), lambda **o: compiled(inputs, outputs, updates, **o), options))
        return made[-1]

    with patch.object(sg, "compile", compile), TemporaryDirectory() as folder:
        main = runpy.run_path(str(path)).get("main")
        if main is None:
            runpy.run_path(str(path), run_name="__main__")
        else:
            wanted = main.__code__.co_varnames[: main.__code__.co_argcount]
            given = {"folder": Path(folder), "epochs": 2, "steps": 8}
            main(**{name: given[name] for name in wanted})
    return made


def main():
    for number in sys.argv[1:] or [p.name[:2] for p in sorted(EXAMPLES.glob("[0-9]*.py"))]:
        made = twins(number)
        faults = [words for twin in made for words in twin.faults]
        calls = sum(twin.calls for twin in made)
        sys.stderr.write(f"{number}: {len(made)} programs, {calls} calls; {faults or 'alike'}\n")


if __name__ == "__main__":
    main()
