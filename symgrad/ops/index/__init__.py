"""Indexing: slices, gathers and scatters, with their kernels."""
