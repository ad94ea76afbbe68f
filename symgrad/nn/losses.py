"""Losses. `reduction` is "mean" or "sum" of the losses of all elements, or "none": each its own.

`weight` weighs the elements before that, and broadcasts to them; "mean" divides by how many there
are, whatever they weigh. That of `cross_entropy` is one of classes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal, TypeAlias

from symgrad.ir.errors import DtypeError, ShapeError, UnsupportedError
from symgrad.ir.node import Node, as_node, constant_value
from symgrad.ir.types import normalize_axis
from symgrad.nn.checks import number
from symgrad.ops.activations import log_softmax, softplus, xlogy
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.elementwise import exp, negative, square
from symgrad.ops.index.take import numbered, take_along_axis
from symgrad.ops.leaves import ones_like
from symgrad.ops.reduce import as_float, mean, sum
from symgrad.ops.select import clip, select
from symgrad.ops.shape import astype, expand_dims, reshape, squeeze

Reduction: TypeAlias = Literal["mean", "sum", "none"]


def _reduced(losses: Node, reduction: Reduction, weights: Node | None = None) -> Node:
    if reduction == "none":
        return losses
    if reduction == "sum":
        return sum(losses)
    if reduction == "mean":
        return mean(losses) if weights is None else sum(losses) / sum(weights)
    raise UnsupportedError(f"a reduction is 'mean', 'sum' or 'none', not {reduction!r}")


def _alike(a: NodeLike, b: NodeLike) -> tuple[Node, Node]:
    """Two operands of one shape: losses that broadcast are mistakes more often than not."""
    x, y = as_float(a), as_float(b)
    if x.shape != y.shape:
        raise ShapeError(f"the shapes {x.shape} and {y.shape} differ; broadcast one to the other")
    return x, y


def _weighted(x: Node, weight: Any) -> Node:
    """x, each element as often as it weighs."""
    if weight is None:
        return x
    w = astype(as_node(weight), x.dtype)
    with suppress(ShapeError):
        found: Node = x * w
        if found.shape == x.shape:
            return found
    raise ShapeError(
        f"a weight broadcasts to the losses, of the shape {x.shape}, not of the shape {w.shape}; "
        "for one of each row write weight[:, np.newaxis]"
    )


@composite(widens=True)
def mse_loss(
    prediction: NodeLike, target: NodeLike, /, *, weight: Any = None, reduction: Reduction = "mean"
) -> Node:
    """The squared differences; `mse` is the same.

    `weight` broadcasts to them; "mean" divides by the number of elements. Raises `ShapeError`
    unless prediction and target have the same shape.

    >>> float(mse_loss([1.0, 2.0], [0.0, 4.0], weight=[4, 1]))
    4.0
    """
    x, y = _alike(prediction, target)
    return _reduced(_weighted(square(x - y), weight), reduction)


@composite(widens=True)
def huber(
    prediction: NodeLike,
    target: NodeLike,
    /,
    *,
    delta: Any = 1.0,
    weight: Any = None,
    reduction: Reduction = "mean",
) -> Node:
    """Half the squared difference where it is within delta, else delta * (abs - delta / 2).

    Huber, Robust estimation of a location parameter, Ann. Math. Statist. 35 (1964). `weight`
    broadcasts to them; "mean" divides by the number of elements. Raises `ShapeError` unless
    prediction and target have the same shape, `UnsupportedError` unless delta is above 0.

    >>> float(huber([0.5, 3.0], [0.0, 0.0], reduction="sum"))
    2.625
    """
    x, y = _alike(prediction, target)
    bound = constant_value(as_node(delta))
    if bound is not None and not (bound > 0).all():
        raise UnsupportedError(f"delta is above 0, not {delta!r}")
    away = x - y
    near = clip(away, -delta, delta)
    return _reduced(_weighted(near * (away - 0.5 * near), weight), reduction)


@composite(widens=True)
def bce_with_logits(
    logits: NodeLike,
    target: NodeLike,
    /,
    *,
    weight: Any = None,
    pos_weight: Any = None,
    reduction: Reduction = "mean",
) -> Node:
    """The cross entropy of yes and no: -t * log(sigmoid(x)) - (1 - t) * log(1 - sigmoid(x)).

    It neither overflows nor cancels. `weight` weighs each element, `pos_weight` its first term;
    both broadcast to the logits, and "mean" divides by the number of elements. Raises `ShapeError`
    unless logits and target have the same shape.

    >>> float(bce_with_logits([0.0], [1.0]))
    0.6931471805599453
    """
    x, t = _alike(logits, target)
    losses = _weighted(t, pos_weight) * softplus(negative(x)) + (1 - t) * softplus(x)
    return _reduced(_weighted(losses, weight), reduction)


@composite(widens=True)
def kl_div(
    log_prediction: NodeLike,
    target: NodeLike,
    /,
    *,
    axis: int = -1,
    log_target: bool = False,
    reduction: Reduction = "mean",
) -> Node:
    """The divergence of Kullback and Leibler, sum(t * (log(t) - x)) along an axis.

    The prediction is given by its logarithm, and the target too if `log_target`; where the target
    is 0 nothing is added. Raises `ShapeError` unless both have the same shape.

    >>> float(kl_div(np.log([0.5, 0.5]), [1.0, 0.0]))
    0.6931471805599453
    """
    x, t = _alike(log_prediction, target)
    terms = exp(t) * (t - x) if log_target else xlogy(t, t) - select(t != 0, t * x)
    return _reduced(sum(terms, axis=axis), reduction)


@composite(widens=True)
def cross_entropy(
    logits: NodeLike,
    target: NodeLike,
    /,
    *,
    axis: int = -1,
    weight: Any = None,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
) -> Node:
    """-log_softmax(logits) along the axis of the classes, of the target's class.

    The target holds the number of a class, from 0 on, in the shape of the logits without that axis;
    or, as floats in the shape of the logits, probabilities. `weight`, of the number of classes,
    weighs each class; with numbers "mean" divides by the sum of the weights that were used.
    `label_smoothing` mixes that much of the uniform distribution into the target (Szegedy et al.,
    arXiv:1512.00567). Raises `ShapeError` for other shapes, `DtypeError` for a target of booleans;
    a class out of range is a `BoundsError`, when the program runs if not before.

    >>> float(cross_entropy([[0.0, 0.0]], [1]))
    0.6931471805599453
    """
    x, t = as_float(logits), as_node(target)
    along = normalize_axis(axis, x.ndim)
    if t.dtype.kind not in "iuf":
        raise DtypeError(f"a target is integers or floats, not {t.dtype.name}")
    label_smoothing = number(label_smoothing, "label_smoothing", 1)
    is_classes = t.dtype.kind in "iu"
    expected = (*x.shape[:along], *x.shape[along + 1 :]) if is_classes else x.shape
    if t.shape != expected:
        words = "of classes" if is_classes else "of probabilities"
        raise ShapeError(
            f"a target {words} is of the shape {expected} here, not {t.shape}; integers are the "
            "numbers of classes, floats their probabilities"
        )
    costs = negative(log_softmax(x, axis=along))
    weights = None if weight is None else _along(astype(as_node(weight), x.dtype), x, along)
    if weights is not None:
        costs = weights * costs
    if is_classes:
        index = expand_dims(numbered(t, x.shape[along]), axis=along)
        losses = squeeze(take_along_axis(costs, index, axis=along), axis=along)
        if weights is not None:
            spread = ones_like(x) * weights
            weights = take_along_axis(spread, index, axis=along)
    else:
        losses, weights = sum(select(t != 0, t * costs), axis=along), None
    if label_smoothing:
        losses = (1 - label_smoothing) * losses + label_smoothing * mean(costs, axis=along)
    return _reduced(losses, reduction, weights)


def _along(weight: Node, x: Node, axis: int) -> Node:
    """A weight for each class, so that it broadcasts against the logits."""
    if weight.shape != (x.shape[axis],):
        raise ShapeError(f"the weight is of the shape {(x.shape[axis],)} here, not {weight.shape}")
    return reshape(weight, (*weight.shape, *(1,) * (x.ndim - axis - 1)))
