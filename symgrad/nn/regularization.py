"""Regularisation by noise."""

from __future__ import annotations

from symgrad.ir.node import Node
from symgrad.nn.checks import number
from symgrad.ops.declare import NodeLike, explaining
from symgrad.ops.elementwise import multiply
from symgrad.ops.reduce import as_float
from symgrad.ops.select import select
from symgrad.random import bernoulli


@explaining
def dropout(x: NodeLike, key: NodeLike, /, *, rate: float = 0.5) -> Node:
    """x with a part of its elements set to 0, the others scaled so that the mean stays.

    Srivastava et al., Dropout, JMLR 15 (2014). `rate` is that part, a number; another from 0 to 1
    raises `UnsupportedError`. The key decides which: feed a program another for every step.

    >>> np.asarray(dropout(np.ones(4), sg.random.key(1)))
    array([2., 2., 2., 0.])
    """
    rate = number(rate, "the rate of dropout", 1)
    node = as_float(x)
    if rate in (0, 1):
        return multiply(node, 1 - rate)
    return select(bernoulli(key, 1 - rate, node.shape), node * (1 / (1 - rate)))
