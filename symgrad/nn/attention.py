"""Attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad import random
from symgrad.ir.errors import DtypeError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.nn.checks import given
from symgrad.nn.initializers import Initializer
from symgrad.nn.layers import Linear
from symgrad.nn.module import Module
from symgrad.ops.activations import softmax
from symgrad.ops.conv.windows import positive
from symgrad.ops.declare import NodeLike
from symgrad.ops.select import where
from symgrad.ops.shape import permute_dims, reshape


class MultiHeadAttention(Module):
    """Attention with several heads: Vaswani et al., Attention is all you need, arXiv:1706.03762.

    Each of `heads` compares queries made of x with keys made of the context, over size / heads
    features, and mixes values by softmax(query @ key / sqrt(size / heads)). Raises `ShapeError`
    unless the heads divide the size.

    >>> attention = MultiHeadAttention(8, 2, key=sg.random.key(0))
    >>> attention(placeholder("x", ("N", 5, 8)), causal=True).type
    float64[N, 5, 8]
    """

    def __init__(
        self,
        size: int,
        heads: int,
        *,
        key: NodeLike = None,
        bias: bool = True,
        init: Initializer = "xavier_uniform",
        dtype: Any = "float64",
    ) -> None:
        self.heads, self.size = positive(heads, "heads"), positive(size, "size")
        if size % heads:
            raise ShapeError(f"{heads} heads do not divide {size} features")
        self.query, self.key, self.value, self.out = (
            Linear(size, size, key=k, bias=bias, init=init, dtype=dtype)
            for k in random.split(given(key), 4)
        )

    def forward(
        self,
        x: NodeLike,
        context: NodeLike | None = None,
        mask: NodeLike | None = None,
        *,
        causal: bool = False,
    ) -> Node:
        """x of the shape (N, L, size) attends to a context (N, S, size), by default to itself.

        `mask` is true where it may, of a shape that broadcasts to (N, heads, L, S); `causal` lets
        each element attend to itself and those before it, for known lengths. A row that may attend
        to nothing is NaN.
        """
        node = as_node(x)
        beside = node if context is None else as_node(context)
        for source in (node, beside):
            if source.ndim != 3 or source.shape[-1] != self.size:
                raise ShapeError(
                    f"attention takes sequences of the shape (N, length, {self.size}), not "
                    f"{source.type!r}"
                )
        query, key, value = (
            self._split(layer(source))
            for layer, source in ((self.query, node), (self.key, beside), (self.value, beside))
        )
        scores = (query @ key.mT) * (1 / math.sqrt(self.size // self.heads))
        if causal:
            length, width = scores.shape[-2:]
            if not isinstance(length, int) or not isinstance(width, int):
                raise ShapeError(f"causal needs known lengths, not {length} and {width}; give mask")
            scores = where(np.tri(length, width, dtype=bool), scores, -np.inf)
        if mask is not None:
            if as_node(mask).dtype != np.bool_:
                raise DtypeError(
                    f"mask is true where x may attend, of booleans, not {as_node(mask).type!r}; "
                    "keys and values are both made of the context: attention(x, context)"
                )
            scores = where(mask, scores, -np.inf)
        mixed = permute_dims(softmax(scores, axis=-1) @ value, (0, 2, 1, 3))
        found: Node = self.out(reshape(mixed, node.shape))
        return found

    def _split(self, y: Node) -> Node:
        """(N, L, size) as (N, heads, L, size / heads)."""
        split = reshape(y, (*y.shape[:-1], self.heads, self.size // self.heads))
        return permute_dims(split, (0, 2, 1, 3))
