"""Activations that are not in `symgrad.ops.activations`: all are made of other functions.

They take floats of any shape; integers become float64.
"""

from __future__ import annotations

import math
from typing import Any

from symgrad.ir.errors import UnsupportedError
from symgrad.ir.node import Node
from symgrad.ops.activations import leaky_relu, sigmoid
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.elementwise import expm1, multiply
from symgrad.ops.reduce import as_float
from symgrad.ops.select import where
from symgrad.ops.special.normal import ndtr
from symgrad.ops.trigonometry import tanh


@composite()
def silu(x: NodeLike, /) -> Node:
    """x * sigmoid(x), also called swish (Hendrycks and Gimpel, arXiv:1606.08415).

    >>> np.asarray(silu([0.0, 1.0])).round(4)
    array([0.    , 0.7311])
    """
    node = as_float(x)
    return multiply(node, sigmoid(node))


@composite()
def gelu(x: NodeLike, /, *, approximate: str = "none") -> Node:
    """x times the normal distribution function of x (Hendrycks and Gimpel, arXiv:1606.08415).

    `approximate="tanh"` is that paper's faster form, which differs by up to 5e-4. Raises
    `UnsupportedError` for another.

    >>> np.asarray(gelu([0.0, 1.0])).round(4)
    array([0.    , 0.8413])
    """
    node = as_float(x)
    if approximate == "none":
        return multiply(node, ndtr(node))
    if approximate != "tanh":
        raise UnsupportedError(f"approximate is 'none' or 'tanh', not {approximate!r}")
    inner = math.sqrt(2 / math.pi) * (node + 0.044715 * node**3)
    return multiply(0.5 * node, 1 + tanh(inner))


@composite()
def elu(x: NodeLike, /, *, alpha: Any = 1.0) -> Node:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere (Clevert et al., arXiv:1511.07289).

    At 0 it has a kink unless alpha is 1. The derivative there is that nearest to 0 of alpha and 1,
    or that of the side that `kinks=` says; for an alpha that is a node it is alpha.

    >>> np.asarray(elu([-1.0, 1.0])).round(4)
    array([-0.6321,  1.    ])
    """
    node = as_float(x)
    if not isinstance(alpha, (int, float)):
        return where(node > 0, node, alpha * expm1(node))
    smooth = where(node > 0, node, expm1(node))
    return smooth if alpha == 1 else leaky_relu(smooth, slope=alpha)


@composite()
def selu(x: NodeLike, /) -> Node:
    """`elu` scaled so that layers keep mean 0 and variance 1 (Klambauer et al., arXiv:1706.02515).

    Its kink at 0 is that of `elu`.

    >>> np.asarray(selu([-1.0, 1.0])).round(4)
    array([-1.1113,  1.0507])
    """
    return multiply(elu(x, alpha=1.6732632423543772), 1.0507009873554805)
