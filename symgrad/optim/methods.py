"""The methods of first order: each is a rule for one parameter.

Names, defaults and arithmetic are those of `torch.optim`, whose figures they are tested against.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from symgrad.ir.errors import UnsupportedError
from symgrad.ir.node import Node, Variable
from symgrad.ops.elementwise import sqrt, square
from symgrad.optim.checks import number
from symgrad.optim.optimizer import Limits, Optimizer, like


class SGD(Optimizer):
    """p - lr * g; with momentum, g is a running sum: Sutskever et al., ICML 2013.

    `nesterov` looks ahead by one momentum, `weight_decay` adds that much of p to g.

    >>> w = sg.variable("w", 1.0)
    >>> step = sg.compile([], w**2, updates=sg.optim.SGD([w], lr=0.25).updates(w**2))
    >>> float(step()), float(step())
    (1.0, 0.25)
    """

    takes_complex = True

    def __init__(
        self,
        parameters: Any,
        lr: Any,
        *,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        **options: Unpack[Limits],
    ) -> None:
        self.momentum, self.nesterov = number(momentum, "momentum"), nesterov
        self.weight_decay = number(weight_decay, "weight_decay")
        if nesterov and not momentum:
            raise UnsupportedError("nesterov needs a momentum: SGD(…, momentum=0.9, nesterov=True)")
        self.slots = ("velocity",) if momentum else ()
        super().__init__(parameters, lr, **options)

    def rule(self, p: Variable, g: Node, rate: Any, *kept: Variable) -> Sequence[Node]:
        """The next value of a parameter and of its velocity."""
        g = _decayed(g, p, self.weight_decay)
        if not kept:
            return (p - rate * g,)
        velocity = self.momentum * kept[0] + g
        ahead = g + self.momentum * velocity if self.nesterov else velocity
        return p - rate * ahead, velocity


class Adam(Optimizer):
    """Steps of the mean of gradients over the root of the mean of their squares.

    Kingma and Ba, arXiv:1412.6980. `betas` are how much of the means is kept in a step;
    `weight_decay` adds that much of p to the gradient.

    >>> w = sg.variable("w", 1.0)
    >>> step = sg.compile([], w**2, updates=sg.optim.Adam([w], lr=0.25).updates(w**2))
    >>> float(step()), round(float(step()), 6)
    (1.0, 0.5625)
    """

    slots = ("mean", "square")
    counts = True

    def __init__(
        self,
        parameters: Any,
        lr: Any = 1e-3,
        *,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **options: Unpack[Limits],
    ) -> None:
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise UnsupportedError(f"betas are two numbers, such as (0.9, 0.999), not {betas!r}")
        self.betas = tuple(number(b, "a beta", below=1.0) for b in betas)
        self.eps = number(eps, "eps")
        self.weight_decay = number(weight_decay, "weight_decay")
        super().__init__(parameters, lr, **options)

    def rule(self, p: Variable, g: Node, rate: Any, *kept: Variable) -> Sequence[Node]:
        """The next value of a parameter and of its two means."""
        return self._moved(p, p, _decayed(g, p, self.weight_decay), rate, *kept)

    def _moved(
        self, p: Variable, start: Node, g: Node, rate: Any, mean: Variable, squares: Variable
    ) -> Sequence[Node]:
        first, second = self.betas
        new_mean = first * mean + (1 - first) * g
        new_squares = second * squares + (1 - second) * square(g)
        # The corrections for the zeros at the beginning are numbers, and stay apart from arrays.
        root = sqrt(1 - second**self.count)
        size = like(root / (1 - first**self.count), p)
        step = (rate * size) * new_mean / (sqrt(new_squares) + like(self.eps * root, p))
        return start - step, new_mean, new_squares


class AdamW(Adam):
    """`Adam` with a weight decay beside the gradient: p shrinks by lr * weight_decay.

    Loshchilov and Hutter, arXiv:1711.05101.

    >>> w = sg.variable("w", 1.0)
    >>> updates = sg.optim.AdamW([w], lr=0.25, weight_decay=0.1).updates(w**2)
    >>> step = sg.compile([], w, updates=updates)
    >>> float(step()), round(float(step()), 6)
    (1.0, 0.725)
    """

    def __init__(
        self,
        parameters: Any,
        lr: Any = 1e-3,
        *,
        weight_decay: float = 0.01,
        **options: Unpack[Limits],
    ) -> None:
        super().__init__(parameters, lr, weight_decay=weight_decay, **options)

    def rule(self, p: Variable, g: Node, rate: Any, *kept: Variable) -> Sequence[Node]:
        """The next value of a parameter and of its two means."""
        return self._moved(p, p * (1 - rate * self.weight_decay), g, rate, *kept)


class RMSprop(Optimizer):
    """Gradients over the root of the running mean of their squares: Tieleman and Hinton, 2012.

    `alpha` is how much of the mean is kept in a step. `centered` takes the variance in its place
    (Graves, arXiv:1308.0850), `momentum` a running sum of what is stepped.

    >>> w = sg.variable("w", 1.0)
    >>> step = sg.compile([], w, updates=sg.optim.RMSprop([w], lr=0.25, alpha=0.75).updates(w**2))
    >>> float(step()), round(float(step()), 6)
    (1.0, 0.5)
    """

    def __init__(
        self,
        parameters: Any,
        lr: Any = 0.01,
        *,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        **options: Unpack[Limits],
    ) -> None:
        self.alpha, self.eps = number(alpha, "alpha", below=1.0), number(eps, "eps")
        self.weight_decay = number(weight_decay, "weight_decay")
        self.momentum, self.centered = number(momentum, "momentum"), centered
        self.slots = ("square", *["mean"] * bool(centered), *["velocity"] * bool(momentum))
        super().__init__(parameters, lr, **options)

    def rule(self, p: Variable, g: Node, rate: Any, *kept: Variable) -> Sequence[Node]:
        """The next value of a parameter and of its running means."""
        old = dict(zip(self.slots, kept, strict=True))
        g = _decayed(g, p, self.weight_decay)
        spread = squares = self.alpha * old["square"] + (1 - self.alpha) * square(g)
        nexts = [squares]
        if self.centered:
            mean = self.alpha * old["mean"] + (1 - self.alpha) * g
            spread = squares - square(mean)
            nexts.append(mean)
        step = g / (sqrt(spread) + self.eps)
        if self.momentum:
            step = self.momentum * old["velocity"] + step
            nexts.append(step)
        return p - rate * step, *nexts


class Adagrad(Optimizer):
    """Gradients over the root of the sum of their squares: Duchi et al., JMLR 12 (2011).

    At step t, from 0 on, the rate is lr / (1 + t * lr_decay).

    >>> w = sg.variable("w", 1.0)
    >>> step = sg.compile([], w, updates=sg.optim.Adagrad([w], lr=0.25).updates(w**2))
    >>> float(step()), round(float(step()), 6)
    (1.0, 0.75)
    """

    slots = ("square",)
    counts = True

    def __init__(
        self,
        parameters: Any,
        lr: Any = 0.01,
        *,
        lr_decay: float = 0.0,
        eps: float = 1e-10,
        weight_decay: float = 0.0,
        **options: Unpack[Limits],
    ) -> None:
        self.lr_decay, self.eps = number(lr_decay, "lr_decay"), number(eps, "eps")
        self.weight_decay = number(weight_decay, "weight_decay")
        super().__init__(parameters, lr, **options)

    def rule(self, p: Variable, g: Node, rate: Any, *kept: Variable) -> Sequence[Node]:
        """The next value of a parameter and of its sum of squares."""
        g = _decayed(g, p, self.weight_decay)
        squares = kept[0] + square(g)
        if self.lr_decay:
            rate = rate * like(1 / (1 + (self.count - 1) * self.lr_decay), p)
        return p - rate * (g / (sqrt(squares) + self.eps)), squares


def _decayed(g: Node, p: Node, weight_decay: float) -> Node:
    return g + weight_decay * p if weight_decay else g
