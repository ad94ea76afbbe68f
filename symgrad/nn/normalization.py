"""Normalisation over features or over a batch."""

from __future__ import annotations

from typing import Any

from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import normalize_axes, normalize_axis
from symgrad.nn.checks import number
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.elementwise import sqrt
from symgrad.ops.reduce import as_float, mean, var
from symgrad.ops.shape import reshape


def _scaled(
    y: Node, scale: NodeLike | None, offset: NodeLike | None, axes: tuple[int, ...]
) -> Node:
    """y * scale + offset, each of the shape that y has along the axes."""
    for values, name in ((scale, "scale"), (offset, "offset")):
        if values is None:
            continue
        node = as_node(values)
        wanted = tuple(y.shape[a] for a in axes)
        if node.shape != wanted:
            raise ShapeError(f"the {name} is of the shape {wanted} here, not {node.shape}")
        held = reshape(node, tuple(s if a in axes else 1 for a, s in enumerate(y.shape)))
        y = y * held if name == "scale" else y + held
    return y


@composite(widens=True)
def layer_norm(
    x: NodeLike,
    scale: NodeLike | None = None,
    offset: NodeLike | None = None,
    /,
    *,
    axis: Any = -1,
    eps: float = 1e-5,
) -> Node:
    """x less its mean over axes, over its standard deviation, times a scale plus an offset.

    Ba, Kiros and Hinton, Layer normalization, arXiv:1607.06450. `eps`, from 0 on, is added to the
    variance. `scale` and `offset` are of the shape that x has along the axes; else it raises
    `ShapeError`.

    >>> np.asarray(layer_norm([1.0, 3.0], eps=0.0))
    array([-1.,  1.])
    """
    node, eps = as_float(x), number(eps, "eps")
    axes = normalize_axes(axis, node.ndim)
    away = node - mean(node, axis=axes, keepdims=True)
    y = away / sqrt(mean(away * away, axis=axes, keepdims=True) + eps)
    return _scaled(y, scale, offset, axes)


@composite(widens=True)
def batch_norm(
    x: NodeLike,
    scale: NodeLike | None = None,
    offset: NodeLike | None = None,
    /,
    *,
    mean: NodeLike | None = None,
    variance: NodeLike | None = None,
    axis: int = 1,
    eps: float = 1e-5,
) -> Node:
    """x less its mean for each channel, over its standard deviation, times a scale plus an offset.

    Ioffe and Szegedy, Batch normalization, arXiv:1502.03167. `axis` is that of the channels.
    Without `mean` and `variance` they are those of the batch, as in training: `sg.mean` and
    `sg.var` over the other axes give them again, for running averages, and cost nothing twice.
    All four are of the shape of the channels; else it raises `ShapeError`.

    >>> np.asarray(batch_norm([[1.0], [3.0]], eps=0.0))
    array([[-1.],
           [ 1.]])
    """
    node, eps = as_float(x), number(eps, "eps")
    channel = normalize_axis(axis, node.ndim)
    others = tuple(a for a in range(node.ndim) if a != channel)
    if (mean is None) != (variance is None):
        raise ShapeError("batch_norm takes both mean and variance, or none of them")
    center, spread = _of_batch(node, others) if mean is None else (as_node(mean), as_node(variance))
    away = _scaled(node, None, -center, (channel,))
    y = _scaled(away, 1 / sqrt(spread + eps), None, (channel,))
    return _scaled(y, scale, offset, (channel,))


def _of_batch(x: Node, axes: tuple[int, ...]) -> tuple[Node, Node]:
    return mean(x, axis=axes), var(x, axis=axes)
