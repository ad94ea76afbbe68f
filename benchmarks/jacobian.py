"""Is a Jacobian in one batched pass faster than one vector-Jacobian product after the other?

    python benchmarks/jacobian.py [rounds]

A function of 200 numbers to 200: two layers of tanh. `loop` calls a compiled vjp 200 times.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np
import rounds as r

SIZE = 200


def build() -> tuple:
    import symgrad as sg

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, SIZE, SIZE)) / np.sqrt(SIZE)
    x = sg.placeholder("x", SIZE)
    return sg, x, sg.tanh(b @ sg.tanh(a @ x)), rng.standard_normal(SIZE)


def batched() -> Callable[[], np.ndarray]:
    sg, x, y, at = build()
    program = sg.compile([x], sg.jacobian(y, x))
    return lambda: program(at)


def loop() -> Callable[[], np.ndarray]:
    sg, x, y, at = build()
    g = sg.placeholder("g", SIZE)
    program = sg.compile([x, g], sg.vjp(y, x, g))
    rows = np.eye(SIZE)
    return lambda: np.stack([program(at, row) for row in rows])


CONTESTANTS = {"batched": batched, "loop": loop}

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in CONTESTANTS:
        run = CONTESTANTS[sys.argv[1]]()
        run()
        times = []
        for _ in range(20):
            start = perf_counter()
            run()
            times.append(perf_counter() - start)
        print(json.dumps({"ms": 1e3 * float(np.median(times))}))
    else:
        np.testing.assert_allclose(batched()(), loop()(), rtol=1e-10, atol=1e-12)
        count = int(sys.argv[1]) if sys.argv[1:] else 7
        r.report(r.compare(__file__, list(CONTESTANTS), count))
