"""Drawing with a key, with its kernels."""
