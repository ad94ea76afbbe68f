"""How long do building, differentiating and compiling a deep graph take, and is that linear?

    python benchmarks/compile_deep.py [layers …]

Layers of `x = tanh(x @ x * 0.1 + i)` on an 8×8 float32 input; the gradient of the sum by the input.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from time import perf_counter

import rounds as r


def measure(layers: int) -> dict[str, float]:
    import numpy as np

    import symgrad as sg

    times = [perf_counter()]
    x = h = sg.placeholder("x", (8, 8), "float32")
    for i in range(layers):
        h = sg.tanh(h @ h * 0.1 + i)
    loss = sg.sum(h)
    times.append(perf_counter())
    gradient = sg.grad(loss, x)
    times.append(perf_counter())
    program = sg.compile([x], [loss, gradient])
    times.append(perf_counter())
    program(np.full((8, 8), 0.01, "float32"))
    times.append(perf_counter())
    steps = (b - a for a, b in pairwise(times))
    figures = dict(zip(("build s", "grad s", "compile s", "first call s"), steps, strict=True))
    total = times[-1] - times[0]
    return {**figures, "in all s": total, "µs a node": 1e6 * total / len(program.raw)}


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "symgrad":
        print(json.dumps(measure(int(sys.argv[2]))))
    else:
        for layers in sys.argv[1:] or ("1000", "10000"):
            figures = r.compare(__file__, ["symgrad"], 3, layers)["symgrad"]
            kept = {k: v for k, v in figures.items() if "ratio" not in k}
            r.report({f"{layers} layers": kept})
