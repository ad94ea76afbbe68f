"""`sg.fft`: the Fourier transforms of the array API standard, differentiable.

>>> sg.fft.rfft(x)
"""

from __future__ import annotations

from symgrad.ops.fourier.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from symgrad.ops.fourier.planes import fft2, ifft2, irfft2, rfft2
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
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def __dir__() -> list[str]:
    return __all__
