"""Is what `backend=None` takes as machine code never slower? python -m benchmarks.native_pays.

Each op with a native form is put into small groups, in float32 and float64, of arrays that stay in
the cache and of some that do not; those for which NumPy has no loop stand alone, too. Of those that
are taken as machine code, the table has the time as a part of that of the NumPy program: the least
of many calls of each, interleaved, one thread. It ends with what is slower, and fails if there is
any. `python -m benchmarks.native_pays exp sum` asks about some ops only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import symgrad as sg
from benchmarks.native_functions import RANGES, USUAL, seconds
from symgrad.ir.errors import SymgradError
from symgrad.ir.node import Node
from symgrad.ir.op import REGISTRY, Op
from symgrad.ir.operators import call
from symgrad.native.operations import operation

SHAPES = ((2**9, 2**8), (2**12, 2**9))
ROUNDS = 15
SLOWER = 1.1  # by more than what a clock tells of equal ones
ROWS: dict[str, Callable[[Node, Node], Node]] = {
    "sum": lambda x, y: x - sg.sum(x * y, axis=1, keepdims=True),
    "max": lambda x, y: x - sg.max(x * y, axis=1, keepdims=True),
    "sum of all": lambda x, y: sg.sum(x * y + x),
    "sum of columns": lambda x, y: sg.sum(x * y + x, axis=0),
    "softmax": lambda x, y: sg.nn.softmax(x * y),
    "transposed": lambda x, y: sg.abs(x.T * y.T - 1).T,
    "halves": lambda x, y: sg.abs(x[:, ::2] * y[:, 1::2] - 1),
}


def groups(op: Op, *operands: Node) -> Iterator[Node]:
    """The op with others that are cheap."""
    y = alone(op, *operands)
    if y.dtype.kind == "f":
        yield y * operands[0] + operands[1]
    else:
        yield sg.where(y, *operands) if y.dtype == bool else sg.astype(y, operands[0].dtype)


def alone(op: Op, *operands: Node) -> Node:
    """The op and nothing else."""
    return call(op.name, *operands[: op.operands[0]])


def ratio(inputs: list[Node], y: Node, limits: tuple[float, float]) -> float | None:
    """The time of machine code as a part of NumPy's; None if it is not taken."""
    programs = [sg.compile(inputs, y, backend=b, threads=1) for b in (None, "numpy")]
    if not programs[0].native:
        return None
    rng = np.random.default_rng(0)
    arrays: list[Any] = [rng.uniform(*limits, x.shape).astype(x.dtype) for x in inputs]
    best = [min(seconds(p, *arrays) for _ in range(2)) for p in programs]
    for _ in range(ROUNDS):
        best = [min(b, seconds(p, *arrays)) for b, p in zip(best, programs, strict=True)]
    return best[0] / best[1]


def rows(wanted: list[str]) -> Iterator[tuple[str, Any]]:
    """Names, and what makes a group of two operands."""
    for op in REGISTRY.every().values():
        if op.elementwise and operation(op) is not None and (not wanted or op.name in wanted):
            yield op.name, lambda x, y, op=op: next(groups(op, x, y))
            if not isinstance(op.kernel, np.ufunc):
                yield f"{op.name} alone", partial(alone, op)
    yield from (item for item in ROWS.items() if not wanted or item[0] in wanted)


def main() -> int:
    """Print the table; how many are slower."""
    slower = []
    sizes = [f"{dtype} {a}×{b}" for dtype in ("f4", "f8") for a, b in SHAPES]
    print(f"{'group of':<22}" + "".join(f"{s:>14}" for s in sizes))
    for name, build in rows(sys.argv[1:]):
        found: list[float | None] = []
        for dtype in ("float32", "float64"):
            for shape in SHAPES:
                inputs = [sg.placeholder(n, shape, dtype) for n in "xy"]
                try:
                    y = build(*inputs)
                    found.append(ratio(inputs, y, RANGES.get(name, USUAL)))
                except (SymgradError, TypeError):
                    found.append(None)
        if any(found):
            print(f"{name:<22}" + "".join(f"{'–' if r is None else f'{r:.2f}':>14}" for r in found))
            slower += [name for r in found if r is not None and r > SLOWER]
    print("slower:", ", ".join(dict.fromkeys(slower)) or "none")
    return len(slower)


if __name__ == "__main__":
    sys.exit(main() > 0)
