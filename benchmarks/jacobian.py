"""Is a Jacobian in one batched pass faster than one vector-Jacobian product after the other?

    python benchmarks/jacobian.py [rounds]

Functions of 200 numbers to 200: one layer of tanh, and two in float32 and float64. `loop` calls a
compiled vjp 200 times. With two layers a product of 200×200 matrices is the floor.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np
import rounds as r

SIZE = 200
FUNCTIONS = ("one layer", "two layers", "two layers float32")


def build(name: str) -> tuple:
    import symgrad as sg

    rng = np.random.default_rng(0)
    dtype = "float32" if name.endswith("float32") else "float64"
    a, b = (rng.standard_normal((2, SIZE, SIZE)) / np.sqrt(SIZE)).astype(dtype)
    x = sg.placeholder("x", SIZE, dtype)
    y = sg.tanh(a @ x)
    return sg, x, sg.tanh(b @ y) if name.startswith("two") else y, np.ones(SIZE, dtype) / 9


def batched(name: str) -> Callable[[], np.ndarray]:
    sg, x, y, at = build(name)
    program = sg.compile([x], sg.jacobian(y, x))
    return lambda: program(at)


def loop(name: str) -> Callable[[], np.ndarray]:
    sg, x, y, at = build(name)
    g = sg.placeholder("g", SIZE, x.dtype)
    program = sg.compile([x, g], sg.vjp(y, x, g))
    rows = np.eye(SIZE, dtype=x.dtype)
    return lambda: np.stack([program(at, row) for row in rows])


CONTESTANTS = {"batched": batched, "loop": loop}

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in CONTESTANTS:
        run = CONTESTANTS[sys.argv[1]](sys.argv[2])
        run()
        times = []
        for _ in range(20):
            start = perf_counter()
            run()
            times.append(perf_counter() - start)
        print(json.dumps({"ms": 1e3 * float(np.median(times))}))
    else:
        count = int(sys.argv[1]) if sys.argv[1:] else 7
        for name in FUNCTIONS:
            np.testing.assert_allclose(batched(name)(), loop(name)(), rtol=1e-3, atol=1e-6)
            print(name)
            r.report(r.compare(__file__, list(CONTESTANTS), count, name))
