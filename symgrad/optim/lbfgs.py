"""The method of Broyden, Fletcher, Goldfarb and Shanno, with little memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.ir.errors import UnsupportedError
from symgrad.ir.node import Node, Variable
from symgrad.ir.types import whole
from symgrad.ops.elementwise import abs, divide, negative
from symgrad.ops.leaves import variable
from symgrad.ops.linalg.products import vecdot
from symgrad.ops.logic import equal, greater, less, logical_and
from symgrad.ops.reduce import max, sum
from symgrad.ops.select import minimum, select, where
from symgrad.ops.shape import concat, expand_dims, reshape
from symgrad.optim.checks import number
from symgrad.optim.optimizer import Optimizer, like


class LBFGS(Optimizer):
    """Steps by an inverse Hessian that is made of the last `history` steps and gradients.

    Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.4. A call of a program is one step
    of the length lr, without a line search: the graph is static. The first step is at most lr
    long. It is for losses of all the data, not of a batch; nothing moves once all gradients
    are within `tolerance`. All parameters have one dtype, else it raises `UnsupportedError`.

    >>> w = sg.variable("w", [1.0, 2.0])
    >>> loss = sg.sum(w**2 * [1.0, 3.0])
    >>> step = sg.compile([], loss, updates=sg.optim.LBFGS([w], lr=1.0).updates(loss))
    >>> [round(float(step()), 4) for _ in range(6)][::5]
    [13.0, 0.0]
    """

    counts = True

    def __init__(
        self,
        parameters: Any,
        lr: Any = 1.0,
        *,
        history: Any = 10,
        tolerance: float = 1e-7,
        **options: Any,
    ) -> None:
        self.history = whole(history, "history", 1, UnsupportedError)
        self.tolerance = number(tolerance, "tolerance")
        super().__init__(parameters, lr, **options)

    def _state(self) -> list[list[Variable]]:
        dtypes = {p.dtype for p in self.parameters}
        if len(dtypes) > 1:
            raise UnsupportedError("LBFGS takes parameters of one dtype; convert them")
        (dtype,) = dtypes
        size, m = int(np.sum([p.value.size for p in self.parameters])), self.history
        first = {
            "steps": np.zeros((m, size)),  # the oldest first
            "changes": np.zeros((m, size)),  # of the gradients
            "curvatures": np.zeros(m),  # 1 / (step @ change); 0 where there was none yet
            "scale": np.ones(()),
            "gradient": np.zeros(size),
            "move": np.zeros(size),
        }
        return [[variable(f"{self.name}.{n}", a.astype(dtype)) for n, a in first.items()]]

    def _next(self, grads: Sequence[Node], rate: Any) -> dict[Variable, Node]:
        old = self._kept[0]
        steps, changes, curvatures, scale, last, move = old
        g = concat([reshape(x, (-1,)) for x in grads])
        change = g - last
        product = vecdot(change, move)
        is_good = greater(product, 1e-10)
        new_steps = where(is_good, _pushed(steps, move), steps)
        new_changes = where(is_good, _pushed(changes, change), changes)
        new_curvatures = where(is_good, _pushed(curvatures, divide(1, product)), curvatures)
        new_scale = where(is_good, product / vecdot(change, change), scale)
        way = self._way(g, new_steps, new_changes, new_curvatures, new_scale)
        shorter = where(equal(self.step, 0), minimum(1 / sum(abs(g)), 1), 1)
        moves = logical_and(greater(max(abs(g)), self.tolerance), less(vecdot(g, way), 0))
        new_move = select(moves, like(rate, g) * like(shorter, g) * way)
        nexts = [new_steps, new_changes, new_curvatures, new_scale, g, new_move]
        found = dict(zip(old, nexts, strict=True))
        start = 0
        for p in self.parameters:
            end = start + p.value.size
            found[p] = p + reshape(new_move[start:end], p.shape)
            start = end
        return found

    def _way(self, g: Node, steps: Node, changes: Node, curvatures: Node, scale: Node) -> Node:
        """The inverse Hessian times -g, by the two loops."""
        way: Node = negative(g)
        factors: dict[int, Node] = {}
        for i in reversed(range(self.history)):
            factors[i] = curvatures[i] * vecdot(steps[i], way)
            way = way - factors[i] * changes[i]
        way = way * scale
        for i in range(self.history):
            way = way + steps[i] * (factors[i] - curvatures[i] * vecdot(changes[i], way))
        return way


def _pushed(rows: Node, row: Node) -> Node:
    """Without the first row, and with another at the end."""
    return concat([rows[1:], expand_dims(row, axis=0)])
