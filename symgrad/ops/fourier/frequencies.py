"""The frequencies of Fourier transforms, and their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.dims import Size
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import as_dtype
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.fourier.transforms import axes_of, length_of
from symgrad.ops.leaves import constant, require_cpu
from symgrad.ops.manipulate import roll

NAMESPACE = "fft"


def _frequencies(name: str, n: Any, d: Any, dtype: Any, device: Any) -> Node:
    require_cpu(device)
    function: Callable[..., Any] = getattr(np.fft, name)
    return constant(
        function(length_of(n), float(d)), "float64" if dtype is None else as_dtype(dtype)
    )


@composite()
def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Node:
    """The frequencies of the elements of an `fft` of n samples, `d` apart.

    >>> np.asarray(fftfreq(4))
    array([ 0.  ,  0.25, -0.5 , -0.25])
    """
    return _frequencies("fftfreq", n, d, dtype, device)


@composite()
def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Node:
    """The frequencies of the elements of an `rfft` of n samples, `d` apart.

    >>> np.asarray(rfftfreq(4))
    array([0.  , 0.25, 0.5 ])
    """
    return _frequencies("rfftfreq", n, d, dtype, device)


@composite(numpy=(np.fft.fftshift,))
def fftshift(x: NodeLike, /, *, axes: Any = None) -> Node:
    """The frequency 0 moved to the middle, along all axes or those named.

    >>> np.asarray(fftshift(np.arange(4)))
    array([2, 3, 0, 1])
    """
    return _shifted(x, axes, lambda size: size // 2)


@composite(numpy=(np.fft.ifftshift,))
def ifftshift(x: NodeLike, /, *, axes: Any = None) -> Node:
    """The inverse of `fftshift`.

    >>> np.asarray(ifftshift(np.arange(4)))
    array([2, 3, 0, 1])
    """
    return _shifted(x, axes, lambda size: -(size // 2))


def _shifted(x: NodeLike, axes: Any, by: Callable[[Size], Size]) -> Node:
    node = as_node(x)
    found = axes_of(node, None, axes)
    return roll(node, tuple(by(node.shape[a]) for a in found), axis=tuple(found))
