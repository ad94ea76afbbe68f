"""Learning rates that change: functions of the number of the step, a node from 0 on.

>>> optimizer = sg.optim.SGD(net, lr=sg.optim.warm_up(10, sg.optim.cosine(0.1, 1000)))
"""

from __future__ import annotations

import math
from typing import Any

from symgrad.ir.errors import UnsupportedError
from symgrad.ir.node import Node
from symgrad.ops.select import maximum, minimum
from symgrad.ops.trigonometry import cos
from symgrad.optim.optimizer import Schedule, number


def constant(lr: float) -> Schedule:
    """Always the same.

    >>> constant(0.1)(sg.constant(7))
    0.1
    """
    rate = number(lr, "lr")
    return lambda step: rate


def cosine(lr: float, steps: int, *, end: float = 0.0) -> Schedule:
    """From lr down to `end` in so many steps, by half a cosine; then `end`.

    Loshchilov and Hutter, arXiv:1608.03983.

    >>> float(cosine(0.1, 10)(sg.constant(5)))
    0.05
    """
    top, low, count = number(lr, "lr"), number(end, "end"), _count(steps)

    def rate(step: Node) -> Any:
        return low + (top - low) * (0.5 + 0.5 * cos(minimum(step, count) * (math.pi / count)))

    return rate


def step_decay(lr: float, every: int, *, factor: float = 0.1) -> Schedule:
    """lr, times the factor once in so many steps.

    >>> float(step_decay(1.0, 10, factor=0.5)(sg.constant(20)))
    0.25
    """
    top, ratio, count = number(lr, "lr"), number(factor, "factor"), _count(every)
    return lambda step: top * ratio ** (step // count)


def warm_up(steps: int, then: Schedule | float) -> Schedule:
    """From a small part of a rate to the whole of it in so many steps; from there on as it says.

    Goyal et al., arXiv:1706.02677.

    >>> float(warm_up(4, 0.1)(sg.constant(0)))
    0.025
    """
    count = _count(steps)
    after = then if callable(then) else constant(then)
    return lambda step: after(maximum(step - count, 0)) * minimum((step + 1) / count, 1)


def _count(steps: Any) -> int:
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise UnsupportedError(f"a number of steps is an int from 1 on, not {steps!r}")
    return steps
