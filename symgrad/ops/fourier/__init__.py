"""Fourier transforms, with their kernels."""
