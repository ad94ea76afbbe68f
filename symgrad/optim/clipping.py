"""Gradients that are kept within bounds."""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.ir.node import Node
from symgrad.ops.elementwise import abs, sqrt, square
from symgrad.ops.reduce import sum
from symgrad.ops.select import clip, minimum
from symgrad.ops.shape import astype
from symgrad.optim.checks import number


def clip_by_value(gradients: Sequence[Node], limit: float) -> list[Node]:
    """Each element, but at least -limit and at most limit.

    >>> np.asarray(clip_by_value([sg.constant([0.5, -3.0])], 1.0)[0])
    array([ 0.5, -1. ])
    """
    most = number(limit, "clip_value", above=True)
    return [clip(g, -most, most) for g in gradients]


def clip_by_norm(gradients: Sequence[Node], limit: float) -> list[Node]:
    """All of them times one number, so that their common norm is at most limit.

    Pascanu et al., On the difficulty of training recurrent neural networks, arXiv:1211.5063. The
    number is min(1, limit / (norm + 1e-6)), as PyTorch's.

    >>> np.asarray(clip_by_norm([sg.constant([3.0, 4.0])], 1.0)[0]).round(3)
    array([0.6, 0.8])
    """
    most = number(limit, "clip_norm", above=True)
    # Of float16 the squares overflow above 255, and the factor may be too small for it.
    wide = [astype(g, "float32") if g.dtype == "float16" else g for g in gradients]
    squares = [astype(sum(square(abs(g))), "float64") for g in wide]
    total = squares[0]
    for s in squares[1:]:
        total = total + s
    factor = minimum(most / (sqrt(total) + 1e-6), 1.0)
    return [
        astype(w * astype(factor, w.dtype), g.dtype) for g, w in zip(gradients, wide, strict=True)
    ]
