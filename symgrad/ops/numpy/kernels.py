"""Kernels of functions that few programs use; what holds for those of `kernels` holds for them."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import numpy as np


def binary_exponent(x, out=None):
    """The power of 2 of the floats x, as integers."""
    power = np.frexp(x)[1]
    if out is None:
        return power
    np.copyto(out, power)
    return out
