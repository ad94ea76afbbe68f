"""`sg.fft`: the Fourier transforms of the array API standard, differentiable.

>>> sg.fft.rfft(x)
"""

from __future__ import annotations

from symgrad.ops.fourier import fft as fft
from symgrad.ops.fourier import fftn as fftn
from symgrad.ops.fourier import hfft as hfft
from symgrad.ops.fourier import ifft as ifft
from symgrad.ops.fourier import ifftn as ifftn
from symgrad.ops.fourier import ihfft as ihfft
from symgrad.ops.fourier import irfft as irfft
from symgrad.ops.fourier import irfftn as irfftn
from symgrad.ops.fourier import rfft as rfft
from symgrad.ops.fourier import rfftn as rfftn
from symgrad.ops.frequencies import fftfreq as fftfreq
from symgrad.ops.frequencies import fftshift as fftshift
from symgrad.ops.frequencies import ifftshift as ifftshift
from symgrad.ops.frequencies import rfftfreq as rfftfreq

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
