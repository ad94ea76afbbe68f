"""Learning rates that change: functions of the number of the step, a node from 0 on.

>>> optimizer = sg.optim.SGD(net, lr=sg.optim.warm_up(10, sg.optim.cosine(0.1, 1000)))
"""

from __future__ import annotations

import math
from typing import Any

from symgrad.ir.arraylike import is_function
from symgrad.ir.errors import UnsupportedError
from symgrad.ir.node import Node
from symgrad.ir.types import whole
from symgrad.ops.select import maximum, minimum
from symgrad.ops.trigonometry import cos
from symgrad.optim.checks import number, rate
from symgrad.optim.optimizer import Schedule


def constant(lr: float) -> Schedule:
    """Always the same.

    >>> constant(0.1)(sg.constant(7))
    0.1
    """
    always = rate(lr)
    return lambda step: always


def cosine(lr: float, steps: int, *, end: float = 0.0) -> Schedule:
    """From lr down to `end` in so many steps, by half a cosine; then `end`.

    Loshchilov and Hutter, arXiv:1608.03983.

    >>> float(cosine(0.1, 10)(sg.constant(5)))
    0.05
    """
    top, low, count = rate(lr), number(end, "end"), whole(steps, "steps", 1, UnsupportedError)

    def at(step: Node) -> Any:
        return low + (top - low) * (0.5 + 0.5 * cos(minimum(step, count) * (math.pi / count)))

    return at


def step_decay(lr: float, every: int, *, factor: float = 0.1) -> Schedule:
    """lr, times the factor once in so many steps.

    >>> float(step_decay(1.0, 10, factor=0.5)(sg.constant(20)))
    0.25
    """
    top, ratio, count = (
        rate(lr),
        number(factor, "factor"),
        whole(every, "every", 1, UnsupportedError),
    )
    return lambda step: top * ratio ** (step // count)


def warm_up(steps: int, then: Schedule | float) -> Schedule:
    """From a small part of a rate to the whole of it in so many steps; from there on as it says.

    Goyal et al., arXiv:1706.02677.

    >>> float(warm_up(4, 0.1)(sg.constant(0)))
    0.025
    """
    count = whole(steps, "steps", 1, UnsupportedError)
    given: Any = then
    after = given if is_function(given) else constant(given)
    return lambda step: after(maximum(step - count, 0)) * minimum((step + 1) / count, 1)
