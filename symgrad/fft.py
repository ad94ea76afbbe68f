"""`sg.fft`: the Fourier transforms of the array API standard, differentiable.

>>> sg.fft.rfft(x)
"""

from symgrad.ir.namespace import public_names as _public_names
from symgrad.ops.fourier.frequencies import fftfreq as fftfreq
from symgrad.ops.fourier.frequencies import fftshift as fftshift
from symgrad.ops.fourier.frequencies import ifftshift as ifftshift
from symgrad.ops.fourier.frequencies import rfftfreq as rfftfreq
from symgrad.ops.fourier.planes import fft2 as fft2
from symgrad.ops.fourier.planes import ifft2 as ifft2
from symgrad.ops.fourier.planes import irfft2 as irfft2
from symgrad.ops.fourier.planes import rfft2 as rfft2
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

__all__ = _public_names(globals())


def __dir__() -> list[str]:
    return __all__
