"""The time of `import symgrad` and a first small program, beside that of importing NumPy alone.

    python benchmarks/import_time.py [rounds]

symgrad loads its names when they are used: `symgrad.compile` is the import and the first use, and
`program` a step of descent that is built, differentiated, compiled and called. `ms` is the time of
that alone, `process ms` the processor's time since Python was started.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from time import perf_counter, process_time

import rounds as r


def first_program() -> None:
    """Import symgrad, and compile and run a program as small as a first one is."""
    import numpy as np

    import symgrad as sg

    x = sg.placeholder("x", ("N", 4), "float32")
    w = sg.variable("w", np.ones((4, 3), "float32"))
    loss = sg.sum(sg.relu(x @ w) ** 2)
    step = sg.compile([x], loss, updates={w: w - 0.1 * sg.grad(loss, w)})
    step(np.ones((2, 4), "float32"))


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].isdigit():
        module, _, name = sys.argv[1].partition(".")
        start = perf_counter()
        if module == "program":
            first_program()
        else:
            getattr(import_module(module), name or "__name__")
        taken = {"ms": perf_counter() - start, "process ms": process_time()}
        print(json.dumps({figure: 1e3 * seconds for figure, seconds in taken.items()}))
    else:
        count = int(sys.argv[1]) if sys.argv[1:] else 15
        r.report(r.compare(__file__, ["numpy", "symgrad", "symgrad.compile", "program"], count))
