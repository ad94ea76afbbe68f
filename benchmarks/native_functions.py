"""The cost of each op as machine code and in NumPy: python -m benchmarks.native_functions.

The figures are nanoseconds an element, of arrays that stay in the cache, the best of many calls on
one thread, interleaved. From them come the costs in symgrad/native/operations.py.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from symgrad.ir.graph import Graph
from symgrad.ir.op import REGISTRY, Op
from symgrad.ir.operators import call
from symgrad.native.kernel import compiled
from symgrad.native.operations import operation
from symgrad.native.space import NotNative
from symgrad.ops.leaves import placeholder

SIZE, ROUNDS = 2**14, 60
# Where the functions are defined.
RANGES = {"acosh": (1.1, 3.0)}
USUAL = (0.05, 0.95)


def costs(op: Op, dtype: str) -> tuple[float, float] | None:
    """Nanoseconds an element as machine code and in NumPy; None for what takes attributes."""
    found = operation(op)
    if found is None or "f" not in found.kinds or op.cast:
        return None
    least = op.operands[0]
    inputs = [placeholder(f"x{i}", (SIZE,), dtype) for i in range(least)]
    try:
        graph = Graph([call(op.name, *inputs)], inputs)
        code = compiled(graph, {})
    except (NotNative, TypeError):
        return None
    if graph.outputs[0].attrs:
        return None
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(*RANGES.get(op.name, USUAL), SIZE).astype(dtype) for _ in inputs]
    out = np.empty(SIZE, code.results[0].dtype)
    is_ufunc = isinstance(op.kernel, np.ufunc)

    def own() -> None:
        code.call(*arrays, out, 0, SIZE)

    def numpys() -> None:
        op.kernel(*arrays, out=out) if is_ufunc else op.kernel(*arrays)

    times = [(seconds(own), seconds(numpys)) for _ in range(ROUNDS)]
    first, second = (min(t) / SIZE * 1e9 for t in zip(*times, strict=True))
    return first, second


def seconds(run: Any, *arrays: Any) -> float:
    """How long one call takes."""
    start = perf_counter()
    run(*arrays)
    return perf_counter() - start


def main() -> None:
    """Print the table."""
    print(f"{'op':<22}{'float32':>10}{'NumPy':>10}{'float64':>10}{'NumPy':>10}")
    for op in REGISTRY.every().values():
        found = [costs(op, dtype) for dtype in ("float32", "float64")] if op.elementwise else []
        if found and None not in found:
            print(f"{op.name:<22}" + "".join(f"{t:>10.2f}" for pair in found for t in pair or ()))


if __name__ == "__main__":
    main()
