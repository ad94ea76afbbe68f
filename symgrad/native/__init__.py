"""Floor 7: machine code for groups of ops: one loop, as LLVM IR, in place of many of NumPy's.

The writer: `vectors.py` writes LLVM IR as if it were arithmetic, `precise.py` has polynomials and
pairs of floats, `coefficients.py` the polynomials. Functions: `exponential.py`, `powers.py`,
`circular.py`, `hyperbolic.py`, `gaussian.py`, `gamma.py`, `philox.py` (random numbers), `rows.py`
(along a row). `operations.py` says for each op by which of them it is written, and its cost.

The loops: `groups.py` decides whether a fused group has a native form, `space.py` finds its loops,
`loops.py` writes them, with `sums.py` for reductions, `ends.py` for elements that fill no vector,
`placed.py` for parts of arrays, `short.py` for short last axes, `streams.py` for results that are
written past the caches. `small.py` writes a whole small program as one function.

The call: `engine.py` compiles and loads, `store.py` keeps the result on disk, `builtin.py` and
`direct.py` make functions that Python calls, `kernel.py` is a group ready to be called.

Products of matrices: `products.py` is `matmul` for large ones, `gemm.py` has machine code for them,
`blas.py` finds NumPy's BLAS, and `product_parts.py` writes how a part is computed by either.

Threads: `team.py` has those that share out loops and products, `mode.py` how each computes with
subnormal numbers.
"""

MOST_ELEMENTS = 64  # of each array of a whole program that is one function
