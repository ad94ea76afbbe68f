"""First values of weights, by name.

`fans` are how many numbers each result of a layer is made of, and how many results each number
goes into; for a matrix that multiplies from the right they are its shape. He, LeCun and Glorot keep
the variance of what passes, for layers with rectifiers, with linear or scaled units, and for both
directions.

| name | the law, and where it is from |
|---|---|
| `zeros`, `ones` | a number |
| `kaiming_uniform`, `kaiming_normal` | variance 2 / fan_in: He et al., arXiv:1502.01852 |
| `xavier_uniform`, `xavier_normal` | 2 / (fan_in + fan_out): Glorot and Bengio, AISTATS 2010 |
| `lecun_uniform`, `lecun_normal` | variance 1 / fan_in: LeCun et al., Efficient BackProp, 1998 |
| `orthogonal` | an orthogonal matrix of the last axis and the rest: Saxe et al., arXiv:1312.6120 |
| `normal` | the standard normal law |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from symgrad import random
from symgrad.ir.arraylike import is_function
from symgrad.ir.errors import ShapeError, UnsupportedError
from symgrad.ir.node import Node, Variable
from symgrad.nn.checks import floats, given
from symgrad.nn.module import parameter
from symgrad.ops.declare import NodeLike, explaining

Fans: TypeAlias = tuple[int, int]
Initializer: TypeAlias = str | Callable[..., Any]
_NAMES = (
    "zeros ones kaiming_uniform kaiming_normal xavier_uniform xavier_normal lecun_uniform "
    "lecun_normal orthogonal normal"
)


@explaining
def initial(
    init: Initializer, key: NodeLike, shape: tuple[int, ...], fans: Fans, dtype: Any = "float64"
) -> np.ndarray[Any, Any]:
    """First values of a shape, by the name of a law or a function `init(key, shape, dtype)`.

    Raises `UnsupportedError` for another name, `ShapeError` for another shape than was asked for.

    >>> initial("xavier_uniform", sg.random.key(0), (2, 3), (2, 3)).shape
    (2, 3)
    """
    if is_function(init):
        found = np.asarray(init(key, shape, dtype), dtype)
        if found.shape != shape:
            raise ShapeError(f"the initialiser gave the shape {found.shape}, not {shape}")
        return found
    if init not in _NAMES.split():
        listed = ", ".join(_NAMES.split())
        raise UnsupportedError(f"there is no initialiser {init!r}; there are {listed}")
    return np.asarray(_law(init, given(key), shape, fans, floats(dtype)), dtype)


def _law(init: str, key: NodeLike, shape: tuple[int, ...], fans: Fans, dtype: Any) -> Any:
    if init in ("zeros", "ones"):
        return np.full(shape, 1.0 if init == "ones" else 0.0)
    if init == "normal":
        return random.normal(key, shape, dtype=dtype)
    if init == "orthogonal":
        return _orthogonal(random.normal(key, shape))
    family, law = init.split("_")
    means = {"kaiming": fans[0] / 2, "lecun": fans[0], "xavier": sum(fans) / 2}
    deviation = 1 / math.sqrt(max(means[family], 1e-30))
    if law == "normal":
        return random.normal(key, shape, scale=deviation, dtype=dtype)
    bound = math.sqrt(3) * deviation
    return random.uniform(key, shape, low=-bound, high=bound, dtype=dtype)


def _orthogonal(noise: Node) -> Any:
    """The orthogonal part of a matrix, by the signs that make it uniform (Mezzadri, 2007)."""
    whole: np.ndarray[Any, Any] = np.asarray(noise)
    matrix = whole.reshape(-1, whole.shape[-1])
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    q, r = np.linalg.qr(tall)
    q = q * np.where(np.diag(r) < 0, -1, 1)
    return (q if tall is matrix else q.T).reshape(whole.shape)


def weights(
    init: Initializer, key: NodeLike | None, shape: tuple[int, ...], fans: Fans, dtype: Any
) -> Variable:
    """A parameter with first values; see `initial`. All sizes are 1 or more."""
    return parameter(initial(init, key, shape, fans, dtype))
