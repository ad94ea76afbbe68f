"""`sg.fft`: the Fourier transforms of the array API standard, differentiable.

>>> sg.fft.rfft(x)
"""

from __future__ import annotations

from symgrad.ops.fourier.frequencies import fftfreq as fftfreq
from symgrad.ops.fourier.frequencies import fftshift as fftshift
from symgrad.ops.fourier.frequencies import ifftshift as ifftshift
from symgrad.ops.fourier.frequencies import rfftfreq as rfftfreq
from symgrad.ops.fourier.transforms import fft as fft
from symgrad.ops.fourier.transforms import fftn as fftn
from symgrad.ops.fourier.transforms import hfft as hfft
from symgrad.ops.fourier.transforms import ifft as ifft
from symgrad.ops.fourier.transforms import ifftn as ifftn
from symgrad.ops.fourier.transforms import ihfft as ihfft
from symgrad.ops.fourier.transforms import irfft as irfft
from symgrad.ops.fourier.transforms import irfftn as irfftn
from symgrad.ops.fourier.transforms import rfft as rfft
from symgrad.ops.fourier.transforms import rfftn as rfftn

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
