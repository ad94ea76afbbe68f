"""Special functions, with their kernels."""
