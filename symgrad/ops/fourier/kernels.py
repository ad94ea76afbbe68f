"""Kernels of Fourier transforms."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np


def fourier(x, axis, inverse, norm, out=None):
    """The discrete Fourier transform over some axes, or its inverse."""
    transform = np.fft.ifftn if inverse else np.fft.fftn
    return transform(x, axes=axis if np.ndim(axis) else (axis,), norm=norm, out=out)


def fourier_of_real(x, axis, norm, out=None):
    """The first half of the discrete Fourier transform of real numbers."""
    return np.fft.rfft(x, axis=axis, norm=norm, out=out)


def fourier_to_real(x, axis, n, norm, out=None):
    """The n real numbers of which x is the first half of the discrete Fourier transform."""
    return np.fft.irfft(x, n, axis=axis, norm=norm, out=out)
