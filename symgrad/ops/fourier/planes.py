"""Fourier transforms of images: those over several axes, of the last two."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.node import Node
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.fourier.transforms import fftn, ifftn, irfftn, rfftn

NAMESPACE = "fft"


@composite(numpy=(np.fft.fft2,))
def fft2(x: NodeLike, /, *, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> Node:
    """`fftn` over the last two axes, or over others."""
    return fftn(x, s=s, axes=axes, norm=norm)


@composite(numpy=(np.fft.ifft2,))
def ifft2(x: NodeLike, /, *, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> Node:
    """`ifftn` over the last two axes, or over others."""
    return ifftn(x, s=s, axes=axes, norm=norm)


@composite(numpy=(np.fft.rfft2,))
def rfft2(x: NodeLike, /, *, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> Node:
    """`rfftn` over the last two axes, or over others."""
    return rfftn(x, s=s, axes=axes, norm=norm)


@composite(numpy=(np.fft.irfft2,))
def irfft2(x: NodeLike, /, *, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> Node:
    """`irfftn` over the last two axes, or over others."""
    return irfftn(x, s=s, axes=axes, norm=norm)
