"""Machine code for what NumPy does in many passes: groups of ops as one loop, written as LLVM IR."""
