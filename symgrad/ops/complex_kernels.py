"""Kernels of complex numbers, which give what the array API standard says where NumPy's do not."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np


def complex_expm1(x, out=None):
    """exp(x) - 1: by exp where the real part is inf or NaN, of which NumPy makes NaN; never -0."""
    x = np.asarray(x)
    endless = np.logical_not(np.isfinite(x.real))
    ends = np.exp(x[endless])
    y = np.asarray(np.expm1(x, out=out))
    np.add(y.real, 0, out=y.real)
    y[endless] = ends
    y.real[endless] -= 1
    return y if out is not None else y[()]


def complex_tanh(x, out=None):
    """tanh(x): at infinity its imaginary part is 0 with the sign of that of x, not of its sine."""
    x = np.asarray(x)
    infinite = np.isinf(x.real)
    ends = np.copysign(0, x.imag[infinite])
    y = np.asarray(np.tanh(x, out=out))
    y.imag[infinite] = ends
    return y if out is not None else y[()]


def complex_sign(x, out=None):
    """x / abs(x), and 0 at 0: NaN in both parts where either is NaN, beside an inf too."""
    unknown = np.isnan(x)
    y = np.asarray(np.sign(x, out=out))
    y[unknown] = complex(np.nan, np.nan)
    return y if out is not None else y[()]
