"""Machine code for groups of ops: one loop, written as LLVM IR, for many passes of NumPy's."""

MOST_ELEMENTS = 64  # of each array of a whole program that is one function
