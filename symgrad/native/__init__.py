"""Machine code for groups of ops: one loop, written as LLVM IR, for many passes of NumPy's."""
