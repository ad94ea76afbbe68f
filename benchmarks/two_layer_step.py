"""How fast is the step of the two-layer net, beside NumPy tuned by hand?

    python benchmarks/two_layer_step.py [rounds]

64×1000×100×10 in float32, one BLAS thread, each contestant in a process of its own, interleaved.
`tuned` has preallocated buffers, `matmul` with `out`, the mask by `greater` and multiply; `naive`
is what one writes first; `products` are the five matrix products alone, the floor for everybody.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np
import rounds as r

RATE = 1e-6


def data() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    shapes = (64, 1000), (64, 10), (1000, 100), (100, 10)
    return tuple(rng.standard_normal(s, dtype="float32") for s in shapes)


def symgrad() -> Callable[[], float]:
    import symgrad as sg

    X, Y, W1, W2 = data()
    x = sg.placeholder("x", ("N", 1000), "float32")
    y = sg.placeholder("y", ("N", 10), "float32")
    w1, w2 = sg.variable("w1", W1), sg.variable("w2", W2)
    loss = sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2)
    dw1, dw2 = sg.grad(loss, [w1, w2])
    step = sg.compile([x, y], loss, updates={w1: w1 - RATE * dw1, w2: w2 - RATE * dw2})
    return lambda: step(X, Y)


def tuned() -> Callable[[], float]:
    x, y, w1, w2 = data()
    h, e = np.empty((64, 100), "f4"), np.empty((64, 10), "f4")
    mask, gh = np.empty((64, 100), "f4"), np.empty((64, 100), "f4")
    d1, d2 = np.empty((1000, 100), "f4"), np.empty((100, 10), "f4")

    def step() -> float:
        np.matmul(x, w1, out=h)
        np.maximum(h, 0, out=h)
        np.matmul(h, w2, out=e)
        np.subtract(e, y, out=e)
        loss = np.vdot(e, e)
        np.multiply(e, 2 * RATE, out=e)
        np.matmul(h.T, e, out=d2)
        np.matmul(e, w2.T, out=gh)
        np.greater(h, 0, out=mask)
        np.multiply(gh, mask, out=gh)
        np.matmul(x.T, gh, out=d1)
        np.subtract(w1, d1, out=w1)
        np.subtract(w2, d2, out=w2)
        return loss

    return step


def naive() -> Callable[[], float]:
    x, y, w1, w2 = data()

    def step() -> float:
        h = np.maximum(x @ w1, 0)
        e = h @ w2 - y
        loss = (e**2).sum()
        g = 2 * e
        gh = g @ w2.T * (h > 0)
        np.subtract(w1, RATE * (x.T @ gh), out=w1)
        np.subtract(w2, RATE * (h.T @ g), out=w2)
        return loss

    return step


def products() -> Callable[[], float]:
    x, _, w1, w2 = data()
    h, e = np.empty((64, 100), "f4"), np.empty((64, 10), "f4")
    d1, d2 = np.empty((1000, 100), "f4"), np.empty((100, 10), "f4")

    def step() -> float:
        np.matmul(x, w1, out=h)
        np.matmul(h, w2, out=e)
        np.matmul(h.T, e, out=d2)
        np.matmul(e, w2.T, out=h)
        np.matmul(x.T, h, out=d1)
        return 0.0

    return step


CONTESTANTS = {"tuned": tuned, "symgrad": symgrad, "naive": naive, "products": products}


def measure(step: Callable[[], float]) -> dict[str, float]:
    for _ in range(100):
        step()
    times = []
    for _ in range(1500):
        start = perf_counter()
        step()
        times.append(perf_counter() - start)
    return {"median µs": 1e6 * float(np.median(times)), "minimum µs": 1e6 * min(times)}


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in CONTESTANTS:
        print(json.dumps(measure(CONTESTANTS[sys.argv[1]]())))
    else:
        for i in range(3):  # the same numbers first, then the times
            losses = {n: CONTESTANTS[n]() for n in ("tuned", "symgrad", "naive")}
            found = {n: [float(s()) for _ in range(20 * i + 1)][-1] for n, s in losses.items()}
            assert np.allclose(list(found.values()), found["tuned"], rtol=1e-4), found
        r.report(r.compare(__file__, list(CONTESTANTS), int(sys.argv[1]) if sys.argv[1:] else 9))
