"""`sg.fft`: the Fourier transforms of the array API standard, differentiable.

>>> sg.fft.rfft(x)
"""

from __future__ import annotations

from symgrad.ops.fourier.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from symgrad.ops.fourier.transforms import (
    fft,
    fftn,
    hfft,
    ifft,
    ifftn,
    ihfft,
    irfft,
    irfftn,
    rfft,
    rfftn,
)

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def __dir__() -> list[str]:
    return __all__
