"""Products of matrices in machine code, which several threads share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.ir.types import TensorType
from symgrad.lowering.native import NativeLoop
from symgrad.lowering.steps import Call, Product, Ref, SlotBuilder, Step, nbytes
from symgrad.ops.linalg.products import (
    LEAST_COLUMNS,
    LEAST_PACKED,
    LEAST_ROWS,
    LEAST_SHARED,
    MOST_PACKED,
    matmul_p,
)

if TYPE_CHECKING:
    from symgrad.lowering.native import Native

DTYPES = frozenset({np.dtype("float32"), np.dtype("float64")})
DENSE = 5  # operations for each byte
# With so many a thousand calls make up for starting LLVM.
LEAST_ALONE = 2**22


def share_products(
    steps: list[Step], builders: Sequence[SlotBuilder], native: Native | None, threads: int
) -> None:
    """Have so many threads share the products among the steps, if that is worth it.

    On one thread machine code takes those that it multiplies in less time than BLAS. Where they are
    left to BLAS, loops are told that its threads may be spinning beside them.
    """
    if native is None:
        return
    threads = max(threads, 1)
    counts = {i: count for i, s in enumerate(steps) if (count := _count(s, builders, threads))}
    loops = [s for s in steps if isinstance(s, NativeLoop)]
    pays = loops or native.insist or max(counts.values(), default=0) * native.times >= LEAST_ALONE
    is_dense = threads > 1 and any(_is_dense(s, builders) for s in steps)
    codes = {}
    for i in counts if pays and not is_dense else ():
        (result,) = _types(steps[i].results, builders)
        code = native.product(threads, f"f{result.dtype.itemsize}")
        if code is not None:
            codes[i] = code
    for loop in loops if threads > 1 else ():
        loop.beside_blas = is_dense or codes.keys() != counts.keys()
    for i, code in codes.items():
        s = steps[i]
        assert isinstance(s, Call)
        steps[i] = Product(
            s.node, s.operands, s.results, s.group, s.scratch,
            op=s.op, attrs=s.attrs, code=code, threads=threads,
        )  # fmt: skip


def _types(refs: Sequence[Ref], builders: Sequence[SlotBuilder]) -> list[TensorType]:
    return [r.seen_type(builders[r.slot].type) for r in refs]


def _count(step: Step, builders: Sequence[SlotBuilder], threads: int) -> int:
    """The multiplications of each product that a step makes, if it is a large one of matrices."""
    if not isinstance(step, Call) or step.op is not matmul_p.op:
        return 0
    types = _types(step.operands, builders)
    shapes: Any = [t.shape for t in types]
    a, b = shapes
    if not (2 <= len(a) <= 3 and 2 <= len(b) <= 3) or {t.dtype for t in types} - DTYPES:
        return 0
    (rows, depth), columns = a[-2:], b[-1]
    if not all(isinstance(size, int) for size in (rows, depth, columns)):
        return 0  # the plan is made again when all sizes are known
    count: int = rows * depth * columns
    if threads > 1:
        return count if count >= LEAST_SHARED and min(rows, depth, columns) > 1 else 0
    is_dense = rows >= LEAST_ROWS and columns >= LEAST_COLUMNS
    return count if LEAST_PACKED <= count < MOST_PACKED and is_dense else 0


def _is_dense(step: Step, builders: Sequence[SlotBuilder]) -> bool:
    """Whether a step does much with little: it calls BLAS, as a convolution or factorisation does.

    BLAS then takes threads of its own, and leaves them spinning.
    """
    if not isinstance(step, Call) or step.op is matmul_p.op or step.op.flops is None:
        return False
    types = _types((*step.operands, *step.results), builders)
    count = len(step.operands)
    flops = step.flops(types[:count], types[count:]) or 0
    return flops >= 2 * LEAST_SHARED and flops > DENSE * sum(map(nbytes, types))
