"""Four functions with their gradients, in the sizes in which `peers.json` counts them elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import symgrad as sg


@dataclass(frozen=True)
class Case:
    """A loss, what it is a function of, and by which of these it is differentiated."""

    inputs: list[sg.Node]
    loss: sg.Node
    wanted: list[sg.Node]

    def compile(self, **options: Any) -> sg.Program:
        """The program of the loss and its gradients."""
        return sg.compile(self.inputs, [self.loss, *sg.grad(self.loss, self.wanted)], **options)


def _inputs(**shapes: tuple[int, ...]) -> list[sg.Node]:
    return [sg.placeholder(name, shape, "float32") for name, shape in shapes.items()]


def two_layer_net() -> Case:
    """The squared error of two layers with a ReLU between them."""
    x, y, w1, w2 = inputs = _inputs(x=(64, 1000), y=(64, 10), w1=(1000, 100), w2=(100, 10))
    return Case(inputs, sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2), [w1, w2])


def cross_entropy_mlp() -> Case:
    """The cross-entropy of a classifier of three layers, from its logits; `t` is one-hot."""
    x, t, *weights = inputs = _inputs(
        x=(64, 784), t=(64, 10),
        w1=(784, 256), b1=(256,), w2=(256, 128), b2=(128,), w3=(128, 10), b3=(10,),
    )  # fmt: skip
    w1, b1, w2, b2, w3, b3 = weights
    h = sg.relu(sg.relu(x @ w1 + b1) @ w2 + b2)
    return Case(inputs, -sg.sum(t * sg.log_softmax(h @ w3 + b3)) / 64, weights)


def layer_norm() -> Case:
    """Rows brought to mean 0 and variance 1, with gain and bias; `c` weighs the outputs."""
    x, g, b, c = inputs = _inputs(x=(64, 512), g=(512,), b=(512,), c=(64, 512))
    d = x - sg.mean(x, axis=-1, keepdims=True)
    variance = sg.mean(d * d, axis=-1, keepdims=True)
    return Case(inputs, sg.sum((d / sg.sqrt(variance + 1e-5) * g + b) * c), [x, g, b])


def attention() -> Case:
    """One head of scaled dot-product attention; `c` weighs the outputs."""
    q, k, v, c = inputs = _inputs(q=(128, 64), k=(128, 64), v=(128, 64), c=(128, 64))
    return Case(inputs, sg.sum(sg.softmax(q @ k.T / 64**0.5) @ v * c), [q, k, v])


FUNCTIONS: tuple[Callable[[], Case], ...] = (
    two_layer_net,
    cross_entropy_mlp,
    layer_norm,
    attention,
)
