"""Products of matrices, norms, systems and factorisations, with their kernels."""
